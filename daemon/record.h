#ifndef DAEMON_RECORD_H
#define DAEMON_RECORD_H

/*
 * The job's diary. Every change is a transaction between record_begin and record_commit; the events
 * added in between are told to the listener only once the commit has reached the disk, so nobody
 * ever reads of something that a crash undoes. Also the shape of the log lines.
 */

#include "base/json.h"
#include "daemon/view.h"
#include "db/event.h"

struct recorder;

/* News that is on the disk. Borrowed for the call. */
typedef void (*record_fn)(void *arg, const struct db_event *event);

struct recorder *recorder_new(struct db *db, record_fn fn, void *arg);
void recorder_free(struct recorder *recorder);

int record_begin(struct recorder *recorder, struct err *err);
/* Takes the reference to data, which may be NULL. */
int record_event(struct recorder *recorder, int64_t job, const char *kind, json_t *data,
	struct err *err, const char *fmt, ...) __attribute__((format(printf, 6, 7)));
/* On failure everything since record_begin is undone. */
int record_commit(struct recorder *recorder, struct err *err);
void record_rollback(struct recorder *recorder);

/*
 * "Wed 8 Jan 09:53:59 GMT 2014 compass ebizzy v3.12.6 mean-4:2317 good": date, host, benchmark,
 * commit, metric:value as the benchmark printed it, verdict. at is Unix ms. Free it.
 */
char *record_line(int64_t at, const struct view *view, const struct view_commit *commit,
	const char *what, const char *value, const char *verdict);

/* The date alone. Free it. */
char *record_date(int64_t at);

/* A duration in words: "12 s", "3 min 20 s", "2 h 05 min". Free it. */
char *record_duration(int64_t ms);

/* "12345678abcd (fs: speed up things)" for sentences. Free it. */
char *record_commit_name(const struct db_commit *commit);

#endif
