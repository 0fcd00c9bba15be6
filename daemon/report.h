#ifndef DAEMON_REPORT_H
#define DAEMON_REPORT_H

/*
 * The report of a job, and the mail that carries it: one plain sentence first (what, by how much,
 * how sure), then the culprit, the numbers, the log, the machine, the configuration and how to
 * reproduce it. Reads the diary from the database; works for unfinished jobs too.
 */

#include "base/buf.h"
#include "daemon/config.h"
#include "daemon/view.h"

/* Free it. */
char *report_text(const struct config *config, struct db *db, const struct view *view);

/* The mail step's request without the server's settings. The caller owns it. */
json_t *report_mail(const struct config *config, struct db *db, const struct view *view);

/* A log that `git bisect replay` accepts. Free it. */
char *report_git_log(const struct view *view);

/* "the first bad commit is ...: time rises from 4.83 to 6.08 s (+25.9%)". Free it. */
char *report_headline(const struct view *view);

/* The table of the ends and the culprit's neighbours (daemon/numbers.c). */
void report_numbers(const struct view *view, struct buf *out);

/* The culprit's parent that was measured, and the culprit; NULL when there is none. */
const struct view_commit *report_culprit(const struct view *view, const json_t *summary);
const struct view_commit *report_last_good(const struct view *view, const json_t *summary);

#endif
