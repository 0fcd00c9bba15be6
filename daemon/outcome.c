/* What the steps of a job found, written down: one transaction a result line. */
#include "daemon/active_priv.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "daemon/request.h"
#include "base/banned.h"

static const struct db_run *find_run(const struct view *view, int64_t id)
{
	for (size_t i = 0; i < view->n_runs; i++)
		if (view->runs[i].id == id)
			return &view->runs[i];
	return NULL;
}

static const struct view_commit *find_row(const struct view *view, int64_t id)
{
	for (size_t i = 0; i < view->n_commits; i++)
		if (view->rows[i].id == id)
			return &view->commits[i];
	return NULL;
}

/* A step that works ends the row of infrastructure failures. */
static int infra_over(struct active *a, const struct view *view, struct err *err)
{
	struct db_job job = view->job;

	if (!job.infra)
		return 0;
	job.infra = 0;
	return db_job_update(a->spec.db, &job, err);
}

/* ---- build ---- */

static int built_ok(struct active *a, const struct view_commit *commit, struct db_commit *row,
	const json_t *result, struct err *err)
{
	cleanup(free) char *took = NULL;
	json_t *data = json_object();

	row->build = DB_BUILD_OK;
	row->build_key = (char *)json_opt_str(result, "key", NULL);
	row->kernel = (char *)json_opt_str(result, "kernel", NULL);
	row->image = (char *)json_opt_str(result, "image", NULL);
	row->build_error = NULL;
	row->build_ms = (int64_t)(json_opt_real(result, "seconds", 0) * 1000);
	if (!row->build_key || !row->kernel || !row->image) {
		json_decref(data);
		return err_set(err, EBADMSG, "the build step's result lacks key, kernel or image");
	}
	took = record_duration(row->build_ms);
	json_set_str(data, "commit", row->sha);
	json_set_str(data, "image", row->image);
	json_set_str(data, "compiler", json_opt_str(result, "compiler", NULL));
	if (json_opt_bool(result, "cached", 0))
		return record_event(a->spec.recorder, a->spec.job, "build", data, err,
			"%s was built before", commit->row->label);
	return record_event(a->spec.recorder, a->spec.job, "build", data, err, "built %s in %s",
		commit->row->label, took);
}

static int built_bad(struct active *a, const struct view *view, const struct view_commit *commit,
	struct db_commit *row, const json_t *result, struct err *err)
{
	const char *error = json_opt_str(result, "error", "the build failed");
	cleanup(free) char *line = NULL;
	json_t *data = json_object();

	row->build = DB_BUILD_FAILED;
	row->build_error = (char *)error;
	row->build_ms = (int64_t)(json_opt_real(result, "seconds", 0) * 1000);
	json_set_str(data, "commit", row->sha);
	json_set_str(data, "verdict", "skip");
	json_set_str(data, "error", error);
	json_set_str(data, "log", row->build_log);
	line = record_line(clock_wall_ms(), view, commit, "build", "failed", "skip");
	return record_event(
		a->spec.recorder, a->spec.job, "run", data, err, "%s (%s)", line, error);
}

int active_built(struct active *a, const json_t *result, struct err *err)
{
	cleanup(view_release) struct view view = {0};
	cleanup(free) char *dir = path_job(*a->spec.config, a->spec.job);
	cleanup(free) char *log = NULL;
	const struct view_commit *commit;
	struct db_commit row;
	int r;

	r = view_load(a->spec.db, a->spec.job, &view, err);
	if (r < 0)
		return r;
	commit = find_row(&view, a->commit);
	if (!commit)
		return err_set(err, ENOENT, "the commit that was built is not in the record");
	log = xasprintf("%s/build-%s.log", dir, commit->row->sha);
	row = *commit->row;
	row.build_log = log;
	r = record_begin(a->spec.recorder, err);
	if (r == 0 && json_opt_bool(result, "ok", 0))
		r = built_ok(a, commit, &row, result, err);
	else if (r == 0)
		r = built_bad(a, &view, commit, &row, result, err);
	if (r == 0)
		r = db_commit_update(a->spec.db, &row, err);
	if (r == 0)
		r = infra_over(a, &view, err);
	return r < 0 ? r : record_commit(a->spec.recorder, err);
}

/* ---- measure ---- */

/* One boot's row and its part of the request. */
static int one_boot(
	struct active *a, const struct db_commit *commit, json_t *boots, struct err *err)
{
	struct db_run run = {.job = a->spec.job, .commit = commit->id, .number = NAN};
	cleanup(free) char *dir = NULL;
	json_t *boot;
	int r;

	run.started = clock_wall_ms();
	r = db_run_insert(a->spec.db, &run, &run.id, err);
	if (r < 0)
		return r;
	dir = path_run(*a->spec.config, a->spec.job, run.id);
	boot = json_object();
	json_set_int(boot, "run", run.id);
	json_set_str(boot, "kernel", commit->kernel);
	json_set_str(boot, "dir", dir);
	json_array_append_new(boots, boot);
	return 0;
}

/* The store dropped this commit's kernel: forget the build. */
static int forget_build(struct active *a, const struct db_commit *commit, struct err *err)
{
	struct db_commit row = *commit;

	row.build = DB_BUILD_NONE;
	return db_commit_update(a->spec.db, &row, err);
}

int active_boots(struct active *a, const struct view *view, const struct plan *plan, json_t *boots,
	struct err *err)
{
	int gone = 0, r;

	r = record_begin(a->spec.recorder, err);
	for (size_t i = 0; r == 0 && i < plan->n_boots; i++) {
		const struct db_commit *commit = &view->rows[plan->boots[i]];

		if (access(commit->kernel, R_OK) == 0)
			continue;
		gone = 1;
		r = forget_build(a, commit, err);
	}
	for (size_t i = 0; r == 0 && !gone && i < plan->n_boots; i++)
		r = one_boot(a, &view->rows[plan->boots[i]], boots, err);
	if (r < 0) {
		record_rollback(a->spec.recorder);
		json_array_clear(boots);
		return r;
	}
	return record_commit(a->spec.recorder, err);
}

/* Which accelerator and clock, and why: said when it differs from the job's last boot. */
static int measured_accel(struct active *a, const json_t *result, struct err *err)
{
	cleanup(view_release) struct view view = {0};
	const char *accel = json_opt_str(result, "accel", "");
	const char *timing = json_opt_str(result, "timing", "");
	const char *why = json_opt_str(result, "why", "");
	const struct db_run *last = NULL;
	int r;

	snprintf(a->accel, sizeof(a->accel), "%s", accel);
	snprintf(a->timing, sizeof(a->timing), "%s", timing);
	r = view_load(a->spec.db, a->spec.job, &view, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < view.n_runs; i++)
		if (view.runs[i].accel)
			last = &view.runs[i];
	if (last && strcmp(last->accel, accel) == 0 && strcmp(last->timing, timing) == 0)
		return 0;
	r = record_begin(a->spec.recorder, err);
	if (r == 0)
		r = record_event(a->spec.recorder, a->spec.job, "note", NULL, err,
			"accel = %s, timing = %s%s%s", accel, timing, *why ? ": " : "", why);
	return r < 0 ? r : record_commit(a->spec.recorder, err);
}

/* The chosen metric's value as text and number; *ret_text stays NULL when there is none. */
static int chosen_value(const struct view *view, const json_t *result, const char **ret_text,
	double *ret_number, struct err *err)
{
	const json_t *metrics = json_object_get(result, "metrics");
	const json_t *one = json_object_get(metrics, view->metric);

	if (!one)
		return err_set(err, EBADMSG, "the measure step's result lacks the metric %s",
			view->metric);
	*ret_text = json_opt_str(one, "text", NULL);
	*ret_number = json_opt_real(one, "value", NAN);
	if (!*ret_text || !isfinite(*ret_number))
		return err_set(err, EBADMSG, "the metric %s has no number", view->metric);
	return 0;
}

/* The log line of a boot. */
static int log_run(struct active *a, const struct view *view, const struct view_commit *commit,
	const struct db_run *run, struct err *err)
{
	int ok = strcmp(run->outcome, "ok") == 0;
	const char *failure = view->spec.failure == JOB_FAILURE_BAD ? "bad" : "skip";
	const char *verdict =
		ok ? verdict_name(view_sample_verdict(view, commit, run->number)) : failure;
	cleanup(free) char *line = record_line(run->ended, view, commit, ok ? view->metric : "boot",
		ok ? run->value : run->outcome, verdict);
	json_t *data = json_object();

	json_set_int(data, "run", run->id);
	json_set_str(data, "host", view->job.host);
	json_set_str(data, "benchmark", view->spec.benchmark);
	json_set_str(data, "commit", commit->row->sha);
	json_set_str(data, "label", commit->row->label);
	json_set_str(data, "metric", view->metric);
	json_set_str(data, "value", run->value);
	json_set_str(data, "verdict", verdict);
	json_set_str(data, "outcome", run->outcome);
	json_set_str(data, "detail", run->detail);
	json_set_str(data, "accel", run->accel);
	json_set_str(data, "timing", run->timing);
	json_set_str(data, "dir", run->dir);
	json_set_int(data, "boot_ms", run->boot_ms);
	json_set_int(data, "test_ms", run->test_ms);
	if (ok)
		return record_event(a->spec.recorder, a->spec.job, "run", data, err, "%s", line);
	return record_event(a->spec.recorder, a->spec.job, "run", data, err, "%s (%s)", line,
		run->detail && *run->detail ? run->detail : run->outcome);
}

static int finish_run(struct active *a, const struct view *view, const struct view_commit *commit,
	const struct db_run *run, struct err *err)
{
	int infra = strcmp(run->outcome, "infra") == 0, r;

	r = record_begin(a->spec.recorder, err);
	if (r == 0)
		r = db_run_finish(a->spec.db, run, err);
	if (r == 0 && !infra)
		r = log_run(a, view, commit, run, err);
	if (r == 0 && !infra)
		r = infra_over(a, view, err);
	return r < 0 ? r : record_commit(a->spec.recorder, err);
}

static int measured_boot(struct active *a, int64_t id, const json_t *result, struct err *err)
{
	cleanup(view_release) struct view view = {0};
	cleanup(free) char *metrics = NULL;
	cleanup(free) char *dir = path_run(*a->spec.config, a->spec.job, id);
	const struct view_commit *commit;
	const struct db_run *known;
	struct db_run run;
	const char *text = NULL;
	int r;

	r = view_load(a->spec.db, a->spec.job, &view, err);
	if (r < 0)
		return r;
	known = find_run(&view, id);
	commit = known ? view_commit_of_run(&view, known) : NULL;
	if (!commit || known->outcome)
		return err_set(err, EBADMSG, "the measure step told of run %lld, which is not open",
			(long long)id);
	run = *known;
	run.outcome = (char *)json_opt_str(result, "outcome", "infra");
	run.detail = (char *)json_opt_str(result, "detail", NULL);
	run.accel = a->accel;
	run.timing = a->timing;
	run.dir = dir;
	run.boot_ms = json_opt_int(result, "boot_ms", 0);
	run.test_ms = json_opt_int(result, "test_ms", 0);
	run.ended = clock_wall_ms();
	if (strcmp(run.outcome, "ok") == 0) {
		r = chosen_value(&view, result, &text, &run.number, err);
		if (r < 0)
			return r;
	}
	run.value = (char *)text;
	if (json_is_object(json_object_get(result, "metrics")))
		metrics = json_line(json_object_get(result, "metrics"));
	run.metrics = metrics;
	return finish_run(a, &view, commit, &run, err);
}

/* A commit that has its verdict by failing twice is not booted again for the rest of the batch. */
static int stop_hopeless(struct active *a, int64_t id, struct err *err)
{
	cleanup(view_release) struct view view = {0};
	const struct view_commit *commit;
	const struct db_run *run;
	int r;

	r = view_load(a->spec.db, a->spec.job, &view, err);
	if (r < 0)
		return r;
	run = find_run(&view, id);
	commit = run ? view_commit_of_run(&view, run) : NULL;
	if (commit && outcome_is_candidate(run->outcome) && commit->n == 0 && commit->failures >= 2)
		active_stop(a);
	return 0;
}

int active_measured(struct active *a, const json_t *result, struct err *err)
{
	int64_t run = json_opt_int(result, "run", 0);
	const char *outcome = json_opt_str(result, "outcome", NULL);
	int r;

	if (!run)
		return measured_accel(a, result, err);
	if (!outcome) {
		cleanup(view_release) struct view view = {0};
		const struct view_commit *commit = NULL;
		const struct db_run *known;

		r = view_load(a->spec.db, a->spec.job, &view, err);
		if (r < 0)
			return r;
		known = find_run(&view, run);
		commit = known ? view_commit_of_run(&view, known) : NULL;
		if (commit)
			active_progress(
				a, "booting %s (sample %zu)", commit->row->label, commit->n + 1);
		return 0;
	}
	r = measured_boot(a, run, result, err);
	if (r == 0)
		r = stop_hopeless(a, run, err);
	if (r == 0 && strcmp(outcome, "infra") == 0)
		return err_set(err, EIO, "%s", json_opt_str(result, "detail", "the boot failed"));
	return r;
}

/* ---- pick ---- */

/* The verdict on the commit that was measured last, once, when the search moves on from it. */
static int tell_verdict(struct active *a, const struct view *view, struct err *err)
{
	const struct view_commit *c = &view->commits[view->n_commits - 1];
	json_t *data = json_object();

	json_set_str(data, "commit", c->row->sha);
	json_set_str(data, "verdict", verdict_name(c->verdict));
	json_set_real(data, "threshold", view->threshold);
	if (view->n_commits == 2)
		return record_event(a->spec.recorder, a->spec.job, "verdict", data, err,
			"the ends differ: good %.6g, bad %.6g %s; threshold %.6g",
			view->calibration.good, view->calibration.bad, view->unit, view->threshold);
	return record_event(a->spec.recorder, a->spec.job, "verdict", data, err, "%s is %s%s%s",
		c->row->label, verdict_name(c->verdict), *c->reason ? ": " : "", c->reason);
}

static int picked_next(struct active *a, const json_t *next, const json_t *result, struct err *err)
{
	struct db_commit row = {.job = a->spec.job, .role = DB_ROLE_CANDIDATE};
	int64_t left = json_opt_int(result, "left", 0);

	a->steps_left = json_opt_int(result, "steps", -1);
	row.sha = (char *)json_opt_str(next, "id", NULL);
	row.label = (char *)json_opt_str(next, "label", row.sha);
	row.subject = (char *)json_opt_str(next, "subject", "");
	if (!row.sha)
		return err_set(err, EBADMSG, "the pick step's result lacks the commit's id");
	int r = db_commit_insert(a->spec.db, &row, &row.id, err);
	if (r < 0)
		return r;
	return record_event(a->spec.recorder, a->spec.job, "note", NULL, err,
		"%lld commits left, about %lld steps; next is %s (%s)", (long long)left,
		(long long)a->steps_left, row.label, row.subject);
}

/* The answer: one commit, or the set that skips left. */
static int picked_answer(struct active *a, const json_t *result, struct err *err)
{
	const json_t *culprit = json_object_get(result, "culprit");
	size_t n = json_array_size(json_object_get(result, "set"));
	cleanup(free) char *reason = NULL;

	if (culprit)
		reason = xasprintf("the first bad commit is %s (\"%s\")",
			json_opt_str(culprit, "label", "?"), json_opt_str(culprit, "subject", ""));
	else
		reason = xasprintf("the first bad commit is one of %zu: the others cannot be "
				   "told apart, because they could not be tested",
			n);
	return a->spec.end(a->spec.arg, a->spec.job, DB_JOB_DONE, culprit ? "culprit" : "set",
		reason, json_deep_copy(result), err);
}

int active_picked(struct active *a, const json_t *result, struct err *err)
{
	cleanup(view_release) struct view view = {0};
	const json_t *next = json_object_get(result, "next");
	int r;

	r = view_load(a->spec.db, a->spec.job, &view, err);
	if (r < 0)
		return r;
	r = record_begin(a->spec.recorder, err);
	if (r == 0)
		r = tell_verdict(a, &view, err);
	if (r == 0)
		r = next ? picked_next(a, next, result, err) : picked_answer(a, result, err);
	if (r == 0)
		r = infra_over(a, &view, err);
	return r < 0 ? r : record_commit(a->spec.recorder, err);
}
