#ifndef BISECT_TREE_H
#define BISECT_TREE_H

/*
 * The source tree of a build slot: brings the folder slot/src from whatever tree it holds to that
 * of another commit, touching only the files that differ, so that make stays incremental.
 *
 * slot/tree says what slot/src holds. It is marked before anything changes with every tree whose
 * files may be found there, so after a kill at any moment, or a full disk, the next call repairs by
 * rewriting whatever any of them has otherwise. The mark counts within one boot of the host only:
 * nothing is synced, and after a power cut the folder is made anew.
 *
 * The repository, bare or not and of whatever owner, is only read. The caller holds the slot's
 * lock. Blocks on the disk.
 */

#include <stddef.h>

#include "base/err.h"
#include "base/hash.h"
#include "bisect/repo.h"

#define TREE_ID_SIZE REPO_ID_SIZE

struct tree_change {
	size_t written, removed; /* files */
	int fresh;		 /* nothing that was in the slot could be used */
};

/* The id of a commit's tree. */
int tree_find(
	struct repo *repo, const char *commit, char ret_id[static TREE_ID_SIZE], struct err *err);

/* SHA-256 over the paths, modes and contents of those files of a tree that are wanted. */
int tree_digest(struct repo *repo, const char *id, int (*wanted)(const char *path),
	char ret_hex[static HASH_HEX_SIZE], struct err *err);

/* Bring slot/src (made when missing) to a tree. ret may be NULL. */
int tree_checkout(struct repo *repo, const char *id, const char *slot, struct tree_change *ret,
	struct err *err);

#endif
