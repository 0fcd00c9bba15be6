#ifndef DAEMON_QUEUE_H
#define DAEMON_QUEUE_H

/*
 * The queue: drives unfinished jobs, oldest first, as many at once as there are slots. For each it
 * asks the planner, starts the step, records what comes of it in one transaction, and asks again.
 * Never blocks but on the database. Infrastructure failures wait and are retried; only so many in a
 * row fail the job.
 *
 * Life cycle: queue_new, queue_start (sweeps what a killed daemon left, then runs), queue_kick
 * after every change from outside, queue_free (stops the steps; the jobs stay unfinished).
 */

#include <event2/event.h>

#include "daemon/config.h"
#include "daemon/record.h"

struct queue;

struct queue_spec {
	struct event_base *base;
	struct db *db;
	struct recorder *recorder;
	struct config *const *config; /* the daemon's current one; may be swapped by a reload */
	const char *program;	      /* what is run for a step */
	int slots;
	/* What is being done right now for a job, for those who watch; nothing is recorded. */
	void (*progress)(void *arg, int64_t job, const char *text);
	void *arg;
};

struct queue *queue_new(const struct queue_spec *spec);
int queue_start(struct queue *queue, struct err *err);
void queue_kick(struct queue *queue);
void queue_free(struct queue *queue);

/* Start nothing more, end what runs, and call fn when it is over (the end of the daemon). */
void queue_drain(struct queue *queue, void (*fn)(void *arg), void *arg);

/* Stop what runs for this job, because its row has just been changed (cancel, hold). */
void queue_stop_job(struct queue *queue, int64_t job);

/* Forget any waiting before the next try of this job (resume, retry). */
void queue_wake_job(struct queue *queue, int64_t job);

/* "building v6.1 (12 s)", or NULL when nothing runs for it. Borrowed until the next event. */
const char *queue_now(const struct queue *queue, int64_t job);

/*
 * End a job: its row, the diary's entry and the mail in the caller's transaction (record_begin).
 * summary may be NULL; taken over.
 */
int queue_end_job(struct queue *queue, int64_t job, enum db_job_state state, const char *result,
	const char *reason, json_t *summary, struct err *err);

#endif
