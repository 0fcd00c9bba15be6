#ifndef DAEMON_COMMIT_JSON_H
#define DAEMON_COMMIT_JSON_H

/* The COMMIT objects of the steps' answers (step.h). Blocks on the disk. */

#include "base/json.h"
#include "bisect/commit.h"

/*
 * {id, label, subject}; with COMMIT_FULL also body, author, date, diffstat and parents, which are
 * short ones. *ret is a new reference.
 */
int commit_json(
	struct repo *repo, const char *id, enum commit_parts parts, json_t **ret, struct err *err);

#endif
