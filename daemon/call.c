/* Calls and streams: what the methods hold of a connection. */
#include "daemon/conn.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "daemon/rpc.h"
#include "base/banned.h"

struct call *call_new(struct conn *conn, json_t *id)
{
	struct call *call = xcalloc(1, sizeof(*call));

	call->conn = conn;
	call->id = json_incref(id);
	call->peer = conn->peer;
	LIST_INSERT_HEAD(&conn->calls, call, link);
	conn->n_calls++;
	return call;
}

/* Send the answer, if anybody waits for one, and end the call. */
static void finish(struct call *call, json_t *reply)
{
	struct conn *conn = call->conn;

	if (conn && call->id)
		conn_send(conn, json_incref(reply));
	json_decref(reply);
	if (conn) {
		LIST_REMOVE(call, link);
		conn->n_calls--;
		conn_wake(conn);
	}
	json_decref(call->id);
	free(call);
}

const struct control_peer *call_peer(const struct call *call)
{
	return &call->peer;
}

void call_reply(struct call *call, json_t *result)
{
	finish(call, rpc_result(call->id, result));
}

void call_error(struct call *call, int code, const char *fmt, ...)
{
	cleanup(free) char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		abort();
	va_end(ap);
	finish(call, rpc_error(call->id, code, text));
}

struct stream *call_stream(struct call *call, json_t *result, void (*gone)(void *arg), void *arg)
{
	struct stream *stream = NULL;

	if (call->conn) {
		stream = xcalloc(1, sizeof(*stream));
		*stream = (struct stream){.conn = call->conn, .gone = gone, .arg = arg};
		LIST_INSERT_HEAD(&call->conn->streams, stream, link);
	}
	call_reply(call, result);
	return stream;
}

void stream_send(struct stream *stream, const char *method, json_t *params)
{
	if (stream)
		conn_send(stream->conn, rpc_notification(method, params));
	else
		json_decref(params);
}

void stream_end(struct stream *stream)
{
	if (!stream)
		return;
	LIST_REMOVE(stream, link);
	conn_wake(stream->conn);
	free(stream);
}

void call_orphan_all(struct conn *conn)
{
	while (!LIST_EMPTY(&conn->calls)) {
		struct call *call = LIST_FIRST(&conn->calls);

		LIST_REMOVE(call, link);
		call->conn = NULL;
	}
	/* From the front each time: `gone` may end other streams of the same connection. */
	while (!LIST_EMPTY(&conn->streams)) {
		struct stream *stream = LIST_FIRST(&conn->streams);

		LIST_REMOVE(stream, link);
		stream->gone(stream->arg);
		free(stream);
	}
}
