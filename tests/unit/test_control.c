/* The control socket, driven by its real event loop and by clients that misbehave. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "daemon/control.h"
#include "base/banned.h"

#define LINE_MAX_TEST 4096
#define QUEUE_MAX_TEST 65536
#if defined(__has_feature) /* clang; gcc has a macro of its own */
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define PEAK_KB (400 * 1024)
#else
#define PEAK_KB 2048
#endif
#define CALL "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":"

static struct err err; /* the last failure's; cmocka runs one test at a time */

struct world {
	char dir[64], path[96];
	struct event_base *base;
	struct control *control;
	struct call *held[64]; /* calls of "later", not answered yet */
	int n_held, n_calls, n_gone;
	struct stream *stream;
};

/* The methods under test. */

static void do_echo(void *arg, struct call *call, const json_t *params)
{
	struct world *w = arg;

	w->n_calls++;
	call_reply(call, json_deep_copy(params));
}

static void do_fail(void *arg, struct call *call, const json_t *params)
{
	(void)arg;
	(void)params;
	call_error(call, CONTROL_STATE, "job %d has \"ended\"", 7);
}

static void do_later(void *arg, struct call *call, const json_t *params)
{
	struct world *w = arg;

	(void)params;
	w->held[w->n_held++] = call;
}

static void do_who(void *arg, struct call *call, const json_t *params)
{
	const struct control_peer *peer = call_peer(call);

	(void)arg;
	(void)params;
	call_reply(call, json_pack("{s:i,s:i,s:i,s:i}", "uid", (int)peer->uid, "pid",
				 (int)peer->pid, "member", peer->member, "admin", peer->admin));
}

static void do_big(void *arg, struct call *call, const json_t *params)
{
	size_t n = (size_t)json_opt_int(params, "bytes", 0);
	cleanup(free) char *text = xmalloc(n + 1);

	(void)arg;
	memset(text, 'x', n);
	text[n] = '\0';
	call_reply(call, json_string(text));
}

static void on_gone(void *arg)
{
	struct world *w = arg;

	w->n_gone++;
	w->stream = NULL;
}

static void do_follow(void *arg, struct call *call, const json_t *params)
{
	struct world *w = arg;

	(void)params;
	w->stream = call_stream(call, json_true(), on_gone, w);
}

static const struct control_method methods[] = {
	{"echo", do_echo, "a?, b?", ""},
	{"need", do_echo, "job, why?", ""},
	{"none", do_echo, "", ""},
	{"fail", do_fail, "", ""},
	{"later", do_later, "", ""},
	{"who", do_who, "", ""},
	{"big", do_big, "bytes", ""},
	{"follow", do_follow, "", ""},
	{.name = NULL},
};

static int start(struct world *w, const char *group, const char *admins, int fd)
{
	struct control_spec spec = {.base = w->base,
		.path = w->path,
		.fd = fd,
		.group = group,
		.admins = admins,
		.limits = {LINE_MAX_TEST, QUEUE_MAX_TEST, 4},
		.methods = methods,
		.arg = w};

	return control_new(&spec, &w->control, &err);
}

static int setup(void **state)
{
	struct world *w = xcalloc(1, sizeof(*w));

	snprintf(w->dir, sizeof(w->dir), "/tmp/test_control.XXXXXX");
	assert_non_null(mkdtemp(w->dir));
	assert_int_equal(chmod(w->dir, 0755), 0);
	snprintf(w->path, sizeof(w->path), "%s/control", w->dir);
	w->base = event_base_new();
	if (start(w, NULL, NULL, -1) < 0)
		fail_msg("%s", err.msg);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	control_free(w->control);
	for (int i = 0; i < w->n_held; i++)
		call_reply(w->held[i], json_true()); /* into the void */
	event_base_free(w->base);
	file_remove(w->dir, &err);
	free(w);
	return 0;
}

/* Clients. */

struct client {
	int fd, closed;
	struct buf in;
	int lines; /* newlines in it */
};

static int dial(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static void client_open(struct world *w, struct client *c)
{
	*c = (struct client){.fd = dial(w->path)};
	assert_true(c->fd >= 0);
	fcntl(c->fd, F_SETFL, O_NONBLOCK);
}

static void client_close(struct client *c)
{
	close(c->fd);
	buf_release(&c->in);
}

static void client_read(struct client *c)
{
	char chunk[65536];
	ssize_t n;

	while ((n = read(c->fd, chunk, sizeof(chunk))) > 0) {
		buf_add(&c->in, chunk, (size_t)n);
		for (ssize_t i = 0; i < n; i++)
			c->lines += chunk[i] == '\n';
	}
	if (n == 0 || (n < 0 && errno != EAGAIN))
		c->closed = 1;
}

static void turn(struct world *w)
{
	struct timeval tick = {0, 2000};

	event_base_loopexit(w->base, &tick);
	event_base_loop(w->base, EVLOOP_ONCE);
}

static void forget(struct client *c)
{
	buf_reset(&c->in);
	c->lines = 0;
}

/* Run the loop until the client has n lines or was closed, or for 10 s. */
static void await(struct world *w, struct client *c, int n)
{
	int64_t end = clock_mono_ms() + 10000;

	do {
		turn(w);
		client_read(c);
	} while (c->lines < n && !c->closed && clock_mono_ms() < end);
}

static void settle(struct world *w)
{
	for (int i = 0; i < 10; i++)
		turn(w);
}

static void put(struct world *w, struct client *c, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = send(c->fd, data, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EAGAIN) {
			turn(w);
			continue;
		}
		assert_true(n > 0);
		data += n;
		len -= (size_t)n;
	}
}

static void say(struct world *w, struct client *c, const char *line)
{
	put(w, c, line, strlen(line));
}

/* Send, await one line, and hold it against the expected text. */
static void ask(struct world *w, struct client *c, const char *line, const char *want)
{
	forget(c);
	say(w, c, line);
	await(w, c, 1);
	assert_string_equal(buf_str(&c->in), want);
}

static void ask_code(
	struct world *w, struct client *c, const char *line, int code, const char *says)
{
	cleanup(json_decref) json_t *reply = NULL;
	json_t *error = NULL;
	const char *text;
	int64_t got;

	forget(c);
	say(w, c, line);
	await(w, c, 1);
	assert_int_equal(c->lines, 1);
	assert_int_equal(json_parse(c->in.data, c->in.len, &reply, &err), 0);
	assert_int_equal(json_get_obj(reply, "error", &error, &err), 0);
	assert_int_equal(json_get_int(error, "code", &got, &err), 0);
	assert_int_equal(got, code);
	assert_int_equal(json_get_str(error, "message", &text, &err), 0);
	if (!strstr(text, says))
		fail_msg("\"%s\" does not say \"%s\"", text, says);
}

/* Requests and their answers. */

static void test_requests(void **state)
{
	struct world *w = *state;
	static const struct {
		const char *line, *want;
	} cases[] = {
		{CALL "\"echo\",\"params\":{\"a\":[1,null]}}\n",
			"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":[1,null]}}\n"},
		{CALL "\"none\"}\r\n", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}\n"},
		{"\n \r\n{\"jsonrpc\":\"2.0\",\"id\":\"x\\\"\xc3\xa4\",\"method\":\"none\"}\n",
			"{\"jsonrpc\":\"2.0\",\"id\":\"x\\\"\xc3\xa4\",\"result\":null}\n"},
		{"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"none\"}\n",
			"{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":null}\n"},
		{"{\"jsonrpc\":\"2.0\",\"id\":-1.5,\"method\":\"none\"}\n",
			"{\"jsonrpc\":\"2.0\",\"id\":-1.5,\"result\":null}\n"},
		{"{\"jsonrpc\":\"2.0\",\"id\":9007199254740993,\"method\":\"none\"}\n",
			"{\"jsonrpc\":\"2.0\",\"id\":9007199254740993,\"result\":null}\n"},
		{CALL "\"fail\"}\n",
			"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":4,\"message\":\"job 7 "
			"has \\\"ended\\\"\"}}\n"},
		/* A notification gets no answer, whatever it asks; what follows it does. */
		{"{\"jsonrpc\":\"2.0\",\"method\":\"none\"}\n"
		 "{\"jsonrpc\":\"2.0\",\"method\":\"fail\"}\n"
		 "{\"jsonrpc\":\"2.0\",\"method\":\"nonsense\"}\n" CALL "\"none\"}\n",
			"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}\n"},
	};
	struct client c;

	client_open(w, &c);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ask(w, &c, cases[i].line, cases[i].want);
	client_close(&c);
}

static void test_refusals(void **state)
{
	struct world *w = *state;
	static const struct {
		const char *line;
		int code;
		const char *says;
	} cases[] = {
		{"hello\n", CONTROL_PARSE, "not JSON"},
		{"{\n", CONTROL_PARSE, "not JSON"},
		{"{} {}\n", CONTROL_PARSE, "not JSON"},
		{"\x7f\x45LF\x02\x01\xff\xfe\n", CONTROL_PARSE, "not JSON"},
		{CALL "\"echo\",\"params\":{\"a\":\"\xff\"}}\n", CONTROL_PARSE, "not JSON"},
		{CALL "\"echo\",\"params\":{\"a\":1e999}}\n", CONTROL_PARSE, "not JSON"},
		{"[]\n", CONTROL_INVALID_REQUEST, "batches are not supported"},
		{" [{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"none\"}]\n", CONTROL_INVALID_REQUEST,
			"one request a line"},
		{"7\n", CONTROL_PARSE, "not JSON"},
		{"{}\n", CONTROL_INVALID_REQUEST, "\"jsonrpc\" must be \"2.0\""},
		{"{\"jsonrpc\":\"1.0\",\"method\":\"none\"}\n", CONTROL_INVALID_REQUEST, "2.0"},
		{"{\"jsonrpc\":\"2.0\",\"id\":1}\n", CONTROL_INVALID_REQUEST, "\"method\""},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}\n", CONTROL_INVALID_REQUEST,
			"\"method\""},
		{"{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"none\"}\n", CONTROL_INVALID_REQUEST,
			"\"id\""},
		{"{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"none\"}\n", CONTROL_INVALID_REQUEST,
			"\"id\""},
		{CALL "\"echo\",\"params\":[1]}\n", CONTROL_INVALID_PARAMS, "by name"},
		{CALL "\"echo\",\"params\":null}\n", CONTROL_INVALID_PARAMS, "by name"},
		{CALL "\"nonsense\"}\n", CONTROL_NO_METHOD, "no method \"nonsense\""},
		{CALL "\"\"}\n", CONTROL_NO_METHOD, "no method"},
		{CALL "\"echo\",\"params\":{\"c\":1}}\n", CONTROL_INVALID_PARAMS,
			"unknown parameter \"c\" (known: a?, b?)"},
		{CALL "\"echo\",\"params\":{\"\":1}}\n", CONTROL_INVALID_PARAMS,
			"unknown parameter \"\""},
		{CALL "\"none\",\"params\":{\"a\":1}}\n", CONTROL_INVALID_PARAMS,
			"unknown parameter \"a\" (the method takes none)"},
		{CALL "\"need\",\"params\":{\"why\":1}}\n", CONTROL_INVALID_PARAMS,
			"need: the parameter \"job\" is missing"},
		{CALL "\"need\"}\n", CONTROL_INVALID_PARAMS, "\"job\" is missing"},
		{CALL "\"need\",\"params\":{\"job\":1,\"jo\":2}}\n", CONTROL_INVALID_PARAMS,
			"\"jo\" (known: job, why?)"},
	};
	struct client c;

	client_open(w, &c);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ask_code(w, &c, cases[i].line, cases[i].code, cases[i].says);
	put(w, &c, "a\0b\n", 4);
	ask_code(w, &c, "", CONTROL_PARSE, "not JSON");
	/* After all that, the connection is as good as new. */
	ask(w, &c, CALL "\"none\"}\n", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}\n");
	assert_int_equal(w->n_calls, 1);
	client_close(&c);
}

static void test_bombs(void **state)
{
	struct world *w = *state;
	struct control_limits limits = {1 << 20, 1 << 20, 4};
	cleanup(buf_release) struct buf deep = BUF_INIT, wide = BUF_INIT;
	struct client c;

	control_configure(w->control, NULL, NULL, &limits);
	buf_adds(&deep, CALL "\"echo\",\"params\":{\"a\":");
	for (int i = 0; i < 100000; i++)
		buf_adds(&deep, "[{\"a\":");
	buf_addc(&deep, '\n');
	buf_adds(&wide, CALL "\"echo\",\"params\":{\"a\":[0");
	for (int i = 0; i < 100000; i++)
		buf_adds(&wide, ",{}");
	buf_adds(&wide, "]}}\n");
	client_open(w, &c);
	ask_code(w, &c, buf_str(&deep), CONTROL_INVALID_REQUEST, "nested too deeply");
	ask_code(w, &c, buf_str(&wide), CONTROL_INVALID_REQUEST, "too many values");
	ask(w, &c, CALL "\"none\"}\n", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}\n");
	client_close(&c);
}

/* Lines: of every length about the limit, in pieces, and much too long. */

static void test_line_limit(void **state)
{
	struct world *w = *state;
	static const char head[] = CALL "\"echo\",\"params\":{\"a\":\"", tail[] = "\"}}";
	struct client c;

	client_open(w, &c);
	for (int over = -2; over <= 2; over++) {
		cleanup(buf_release) struct buf line = BUF_INIT;

		buf_adds(&line, head);
		while (line.len < (size_t)(LINE_MAX_TEST + over) - strlen(tail))
			buf_addc(&line, 'x');
		buf_adds(&line, tail);
		assert_int_equal(line.len, LINE_MAX_TEST + over);
		buf_addc(&line, '\n');
		forget(&c);
		if (over > 0) {
			ask_code(w, &c, line.data, CONTROL_INVALID_REQUEST,
				"longer than 4096 bytes");
		} else {
			say(w, &c, line.data);
			await(w, &c, 1);
			assert_non_null(strstr(buf_str(&c.in), "\"result\":{\"a\":\"xxx"));
		}
	}
	client_close(&c);
}

static void test_pieces(void **state)
{
	struct world *w = *state;
	static const char two[] = CALL "\"none\"}\n" CALL "\"echo\",\"params\":{\"a\":2}}\n";
	struct client c;

	client_open(w, &c);
	for (size_t i = 0; i < strlen(two); i++) {
		put(w, &c, two + i, 1);
		turn(w);
	}
	await(w, &c, 2);
	assert_string_equal(buf_str(&c.in),
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}\n"
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":2}}\n");
	client_close(&c);
}

static int64_t peak_kb(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_maxrss;
}

static void test_huge_line(void **state)
{
	struct world *w = *state;
	static char chunk[1 << 20];
	struct client c;
	int64_t before;

	client_open(w, &c);
	memset(chunk, 'x', sizeof(chunk));
	put(w, &c, chunk, sizeof(chunk));
	before = peak_kb();
	for (int i = 1; i < 100; i++)
		put(w, &c, chunk, sizeof(chunk));
	/* A sanitiser keeps what is freed for a while, so only a coarse bound holds under it. */
	assert_true(peak_kb() - before < PEAK_KB);
	/* One error reply, not one a chunk, and the rest of the line is no request. */
	ask_code(w, &c, "\n", CONTROL_INVALID_REQUEST, "longer than 4096 bytes");
	ask(w, &c, CALL "\"none\"}\n", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}\n");
	client_close(&c);
}

static void test_rubbish(void **state)
{
	struct world *w = *state;
	static char noise[200000];
	uint32_t seed = 1;
	struct client c;
	int seen;

	for (size_t i = 0; i < sizeof(noise); i++) {
		seed = seed * 1664525 + 1013904223;
		noise[i] = (char)(seed >> 24);
	}
	client_open(w, &c);
	for (size_t at = 0; at < sizeof(noise); at += 5000) {
		put(w, &c, noise + at, 5000);
		turn(w);
		client_read(&c);
	}
	say(w, &c, "\n");
	do {
		seen = c.lines;
		settle(w);
		client_read(&c);
	} while (c.lines > seen);
	assert_true(c.lines > 100);
	assert_false(c.closed);
	ask(w, &c, CALL "\"none\"}\n", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}\n");
	client_close(&c);
}

/* Clients that go away. */

static void test_disconnects(void **state)
{
	struct world *w = *state;
	static const char *const last_words[] = {"", "{\"jsonrpc\"", CALL "\"none\"}\n",
		CALL "\"later\"}\n", CALL "\"follow\"}\n", CALL "\"none\"}\n" CALL "\"la"};

	for (size_t i = 0; i < sizeof(last_words) / sizeof(last_words[0]); i++)
		for (int early = 0; early < 2; early++) {
			struct client c;

			client_open(w, &c);
			say(w, &c, last_words[i]);
			if (!early)
				settle(w);
			client_close(&c);
			settle(w);
			assert_int_equal(control_connections(w->control), 0);
		}
	assert_int_equal(w->n_held, 2);
	assert_int_equal(w->n_gone, 2);
	/* The answer to one that is gone is dropped; so is a stream for it. */
	call_error(w->held[0], CONTROL_INTERNAL, "late");
	w->held[0] = w->held[1];
	w->n_held = 0;
	w->stream = call_stream(w->held[0], json_true(), on_gone, w);
	assert_null(w->stream);
	stream_send(w->stream, "log", json_object());
	stream_end(w->stream);
	assert_int_equal(w->n_gone, 2);
}

static void test_half_closed(void **state)
{
	struct world *w = *state;
	struct client c;

	/* As `printf ... | nc -N -U` does: answered, then closed; also without the last newline. */
	client_open(w, &c);
	say(w, &c, CALL "\"echo\",\"params\":{\"a\":1}}\n" CALL "\"later\"}\n" CALL "\"none\"}");
	shutdown(c.fd, SHUT_WR);
	settle(w);
	client_read(&c);
	assert_int_equal(c.lines, 2);
	assert_false(c.closed); /* one answer is owed */
	call_reply(w->held[--w->n_held], json_true());
	await(w, &c, 4);
	assert_int_equal(c.lines, 3);
	assert_true(c.closed);
	client_close(&c);
	settle(w);
	assert_int_equal(control_connections(w->control), 0);
}

static void test_half_closed_stream(void **state)
{
	struct world *w = *state;
	int64_t end = clock_mono_ms() + 8000;
	struct client c;

	client_open(w, &c);
	say(w, &c, CALL "\"follow\"}\n");
	shutdown(c.fd, SHUT_WR);
	settle(w);
	assert_non_null(w->stream);
	stream_send(w->stream, "log", json_pack("{s:i}", "n", 1));
	await(w, &c, 2);
	assert_string_equal(buf_str(&c.in),
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":true}\n"
		"{\"jsonrpc\":\"2.0\",\"method\":\"log\",\"params\":{\"n\":1}}\n");
	assert_false(c.closed);
	/* It goes away for good, and nothing is sent to notice that by. */
	client_close(&c);
	while (w->n_gone == 0 && clock_mono_ms() < end)
		turn(w);
	assert_int_equal(w->n_gone, 1);
	assert_int_equal(control_connections(w->control), 0);
}

/* Clients that do not read. */

static void test_stopped_reader(void **state)
{
	struct world *w = *state;
	cleanup(free) char *text = xcalloc(1, 10001);
	struct client c, other;
	int sent = 0;

	memset(text, 'x', 10000);
	client_open(w, &c);
	client_open(w, &other);
	say(w, &c, CALL "\"follow\"}\n");
	settle(w);
	while (w->n_gone == 0 && sent < 1000) {
		/* The stream stays valid through stream_send itself, even when that drops it. */
		stream_send(w->stream, "log", json_pack("{s:s}", "x", text));
		stream_send(w->stream, "log", json_pack("{s:s}", "x", text));
		sent += 2;
		turn(w);
	}
	assert_int_equal(w->n_gone, 1);
	/* The kernel's buffer and ours, no more. */
	assert_true(sent * 10000 < QUEUE_MAX_TEST + (1 << 20));
	assert_int_equal(control_connections(w->control), 1);
	ask(w, &other, CALL "\"none\"}\n", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}\n");
	client_close(&c);
	client_close(&other);
}

static void test_asks_and_never_reads(void **state)
{
	struct world *w = *state;
	static const char line[] = CALL "\"big\",\"params\":{\"bytes\":20000}}\n";
	int64_t end = clock_mono_ms() + 12000;
	struct client c, other;
	int open = 2;

	client_open(w, &c);
	client_open(w, &other);
	settle(w);
	assert_int_equal(control_connections(w->control), 2);
	while (open == 2 && clock_mono_ms() < end) {
		send(c.fd, line, strlen(line), MSG_NOSIGNAL | MSG_DONTWAIT);
		turn(w);
		open = control_connections(w->control);
	}
	assert_int_equal(open, 1);
	ask(w, &other, CALL "\"none\"}\n", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}\n");
	client_close(&c);
	client_close(&other);
}

/* One that reads gets any number of large answers that it asked for at once. */
static void test_pipeline(void **state)
{
	struct world *w = *state;
	struct client c;

	client_open(w, &c);
	for (int i = 0; i < 200; i++)
		say(w, &c, CALL "\"big\",\"params\":{\"bytes\":60000}}\n");
	await(w, &c, 200);
	assert_int_equal(c.lines, 200);
	/* And an answer that is larger than the whole queue. */
	forget(&c);
	say(w, &c, CALL "\"big\",\"params\":{\"bytes\":1000000}}\n");
	await(w, &c, 1);
	assert_int_equal(c.lines, 1);
	assert_true(c.in.len > 1000000);
	client_close(&c);
}

static void test_open_calls(void **state)
{
	struct world *w = *state;
	struct client c;

	client_open(w, &c);
	for (int i = 0; i < 50; i++)
		say(w, &c, CALL "\"later\"}\n");
	settle(w);
	assert_int_equal(w->n_held, 32);
	for (int i = 0; i < 32; i++)
		call_reply(w->held[i], json_true());
	w->n_held = 0;
	await(w, &c, 32);
	assert_int_equal(c.lines, 32);
	assert_int_equal(w->n_held, 18);
	client_close(&c);
}

static void test_streams_end(void **state)
{
	struct world *w = *state;
	struct client c;

	client_open(w, &c);
	ask(w, &c, CALL "\"follow\"}\n", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":true}\n");
	stream_end(w->stream);
	ask(w, &c, CALL "\"follow\"}\n", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":true}\n");
	control_free(w->control);
	w->control = NULL;
	assert_int_equal(w->n_gone, 1);
	await(w, &c, 9);
	assert_true(c.closed);
	client_close(&c);
	assert_int_equal(access(w->path, F_OK), -1);
}

/* Connections. */

static void test_too_many(void **state)
{
	struct world *w = *state;
	struct client c[6];

	for (int i = 0; i < 6; i++) {
		client_open(w, &c[i]);
		settle(w);
	}
	assert_int_equal(control_connections(w->control), 4);
	for (int i = 4; i < 6; i++) {
		await(w, &c[i], 9);
		assert_true(c[i].closed);
		assert_int_equal(c[i].lines, 1);
		assert_non_null(strstr(buf_str(&c[i].in), "too many connections"));
		client_close(&c[i]);
	}
	client_close(&c[0]);
	settle(w);
	client_open(w, &c[4]);
	ask(w, &c[4], CALL "\"none\"}\n", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}\n");
	for (int i = 1; i < 5; i++)
		client_close(&c[i]);
}

static void test_no_descriptors(void **state)
{
	struct world *w = *state;
	struct rlimit old, tight;
	struct client c;
	struct timespec cpu0, cpu1;
	int64_t until;

	client_open(w, &c);
	getrlimit(RLIMIT_NOFILE, &old);
	tight = old;
	tight.rlim_cur = (rlim_t)c.fd; /* no more than what is open now */
	setrlimit(RLIMIT_NOFILE, &tight);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu0);
	until = clock_mono_ms() + 500;
	while (clock_mono_ms() < until)
		turn(w);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu1);
	assert_int_equal(control_connections(w->control), 0);
	setrlimit(RLIMIT_NOFILE, &old);
	assert_true(
		(cpu1.tv_sec - cpu0.tv_sec) * 1000 + (cpu1.tv_nsec - cpu0.tv_nsec) / 1000000 < 250);
	say(w, &c, CALL "\"none\"}\n");
	await(w, &c, 1);
	assert_int_equal(c.lines, 1);
	client_close(&c);
}

/* The socket file. */

static void test_socket_file(void **state)
{
	struct world *w = *state;
	cleanup(free) char *odd = xasprintf("%s/odd", w->dir);
	cleanup(free) char *tmp = xasprintf("%s.new", w->path);
	struct world second = {.base = w->base};
	struct stat st;
	pid_t pid;
	int status;

	assert_int_equal(lstat(w->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(access(tmp, F_OK), -1);
	snprintf(second.path, sizeof(second.path), "%s", w->path);
	assert_int_equal(start(&second, NULL, NULL, -1), -EADDRINUSE);
	assert_non_null(strstr(err.msg, "another daemon answers there"));
	assert_int_equal(lstat(w->path, &st), 0);
	/* One that was killed leaves its file behind. */
	control_free(w->control);
	w->control = NULL;
	pid = fork();
	if (pid == 0) {
		start(w, NULL, NULL, -1);
		raise(SIGKILL);
	}
	waitpid(pid, &status, 0);
	assert_int_equal(lstat(w->path, &st), 0);
	assert_int_equal(start(w, NULL, NULL, -1), 0);
	/* The file of a successor is not removed. */
	unlink(w->path);
	assert_int_equal(start(&second, NULL, NULL, -1), 0);
	control_free(w->control);
	w->control = NULL;
	assert_int_equal(lstat(w->path, &st), 0);
	control_free(second.control);
	assert_int_equal(lstat(w->path, &st), -1);

	assert_int_equal(file_write(odd, "precious", 8, 0600, &err), 0);
	snprintf(second.path, sizeof(second.path), "%s", odd);
	assert_int_equal(start(&second, NULL, NULL, -1), -EEXIST);
	assert_int_equal(stat(odd, &st), 0);
	assert_int_equal(st.st_size, 8);
	snprintf(second.path, sizeof(second.path), "%s/none/x", w->dir);
	assert_int_equal(start(&second, NULL, NULL, -1), -ENOENT);
	assert_int_equal(start(&second, "no-such-group", NULL, -1), -ENOENT);
	assert_non_null(strstr(err.msg, "there is no group \"no-such-group\""));
}

static void test_long_path(void **state)
{
	struct world *w = *state;
	char path[200];
	struct control_spec spec = {.base = w->base, .path = path, .fd = -1, .methods = methods};
	struct control *control = NULL;

	memset(path, 'x', sizeof(path));
	path[0] = '/';
	path[199] = '\0';
	assert_int_equal(control_new(&spec, &control, &err), -ENAMETOOLONG);
	assert_null(control);
}

static void test_passed_socket(void **state)
{
	struct world *w = *state;
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fds[2], fd = socket(AF_UNIX, SOCK_STREAM, 0);
	struct client c;

	control_free(w->control);
	w->control = NULL;
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(start(w, NULL, NULL, fds[0]), -ENOTSOCK);
	assert_int_equal(start(w, NULL, NULL, fd), -EINVAL); /* does not listen */
	assert_non_null(strstr(err.msg, "not a listening Unix stream socket"));
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", w->path);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fd, 5), 0);
	assert_int_equal(start(w, NULL, NULL, fd), 0);
	client_open(w, &c);
	ask(w, &c, CALL "\"none\"}\n", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}\n");
	client_close(&c);
	control_free(w->control);
	w->control = NULL;
	assert_int_equal(access(w->path, F_OK), 0); /* systemd's, not ours */
	close(fds[0]);
	close(fds[1]);
}

/* Who may. */

static void test_own_user(void **state)
{
	struct world *w = *state;
	char want[200];
	struct client c;

	snprintf(want, sizeof(want),
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"uid\":%d,\"pid\":%d,\"member\":1,"
		"\"admin\":1}}\n",
		(int)getuid(), (int)getpid());
	client_open(w, &c);
	ask(w, &c, CALL "\"who\"}\n", want);
	client_close(&c);
}

/* Ask "who" as another user; the answer's line, or "" when the socket cannot even be reached. */
static void ask_as(struct world *w, uid_t uid, gid_t gid, struct buf *ret)
{
	int fds[2], status, n = 0;
	char chunk[4096];
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		static const char line[] = CALL "\"who\"}\n";
		int fd;
		ssize_t got;

		if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 ||
			setresuid(uid, uid, uid) < 0)
			_exit(1);
		fd = dial(w->path);
		if (fd < 0 || write(fd, line, strlen(line)) < 0)
			_exit(2);
		got = read(fd, chunk, sizeof(chunk));
		_exit(got > 0 && write(fds[1], chunk, (size_t)got) == got ? 0 : 3);
	}
	close(fds[1]);
	while (waitpid(pid, &status, WNOHANG) == 0)
		turn(w);
	n = (int)read(fds[0], chunk, sizeof(chunk));
	buf_reset(ret);
	buf_add(ret, chunk, n > 0 ? (size_t)n : 0);
	close(fds[0]);
}

static void test_groups(void **state)
{
	struct world *w = *state;
	struct control_limits limits = {LINE_MAX_TEST, QUEUE_MAX_TEST, 4};
	struct passwd *pw = getpwnam("games"), games = pw ? *pw : (struct passwd){0};
	struct group *nogroup = getgrnam("nogroup");
	gid_t outside = nogroup ? nogroup->gr_gid : 65534;
	static const struct {
		const char *group, *admins;
		int by_process; /* the process runs under the group; else only the database says so
				 */
		const char *says; /* NULL: cannot connect */
	} cases[] = {
		{NULL, NULL, 1, "is not the daemon's own user"},
		{"games", NULL, 1, "\"member\":1,\"admin\":0"},
		{"games", NULL, 0, "\"member\":1,\"admin\":0"},
		{"daemon", NULL, 1, "is not a member of the group daemon"},
		{"no-such-group", NULL, 1, "is not a member of the group"},
		{"daemon", "root  games", 0, "\"member\":1,\"admin\":1"},
		{NULL, "games", 0, "\"member\":1,\"admin\":1"},
		{NULL, "game gamesx nobody", 0, "is not the daemon's own user"},
	};

	if (geteuid() != 0 || !games.pw_uid || !getgrnam("daemon"))
		skip();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cleanup(buf_release) struct buf got = BUF_INIT;

		control_configure(w->control, cases[i].group, cases[i].admins, &limits);
		chmod(w->path, 0666); /* the file's mode would keep most of them out */
		ask_as(w, games.pw_uid, cases[i].by_process ? games.pw_gid : outside, &got);
		if (!strstr(buf_str(&got), cases[i].says))
			fail_msg("%zu: %s", i, buf_str(&got));
	}
}

static void test_group_file(void **state)
{
	struct world *w = *state;
	struct control_limits limits = {LINE_MAX_TEST, QUEUE_MAX_TEST, 4};
	cleanup(buf_release) struct buf got = BUF_INIT;
	struct passwd *pw = getpwnam("games"), games = pw ? *pw : (struct passwd){0};
	struct stat st;

	if (geteuid() != 0 || !games.pw_uid)
		skip();
	control_free(w->control);
	w->control = NULL;
	assert_int_equal(start(w, "games", NULL, -1), 0);
	assert_int_equal(lstat(w->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0660);
	assert_int_equal(st.st_gid, games.pw_gid);
	ask_as(w, games.pw_uid, games.pw_gid, &got);
	assert_non_null(strstr(buf_str(&got), "\"member\":1"));
	ask_as(w, 65534, 65534, &got);
	assert_string_equal(buf_str(&got), "");
	control_configure(w->control, NULL, NULL, &limits);
	assert_int_equal(lstat(w->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
}

/* A reload is felt by those who are connected: judged anew, and by the new limits. */
static void test_configure(void **state)
{
	struct world *w = *state;
	struct control_limits limits = {100, QUEUE_MAX_TEST, 1};
	struct client c, second;

	client_open(w, &c);
	ask(w, &c, CALL "\"none\"}\n", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}\n");
	control_configure(w->control, NULL, NULL, &limits);
	ask_code(w, &c,
		CALL "\"none\"                                                                   "
		     "       }\n",
		CONTROL_INVALID_REQUEST, "longer than 100 bytes");
	client_open(w, &second);
	await(w, &second, 9);
	assert_true(second.closed);
	client_close(&c);
	client_close(&second);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_requests),
		T(test_refusals),
		T(test_bombs),
		T(test_line_limit),
		T(test_pieces),
		T(test_huge_line),
		T(test_rubbish),
		T(test_disconnects),
		T(test_half_closed),
		T(test_half_closed_stream),
		T(test_stopped_reader),
		T(test_asks_and_never_reads),
		T(test_pipeline),
		T(test_open_calls),
		T(test_streams_end),
		T(test_too_many),
		T(test_no_descriptors),
		T(test_socket_file),
		T(test_long_path),
		T(test_passed_socket),
		T(test_own_user),
		T(test_groups),
		T(test_group_file),
		T(test_configure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
