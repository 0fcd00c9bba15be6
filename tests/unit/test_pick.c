#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "bisect/pick.h"

#include "dag.h"
#include "base/banned.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/*
 *      1 -- 2 -- 3
 *     /           \
 *    0 -- 4 -- 5 -- 6 -- 7
 */
static const struct {
	uint32_t n, parents[3];
} branches[] = {
	{0, {0}},
	{1, {0}},
	{1, {1}},
	{1, {2}},
	{1, {0}},
	{1, {4}},
	{2, {3, 5}},
	{1, {6}},
};

static void make_branches(struct graph *graph)
{
	*graph = (struct graph)GRAPH_INIT;
	for (size_t i = 0; i < COUNT(branches); i++) {
		for (uint32_t k = 0; k < branches[i].n; k++)
			graph_parent(graph, branches[i].parents[k]);
		graph_commit(graph);
	}
}

/* marks: one letter a commit, . g b s; set: the numbers that must be left; next: -1 = any in set.
 */
static const struct {
	const char *marks;
	enum pick_answer answer;
	int next;
	const char *set;
} cases[] = {
	{"........", PICK_NEXT, -1, "01234567"},
	{".......b", PICK_NEXT, -1, "01234567"},
	{"......bb", PICK_NEXT, -1, "0123456"},
	/* git keeps a side branch that a good commit does not contain */
	{"...g..b.", PICK_NEXT, -1, "456"},
	{"...g.gb.", PICK_CULPRIT, 6, "6"},
	{"...g.g.b", PICK_NEXT, 6, "67"},
	{"......gb", PICK_CULPRIT, 7, "7"},
	{"b......b", PICK_CULPRIT, 0, "0"},
	{"g..b....", PICK_NEXT, -1, "123"},
	{"gs.b....", PICK_NEXT, 2, "123"},
	{"gssb....", PICK_SET, 0, "123"},
	{"...g.gsb", PICK_SET, 0, "67"},
	{"..gssssb", PICK_SET, 0, "34567"},
	{"ssssssss", PICK_SET, 0, "01234567"},
	/* two bad branches: what they share is at fault */
	{"...b.b..", PICK_CULPRIT, 0, "0"},
	{"g..b.b..", PICK_EMPTY, 0, ""},
	{"b......g", PICK_CONFLICT, 0, ""},
	{"gb.g....", PICK_CONFLICT, 0, ""},
};

static void test_cases(void **state)
{
	cleanup(graph_release) struct graph graph = GRAPH_INIT;

	(void)state;
	make_branches(&graph);
	for (size_t i = 0; i < COUNT(cases); i++) {
		cleanup(pick_release) struct pick result = {0};
		unsigned char marks[COUNT(branches)];
		char set[COUNT(branches) + 1] = "";

		for (size_t k = 0; k < COUNT(branches); k++)
			marks[k] = (unsigned char)(strchr(".gbs", cases[i].marks[k]) - ".gbs");
		pick(&graph, marks, &result);
		for (uint32_t k = 0; k < result.left; k++)
			set[k] = (char)('0' + result.set[k]);
		if (result.answer != cases[i].answer || strcmp(set, cases[i].set) != 0)
			fail_msg("%s: answer %d, left %s", cases[i].marks, result.answer, set);
		if (cases[i].next >= 0 && result.answer <= PICK_CULPRIT &&
			result.next != (uint32_t)cases[i].next)
			fail_msg("%s: next %u", cases[i].marks, result.next);
		if (result.answer == PICK_NEXT && !strchr(set, (int)('0' + result.next)))
			fail_msg("%s: %u is no candidate", cases[i].marks, result.next);
		if (result.answer == PICK_CONFLICT)
			assert_true(marks[result.good] == PICK_GOOD &&
				    marks[result.bad] == PICK_BAD && result.bad < result.good);
	}
}

static void test_steps(void **state)
{
	static const struct {
		uint32_t n, steps;
	} lines[] = {{1, 0}, {2, 1}, {3, 2}, {4, 2}, {5, 3}, {1024, 10}, {1025, 11}};

	(void)state;
	for (size_t i = 0; i < COUNT(lines); i++) {
		cleanup(graph_release) struct graph graph = GRAPH_INIT;
		cleanup(pick_release) struct pick result = {0};
		cleanup(free) unsigned char *marks = xcalloc(lines[i].n, 1);

		dag_make(&graph, lines[i].n, 0, 0);
		pick(&graph, marks, &result);
		assert_int_equal(result.left, lines[i].n);
		assert_int_equal(result.steps, lines[i].steps);
	}
}

/* Could one more test of a commit that is not skipped tell anything? By definition. */
static int can_learn(const struct pick *result, const unsigned char *marks,
	const unsigned char *reach, uint32_t n)
{
	for (uint32_t i = 0; i < result->left; i++) {
		uint32_t inside = 0;

		if (marks[result->set[i]] != PICK_NONE)
			continue;
		for (uint32_t k = 0; k < result->left; k++)
			inside += reach[(size_t)result->set[i] * n + result->set[k]];
		if (inside < result->left)
			return 1;
	}
	return 0;
}

/* A whole search for `culprit` where some commits cannot be tested. Returns the tests it took. */
static uint32_t search(const struct graph *graph, const unsigned char *reach, uint32_t culprit,
	const unsigned char *broken)
{
	cleanup(free) unsigned char *marks = xcalloc(graph->n, 1);
	uint32_t n = graph->n, tests = 0;

	marks[n - 1] = PICK_BAD;
	for (;;) {
		cleanup(pick_release) struct pick result = {0};
		int found = 0;

		pick(graph, marks, &result);
		for (uint32_t i = 0; i < result.left; i++)
			found |= result.set[i] == culprit;
		assert_true(found);
		if (result.answer == PICK_CULPRIT) {
			assert_int_equal(result.next, culprit);
			return tests;
		}
		if (result.answer == PICK_SET) {
			assert_false(can_learn(&result, marks, reach, n));
			return tests;
		}
		assert_int_equal(result.answer, PICK_NEXT);
		assert_int_equal(marks[result.next], PICK_NONE);
		tests++;
		marks[result.next] = broken[result.next]			? PICK_SKIP
				     : reach[(size_t)result.next * n + culprit] ? PICK_BAD
										: PICK_GOOD;
		assert_true(tests <= n);
	}
}

static void test_searches(void **state)
{
	(void)state;
	dag_seed = 5;
	for (int k = 0; k < 300; k++) {
		cleanup(graph_release) struct graph graph = GRAPH_INIT;
		uint32_t n = 2 + dag_random(60), skips = k % 2 ? dag_random(60) : 0;

		dag_make(&graph, n, dag_random(60), dag_random(60));
		cleanup(free) unsigned char *reach = dag_reach(&graph);
		cleanup(free) unsigned char *broken = xcalloc(n, 1);
		for (uint32_t i = 0; i + 1 < n; i++)
			broken[i] = dag_random(100) < skips;
		for (uint32_t culprit = 0; culprit < n; culprit++)
			search(&graph, reach, culprit, broken);
	}
}

/* On a line without skips nobody does better. */
static void test_line_is_binary(void **state)
{
	(void)state;
	for (uint32_t n = 1; n < 70; n++) {
		cleanup(graph_release) struct graph graph = GRAPH_INIT;
		uint32_t most = 0;

		dag_make(&graph, n, 0, 0);
		cleanup(free) unsigned char *reach = dag_reach(&graph);
		cleanup(free) unsigned char *broken = xcalloc(n, 1);
		for (uint32_t culprit = 0; culprit < n; culprit++) {
			uint32_t tests = search(&graph, reach, culprit, broken);

			most = tests > most ? tests : most;
		}
		assert_true((UINT64_C(1) << most) < 2 * (uint64_t)n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_searches),
		cmocka_unit_test(test_line_is_binary),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
