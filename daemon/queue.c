#include "daemon/queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "daemon/active.h"
#include "daemon/log.h"
#include "daemon/report.h"
#include "daemon/request.h"
#include "daemon/runner.h"
#include "base/banned.h"

#define SWEEP_DEADLINE_MS 300000

struct queue {
	struct queue_spec spec;
	struct active **slots; /* one each, NULL = free */
	struct runner *sweep;  /* while leftovers are removed nothing else starts */
	int started;
	void (*drained)(void *arg); /* set while the daemon ends */
	void *drained_arg;
};

struct queue *queue_new(const struct queue_spec *spec)
{
	struct queue *queue = xcalloc(1, sizeof(*queue));

	queue->spec = *spec;
	queue->slots = xcalloc((size_t)spec->slots, sizeof(struct active *));
	return queue;
}

static struct active *find(const struct queue *queue, int64_t job)
{
	for (int i = 0; i < queue->spec.slots; i++)
		if (queue->slots[i] && active_job(queue->slots[i]) == job)
			return queue->slots[i];
	return NULL;
}

/* The end of the daemon waits for the last step. */
static void check_drained(struct queue *queue)
{
	if (!queue->drained || queue->sweep)
		return;
	for (int i = 0; i < queue->spec.slots; i++)
		if (queue->slots[i])
			return;
	queue->drained(queue->drained_arg);
}

void queue_drain(struct queue *queue, void (*fn)(void *arg), void *arg)
{
	queue->started = 0;
	queue->drained = fn;
	queue->drained_arg = arg;
	for (int i = 0; i < queue->spec.slots; i++)
		if (queue->slots[i])
			active_quit(queue->slots[i]);
	if (queue->sweep)
		runner_stop(queue->sweep);
	check_drained(queue);
}

/* A slot's job needs nothing more for now: ended, held, cancelled. */
static void on_slot_free(void *arg, struct active *active)
{
	struct queue *queue = arg;

	for (int i = 0; i < queue->spec.slots; i++)
		if (queue->slots[i] == active)
			queue->slots[i] = NULL;
	queue_kick(queue);
	check_drained(queue);
}

static int end_from_slot(void *arg, int64_t job, enum db_job_state state, const char *result,
	const char *reason, json_t *summary, struct err *err)
{
	return queue_end_job(arg, job, state, result, reason, summary, err);
}

struct next {
	const struct queue *queue;
	int64_t job;
};

/* Remember the oldest unfinished job that has no slot (the list comes newest first). */
static int consider(void *arg, const struct db_job *job)
{
	struct next *next = arg;

	if (!find(next->queue, job->id))
		next->job = job->id;
	return 0;
}

static int mark_running(struct queue *queue, int64_t id, struct err *err)
{
	cleanup(db_job_release) struct db_job job = {0};
	int r;

	r = db_job_get(queue->spec.db, id, &job, err);
	if (r < 0 || job.state == DB_JOB_RUNNING)
		return r;
	r = record_begin(queue->spec.recorder, err);
	if (r < 0)
		return r;
	job.state = DB_JOB_RUNNING;
	if (!job.started)
		job.started = clock_wall_ms();
	r = db_job_update(queue->spec.db, &job, err);
	if (r == 0)
		r = record_event(queue->spec.recorder, id, "state", NULL, err, "running");
	if (r < 0) {
		record_rollback(queue->spec.recorder);
		return r;
	}
	return record_commit(queue->spec.recorder, err);
}

static int start_slot(struct queue *queue, int slot, int64_t job, struct err *err)
{
	struct active_spec spec = {
		.base = queue->spec.base,
		.db = queue->spec.db,
		.recorder = queue->spec.recorder,
		.config = queue->spec.config,
		.program = queue->spec.program,
		.job = job,
		.slot = slot,
		.progress = queue->spec.progress,
		.progress_arg = queue->spec.arg,
		.end = end_from_slot,
		.idle = on_slot_free,
		.arg = queue,
	};
	int r;

	r = mark_running(queue, job, err);
	if (r < 0)
		return r;
	queue->slots[slot] = active_new(&spec);
	active_go(queue->slots[slot]);
	return 0;
}

void queue_kick(struct queue *queue)
{
	unsigned states = 1U << DB_JOB_QUEUED | 1U << DB_JOB_RUNNING;

	for (int i = 0; queue->started && !queue->sweep && i < queue->spec.slots; i++) {
		struct next next = {queue, 0};
		struct err err = {0};
		int r;

		if (queue->slots[i])
			continue;
		r = db_job_list(queue->spec.db, states, 0, consider, &next, &err);
		if (r == 0 && next.job)
			r = start_slot(queue, i, next.job, &err);
		if (r < 0)
			log_line(
				LOG_ERR, "job=%lld cannot start: %s", (long long)next.job, err.msg);
	}
}

static void on_sweep_line(void *arg, const json_t *result)
{
	const char *infra = json_opt_str(result, "infra", NULL);
	int64_t n = json_opt_int(result, "swept", 0);

	(void)arg;
	if (infra)
		log_line(LOG_WARNING, "step=sweep %s", infra);
	if (n)
		log_line(LOG_NOTICE, "step=sweep removed %lld leftovers of an earlier run",
			(long long)n);
}

static void on_sweep_done(void *arg, const struct err *err)
{
	struct queue *queue = arg;

	queue->sweep = NULL;
	if (err->code)
		log_line(LOG_WARNING, "step=sweep %s", err->msg);
	queue_kick(queue);
	check_drained(queue);
}

int queue_start(struct queue *queue, struct err *err)
{
	const struct config *config = *queue->spec.config;
	cleanup(json_decref) json_t *request = request_sweep(config, queue->spec.slots);
	struct runner_spec spec = {
		.base = queue->spec.base,
		.program = queue->spec.program,
		.name = "sweep",
		.dir = config->state_dir,
		.request = request,
		.deadline_ms = SWEEP_DEADLINE_MS,
		.line = on_sweep_line,
		.done = on_sweep_done,
		.arg = queue,
	};
	int r;

	r = record_begin(queue->spec.recorder, err);
	if (r < 0)
		return r;
	r = db_run_abandon(
		queue->spec.db, 0, "the daemon was stopped during this boot", clock_wall_ms(), err);
	if (r < 0) {
		record_rollback(queue->spec.recorder);
		return r;
	}
	r = record_commit(queue->spec.recorder, err);
	if (r < 0)
		return r;
	queue->started = 1;
	return runner_start(&spec, &queue->sweep, err);
}

void queue_stop_job(struct queue *queue, int64_t job)
{
	struct active *active = find(queue, job);

	if (active)
		active_stop(active);
}

void queue_wake_job(struct queue *queue, int64_t job)
{
	struct active *active = find(queue, job);

	if (active)
		active_wake(active);
	queue_kick(queue);
}

const char *queue_now(const struct queue *queue, int64_t job)
{
	struct active *active = find(queue, job);

	return active ? active_now(active) : NULL;
}

/* The mail of a job that has just ended, as a row of the mail queue. */
static int queue_mail(struct queue *queue, const struct view *view, struct err *err)
{
	cleanup(json_decref) json_t *stored = NULL;
	cleanup(free) char *text = NULL;
	struct db_mail mail = {.job = view->job.id, .next = clock_wall_ms()};
	int64_t id;

	if (!view->spec.mail)
		return 0;
	stored = report_mail(*queue->spec.config, queue->spec.db, view);
	text = json_line(stored);
	mail.request = text;
	mail.message_id = (char *)json_opt_str(stored, "message_id", "");
	return db_mail_insert(queue->spec.db, &mail, &id, err);
}

int queue_end_job(struct queue *queue, int64_t id, enum db_job_state state, const char *result,
	const char *reason, json_t *summary, struct err *err)
{
	cleanup(json_decref) json_t *held = summary;
	cleanup(view_release) struct view view = {0};
	cleanup(free) char *text = NULL;
	struct db_job job;
	json_t *data = json_object();
	int r;

	json_set_str(data, "state", db_job_state_name(state));
	json_set_str(data, "result", result);
	r = view_load(queue->spec.db, id, &view, err);
	if (r < 0) {
		json_decref(data);
		return r;
	}
	job = view.job;
	text = held ? json_line(held) : NULL;
	job.state = state;
	job.result = (char *)result;
	job.reason = (char *)reason;
	job.summary = text;
	job.ended = clock_wall_ms();
	r = db_job_update(queue->spec.db, &job, err);
	view_release(&view);
	if (r == 0)
		r = view_load(queue->spec.db, id, &view, err);
	if (r == 0)
		r = queue_mail(queue, &view, err);
	if (r < 0) {
		json_decref(data);
		return r;
	}
	return record_event(queue->spec.recorder, id, "state", data, err, "%s: %s",
		result ? result : db_job_state_name(state), reason);
}

void queue_free(struct queue *queue)
{
	if (!queue)
		return;
	for (int i = 0; i < queue->spec.slots; i++)
		active_free(queue->slots[i]);
	if (queue->sweep)
		runner_orphan(queue->sweep);
	free(queue->slots);
	free(queue);
}
