#include "daemon/accept.h"

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "daemon/log.h"
#include "daemon/request.h"
#include "daemon/runner.h"
#include "base/banned.h"

#define ACCEPT_DEADLINE_MS (10 * 60000)
#define ACCEPT_MAX 8 /* steps at once */

struct accept {
	struct server *server;
	struct call *call;
	char *text, *where, *dir;
	char *folder; /* the step's request and log; removed in the end */
	struct job_spec spec;
	json_t *facts; /* the step's answer */
};

static void accept_free(struct accept *a)
{
	file_remove(a->folder, NULL);
	job_release(&a->spec);
	json_decref(a->facts);
	free(a->text);
	free(a->where);
	free(a->dir);
	free(a->folder);
	free(a);
}

/* The peer's name as the password file has it, else its number. Free it. */
static char *owner_name(uid_t uid)
{
	const struct passwd *pw = getpwuid(uid);

	return pw ? xstrdup(pw->pw_name) : xasprintf("%u", (unsigned)uid);
}

static int insert_endpoint(
	struct server *server, int64_t job, const json_t *end, enum db_role role, struct err *err)
{
	struct db_commit row = {.job = job, .role = role};

	row.sha = (char *)json_opt_str(end, "id", "");
	row.label = (char *)json_opt_str(end, "label", "");
	row.subject = (char *)json_opt_str(end, "subject", "");
	return db_commit_insert(server->db, &row, &row.id, err);
}

static int insert_job(struct accept *a, int64_t *ret_id, struct err *err)
{
	struct server *server = a->server;
	cleanup(free) char *owner = owner_name(call_peer(a->call)->uid);
	cleanup(free) char *facts = json_line(a->facts);
	struct db_job job = {.state = DB_JOB_QUEUED};
	int r;

	job.owner = call_peer(a->call)->uid;
	job.owner_name = owner;
	job.name = a->spec.name;
	job.host = server->config->host;
	job.text = a->text;
	job.where = a->where;
	job.dir = a->dir;
	job.facts = facts;
	job.submitted = clock_wall_ms();
	r = db_job_insert(server->db, &job, ret_id, err);
	if (r == 0)
		r = insert_endpoint(
			server, *ret_id, json_object_get(a->facts, "good"), DB_ROLE_GOOD, err);
	if (r == 0)
		r = insert_endpoint(
			server, *ret_id, json_object_get(a->facts, "bad"), DB_ROLE_BAD, err);
	if (r == 0)
		r = record_event(server->recorder, *ret_id, "state", NULL, err,
			"submitted by %s: %lld commits between %s and %s", owner,
			(long long)json_opt_int(a->facts, "commits", 0),
			json_opt_str(json_object_get(a->facts, "good"), "label", "?"),
			json_opt_str(json_object_get(a->facts, "bad"), "label", "?"));
	return r;
}

static void enqueue(struct accept *a)
{
	struct server *server = a->server;
	struct err err = {0};
	json_t *result;
	int64_t id = 0;
	int r;

	r = record_begin(server->recorder, &err);
	if (r == 0) {
		r = insert_job(a, &id, &err);
		if (r == 0)
			r = record_commit(server->recorder, &err);
		else
			record_rollback(server->recorder);
	}
	if (r < 0) {
		call_error(a->call, CONTROL_INTERNAL, "cannot record the job: %s", err.msg);
		return;
	}
	log_line(LOG_NOTICE, "job=%lld submitted by uid %u: %s", (long long)id,
		(unsigned)call_peer(a->call)->uid, a->spec.name);
	result = json_object();
	json_set_int(result, "job", id);
	call_reply(a->call, result);
	queue_kick(server->queue);
}

static void on_line(void *arg, const json_t *result)
{
	struct accept *a = arg;

	if (!a->facts)
		a->facts = json_deep_copy(result);
}

static void on_done(void *arg, const struct err *err)
{
	struct accept *a = arg;
	const char *refused = json_opt_str(a->facts, "refused", NULL);
	const char *infra = json_opt_str(a->facts, "infra", NULL);

	a->server->accepting--;
	if (refused)
		call_error(a->call, CONTROL_REFUSED, "%s", refused);
	else if (infra || err->code || !a->facts)
		call_error(a->call, CONTROL_INTERNAL, "the job could not be checked: %s",
			infra	    ? infra
			: err->code ? err->msg
				    : "no answer");
	else
		enqueue(a);
	accept_free(a);
}

static int start(struct accept *a, struct err *err)
{
	struct server *server = a->server;
	cleanup(json_decref) json_t *request =
		request_accept(server->config, a->text, a->where, a->dir);
	struct runner_spec spec = {
		.base = server->base,
		.program = server->program,
		.name = "accept",
		.dir = a->folder,
		.request = request,
		.deadline_ms = ACCEPT_DEADLINE_MS,
		.line = on_line,
		.done = on_done,
		.arg = a,
	};
	struct runner *runner;
	int r;

	r = file_mkdir(a->folder, 0750, err);
	return r < 0 ? r : runner_start(&spec, &runner, err);
}

void accept_job(struct server *server, struct call *call, const char *text, const char *where,
	const char *dir)
{
	struct accept *a;
	struct job_spec spec;
	struct err err = {0};

	if (server->accepting >= ACCEPT_MAX) {
		call_error(call, CONTROL_STATE, "%d submitted jobs are being checked; try again",
			ACCEPT_MAX);
		return;
	}
	if (job_parse(text, where, dir, &spec, &err) < 0) {
		call_error(call, CONTROL_REFUSED, "%s", err.msg);
		return;
	}
	if (spec.mail && !server->config->smtp && !server->config->sendmail) {
		call_error(call, CONTROL_REFUSED,
			"%s: the job wants mail, but the daemon's configuration names neither smtp "
			"nor sendmail; add one to [mail] there, or drop the key mail here",
			where);
		job_release(&spec);
		return;
	}
	a = xcalloc(1, sizeof(*a));
	a->server = server;
	a->call = call;
	a->text = xstrdup(text);
	a->where = xstrdup(where);
	a->dir = xstrdup(dir);
	a->spec = spec;
	a->folder = xasprintf(
		"%s/accept/%lld", server->config->state_dir, (long long)++server->accept_number);
	if (start(a, &err) < 0) {
		call_error(call, CONTROL_INTERNAL, "the job could not be checked: %s", err.msg);
		accept_free(a);
		return;
	}
	server->accepting++;
}
