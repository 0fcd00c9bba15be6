/* The planner, over jobs recorded in a database in memory: what is to be done next? */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "daemon/planner.h"

#define JOB                                                                                        \
	"[job]\nname = t\n[range]\nrepo = /r\ngood = g\nbad = b\n[test]\nbenchmark = x\n"          \
	"[search]\nsamples = 3\n"
#define FACTS "{\"metric\":\"time\",\"better\":\"lower\",\"unit\":\"s\"}"

/*
 * A commit as one word: N not built, F build failed, B built; then its boots: a number is a sample
 * in tenths, P a panic, I an infrastructure failure, X a retired sample; then =V a mark.
 */
struct world {
	struct db *db;
	int64_t job;
	struct view view;
	struct plan plan;
};

static void add_run(struct world *w, int64_t commit, const char *outcome, double value, int retired)
{
	struct db_run run = {.job = w->job, .commit = commit, .number = NAN};
	struct err err = {0};
	char text[32];

	assert_int_equal(db_run_insert(w->db, &run, &run.id, &err), 0);
	run.outcome = (char *)outcome;
	run.number = value;
	run.ended = 1;
	snprintf(text, sizeof(text), "%g", value);
	run.value = isfinite(value) ? text : NULL;
	run.metrics = (char *)"{}";
	assert_int_equal(db_run_finish(w->db, &run, &err), 0);
	if (retired)
		assert_int_equal(db_run_retire(w->db, run.id, 1, "t", NULL, &err), 0);
}

static void add_commit(struct world *w, const char *word, int index)
{
	char sha[41], *end;
	struct db_commit row = {.job = w->job, .sha = sha, .label = sha, .subject = (char *)"s"};
	const char *p = word;
	struct err err = {0};

	snprintf(sha, sizeof(sha), "%040x", index + 1);
	row.role = index == 0 ? DB_ROLE_GOOD : index == 1 ? DB_ROLE_BAD : DB_ROLE_CANDIDATE;
	assert_int_equal(db_commit_insert(w->db, &row, &row.id, &err), 0);
	row.build = *p == 'B' ? DB_BUILD_OK : *p == 'F' ? DB_BUILD_FAILED : DB_BUILD_NONE;
	row.build_error = *p == 'F' ? (char *)"a.c:1: error: no" : NULL;
	row.kernel = row.build_key = row.image = (char *)"k";
	for (p++; *p; p = *p == ',' ? p + 1 : p) {
		if (*p == 'P')
			add_run(w, row.id, "panic", NAN, 0);
		else if (*p == 'I')
			add_run(w, row.id, "infra", NAN, 0);
		if (*p == 'P' || *p == 'I') {
			p++;
			continue;
		}
		if (*p == '=') {
			row.mark = (char *)(p + 1);
			break;
		}
		int retired = *p == 'X';
		double v = strtod(p + retired, &end);

		assert_ptr_not_equal(end, p + retired);
		add_run(w, row.id, "ok", v / 10, retired);
		p = end;
	}
	assert_int_equal(db_commit_update(w->db, &row, &err), 0);
}

static void make_world(struct world *w, const char *extra, const char *const *commits, int64_t now)
{
	char *text = xasprintf("%s%s", JOB, extra);
	struct db_job job = {.state = DB_JOB_RUNNING,
		.owner_name = (char *)"o",
		.name = (char *)"t",
		.host = (char *)"h",
		.text = text,
		.where = (char *)"w",
		.dir = (char *)"/",
		.facts = (char *)FACTS,
		.started = 1000};
	struct err err = {0};

	assert_int_equal(db_open(":memory:", &w->db, &err), 0);
	assert_int_equal(db_begin(w->db, &err), 0);
	assert_int_equal(db_job_insert(w->db, &job, &w->job, &err), 0);
	job.id = w->job;
	assert_int_equal(db_job_update(w->db, &job, &err), 0);
	for (int i = 0; commits[i]; i++)
		add_commit(w, commits[i], i);
	assert_int_equal(db_commit(w->db, &err), 0);
	if (view_load(w->db, w->job, &w->view, &err) < 0)
		fail_msg("%s", err.msg);
	plan_next(&w->view, now, &w->plan);
	free(text);
}

static void end_world(struct world *w)
{
	view_release(&w->view);
	db_close(w->db);
}

/* "build 0", "measure 0 1 0", "pick", "end RESULT" */
static void describe(const struct plan *plan, char *out, size_t size)
{
	size_t n;

	switch (plan->action) {
	case PLAN_BUILD:
		snprintf(out, size, "build %zu", plan->commit);
		break;
	case PLAN_PICK:
		snprintf(out, size, "pick");
		break;
	case PLAN_END:
		snprintf(out, size, "end %s", plan->failed ? "failed" : plan->result);
		break;
	case PLAN_MEASURE:
		n = (size_t)snprintf(out, size, "measure");
		for (size_t i = 0; i < plan->n_boots && n < size; i++)
			n += (size_t)snprintf(out + n, size - n, " %zu", plan->boots[i]);
		break;
	}
}

static const struct {
	const char *name, *extra, *commits[6], *plan;
} cases[] = {
	{"good end first", "", {"N", "N"}, "build 0"},
	{"then the bad end", "", {"B", "N"}, "build 1"},
	{"ends alternately", "", {"B", "B"}, "measure 0 1 0 1 0 1"},
	{"only what is missing", "", {"B10,10", "B13"}, "measure 1 0 1"},
	{"infrastructure does not count", "", {"BII", "B"}, "measure 0 1 0 1 0 1"},
	{"good end does not build", "", {"F", "N"}, "end failed"},
	{"bad end does not build", "", {"B", "F"}, "end failed"},
	{"bad end panics twice", "", {"B10", "BPP"}, "end failed"},
	{"one panic of an end is chance", "", {"B10", "BP"}, "measure 1 0 1 0 1"},
	{"ends alike: more of them", "", {"B10,11,12", "B10,11,12"}, "measure 0 1 0 1"},
	{"ends differ: pick", "", {"B10,10.1,10.2", "B13,13.1,13.2"}, "pick"},
	{"better is worse", "", {"B13,13.1,13.2", "B10,10.1,10.2"}, "end not-reproducible"},
	{"candidate is built", "", {"B10,10.1,10.2", "B13,13.1,13.2", "N"}, "build 2"},
	{"and measured", "", {"B10,10.1,10.2", "B13,13.1,13.2", "B"}, "measure 2 2 2"},
	{"until it has enough", "", {"B10,10.1,10.2", "B13,13.1,13.2", "B10"}, "measure 2 2"},
	{"split samples: more", "", {"B10,10.1,10.2", "B13,13.1,13.2", "B10,10,13"}, "measure 2 2"},
	{"judged: pick", "", {"B10,10.1,10.2", "B13,13.1,13.2", "B10,10,10.1"}, "pick"},
	{"build failed: skip", "", {"B10,10.1,10.2", "B13,13.1,13.2", "F"}, "pick"},
	{"one panic: again", "", {"B10,10.1,10.2", "B13,13.1,13.2", "BP"}, "measure 2 2 2"},
	{"two panics: skip", "", {"B10,10.1,10.2", "B13,13.1,13.2", "BPP"}, "pick"},
	{"marked: not measured", "", {"B10,10.1,10.2", "B13,13.1,13.2", "N=bad"}, "pick"},
	{"retired sample is replaced", "", {"B10,10.1,10.2", "B13,13.1,13.2", "B10,X99,10"},
		"measure 2"},
	{"retired end sample is replaced", "", {"B10,10.1,X99", "B13,13.1,13.2"}, "measure 0"},
	{"budget of boots", "max-runs = 7\n", {"B10,10.1,10.2", "B13,13.1,13.2", "B"}, "measure 2"},
	{"budget used up", "max-runs = 6\n", {"B10,10.1,10.2", "B13,13.1,13.2", "B"},
		"end inconclusive"},
	{"time used up", "max-hours = 10s\n", {"B10,10.1,10.2", "B13,13.1,13.2", "N"},
		"end inconclusive"},
	{"threshold beyond both", "[test]\nthreshold = 5\n", {"B10,10.1,10.2", "B13,13.1,13.2"},
		"end not-reproducible"},
};

static void test_plans(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world w = {0};
		char got[200];

		make_world(&w, cases[i].extra, cases[i].commits, 60000);
		describe(&w.plan, got, sizeof(got));
		if (strcmp(got, cases[i].plan) != 0)
			fail_msg("%s: planned \"%s\", expected \"%s\" (%s)", cases[i].name, got,
				cases[i].plan, w.plan.reason);
		end_world(&w);
	}
}

static void test_not_reproducible(void **state)
{
	const char *const commits[] = {"B10,11,12,10,11,12,10,11,12,10,11,12",
		"B12,11,10,12,11,10,12,11,10,12,11,10", NULL};
	struct world w = {0};
	char got[200];

	(void)state;
	make_world(&w, "", commits, 60000);
	describe(&w.plan, got, sizeof(got));
	assert_string_equal(got, "end not-reproducible");
	assert_non_null(strstr(w.plan.reason, "good 1.1 (12 boots), bad 1.1 (12 boots) s"));
	end_world(&w);
}

static void test_verdicts(void **state)
{
	static const struct {
		const char *word;
		enum verdict verdict;
	} rows[] = {
		{"N", VERDICT_NONE},
		{"F", VERDICT_SKIP},
		{"BPP", VERDICT_SKIP},
		{"BP", VERDICT_NONE},
		{"B10,10,10", VERDICT_GOOD},
		{"B13,13,13", VERDICT_BAD},
		{"BP10,10,10", VERDICT_GOOD},
		{"B10,13,10,13,10,13,10,13,10", VERDICT_UNSURE},
		{"B13,13,13=good", VERDICT_GOOD},
		{"F=skip", VERDICT_SKIP},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *const commits[] = {
			"B10,10.1,10.2", "B13,13.1,13.2", rows[i].word, NULL};
		struct world w = {0};

		make_world(&w, "", commits, 60000);
		if (w.view.commits[2].verdict != rows[i].verdict)
			fail_msg("%s is %s", rows[i].word, verdict_name(w.view.commits[2].verdict));
		end_world(&w);
	}
}

static void test_failure_is_bad(void **state)
{
	const char *const commits[] = {"B10,10.1,10.2", "B13,13.1,13.2", "BPP", NULL};
	struct world w = {0};

	(void)state;
	make_world(&w, "[boot]\nfailure = bad\n", commits, 60000);
	assert_int_equal(w.view.commits[2].verdict, VERDICT_BAD);
	end_world(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plans),
		cmocka_unit_test(test_not_reproducible),
		cmocka_unit_test(test_verdicts),
		cmocka_unit_test(test_failure_is_bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
