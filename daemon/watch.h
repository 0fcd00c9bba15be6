#ifndef DAEMON_WATCH_H
#define DAEMON_WATCH_H

/*
 * Those who follow a log: one stream each, told of every new entry of their job, of what is being
 * done right now, and of the end. Owned by the server; a stream that goes away removes itself.
 */

#include "daemon/control.h"
#include "db/event.h"
#include "db/job.h"

struct watch;

struct watch *watch_new(void);
void watch_free(struct watch *watch);

/* Answer the call with `result` (taken over) and follow the job from here on. */
void watch_follow(struct watch *watch, struct call *call, json_t *result, int64_t job);

void watch_event(struct watch *watch, const struct db_event *event);
void watch_progress(struct watch *watch, int64_t job, const char *text);
/* The job ended: tell its followers and let them go. */
void watch_end(struct watch *watch, const struct db_job *job);

/* One entry as the protocol has it. The caller owns it. */
json_t *watch_entry(const struct db_event *event);

#endif
