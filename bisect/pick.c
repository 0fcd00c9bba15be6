#include "bisect/pick.h"

#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "bisect/weight.h"
#include "base/banned.h"

/* The commit's ancestors and itself (graph->n bytes). Free it. */
static unsigned char *ancestors(const struct graph *graph, uint32_t commit)
{
	unsigned char *mark = xcalloc((size_t)graph->n + 1, 1);

	mark[commit] = 1;
	graph_mark_ancestors(graph, mark);
	return mark;
}

/* keep = what one verdict leaves of keep. */
static void apply(const struct graph *graph, uint32_t commit, int good, unsigned char *keep)
{
	cleanup(free) unsigned char *below = ancestors(graph, commit);

	for (uint32_t i = 0; i < graph->n; i++)
		if (below[i] == good)
			keep[i] = 0;
}

/* A commit marked good that contains this one, or UINT32_MAX. */
static uint32_t good_above(const struct graph *graph, const unsigned char *marks, uint32_t bad)
{
	cleanup(free) unsigned char *above = xcalloc((size_t)graph->n + 1, 1);

	above[bad] = 1;
	for (uint32_t i = bad + 1; i < graph->n; i++) {
		for (GRAPH_PARENTS(graph, i, at))
			above[i] |= above[graph->parents[at]];
		if (above[i] && marks[i] == PICK_GOOD)
			return i;
	}
	return UINT32_MAX;
}

static int find_conflict(const struct graph *graph, const unsigned char *marks, struct pick *pick)
{
	for (uint32_t i = 0; i < graph->n; i++) {
		uint32_t good;

		if (marks[i] != PICK_BAD)
			continue;
		good = good_above(graph, marks, i);
		if (good == UINT32_MAX)
			continue;
		pick->answer = PICK_CONFLICT;
		pick->good = good;
		pick->bad = i;
		return 1;
	}
	return 0;
}

/* Decide among the candidates that are left; old[] are their numbers in the whole graph. */
static void choose(const struct graph *left, const uint32_t *old, const unsigned char *marks,
	struct pick *pick)
{
	cleanup(free) unsigned char *skip = xcalloc((size_t)left->n + 1, 1);
	uint32_t next;

	for (uint32_t i = 0; i < left->n; i++)
		skip[i] = marks[old[i]] == PICK_SKIP;
	while (pick->steps < 32 && (UINT64_C(1) << pick->steps) < left->n)
		pick->steps++;
	if (left->n <= 1) {
		pick->answer = left->n ? PICK_CULPRIT : PICK_EMPTY;
		pick->next = left->n ? old[0] : 0;
		return;
	}
	next = weight_choose(left, skip);
	pick->answer = next == UINT32_MAX ? PICK_SET : PICK_NEXT;
	pick->next = next == UINT32_MAX ? 0 : old[next];
}

void pick(const struct graph *graph, const unsigned char *marks, struct pick *ret)
{
	cleanup(graph_release) struct graph left = GRAPH_INIT;
	cleanup(free) unsigned char *keep = xcalloc((size_t)graph->n + 1, 1);
	struct pick pick = {0};

	pick.set = xcalloc((size_t)graph->n + 1, sizeof(pick.set[0]));
	memset(keep, 1, graph->n);
	if (!find_conflict(graph, marks, &pick)) {
		for (uint32_t i = 0; i < graph->n; i++)
			if (marks[i] == PICK_GOOD || marks[i] == PICK_BAD)
				apply(graph, i, marks[i] == PICK_GOOD, keep);
		graph_subset(graph, keep, &left, pick.set);
		pick.left = left.n;
		choose(&left, pick.set, marks, &pick);
	}
	*ret = pick;
}

void pick_release(struct pick *pick)
{
	free(pick->set);
	*pick = (struct pick){0};
}
