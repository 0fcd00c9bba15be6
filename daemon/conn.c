#include "daemon/conn.h"

#include <errno.h>
#include <event2/buffer.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "daemon/log.h"
#include "daemon/peer.h"
#include "daemon/rpc.h"
#include "base/banned.h"

/* Calls of one connection that may be open at once; its next requests wait in its buffer. */
#define CALLS_MAX 32

/* How often a connection that is stuck or half closed is looked at. */
static const struct timeval WATCH_INTERVAL = {2, 0};

static size_t unsent(const struct conn *conn)
{
	return evbuffer_get_length(bufferevent_get_output(conn->bev));
}

/*
 * So much is unread that no more requests are taken: a client may pipeline without being dropped
 * for answers that it had no chance to read yet.
 */
static int clogged(const struct conn *conn)
{
	return unsent(conn) > conn->control->limits.queue_max / 2;
}

/* Look again later, if there is something to look for. */
static void watch_on(struct conn *conn)
{
	if (!event_pending(conn->watch, EV_TIMEOUT, NULL))
		event_add(conn->watch, &WATCH_INTERVAL);
}

void conn_drop(struct conn *conn, const char *why)
{
	if (conn->doomed)
		return;
	if (why)
		log_line(LOG_WARNING, "client uid=%u pid=%d dropped: %s", (unsigned)conn->peer.uid,
			(int)conn->peer.pid, why);
	conn->doomed = 1;
	bufferevent_disable(conn->bev, EV_READ | EV_WRITE);
	event_active(conn->later, EV_TIMEOUT, 0);
}

void conn_send(struct conn *conn, json_t *msg)
{
	/* The limit is held against what was unread before, so that one large answer always goes
	 * out, and the memory stays below the limit and one answer. */
	if (!conn->doomed && unsent(conn) > conn->control->limits.queue_max)
		conn_drop(conn, "it does not read what it is sent");
	if (!conn->doomed) {
		cleanup(free) char *line = json_line(msg);
		struct evbuffer *out = bufferevent_get_output(conn->bev);

		if (evbuffer_add(out, line, strlen(line)) < 0 || evbuffer_add(out, "\n", 1) < 0)
			abort(); /* out of memory */
	}
	json_decref(msg);
}

void conn_wake(struct conn *conn)
{
	if (!conn->working)
		event_active(conn->later, EV_TIMEOUT, 0);
}

static const struct control_method *find_method(const struct control *control, const char *name)
{
	for (const struct control_method *m = control->methods; m->name; m++)
		if (strcmp(m->name, name) == 0)
			return m;
	return NULL;
}

static void deny(const struct conn *conn, struct call *call)
{
	unsigned uid = (unsigned)conn->peer.uid;

	if (conn->control->group)
		call_error(call, CONTROL_DENIED, "uid %u is not a member of the group %s", uid,
			conn->control->group);
	else
		call_error(call, CONTROL_DENIED,
			"uid %u is not the daemon's own user (no group is configured)", uid);
}

/* The request is well formed: may this peer, is there such a method, are its parameters known? */
static void dispatch(struct conn *conn, const struct rpc_request *request)
{
	struct control *control = conn->control;
	const struct control_method *method = find_method(control, request->method);
	struct call *call;
	struct err err = {0};

	if (conn->generation != control->generation) {
		peer_judge(&conn->peer, control->group, control->admins);
		conn->generation = control->generation;
	}
	call = call_new(conn, request->id);
	if (!conn->peer.member)
		deny(conn, call);
	else if (!method)
		call_error(
			call, CONTROL_NO_METHOD, "there is no method \"%.100s\"", request->method);
	else if (rpc_check(method->params, request->params, &err) < 0)
		call_error(call, CONTROL_INVALID_PARAMS, "%s: %s", method->name, err.msg);
	else
		method->fn(control->arg, call, request->params);
}

static void take_line(struct conn *conn, size_t len)
{
	cleanup(rpc_release) struct rpc_request request = {0};
	struct evbuffer *in = bufferevent_get_input(conn->bev);
	cleanup(free) char *line = xmalloc(len + 1);
	json_t *refusal;

	evbuffer_remove(in, line, len);
	line[len] = '\0';
	if (rpc_blank(line, len))
		return;
	refusal = rpc_parse(line, len, &request);
	if (refusal)
		conn_send(conn, refusal);
	else
		dispatch(conn, &request);
}

/* The line is too long: say so once, and forget what is there of it. */
static void refuse_line(struct conn *conn, size_t len)
{
	cleanup(free) char *text = xasprintf("the line is longer than %zu bytes and was skipped",
		conn->control->limits.line_max);

	if (!conn->skipping)
		conn_send(conn, rpc_error(NULL, CONTROL_INVALID_REQUEST, text));
	evbuffer_drain(bufferevent_get_input(conn->bev), len);
}

/* Take one line from the input; 0 when there is no whole one. */
static int next_line(struct conn *conn)
{
	struct evbuffer *in = bufferevent_get_input(conn->bev);
	size_t have = evbuffer_get_length(in), max = conn->control->limits.line_max, len = have;
	int whole = 0;

	if (conn->scanned < have) {
		struct evbuffer_ptr from, eol;

		evbuffer_ptr_set(in, &from, conn->scanned, EVBUFFER_PTR_SET);
		eol = evbuffer_search_eol(in, &from, NULL, EVBUFFER_EOL_LF);
		whole = eol.pos >= 0;
		if (whole)
			len = (size_t)eol.pos + 1;
	}
	conn->scanned = whole ? 0 : have;
	/* At the end of input, what is left counts as a line. */
	if (!whole && !conn->skipping && len <= max && !(conn->half_closed && len > 0))
		return 0;
	if (conn->skipping || len - (size_t)whole > max) {
		refuse_line(conn, len);
		conn->skipping = !whole;
	} else {
		take_line(conn, len);
	}
	if (!whole)
		conn->scanned = 0;
	return whole;
}

/* After every event: take what requests there are and may be taken, then see what is left to do. */
static void conn_work(struct conn *conn)
{
	struct evbuffer *in = bufferevent_get_input(conn->bev);
	int more = 1;

	conn->working = 1;
	while (more && !conn->doomed && conn->n_calls < CALLS_MAX && !clogged(conn))
		more = next_line(conn);
	conn->working = 0;
	if (conn->doomed)
		return;
	if (!clogged(conn))
		conn->stalled = 0;
	else if (evbuffer_get_length(in) > 0)
		watch_on(conn);
	if (!conn->half_closed)
		return;
	if (evbuffer_get_length(in) == 0 && unsent(conn) == 0 && LIST_EMPTY(&conn->calls) &&
		LIST_EMPTY(&conn->streams))
		conn_drop(conn, NULL);
	else
		watch_on(conn);
}

static void on_data(struct bufferevent *bev, void *arg)
{
	(void)bev;
	conn_work(arg);
}

static void on_later(evutil_socket_t fd, short what, void *arg)
{
	struct conn *conn = arg;

	(void)fd;
	(void)what;
	if (conn->doomed)
		conn_free(conn);
	else
		conn_work(conn);
}

/* Closed on both sides? After a mere shutdown(SHUT_WR) the peer still reads, and poll tells. */
static int hung_up(const struct conn *conn)
{
	struct pollfd pfd = {.fd = bufferevent_getfd(conn->bev)};

	return poll(&pfd, 1, 0) > 0 && (pfd.revents & (POLLHUP | POLLERR | POLLNVAL));
}

static void on_watch(evutil_socket_t fd, short what, void *arg)
{
	struct conn *conn = arg;

	(void)fd;
	(void)what;
	if (conn->doomed)
		return;
	if (conn->half_closed && hung_up(conn))
		conn_drop(conn, NULL);
	else if (clogged(conn) && conn->stalled)
		conn_drop(conn, "it sends requests and does not read the answers");
	else if (clogged(conn) || conn->half_closed) {
		conn->stalled = clogged(conn);
		watch_on(conn);
	}
}

static void on_end(struct bufferevent *bev, short what, void *arg)
{
	struct conn *conn = arg;

	(void)bev;
	if (!(what & BEV_EVENT_EOF)) {
		conn_drop(conn, NULL);
		return;
	}
	conn->half_closed = 1;
	conn_work(conn);
	if (hung_up(conn))
		conn_drop(conn, NULL);
}

void conn_configure(struct conn *conn)
{
	const struct control_limits *limits = &conn->control->limits;

	bufferevent_setwatermark(conn->bev, EV_READ, 0, limits->line_max + 1);
	bufferevent_setwatermark(conn->bev, EV_WRITE, limits->queue_max / 2, 0);
}

int conn_new(struct control *control, int fd, struct err *err)
{
	struct conn *conn = xcalloc(1, sizeof(*conn));
	int r;

	r = peer_identify(fd, &conn->peer, err);
	if (r < 0) {
		close(fd);
		free(conn);
		return r;
	}
	conn->control = control;
	conn->generation = control->generation - 1; /* judged at the first request */
	conn->bev = bufferevent_socket_new(control->base, fd, BEV_OPT_CLOSE_ON_FREE);
	conn->later = event_new(control->base, -1, 0, on_later, conn);
	conn->watch = event_new(control->base, -1, 0, on_watch, conn);
	if (!conn->bev || !conn->later || !conn->watch)
		abort(); /* out of memory */
	bufferevent_setcb(conn->bev, on_data, on_data, on_end, conn);
	conn_configure(conn);
	LIST_INSERT_HEAD(&control->conns, conn, link);
	control->n_conns++;
	bufferevent_enable(conn->bev, EV_READ | EV_WRITE);
	return 0;
}

void conn_free(struct conn *conn)
{
	LIST_REMOVE(conn, link);
	conn->control->n_conns--;
	conn->doomed = 1;
	conn->working = 1; /* nothing that `gone` does may wake it */
	call_orphan_all(conn);
	event_free(conn->later);
	event_free(conn->watch);
	bufferevent_free(conn->bev);
	free(conn);
}
