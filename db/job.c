#include "db/job.h"

#include <errno.h>
#include <string.h>

#include "db/stmt.h"
#include "base/banned.h"

#define AT(field) offsetof(struct db_job, field)

static const char *const state_names[] = {
	[DB_JOB_QUEUED] = "queued",
	[DB_JOB_RUNNING] = "running",
	[DB_JOB_HELD] = "held",
	[DB_JOB_DONE] = "done",
	[DB_JOB_FAILED] = "failed",
	[DB_JOB_CANCELLED] = "cancelled",
	NULL,
};

static const struct field fields[] = {
	{"id", FIELD_INT, AT(id), NULL},
	{"owner_uid", FIELD_INT, AT(owner), NULL},
	{"owner_name", FIELD_TEXT, AT(owner_name), NULL},
	{"name", FIELD_TEXT, AT(name), NULL},
	{"host", FIELD_TEXT, AT(host), NULL},
	{"state", FIELD_ENUM, AT(state), state_names},
	{"result", FIELD_TEXT, AT(result), NULL},
	{"reason", FIELD_TEXT, AT(reason), NULL},
	{"submitted", FIELD_INT, AT(submitted), NULL},
	{"started", FIELD_INT, AT(started), NULL},
	{"ended", FIELD_INT, AT(ended), NULL},
	{"infra", FIELD_INT, AT(infra), NULL},
	{"source_name", FIELD_TEXT, AT(where), NULL},
	{"source_dir", FIELD_TEXT, AT(dir), NULL},
	{"source_text", FIELD_TEXT, AT(text), NULL},
	{"facts", FIELD_TEXT, AT(facts), NULL},
	{"summary", FIELD_TEXT, AT(summary), NULL},
	{NULL, FIELD_INT, 0, NULL},
};

const char *db_job_state_name(enum db_job_state state)
{
	return state_names[state];
}

int db_job_insert(struct db *db, const struct db_job *job, int64_t *ret_id, struct err *err)
{
	static const char sql[] =
		"INSERT INTO job (owner_uid, owner_name, name, host, state, result, reason,"
		" submitted, started, ended, infra, source_name, source_dir, source_text, facts,"
		" summary) "
		"VALUES (:owner_uid, :owner_name, :name, :host, :state, :result, :reason,"
		" :submitted, :started, :ended, :infra, :source_name, :source_dir, :source_text,"
		" :facts, :summary)";

	return stmt_insert(db, sql, fields, job, ret_id, err);
}

int db_job_get(struct db *db, int64_t id, struct db_job *ret, struct err *err)
{
	static const char sql[] = "SELECT * FROM job WHERE id = :id";
	cleanup(stmt_done) struct stmt *stmt = NULL;
	int r;

	r = stmt_open(db, sql, &stmt, err);
	if (r < 0)
		return r;
	stmt_bind_int(stmt, "id", id);
	r = stmt_read_one(stmt, fields, sizeof(*ret), ret, err);
	if (r == -ENOENT)
		return err_set(err, ENOENT, "there is no job %lld", (long long)id);
	return r;
}

int db_job_update(struct db *db, const struct db_job *job, struct err *err)
{
	static const char sql[] =
		"UPDATE job SET state = :state, result = :result, reason = :reason,"
		" summary = :summary, started = :started, ended = :ended, infra = :infra "
		"WHERE id = :id";

	return stmt_update(db, sql, fields, job, "job", job->id, err);
}

int db_job_list(
	struct db *db, unsigned states, int64_t limit, db_job_fn fn, void *arg, struct err *err)
{
	/* The inner query is answered by the index alone; a state that is not asked for is NULL,
	 * which equals nothing. */
	static const char sql[] =
		"SELECT id, owner_uid, owner_name, name, host, state, result, reason, submitted,"
		" started, ended, infra, source_name, source_dir "
		"FROM job WHERE id IN"
		" (SELECT id FROM job WHERE state IN (:s0, :s1, :s2, :s3, :s4, :s5)"
		" ORDER BY id DESC LIMIT :limit) "
		"ORDER BY id DESC";
	static const char *const params[] = {"s0", "s1", "s2", "s3", "s4", "s5"};
	cleanup(stmt_done) struct stmt *stmt = NULL;
	int r;

	r = stmt_open(db, sql, &stmt, err);
	if (r < 0)
		return r;
	for (unsigned i = 0; state_names[i]; i++)
		stmt_bind_text(stmt, params[i], states & (1U << i) ? state_names[i] : NULL);
	stmt_bind_int(stmt, "limit", limit > 0 ? limit : -1);
	while ((r = stmt_step(stmt, err)) > 0) {
		cleanup(db_job_release) struct db_job job = {0};

		stmt_read_row(stmt, fields, &job);
		r = fn(arg, &job);
		if (r < 0)
			return r;
	}
	return r;
}

/* A row of the count: a state and a number. */
struct count {
	enum db_job_state state;
	int64_t n;
};

static const struct field count_fields[] = {
	{"state", FIELD_ENUM, offsetof(struct count, state), state_names},
	{"n", FIELD_INT, offsetof(struct count, n), NULL},
	{NULL, FIELD_INT, 0, NULL},
};

int db_job_counts(struct db *db, int64_t ret[DB_JOB_STATES], struct err *err)
{
	static const char sql[] = "SELECT state, count(*) AS n FROM job GROUP BY state";
	cleanup(stmt_done) struct stmt *stmt = NULL;
	int64_t counts[DB_JOB_STATES] = {0};
	int r;

	r = stmt_open(db, sql, &stmt, err);
	if (r < 0)
		return r;
	while ((r = stmt_step(stmt, err)) > 0) {
		struct count count = {0};

		stmt_read_row(stmt, count_fields, &count);
		counts[count.state] = count.n;
	}
	if (r == 0)
		memcpy(ret, counts, sizeof(counts));
	return r;
}

void db_job_release(struct db_job *job)
{
	row_release(fields, sizeof(*job), job);
}
