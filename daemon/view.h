#ifndef DAEMON_VIEW_H
#define DAEMON_VIEW_H

/*
 * A job as recorded: its row, job file, commits, boots, and what follows from them (levels,
 * threshold, verdicts). The planner, `show`, the log and the report all look at this one value.
 * view_load reads it from the database; the judging is pure, and everything is owned by the view.
 */

#include "base/json.h"
#include "bisect/verdict.h"
#include "daemon/job.h"
#include "db/job.h"
#include "db/run.h"

enum verdict {
	VERDICT_NONE, /* not measured enough yet */
	VERDICT_GOOD,
	VERDICT_BAD,
	VERDICT_SKIP,	/* cannot be tested: does not build, boot or run the test */
	VERDICT_UNSURE, /* tested, but the samples do not agree */
};

struct view_commit {
	const struct db_commit *row;
	double *values; /* samples that count, in order */
	size_t n;
	size_t failures;	     /* boots that failed by the candidate's doing */
	const struct db_run *failed; /* the newest of those */
	enum verdict verdict;
	const char *reason; /* one line: why skip, why unsure; "" otherwise */
};

struct view {
	struct db_job job;
	struct job_spec spec;
	json_t *facts;
	struct db_commit *rows;
	struct db_run *runs;
	size_t n_commits, n_runs;
	struct view_commit *commits; /* parallel to rows; 0 = good end, 1 = bad end */
	const char *metric, *unit;
	int higher_better;
	double threshold; /* NaN until the endpoints are measured */
	struct calibration calibration;
	int64_t boots; /* that ran to an end, infrastructure failures not counted */
};

int view_load(struct db *db, int64_t job, struct view *ret, struct err *err);
void view_release(struct view *view);
static inline void cleanup_view_release(struct view *view)
{
	view_release(view);
}

const char *verdict_name(enum verdict verdict);

/* The commit with this id, or NULL. */
struct view_commit *view_find(const struct view *view, const char *sha);
struct view_commit *view_commit_of_run(const struct view *view, const struct db_run *run);

/* What one sample says by itself: good or bad against the threshold; an endpoint's own role. */
enum verdict view_sample_verdict(
	const struct view *view, const struct view_commit *commit, double value);

/* Does this outcome of a boot say something about the candidate (and not about the machine)? */
int outcome_is_candidate(const char *outcome);

#endif
