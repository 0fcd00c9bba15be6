#ifndef BOOT_CAPLOG_H
#define BOOT_CAPLOG_H

/*
 * A log file for the output of programs that nobody trusts to be brief. It is written in parts, one
 * an attempt; of each part at most a given number of bytes is kept, its beginning and, after a line
 * that counts what was left out, its end, since that is where errors are.
 *
 * Life cycle: caplog_open (the file is emptied), caplog_add..., caplog_part at the end of each
 * part, caplog_close. A failure to write is kept and reported by caplog_part. Blocks on the disk.
 */

#include <stddef.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"

struct caplog;

int caplog_open(const char *path, size_t part_max, struct caplog **ret, struct err *err);
void caplog_add(struct caplog *log, const void *data, size_t len);
void caplog_addf(struct caplog *log, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* End the part. ret (may be NULL) gets the text of the part as it is in the file. */
int caplog_part(struct caplog *log, struct buf *ret, struct err *err);

void caplog_close(struct caplog *log);

DEFINE_CLEANUP(caplog_close, struct caplog *);

#endif
