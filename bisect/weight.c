#include "bisect/weight.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/banned.h"

/* 512 candidates a pass: one cache line a commit. */
#define BLOCK_WORDS 8
#define BLOCK_BITS (BLOCK_WORDS * 64)

/* A commit 24 or more links from any skipped one is as likely to be testable as any. */
#define SKIP_REACH 24

struct block {
	uint64_t word[BLOCK_WORDS];
};

/*
 * One pass: which of the candidates first .. first + BLOCK_BITS - 1 does each commit reach? What
 * comes before the first cannot reach any of them, because parents come before children.
 */
static void count_block(
	const struct graph *graph, uint32_t first, struct block *reach, uint32_t *count)
{
	for (uint32_t i = first; i < graph->n; i++) {
		struct block own = {{0}};

		if (i - first < BLOCK_BITS)
			own.word[(i - first) / 64] = UINT64_C(1) << (i - first) % 64;
		for (GRAPH_PARENTS(graph, i, at)) {
			if (graph->parents[at] < first)
				continue;
			for (int k = 0; k < BLOCK_WORDS; k++)
				own.word[k] |= reach[graph->parents[at]].word[k];
		}
		for (int k = 0; k < BLOCK_WORDS; k++)
			count[i] += (uint32_t)__builtin_popcountll(own.word[k]);
		reach[i] = own;
	}
}

void weight_reach(const struct graph *graph, uint32_t *ret)
{
	cleanup(free) struct block *reach = xcalloc((size_t)graph->n + 1, sizeof(*reach));

	memset(ret, 0, graph->n * sizeof(*ret));
	for (uint64_t first = 0; first < graph->n; first += BLOCK_BITS)
		count_block(graph, (uint32_t)first, reach, ret);
}

/* One link further from the skipped commits, along parents and children; 1 when anything moved. */
static int spread(const struct graph *graph, unsigned char *distance, unsigned char now)
{
	int moved = 0;

	for (uint32_t i = 0; i < graph->n; i++) {
		for (GRAPH_PARENTS(graph, i, at)) {
			unsigned char *a = &distance[i], *b = &distance[graph->parents[at]];

			if (*a == now && *b > now + 1) {
				*b = now + 1;
				moved = 1;
			} else if (*b == now && *a > now + 1) {
				*a = now + 1;
				moved = 1;
			}
		}
	}
	return moved;
}

/* Links to the nearest skipped commit, at most SKIP_REACH; NULL when nothing was skipped. */
static unsigned char *skip_distance(const struct graph *graph, const unsigned char *skip)
{
	unsigned char *distance;

	if (!memchr(skip, 1, graph->n))
		return NULL;
	distance = xcalloc(graph->n, 1);
	for (uint32_t i = 0; i < graph->n; i++)
		distance[i] = skip[i] ? 0 : SKIP_REACH;
	for (unsigned char now = 0; now < SKIP_REACH - 1; now++)
		if (!spread(graph, distance, now))
			break;
	return distance;
}

uint32_t weight_choose(const struct graph *graph, const unsigned char *skip)
{
	cleanup(free) uint32_t *reach = xcalloc((size_t)graph->n + 1, sizeof(*reach));
	cleanup(free) unsigned char *distance = skip_distance(graph, skip);
	uint32_t best = UINT32_MAX;
	double best_score = 0;

	weight_reach(graph, reach);
	for (uint32_t i = 0; i < graph->n; i++) {
		uint32_t rest = graph->n - reach[i];
		double score = reach[i] < rest ? reach[i] : rest;

		if (skip[i])
			continue;
		if (distance)
			score *= distance[i] < SKIP_REACH ? 0.95 * (1 - exp(-distance[i] / 6.0))
							  : 0.95;
		if (score > best_score) {
			best_score = score;
			best = i;
		}
	}
	return best;
}
