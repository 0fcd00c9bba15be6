/* The control methods that change nothing, and the table of all methods. */
#include "daemon/server.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "bisect/stats.h"
#include "boot/benchmark.h"
#include "daemon/report.h"
#include "base/banned.h"

const struct control_method methods[] = {
	{"hello", method_hello, "", "name, version and protocol of the daemon"},
	{"submit", method_submit, "text, where?, dir?", "a job file; answers with its number"},
	{"list", method_list, "state?, limit?", "the jobs, newest first"},
	{"show", method_show, "job", "everything about one job"},
	{"log", method_log, "job, since?, follow?, format?", "the job's log; follow streams it"},
	{"report", method_report, "job", "the report as text"},
	{"cancel", method_cancel, "job, why?", "end the job"},
	{"hold", method_hold, "job, why?", "stop the job for now"},
	{"resume", method_resume, "job", "go on with a held job"},
	{"retry", method_retry, "job", "go on with a job that has ended"},
	{"retire", method_retire, "run, why?, undo?", "take one sample out of the reckoning"},
	{"mark", method_mark, "job, commit, verdict, why?", "set a commit's verdict by hand"},
	{"status", method_status, "", "the daemon's state"},
	{"benchmarks", method_benchmarks, "", "the benchmarks that jobs can name"},
	{"keys", method_keys, "", "the keys of a job file"},
	{.name = NULL},
};

int method_job_param(struct call *call, const json_t *params, int64_t *ret_job)
{
	struct err err;

	if (json_get_int(params, "job", ret_job, &err) == 0)
		return 0;
	call_error(call, CONTROL_INVALID_PARAMS, "%s", err.msg);
	return -1;
}

void method_fail(struct call *call, const struct err *err)
{
	call_error(
		call, err->code == ENOENT ? CONTROL_NOT_FOUND : CONTROL_INTERNAL, "%s", err->msg);
}

void method_hello(void *arg, struct call *call, const json_t *params)
{
	const struct server *server = arg;
	json_t *result = json_object();

	(void)params;
	json_set_str(result, "name", "kbisectd");
	json_set_str(result, "version", KBISECTD_VERSION);
	json_set_int(result, "protocol", CONTROL_PROTOCOL);
	json_set_str(result, "host", server->config->host);
	call_reply(call, result);
}

static json_t *job_brief(const struct db_job *job)
{
	json_t *j = json_object();

	json_set_int(j, "job", job->id);
	json_set_str(j, "name", job->name);
	json_set_str(j, "state", db_job_state_name(job->state));
	json_set_str(j, "result", job->result);
	json_set_str(j, "reason", job->reason);
	json_set_str(j, "owner", job->owner_name);
	json_set_int(j, "submitted", job->submitted);
	json_set_int(j, "started", job->started);
	json_set_int(j, "ended", job->ended);
	return j;
}

static int list_one(void *arg, const struct db_job *job)
{
	json_array_append_new(arg, job_brief(job));
	return 0;
}

/* A state's name, or "unfinished", as a bit mask; 0 = no such word. */
static unsigned state_mask(const char *word)
{
	if (!word)
		return ~0U;
	if (strcmp(word, "unfinished") == 0)
		return 1U << DB_JOB_QUEUED | 1U << DB_JOB_RUNNING | 1U << DB_JOB_HELD;
	for (int s = DB_JOB_QUEUED; s <= DB_JOB_CANCELLED; s++)
		if (strcmp(word, db_job_state_name(s)) == 0)
			return 1U << s;
	return 0;
}

void method_list(void *arg, struct call *call, const json_t *params)
{
	const struct server *server = arg;
	json_t *result = json_object(), *jobs = json_array();
	unsigned states = state_mask(json_opt_str(params, "state", NULL));
	struct err err = {0};

	json_object_set_new(result, "jobs", jobs);
	if (!states) {
		json_decref(result);
		call_error(call, CONTROL_INVALID_PARAMS,
			"state must be queued, running, held, done, failed, cancelled or "
			"unfinished");
		return;
	}
	if (db_job_list(server->db, states, json_opt_int(params, "limit", 0), list_one, jobs,
		    &err) < 0) {
		json_decref(result);
		method_fail(call, &err);
		return;
	}
	call_reply(call, result);
}

static json_t *run_json(const struct db_run *run)
{
	json_t *j = json_object();

	json_set_int(j, "run", run->id);
	json_set_str(j, "outcome", run->outcome);
	json_set_str(j, "detail", run->detail);
	json_set_str(j, "value", run->value);
	json_set_bool(j, "retired", run->retired);
	json_set_str(j, "retired_by", run->retired_by);
	json_set_str(j, "retired_why", run->retired_why);
	json_set_int(j, "boot_ms", run->boot_ms);
	json_set_int(j, "test_ms", run->test_ms);
	json_set_str(j, "accel", run->accel);
	json_set_str(j, "timing", run->timing);
	json_set_str(j, "dir", run->dir);
	json_set_int(j, "started", run->started);
	json_set_int(j, "ended", run->ended);
	return j;
}

/* The middle sample as a number, or null. */
static json_t *median_json(const struct view_commit *c)
{
	return c->n ? json_real(stats_median(c->values, c->n)) : json_null();
}

static json_t *commit_json(const struct view *view, const struct view_commit *c)
{
	static const char *const roles[] = {"good", "bad", "candidate"};
	static const char *const builds[] = {"none", "ok", "failed"};
	json_t *j = json_object(), *runs = json_array();

	json_set_str(j, "id", c->row->sha);
	json_set_str(j, "label", c->row->label);
	json_set_str(j, "subject", c->row->subject);
	json_set_str(j, "role", roles[c->row->role]);
	json_set_str(j, "verdict", verdict_name(c->verdict));
	json_set_str(j, "reason", *c->reason ? c->reason : NULL);
	json_set_str(j, "mark", c->row->mark);
	json_set_str(j, "mark_by", c->row->mark_by);
	json_set_str(j, "build", builds[c->row->build]);
	json_set_int(j, "build_ms", c->row->build_ms);
	json_set_str(j, "build_error", c->row->build_error);
	json_set_str(j, "build_log", c->row->build_log);
	json_set_str(j, "kernel", c->row->kernel);
	json_set_str(j, "image", c->row->image);
	json_object_set_new(j, "median", median_json(c));
	json_object_set_new(j, "runs", runs);
	for (size_t i = 0; i < view->n_runs; i++)
		if (view->runs[i].commit == c->row->id)
			json_array_append_new(runs, run_json(&view->runs[i]));
	return j;
}

static void add_mail(const struct server *server, int64_t job, json_t *j)
{
	static const char *const states[] = {"queued", "sent", "rejected"};
	cleanup(db_mail_release) struct db_mail mail = {0};
	json_t *m;

	if (db_mail_of_job(server->db, job, &mail, NULL) < 0)
		return;
	m = json_object();
	json_set_str(m, "state", states[mail.state]);
	json_set_int(m, "attempts", mail.attempts);
	json_set_str(m, "error", mail.error);
	json_object_set_new(j, "mail", m);
}

void method_show(void *arg, struct call *call, const json_t *params)
{
	const struct server *server = arg;
	cleanup(view_release) struct view view = {0};
	cleanup(json_decref) json_t *summary = NULL;
	struct err err = {0};
	json_t *j, *list;
	int64_t job;

	if (method_job_param(call, params, &job) < 0)
		return;
	if (view_load(server->db, job, &view, &err) < 0) {
		method_fail(call, &err);
		return;
	}
	j = job_brief(&view.job);
	list = json_array();
	json_set_str(j, "host", view.job.host);
	json_object_set(j, "good", json_object_get(view.facts, "good"));
	json_object_set(j, "bad", json_object_get(view.facts, "bad"));
	json_object_set(j, "commits", json_object_get(view.facts, "commits"));
	json_set_str(j, "benchmark", view.spec.benchmark);
	json_set_str(j, "metric", view.metric);
	json_set_str(j, "better", view.higher_better ? "higher" : "lower");
	json_set_str(j, "unit", view.unit);
	json_object_set_new(
		j, "threshold", isfinite(view.threshold) ? json_real(view.threshold) : json_null());
	json_set_str(j, "text", view.job.text);
	json_set_str(j, "now", queue_now(server->queue, job));
	for (size_t i = 0; i < view.n_commits; i++)
		json_array_append_new(list, commit_json(&view, &view.commits[i]));
	json_object_set_new(j, "commit_list", list);
	if (view.job.summary)
		json_parse(view.job.summary, strlen(view.job.summary), &summary, NULL);
	if (summary)
		json_object_update_missing(j, summary);
	add_mail(server, job, j);
	call_reply(call, j);
}

static int log_entry(void *arg, const struct db_event *event)
{
	json_array_append_new(arg, followers_entry(event));
	return 0;
}

static int is_unfinished(enum db_job_state state)
{
	return state == DB_JOB_QUEUED || state == DB_JOB_RUNNING || state == DB_JOB_HELD;
}

static void log_as_git(const struct server *server, struct call *call, int64_t job)
{
	cleanup(view_release) struct view view = {0};
	cleanup(free) char *text = NULL;
	struct err err = {0};
	json_t *result;

	if (view_load(server->db, job, &view, &err) < 0) {
		method_fail(call, &err);
		return;
	}
	text = report_git_log(&view);
	result = json_object();
	json_set_str(result, "text", text);
	call_reply(call, result);
}

void method_log(void *arg, struct call *call, const json_t *params)
{
	struct server *server = arg;
	cleanup(db_job_release) struct db_job row = {0};
	const char *format = json_opt_str(params, "format", "json"), *now;
	struct err err = {0};
	json_t *result, *entries;
	int64_t job;

	if (method_job_param(call, params, &job) < 0)
		return;
	if (strcmp(format, "git") == 0) {
		log_as_git(server, call, job);
		return;
	}
	result = json_object();
	entries = json_array();
	json_object_set_new(result, "entries", entries);
	if (db_job_get(server->db, job, &row, &err) < 0 ||
		db_event_list(server->db, job, json_opt_int(params, "since", 0), log_entry, entries,
			&err) < 0) {
		json_decref(result);
		method_fail(call, &err);
		return;
	}
	json_set_str(result, "state", db_job_state_name(row.state));
	json_set_str(result, "result", row.result);
	json_set_str(result, "reason", row.reason);
	if (!json_opt_bool(params, "follow", 0) || !is_unfinished(row.state)) {
		call_reply(call, result);
		return;
	}
	followers_add(server->followers, call, result, job);
	now = queue_now(server->queue, job);
	if (now)
		followers_progress(server->followers, job, now);
}

void method_report(void *arg, struct call *call, const json_t *params)
{
	const struct server *server = arg;
	cleanup(view_release) struct view view = {0};
	cleanup(free) char *text = NULL;
	struct err err = {0};
	json_t *result;
	int64_t job;

	if (method_job_param(call, params, &job) < 0)
		return;
	if (view_load(server->db, job, &view, &err) < 0) {
		method_fail(call, &err);
		return;
	}
	text = report_text(server->config, server->db, &view);
	result = json_object();
	json_set_str(result, "text", text);
	json_set_bool(result, "final", !is_unfinished(view.job.state));
	call_reply(call, result);
}

void method_status(void *arg, struct call *call, const json_t *params)
{
	const struct server *server = arg;
	int64_t counts[DB_JOB_STATES];
	json_t *result, *jobs;
	struct err err = {0};

	(void)params;
	if (db_job_counts(server->db, counts, &err) < 0) {
		method_fail(call, &err);
		return;
	}
	result = json_object();
	jobs = json_object();
	json_object_set_new(result, "jobs", jobs);
	for (int s = 0; s < DB_JOB_STATES; s++)
		if (counts[s])
			json_set_int(jobs, db_job_state_name(s), counts[s]);
	json_set_str(result, "version", KBISECTD_VERSION);
	json_set_int(result, "protocol", CONTROL_PROTOCOL);
	json_set_str(result, "host", server->config->host);
	json_set_int(result, "pid", getpid());
	json_set_int(result, "uptime_s", (clock_wall_ms() - server->started) / 1000);
	json_set_int(result, "connections", control_connections(server->control));
	json_set_str(result, "state_dir", server->config->state_dir);
	json_set_int(result, "slots", server->slots);
	json_set_str(result, "uri",
		server->config->uri ? server->config->uri : "qemu:///embed (in the state folder)");
	call_reply(call, result);
}

static json_t *benchmark_json(const char *dir, const char *name)
{
	cleanup(benchmark_release) struct benchmark b = {0};
	json_t *j = json_object(), *metrics = json_array();
	struct err err = {0};

	json_set_str(j, "name", name);
	json_object_set_new(j, "metrics", metrics);
	if (benchmark_load(dir, name, NULL, &b, &err) < 0) {
		json_set_str(j, "error", err.msg);
		return j;
	}
	json_set_str(j, "description", b.description);
	for (size_t i = 0; i < b.n_metrics; i++) {
		json_t *m = json_object();

		json_set_str(m, "name", b.metrics[i].name);
		json_set_str(m, "unit", b.metrics[i].unit);
		json_set_str(m, "better", b.metrics[i].better_lower ? "lower" : "higher");
		json_array_append_new(metrics, m);
	}
	return j;
}

void method_benchmarks(void *arg, struct call *call, const json_t *params)
{
	const struct server *server = arg;
	cleanup(benchmark_names_free) char **names = NULL;
	json_t *result, *list = json_array();
	struct err err = {0};

	(void)params;
	if (benchmark_list(server->config->benchmarks, &names, &err) < 0) {
		json_decref(list);
		call_error(call, CONTROL_INTERNAL, "%s", err.msg);
		return;
	}
	for (size_t i = 0; names[i]; i++)
		json_array_append_new(list, benchmark_json(server->config->benchmarks, names[i]));
	result = json_object();
	json_object_set_new(result, "benchmarks", list);
	call_reply(call, result);
}

void method_keys(void *arg, struct call *call, const json_t *params)
{
	static const char *const types[] = {
		"string", "path", "yes or no", "whole number", "number", "size", "time", "choice"};
	json_t *result = json_object(), *keys = json_array();

	(void)arg, (void)params;
	for (const struct conf_key *k = job_keys; k->name; k++) {
		int required = k->def && strcmp(k->def, CONF_REQUIRED) == 0;
		json_t *j = json_object();

		json_set_str(j, "section", k->section);
		json_set_str(j, "name", k->name);
		json_set_str(j, "type", types[k->type]);
		json_set_str(j, "default", required ? NULL : k->def);
		json_set_str(j, "choices", k->choices);
		json_set_str(j, "help", k->help);
		json_set_bool(j, "required", required);
		json_array_append_new(keys, j);
	}
	json_object_set_new(result, "keys", keys);
	call_reply(call, result);
}
