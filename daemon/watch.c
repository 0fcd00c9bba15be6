#include "daemon/watch.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/alloc.h"
#include "base/banned.h"

struct follower {
	LIST_ENTRY(follower) link;
	struct stream *stream;
	int64_t job;
};

struct watch {
	LIST_HEAD(followers, follower) followers;
};

struct watch *watch_new(void)
{
	struct watch *watch = xcalloc(1, sizeof(*watch));

	LIST_INIT(&watch->followers);
	return watch;
}

static void follower_free(struct follower *f)
{
	LIST_REMOVE(f, link);
	free(f);
}

void watch_free(struct watch *watch)
{
	if (!watch)
		return;
	while (!LIST_EMPTY(&watch->followers)) {
		struct follower *f = LIST_FIRST(&watch->followers);

		stream_end(f->stream);
		follower_free(f);
	}
	free(watch);
}

static void on_gone(void *arg)
{
	follower_free(arg);
}

void watch_follow(struct watch *watch, struct call *call, json_t *result, int64_t job)
{
	struct follower *f = xcalloc(1, sizeof(*f));

	f->job = job;
	LIST_INSERT_HEAD(&watch->followers, f, link);
	f->stream = call_stream(call, result, on_gone, f);
}

json_t *watch_entry(const struct db_event *event)
{
	json_t *entry = NULL;

	json_parse(event->data, strlen(event->data), &entry, NULL);
	if (!entry)
		entry = json_object();
	json_set_int(entry, "id", event->id);
	json_set_int(entry, "at", event->at);
	json_set_str(entry, "kind", event->kind);
	json_set_str(entry, "text", event->text);
	return entry;
}

/* stream_send may drop the peer, which removes it from the list: so step on before sending. */
static void send_all(struct watch *watch, int64_t job, const char *method, json_t *params)
{
	struct follower *f = LIST_FIRST(&watch->followers);

	while (f) {
		struct follower *next = LIST_NEXT(f, link);

		if (f->job == job)
			stream_send(f->stream, method, json_incref(params));
		f = next;
	}
	json_decref(params);
}

void watch_event(struct watch *watch, const struct db_event *event)
{
	if (!LIST_EMPTY(&watch->followers))
		send_all(watch, event->job, "log", watch_entry(event));
}

void watch_progress(struct watch *watch, int64_t job, const char *text)
{
	json_t *params;

	if (LIST_EMPTY(&watch->followers))
		return;
	params = json_object();
	json_set_str(params, "text", text);
	send_all(watch, job, "progress", params);
}

void watch_end(struct watch *watch, const struct db_job *job)
{
	struct follower *f = LIST_FIRST(&watch->followers);
	json_t *params = json_object();

	json_set_str(params, "state", db_job_state_name(job->state));
	json_set_str(params, "result", job->result);
	json_set_str(params, "reason", job->reason);
	send_all(watch, job->id, "end", params);
	f = LIST_FIRST(&watch->followers);
	while (f) {
		struct follower *next = LIST_NEXT(f, link);

		if (f->job == job->id) {
			stream_end(f->stream);
			follower_free(f);
		}
		f = next;
	}
}
