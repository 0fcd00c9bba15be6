#ifndef BISECT_COMMIT_H
#define BISECT_COMMIT_H

/*
 * What a commit says about itself, as a plain value: commit_read, use, commit_release. All text is
 * valid UTF-8 whatever the commit's own encoding. Reading blocks on the disk; the diffstat of a big
 * merge may take seconds, so it is only made when asked for.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "bisect/repo.h"

struct commit {
	char id[REPO_ID_SIZE];
	char *label;	/* as repo_label */
	char *subject;	/* the first paragraph on one line */
	char *body;	/* the rest, "" when there is none */
	char *author;	/* Name <address> */
	int64_t date;	/* the author's, in seconds since 1970 */
	char *diffstat; /* against the first parent; NULL when not asked for */
	char (*parents)[REPO_ID_SIZE];
	size_t nparents;
};

enum commit_parts { COMMIT_SHORT, COMMIT_FULL /* with the diffstat */ };

int commit_read(struct repo *repo, const char *id, enum commit_parts parts, struct commit *ret,
	struct err *err);
void commit_release(struct commit *commit);

static inline void cleanup_commit_release(struct commit *commit)
{
	commit_release(commit);
}

#endif
