#ifndef DAEMON_CONTROL_H
#define DAEMON_CONTROL_H

/*
 * The control socket: a Unix stream socket, one JSON-RPC 2.0 object a line, both ways.
 *
 * This module owns the listening socket and the connections: peer credentials, limits on line
 * length, connections and queued output, framing, JSON-RPC errors, permission. What the methods do
 * is the table that it is given at construction. A method answers its call once, at once or later
 * (call_reply or call_error take the call over); when the peer goes away first, the answer is
 * dropped silently. Never blocks, but for the look-up of a peer's groups at its first request.
 *
 * A peer that has shut down its writing side (nc -N) gets all its answers, then the connection is
 * closed; what it wrote without a newline at the end counts as a line. The requests of one
 * connection are started in order, 32 at most being open at once; the others wait. Batches and
 * parameters by position are refused (daemon/rpc.h).
 */

#include <event2/event.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"

#define CONTROL_PROTOCOL 1

/* JSON-RPC error codes: the standard's own, and ours. */
enum control_error {
	CONTROL_PARSE = -32700,
	CONTROL_INVALID_REQUEST = -32600,
	CONTROL_NO_METHOD = -32601,
	CONTROL_INVALID_PARAMS = -32602,
	CONTROL_INTERNAL = -32603,
	CONTROL_NOT_FOUND = 1, /* no such job, run, commit */
	CONTROL_DENIED = 2,    /* the peer may not do this */
	CONTROL_REFUSED = 3,   /* a bad job file */
	CONTROL_STATE = 4,     /* not in the job's present state */
	CONTROL_BUSY = 5,      /* too many connections: try again later */
};

struct control;
struct call;

struct control_peer {
	uid_t uid;
	gid_t gid;
	pid_t pid;
	int member; /* may submit and read */
	int admin;  /* may change every job */
};

/* params is an object (or NULL when the request had none), borrowed for the call's duration. */
typedef void (*control_fn)(void *arg, struct call *call, const json_t *params);

struct control_method {
	const char *name;
	control_fn fn;
	const char *params; /* "job, follow?": only these, and those without ? must be there */
	const char *help;
};

/*
 * line_max: bytes of one request; a longer one gets an error reply and is skipped.
 * queue_max: bytes of unread output; who has more than that when the next message comes is dropped.
 * At half of it no more requests are taken, and who does not read on within seconds is dropped,
 * too. connections_max: beyond it, the newcomer gets one error line and is closed.
 */
struct control_limits {
	size_t line_max, queue_max;
	int connections_max;
};

struct control_spec {
	struct event_base *base;
	const char *path; /* socket to create; unused with fd >= 0 */
	int fd;		  /* a listening socket from systemd, or -1 */
	const char *
		group; /* members may submit and read; also the socket's group. NULL = owner only */
	const char *admins; /* user names that may change every job, blank-separated, or NULL */
	struct control_limits limits;
	const struct control_method *methods; /* ends with name = NULL */
	void *arg;
};

/*
 * Listen. A live daemon on the path is -EADDRINUSE with a sentence; a dead one's socket file is
 * replaced. Root and the daemon's own user are always members and administrators. A group that does
 * not exist is -ENOENT. Sets SIGPIPE to be ignored.
 */
int control_new(const struct control_spec *spec, struct control **ret, struct err *err);

/* After a reload: limits, group and admins for connections and calls from now on. */
void control_configure(struct control *control, const char *group, const char *admins,
	const struct control_limits *limits);

/*
 * Closes everything (`gone` of every stream is called) and removes the socket file that it made.
 * Calls that are still open must be answered nevertheless, into the void. Not from within a method.
 */
void control_free(struct control *control);
DEFINE_CLEANUP(control_free, struct control *);

int control_connections(const struct control *control);

const struct control_peer *call_peer(const struct call *call);

/*
 * Answer and end the call. Takes the reference (NULL answers null). A call without id (a
 * notification) gets nothing.
 */
void call_reply(struct call *call, json_t *result);
void call_error(struct call *call, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Streams: answer the call and keep a handle for notifications on its connection. `gone` is called
 * once, when the peer closes or is dropped; the stream is invalid from then on. It is called
 * straight from the loop, never from within the functions here (but for control_free). A call whose
 * peer has gone already gives NULL, which the others pass over; `gone` is not called then.
 * stream_send takes the reference. stream_end frees the handle without closing the connection;
 * gone is not called.
 */
struct stream;
struct stream *call_stream(struct call *call, json_t *result, void (*gone)(void *arg), void *arg);
void stream_send(struct stream *stream, const char *method, json_t *params);
void stream_end(struct stream *stream);

#endif
