#ifndef DAEMON_MAILER_H
#define DAEMON_MAILER_H

/*
 * Hands the queued mails over, one at a time, each in a mail step. A server that is away is tried
 * again later, for ever, and the mail stays in the database; a refusal for good is recorded. Does
 * not block; sleeps without a wake-up while nothing is queued.
 */

#include "daemon/queue.h"

struct mailer;

/* Of the spec, base, db, recorder, config and program are used. */
struct mailer *mailer_new(const struct queue_spec *spec);

/* Look at the queue now: a mail was queued, or the configuration changed. */
void mailer_kick(struct mailer *mailer);

/* Start nothing more; call fn when the running step, if any, is over. */
void mailer_drain(struct mailer *mailer, void (*fn)(void *arg), void *arg);

/* Ends the running step, whose mail stays queued. */
void mailer_free(struct mailer *mailer);

#endif
