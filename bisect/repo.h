#ifndef BISECT_REPO_H
#define BISECT_REPO_H

/*
 * A git repository, read and never written to. Bare or not, and whoever owns it: the daemon reads
 * other people's repositories, and runs nothing that they contain.
 *
 * Life cycle: repo_open, use, repo_free. Commits are named by their full hexadecimal id. Everything
 * may block on the disk. Errors are sentences for the person who wrote the job file; a missing
 * revision or file is -ENOENT.
 */

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"

#define REPO_ID_SIZE 41 /* 40 hexadecimal digits and NUL */

struct git_repository;
struct repo;

int repo_open(const char *path, struct repo **ret, struct err *err);
void repo_free(struct repo *repo);

DEFINE_CLEANUP(repo_free, struct repo *);

/* The path that it was opened by, for error texts. */
const char *repo_path(const struct repo *repo);

/*
 * The commit that a branch, tag (annotated or not), id, abbreviation or git expression such as
 * v6.1~3 names. When nothing has that name, the error suggests the nearest one that exists.
 */
int repo_resolve(
	struct repo *repo, const char *revision, char ret_id[static REPO_ID_SIZE], struct err *err);

/*
 * What people call a commit: a tag that points at it (an annotated one rather than a plain one,
 * then the shortest), else its id shortened to 12 digits, or as many as make it unique. Free it.
 */
char *repo_label(struct repo *repo, const char *id);

/* Does the commit's tree have this file or folder? 1, 0, or an error. */
int repo_has(struct repo *repo, const char *id, const char *path, struct err *err);

/* The handle, for the other modules of this room. Borrowed. */
struct git_repository *repo_git(struct repo *repo);

/* Turn libgit2's result code and last error into ours, with words in front. Returns -errno. */
int repo_error(struct repo *repo, int code, struct err *err, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

#endif
