#include "bisect/label.h"

#include <string.h>

#include "base/alloc.h"
#include "bisect/git2_cleanup.h"
#include "base/banned.h"

#define NAME_MAX_COMPARED 128

struct label {
	git_oid commit;
	int annotated;
	char *name;
};

struct labels {
	struct label *all; /* by commit, best first */
	size_t n, cap;
};

static int compare(const void *left, const void *right)
{
	const struct label *a = left, *b = right;
	int by_commit = git_oid_cmp(&a->commit, &b->commit);
	size_t len_a, len_b;

	if (by_commit)
		return by_commit;
	if (a->annotated != b->annotated)
		return b->annotated - a->annotated;
	len_a = strlen(a->name);
	len_b = strlen(b->name);
	if (len_a != len_b)
		return len_a < len_b ? -1 : 1;
	return strcmp(a->name, b->name);
}

static void add_tag(struct labels *labels, const git_reference *ref)
{
	cleanup(git_object_free) git_object *commit = NULL;
	const git_oid *target = git_reference_target(ref);

	if (git_reference_peel(&commit, ref, GIT_OBJECT_COMMIT) < 0)
		return;
	ALLOC_GROW(labels->all, labels->n, labels->cap);
	labels->all[labels->n++] = (struct label){
		.commit = *git_object_id(commit),
		.annotated = target && !git_oid_equal(target, git_object_id(commit)),
		.name = xstrdup(git_reference_shorthand(ref)),
	};
}

struct labels *labels_load(git_repository *git)
{
	cleanup(git_reference_iterator_free) git_reference_iterator *it = NULL;
	struct labels *labels = xcalloc(1, sizeof(*labels));
	git_reference *ref;

	if (git_reference_iterator_glob_new(&it, git, "refs/tags/*") < 0)
		return labels;
	while (git_reference_next(&ref, it) == 0) {
		add_tag(labels, ref);
		git_reference_free(ref);
	}
	if (labels->n)
		qsort(labels->all, labels->n, sizeof(labels->all[0]), compare);
	return labels;
}

void labels_free(struct labels *labels)
{
	if (!labels)
		return;
	for (size_t i = 0; i < labels->n; i++)
		free(labels->all[i].name);
	free(labels->all);
	free(labels);
}

const char *labels_find(const struct labels *labels, const char *id)
{
	size_t lo = 0, hi = labels->n;
	git_oid oid;

	if (git_oid_fromstr(&oid, id) < 0)
		return NULL;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (git_oid_cmp(&labels->all[mid].commit, &oid) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < labels->n && git_oid_equal(&labels->all[lo].commit, &oid) ? labels->all[lo].name
									      : NULL;
}

const char *label_short_name(const char *refname)
{
	static const char *const folders[] = {"refs/tags/", "refs/heads/", "refs/remotes/"};

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		size_t len = strlen(folders[i]);

		if (strncmp(refname, folders[i], len) == 0)
			return refname + len;
	}
	return refname;
}

size_t label_distance(const char *a, const char *b)
{
	size_t row[NAME_MAX_COMPARED + 1];
	size_t len_a = strlen(a), len_b = strlen(b);

	if (len_a > NAME_MAX_COMPARED || len_b > NAME_MAX_COMPARED)
		return len_a > len_b ? len_a : len_b;
	for (size_t j = 0; j <= len_b; j++)
		row[j] = j;
	for (size_t i = 1; i <= len_a; i++) {
		size_t corner = row[0]; /* the cell above and to the left */

		row[0] = i;
		for (size_t j = 1; j <= len_b; j++) {
			size_t best = corner + (a[i - 1] != b[j - 1]);

			corner = row[j];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	return row[len_b];
}
