#ifndef BISECT_WEIGHT_H
#define BISECT_WEIGHT_H

/*
 * git's rule for the commit to test next: of N candidates, testing X leaves w(X) of them when it is
 * bad (X and what it reaches) and N - w(X) when it is good, so the best X has the largest
 * min(w, N - w). The rule is git's; the counts here are exact for every commit, in about
 * N x links / 64 word operations. Pure functions of a graph.
 */

#include <stdint.h>

#include "bisect/graph.h"

/* ret[i] (graph->n of them) = commits reachable from i, i included. */
void weight_reach(const struct graph *graph, uint32_t *ret);

/*
 * The commit to test next, or UINT32_MAX when none that can be tested tells anything: every answer
 * would leave all candidates. skip[i] marks commits that cannot be tested (n bytes).
 *
 * Without skips, the first commit with the largest min(w, N - w). With skips, those numbers are
 * multiplied by the chance that a commit can be tested, 0.95 (1 - e^(-r/6)) at r links from the
 * nearest skipped one, because what breaks one build mostly breaks its neighbours. git takes a
 * pseudo-random commit instead; this one is the same each time.
 */
uint32_t weight_choose(const struct graph *graph, const unsigned char *skip);

#endif
