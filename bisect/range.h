#ifndef BISECT_RANGE_H
#define BISECT_RANGE_H

/*
 * The candidates of a bisection in git: the ancestors of bad, bad included, that are no ancestors
 * of a good commit, as a graph of numbers (see graph.h) and the id of each.
 *
 * Life cycle: range_check when a job comes in; range_load, use, range_release. Both block on the
 * disk; errors are sentences for the person who named the commits.
 */

#include "base/err.h"
#include "bisect/graph.h"
#include "bisect/repo.h"

#define RANGE_NONE UINT32_MAX

struct range {
	struct graph graph;
	unsigned char (*ids)[20];
	uint32_t *slots; /* hash table from id to number, for range_find */
	uint32_t nslots; /* a power of two, or 0 */
	uint32_t merges; /* candidates with more than one parent, in the range or not */
};

/* Can these two ids be bisected: good is an ancestor of bad, and not the same? -EINVAL if not. */
int range_check(struct repo *repo, const char *good, const char *bad, struct err *err);

int range_load(struct repo *repo, const char *const *good, size_t ngood, const char *bad,
	struct range *ret, struct err *err);

/* The number of a commit, or RANGE_NONE when it is no candidate. */
uint32_t range_find(const struct range *range, const char *id);

/* The id of a number. */
void range_id(const struct range *range, uint32_t commit, char ret_id[static REPO_ID_SIZE]);

/* Is the first one the second or an ancestor of it? 1, 0, or an error. */
int range_contains(struct repo *repo, const char *ancestor, const char *commit, struct err *err);

void range_release(struct range *range);

static inline void cleanup_range_release(struct range *range)
{
	range_release(range);
}

#endif
