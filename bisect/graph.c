#include "bisect/graph.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/banned.h"

#define GONE UINT32_MAX

void graph_parent(struct graph *graph, uint32_t parent)
{
	ALLOC_GROW(graph->parents, graph->nparents, graph->parents_cap);
	graph->parents[graph->nparents++] = parent;
}

uint32_t graph_commit(struct graph *graph)
{
	ALLOC_GROW(graph->end, graph->n, graph->cap);
	graph->end[graph->n] = graph->nparents;
	return graph->n++;
}

/* Children come after their parents, so one pass from the newest reaches everything. */
void graph_mark_ancestors(const struct graph *graph, unsigned char *mark)
{
	for (uint32_t i = graph->n; i-- > 0;) {
		if (!mark[i])
			continue;
		for (GRAPH_PARENTS(graph, i, at))
			mark[graph->parents[at]] = 1;
	}
}

void graph_subset(
	const struct graph *graph, const unsigned char *keep, struct graph *ret, uint32_t *ret_old)
{
	cleanup(free) uint32_t *number = xcalloc((size_t)graph->n + 1, sizeof(*number));
	struct graph subset = GRAPH_INIT;

	for (uint32_t i = 0; i < graph->n; i++) {
		number[i] = GONE;
		if (!keep[i])
			continue;
		for (GRAPH_PARENTS(graph, i, at))
			if (number[graph->parents[at]] != GONE)
				graph_parent(&subset, number[graph->parents[at]]);
		number[i] = graph_commit(&subset);
		ret_old[number[i]] = i;
	}
	*ret = subset;
}

void graph_release(struct graph *graph)
{
	free(graph->end);
	free(graph->parents);
	*graph = (struct graph)GRAPH_INIT;
}
