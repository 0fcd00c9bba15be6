#ifndef CLIENT_RPC_H
#define CLIENT_RPC_H

/*
 * A connection to the daemon: calls and their answers, and the notifications of a followed log.
 *
 * Life cycle: rpc_open connects and greets; any number of calls, one at a time; rpc_free.
 *Everything blocks, for a bounded time. Error codes, the same from every function: ENOTCONN no
 *daemon there, or the connection was lost	ETIMEDOUT no answer
 *	EPROTO	 an answer that makes no sense			EIO	  an internal error there
 *	EPERM	 not permitted					ESRCH	  no such job, run or commit
 *	EINVAL	 bad input, refused				EBUSY	  not in the job's state
 */

#include "base/err.h"
#include "base/json.h"

struct rpc;

int rpc_open(const char *path, struct rpc **ret, struct err *err);
void rpc_free(struct rpc *rpc);
DEFINE_CLEANUP(rpc_free, struct rpc *);

/* Call and wait for the answer. Takes params; *ret is a new reference to an object. */
int rpc_call(struct rpc *rpc, const char *method, json_t *params, json_t **ret, struct err *err);

/*
 * The next notification, waiting at most timeout_ms (-1 = for ever) for it; *ret is a new
 * reference to {method, params}. Two codes come without a message: -EAGAIN when the time is over or
 * a signal came, and -EPIPE when the reader of fd_watch went away (a pipe; -1 = nothing).
 */
int rpc_next(struct rpc *rpc, int timeout_ms, int fd_watch, json_t **ret, struct err *err);

#endif
