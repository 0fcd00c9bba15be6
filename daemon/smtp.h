#ifndef DAEMON_SMTP_H
#define DAEMON_SMTP_H

/*
 * Carries a message to a mail server (libcurl). Blocks, so only steps call it. The dialogue goes
 * to stderr line by line, without what is said during a login.
 */

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "daemon/mail.h"

enum smtp_tls {
	SMTP_TLS_AUTO, /* STARTTLS if the server offers it; required as soon as there is a login */
	SMTP_TLS_NONE,
	SMTP_TLS_STARTTLS, /* required */
	SMTP_TLS_IMPLICIT  /* TLS from the first byte, as smtps:// also means */
};

struct smtp_server {
	const char *url;		  /* smtp://HOST[:PORT] or smtps://HOST[:PORT] */
	const char *user, *password_file; /* NULL = no login */
	const char *ca_file;		  /* certificates to trust; NULL = the system's */
	enum smtp_tls tls;
	int64_t timeout_ms; /* for each answer; 0 = SMTP_TIMEOUT_MS */
};

/* A server may think about a message for 10 minutes, and giving up earlier sends it twice
   (RFC 5321 4.5.3.2.6). */
#define SMTP_TIMEOUT_MS (10 * 60 * 1000)

/* "auto", "none", "starttls" or "implicit". */
int smtp_tls_parse(const char *name, enum smtp_tls *ret, struct err *err);

/* The message is in other hands now: called at once, before the connection is ended. */
typedef void (*mail_taken_fn)(void *arg, const char *reply);

/*
 * Send text (lines end with CRLF) from the address `from` to all that are MAIL_LEFT. 0: taken for
 * at least one of them; those put off stay MAIL_LEFT, with the server's words. -MAIL_REFUSED: no
 * retry can help. Anything else: nobody has it, try again later.
 */
int smtp_send(const struct smtp_server *server, const char *from, struct mail_rcpts *rcpts,
	const struct buf *text, mail_taken_fn taken, void *arg, struct err *err);

#endif
