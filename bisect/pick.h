#ifndef BISECT_PICK_H
#define BISECT_PICK_H

/*
 * The classic search: what do the verdicts so far leave, and which commit is tested next? A pure
 * function of a graph of candidates (range.h) and verdicts on some of them. It looks for one first
 * bad commit: everything that contains it is bad, everything else good.
 *
 * Life cycle: pick, use, pick_release.
 */

#include <stddef.h>
#include <stdint.h>

#include "bisect/graph.h"

enum pick_mark_kind {
	PICK_NONE, /* not tested */
	PICK_GOOD, /* it and its ancestors are no candidates any more */
	PICK_BAD,  /* only it and its ancestors still are */
	PICK_SKIP, /* cannot be told; it stays a candidate and is not asked for again */
};

enum pick_answer {
	PICK_NEXT,    /* test next */
	PICK_CULPRIT, /* next is the first bad commit: no other candidate is left */
	PICK_SET, /* one of set is the first bad commit, and nothing that can be tested says which
		   */
	PICK_CONFLICT, /* good is marked good and contains bad, marked bad */
	PICK_EMPTY,    /* the verdicts leave nobody: there is more than one bad commit */
};

struct pick {
	enum pick_answer answer;
	uint32_t next;
	uint32_t *set;	    /* every remaining candidate, oldest first, whatever the answer */
	uint32_t left;	    /* how many they are */
	uint32_t steps;	    /* about so many more tests: log2 of left, rounded up */
	uint32_t good, bad; /* PICK_CONFLICT */
};

/* marks: one enum pick_mark_kind a commit (graph->n bytes). */
void pick(const struct graph *graph, const unsigned char *marks, struct pick *ret);

void pick_release(struct pick *pick);

static inline void cleanup_pick_release(struct pick *pick)
{
	pick_release(pick);
}

#endif
