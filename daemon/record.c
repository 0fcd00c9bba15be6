#include "daemon/record.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/banned.h"

struct recorder {
	struct db *db;
	record_fn fn;
	void *arg;
	struct db_event *pending; /* written, not committed yet */
	size_t n, cap;
};

struct recorder *recorder_new(struct db *db, record_fn fn, void *arg)
{
	struct recorder *recorder = xcalloc(1, sizeof(*recorder));

	recorder->db = db;
	recorder->fn = fn;
	recorder->arg = arg;
	return recorder;
}

static void event_free_strings(struct db_event *event)
{
	free(event->kind);
	free(event->text);
	free(event->data);
}

static void drop_pending(struct recorder *recorder)
{
	for (size_t i = 0; i < recorder->n; i++)
		event_free_strings(&recorder->pending[i]);
	recorder->n = 0;
}

void recorder_free(struct recorder *recorder)
{
	if (!recorder)
		return;
	drop_pending(recorder);
	free(recorder->pending);
	free(recorder);
}

int record_begin(struct recorder *recorder, struct err *err)
{
	drop_pending(recorder);
	return db_begin(recorder->db, err);
}

int record_event(struct recorder *recorder, int64_t job, const char *kind, json_t *data,
	struct err *err, const char *fmt, ...)
{
	struct db_event event = {.job = job, .at = clock_wall_ms(), .kind = xstrdup(kind)};
	cleanup(json_decref) json_t *held = data;
	va_list ap;
	int r;

	va_start(ap, fmt);
	if (vasprintf(&event.text, fmt, ap) < 0)
		abort();
	va_end(ap);
	event.data = held ? json_line(held) : xstrdup("{}");
	r = db_event_insert(recorder->db, &event, &event.id, err);
	ALLOC_GROW(recorder->pending, recorder->n, recorder->cap);
	recorder->pending[recorder->n++] = event;
	return r;
}

int record_commit(struct recorder *recorder, struct err *err)
{
	struct db_event *events = recorder->pending;
	size_t n = recorder->n;
	int r = db_commit(recorder->db, err);

	if (r < 0) {
		drop_pending(recorder);
		return r;
	}
	/* The listener may record things of its own, so the list is taken away first. */
	recorder->pending = NULL;
	recorder->n = recorder->cap = 0;
	for (size_t i = 0; i < n; i++) {
		if (recorder->fn)
			recorder->fn(recorder->arg, &events[i]);
		event_free_strings(&events[i]);
	}
	free(events);
	return 0;
}

void record_rollback(struct recorder *recorder)
{
	db_rollback(recorder->db);
	drop_pending(recorder);
}

char *record_date(int64_t at)
{
	time_t t = (time_t)(at / 1000);
	struct tm tm;
	char text[64];

	localtime_r(&t, &tm);
	strftime(text, sizeof(text), "%a %-d %b %H:%M:%S %Z %Y", &tm);
	return xstrdup(text);
}

char *record_line(int64_t at, const struct view *view, const struct view_commit *commit,
	const char *what, const char *value, const char *verdict)
{
	cleanup(free) char *date = record_date(at);

	return xasprintf("%s %s %s %s %s:%s %s", date, view->job.host, view->spec.benchmark,
		commit->row->label, what, value, verdict);
}

char *record_duration(int64_t ms)
{
	long long s = (ms + 500) / 1000;

	if (s < 60)
		return xasprintf("%lld s", s);
	if (s < 3600)
		return xasprintf("%lld min %02lld s", s / 60, s % 60);
	return xasprintf("%lld h %02lld min", s / 3600, s / 60 % 60);
}

char *record_commit_name(const struct db_commit *commit)
{
	return commit->subject && *commit->subject
		       ? xasprintf("%s (\"%s\")", commit->label, commit->subject)
		       : xstrdup(commit->label);
}
