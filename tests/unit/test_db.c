/* The database: every struct there and back, migrations, refusals, crashes and a full disk. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/alloc.h"
#include "base/file.h"
#include "db/db.h"
#include "db/event.h"
#include "db/job.h"
#include "db/run.h"
#include "db/stmt.h"
#include "base/banned.h"

static struct err err; /* the last failure's; cmocka runs one test at a time */

struct place {
	char dir[64], path[96];
	struct db *db;
};

static int setup(void **state)
{
	struct place *place = xcalloc(1, sizeof(*place));

	snprintf(place->dir, sizeof(place->dir), "/tmp/test_db.XXXXXX");
	assert_non_null(mkdtemp(place->dir));
	snprintf(place->path, sizeof(place->path), "%s/kbisectd.db", place->dir);
	if (db_open(place->path, &place->db, &err) < 0)
		fail_msg("%s", err.msg);
	*state = place;
	return 0;
}

static int teardown(void **state)
{
	struct place *place = *state;

	db_close(place->db);
	file_remove(place->dir, &err);
	free(place);
	return 0;
}

static void reopen(struct place *place)
{

	db_close(place->db);
	place->db = NULL;
	if (db_open(place->path, &place->db, &err) < 0)
		fail_msg("%s", err.msg);
}

#define OK(call)                                                                                   \
	do {                                                                                       \
		int ok_r = (call);                                                                 \
                                                                                                   \
		if (ok_r < 0)                                                                      \
			fail_msg("%s: %d %s", #call, ok_r, err.msg);                               \
	} while (0)

/* SQL from outside, as a person with the sqlite3 shell would. */
static void sql_outside(const char *path, const char *sql)
{
	sqlite3 *handle;

	assert_int_equal(sqlite3_open(path, &handle), SQLITE_OK);
	assert_int_equal(sqlite3_exec(handle, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(handle);
}

static int64_t number(struct db *db, const char *sql)
{
	sqlite3_stmt *handle;
	int64_t v;

	assert_int_equal(sqlite3_prepare_v2(db->handle, sql, -1, &handle, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(handle), SQLITE_ROW);
	v = sqlite3_column_int64(handle, 0);
	sqlite3_finalize(handle);
	return v;
}

static int64_t add_job(struct db *db, enum db_job_state state)
{
	struct db_job job = {
		.owner = 1000, .owner_name = (char *)"eve", .name = (char *)"j", .state = state};
	int64_t id = 0;

	job.text = (char *)"[job]\n";
	OK(db_begin(db, &err));
	OK(db_job_insert(db, &job, &id, &err));
	OK(db_commit(db, &err));
	return id;
}

static int64_t add_commit(struct db *db, int64_t job)
{
	struct db_commit commit = {.job = job, .sha = (char *)"abc", .role = DB_ROLE_GOOD};
	int64_t id = 0;

	OK(db_begin(db, &err));
	OK(db_commit_insert(db, &commit, &id, &err));
	OK(db_commit(db, &err));
	return id;
}

static int64_t add_run(struct db *db, int64_t job, int64_t commit)
{
	struct db_run run = {.job = job, .commit = commit, .number = NAN, .started = 5};
	int64_t id = 0;

	OK(db_begin(db, &err));
	OK(db_run_insert(db, &run, &id, &err));
	OK(db_commit(db, &err));
	return id;
}

static void same(const char *a, const char *b)
{
	if (!a || !b)
		assert_ptr_equal(a, b);
	else
		assert_string_equal(a, b);
}

/* Jobs. */

static void check_job(struct db *db, const struct db_job *want)
{
	cleanup(db_job_release) struct db_job got = {0};

	OK(db_job_get(db, want->id, &got, &err));
	assert_int_equal(got.id, want->id);
	assert_int_equal(got.owner, want->owner);
	same(got.owner_name, want->owner_name);
	same(got.name, want->name);
	same(got.host, want->host);
	assert_int_equal(got.state, want->state);
	same(got.result, want->result);
	same(got.reason, want->reason);
	same(got.summary, want->summary);
	same(got.text, want->text);
	same(got.where, want->where);
	same(got.dir, want->dir);
	same(got.facts, want->facts);
	assert_int_equal(got.submitted, want->submitted);
	assert_int_equal(got.started, want->started);
	assert_int_equal(got.ended, want->ended);
	assert_int_equal(got.infra, want->infra);
}

static void test_job(void **state)
{
	struct place *place = *state;
	struct db_job jobs[] = {
		{0, 1000, (char *)"eve", (char *)"a", (char *)"compass", DB_JOB_QUEUED, NULL, NULL,
			NULL, (char *)"[job]\nname = \xc3\xa4\n", (char *)"x.conf", (char *)"/d",
			(char *)"{}", 1, 2, 3, 4},
		{0, 4294967294, (char *)"", (char *)"b", NULL, DB_JOB_DONE, (char *)"culprit",
			(char *)"it's \"him\"", (char *)"{\"a\":1}", (char *)"", NULL, NULL, NULL,
			1389174839000, 0, 0, 0},
	};

	for (size_t i = 0; i < 2; i++) {
		OK(db_begin(place->db, &err));
		OK(db_job_insert(place->db, &jobs[i], &jobs[i].id, &err));
		OK(db_commit(place->db, &err));
		assert_int_equal(jobs[i].id, i + 1);
		check_job(place->db, &jobs[i]);
	}
	for (int s = DB_JOB_QUEUED; s <= DB_JOB_CANCELLED; s++) {
		jobs[0].state = (enum db_job_state)s;
		jobs[0].result = s % 2 ? (char *)"set" : NULL;
		jobs[0].reason = s % 2 ? NULL : (char *)"because";
		jobs[0].ended = s * 10;
		OK(db_begin(place->db, &err));
		OK(db_job_update(place->db, &jobs[0], &err));
		OK(db_commit(place->db, &err));
		check_job(place->db, &jobs[0]);
		check_job(place->db, &jobs[1]);
	}
	reopen(place);
	check_job(place->db, &jobs[0]);
}

static void test_not_there(void **state)
{
	struct place *place = *state;
	struct db_job job = {.id = 7};
	struct db_run run = {.id = 8};

	assert_int_equal(db_job_get(place->db, 7, &job, &err), -ENOENT);
	assert_string_equal(err.msg, "there is no job 7");
	assert_int_equal(db_run_get(place->db, 8, &run, &err), -ENOENT);
	assert_string_equal(err.msg, "there is no run 8");
	assert_int_equal(job.id, 7); /* untouched */
	OK(db_begin(place->db, &err));
	assert_int_equal(db_job_update(place->db, &job, &err), -ENOENT);
	assert_string_equal(err.msg, "there is no job 7");
	assert_int_equal(db_run_retire(place->db, 8, 1, "eve", "odd", &err), -ENOENT);
	db_rollback(place->db);
}

struct ids {
	int64_t id[16];
	int n, stop_at;
};

static int collect(void *arg, const struct db_job *job)
{
	struct ids *ids = arg;

	assert_null(job->text);
	assert_null(job->facts);
	assert_non_null(job->name);
	ids->id[ids->n++] = job->id;
	return ids->n == ids->stop_at ? -EINTR : 0;
}

static void test_job_list(void **state)
{
	struct place *place = *state;
	static const enum db_job_state states[] = {DB_JOB_DONE, DB_JOB_QUEUED, DB_JOB_RUNNING,
		DB_JOB_DONE, DB_JOB_HELD, DB_JOB_CANCELLED, DB_JOB_QUEUED, DB_JOB_FAILED};
	static const struct {
		unsigned mask;
		int64_t limit;
		int stop_at, r;
		int64_t want[9]; /* ends with 0 */
	} cases[] = {
		{~0U, 0, 0, 0, {8, 7, 6, 5, 4, 3, 2, 1}},
		{~0U, 3, 0, 0, {8, 7, 6}},
		{1U << DB_JOB_DONE, 0, 0, 0, {4, 1}},
		{1U << DB_JOB_QUEUED | 1U << DB_JOB_RUNNING | 1U << DB_JOB_HELD, 0, 0, 0,
			{7, 5, 3, 2}},
		{1U << DB_JOB_QUEUED | 1U << DB_JOB_CANCELLED, 2, 0, 0, {7, 6}},
		{1U << DB_JOB_FAILED, 0, 0, 0, {8}},
		{0, 0, 0, 0, {0}},
		{~0U, 0, 2, -EINTR, {8, 7}},
	};

	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		add_job(place->db, states[i]);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ids ids = {.stop_at = cases[i].stop_at};
		int n = 0;

		assert_int_equal(
			db_job_list(place->db, cases[i].mask, cases[i].limit, collect, &ids, &err),
			cases[i].r);
		while (cases[i].want[n])
			n++;
		assert_int_equal(ids.n, n);
		for (int k = 0; k < n; k++)
			assert_int_equal(ids.id[k], cases[i].want[k]);
	}
}

/* A list may be read while another of the same kind is being read. */
static int nested(void *arg, const struct db_job *job)
{
	struct ids ids = {0};

	(void)job;
	OK(db_job_list(arg, ~0U, 0, collect, &ids, &err));
	assert_int_equal(ids.n, 3);
	return 0;
}

static void test_nested_list(void **state)
{
	struct place *place = *state;

	for (int i = 0; i < 3; i++)
		add_job(place->db, DB_JOB_DONE);
	OK(db_job_list(place->db, ~0U, 0, nested, place->db, &err));
}

/* Commits. */

static void check_commit(const struct db_commit *got, const struct db_commit *want)
{
	assert_int_equal(got->id, want->id);
	assert_int_equal(got->job, want->job);
	same(got->sha, want->sha);
	same(got->label, want->label);
	same(got->subject, want->subject);
	assert_int_equal(got->role, want->role);
	assert_int_equal(got->build, want->build);
	same(got->build_key, want->build_key);
	same(got->kernel, want->kernel);
	same(got->image, want->image);
	same(got->build_error, want->build_error);
	same(got->build_log, want->build_log);
	assert_int_equal(got->build_ms, want->build_ms);
	same(got->mark, want->mark);
	same(got->mark_by, want->mark_by);
	same(got->mark_why, want->mark_why);
}

static void test_commit(void **state)
{
	struct place *place = *state;
	int64_t job = add_job(place->db, DB_JOB_RUNNING),
		other = add_job(place->db, DB_JOB_RUNNING);
	struct db_commit commits[] = {
		{0, job, (char *)"aa", (char *)"v6.1", (char *)"Linux 6.1", DB_ROLE_GOOD,
			DB_BUILD_OK, (char *)"key", (char *)"/k", (char *)"sum", NULL,
			(char *)"/log", 1234, NULL, NULL, NULL},
		{0, job, (char *)"bb", NULL, NULL, DB_ROLE_BAD, DB_BUILD_NONE, NULL, NULL, NULL,
			NULL, NULL, 0, NULL, NULL, NULL},
		{0, job, (char *)"cc", (char *)"cc", (char *)"", DB_ROLE_CANDIDATE, DB_BUILD_FAILED,
			NULL, NULL, NULL, (char *)"x.c:1: error", (char *)"/log2", 5,
			(char *)"skip", (char *)"eve", (char *)"odd"},
	};
	struct db_commit *list = NULL;
	size_t n = 0;

	add_commit(place->db, other);
	for (int i = 0; i < 3; i++) {
		OK(db_begin(place->db, &err));
		OK(db_commit_insert(place->db, &commits[i], &commits[i].id, &err));
		OK(db_commit(place->db, &err));
	}
	commits[1].build = DB_BUILD_OK;
	commits[1].build_key = (char *)"k2";
	commits[1].mark = (char *)"bad";
	commits[2].mark = commits[2].mark_by = NULL;
	OK(db_begin(place->db, &err));
	OK(db_commit_update(place->db, &commits[1], &err));
	OK(db_commit_update(place->db, &commits[2], &err));
	OK(db_commit(place->db, &err));
	OK(db_commit_list(place->db, job, &list, &n, &err));
	assert_int_equal(n, 3);
	for (int i = 0; i < 3; i++)
		check_commit(&list[i], &commits[i]);
	db_commits_free(list, n);
	OK(db_commit_list(place->db, 99, &list, &n, &err));
	assert_int_equal(n, 0);
	assert_null(list);
}

/* Runs and samples. */

static void check_run(const struct db_run *got, const struct db_run *want)
{
	assert_int_equal(got->id, want->id);
	assert_int_equal(got->job, want->job);
	assert_int_equal(got->commit, want->commit);
	same(got->outcome, want->outcome);
	same(got->detail, want->detail);
	same(got->accel, want->accel);
	same(got->timing, want->timing);
	same(got->dir, want->dir);
	assert_int_equal(got->boot_ms, want->boot_ms);
	assert_int_equal(got->test_ms, want->test_ms);
	assert_int_equal(got->started, want->started);
	assert_int_equal(got->ended, want->ended);
	same(got->value, want->value);
	same(got->metrics, want->metrics);
	if (isnan(want->number))
		assert_true(isnan(got->number));
	else
		assert_true(got->number == want->number);
	assert_int_equal(got->retired, want->retired);
	same(got->retired_by, want->retired_by);
	same(got->retired_why, want->retired_why);
}

static void test_run(void **state)
{
	struct place *place = *state;
	int64_t job = add_job(place->db, DB_JOB_RUNNING), commit = add_commit(place->db, job);
	struct db_run run = {.job = job, .commit = commit, .dir = (char *)"/r/1", .started = 9};
	struct db_run *list = NULL;
	size_t n = 0;

	run.number = NAN;
	OK(db_begin(place->db, &err));
	OK(db_run_insert(place->db, &run, &run.id, &err));
	OK(db_commit(place->db, &err));
	OK(db_run_list(place->db, job, &list, &n, &err));
	assert_int_equal(n, 1);
	check_run(&list[0], &run);
	db_runs_free(list, n);

	run.outcome = (char *)"ok";
	run.accel = (char *)"tcg";
	run.timing = (char *)"virtual";
	run.boot_ms = 2100;
	run.test_ms = 900;
	run.ended = 12;
	run.value = (char *)"2317.0";
	run.number = 2317;
	run.metrics =
		(char *)"{\"mean-4\":{\"value\":2317.0,\"text\":\"2317.0\",\"all\":[\"2317.0\","
			"\"9\"]},\"other\":{\"value\":null,\"text\":\"n/a\"}}";
	OK(db_begin(place->db, &err));
	OK(db_run_finish(place->db, &run, &err));
	OK(db_commit(place->db, &err));
	for (int i = 0; i < 2; i++) {
		cleanup(db_run_release) struct db_run got = {0};

		OK(db_run_get(place->db, run.id, &got, &err));
		check_run(&got, &run);
		run.retired = 1;
		run.retired_by = (char *)"eve";
		run.retired_why = (char *)"host was busy";
		OK(db_begin(place->db, &err));
		OK(db_run_retire(place->db, run.id, 1, "eve", "host was busy", &err));
		OK(db_commit(place->db, &err));
	}
	assert_int_equal(number(place->db, "SELECT count(*) FROM sample"), 2);
	assert_int_equal(
		number(place->db, "SELECT value = 2317.0 AND text = '2317.0' AND every = "
				  "'[\"2317.0\",\"9\"]' FROM sample WHERE metric = 'mean-4'"),
		1);
	assert_int_equal(
		number(place->db, "SELECT value IS NULL AND text = 'n/a' AND every IS NULL FROM "
				  "sample WHERE metric = 'other'"),
		1);
}

static void test_run_refusals(void **state)
{
	struct place *place = *state;
	int64_t job = add_job(place->db, DB_JOB_RUNNING),
		other = add_job(place->db, DB_JOB_RUNNING);
	int64_t commit = add_commit(place->db, job);
	struct db_run run = {.outcome = (char *)"ok", .number = NAN};
	static const char *const bad_metrics[] = {"[]", "{", "nonsense"};

	run.id = add_run(place->db, job, commit);
	for (size_t i = 0; i < 3; i++) {
		run.metrics = (char *)bad_metrics[i];
		OK(db_begin(place->db, &err));
		assert_int_equal(db_run_finish(place->db, &run, &err), -EBADMSG);
		assert_non_null(strstr(err.msg, "metrics of run 1: "));
		db_rollback(place->db);
	}
	run.metrics = NULL;
	OK(db_begin(place->db, &err));
	OK(db_run_finish(place->db, &run, &err));
	assert_int_equal(db_run_finish(place->db, &run, &err), -ENOENT); /* only once */
	OK(db_commit(place->db, &err));

	/* A run's commit is one of its own job. */
	run = (struct db_run){.job = other, .commit = commit};
	OK(db_begin(place->db, &err));
	assert_int_equal(db_run_insert(place->db, &run, NULL, &err), -EINVAL);
	assert_int_equal(db_commit(place->db, &err), -ECANCELED);
}

static void test_abandon(void **state)
{
	struct place *place = *state;
	int64_t job[2], run[2][2];
	static const struct {
		int job; /* 1 or 2, 0 = all */
		const char *outcome[2];
	} cases[] = {{2, {NULL, "infra"}}, {0, {"infra", "infra"}}};

	for (int i = 0; i < 2; i++) {
		int64_t commit;
		struct db_run done = {.outcome = (char *)"ok", .ended = 3, .number = 1};

		job[i] = add_job(place->db, DB_JOB_RUNNING);
		commit = add_commit(place->db, job[i]);
		run[i][0] = add_run(place->db, job[i], commit);
		run[i][1] = done.id = add_run(place->db, job[i], commit);
		OK(db_begin(place->db, &err));
		OK(db_run_finish(place->db, &done, &err));
		OK(db_commit(place->db, &err));
	}
	for (size_t c = 0; c < 2; c++) {
		OK(db_begin(place->db, &err));
		OK(db_run_abandon(place->db, cases[c].job ? job[cases[c].job - 1] : 0,
			"the daemon was restarted", 77, &err));
		OK(db_commit(place->db, &err));
		for (int i = 0; i < 2; i++) {
			cleanup(db_run_release) struct db_run open = {0}, done = {0};

			OK(db_run_get(place->db, run[i][0], &open, &err));
			OK(db_run_get(place->db, run[i][1], &done, &err));
			same(open.outcome, cases[c].outcome[i]);
			assert_int_equal(open.ended, cases[c].outcome[i] ? 77 : 0);
			same(done.outcome, "ok");
			assert_int_equal(done.ended, 3);
		}
	}
}

/* Events and mail. */

static int count_event(void *arg, const struct db_event *event)
{
	int *n = arg;

	assert_int_equal(event->at, 100 + *n);
	same(event->kind, "note");
	same(event->text, *n ? NULL : "hello");
	same(event->data, *n ? "{}" : NULL);
	++*n;
	return 0;
}

static void test_event(void **state)
{
	struct place *place = *state;
	int64_t job = add_job(place->db, DB_JOB_RUNNING),
		other = add_job(place->db, DB_JOB_RUNNING);
	struct db_event events[] = {
		{0, job, 100, (char *)"note", (char *)"hello", NULL},
		{0, other, 5, (char *)"state", NULL, NULL},
		{0, job, 101, (char *)"note", NULL, (char *)"{}"},
	};
	int n = 0;

	for (int i = 0; i < 3; i++) {
		OK(db_begin(place->db, &err));
		OK(db_event_insert(place->db, &events[i], &events[i].id, &err));
		OK(db_commit(place->db, &err));
	}
	OK(db_event_list(place->db, job, 0, count_event, &n, &err));
	assert_int_equal(n, 2);
	n = 1;
	OK(db_event_list(place->db, job, events[0].id, count_event, &n, &err));
	assert_int_equal(n, 2);
	OK(db_event_list(place->db, job, events[2].id, count_event, &n, &err));
	assert_int_equal(n, 2);
}

static void test_mail(void **state)
{
	struct place *place = *state;
	int64_t job = add_job(place->db, DB_JOB_DONE);
	struct db_mail mails[] = {
		{0, job, DB_MAIL_QUEUED, 0, 20, (char *)"<1@h>", (char *)"{}", NULL},
		{0, job, DB_MAIL_QUEUED, 2, 10, (char *)"<2@h>", (char *)"{}", (char *)"away"},
	};

	for (int i = 0; i < 2; i++) {
		OK(db_begin(place->db, &err));
		OK(db_mail_insert(place->db, &mails[i], &mails[i].id, &err));
		OK(db_commit(place->db, &err));
	}
	/* The second is due first; then the first; then none. */
	for (int i = 1; i >= 0; i--) {
		cleanup(db_mail_release) struct db_mail got = {0};

		OK(db_mail_next(place->db, &got, &err));
		assert_int_equal(got.id, mails[i].id);
		assert_int_equal(got.attempts, mails[i].attempts);
		assert_int_equal(got.next, mails[i].next);
		same(got.message_id, mails[i].message_id);
		same(got.error, mails[i].error);
		mails[i].state = i ? DB_MAIL_REJECTED : DB_MAIL_SENT;
		mails[i].error = (char *)"550 no";
		OK(db_begin(place->db, &err));
		OK(db_mail_update(place->db, &mails[i], &err));
		OK(db_commit(place->db, &err));
	}
	for (int i = 0; i < 2; i++) {
		cleanup(db_mail_release) struct db_mail got = {0};

		assert_int_equal(db_mail_next(place->db, &got, &err), -ENOENT);
		assert_int_equal(db_mail_of_job(place->db, 99, &got, &err), -ENOENT);
		OK(db_mail_of_job(place->db, job, &got, &err));
		assert_int_equal(got.id, mails[1].id);
		assert_int_equal(got.state, DB_MAIL_REJECTED);
		same(got.error, "550 no");
	}
	OK(db_begin(place->db, &err));
	assert_int_equal(db_mail_insert(place->db, &mails[0], NULL, &err), -EINVAL); /* twice */
}

/* Transactions. */

static void test_failure_undoes(void **state)
{
	struct place *place = *state;
	int64_t job = add_job(place->db, DB_JOB_RUNNING);
	struct db_event good = {0, job, 1, (char *)"note", NULL, NULL};
	struct db_event orphan = {0, 999, 1, (char *)"note", NULL, NULL};

	OK(db_begin(place->db, &err));
	OK(db_event_insert(place->db, &good, NULL, &err));
	assert_int_equal(db_event_insert(place->db, &orphan, NULL, &err), -EINVAL);
	/* What follows in the same transaction is refused, so nothing of it is half kept. */
	assert_int_equal(db_event_insert(place->db, &good, NULL, &err), -ECANCELED);
	assert_int_equal(db_commit(place->db, &err), -ECANCELED);
	assert_int_equal(number(place->db, "SELECT count(*) FROM event"), 0);
	OK(db_begin(place->db, &err));
	assert_int_equal(db_begin(place->db, &err), -EBUSY);
	OK(db_event_insert(place->db, &good, NULL, &err));
	OK(db_commit(place->db, &err));
	assert_int_equal(number(place->db, "SELECT count(*) FROM event"), 1);
	OK(db_begin(place->db, &err));
	OK(db_event_insert(place->db, &good, NULL, &err));
	db_rollback(place->db);
	db_rollback(place->db);
	assert_int_equal(number(place->db, "SELECT count(*) FROM event"), 1);
}

static void test_busy(void **state)
{
	struct place *place = *state;
	sqlite3 *other;

	assert_int_equal(sqlite3_open(place->path, &other), SQLITE_OK);
	assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(db_begin(place->db, &err), -EBUSY);
	assert_non_null(strstr(err.msg, "another process holds the database"));
	sqlite3_close(other);
	OK(db_begin(place->db, &err));
}

/* Files that are not ours to open, and what the refusal says. */

static void test_refused_files(void **state)
{
	struct place *place = *state;
	static const struct {
		const char *sql, *bytes; /* one of them */
		int r;
		const char *says;
	} cases[] = {
		{"PRAGMA user_version = 99", NULL, -EPROTO,
			"was written by a newer kbisectd (schema version 99, this one knows up to "
			"1)"},
		{"PRAGMA application_id = 5", NULL, -EMEDIUMTYPE, "another program's database"},
		{NULL,
			"This is a text file, and rather longer than a hundred bytes, so that "
			"nobody can take it for a database that is too short to read its header.",
			-EMEDIUMTYPE, "this is not a database"},
		{NULL, "short", -EMEDIUMTYPE, "this is not a database"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cleanup(buf_release) struct buf before = BUF_INIT, after = BUF_INIT;

		db_close(place->db);
		place->db = NULL;
		if (cases[i].sql)
			sql_outside(place->path, cases[i].sql);
		else
			OK(file_write(
				place->path, cases[i].bytes, strlen(cases[i].bytes), 0600, &err));
		OK(file_read(place->path, 1 << 20, &before, &err));
		assert_int_equal(db_open(place->path, &place->db, &err), cases[i].r);
		if (!strstr(err.msg, cases[i].says) || !strstr(err.msg, place->path))
			fail_msg("%s", err.msg);
		OK(file_read(place->path, 1 << 20, &after, &err));
		assert_int_equal(before.len, after.len);
		assert_memory_equal(before.data, after.data, before.len);
		assert_null(place->db);
		OK(file_remove(place->path, &err));
		OK(db_open(place->path, &place->db, &err));
	}
}

/* A newer daemon that was killed leaves a write-ahead log: that is not touched either. */
static void test_newer_with_wal(void **state)
{
	struct place *place = *state;
	cleanup(free) char *wal = xasprintf("%s-wal", place->path);
	struct stat before, after;
	pid_t pid;
	int status;

	add_job(place->db, DB_JOB_DONE);
	db_close(place->db);
	place->db = NULL;
	pid = fork();
	if (pid == 0) {
		sqlite3 *handle;

		sqlite3_open(place->path, &handle);
		sqlite3_exec(handle, "PRAGMA user_version = 2", NULL, NULL, NULL);
		raise(SIGKILL);
	}
	waitpid(pid, &status, 0);
	assert_int_equal(stat(wal, &before), 0);
	assert_true(before.st_size > 0);
	assert_int_equal(db_open(place->path, &place->db, &err), -EPROTO);
	assert_int_equal(stat(wal, &after), 0);
	assert_int_equal(before.st_size, after.st_size);
	sql_outside(place->path, "PRAGMA user_version = 1");
	OK(db_open(place->path, &place->db, &err));
	assert_int_equal(number(place->db, "SELECT count(*) FROM job"), 1);
}

static void test_open_errors(void **state)
{
	struct db *db = NULL;

	(void)state;
	assert_int_equal(db_open("/nonexistent/x.db", &db, &err), -EACCES);
	assert_non_null(strstr(err.msg, "cannot open the database /nonexistent/x.db"));
	assert_null(db);
}

static void test_damaged(void **state)
{
	struct place *place = *state;
	struct db_job job = {0};
	char junk[4096];
	FILE *f;
	int r;

	add_job(place->db, DB_JOB_DONE);
	db_close(place->db);
	place->db = NULL;
	memset(junk, 0xa5, sizeof(junk));
	f = fopen(place->path, "r+e");
	assert_non_null(f);
	fseek(f, 4096, SEEK_SET); /* the first page tells the schema and stays */
	for (int i = 0; i < 10; i++)
		fwrite(junk, 1, sizeof(junk), f);
	fclose(f);
	OK(db_open(place->path, &place->db, &err));
	r = db_job_get(place->db, 1, &job, &err);
	assert_int_equal(r, -EUCLEAN);
	assert_non_null(strstr(err.msg, ".recover"));
}

/* An empty schema in a file of version 0 is new; migrating twice changes nothing. */
static void test_migrate(void **state)
{
	struct place *place = *state;

	assert_int_equal(number(place->db, "PRAGMA user_version"), 1);
	assert_int_equal(number(place->db, "PRAGMA foreign_keys"), 1);
	assert_int_equal(number(place->db, "PRAGMA synchronous"), 2);
	assert_int_equal(number(place->db, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
	assert_int_equal(number(place->db, "SELECT count(*) FROM sqlite_schema WHERE type = "
					   "'table' AND name NOT LIKE 'sqlite%' AND sql NOT LIKE "
					   "'%STRICT%'"),
		0);
	add_job(place->db, DB_JOB_DONE);
	reopen(place);
	reopen(place);
	assert_int_equal(number(place->db, "SELECT count(*) FROM job"), 1);
}

/* Crashes. */

/* Jobs and their events in pairs, each pair one transaction, told to the parent after commit. */
static void write_pairs(const char *path, int fd)
{
	struct db *db = NULL;
	struct db_job job = {.owner_name = (char *)"e", .name = (char *)"n", .text = (char *)"t"};
	struct db_event event = {.kind = (char *)"state"};

	if (db_open(path, &db, NULL) < 0)
		_exit(1);
	for (;;) {
		if (db_begin(db, NULL) < 0 || db_job_insert(db, &job, &event.job, NULL) < 0)
			_exit(2);
		if (db_event_insert(db, &event, NULL, NULL) < 0 || db_commit(db, NULL) < 0)
			_exit(3);
		if (write(fd, &event.job, sizeof(event.job)) != sizeof(event.job))
			_exit(4);
	}
}

static void test_kill(void **state)
{
	struct place *place = *state;
	int64_t told = 0;

	for (int round = 0; round < 20; round++) {
		struct timespec pause = {0, 3000000 + round * 1700000};
		int fds[2], status;
		pid_t pid;
		int64_t id;

		assert_int_equal(pipe(fds), 0);
		pid = fork();
		if (pid == 0)
			write_pairs(place->path, fds[1]);
		close(fds[1]);
		assert_int_equal(read(fds[0], &id, sizeof(id)), sizeof(id));
		told = id;
		nanosleep(&pause, NULL);
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		assert_true(WIFSIGNALED(status));
		while (read(fds[0], &id, sizeof(id)) == sizeof(id))
			told = id;
		close(fds[0]);
		reopen(place);
		assert_true(number(place->db, "SELECT max(id) FROM job") >= told);
		assert_true(number(place->db, "SELECT max(id) FROM job") <= told + 1);
		assert_int_equal(number(place->db, "SELECT count(*) = max(id) FROM job"), 1);
		assert_int_equal(number(place->db, "SELECT (SELECT count(*) FROM job) = (SELECT "
						   "count(DISTINCT job) FROM event)"),
			1);
		assert_int_equal(number(place->db, "SELECT count(*) FROM pragma_integrity_check "
						   "WHERE integrity_check <> 'ok'"),
			0);
	}
	assert_true(told >= 20);
}

/* A file size limit fails like a full disk, and for everyone, not only for root. */
static void test_full_disk(void **state)
{
	struct place *place = *state;
	struct rlimit old, small;
	struct db_job job = {.owner_name = (char *)"e", .name = (char *)"n"};
	cleanup(free) char *text = xcalloc(1, 20001);
	int64_t kept = 0, id;
	int r = 0;

	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	small = old;
	small.rlim_cur = 300 * 1024;
	setrlimit(RLIMIT_FSIZE, &small);
	memset(text, 'x', 20000);
	job.text = text;
	for (int i = 0; i < 100 && r == 0; i++) {
		OK(db_begin(place->db, &err));
		r = db_job_insert(place->db, &job, &id, &err);
		if (r == 0)
			r = db_commit(place->db, &err);
		kept += r == 0;
	}
	if (r != -ENOSPC)
		fail_msg("%d %s", r, err.msg);
	if (!strstr(err.msg, "disk full") || !strstr(err.msg, place->path))
		fail_msg("%s", err.msg);
	assert_true(kept > 0);
	assert_int_equal(number(place->db, "SELECT count(*) FROM job"), kept);
	setrlimit(RLIMIT_FSIZE, &old);
	signal(SIGXFSZ, SIG_DFL);
	add_job(place->db, DB_JOB_QUEUED);
	reopen(place);
	assert_int_equal(number(place->db, "SELECT count(*) FROM job"), kept + 1);
	assert_int_equal(number(place->db, "SELECT count(*) FROM pragma_integrity_check WHERE "
					   "integrity_check <> 'ok'"),
		0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_job),
		T(test_not_there),
		T(test_job_list),
		T(test_nested_list),
		T(test_commit),
		T(test_run),
		T(test_run_refusals),
		T(test_abandon),
		T(test_event),
		T(test_mail),
		T(test_failure_undoes),
		T(test_busy),
		T(test_refused_files),
		T(test_newer_with_wal),
		T(test_open_errors),
		T(test_damaged),
		T(test_migrate),
		T(test_kill),
		T(test_full_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
