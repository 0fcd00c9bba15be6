#ifndef DB_RUN_H
#define DB_RUN_H

/*
 * What was measured: commits of a job that were picked (table candidate), their builds, their boots
 * (runs) and the metric values (samples) of each. Times are Unix milliseconds; durations are
 * milliseconds. Strings are owned by their struct; sha is never NULL.
 */

#include <stdint.h>

#include "db/db.h"

enum db_role { DB_ROLE_GOOD, DB_ROLE_BAD, DB_ROLE_CANDIDATE };
enum db_build { DB_BUILD_NONE, DB_BUILD_OK, DB_BUILD_FAILED };

struct db_commit {
	int64_t id, job;
	char *sha, *label, *subject;
	enum db_role role;
	enum db_build build;
	char *build_key, *kernel, *image; /* store key, file, SHA-256 of the image; NULL before */
	char *build_error;		  /* the compiler's first error line; NULL = none */
	char *build_log;		  /* file */
	int64_t build_ms;
	char *mark; /* verdict set by hand: good, bad, skip; NULL = none */
	char *mark_by, *mark_why;
};

int db_commit_insert(
	struct db *db, const struct db_commit *commit, int64_t *ret_id, struct err *err);
/* Writes build and build_*, kernel, image, mark, mark_by, mark_why. */
int db_commit_update(struct db *db, const struct db_commit *commit, struct err *err);
/* All of a job in the order they were picked (endpoints first). Free with db_commits_free. */
int db_commit_list(
	struct db *db, int64_t job, struct db_commit **ret, size_t *ret_n, struct err *err);
void db_commits_free(struct db_commit *commits, size_t n);

struct db_run {
	int64_t id, job, commit;
	char *outcome; /* NULL while it runs; ok, panic, ... as in daemon/step.h */
	char *detail;  /* one line: the panic's first line, what was missing, ... */
	char *accel, *timing;
	char *dir; /* console.log, output.log, domain.xml, result.json */
	int64_t boot_ms, test_ms;
	int64_t started, ended;
	char *value, *metrics; /* the chosen metric's text as printed; JSON of all metrics */
	double number;	       /* value as a number; NaN when there is none */
	int retired;	       /* a person took it out: it counts for nothing */
	char *retired_by, *retired_why;
};

/* commit is one of the same job, or -EINVAL. */
int db_run_insert(struct db *db, const struct db_run *run, int64_t *ret_id, struct err *err);
/*
 * Writes everything that is known only at the end, and one row of `sample` for each metric in
 * metrics: {NAME: {value, text, all}}. Once only: -ENOENT for a run that has an outcome already, so
 * that the late result of an abandoned run changes nothing. -EBADMSG when metrics is not such JSON.
 */
int db_run_finish(struct db *db, const struct db_run *run, struct err *err);
/* Take a run out (1) or in again (0); by and why are those of the last such decision. */
int db_run_retire(
	struct db *db, int64_t id, int retired, const char *by, const char *why, struct err *err);
/* -ENOENT, with a sentence, when there is none. */
int db_run_get(struct db *db, int64_t id, struct db_run *ret, struct err *err);
void db_run_release(struct db_run *run);
static inline void cleanup_db_run_release(struct db_run *run)
{
	db_run_release(run);
}
/* Ends every run without outcome as "infra" (a restart); with job 0 those of all jobs. */
int db_run_abandon(struct db *db, int64_t job, const char *detail, int64_t now, struct err *err);
/* All of a job in order of id. */
int db_run_list(struct db *db, int64_t job, struct db_run **ret, size_t *ret_n, struct err *err);
void db_runs_free(struct db_run *runs, size_t n);

#endif
