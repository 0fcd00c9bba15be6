#include "daemon/control.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "daemon/conn.h"
#include "daemon/listen.h"
#include "daemon/log.h"
#include "daemon/peer.h"
#include "daemon/rpc.h"
#include "base/banned.h"

/* Out of descriptors: how long to leave the clients in the queue before looking again. */
static const struct timeval ACCEPT_PAUSE = {1, 0};

/* One line on a socket that has never been written to fits its buffer, so this cannot block. */
static void turn_away(const struct control *control, int fd)
{
	cleanup(free) char *text =
		xasprintf("too many connections (the limit is %d): try again later",
			control->limits.connections_max);
	cleanup(json_decref) json_t *msg = rpc_error(NULL, CONTROL_BUSY, text);
	cleanup(free) char *json = json_line(msg);
	cleanup(free) char *line = xasprintf("%s\n", json);

	send(fd, line, strlen(line), MSG_DONTWAIT | MSG_NOSIGNAL);
	close(fd);
}

/* The listening socket stays readable while clients wait: stop looking, or the loop would spin. */
static void pause_accept(struct control *control, int code)
{
	log_line(LOG_WARNING, "cannot take new clients for now: %s", strerror(code));
	event_del(control->accept);
	event_add(control->pause, &ACCEPT_PAUSE);
}

static void on_pause_over(evutil_socket_t fd, short what, void *arg)
{
	struct control *control = arg;

	(void)fd;
	(void)what;
	event_add(control->accept, NULL);
}

static void on_accept(evutil_socket_t listener, short what, void *arg)
{
	struct control *control = arg;
	struct err err = {0};
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	(void)what;
	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
			pause_accept(control, errno);
	} else if (control->n_conns >= control->limits.connections_max) {
		turn_away(control, fd);
	} else if (conn_new(control, fd, &err) < 0) {
		log_line(LOG_WARNING, "a client was turned away: %s", err.msg);
	}
}

/* The socket to listen on: the one from outside, or a new file. */
static int open_listener(struct control *control, const struct control_spec *spec, struct err *err)
{
	gid_t group = (gid_t)-1;
	int r;

	if (spec->group) {
		r = peer_group(spec->group, &group, err);
		if (r < 0)
			return r;
	}
	if (spec->fd >= 0) {
		r = listen_adopt(spec->fd, err);
		if (r == 0)
			control->fd = spec->fd;
		return r;
	}
	r = listen_create(spec->path, group, &control->fd, &control->file, err);
	if (r == 0)
		control->path = xstrdup(spec->path);
	return r;
}

int control_new(const struct control_spec *spec, struct control **ret, struct err *err)
{
	cleanup(control_free) struct control *control = xcalloc(1, sizeof(*control));
	int r;

	control->base = spec->base;
	control->methods = spec->methods;
	control->arg = spec->arg;
	control->limits = spec->limits;
	control->group = xstrdup_null(spec->group);
	control->admins = xstrdup_null(spec->admins);
	control->fd = -1;
	LIST_INIT(&control->conns);
	r = open_listener(control, spec, err);
	if (r < 0)
		return r;
	signal(SIGPIPE, SIG_IGN); /* a client that is gone is an error of one write, no more */
	control->accept =
		event_new(control->base, control->fd, EV_READ | EV_PERSIST, on_accept, control);
	control->pause = event_new(control->base, -1, 0, on_pause_over, control);
	if (!control->accept || !control->pause)
		abort(); /* out of memory */
	event_add(control->accept, NULL);
	*ret = steal(&control);
	return 0;
}

/* The new group takes the socket file over, too. What cannot be is logged; the daemon goes on. */
static void regroup(struct control *control)
{
	struct err err = {0};
	gid_t gid = (gid_t)-1;

	if (control->group && peer_group(control->group, &gid, &err) < 0)
		log_line(LOG_ERR, "control socket: %s, so it has no members", err.msg);
	else if (control->path && listen_regroup(control->path, gid, &err) < 0)
		log_line(LOG_ERR, "control socket: %s", err.msg);
}

void control_configure(struct control *control, const char *group, const char *admins,
	const struct control_limits *limits)
{
	struct conn *conn;

	free(control->group);
	free(control->admins);
	control->group = xstrdup_null(group);
	control->admins = xstrdup_null(admins);
	control->limits = *limits;
	control->generation++;
	regroup(control);
	LIST_FOREACH (conn, &control->conns, link)
		conn_configure(conn);
}

void control_free(struct control *control)
{
	if (!control)
		return;
	while (!LIST_EMPTY(&control->conns))
		conn_free(LIST_FIRST(&control->conns));
	if (control->accept)
		event_free(control->accept);
	if (control->pause)
		event_free(control->pause);
	if (control->path)
		listen_remove(control->path, &control->file);
	if (control->fd >= 0)
		close(control->fd);
	free(control->path);
	free(control->group);
	free(control->admins);
	free(control);
}

int control_connections(const struct control *control)
{
	return control->n_conns;
}
