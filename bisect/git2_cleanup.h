#ifndef BISECT_GIT2_CLEANUP_H
#define BISECT_GIT2_CLEANUP_H

/* Scope-bound cleanup for libgit2's handles. For the .c files of this room only. */

#include <git2.h>

#include "base/cleanup.h"

DEFINE_CLEANUP(git_commit_free, git_commit *);
DEFINE_CLEANUP(git_diff_free, git_diff *);
DEFINE_CLEANUP(git_diff_stats_free, git_diff_stats *);
DEFINE_CLEANUP(git_object_free, git_object *);
DEFINE_CLEANUP(git_odb_free, git_odb *);
DEFINE_CLEANUP(git_reference_free, git_reference *);
DEFINE_CLEANUP(git_reference_iterator_free, git_reference_iterator *);
DEFINE_CLEANUP(git_revwalk_free, git_revwalk *);
DEFINE_CLEANUP(git_tree_free, git_tree *);
DEFINE_CLEANUP(git_tree_entry_free, git_tree_entry *);

static inline void cleanup_git_buf_dispose(git_buf *buf)
{
	git_buf_dispose(buf);
}

static inline void cleanup_git_oidarray_dispose(git_oidarray *array)
{
	git_oidarray_dispose(array);
}

#endif
