#ifndef DAEMON_SENDMAIL_H
#define DAEMON_SENDMAIL_H

/*
 * Hands a message to a sendmail command, as every mail system brings one. Blocks, so only steps
 * call it. What the command says goes to stderr.
 */

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "daemon/mail.h"

/*
 * Run command (words separated by blanks; no shell) with text (lines end with LF) on its stdin.
 * "-i --" and the addresses that are MAIL_LEFT are put behind it, unless it has a -t of its own and
 * so takes them from the To header: with both, some sendmails leave out the addresses named twice.
 * 0: it took the message for all of them. -MAIL_REFUSED: its exit status says that no retry can
 * help. timeout_ms 0 = 10 minutes.
 */
int sendmail_send(const char *command, struct mail_rcpts *rcpts, const struct buf *text,
	int64_t timeout_ms, struct err *err);

#endif
