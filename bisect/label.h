#ifndef BISECT_LABEL_H
#define BISECT_LABEL_H

/*
 * The tags of a repository by the commit that they lead to, read once: a stable kernel tree has
 * thousands, and a log names a commit a line. Also what is needed to suggest a name for a mistyped
 * one. Reading the tags blocks on the disk; a tag that cannot be read is left out.
 */

#include <stddef.h>

struct git_repository;
struct labels;

struct labels *labels_load(struct git_repository *git);
void labels_free(struct labels *labels);

/* The best tag of a commit: annotated before plain, then the shortest, then by name; or NULL. */
const char *labels_find(const struct labels *labels, const char *id);

/* refs/tags/v6.1 -> v6.1, refs/remotes/origin/x -> origin/x. Points into refname. */
const char *label_short_name(const char *refname);

/* How many letters must be added, left out or changed to get from one name to the other. */
size_t label_distance(const char *a, const char *b);

#endif
