#ifndef CLIENT_SUBMIT_H
#define CLIENT_SUBMIT_H

/* A job file's text from keys that were given as options. Pure. */

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "client/options.h"

/*
 * keys: the daemon's list of {section, name}. A given key is "name", or "section.name" where the
 * name stands in two sections; given twice, the last counts. -EINVAL with a sentence for a key that
 * is unknown or ambiguous, and for a value that does not fit on a line.
 */
int submit_text(const json_t *keys, const struct options_key *given, size_t n, struct buf *ret,
	struct err *err);

#endif
