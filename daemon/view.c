#include "daemon/view.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "bisect/stats.h"
#include "base/banned.h"

#define FAILURES_TO_SKIP 2 /* one failed boot may be chance; two are the candidate's */

const char *verdict_name(enum verdict verdict)
{
	static const char *const names[] = {"none", "good", "bad", "skip", "unsure"};

	return names[verdict];
}

int outcome_is_candidate(const char *outcome)
{
	return outcome && strcmp(outcome, "ok") != 0 && strcmp(outcome, "infra") != 0;
}

struct view_commit *view_find(const struct view *view, const char *sha)
{
	for (size_t i = 0; i < view->n_commits; i++)
		if (strcmp(view->rows[i].sha, sha) == 0)
			return &view->commits[i];
	return NULL;
}

struct view_commit *view_commit_of_run(const struct view *view, const struct db_run *run)
{
	for (size_t i = 0; i < view->n_commits; i++)
		if (view->rows[i].id == run->commit)
			return &view->commits[i];
	return NULL;
}

/* Sort the boots that count to their commits. */
static void collect_runs(struct view *view)
{
	for (size_t i = 0; i < view->n_runs; i++) {
		const struct db_run *run = &view->runs[i];
		struct view_commit *c = view_commit_of_run(view, run);

		if (!c || !run->outcome || strcmp(run->outcome, "infra") == 0)
			continue;
		view->boots++;
		if (run->retired)
			continue;
		if (outcome_is_candidate(run->outcome)) {
			c->failures++;
			c->failed = run;
			continue;
		}
		c->values = xreallocarray(c->values, c->n + 1, sizeof(*c->values));
		c->values[c->n++] = run->number;
	}
}

/* The levels of the endpoints and the boundary between them, once both have samples enough. */
static void calibrate(struct view *view)
{
	const struct view_commit *good = &view->commits[0], *bad = &view->commits[1];
	size_t wanted = (size_t)view->spec.samples;
	struct threshold t;

	view->threshold = NAN;
	view->calibration.state = CALIBRATION_MORE;
	if (good->n < wanted || bad->n < wanted)
		return;
	calibration_judge(good->values, good->n, bad->values, bad->n,
		view->higher_better ? BETTER_HIGHER : BETTER_LOWER, calibration_max(wanted),
		&view->calibration);
	if (threshold_parse(view->spec.threshold, &t, NULL) < 0)
		return;
	switch (t.kind) {
	case THRESHOLD_AUTO:
		view->threshold = threshold_midway(view->calibration.good, view->calibration.bad);
		break;
	case THRESHOLD_ABSOLUTE:
		view->threshold = t.value;
		break;
	case THRESHOLD_PERCENT:
		view->threshold = threshold_percent(view->calibration.good, t.value);
		break;
	}
}

static enum verdict mark_verdict(const char *mark)
{
	for (int v = VERDICT_GOOD; v <= VERDICT_SKIP; v++)
		if (strcmp(mark, verdict_name(v)) == 0)
			return v;
	return VERDICT_NONE;
}

/* A commit whose boots failed too often to be measured. */
static int cannot_run(const struct view *view, const struct view_commit *c)
{
	size_t wanted = (size_t)view->spec.samples;

	if (c->n == 0)
		return c->failures >= FAILURES_TO_SKIP;
	return c->n < wanted && c->failures >= wanted + FAILURES_TO_SKIP;
}

static void judge(const struct view *view, struct view_commit *c)
{
	static const enum verdict verdicts[] = {
		[JUDGED_GOOD] = VERDICT_GOOD,
		[JUDGED_BAD] = VERDICT_BAD,
		[JUDGED_MORE] = VERDICT_NONE,
		[JUDGED_UNSURE] = VERDICT_UNSURE,
	};

	c->reason = "";
	c->verdict = VERDICT_NONE;
	if (c->row->role != DB_ROLE_CANDIDATE) {
		c->verdict = c->row->role == DB_ROLE_GOOD ? VERDICT_GOOD : VERDICT_BAD;
	} else if (c->row->mark) {
		c->verdict = mark_verdict(c->row->mark);
		c->reason =
			c->row->mark_why && *c->row->mark_why ? c->row->mark_why : "set by hand";
	} else if (c->row->build == DB_BUILD_FAILED) {
		c->verdict = VERDICT_SKIP;
		c->reason = c->row->build_error ? c->row->build_error : "does not build";
	} else if (cannot_run(view, c)) {
		c->verdict = view->spec.failure == JOB_FAILURE_BAD ? VERDICT_BAD : VERDICT_SKIP;
		c->reason = c->failed->detail ? c->failed->detail : c->failed->outcome;
	} else if (c->n >= (size_t)view->spec.samples && isfinite(view->threshold)) {
		c->verdict = verdicts[commit_judge(c->values, c->n, (size_t)view->spec.samples,
			view->threshold, view->higher_better ? BETTER_HIGHER : BETTER_LOWER)];
		if (c->verdict == VERDICT_UNSURE)
			c->reason = "its samples lie on both sides of the threshold";
	}
}

enum verdict view_sample_verdict(const struct view *view, const struct view_commit *c, double value)
{
	if (c->row->role == DB_ROLE_GOOD)
		return VERDICT_GOOD;
	if (c->row->role == DB_ROLE_BAD)
		return VERDICT_BAD;
	if (!isfinite(view->threshold))
		return VERDICT_UNSURE;
	if (view->higher_better)
		return value >= view->threshold ? VERDICT_GOOD : VERDICT_BAD;
	return value <= view->threshold ? VERDICT_GOOD : VERDICT_BAD;
}

/* Everything that follows from the rows. */
static void derive(struct view *view)
{
	const char *better = json_opt_str(view->facts, "better", "lower");

	view->metric = json_opt_str(view->facts, "metric", "");
	view->unit = json_opt_str(view->facts, "unit", "");
	view->higher_better = strcmp(better, "higher") == 0;
	view->commits = xcalloc(view->n_commits, sizeof(*view->commits));
	view->threshold = NAN;
	for (size_t i = 0; i < view->n_commits; i++)
		view->commits[i].row = &view->rows[i];
	collect_runs(view);
	if (view->n_commits >= 2)
		calibrate(view);
	for (size_t i = 0; i < view->n_commits; i++)
		judge(view, &view->commits[i]);
}

int view_load(struct db *db, int64_t job, struct view *ret, struct err *err)
{
	struct view view = {0};
	int r;

	r = db_job_get(db, job, &view.job, err);
	if (r == 0)
		r = job_parse(view.job.text, view.job.where, view.job.dir, &view.spec, err);
	if (r == 0)
		r = json_parse(view.job.facts, strlen(view.job.facts), &view.facts, err);
	if (r == 0)
		r = db_commit_list(db, job, &view.rows, &view.n_commits, err);
	if (r == 0)
		r = db_run_list(db, job, &view.runs, &view.n_runs, err);
	if (r < 0) {
		view_release(&view);
		return err_wrap(err, "job %lld", (long long)job);
	}
	derive(&view);
	*ret = view;
	return 0;
}

void view_release(struct view *view)
{
	for (size_t i = 0; view->commits && i < view->n_commits; i++)
		free(view->commits[i].values);
	free(view->commits);
	db_commits_free(view->rows, view->n_commits);
	db_runs_free(view->runs, view->n_runs);
	json_decref(view->facts);
	job_release(&view->spec);
	db_job_release(&view->job);
	*view = (struct view){0};
}
