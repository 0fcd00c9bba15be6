#ifndef DAEMON_RPC_H
#define DAEMON_RPC_H

/*
 * JSON-RPC 2.0 as pure functions: one line of foreign bytes becomes a request or the error reply
 * that it deserves. Nothing here blocks, logs, or trusts the bytes. https://www.jsonrpc.org
 *
 * Two things of the standard are refused, each with its own sentence: batches (send one request a
 * line instead) and parameters by position (name them). An id is a string, a number or null and is
 * echoed as it came; a request without id is a notification.
 */

#include "base/err.h"
#include "base/json.h"

/* What a line may hold at most, so that a short line cannot cost much memory once parsed. */
#define RPC_DEPTH_MAX 32
#define RPC_VALUES_MAX 10000

struct rpc_request {
	json_t *root; /* owns all that follows */
	json_t *id;   /* NULL = notification */
	const char *method;
	json_t *params; /* an object, or NULL */
};

/* Blank lines are passed over without an answer: people press return. */
int rpc_blank(const char *line, size_t len);

/* NULL and a request to release, or the error reply (a new reference). */
json_t *rpc_parse(const char *line, size_t len, struct rpc_request *ret);

void rpc_release(struct rpc_request *request);
static inline void cleanup_rpc_release(struct rpc_request *request)
{
	rpc_release(request);
}

/*
 * Hold params against a method's list, "job, follow?": every name must be known, and those without
 * a question mark must be there. -EINVAL with a sentence that names what is known.
 */
int rpc_check(const char *list, const json_t *params, struct err *err);

/* Replies and notifications, new references. id is borrowed (NULL gives null); the rest is taken.
 */
json_t *rpc_result(json_t *id, json_t *result);
json_t *rpc_error(json_t *id, int code, const char *text);
json_t *rpc_notification(const char *method, json_t *params);

#endif
