#include "boot/guest.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libssh2.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/banned.h"

#define PUBLIC_KEY_MAX 4096
#define UPLOAD_MAX (1UL << 30)
#define COMPLAINT_MAX 300 /* bytes of a failed command's output in an error text */
#define COMPLAINT_ROOM 4096
#define DISCONNECT_MS 50 /* closing is a courtesy: the guest dies anyway */

/*
 * What both sides know, the cheapest first for a guest without AES instructions, where they differ
 * by tens of milliseconds a session. The rest of each list keeps other ssh servers possible.
 */
static const struct preference {
	int method;
	const char *list;
} preferences[] = {
	{LIBSSH2_METHOD_KEX, "curve25519-sha256,curve25519-sha256@libssh.org,ecdh-sha2-nistp256,"
			     "diffie-hellman-group14-sha256"},
	{LIBSSH2_METHOD_HOSTKEY, "ssh-ed25519"},
	{LIBSSH2_METHOD_CRYPT_CS, "aes128-ctr,aes256-ctr"},
	{LIBSSH2_METHOD_CRYPT_SC, "aes128-ctr,aes256-ctr"},
	{LIBSSH2_METHOD_MAC_CS, "hmac-sha1,hmac-sha2-256"},
	{LIBSSH2_METHOD_MAC_SC, "hmac-sha1,hmac-sha2-256"},
	{LIBSSH2_METHOD_COMP_CS, "none"},
	{LIBSSH2_METHOD_COMP_SC, "none"},
};

struct guest {
	int fd;
	LIBSSH2_SESSION *session;
	/* Of the call that is running: */
	int64_t deadline; /* clock_mono_ms */
	int interrupt_fd; /* -1 = none */
};

/* A command in the guest, with what goes in and what came out. */
struct command {
	LIBSSH2_CHANNEL *channel;
	const char *text;
	const struct buf *input; /* NULL = none */
	size_t max_output;
	guest_output_fn fn;
	void *arg;
	struct buf *output;
	size_t n_output;
	int status;
};

/* Where libssh2's words end and ours begin. */
static int guest_error(struct guest *g, const char *what, struct err *err)
{
	char *text = NULL;
	int code = libssh2_session_last_error(g->session, &text, NULL, 0);

	switch (code) {
	case LIBSSH2_ERROR_SOCKET_DISCONNECT:
	case LIBSSH2_ERROR_SOCKET_SEND:
	case LIBSSH2_ERROR_SOCKET_RECV:
	case LIBSSH2_ERROR_CHANNEL_CLOSED:
	case LIBSSH2_ERROR_BANNER_RECV:
		return err_set(err, ECONNRESET, "%s: the connection to the guest is lost", what);
	case LIBSSH2_ERROR_AUTHENTICATION_FAILED:
	case LIBSSH2_ERROR_PUBLICKEY_UNVERIFIED:
		return err_set(err, EACCES, "%s: the guest refuses the client key", what);
	case LIBSSH2_ERROR_KEX_FAILURE:
		return err_set(err, EPROTO, "%s: no common algorithm (%s)", what, text);
	default:
		return err_set(
			err, EPROTO, "%s: %s (libssh2 %d)", what, text ? text : "failed", code);
	}
}

/* Has something ended the call? If not, sleep until the socket is ready for what libssh2 needs. */
static int guest_poll(struct guest *g, int may_sleep, const char *what, struct err *err)
{
	int64_t left = g->deadline - clock_mono_ms();
	int dir = libssh2_session_block_directions(g->session);
	struct pollfd fds[2] = {
		{.fd = g->fd, .events = POLLIN}, {.fd = g->interrupt_fd, .events = POLLIN}};

	if (dir & LIBSSH2_SESSION_BLOCK_OUTBOUND)
		fds[0].events |= POLLOUT;
	if (poll(fds, 2, may_sleep && left > 0 ? (int)left : 0) < 0 && errno != EINTR)
		return err_sys(err, errno, "%s: poll", what);
	if (fds[1].revents)
		return err_set(err, EINTR, "%s: interrupted", what);
	if (clock_mono_ms() >= g->deadline)
		return err_set(err, ETIMEDOUT, "%s: the guest was not done in time", what);
	return 0;
}

static int guest_wait(struct guest *g, const char *what, struct err *err)
{
	return guest_poll(g, 1, what, err);
}

/* Repeat a libssh2 call until it does not want to wait; its value if that is >= 0, or -errno. */
#define guest_call(g, what, call, err)                                                             \
	({                                                                                         \
		ssize_t call_rc, call_wait = 0;                                                    \
		while ((call_rc = (call)) == LIBSSH2_ERROR_EAGAIN)                                 \
			if ((call_wait = guest_wait((g), (what), (err))) < 0)                      \
				break;                                                             \
		if (call_wait < 0)                                                                 \
			call_rc = call_wait;                                                       \
		else if (call_rc < 0)                                                              \
			call_rc = guest_error((g), (what), (err));                                 \
		call_rc;                                                                           \
	})

static void guest_limit(struct guest *g, int timeout_ms, int interrupt_fd)
{
	g->deadline = clock_mono_ms() + timeout_ms;
	g->interrupt_fd = interrupt_fd;
}

static int guest_connect(
	const struct guest_spec *spec, int64_t deadline, int *ret_fd, struct err *err)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)spec->port)};
	cleanup(close) int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct pollfd pfd = {.fd = fd, .events = POLLOUT};
	int64_t left = deadline - clock_mono_ms();
	int one = 1, code = 0, r;
	socklen_t len = sizeof(code);

	if (fd < 0)
		return err_sys(err, errno, "cannot make a socket");
	if (inet_pton(AF_INET, spec->host, &to.sin_addr) != 1)
		return err_set(err, EINVAL, "\"%s\" is not an IPv4 address", spec->host);
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 && errno != EINPROGRESS)
		return err_sys(err, errno, "cannot connect to %s:%d", spec->host, spec->port);
	r = poll(&pfd, 1, left > 0 ? (int)left : 0);
	if (r <= 0)
		return err_sys(err, r < 0 ? errno : ETIMEDOUT, "cannot connect to %s:%d",
			spec->host, spec->port);
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &len);
	if (code)
		return err_sys(err, code, "cannot connect to %s:%d", spec->host, spec->port);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	*ret_fd = steal_fd(&fd);
	return 0;
}

/* The base64 word of "ssh-ed25519 AAAA... comment"; *ret points into the buffer. */
static int pinned_key(
	const char *path, struct buf *file, const char **ret, size_t *ret_len, struct err *err)
{
	static const char type[] = "ssh-ed25519 ";
	const char *key;
	int r = file_read(path, PUBLIC_KEY_MAX, file, err);

	if (r < 0)
		return r;
	key = buf_str(file);
	if (strncmp(key, type, strlen(type)) != 0)
		return err_set(err, EINVAL, "%s is not an ssh-ed25519 public key", path);
	key += strlen(type);
	*ret = key;
	*ret_len = strcspn(key, " \r\n");
	return 0;
}

static int guest_check_key(struct guest *g, const struct guest_spec *spec, struct err *err)
{
	cleanup(free) char *path = file_join(spec->keys_dir, "host_key.pub");
	cleanup(buf_release) struct buf file = BUF_INIT;
	const int any = LIBSSH2_KNOWNHOST_TYPE_PLAIN | LIBSSH2_KNOWNHOST_KEY_ED25519;
	LIBSSH2_KNOWNHOSTS *hosts;
	const char *pinned = NULL, *key;
	size_t pinned_len = 0, len;
	int type, r;

	r = pinned_key(path, &file, &pinned, &pinned_len, err);
	if (r < 0)
		return r;
	key = libssh2_session_hostkey(g->session, &len, &type);
	hosts = libssh2_knownhost_init(g->session);
	if (!key || !hosts)
		return guest_error(g, "host key", err);
	r = libssh2_knownhost_addc(hosts, "guest", NULL, pinned, pinned_len, NULL, 0,
		any | LIBSSH2_KNOWNHOST_KEYENC_BASE64, NULL);
	if (r == 0)
		r = libssh2_knownhost_checkp(
			hosts, "guest", 22, key, len, any | LIBSSH2_KNOWNHOST_KEYENC_RAW, NULL);
	libssh2_knownhost_free(hosts);
	if (r != LIBSSH2_KNOWNHOST_CHECK_MATCH)
		return err_set(err, EKEYREJECTED,
			"%s:%d shows another host key than the one in %s: not the guest",
			spec->host, spec->port, path);
	return 0;
}

static int guest_login(struct guest *g, const struct guest_spec *spec, struct err *err)
{
	cleanup(free) char *key = file_join(spec->keys_dir, "client_key");
	cleanup(free) char *pub = file_join(spec->keys_dir, "client_key.pub");
	const char *user = spec->user ? spec->user : "root";

	return (int)guest_call(g, "ssh login",
		libssh2_userauth_publickey_fromfile_ex(
			g->session, user, (unsigned int)strlen(user), pub, key, NULL),
		err);
}

static int guest_handshake(struct guest *g, const struct guest_spec *spec, struct err *err)
{
	int r;

	g->session = libssh2_session_init();
	if (!g->session)
		return err_set(err, ENOMEM, "libssh2 gives no session");
	libssh2_session_set_blocking(g->session, 0);
	for (size_t i = 0; i < sizeof(preferences) / sizeof(preferences[0]); i++)
		if (libssh2_session_method_pref(
			    g->session, preferences[i].method, preferences[i].list) < 0)
			return guest_error(g, "ssh algorithms", err);
	r = (int)guest_call(g, "ssh handshake", libssh2_session_handshake(g->session, g->fd), err);
	if (r == 0)
		r = guest_check_key(g, spec, err);
	return r < 0 ? r : guest_login(g, spec, err);
}

int guest_open(const struct guest_spec *spec, struct guest **ret, struct err *err)
{
	cleanup(guest_close) struct guest *g = NULL;
	int r;

	if (libssh2_init(0) != 0)
		return err_set(err, EPROTO, "libssh2 cannot be initialised");
	g = xcalloc(1, sizeof(*g));
	g->fd = -1;
	guest_limit(g, spec->timeout_ms, -1);
	r = guest_connect(spec, g->deadline, &g->fd, err);
	if (r == 0)
		r = guest_handshake(g, spec, err);
	if (r < 0)
		return r;
	*ret = steal(&g);
	return 0;
}

/* Open the channel and start the command on it. */
static int command_start(struct guest *g, struct command *c, struct err *err)
{
	int r;

	while (!(c->channel = libssh2_channel_open_session(g->session))) {
		if (libssh2_session_last_errno(g->session) != LIBSSH2_ERROR_EAGAIN)
			return guest_error(g, "ssh channel", err);
		r = guest_wait(g, "ssh channel", err);
		if (r < 0)
			return r;
	}
	libssh2_channel_handle_extended_data2(c->channel, LIBSSH2_CHANNEL_EXTENDED_DATA_MERGE);
	return (int)guest_call(g, "ssh exec", libssh2_channel_exec(c->channel, c->text), err);
}

/* Read once without waiting: bytes (0 also at the end), LIBSSH2_ERROR_EAGAIN, or another -errno. */
static ssize_t command_take(struct guest *g, struct command *c, struct err *err)
{
	char chunk[32768];
	ssize_t n = libssh2_channel_read(c->channel, chunk, sizeof(chunk));
	size_t room = c->max_output - c->n_output;
	size_t take;

	if (n == LIBSSH2_ERROR_EAGAIN)
		return n;
	if (n < 0)
		return guest_error(g, "ssh read", err);
	take = (size_t)n < room ? (size_t)n : room;
	c->n_output += take;
	if (c->output)
		buf_add(c->output, chunk, take);
	if (c->fn && take)
		c->fn(c->arg, chunk, take);
	if (take < (size_t)n)
		return err_set(
			err, EFBIG, "the command printed more than %zu bytes", c->max_output);
	return n;
}

/*
 * Send the input, as long as the command takes it, then end of file. What it prints meanwhile is
 * read first, since libssh2 does not see the end of a channel behind unread data.
 */
static int command_feed(struct guest *g, struct command *c, struct err *err)
{
	size_t done = 0, len = c->input ? c->input->len : 0;
	int r = 0;

	while (r == 0 && done < len) {
		ssize_t n = command_take(g, c, err);

		if (n < 0 && n != LIBSSH2_ERROR_EAGAIN)
			return (int)n;
		/* A command that ended early has closed its side: its status tells why. */
		if (libssh2_channel_eof(c->channel))
			return 0;
		n = libssh2_channel_write(c->channel, c->input->data + done, len - done);
		if (n == LIBSSH2_ERROR_CHANNEL_CLOSED || n == LIBSSH2_ERROR_CHANNEL_EOF_SENT)
			return 0;
		if (n == LIBSSH2_ERROR_EAGAIN || n == 0)
			r = guest_wait(g, "ssh write", err);
		else if (n < 0)
			r = guest_error(g, "ssh write", err);
		else
			done += (size_t)n;
	}
	if (r < 0)
		return r;
	return (int)guest_call(g, "ssh write", libssh2_channel_send_eof(c->channel), err);
}

/* Read until the command has closed its output. */
static int command_drain(struct guest *g, struct command *c, struct err *err)
{
	while (!libssh2_channel_eof(c->channel)) {
		ssize_t n = command_take(g, c, err);

		/* Data that never pauses must not outrun the clock or the interrupt. */
		if (n >= 0 || n == LIBSSH2_ERROR_EAGAIN)
			n = guest_poll(g, n == LIBSSH2_ERROR_EAGAIN, "ssh read", err);
		if (n < 0)
			return (int)n;
	}
	return 0;
}

/*
 * The exit status arrives between the guest's end of file and its close; closing first would lose
 * that of a command which closes its output and goes on.
 */
static int command_status(struct guest *g, struct command *c, struct err *err)
{
	static const char *const names[] = {[1] = "HUP",
		[2] = "INT",
		[3] = "QUIT",
		[4] = "ILL",
		[5] = "TRAP",
		[6] = "ABRT",
		[7] = "BUS",
		[8] = "FPE",
		[9] = "KILL",
		[10] = "USR1",
		[11] = "SEGV",
		[12] = "USR2",
		[13] = "PIPE",
		[14] = "ALRM",
		[15] = "TERM"};
	char *signal = NULL;
	int r = (int)guest_call(g, "ssh close", libssh2_channel_wait_closed(c->channel), err);

	if (r < 0)
		return r;
	c->status = libssh2_channel_get_exit_status(c->channel);
	libssh2_channel_get_exit_signal(c->channel, &signal, NULL, NULL, NULL, NULL, NULL);
	if (!signal)
		return 0;
	c->status = 128;
	for (size_t i = 1; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i], signal) == 0)
			c->status = 128 + (int)i;
	libssh2_free(g->session, signal);
	return 0;
}

/* Start, feed, drain, reap. Whatever happens, the channel is closed as far as the socket allows. */
static int command_run(struct guest *g, struct command *c, struct err *err)
{
	int r = command_start(g, c, err);

	if (r == 0)
		r = command_feed(g, c, err);
	if (r == 0)
		r = command_drain(g, c, err);
	if (r == 0)
		r = command_status(g, c, err);
	if (c->channel)
		libssh2_channel_free(c->channel);
	return r < 0 ? r : 0;
}

int guest_exec(struct guest *g, const char *command, int timeout_ms, size_t max_output,
	int interrupt_fd, guest_output_fn fn, void *arg, struct buf *ret_output, int *ret_status,
	struct err *err)
{
	/* One pipe for both streams, so that they arrive in the order in which they were written.
	 */
	cleanup(free) char *text = xasprintf("exec 2>&1\n%s", command);
	struct command c = {
		.text = text, .max_output = max_output, .fn = fn, .arg = arg, .output = ret_output};
	int r;

	guest_limit(g, timeout_ms, interrupt_fd);
	r = command_run(g, &c, err);
	if (r == 0)
		*ret_status = c.status;
	return r;
}

/* 'it'\''s': a word that the guest's shell takes as it stands. Free it. */
static char *shell_quote(const char *s)
{
	struct buf out = BUF_INIT;

	buf_addc(&out, '\'');
	for (; *s; s++)
		buf_adds(&out, *s == '\'' ? "'\\''" : (char[]){*s, '\0'});
	buf_addc(&out, '\'');
	return buf_detach(&out);
}

/* The error of a file command that failed: what it said itself. */
static int complain(const struct command *c, const char *what, const char *path, struct err *err)
{
	cleanup(buf_release) struct buf text = BUF_INIT;

	buf_add_excerpt(&text, buf_str(c->output), c->output->len, COMPLAINT_MAX);
	return err_set(err, EIO, "cannot %s %s in the guest: %s (exit status %d)", what, path,
		text.len ? text.data : "no reason given", c->status);
}

int guest_upload(struct guest *g, const char *local, const char *remote, mode_t mode,
	int timeout_ms, struct err *err)
{
	cleanup(buf_release) struct buf input = BUF_INIT;
	cleanup(buf_release) struct buf output = BUF_INIT;
	cleanup(free) char *to = shell_quote(remote);
	cleanup(free) char *text =
		xasprintf("cat >%s && chmod %o %s", to, (unsigned int)mode & 07777, to);
	struct command c = {
		.text = text, .input = &input, .max_output = COMPLAINT_ROOM, .output = &output};
	int r = file_read(local, UPLOAD_MAX, &input, err);

	if (r < 0)
		return r;
	guest_limit(g, timeout_ms, -1);
	r = command_run(g, &c, err);
	if (r < 0)
		return err_wrap(err, "%s", remote);
	return c.status ? complain(&c, "write", remote, err) : 0;
}

int guest_download(struct guest *g, const char *remote, const char *local, size_t max,
	int timeout_ms, struct err *err)
{
	cleanup(buf_release) struct buf output = BUF_INIT;
	cleanup(free) char *from = shell_quote(remote);
	cleanup(free) char *text = xasprintf("cat %s", from);
	struct command c = {.text = text, .max_output = max + COMPLAINT_ROOM, .output = &output};
	int r;

	guest_limit(g, timeout_ms, -1);
	r = command_run(g, &c, err);
	if (r < 0)
		return err_wrap(err, "%s", remote);
	if (c.status)
		return complain(&c, "read", remote, err);
	if (output.len > max)
		return err_set(err, EFBIG, "%s in the guest is larger than %zu bytes", remote, max);
	return file_write(local, buf_str(&output), output.len, 0644, err);
}

/*
 * Say goodbye if that takes no time, then cut the line: freeing a session whose socket still works
 * may want to wait, one whose socket is shut does not.
 */
void guest_close(struct guest *g)
{
	if (!g)
		return;
	if (g->session) {
		guest_limit(g, DISCONNECT_MS, -1);
		(void)guest_call(
			g, "ssh disconnect", libssh2_session_disconnect(g->session, "done"), NULL);
		shutdown(g->fd, SHUT_RDWR);
		while (libssh2_session_free(g->session) == LIBSSH2_ERROR_EAGAIN &&
			guest_wait(g, "ssh close", NULL) == 0)
			;
	}
	if (g->fd >= 0)
		close(g->fd);
	free(g);
	libssh2_exit();
}
