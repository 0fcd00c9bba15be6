#include "db/run.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "db/stmt.h"
#include "base/banned.h"

#define COMMIT_AT(field) offsetof(struct db_commit, field)
#define RUN_AT(field) offsetof(struct db_run, field)

static const char *const role_names[] = {
	[DB_ROLE_GOOD] = "good",
	[DB_ROLE_BAD] = "bad",
	[DB_ROLE_CANDIDATE] = "candidate",
	NULL,
};

static const char *const build_names[] = {
	[DB_BUILD_NONE] = "none",
	[DB_BUILD_OK] = "ok",
	[DB_BUILD_FAILED] = "failed",
	NULL,
};

static const struct field commit_fields[] = {
	{"id", FIELD_INT, COMMIT_AT(id), NULL},
	{"job", FIELD_INT, COMMIT_AT(job), NULL},
	{"sha", FIELD_TEXT, COMMIT_AT(sha), NULL},
	{"label", FIELD_TEXT, COMMIT_AT(label), NULL},
	{"subject", FIELD_TEXT, COMMIT_AT(subject), NULL},
	{"role", FIELD_ENUM, COMMIT_AT(role), role_names},
	{"build", FIELD_ENUM, COMMIT_AT(build), build_names},
	{"build_key", FIELD_TEXT, COMMIT_AT(build_key), NULL},
	{"kernel", FIELD_TEXT, COMMIT_AT(kernel), NULL},
	{"image", FIELD_TEXT, COMMIT_AT(image), NULL},
	{"build_error", FIELD_TEXT, COMMIT_AT(build_error), NULL},
	{"build_log", FIELD_TEXT, COMMIT_AT(build_log), NULL},
	{"build_ms", FIELD_INT, COMMIT_AT(build_ms), NULL},
	{"mark", FIELD_TEXT, COMMIT_AT(mark), NULL},
	{"mark_by", FIELD_TEXT, COMMIT_AT(mark_by), NULL},
	{"mark_why", FIELD_TEXT, COMMIT_AT(mark_why), NULL},
	{NULL, FIELD_INT, 0, NULL},
};

static const struct field run_fields[] = {
	{"id", FIELD_INT, RUN_AT(id), NULL},
	{"job", FIELD_INT, RUN_AT(job), NULL},
	{"candidate", FIELD_INT, RUN_AT(commit), NULL},
	{"outcome", FIELD_TEXT, RUN_AT(outcome), NULL},
	{"detail", FIELD_TEXT, RUN_AT(detail), NULL},
	{"accel", FIELD_TEXT, RUN_AT(accel), NULL},
	{"timing", FIELD_TEXT, RUN_AT(timing), NULL},
	{"dir", FIELD_TEXT, RUN_AT(dir), NULL},
	{"boot_ms", FIELD_INT, RUN_AT(boot_ms), NULL},
	{"test_ms", FIELD_INT, RUN_AT(test_ms), NULL},
	{"started", FIELD_INT, RUN_AT(started), NULL},
	{"ended", FIELD_INT, RUN_AT(ended), NULL},
	{"value", FIELD_TEXT, RUN_AT(value), NULL},
	{"number", FIELD_REAL, RUN_AT(number), NULL},
	{"retired", FIELD_FLAG, RUN_AT(retired), NULL},
	{"retired_by", FIELD_TEXT, RUN_AT(retired_by), NULL},
	{"retired_why", FIELD_TEXT, RUN_AT(retired_why), NULL},
	{"metrics", FIELD_TEXT, RUN_AT(metrics), NULL},
	{NULL, FIELD_INT, 0, NULL},
};

int db_commit_insert(
	struct db *db, const struct db_commit *commit, int64_t *ret_id, struct err *err)
{
	static const char sql[] =
		"INSERT INTO candidate (job, sha, label, subject, role, build, build_key, kernel,"
		" image, build_error, build_log, build_ms, mark, mark_by, mark_why) "
		"VALUES (:job, :sha, :label, :subject, :role, :build, :build_key, :kernel,"
		" :image, :build_error, :build_log, :build_ms, :mark, :mark_by, :mark_why)";

	return stmt_insert(db, sql, commit_fields, commit, ret_id, err);
}

int db_commit_update(struct db *db, const struct db_commit *commit, struct err *err)
{
	static const char sql[] =
		"UPDATE candidate SET build = :build, build_key = :build_key, kernel = :kernel,"
		" image = :image, build_error = :build_error, build_log = :build_log,"
		" build_ms = :build_ms, mark = :mark, mark_by = :mark_by, mark_why = :mark_why "
		"WHERE id = :id";

	return stmt_update(db, sql, commit_fields, commit, "commit", commit->id, err);
}

int db_commit_list(
	struct db *db, int64_t job, struct db_commit **ret, size_t *ret_n, struct err *err)
{
	static const char sql[] = "SELECT * FROM candidate WHERE job = :job ORDER BY id";
	cleanup(stmt_done) struct stmt *stmt = NULL;
	void *rows = NULL;
	int r;

	r = stmt_open(db, sql, &stmt, err);
	if (r < 0)
		return r;
	stmt_bind_int(stmt, "job", job);
	r = stmt_read_all(stmt, commit_fields, sizeof(**ret), &rows, ret_n, err);
	if (r == 0)
		*ret = rows;
	return r;
}

void db_commits_free(struct db_commit *commits, size_t n)
{
	rows_free(commit_fields, sizeof(*commits), commits, n);
}

int db_run_insert(struct db *db, const struct db_run *run, int64_t *ret_id, struct err *err)
{
	static const char sql[] =
		"INSERT INTO run (job, candidate, outcome, detail, accel, timing, dir, boot_ms,"
		" test_ms, started, ended, value, number, retired, retired_by, retired_why,"
		" metrics) "
		"VALUES (:job, :candidate, :outcome, :detail, :accel, :timing, :dir, :boot_ms,"
		" :test_ms, :started, :ended, :value, :number, :retired, :retired_by,"
		" :retired_why, :metrics)";

	return stmt_insert(db, sql, run_fields, run, ret_id, err);
}

static int insert_sample(
	struct db *db, int64_t run, const char *metric, const json_t *sample, struct err *err)
{
	static const char sql[] = "INSERT INTO sample (run, metric, value, text, every) "
				  "VALUES (:run, :metric, :value, :text, :every)";
	cleanup(free) char *every = NULL; /* outlives the statement that borrows it */
	cleanup(stmt_done) struct stmt *stmt = NULL;
	json_t *all = json_object_get(sample, "all");
	int r;

	r = stmt_open(db, sql, &stmt, err);
	if (r < 0)
		return r;
	if (all)
		every = json_line(all);
	stmt_bind_int(stmt, "run", run);
	stmt_bind_text(stmt, "metric", metric);
	stmt_bind_real(stmt, "value", json_opt_real(sample, "value", NAN));
	stmt_bind_text(stmt, "text", json_opt_str(sample, "text", NULL));
	stmt_bind_text(stmt, "every", every);
	r = stmt_change(stmt, err);
	return r < 0 ? r : 0;
}

static int insert_samples(struct db *db, const struct db_run *run, struct err *err)
{
	cleanup(json_decref) json_t *metrics = NULL;
	const char *name;
	json_t *sample;
	int r;

	r = json_parse(run->metrics, strlen(run->metrics), &metrics, err);
	if (r < 0)
		return r;
	if (!json_is_object(metrics))
		return err_set(err, EBADMSG, "expected a JSON object");
	json_object_foreach (metrics, name, sample) {
		r = insert_sample(db, run->id, name, sample, err);
		if (r < 0)
			return r;
	}
	return 0;
}

int db_run_finish(struct db *db, const struct db_run *run, struct err *err)
{
	/* Once: the late result of a run that was given up must not revive it. */
	static const char sql[] =
		"UPDATE run SET outcome = :outcome, detail = :detail, accel = :accel,"
		" timing = :timing, dir = :dir, boot_ms = :boot_ms, test_ms = :test_ms,"
		" started = :started, ended = :ended, value = :value, number = :number,"
		" metrics = :metrics "
		"WHERE id = :id AND outcome IS NULL";
	int r;

	r = stmt_update(db, sql, run_fields, run, "unfinished run", run->id, err);
	if (r < 0 || !run->metrics)
		return r;
	r = insert_samples(db, run, err);
	if (r < 0)
		err_wrap(err, "metrics of run %lld", (long long)run->id);
	return r;
}

int db_run_retire(
	struct db *db, int64_t id, int retired, const char *by, const char *why, struct err *err)
{
	static const char sql[] = "UPDATE run SET retired = :retired, retired_by = :retired_by,"
				  " retired_why = :retired_why WHERE id = :id";
	struct db_run run = {.id = id, .retired = retired};

	/* Borrowed for the bind only; a run that counts again keeps who decided so, and why. */
	run.retired_by = (char *)by;
	run.retired_why = (char *)why;
	return stmt_update(db, sql, run_fields, &run, "run", id, err);
}

int db_run_get(struct db *db, int64_t id, struct db_run *ret, struct err *err)
{
	static const char sql[] = "SELECT * FROM run WHERE id = :id";
	cleanup(stmt_done) struct stmt *stmt = NULL;
	int r;

	r = stmt_open(db, sql, &stmt, err);
	if (r < 0)
		return r;
	stmt_bind_int(stmt, "id", id);
	r = stmt_read_one(stmt, run_fields, sizeof(*ret), ret, err);
	if (r == -ENOENT)
		return err_set(err, ENOENT, "there is no run %lld", (long long)id);
	return r;
}

void db_run_release(struct db_run *run)
{
	row_release(run_fields, sizeof(*run), run);
}

int db_run_abandon(struct db *db, int64_t job, const char *detail, int64_t now, struct err *err)
{
	static const char sql[] =
		"UPDATE run SET outcome = 'infra', detail = :detail, ended = :ended "
		"WHERE outcome IS NULL AND (:job = 0 OR job = :job)";
	cleanup(stmt_done) struct stmt *stmt = NULL;
	int r;

	r = stmt_open(db, sql, &stmt, err);
	if (r < 0)
		return r;
	stmt_bind_text(stmt, "detail", detail);
	stmt_bind_int(stmt, "ended", now);
	stmt_bind_int(stmt, "job", job);
	r = stmt_change(stmt, err);
	return r < 0 ? r : 0;
}

int db_run_list(struct db *db, int64_t job, struct db_run **ret, size_t *ret_n, struct err *err)
{
	static const char sql[] = "SELECT * FROM run WHERE job = :job ORDER BY id";
	cleanup(stmt_done) struct stmt *stmt = NULL;
	void *rows = NULL;
	int r;

	r = stmt_open(db, sql, &stmt, err);
	if (r < 0)
		return r;
	stmt_bind_int(stmt, "job", job);
	r = stmt_read_all(stmt, run_fields, sizeof(**ret), &rows, ret_n, err);
	if (r == 0)
		*ret = rows;
	return r;
}

void db_runs_free(struct db_run *runs, size_t n)
{
	rows_free(run_fields, sizeof(*runs), runs, n);
}
