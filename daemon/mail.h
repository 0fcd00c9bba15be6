#ifndef DAEMON_MAIL_H
#define DAEMON_MAIL_H

/*
 * Mail: addresses are checked and messages composed here (GMime); daemon/smtp.h and
 * daemon/sendmail.h carry them. Nothing here blocks or knows the network.
 *
 * Everything is UTF-8. Names may be in any script and domains may be international; the part of an
 * address before the @ must be ASCII. Control characters never reach a header.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * What the two carriers return, negated, for "refused, and no retry can help". Any other failure
 * is worth a retry. No local system call gives this code, so the two cannot be mixed up.
 */
#define MAIL_REFUSED EREMOTEIO

enum mail_state {
	MAIL_LEFT,	 /* not delivered yet */
	MAIL_TAKEN,	 /* the server has the message for this recipient */
	MAIL_TURNED_DOWN /* the server does not know or does not want this recipient */
};

struct mail_rcpt {
	char *addr; /* USER@HOST in ASCII, as the envelope needs it */
	enum mail_state state;
	char *reply; /* why it was turned down or put off; NULL = no word about it */
};

struct mail_rcpts {
	struct mail_rcpt *v;
	size_t n, cap;
};

struct mail {
	const char *from, *to; /* address lists as people write them; from holds exactly one */
	const char *subject;   /* control characters become blanks */
	const char *body;      /* lines end with \n and are never re-wrapped */
	const char *message_id, *in_reply_to; /* with or without <>; in_reply_to may be NULL */
	int64_t date;			      /* Unix seconds */
};

/* The line ends of the message text: CRLF for SMTP, LF for a sendmail command. */
enum mail_lines { MAIL_LF, MAIL_CRLF };

/* Is it a list of one or more mail addresses, and one Message-ID? If not, err is one sentence. */
int mail_check_addresses(const char *list, struct err *err);
int mail_check_message_id(const char *id, struct err *err);

/* The bare addresses of a list, each once, all MAIL_LEFT. ret must be empty. */
int mail_rcpts_parse(const char *list, struct mail_rcpts *ret, struct err *err);

void mail_rcpts_release(struct mail_rcpts *rcpts);

static inline void cleanup_mail_rcpts_release(struct mail_rcpts *rcpts)
{
	mail_rcpts_release(rcpts);
}

/* Append the whole message, headers and body, to ret. Fails only for a bad address or id. */
int mail_compose(const struct mail *mail, enum mail_lines lines, struct buf *ret, struct err *err);

#endif
