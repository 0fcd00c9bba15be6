#ifndef DAEMON_CONN_H
#define DAEMON_CONN_H

/*
 * Inside the control socket only (control.c, conn.c, call.c): connections, calls and streams.
 *
 * A connection owns its streams and knows its open calls; a call outlives its connection as an
 * orphan until the method answers it. A connection is freed only by its own event, straight from
 * the loop: whoever finds it bad meanwhile marks it (conn_drop), so that no pointer goes away under
 * a caller's feet.
 */

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <sys/queue.h>

#include "daemon/control.h"
#include "daemon/listen.h"

LIST_HEAD(conn_list, conn);
LIST_HEAD(call_list, call);
LIST_HEAD(stream_list, stream);

struct control {
	struct event_base *base;
	const struct control_method *methods;
	void *arg;
	char *group, *admins;
	struct control_limits limits;
	unsigned
		generation; /* of group and admins; peers judged by an older one are judged again */
	int fd;
	char *path; /* NULL: the socket came from outside */
	struct listen_file file;
	struct event *accept, *pause;
	struct conn_list conns;
	int n_conns;
};

struct conn {
	LIST_ENTRY(conn) link;
	struct control *control;
	struct bufferevent *bev;
	struct event *later; /* goes on, or frees it, from the loop */
	struct event *watch; /* looks now and then for a peer that is stuck or gone */
	struct control_peer peer;
	unsigned generation;
	struct call_list calls;
	struct stream_list streams;
	int n_calls;
	size_t scanned;	 /* bytes of input that hold no newline */
	int skipping;	 /* inside a line that is too long */
	int half_closed; /* the peer has said all it will say */
	int working;	 /* conn_work is on the stack */
	int stalled;	 /* was stuck when last looked at */
	int doomed;	 /* to be freed by `later` */
};

struct call {
	LIST_ENTRY(call) link;
	struct conn *conn; /* NULL: orphan */
	json_t *id;	   /* NULL: notification */
	struct control_peer peer;
};

struct stream {
	LIST_ENTRY(stream) link;
	struct conn *conn;
	void (*gone)(void *arg);
	void *arg;
};

/* Takes the descriptor. */
int conn_new(struct control *control, int fd, struct err *err);
/* Calls `gone` of its streams. */
void conn_free(struct conn *conn);
/* The control's limits have changed. */
void conn_configure(struct conn *conn);
/* Free it soon. With a reason, it is logged. */
void conn_drop(struct conn *conn, const char *why);
/* Queue one line (takes the reference), or drop a connection that has too much unread already. */
void conn_send(struct conn *conn, json_t *msg);
/* Something that the connection waited for has happened. */
void conn_wake(struct conn *conn);

/* An open call of the connection. id is borrowed. */
struct call *call_new(struct conn *conn, json_t *id);
/* The connection goes away: orphan its calls, end its streams. */
void call_orphan_all(struct conn *conn);

#endif
