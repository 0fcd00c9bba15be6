#include "daemon/planner.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/record.h"
#include "base/banned.h"

#define EXTRA_BOOTS 2 /* so many more of each when the first samples do not tell */

static void end(struct plan *plan, int failed, const char *result, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static void end(struct plan *plan, int failed, const char *result, const char *fmt, ...)
{
	va_list ap;

	plan->action = PLAN_END;
	plan->failed = failed;
	plan->result = result;
	va_start(ap, fmt);
	vsnprintf(plan->reason, sizeof(plan->reason), fmt, ap);
	va_end(ap);
}

static void build(struct plan *plan, size_t commit)
{
	plan->action = PLAN_BUILD;
	plan->commit = commit;
}

static void add_boot(struct plan *plan, size_t commit)
{
	plan->action = PLAN_MEASURE;
	if (plan->n_boots < PLAN_BOOTS_MAX)
		plan->boots[plan->n_boots++] = commit;
}

/* An endpoint that does not build or run ends the job: there is nothing to compare with. */
static int endpoint_failed(const struct view *view, size_t i, struct plan *plan)
{
	const struct view_commit *c = &view->commits[i];
	const char *end_name = i == 0 ? "good" : "bad";
	size_t wanted = (size_t)view->spec.samples;

	if (c->row->build == DB_BUILD_FAILED) {
		end(plan, 1, NULL, "the %s end %s does not build: %s", end_name, c->row->label,
			c->row->build_error ? c->row->build_error : "see its build log");
		return 1;
	}
	if ((c->n == 0 && c->failures >= 2) || c->failures >= wanted + 2) {
		end(plan, 1, NULL, "the %s end %s cannot be measured (%s): %s", end_name,
			c->row->label, c->failed->outcome,
			c->failed->detail ? c->failed->detail : "see its console");
		return 1;
	}
	return 0;
}

/* Both endpoints alternately, until each has `target` samples. */
static void measure_endpoints(const struct view *view, size_t target, struct plan *plan)
{
	size_t n[2] = {view->commits[0].n, view->commits[1].n};

	while ((n[0] < target || n[1] < target) && plan->n_boots < PLAN_BOOTS_MAX) {
		size_t i = n[0] <= n[1] ? 0 : 1;

		add_boot(plan, i);
		n[i]++;
	}
}

static void not_reproducible(const struct view *view, struct plan *plan)
{
	const struct calibration *c = &view->calibration;

	end(plan, 0, "not-reproducible",
		"the ends do not differ in the stated direction by more than the noise: good %.6g "
		"(%zu boots), bad %.6g (%zu boots) %s, difference %+.4g with a 95%% interval of "
		"%+.4g to %+.4g%s",
		c->good, view->commits[0].n, c->bad, view->commits[1].n, view->unit, c->effect,
		c->low, c->high,
		c->reversed ? "; the bad end is better: is the direction right?" : "");
}

/* The endpoints: built, measured, and found to differ? Returns 1 when the search can begin. */
static int endpoints_ready(const struct view *view, struct plan *plan)
{
	size_t wanted = (size_t)view->spec.samples;
	size_t have =
		view->commits[0].n < view->commits[1].n ? view->commits[0].n : view->commits[1].n;
	struct err err;

	for (size_t i = 0; i < 2; i++)
		if (endpoint_failed(view, i, plan))
			return 0;
	for (size_t i = 0; i < 2; i++) {
		if (view->rows[i].build != DB_BUILD_OK) {
			build(plan, i);
			return 0;
		}
	}
	switch (view->calibration.state) {
	case CALIBRATION_MORE:
		measure_endpoints(view, have < wanted ? wanted : have + EXTRA_BOOTS, plan);
		return 0;
	case CALIBRATION_SAME:
		not_reproducible(view, plan);
		return 0;
	case CALIBRATION_DIFFERENT:
		break;
	}
	if (threshold_check(view->threshold, view->calibration.good, view->calibration.bad,
		    view->higher_better ? BETTER_HIGHER : BETTER_LOWER, &err) < 0) {
		end(plan, 0, "not-reproducible", "%s", err.msg);
		return 0;
	}
	return 1;
}

/* The narrowest bounds so far: each pick lies between those before it. */
static void inconclusive(const struct view *view, const char *budget, struct plan *plan)
{
	const char *bound[2] = {view->rows[0].label, view->rows[1].label};

	for (size_t i = 2; i < view->n_commits; i++) {
		if (view->commits[i].verdict == VERDICT_GOOD)
			bound[0] = view->rows[i].label;
		if (view->commits[i].verdict == VERDICT_BAD)
			bound[1] = view->rows[i].label;
	}
	end(plan, 0, "inconclusive",
		"%s used up after %lld boots; the first bad commit lies after %s and not after %s",
		budget, (long long)view->boots, bound[0], bound[1]);
}

static int budget_used_up(const struct view *view, int64_t now, struct plan *plan)
{
	if (view->spec.max_runs && view->boots >= view->spec.max_runs)
		inconclusive(view, "max-runs is", plan);
	else if (view->spec.max_hours && now - view->job.started >= view->spec.max_hours)
		inconclusive(view, "max-hours is", plan);
	else
		return 0;
	return 1;
}

/* A candidate without a verdict: build it, or boot it as often as is still needed. */
static void work_on(const struct view *view, size_t i, struct plan *plan)
{
	const struct view_commit *c = &view->commits[i];
	size_t wanted = (size_t)view->spec.samples;
	size_t boots = c->n < wanted ? wanted - c->n : EXTRA_BOOTS;

	if (c->row->build != DB_BUILD_OK) {
		build(plan, i);
		return;
	}
	while (boots--)
		add_boot(plan, i);
}

/* Never more boots than the budget has left. */
static void trim_to_budget(const struct view *view, struct plan *plan)
{
	int64_t left = view->spec.max_runs - view->boots;

	if (plan->action == PLAN_MEASURE && view->spec.max_runs && (int64_t)plan->n_boots > left)
		plan->n_boots = (size_t)left;
}

void plan_next(const struct view *view, int64_t now, struct plan *ret)
{
	*ret = (struct plan){.action = PLAN_PICK};
	if (endpoints_ready(view, ret)) {
		for (size_t i = 2; i < view->n_commits; i++) {
			if (view->commits[i].verdict != VERDICT_NONE)
				continue;
			work_on(view, i, ret);
			break;
		}
	}
	/* A pick may hold the answer and costs no boot, so only work is bounded. */
	if ((ret->action == PLAN_MEASURE || ret->action == PLAN_BUILD) &&
		budget_used_up(view, now, ret))
		return;
	trim_to_budget(view, ret);
}
