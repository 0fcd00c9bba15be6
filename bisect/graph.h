#ifndef BISECT_GRAPH_H
#define BISECT_GRAPH_H

/*
 * A commit graph without git: commits are numbered so that parents come before their children, and
 * each has a list of parents inside the graph. All searching is done on this, so it is tested with
 * made-up graphs. Nothing here can fail or block.
 *
 * Life cycle: GRAPH_INIT; for each commit graph_parent for its parents, then graph_commit;
 * graph_release.
 */

#include <stdint.h>
#include <stdlib.h>

struct graph {
	uint32_t n;    /* commits: 0 .. n - 1 */
	uint32_t *end; /* commit i's parents are parents[end[i - 1] (or 0) .. end[i] - 1] */
	uint32_t *parents;
	uint32_t nparents; /* in all */
	size_t cap, parents_cap;
};

#define GRAPH_INIT                                                                                 \
	{                                                                                          \
		0, NULL, NULL, 0, 0, 0                                                             \
	}

/* A parent of the commit that the next graph_commit adds; it must be in the graph already. */
void graph_parent(struct graph *graph, uint32_t parent);

/* Add a commit with the parents named since the last one; returns its number. */
uint32_t graph_commit(struct graph *graph);

static inline uint32_t graph_first(const struct graph *graph, uint32_t commit)
{
	return commit ? graph->end[commit - 1] : 0;
}

/* Each parent of a commit: for (GRAPH_PARENTS(graph, commit, at)) ... graph->parents[at] */
#define GRAPH_PARENTS(graph, commit, at)                                                           \
	uint32_t at = graph_first((graph), (commit));                                              \
	at < (graph)->end[(commit)];                                                               \
	at++

/* Set mark[] for every ancestor of a marked commit (n bytes). */
void graph_mark_ancestors(const struct graph *graph, unsigned char *mark);

/*
 * The graph of the commits with keep[] set. ret_old[i] (room for graph->n) is the number in this
 * graph of commit i in that one. Links between kept commits stay; a set from which nothing in the
 * middle of a path was removed therefore keeps its reachability.
 */
void graph_subset(
	const struct graph *graph, const unsigned char *keep, struct graph *ret, uint32_t *ret_old);

void graph_release(struct graph *graph);

static inline void cleanup_graph_release(struct graph *graph)
{
	graph_release(graph);
}

#endif
