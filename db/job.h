#ifndef DB_JOB_H
#define DB_JOB_H

/*
 * Jobs: what was asked, by whom, and how it ended. Times are Unix milliseconds, 0 = not yet. The
 * strings of a job are owned by it; owner_name, name and text are never NULL.
 */

#include <stdint.h>

#include "db/db.h"

enum db_job_state {
	DB_JOB_QUEUED,	  /* waits for its turn; nothing runs for it */
	DB_JOB_RUNNING,	  /* the planner drives it */
	DB_JOB_HELD,	  /* a person stopped it for now */
	DB_JOB_DONE,	  /* ended with an answer: see result */
	DB_JOB_FAILED,	  /* ended without one: see reason; retry goes on where it was */
	DB_JOB_CANCELLED, /* a person ended it */
};

struct db_job {
	int64_t id;
	int64_t owner; /* uid */
	char *owner_name, *name, *host;
	enum db_job_state state;
	char *result;  /* culprit, set, not-reproducible, inconclusive; NULL before the end */
	char *reason;  /* one sentence: why held, failed, or what was found */
	char *summary; /* JSON of the end result, or NULL */
	char *text;    /* the job file as submitted */
	char *where;   /* its name, for error texts */
	char *dir;     /* what its relative paths are taken from */
	char *facts;   /* JSON: the accept step's result */
	int64_t submitted, started, ended;
	int64_t infra; /* infrastructure failures in a row */
};

/* As in the database and the protocol: "queued", ... */
const char *db_job_state_name(enum db_job_state state);

int db_job_insert(struct db *db, const struct db_job *job, int64_t *ret_id, struct err *err);
/* -ENOENT, with a sentence, when there is none. */
int db_job_get(struct db *db, int64_t id, struct db_job *ret, struct err *err);
/* Writes state, result, reason, summary, started, ended, infra. */
int db_job_update(struct db *db, const struct db_job *job, struct err *err);
/*
 * The row without text, facts and summary, for lists. Borrowed: job is released after the call.
 * fn's negative return stops and is returned.
 */
typedef int (*db_job_fn)(void *arg, const struct db_job *job);
/* Newest first; states is a bit mask of 1 << enum db_job_state; limit 0 = all. */
int db_job_list(
	struct db *db, unsigned states, int64_t limit, db_job_fn fn, void *arg, struct err *err);
/* How many jobs there are in each state. */
#define DB_JOB_STATES (DB_JOB_CANCELLED + 1)
int db_job_counts(struct db *db, int64_t ret[DB_JOB_STATES], struct err *err);

void db_job_release(struct db_job *job);
static inline void cleanup_db_job_release(struct db_job *job)
{
	db_job_release(job);
}

#endif
