#include "bisect/range.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "bisect/git2_cleanup.h"
#include "base/banned.h"

_Static_assert(GIT_OID_RAWSZ == sizeof(((struct range *)NULL)->ids[0]), "ids are SHA-1");

/* The slot where an id is, or where it would go. */
static uint32_t slot_of(const struct range *range, const git_oid *oid)
{
	uint32_t at;

	memcpy(&at, oid->id, sizeof(at));
	for (at &= range->nslots - 1; range->slots[at] != RANGE_NONE;
		at = (at + 1) & (range->nslots - 1))
		if (memcmp(range->ids[range->slots[at]], oid->id, GIT_OID_RAWSZ) == 0)
			break;
	return at;
}

/* Keep the table at most half full, so that a search ends soon. */
static void grow_slots(struct range *range)
{
	git_oid oid;

	if (range->graph.n < range->nslots / 2)
		return;
	range->nslots = range->nslots ? range->nslots * 2 : 1024;
	range->slots = xreallocarray(range->slots, range->nslots, sizeof(range->slots[0]));
	memset(range->slots, 0xff, range->nslots * sizeof(range->slots[0]));
	for (uint32_t i = 0; i < range->graph.n; i++) {
		git_oid_fromraw(&oid, range->ids[i]);
		range->slots[slot_of(range, &oid)] = i;
	}
}

static int add_commit(
	struct repo *repo, struct range *range, const git_oid *oid, size_t *cap, struct err *err)
{
	cleanup(git_commit_free) git_commit *commit = NULL;
	int r = git_commit_lookup(&commit, repo_git(repo), oid);
	unsigned nparents;
	uint32_t slot;

	if (r < 0)
		return repo_error(repo, r, err, "cannot walk the range");
	grow_slots(range);
	nparents = git_commit_parentcount(commit);
	for (unsigned i = 0; i < nparents; i++) {
		slot = slot_of(range, git_commit_parent_id(commit, i));
		if (range->slots[slot] != RANGE_NONE)
			graph_parent(&range->graph, range->slots[slot]);
	}
	range->merges += nparents > 1;
	ALLOC_GROW(range->ids, range->graph.n, *cap);
	memcpy(range->ids[range->graph.n], oid->id, GIT_OID_RAWSZ);
	slot = slot_of(range, oid);
	range->slots[slot] = graph_commit(&range->graph);
	return 0;
}

static int start_walk(struct repo *repo, const char *const *good, size_t ngood, const char *bad,
	git_revwalk **ret, struct err *err)
{
	cleanup(git_revwalk_free) git_revwalk *walk = NULL;
	git_oid oid;
	int r = git_revwalk_new(&walk, repo_git(repo));

	if (r == 0)
		r = git_revwalk_sorting(walk, GIT_SORT_TOPOLOGICAL | GIT_SORT_REVERSE);
	if (r == 0)
		r = git_oid_fromstr(&oid, bad);
	if (r == 0)
		r = git_revwalk_push(walk, &oid);
	for (size_t i = 0; i < ngood && r == 0; i++) {
		r = git_oid_fromstr(&oid, good[i]);
		if (r == 0)
			r = git_revwalk_hide(walk, &oid);
	}
	if (r < 0)
		return repo_error(repo, r, err, "cannot walk the range");
	*ret = steal(&walk);
	return 0;
}

int range_load(struct repo *repo, const char *const *good, size_t ngood, const char *bad,
	struct range *ret, struct err *err)
{
	cleanup(range_release) struct range range = {.graph = GRAPH_INIT};
	cleanup(git_revwalk_free) git_revwalk *walk = NULL;
	size_t cap = 0;
	git_oid oid;
	int r = start_walk(repo, good, ngood, bad, &walk, err);

	if (r < 0)
		return r;
	while ((r = git_revwalk_next(&oid, walk)) == 0) {
		r = add_commit(repo, &range, &oid, &cap, err);
		if (r < 0)
			return r;
	}
	if (r != GIT_ITEROVER)
		return repo_error(repo, r, err, "cannot walk the range");
	*ret = range;
	range = (struct range){.graph = GRAPH_INIT};
	return 0;
}

uint32_t range_find(const struct range *range, const char *id)
{
	git_oid oid;

	if (!range->nslots || git_oid_fromstr(&oid, id) < 0)
		return RANGE_NONE;
	return range->slots[slot_of(range, &oid)];
}

void range_id(const struct range *range, uint32_t commit, char ret_id[static REPO_ID_SIZE])
{
	git_oid oid;

	git_oid_fromraw(&oid, range->ids[commit]);
	git_oid_tostr(ret_id, REPO_ID_SIZE, &oid);
}

int range_contains(struct repo *repo, const char *ancestor, const char *commit, struct err *err)
{
	git_oid a, c;
	int r = git_oid_fromstr(&a, ancestor);

	if (r == 0)
		r = git_oid_fromstr(&c, commit);
	if (r == 0 && git_oid_equal(&a, &c))
		return 1;
	if (r == 0)
		r = git_graph_descendant_of(repo_git(repo), &c, &a);
	if (r < 0)
		return repo_error(repo, r, err, "cannot compare %s and %s", ancestor, commit);
	return r;
}

/* Neither contains the other: say where they part. */
static int explain_fork(struct repo *repo, const char *good, const char *bad,
	const char *good_label, const char *bad_label, struct err *err)
{
	cleanup(free) char *base_label = NULL;
	char base_id[REPO_ID_SIZE];
	git_oid g, b, base;
	int r = git_oid_fromstr(&g, good);

	if (r == 0)
		r = git_oid_fromstr(&b, bad);
	if (r == 0)
		r = git_merge_base(&base, repo_git(repo), &g, &b);
	if (r == GIT_ENOTFOUND && git_repository_is_shallow(repo_git(repo)) != 1)
		return err_set(err, EINVAL, "good (%s) and bad (%s) have no history in common",
			good_label, bad_label);
	if (r < 0)
		return repo_error(repo, r, err, "cannot compare good (%s) and bad (%s)", good_label,
			bad_label);
	git_oid_tostr(base_id, sizeof(base_id), &base);
	base_label = repo_label(repo, base_id);
	return err_set(err, EINVAL,
		"good (%s) is not an ancestor of bad (%s): they part at %s, which may serve as "
		"good",
		good_label, bad_label, base_label);
}

int range_check(struct repo *repo, const char *good, const char *bad, struct err *err)
{
	cleanup(free) char *good_label = repo_label(repo, good);
	cleanup(free) char *bad_label = repo_label(repo, bad);
	int r;

	if (strcmp(good, bad) == 0)
		return err_set(err, EINVAL, "good and bad are the same commit (%s)", good_label);
	r = range_contains(repo, good, bad, err);
	if (r != 0)
		return r < 0 ? r : 0;
	r = range_contains(repo, bad, good, err);
	if (r > 0)
		return err_set(err, EINVAL,
			"bad (%s) is an ancestor of good (%s): are good and bad the wrong way "
			"round?",
			bad_label, good_label);
	return r < 0 ? r : explain_fork(repo, good, bad, good_label, bad_label, err);
}

void range_release(struct range *range)
{
	graph_release(&range->graph);
	free(range->ids);
	free(range->slots);
	*range = (struct range){.graph = GRAPH_INIT};
}
