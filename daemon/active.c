#include "daemon/active.h"

#include <errno.h>
#include <event2/event.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "daemon/active_priv.h"
#include "daemon/log.h"
#include "daemon/planner.h"
#include "daemon/request.h"
#include "daemon/runner.h"
#include "base/banned.h"

#define PICK_DEADLINE_MS (60 * 60000)
#define RETRY_DELAY_MAX (10 * 60000)
#define DB_RETRY_MS 5000

static void active_plan(struct active *a);

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	active_plan(arg);
}

struct active *active_new(const struct active_spec *spec)
{
	struct active *a = xcalloc(1, sizeof(*a));

	a->spec = *spec;
	a->steps_left = -1;
	a->timer = evtimer_new(spec->base, on_timer, a);
	return a;
}

static void wait_ms(struct active *a, int64_t ms)
{
	struct timeval tv = {ms / 1000, (ms % 1000) * 1000};

	event_add(a->timer, &tv);
}

void active_go(struct active *a)
{
	wait_ms(a, 0);
}

void active_wake(struct active *a)
{
	if (!a->runner)
		wait_ms(a, 0);
}

int64_t active_job(const struct active *a)
{
	return a->spec.job;
}

/* The slot is free again. */
static void finish(struct active *a)
{
	void (*idle)(void *, struct active *) = a->spec.idle;
	void *arg = a->spec.arg;

	event_free(a->timer);
	idle(arg, a);
	free(a->now);
	free(a->infra);
	free(a->refused);
	free(a);
}

void active_free(struct active *a)
{
	if (!a)
		return;
	if (a->runner) {
		runner_orphan(a->runner);
		runner_stop(a->runner);
	}
	event_free(a->timer);
	free(a->now);
	free(a->infra);
	free(a->refused);
	free(a);
}

void active_stop(struct active *a)
{
	a->stopping = 1;
	if (a->runner)
		runner_stop(a->runner);
	else
		wait_ms(a, 0);
}

void active_quit(struct active *a)
{
	a->quitting = 1;
	active_stop(a);
}

const char *active_now(struct active *a)
{
	return a->now;
}

void active_progress(struct active *a, const char *fmt, ...)
{
	va_list ap;

	free(a->now);
	va_start(ap, fmt);
	if (vasprintf(&a->now, fmt, ap) < 0)
		abort();
	va_end(ap);
	a->spec.progress(a->spec.progress_arg, a->spec.job, a->now);
}

/* The database could not take it: say so, and look at the job again in a while. */
static void db_trouble(struct active *a, struct err *err)
{
	record_rollback(a->spec.recorder);
	log_line(LOG_ERR, "job=%lld cannot record: %s", (long long)a->spec.job, err->msg);
	wait_ms(a, DB_RETRY_MS);
}

static int end_job(struct active *a, enum db_job_state state, const char *result,
	const char *reason, json_t *summary, struct err *err)
{
	log_line(LOG_NOTICE, "job=%lld %s: %s", (long long)a->spec.job,
		result ? result : db_job_state_name(state), reason);
	return a->spec.end(a->spec.arg, a->spec.job, state, result, reason, summary, err);
}

/* Something that is not the candidate's doing went wrong: wait, then plan again; or give up. */
static int count_infra(struct active *a, const char *what, int64_t *ret_wait, struct err *err)
{
	const struct config *config = *a->spec.config;
	cleanup(db_job_release) struct db_job job = {0};
	cleanup(free) char *reason = NULL;
	int r;

	r = db_job_get(a->spec.db, a->spec.job, &job, err);
	if (r < 0)
		return r;
	job.infra++;
	r = db_job_update(a->spec.db, &job, err);
	if (r < 0)
		return r;
	if (job.infra < config->infra_tries) {
		*ret_wait = config->retry_delay << (job.infra < 16 ? job.infra - 1 : 15);
		if (*ret_wait > RETRY_DELAY_MAX)
			*ret_wait = RETRY_DELAY_MAX;
		return record_event(a->spec.recorder, a->spec.job, "note", NULL, err,
			"infrastructure failure %lld of %lld, tried again: %s",
			(long long)job.infra, (long long)config->infra_tries, what);
	}
	reason = xasprintf("%lld infrastructure failures in a row, the last one: %s "
			   "(kbctl retry goes on where it was)",
		(long long)job.infra, what);
	*ret_wait = 0;
	return end_job(a, DB_JOB_FAILED, NULL, reason, NULL, err);
}

static void infra(struct active *a, const char *what)
{
	struct err err = {0};
	int64_t wait = 0;
	int r;

	log_line(LOG_WARNING, "job=%lld step=%s infrastructure: %s", (long long)a->spec.job,
		a->step ? a->step : "-", what);
	r = record_begin(a->spec.recorder, &err);
	if (r == 0)
		r = db_run_abandon(a->spec.db, a->spec.job, what, clock_wall_ms(), &err);
	if (r == 0)
		r = count_infra(a, what, &wait, &err);
	if (r == 0)
		r = record_commit(a->spec.recorder, &err);
	if (r < 0) {
		db_trouble(a, &err);
		return;
	}
	wait_ms(a, wait);
}

/* End the job, in a transaction of its own, and then find out that it has ended. */
static void conclude(struct active *a, enum db_job_state state, const char *result,
	const char *reason, json_t *summary)
{
	struct err err = {0};
	int r;

	r = record_begin(a->spec.recorder, &err);
	if (r == 0)
		r = end_job(a, state, result, reason, summary, &err);
	else
		json_decref(summary);
	if (r == 0)
		r = record_commit(a->spec.recorder, &err);
	if (r < 0)
		db_trouble(a, &err);
	else
		wait_ms(a, 0);
}

/* A person wanted the step ended: its boots count for nothing, and nobody is to blame. */
static void stopped(struct active *a)
{
	struct err err = {0};
	int r;

	a->stopping = 0;
	/* What the step said when it was told to stop is nobody's failure. */
	free(steal(&a->infra));
	free(steal(&a->refused));
	r = record_begin(a->spec.recorder, &err);
	if (r == 0)
		r = db_run_abandon(a->spec.db, a->spec.job, "stopped", clock_wall_ms(), &err);
	if (r == 0)
		r = record_commit(a->spec.recorder, &err);
	if (r < 0)
		db_trouble(a, &err);
	else
		active_plan(a);
}

static void on_done(void *arg, const struct err *step_err)
{
	struct active *a = arg;
	cleanup(free) char *text = NULL;

	a->runner = NULL;
	free(steal(&a->now));
	if (a->stopping) {
		stopped(a);
	} else if (a->refused) {
		text = steal(&a->refused);
		conclude(a, DB_JOB_FAILED, NULL, text, NULL);
	} else if (a->infra) {
		text = steal(&a->infra);
		infra(a, text);
	} else if (step_err->code) {
		infra(a, step_err->msg);
	} else if (!a->results) {
		text = xasprintf("the %s step ended without a result", a->step);
		infra(a, text);
	} else {
		active_plan(a);
	}
}

static void on_line(void *arg, const json_t *result)
{
	struct active *a = arg;
	const char *text;
	struct err err = {0};
	int r;

	a->results++;
	if ((text = json_opt_str(result, "infra", NULL))) {
		free(a->infra);
		a->infra = xstrdup(text);
		return;
	}
	if ((text = json_opt_str(result, "refused", NULL))) {
		free(a->refused);
		a->refused = xstrdup(text);
		return;
	}
	r = a->handle(a, result, &err);
	if (r < 0) {
		record_rollback(a->spec.recorder);
		free(a->infra);
		a->infra = xstrdup(err.msg);
	}
}

/* Start the step; takes the request over. */
static int start(struct active *a, const char *name, json_t *request, int64_t deadline_ms,
	active_handler handle, struct err *err)
{
	cleanup(json_decref) json_t *held = request;
	cleanup(free) char *dir = path_job(*a->spec.config, a->spec.job);
	struct runner_spec spec = {
		.base = a->spec.base,
		.program = a->spec.program,
		.name = name,
		.dir = dir,
		.request = held,
		.deadline_ms = deadline_ms,
		.line = on_line,
		.done = on_done,
		.arg = a,
	};
	int r;

	a->step = name;
	a->handle = handle;
	a->results = 0;
	r = file_mkdir(dir, 0750, err);
	if (r == 0)
		r = runner_start(&spec, &a->runner, err);
	return r;
}

static int do_build(
	struct active *a, const struct view *view, const struct plan *plan, struct err *err)
{
	const struct view_commit *commit = &view->commits[plan->commit];
	cleanup(free) char *dir = path_job(*a->spec.config, a->spec.job);
	cleanup(free) char *log = xasprintf("%s/build-%s.log", dir, commit->row->sha);

	a->commit = commit->row->id;
	active_progress(a, "building %s", commit->row->label);
	return start(a, "build", request_build(*a->spec.config, view, commit, a->spec.slot, log),
		request_build_deadline(view), active_built, err);
}

static int do_pick(struct active *a, const struct view *view, struct err *err)
{
	active_progress(a, "looking for the next commit");
	return start(a, "pick", request_pick(view), PICK_DEADLINE_MS, active_picked, err);
}

static int do_measure(
	struct active *a, const struct view *view, const struct plan *plan, struct err *err)
{
	json_t *boots = json_array();
	int r;

	r = active_boots(a, view, plan, boots, err);
	if (r < 0) {
		json_decref(boots);
		return r;
	}
	if (json_array_size(boots) == 0) { /* a kernel left the store: build it again */
		json_decref(boots);
		wait_ms(a, 0);
		return 0;
	}
	active_progress(a, "booting %s", view->rows[plan->boots[0]].label);
	return start(a, "measure", request_measure(*a->spec.config, view, boots, a->spec.slot),
		request_measure_deadline(view, plan->n_boots), active_measured, err);
}

static int act(struct active *a, const struct view *view, const struct plan *plan, struct err *err)
{
	switch (plan->action) {
	case PLAN_BUILD:
		return do_build(a, view, plan, err);
	case PLAN_MEASURE:
		return do_measure(a, view, plan, err);
	case PLAN_PICK:
		return do_pick(a, view, err);
	case PLAN_END:
		conclude(a, plan->failed ? DB_JOB_FAILED : DB_JOB_DONE, plan->result, plan->reason,
			NULL);
		return 0;
	}
	return 0;
}

/* Look at what is recorded and do the next thing. */
static void active_plan(struct active *a)
{
	cleanup(view_release) struct view view = {0};
	struct err err = {0};
	struct plan plan;
	int r;

	if (a->runner)
		return;
	a->stopping = 0;
	r = view_load(a->spec.db, a->spec.job, &view, &err);
	if (r < 0) {
		db_trouble(a, &err);
		return;
	}
	if (view.job.state != DB_JOB_RUNNING || a->quitting) {
		finish(a);
		return;
	}
	if (view.n_commits < 2) {
		conclude(a, DB_JOB_FAILED, NULL, "the job's record lacks its endpoints", NULL);
		return;
	}
	plan_next(&view, clock_wall_ms(), &plan);
	r = act(a, &view, &plan, &err);
	if (r < 0)
		infra(a, err.msg);
}
