#ifndef TESTS_DAG_H
#define TESTS_DAG_H

/* Random commit graphs, the same on every machine: lines, branches, merges, octopus merges. */

#include <stdint.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "bisect/graph.h"

static uint64_t dag_seed = 1;

static inline uint32_t dag_random(uint32_t below)
{
	dag_seed ^= dag_seed >> 12;
	dag_seed ^= dag_seed << 25;
	dag_seed ^= dag_seed >> 27;
	return (uint32_t)((dag_seed * UINT64_C(2685821657736338717)) >> 33) % below;
}

/*
 * One root, one newest commit that contains all. branching = out of 100, how often a commit's
 * parent is not the one before it; merging = how often it has two to five.
 */
static inline void dag_make(struct graph *graph, uint32_t n, uint32_t branching, uint32_t merging)
{
	cleanup(free) unsigned char *has_child = xcalloc(n, 1);

	*graph = (struct graph)GRAPH_INIT;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t parents = dag_random(100) < merging ? 2 + dag_random(4) : 1;
		uint32_t first = graph->nparents;

		for (uint32_t k = 0; k < parents && i > 0; k++) {
			uint32_t near = i < 8 ? i : 8;
			uint32_t parent = i - 1;
			int twice = 0;

			if (k || dag_random(100) < branching)
				parent = i - 1 - dag_random(near);
			for (uint32_t at = first; at < graph->nparents; at++)
				twice |= graph->parents[at] == parent;
			if (twice)
				continue;
			graph_parent(graph, parent);
			has_child[parent] = 1;
		}
		/* The newest merges whatever was left over. */
		for (uint32_t k = 0; i == n - 1 && k < i; k++)
			if (!has_child[k])
				graph_parent(graph, k);
		graph_commit(graph);
	}
}

/* Reaches by definition, without any cleverness: reach[a * n + b] = a reaches b. Free it. */
static inline unsigned char *dag_reach(const struct graph *graph)
{
	size_t n = graph->n;
	unsigned char *reach = xcalloc(n * n + 1, 1);

	for (uint32_t i = 0; i < n; i++) {
		reach[i * n + i] = 1;
		for (GRAPH_PARENTS(graph, i, at))
			for (size_t k = 0; k < n; k++)
				reach[i * n + k] |= reach[graph->parents[at] * n + k];
	}
	return reach;
}

#endif
