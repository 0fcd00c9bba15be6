#ifndef DAEMON_ACTIVE_H
#define DAEMON_ACTIVE_H

/*
 * One job in its slot: plan, run the step, record, plan again. Owned by the queue. When the job
 * needs nothing more (it ended, or a person held or cancelled it) it calls `idle` and frees itself.
 */

#include "daemon/config.h"
#include "daemon/record.h"

struct event_base;
struct active;

struct active_spec {
	struct event_base *base;
	struct db *db;
	struct recorder *recorder;
	struct config *const *config;
	const char *program;
	int64_t job;
	int slot;
	void (*progress)(void *arg, int64_t job, const char *text);
	void *progress_arg;
	/* End the job inside the open transaction; takes summary over. */
	int (*end)(void *arg, int64_t job, enum db_job_state state, const char *result,
		const char *reason, json_t *summary, struct err *err);
	void (*idle)(void *arg, struct active *active);
	void *arg;
};

struct active *active_new(const struct active_spec *spec);

/* Begin, from the event loop's next turn. */
void active_go(struct active *active);

/* The job's row changed: end the running step, and then look at the row again. */
void active_stop(struct active *active);

/* The daemon ends: stop the step, record nothing more of it, then call idle. */
void active_quit(struct active *active);

/* Do not wait any longer before the next try. */
void active_wake(struct active *active);

int64_t active_job(const struct active *active);

/* What runs now, with its time; NULL when nothing does. Borrowed until the next call. */
const char *active_now(struct active *active);

/* At exit: the step is stopped, nothing more is recorded, idle is not called. */
void active_free(struct active *active);

#endif
