/* The control methods that change something. Each change is one transaction. */
#include "daemon/server.h"

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "daemon/accept.h"
#include "base/banned.h"

void method_submit(void *arg, struct call *call, const json_t *params)
{
	const char *text;
	struct err err;

	if (json_get_str(params, "text", &text, &err) < 0) {
		call_error(call, CONTROL_INVALID_PARAMS, "%s", err.msg);
		return;
	}
	accept_job(arg, call, text, json_opt_str(params, "where", "job"),
		json_opt_str(params, "dir", "/"));
}

/* The caller's name. Free it. */
static char *peer_name(struct call *call)
{
	const struct passwd *pw = getpwuid(call_peer(call)->uid);

	return pw ? xstrdup(pw->pw_name) : xasprintf("%u", (unsigned)call_peer(call)->uid);
}

/* The job, when there is one and the peer may change it; else the call has been answered. */
static int owned_job(struct server *server, struct call *call, int64_t id, struct db_job *ret)
{
	const struct control_peer *peer = call_peer(call);
	struct err err = {0};

	if (db_job_get(server->db, id, ret, &err) < 0) {
		method_fail(call, &err);
		return -1;
	}
	if (peer->admin || (int64_t)peer->uid == ret->owner)
		return 0;
	call_error(call, CONTROL_DENIED,
		"job %lld belongs to %s; only its owner or an administrator "
		"may change it",
		(long long)id, ret->owner_name);
	db_job_release(ret);
	return -1;
}

static int owned_job_param(
	struct server *server, struct call *call, const json_t *params, struct db_job *ret)
{
	int64_t id;

	if (method_job_param(call, params, &id) < 0)
		return -1;
	return owned_job(server, call, id, ret);
}

static void reply_state(struct call *call, enum db_job_state state)
{
	json_t *result = json_object();

	json_set_str(result, "state", db_job_state_name(state));
	call_reply(call, result);
}

/* Is the job in one of these states? Otherwise the call has been answered. */
static int state_allows(
	struct call *call, const struct db_job *job, unsigned states, const char *what)
{
	if (states & 1U << job->state)
		return 1;
	call_error(call, CONTROL_STATE, "job %lld is %s and cannot be %s", (long long)job->id,
		db_job_state_name(job->state), what);
	return 0;
}

/* Write the row as it now is, with a line in the diary. The call is answered either way. */
static int save_job(struct server *server, struct call *call, struct db_job *job, const char *verb,
	const char *why)
{
	cleanup(free) char *who = peer_name(call);
	struct err err = {0};
	int r;

	r = record_begin(server->recorder, &err);
	if (r == 0)
		r = db_job_update(server->db, job, &err);
	if (r == 0)
		r = record_event(server->recorder, job->id, "state", NULL, &err, "%s by %s%s%s",
			verb, who, why ? ": " : "", why ? why : "");
	if (r == 0)
		r = record_commit(server->recorder, &err);
	if (r < 0) {
		record_rollback(server->recorder);
		method_fail(call, &err);
		return r;
	}
	reply_state(call, job->state);
	return 0;
}

void method_cancel(void *arg, struct call *call, const json_t *params)
{
	struct server *server = arg;
	cleanup(db_job_release) struct db_job job = {0};
	cleanup(free) char *who = peer_name(call);
	cleanup(free) char *reason = NULL;
	const char *why = json_opt_str(params, "why", NULL);
	struct err err = {0};
	int r;

	if (owned_job_param(server, call, params, &job) < 0 ||
		!state_allows(call, &job,
			1U << DB_JOB_QUEUED | 1U << DB_JOB_RUNNING | 1U << DB_JOB_HELD,
			"cancelled"))
		return;
	reason = xasprintf("cancelled by %s%s%s", who, why ? ": " : "", why ? why : "");
	r = record_begin(server->recorder, &err);
	if (r == 0)
		r = queue_end_job(
			server->queue, job.id, DB_JOB_CANCELLED, NULL, reason, NULL, &err);
	if (r == 0)
		r = record_commit(server->recorder, &err);
	if (r < 0) {
		record_rollback(server->recorder);
		method_fail(call, &err);
		return;
	}
	reply_state(call, DB_JOB_CANCELLED);
	queue_stop_job(server->queue, job.id);
}

void method_hold(void *arg, struct call *call, const json_t *params)
{
	struct server *server = arg;
	cleanup(db_job_release) struct db_job job = {0};

	if (owned_job_param(server, call, params, &job) < 0 ||
		!state_allows(call, &job, 1U << DB_JOB_QUEUED | 1U << DB_JOB_RUNNING, "held"))
		return;
	job.state = DB_JOB_HELD;
	if (save_job(server, call, &job, "held", json_opt_str(params, "why", NULL)) == 0)
		queue_stop_job(server->queue, job.id);
}

void method_resume(void *arg, struct call *call, const json_t *params)
{
	struct server *server = arg;
	cleanup(db_job_release) struct db_job job = {0};

	if (owned_job_param(server, call, params, &job) < 0 ||
		!state_allows(call, &job, 1U << DB_JOB_HELD, "resumed"))
		return;
	job.state = DB_JOB_QUEUED;
	if (save_job(server, call, &job, "resumed", NULL) == 0)
		queue_wake_job(server->queue, job.id);
}

/*
 * An endpoint that could not be built or run ended the job; trying again means forgetting that.
 * Candidates keep their verdicts: `mark` is for those.
 */
static int forget_endpoint_failures(
	struct server *server, int64_t job, const char *who, struct err *err)
{
	cleanup(view_release) struct view view = {0};
	int r;

	r = view_load(server->db, job, &view, err);
	for (size_t i = 0; r == 0 && i < 2 && i < view.n_commits; i++) {
		struct db_commit row = view.rows[i];

		if (row.build != DB_BUILD_FAILED)
			continue;
		row.build = DB_BUILD_NONE;
		row.build_error = NULL;
		r = db_commit_update(server->db, &row, err);
	}
	for (size_t i = 0; r == 0 && i < view.n_runs; i++) {
		const struct db_run *run = &view.runs[i];
		const struct view_commit *c = view_commit_of_run(&view, run);

		if (c && c->row->role != DB_ROLE_CANDIDATE && outcome_is_candidate(run->outcome))
			r = db_run_retire(server->db, run->id, 1, who, "retry", err);
	}
	return r;
}

void method_retry(void *arg, struct call *call, const json_t *params)
{
	struct server *server = arg;
	cleanup(db_job_release) struct db_job job = {0};
	cleanup(free) char *who = peer_name(call);
	struct err err = {0};
	int r;

	if (owned_job_param(server, call, params, &job) < 0 ||
		!state_allows(call, &job,
			1U << DB_JOB_DONE | 1U << DB_JOB_FAILED | 1U << DB_JOB_CANCELLED,
			"retried"))
		return;
	job.state = DB_JOB_QUEUED;
	job.infra = 0;
	job.ended = 0;
	free(steal(&job.result));
	free(steal(&job.reason));
	free(steal(&job.summary));
	r = record_begin(server->recorder, &err);
	if (r == 0)
		r = forget_endpoint_failures(server, job.id, who, &err);
	if (r == 0)
		r = db_job_update(server->db, &job, &err);
	if (r == 0)
		r = record_event(
			server->recorder, job.id, "state", NULL, &err, "retried by %s", who);
	if (r == 0)
		r = record_commit(server->recorder, &err);
	if (r < 0) {
		record_rollback(server->recorder);
		method_fail(call, &err);
		return;
	}
	reply_state(call, DB_JOB_QUEUED);
	queue_wake_job(server->queue, job.id);
}

void method_retire(void *arg, struct call *call, const json_t *params)
{
	struct server *server = arg;
	cleanup(db_run_release) struct db_run run = {0};
	cleanup(db_job_release) struct db_job job = {0};
	cleanup(free) char *who = peer_name(call);
	int undo = json_opt_bool(params, "undo", 0);
	const char *why = json_opt_str(params, "why", NULL);
	struct err err = {0};
	json_t *result;
	int64_t id;
	int r;

	if (json_get_int(params, "run", &id, &err) < 0) {
		call_error(call, CONTROL_INVALID_PARAMS, "%s", err.msg);
		return;
	}
	if (db_run_get(server->db, id, &run, &err) < 0) {
		method_fail(call, &err);
		return;
	}
	if (owned_job(server, call, run.job, &job) < 0)
		return;
	if (!run.outcome) {
		call_error(call, CONTROL_STATE, "run %lld has not ended yet", (long long)id);
		return;
	}
	r = record_begin(server->recorder, &err);
	if (r == 0)
		r = db_run_retire(server->db, id, !undo, who, why, &err);
	if (r == 0)
		r = record_event(server->recorder, run.job, "note", NULL, &err,
			"run %lld (%s) %s by %s%s%s", (long long)id,
			run.value ? run.value : run.outcome, undo ? "counts again, " : "retired",
			who, why ? ": " : "", why ? why : "");
	if (r == 0)
		r = record_commit(server->recorder, &err);
	if (r < 0) {
		record_rollback(server->recorder);
		method_fail(call, &err);
		return;
	}
	result = json_object();
	json_set_int(result, "job", run.job);
	json_set_int(result, "run", id);
	json_set_bool(result, "retired", !undo);
	call_reply(call, result);
}

/* The job's commit that the word names: its id, the beginning of its id, or its label. */
static struct view_commit *find_commit(const struct view *view, const char *word, int *ret_many)
{
	struct view_commit *found = NULL;
	size_t len = strlen(word);

	*ret_many = 0;
	for (size_t i = 0; i < view->n_commits; i++) {
		const struct db_commit *row = &view->rows[i];

		if (strcmp(row->label, word) == 0)
			return &view->commits[i];
		if (len < 4 || strncmp(row->sha, word, len) != 0)
			continue;
		*ret_many = found != NULL;
		found = &view->commits[i];
	}
	return found;
}

static int is_full_id(const char *word)
{
	return strlen(word) == 40 && strspn(word, "0123456789abcdef") == 40;
}

/* Write the mark: on the commit's row, or on a new one for a commit that was not picked yet. */
static int set_mark(struct server *server, const struct view *view, const struct view_commit *c,
	const char *id, const char *verdict, const char *who, const char *why, struct err *err)
{
	struct db_commit row = {.job = view->job.id, .role = DB_ROLE_CANDIDATE};
	cleanup(free) char *label = xstrndup(id, 12);
	int r = 0;

	if (c) {
		row = *c->row;
	} else {
		row.sha = (char *)id;
		row.label = label;
		row.subject = (char *)"";
		r = db_commit_insert(server->db, &row, &row.id, err);
	}
	row.mark = strcmp(verdict, "none") == 0 ? NULL : (char *)verdict;
	row.mark_by = row.mark ? (char *)who : NULL;
	row.mark_why = row.mark ? (char *)why : NULL;
	return r < 0 ? r : db_commit_update(server->db, &row, err);
}

static int mark_words(
	struct call *call, const json_t *params, const char **ret_commit, const char **ret_verdict)
{
	struct err err;

	if (json_get_str(params, "commit", ret_commit, &err) < 0 ||
		json_get_str(params, "verdict", ret_verdict, &err) < 0) {
		call_error(call, CONTROL_INVALID_PARAMS, "%s", err.msg);
		return -1;
	}
	if (strcmp(*ret_verdict, "good") && strcmp(*ret_verdict, "bad") &&
		strcmp(*ret_verdict, "skip") && strcmp(*ret_verdict, "none")) {
		call_error(call, CONTROL_INVALID_PARAMS,
			"verdict must be good, bad, skip or none, found \"%.40s\"", *ret_verdict);
		return -1;
	}
	return 0;
}

/* The commit to mark; *ret is NULL for a full id that the job has not picked yet. */
static int marked_commit(struct call *call, const struct view *view, const char *word,
	const struct view_commit **ret)
{
	int many;
	const struct view_commit *c = find_commit(view, word, &many);

	if (many) {
		call_error(call, CONTROL_INVALID_PARAMS,
			"\"%.40s\" begins the ids of several commits", word);
		return -1;
	}
	if (!c && !is_full_id(word)) {
		call_error(call, CONTROL_NOT_FOUND,
			"job %lld has not picked a commit %.60s; give the full id of one that it "
			"has "
			"not picked yet",
			(long long)view->job.id, word);
		return -1;
	}
	if (c && c->row->role != DB_ROLE_CANDIDATE) {
		call_error(call, CONTROL_STATE, "%s is an end of the range; its verdict is given",
			c->row->label);
		return -1;
	}
	*ret = c;
	return 0;
}

void method_mark(void *arg, struct call *call, const json_t *params)
{
	struct server *server = arg;
	cleanup(view_release) struct view view = {0};
	cleanup(db_job_release) struct db_job job = {0};
	cleanup(free) char *who = peer_name(call);
	const char *word, *verdict, *why = json_opt_str(params, "why", NULL);
	const struct view_commit *c;
	struct err err = {0};
	json_t *result;
	int r;

	if (mark_words(call, params, &word, &verdict) < 0 ||
		owned_job_param(server, call, params, &job) < 0)
		return;
	if (view_load(server->db, job.id, &view, &err) < 0) {
		method_fail(call, &err);
		return;
	}
	if (marked_commit(call, &view, word, &c) < 0)
		return;
	r = record_begin(server->recorder, &err);
	if (r == 0)
		r = set_mark(server, &view, c, c ? c->row->sha : word, verdict, who, why, &err);
	if (r == 0)
		r = record_event(server->recorder, job.id, "verdict", NULL, &err,
			"%s marked %s by %s%s%s", c ? c->row->label : word, verdict, who,
			why ? ": " : "", why ? why : "");
	if (r == 0)
		r = record_commit(server->recorder, &err);
	if (r < 0) {
		record_rollback(server->recorder);
		method_fail(call, &err);
		return;
	}
	result = json_object();
	json_set_int(result, "job", job.id);
	json_set_str(result, "commit", c ? c->row->sha : word);
	json_set_str(result, "verdict", verdict);
	call_reply(call, result);
	queue_wake_job(server->queue, job.id);
}
