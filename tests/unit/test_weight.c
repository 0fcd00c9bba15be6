#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "bisect/range.h"
#include "bisect/weight.h"

#include "base/clock.h"
#include "dag.h"
#include "gitrepo.h"
#include "base/banned.h"

#define GIT_GRAPHS 100
#define PURE_GRAPHS 500

static uint32_t halves(const struct graph *graph, const uint32_t *reach, uint32_t i)
{
	uint32_t rest = graph->n - reach[i];

	return reach[i] < rest ? reach[i] : rest;
}

static void test_line(void **state)
{
	struct graph graph = GRAPH_INIT;
	unsigned char skip[5] = {0};
	uint32_t reach[5];

	(void)state;
	for (uint32_t i = 0; i < 5; i++) {
		if (i)
			graph_parent(&graph, i - 1);
		graph_commit(&graph);
	}
	weight_reach(&graph, reach);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(reach[i], i + 1);
	assert_int_equal(weight_choose(&graph, skip), 1); /* 2 and 3 are as good: the first */
	skip[1] = skip[2] = 1;
	assert_int_equal(weight_choose(&graph, skip), 0);
	skip[0] = 1;
	assert_int_equal(weight_choose(&graph, skip), 3);
	skip[3] = 1;
	assert_int_equal(weight_choose(&graph, skip), UINT32_MAX);
	graph_release(&graph);

	weight_reach(&graph, reach);
	assert_int_equal(weight_choose(&graph, skip), UINT32_MAX);
}

/* Every count on graphs of up to three blocks, and the choice without skips. */
static void test_against_definition(void **state)
{
	(void)state;
	dag_seed = 7;
	for (int k = 0; k < PURE_GRAPHS; k++) {
		cleanup(graph_release) struct graph graph = GRAPH_INIT;
		uint32_t n = k % 100 ? 1 + dag_random(90) : 600 + dag_random(600), best = 0;

		dag_make(&graph, n, dag_random(60), dag_random(60));
		cleanup(free) unsigned char *by_definition = dag_reach(&graph);
		cleanup(free) unsigned char *skip = xcalloc(n, 1);
		cleanup(free) uint32_t *reach = xcalloc(n, sizeof(*reach));
		weight_reach(&graph, reach);
		for (uint32_t i = 0; i < n; i++) {
			uint32_t count = 0;

			for (size_t j = 0; j < n; j++)
				count += by_definition[(size_t)i * n + j];
			if (count != reach[i])
				fail_msg("graph %d, commit %u: %u, not %u", k, i, reach[i], count);
			if (halves(&graph, reach, i) > best)
				best = halves(&graph, reach, i);
		}
		uint32_t chosen = weight_choose(&graph, skip);
		assert_true(
			chosen == UINT32_MAX ? best == 0 : halves(&graph, reach, chosen) == best);
	}
}

/* After a storm of skips in the middle of a line, the next one is some way off, but no end. */
static void test_away_from_skips(void **state)
{
	cleanup(graph_release) struct graph graph = GRAPH_INIT;
	unsigned char skip[200] = {0};
	uint32_t chosen;

	(void)state;
	for (uint32_t i = 0; i < 200; i++) {
		if (i)
			graph_parent(&graph, i - 1);
		graph_commit(&graph);
	}
	for (uint32_t i = 95; i < 105; i++)
		skip[i] = 1;
	chosen = weight_choose(&graph, skip);
	assert_int_equal(chosen, weight_choose(&graph, skip));
	assert_true(chosen >= 40 && chosen <= 160);
	assert_true(chosen <= 95 - 8 || chosen >= 104 + 8);
}

/* One fast-import stream for all graphs; commits are marked with consecutive numbers. */
static void import_graph(FILE *stream, const struct graph *graph, uint32_t first, int odd_clock)
{
	for (uint32_t i = 0; i < graph->n; i++) {
		/* Clocks are wrong in real history, too. */
		uint32_t date = 1000000000 + i * 60 + dag_random(odd_clock ? 100000 : 30);

		fprintf(stream,
			"reset refs/heads/w\n\ncommit refs/heads/w\nmark :%u\n"
			"committer A <a@b> %u +0000\ndata 0\n",
			first + i, date);
		for (GRAPH_PARENTS(graph, i, at))
			fprintf(stream, "%s :%u\n", at == graph_first(graph, i) ? "from" : "merge",
				first + graph->parents[at]);
	}
}

/* git's list of all candidates with their distance against ours. */
static void compare_with_git(
	struct gitrepo *git, struct repo *repo, const char (*ids)[REPO_ID_SIZE], uint32_t n)
{
	cleanup(range_release) struct range range = {.graph = GRAPH_INIT};
	const char *const goods[] = {ids[dag_random(n - 1)], ids[dag_random(n - 1)]};
	const char *bad = ids[n - 1];
	uint32_t best = 0, lines = 0;
	struct err err = {0};

	if (range_load(repo, goods, 2, bad, &range, &err) < 0)
		fail_msg("%s", err.msg);
	cleanup(free) uint32_t *reach = xcalloc(range.graph.n, sizeof(*reach));
	cleanup(free) unsigned char *skip = xcalloc(range.graph.n, 1);
	weight_reach(&range.graph, reach);
	cleanup(free) char *list =
		gitrepo_sh(git, "git rev-list --bisect-all %s ^%s ^%s", bad, goods[0], goods[1]);
	for (char *line = list; line && *line; lines++) {
		uint32_t distance = (uint32_t)strtoul(strstr(line, "dist=") + 5, NULL, 10), at;
		char id[REPO_ID_SIZE];

		snprintf(id, sizeof(id), "%.40s", line);
		at = range_find(&range, id);
		if (at == RANGE_NONE || halves(&range.graph, reach, at) != distance)
			fail_msg("%s: git says %u", id, distance);
		best = distance > best ? distance : best;
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	assert_int_equal(lines, range.graph.n);
	uint32_t chosen = weight_choose(&range.graph, skip);
	assert_true(chosen == RANGE_NONE ? best == 0 : halves(&range.graph, reach, chosen) == best);
}

static void test_against_git(void **state)
{
	cleanup(repo_free) struct repo *repo = NULL;
	uint32_t commits = 0, n[GIT_GRAPHS];
	struct err err = {0};
	struct gitrepo git;
	FILE *stream;

	(void)state;
	dag_seed = 11;
	gitrepo_init(&git);
	cleanup(free) char *path = xasprintf("%s/stream", git.dir);
	stream = fopen(path, "we");
	assert_non_null(stream);
	for (int g = 0; g < GIT_GRAPHS; g++) {
		cleanup(graph_release) struct graph graph = GRAPH_INIT;

		n[g] = 3 + dag_random(60);
		dag_make(&graph, n[g], dag_random(60), dag_random(60));
		import_graph(stream, &graph, 1 + commits, g % 3 == 0);
		commits += n[g];
	}
	fclose(stream);
	gitrepo_do(&git, "git init -q --bare .\n"
			 "git fast-import --quiet --force --export-marks=marks <stream");
	cleanup(free) char *marks = gitrepo_sh(&git, "sort -t: -k2n marks");
	char(*ids)[REPO_ID_SIZE] = xcalloc(commits, sizeof(*ids));
	char *line = marks;
	for (uint32_t i = 0; i < commits; i++) {
		snprintf(ids[i], REPO_ID_SIZE, "%.40s", strchr(line, ' ') + 1);
		line += strcspn(line, "\n");
		line += *line != 0;
	}
	assert_int_equal(repo_open(git.dir, &repo, &err), 0);
	commits = 0;
	for (int g = 0; g < GIT_GRAPHS; commits += n[g++])
		compare_with_git(&git, repo, (const char(*)[REPO_ID_SIZE])ids + commits, n[g]);
	free(ids);
	gitrepo_remove(&git);
}

/* As large as git's own history. */
static void test_speed(void **state)
{
	cleanup(graph_release) struct graph graph = GRAPH_INIT;
	int64_t start;

	(void)state;
	dag_make(&graph, 82000, 25, 25);
	cleanup(free) unsigned char *skip = xcalloc(graph.n, 1);
	start = clock_mono_ms();
	assert_int_not_equal(weight_choose(&graph, skip), UINT32_MAX);
	print_message("82000 commits, %u links: %lld ms\n", graph.nparents,
		(long long)(clock_mono_ms() - start));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_line),
		cmocka_unit_test(test_against_definition),
		cmocka_unit_test(test_away_from_skips),
		cmocka_unit_test(test_against_git),
		cmocka_unit_test(test_speed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
