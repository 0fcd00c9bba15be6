#include "daemon/followers.h"

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

struct followers {
	LIST_HEAD(, follower) list;
};

struct followers *followers_new(void)
{
	struct followers *followers = xcalloc(1, sizeof(*followers));

	LIST_INIT(&followers->list);
	return followers;
}

static void follower_free(struct follower *f)
{
	LIST_REMOVE(f, link);
	free(f);
}

void followers_free(struct followers *followers)
{
	if (!followers)
		return;
	while (!LIST_EMPTY(&followers->list)) {
		struct follower *f = LIST_FIRST(&followers->list);

		stream_end(f->stream);
		follower_free(f);
	}
	free(followers);
}

static void on_gone(void *arg)
{
	follower_free(arg);
}

void followers_add(struct followers *followers, struct call *call, json_t *result, int64_t job)
{
	struct follower *f = xcalloc(1, sizeof(*f));

	f->job = job;
	f->stream = call_stream(call, result, on_gone, f);
	if (!f->stream) {
		free(f);
		return;
	}
	LIST_INSERT_HEAD(&followers->list, f, link);
}

json_t *followers_entry(const struct db_event *event)
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
static void send_all(struct followers *followers, int64_t job, const char *method, json_t *params)
{
	struct follower *f = LIST_FIRST(&followers->list);

	while (f) {
		struct follower *next = LIST_NEXT(f, link);

		if (f->job == job)
			stream_send(f->stream, method, json_incref(params));
		f = next;
	}
	json_decref(params);
}

void followers_event(struct followers *followers, const struct db_event *event)
{
	if (!LIST_EMPTY(&followers->list))
		send_all(followers, event->job, "log", followers_entry(event));
}

void followers_progress(struct followers *followers, int64_t job, const char *text)
{
	json_t *params;

	if (LIST_EMPTY(&followers->list))
		return;
	params = json_object();
	json_set_str(params, "text", text);
	send_all(followers, job, "progress", params);
}

void followers_end(struct followers *followers, const struct db_job *job)
{
	struct follower *f = LIST_FIRST(&followers->list);
	json_t *params = json_object();

	json_set_str(params, "state", db_job_state_name(job->state));
	json_set_str(params, "result", job->result);
	json_set_str(params, "reason", job->reason);
	send_all(followers, job->id, "end", params);
	f = LIST_FIRST(&followers->list);
	while (f) {
		struct follower *next = LIST_NEXT(f, link);

		if (f->job == job->id) {
			stream_end(f->stream);
			follower_free(f);
		}
		f = next;
	}
}
