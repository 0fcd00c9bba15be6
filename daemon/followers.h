#ifndef DAEMON_FOLLOWERS_H
#define DAEMON_FOLLOWERS_H

/*
 * Those who follow a log: one stream each, told of every new entry of their job, of what is being
 * done right now, and of the end. Owned by the server; a stream that goes away removes itself.
 */

#include "daemon/control.h"
#include "db/event.h"
#include "db/job.h"

struct followers;

struct followers *followers_new(void);
void followers_free(struct followers *followers);

/* Answer the call with `result` (taken over) and follow the job from here on. */
void followers_add(struct followers *followers, struct call *call, json_t *result, int64_t job);

void followers_event(struct followers *followers, const struct db_event *event);
void followers_progress(struct followers *followers, int64_t job, const char *text);
/* The job ended: tell its followers and let them go. */
void followers_end(struct followers *followers, const struct db_job *job);

/* One entry as the protocol has it. The caller owns it. */
json_t *followers_entry(const struct db_event *event);

#endif
