/* boot/guest.h against a real dropbear on 127.0.0.1, in a sandbox that gives it a home of its own.
 */

#include "boot/guest.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pwd.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/child.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/banned.h"

#define BIG (5 << 20)

/* One server for all tests; those that kill it start it again. */
static struct {
	char dir[64]; /* temporary */
	char *keys, *wrong, *home;
	const char *user;
	int port;
	pid_t pid;
	int missing; /* no dropbear or no bubblewrap here */
} server;

static char *path(const char *name)
{
	return file_join(server.dir, name);
}

static void run(const char *a, const char *b, const char *c)
{
	const char *argv[] = {a, b, c, NULL};
	struct child_spec spec = {.argv = argv, .fd_in = -1, .fd_out = -1, .fd_err = 2};
	struct err err;

	if (child_run(&spec, 20000, &err) < 0)
		fail_msg("%s", err.msg);
}

static int free_port(void)
{
	cleanup(close) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in addr = {.sin_family = AF_INET};
	socklen_t len = sizeof(addr);

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
	return ntohs(addr.sin_port);
}

static int open_with(const char *keys, int timeout_ms, struct guest **ret, struct err *err)
{
	struct guest_spec spec = {.host = "127.0.0.1",
		.port = server.port,
		.keys_dir = keys,
		.user = server.user,
		.timeout_ms = timeout_ms};

	return guest_open(&spec, ret, err);
}

static struct guest *opened(void)
{
	struct guest *g = NULL;
	struct err err;

	if (open_with(server.keys, 5000, &g, &err) < 0)
		fail_msg("%s", err.msg);
	return g;
}

static void server_start(void)
{
	cleanup(free) char *port = NULL, *host_key = file_join(server.keys, "host_key");
	const char *argv[] = {"bwrap", "--dev-bind", "/", "/", "--bind", server.home,
		getpwuid(getuid())->pw_dir, "--unshare-pid", "--proc", "/proc", "--die-with-parent",
		"dropbear", "-F", "-E", "-s", "-r", host_key, "-p", NULL, NULL};
	struct child_spec spec = {.argv = argv, .fd_in = -1, .fd_out = -1, .fd_err = -1};
	int64_t end = clock_mono_ms() + 5000;
	struct guest *g = NULL;
	struct err err;

	server.port = free_port();
	port = xasprintf("127.0.0.1:%d", server.port);
	argv[sizeof(argv) / sizeof(argv[0]) - 2] = port;
	if (child_start(&spec, &server.pid, &err) < 0)
		fail_msg("%s", err.msg);
	while (open_with(server.keys, 2000, &g, &err) < 0) {
		if (clock_mono_ms() > end)
			fail_msg("no ssh server: %s", err.msg);
		usleep(20000);
	}
	guest_close(g);
}

static void server_stop(void)
{
	if (server.pid <= 0)
		return;
	kill(-server.pid, SIGKILL);
	waitpid(server.pid, NULL, 0);
	server.pid = 0;
}

static int has(const char *program)
{
	const char *argv[] = {"sh", "-c", "command -v \"$0\"", program, NULL};
	struct child_spec spec = {.argv = argv, .fd_in = -1, .fd_out = -1, .fd_err = -1};

	return child_run(&spec, 5000, NULL) == 0;
}

static int setup(void **state)
{
	cleanup(free) char *ssh = NULL, *pub = NULL, *auth = NULL;
	struct err err;

	(void)state;
	setenv("PATH", "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin", 1);
	server.missing = !has("dropbear") || !has("bwrap");
	if (server.missing)
		return 0;
	snprintf(server.dir, sizeof(server.dir), "/tmp/test_guest.XXXXXX");
	assert_non_null(mkdtemp(server.dir));
	server.user = getpwuid(getuid())->pw_name;
	server.keys = path("keys");
	server.wrong = path("wrong");
	server.home = path("home");
	run("etc/guest/mkguest", "keys", server.keys);
	run("etc/guest/mkguest", "keys", server.wrong);
	ssh = path("home/.ssh");
	auth = path("home/.ssh/authorized_keys");
	pub = file_join(server.keys, "client_key.pub");
	assert_int_equal(file_mkdir(ssh, 0700, &err), 0);
	assert_int_equal(file_copy(pub, auth, &err), 0);
	chmod(auth, 0600);
	server_start();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	server_stop();
	if (server.dir[0])
		file_remove(server.dir, NULL);
	free(server.keys);
	free(server.wrong);
	free(server.home);
	return 0;
}

#define need_server()                                                                              \
	do {                                                                                       \
		if (server.missing)                                                                \
			skip();                                                                    \
	} while (0)

static void test_exec(void **state)
{
	static const struct {
		const char *command, *output;
		int status;
	} rows[] = {
		{"echo hello", "hello\n", 0},
		{"exit 7", "", 7},
		{"echo out; echo err >&2; echo out2", "out\nerr\nout2\n", 0},
		{"kill -9 $$", "", 137},
		{"kill -TERM $$", "", 143},
		{"cat; echo end", "end\n", 0},
		{"exec >&- 2>&-; sleep 0.3; exit 3", "", 3},
		{"no-such-program-at-all 2>/dev/null", "", 127},
		{"printf 'a\\000b' | od -An -c | tr -d ' '", "a\\0b\n", 0},
		{"# only a comment", "", 0},
	};
	cleanup(guest_close) struct guest *g = NULL;

	(void)state;
	need_server();
	g = opened();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cleanup(buf_release) struct buf out = BUF_INIT;
		int status = -1;
		struct err err;
		int r = guest_exec(
			g, rows[i].command, 5000, 1000, -1, NULL, NULL, &out, &status, &err);

		if (r < 0)
			fail_msg("%s: %s", rows[i].command, err.msg);
		assert_string_equal(buf_str(&out), rows[i].output);
		assert_int_equal(status, rows[i].status);
	}
}

struct pieces {
	int n;
	size_t bytes;
};

static void count_piece(void *arg, const char *data, size_t len)
{
	struct pieces *p = arg;

	(void)data;
	p->n++;
	p->bytes += len;
}

static void test_stream(void **state)
{
	cleanup(guest_close) struct guest *g = NULL;
	struct pieces pieces = {0};
	struct err err;
	int status = -1;

	(void)state;
	need_server();
	g = opened();
	assert_int_equal(guest_exec(g, "echo 1; sleep 0.2; echo 2; sleep 0.2; echo 3", 5000, 100,
				 -1, count_piece, &pieces, NULL, &status, &err),
		0);
	assert_int_equal(status, 0);
	assert_int_equal(pieces.bytes, 6);
	assert_in_range(pieces.n, 3, 6);
}

static void test_output_cap(void **state)
{
	cleanup(guest_close) struct guest *g = NULL;
	cleanup(buf_release) struct buf out = BUF_INIT;
	struct err err;
	int status = -1;

	(void)state;
	need_server();
	g = opened();
	assert_int_equal(guest_exec(g, "yes | head -c 3000000", 20000, 3000000, -1, NULL, NULL,
				 &out, &status, &err),
		0);
	assert_int_equal(out.len, 3000000);
	buf_reset(&out);
	assert_int_equal(
		guest_exec(g, "yes", 20000, 100000, -1, NULL, NULL, &out, &status, &err), -EFBIG);
	assert_int_equal(out.len, 100000);
	assert_non_null(strstr(err.msg, "100000 bytes"));
}

/* Silent, chatty, or deaf to its closed channel: the limit holds for all. */
static void test_timeout(void **state)
{
	static const char *const commands[] = {"sleep 60", "yes",
		"trap '' HUP PIPE TERM; while :; do sleep 0.05; echo x 2>/dev/null; done"};

	(void)state;
	need_server();
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		cleanup(guest_close) struct guest *g = opened();
		int64_t begin = clock_mono_ms();
		int status = -1;
		struct err err;

		assert_int_equal(guest_exec(g, commands[i], 400, SIZE_MAX, -1, NULL, NULL, NULL,
					 &status, &err),
			-ETIMEDOUT);
		assert_true(clock_mono_ms() - begin >= 400);
		assert_int_equal(status, -1);
	}
	server_stop();
	server_start();
}

static void test_killed(void **state)
{
	cleanup(guest_close) struct guest *g = NULL;
	cleanup(buf_release) struct buf out = BUF_INIT;
	struct err err;
	int status = -1;
	pid_t killer;

	(void)state;
	need_server();
	g = opened();
	killer = fork();
	if (killer == 0) {
		usleep(300000);
		kill(-server.pid, SIGKILL);
		_exit(0);
	}
	assert_int_equal(guest_exec(g, "echo begun; sleep 60", 10000, 1000, -1, NULL, NULL, &out,
				 &status, &err),
		-ECONNRESET);
	assert_string_equal(buf_str(&out), "begun\n");
	assert_int_equal(status, -1);
	waitpid(killer, NULL, 0);
	assert_true(guest_exec(g, "true", 1000, 10, -1, NULL, NULL, NULL, &status, &err) < 0);
	server_stop();
	server_start();
}

static void interrupt_one(const char *command)
{
	cleanup(guest_close) struct guest *g = opened();
	int fds[2], status = -1;
	int64_t begin;
	struct err err;
	pid_t writer;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	writer = fork();
	if (writer == 0) {
		usleep(300000);
		_exit(write(fds[1], "x", 1) != 1);
	}
	begin = clock_mono_ms();
	assert_int_equal(
		guest_exec(g, command, 10000, SIZE_MAX, fds[0], NULL, NULL, NULL, &status, &err),
		-EINTR);
	assert_true(clock_mono_ms() - begin >= 200);
	waitpid(writer, NULL, 0);
	close(fds[0]);
	close(fds[1]);
}

static void test_interrupt(void **state)
{
	static const char *const commands[] = {"sleep 60", "yes"};

	(void)state;
	need_server();
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		interrupt_one(commands[i]);
}

/* A folder with the right host key and a client key that the server does not know. */
static char *stranger(void)
{
	static const char *const from[] = {
		"keys/host_key.pub", "wrong/client_key", "wrong/client_key.pub"};
	char *dir = path("stranger");
	struct err err;

	assert_int_equal(file_mkdir(dir, 0700, &err), 0);
	for (size_t i = 0; i < sizeof(from) / sizeof(from[0]); i++) {
		cleanup(free) char *a = path(from[i]);
		cleanup(free) char *b = file_join(dir, strchr(from[i], '/') + 1);

		assert_int_equal(file_copy(a, b, &err), 0);
	}
	return dir;
}

static void test_refused(void **state)
{
	cleanup(free) char *dir = NULL;
	struct guest *g = NULL;
	struct err err;
	int port = server.port;

	(void)state;
	need_server();
	assert_int_equal(open_with(server.wrong, 5000, &g, &err), -EKEYREJECTED);
	assert_non_null(strstr(err.msg, "another host key"));

	dir = stranger();
	assert_int_equal(open_with(dir, 5000, &g, &err), -EACCES);
	assert_non_null(strstr(err.msg, "refuses the client key"));

	assert_int_equal(open_with("/nonexistent", 5000, &g, &err), -ENOENT);

	server.port = free_port();
	assert_int_equal(open_with(server.keys, 5000, &g, &err), -ECONNREFUSED);
	server.port = port;
	assert_null(g);
}

/* Something that accepts and says nothing, rubbish, or hangs up: what a half-booted guest does. */
static void test_not_ssh(void **state)
{
	static const struct {
		const char *says;
		int hang_up, code;
	} rows[] = {
		{"", 0, -ETIMEDOUT},
		{"", 1, -ECONNRESET},
		{"SSH-2.0-x\r\n\xff\xff\xff\xff garbage garbage garbage", 1, 0},
		{"HTTP/1.1 400 Bad Request\r\n\r\n", 1, 0},
	};
	int port = server.port;

	(void)state;
	need_server();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cleanup(close) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		struct sockaddr_in addr = {.sin_family = AF_INET};
		struct guest *g = NULL;
		struct err err;
		pid_t pid;
		int r;

		server.port = free_port();
		addr.sin_port = htons((uint16_t)server.port);
		addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
		assert_int_equal(listen(fd, 1), 0);
		pid = fork();
		if (pid == 0) {
			int c = accept(fd, NULL, NULL);

			if (write(c, rows[i].says, strlen(rows[i].says)) >= 0 && !rows[i].hang_up)
				pause();
			_exit(0);
		}
		r = open_with(server.keys, 500, &g, &err);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		assert_true(rows[i].code ? r == rows[i].code : r < 0);
		assert_null(g);
	}
	server.port = port;
}

/* 5 MiB of every byte value, there and back, under a name that needs quoting. */
static void test_copy(void **state)
{
	cleanup(guest_close) struct guest *g = NULL;
	cleanup(free) char *from = NULL, *there = NULL, *back = NULL, *data = xmalloc(BIG);
	cleanup(buf_release) struct buf got = BUF_INIT;
	uint32_t x = 1;
	struct stat st;
	struct err err;

	(void)state;
	need_server();
	g = opened();
	from = path("from");
	there = path("it's $HOME there");
	back = path("back");
	for (int i = 0; i < BIG; i++) {
		x = x * 1664525 + 1013904223;
		data[i] = (char)(x >> 24);
	}
	assert_int_equal(file_write(from, data, BIG, 0600, &err), 0);
	if (guest_upload(g, from, there, 0750, 30000, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(stat(there, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0750);
	if (guest_download(g, there, back, BIG, 30000, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(file_read(back, BIG, &got, &err), 0);
	assert_int_equal(got.len, BIG);
	assert_memory_equal(got.data, data, BIG);

	assert_int_equal(guest_download(g, there, back, BIG - 1, 30000, &err), -EFBIG);
	assert_int_equal(guest_download(g, "/nonexistent/x", back, 10, 30000, &err), -EIO);
	assert_non_null(strstr(err.msg, "/nonexistent/x"));
	assert_int_equal(guest_upload(g, from, "/nonexistent/x", 0644, 30000, &err), -EIO);
	assert_int_equal(guest_upload(g, from, "/dev/full", 0644, 30000, &err), -EIO);
	assert_non_null(strstr(err.msg, "No space left"));
	assert_int_equal(guest_upload(g, "/nonexistent/y", there, 0644, 30000, &err), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exec),
		cmocka_unit_test(test_stream),
		cmocka_unit_test(test_output_cap),
		cmocka_unit_test(test_timeout),
		cmocka_unit_test(test_killed),
		cmocka_unit_test(test_interrupt),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_not_ssh),
		cmocka_unit_test(test_copy),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
