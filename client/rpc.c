#include "client/rpc.h"

#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "client/protocol.h"
#include "base/banned.h"

#define RPC_LINE_MAX (256u << 20)
#define RPC_HELLO_MS 30000
#define RPC_CALL_MS 660000 /* a job file may be looked at for ten minutes */

struct rpc {
	int fd;
	char *path;
	struct buf in;	 /* received */
	size_t start;	 /* of it, bytes that were taken already */
	size_t searched; /* and bytes that hold no line end */
	json_t *queue;	 /* notifications that came while an answer was awaited */
	json_int_t last_id;
};

static const struct {
	int rpc, code;
} codes[] = {
	{PROTOCOL_NOT_FOUND, ESRCH},
	{PROTOCOL_DENIED, EPERM},
	{PROTOCOL_REFUSED, EINVAL},
	{PROTOCOL_INVALID_PARAMS, EINVAL},
	{PROTOCOL_STATE, EBUSY},
	{PROTOCOL_BUSY, ENOTCONN},
	{PROTOCOL_NO_METHOD, EPROTO},
};

/* Say why connect failed and what to do about it. */
static int connect_error(const char *path, int code, struct err *err)
{
	char names[4096];
	struct group group, *found = NULL;
	struct stat st;

	if (code != EACCES && code != EPERM)
		return err_set(err, ENOTCONN,
			"no daemon listens on %s: %s (start kbisectd, or name its socket with "
			"--socket "
			"or " PROTOCOL_SOCKET_ENV ")",
			path, strerror(code));
	if (stat(path, &st) == 0)
		getgrgid_r(st.st_gid, &group, names, sizeof(names), &found);
	if (!found)
		return err_set(err, EPERM, "you may not use %s: %s", path, strerror(code));
	return err_set(err, EPERM, "you may not use %s: it is for members of the group \"%s\"",
		path, found->gr_name);
}

static int connect_to(const char *path, int *ret_fd, struct err *err)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct timeval limit = {.tv_sec = RPC_HELLO_MS / 1000};
	cleanup(close) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return err_sys(err, errno, "cannot make a socket");
	if (strlen(path) >= sizeof(addr.sun_path))
		return err_set(err, EINVAL, "the socket's path is longer than %zu bytes: %s",
			sizeof(addr.sun_path) - 1, path);
	memcpy(addr.sun_path, path, strlen(path) + 1);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		return connect_error(path, errno, err);
	*ret_fd = steal_fd(&fd);
	return 0;
}

static int lost(const struct rpc *rpc, const char *why, struct err *err)
{
	return err_set(
		err, ENOTCONN, "lost the connection to the daemon on %s: %s", rpc->path, why);
}

/* Send a line. A closed peer is no error here: it may have said why, and reading finds out. */
static int send_line(struct rpc *rpc, const char *line, struct err *err)
{
	cleanup(buf_release) struct buf out = BUF_INIT;
	size_t done = 0;

	buf_adds(&out, line);
	buf_addc(&out, '\n');
	while (done < out.len) {
		ssize_t n = send(rpc->fd, out.data + done, out.len - done, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
			return 0;
		if (n < 0 && errno == EAGAIN)
			return err_set(err, ETIMEDOUT, "the daemon on %s does not read", rpc->path);
		if (n < 0)
			return lost(rpc, strerror(errno), err);
		done += (size_t)n;
	}
	return 0;
}

/* Take one whole line out of what was received, if there is one. It stays valid until receive(). */
static int take_line(struct rpc *rpc, const char **ret_line, size_t *ret_len)
{
	const char *from = rpc->in.data + rpc->start, *end;
	size_t have = rpc->in.len - rpc->start;

	if (have == rpc->searched)
		return 0;
	end = memchr(from + rpc->searched, '\n', have - rpc->searched);
	if (!end) {
		rpc->searched = have;
		return 0;
	}
	*ret_line = from;
	*ret_len = (size_t)(end - from);
	rpc->start += *ret_len + 1;
	rpc->searched = 0;
	return 1;
}

static int receive(struct rpc *rpc, struct err *err)
{
	char chunk[65536];
	ssize_t n = recv(rpc->fd, chunk, sizeof(chunk), MSG_DONTWAIT);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (n < 0)
		return lost(rpc, strerror(errno), err);
	if (n == 0)
		return lost(rpc,
			rpc->in.len > rpc->start ? "it ended within a line" : "it was closed", err);
	buf_drop(&rpc->in, rpc->start);
	rpc->start = 0;
	buf_add(&rpc->in, chunk, (size_t)n);
	if (rpc->in.len > RPC_LINE_MAX)
		return err_set(err, EPROTO, "the daemon sent a line of more than %u MiB",
			RPC_LINE_MAX >> 20);
	return 0;
}

/* Wait for bytes until the deadline (monotonic ms, -1 = none). -EAGAIN, -EPIPE as in rpc_next. */
static int wait_input(struct rpc *rpc, int64_t deadline, int fd_watch, struct err *err)
{
	struct pollfd fds[] = {{rpc->fd, POLLIN, 0}, {fd_watch, 0, 0}};
	int64_t left = deadline < 0 ? -1 : deadline - clock_mono_ms();
	int n;

	if (deadline >= 0 && left < 0)
		left = 0;
	n = poll(fds, 2, (int)left);
	if (n < 0 && errno != EINTR)
		return err_sys(err, errno, "poll");
	if (n <= 0)
		return -EAGAIN;
	if (fds[0].revents)
		return receive(rpc, err);
	return -EPIPE;
}

/* The next JSON object from the daemon. */
static int next_message(
	struct rpc *rpc, int64_t deadline, int fd_watch, json_t **ret, struct err *err)
{
	cleanup(json_decref) json_t *msg = NULL;
	const char *line;
	size_t len;
	int r;

	while (!take_line(rpc, &line, &len)) {
		r = wait_input(rpc, deadline, fd_watch, err);
		if (r < 0)
			return r;
	}
	if (json_parse(line, len, &msg, err) < 0 || !json_is_object(msg))
		return err_set(err, EPROTO,
			"what answers on %s is not kbisectd: it sent \"%.*s%s\"", rpc->path,
			len < 60 ? (int)len : 60, line, len < 60 ? "" : "...");
	*ret = steal(&msg);
	return 0;
}

static int is_notification(const json_t *msg)
{
	return json_is_string(json_object_get(msg, "method")) && !json_object_get(msg, "id");
}

/* Turn an error answer into ours. The daemon's sentence stands as it is. */
static int error_answer(const json_t *error, struct err *err)
{
	json_int_t code = json_opt_int(error, "code", 0);
	const char *text = json_opt_str(error, "message", "error without a message");

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (codes[i].rpc == code)
			return err_set(err, codes[i].code, "%s", text);
	return err_set(err, EIO, "%s", text);
}

/* Wait for the answer to the last call and keep the notifications that come before it. */
static int await_answer(struct rpc *rpc, int64_t deadline, json_t **ret, struct err *err)
{
	for (;;) {
		cleanup(json_decref) json_t *msg = NULL;
		json_t *id, *result;
		int r = next_message(rpc, deadline, -1, &msg, err);

		if (r == -EAGAIN && clock_mono_ms() < deadline)
			continue;
		if (r == -EAGAIN)
			return err_set(
				err, ETIMEDOUT, "the daemon on %s does not answer", rpc->path);
		if (r < 0)
			return r;
		id = json_object_get(msg, "id");
		if (is_notification(msg))
			json_array_append(rpc->queue, msg);
		else if (json_is_integer(id) && json_integer_value(id) != rpc->last_id)
			continue;
		else if (json_object_get(msg, "error"))
			return error_answer(json_object_get(msg, "error"), err);
		else if (json_is_object(result = json_object_get(msg, "result"))) {
			*ret = json_incref(result);
			return 0;
		} else
			return err_set(err, EPROTO, "the daemon's answer has no result");
	}
}

static int call(struct rpc *rpc, const char *method, json_t *params, int64_t timeout_ms,
	json_t **ret, struct err *err)
{
	cleanup(json_decref) json_t *request = json_object();
	cleanup(free) char *line = NULL;
	int r;

	json_set_str(request, "jsonrpc", "2.0");
	json_set_int(request, "id", ++rpc->last_id);
	json_set_str(request, "method", method);
	json_object_set_new(request, "params", params ? params : json_object());
	line = json_line(request);
	r = send_line(rpc, line, err);
	if (r < 0)
		return r;
	return await_answer(rpc, clock_mono_ms() + timeout_ms, ret, err);
}

int rpc_call(struct rpc *rpc, const char *method, json_t *params, json_t **ret, struct err *err)
{
	return call(rpc, method, params, RPC_CALL_MS, ret, err);
}

int rpc_next(struct rpc *rpc, int timeout_ms, int fd_watch, json_t **ret, struct err *err)
{
	int64_t deadline = timeout_ms < 0 ? -1 : clock_mono_ms() + timeout_ms;
	json_t *msg;
	int r;

	if (json_array_size(rpc->queue)) {
		*ret = json_incref(json_array_get(rpc->queue, 0));
		json_array_remove(rpc->queue, 0);
		return 0;
	}
	for (;;) {
		r = next_message(rpc, deadline, fd_watch, &msg, err);
		if (r < 0)
			return r;
		if (is_notification(msg))
			break;
		json_decref(msg);
	}
	*ret = msg;
	return 0;
}

int rpc_open(const char *path, struct rpc **ret, struct err *err)
{
	cleanup(rpc_free) struct rpc *rpc = xcalloc(1, sizeof(*rpc));
	cleanup(json_decref) json_t *hello = NULL;
	int64_t protocol;
	int r;

	rpc->fd = -1;
	rpc->path = xstrdup(path);
	rpc->queue = json_array();
	r = connect_to(path, &rpc->fd, err);
	if (r < 0)
		return r;
	r = call(rpc, "hello", NULL, RPC_HELLO_MS, &hello, err);
	if (r < 0)
		return r;
	protocol = json_opt_int(hello, "protocol", -1);
	if (protocol != PROTOCOL_VERSION)
		return err_set(err, EPROTO,
			"the daemon on %s speaks protocol %lld and this kbctl speaks %d: use the "
			"kbctl "
			"of the daemon's version",
			path, (long long)protocol, PROTOCOL_VERSION);
	*ret = steal(&rpc);
	return 0;
}

void rpc_free(struct rpc *rpc)
{
	if (!rpc)
		return;
	if (rpc->fd >= 0)
		close(rpc->fd);
	free(rpc->path);
	buf_release(&rpc->in);
	json_decref(rpc->queue);
	free(rpc);
}
