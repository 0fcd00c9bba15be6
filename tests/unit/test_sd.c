#include "base/sd.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/banned.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* A manager's end: a datagram socket at the address that NOTIFY_SOCKET names. */
static int manager(const char *name)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	size_t len = strlen(name);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	memcpy(addr.sun_path, name, len);
	if (name[0] == '@')
		addr.sun_path[0] = '\0';
	len += offsetof(struct sockaddr_un, sun_path) + (name[0] != '@');
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, (socklen_t)len), 0);
	setenv("NOTIFY_SOCKET", name, 1);
	return fd;
}

static void check_notify(const char *name)
{
	cleanup(close) int fd = manager(name);
	char got[64] = "";

	assert_int_equal(sd_notify_send("READY=1"), 1);
	assert_int_equal(recv(fd, got, sizeof(got) - 1, 0), 7);
	assert_string_equal(got, "READY=1");
	assert_int_equal(recv(fd, got, sizeof(got), 0), -1);
}

static void test_notify(void **state)
{
	char dir[] = "/tmp/test_sd.XXXXXX";
	cleanup(free) char *path = NULL;
	cleanup(free) char *abstract = xasprintf("@test_sd.%d", (int)getpid());

	(void)state;
	assert_non_null(mkdtemp(dir));
	path = xasprintf("%s/notify", dir);
	check_notify(path);
	check_notify(abstract);
	/* The manager is gone. */
	setenv("NOTIFY_SOCKET", path, 1);
	assert_int_equal(sd_notify_send("READY=1"), -ECONNREFUSED);
	unlink(path);
	assert_int_equal(sd_notify_send("READY=1"), -ENOENT);
	rmdir(dir);
	unsetenv("NOTIFY_SOCKET");
	assert_int_equal(sd_notify_send("READY=1"), 0);
}

static void test_notify_never_blocks(void **state)
{
	cleanup(free) char *name = xasprintf("@test_sd.full.%d", (int)getpid());
	cleanup(close) int fd = manager(name);
	int r = 1;

	(void)state;
	assert_true(fd >= 0);
	for (int i = 0; i < 100000 && r == 1; i++)
		r = sd_notify_send("WATCHDOG=1");
	assert_int_equal(r, -EAGAIN);
	unsetenv("NOTIFY_SOCKET");
}

static void test_notify_bad_address(void **state)
{
	char longest[200];

	(void)state;
	memset(longest, 'x', sizeof(longest));
	longest[0] = '/';
	longest[sizeof(longest) - 1] = '\0';
	setenv("NOTIFY_SOCKET", longest, 1);
	assert_int_equal(sd_notify_send("READY=1"), -EINVAL);
	setenv("NOTIFY_SOCKET", "relative", 1);
	assert_int_equal(sd_notify_send("READY=1"), -EINVAL);
	setenv("NOTIFY_SOCKET", "", 1);
	assert_int_equal(sd_notify_send("READY=1"), 0);
	unsetenv("NOTIFY_SOCKET");
}

static const struct {
	const char *pid, *fds; /* pid "self" = this process; NULL = not set */
	int is_open, result;   /* is descriptor 3 open? */
} listen_cases[] = {
	{NULL, NULL, 1, -1},
	{"self", "1", 1, 3},
	{"self", "1", 0, -EINVAL},
	{"1", "1", 1, -1},
	{"self", "2", 1, -EINVAL},
	{"self", "0", 1, -EINVAL},
	{"self", "-1", 1, -EINVAL},
	{"self", "1x", 1, -EINVAL},
	{"self", NULL, 1, -EINVAL},
	{"", "1", 1, -1},
	{"selfx", "1", 1, -1},
};

/* In a process of its own, because descriptor 3 has to be a certain one. 0 = as it should be. */
static int listen_case(size_t i)
{
	cleanup(free) char *self = xasprintf("%d", (int)getpid());
	const char *pid = listen_cases[i].pid;
	struct err err = {0};
	int fds[2], r;

	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	if (pid)
		setenv("LISTEN_PID", strcmp(pid, "self") == 0 ? self : pid, 1);
	if (listen_cases[i].fds)
		setenv("LISTEN_FDS", listen_cases[i].fds, 1);
	setenv("LISTEN_FDNAMES", "kbisectd.socket", 1);
	close(3);
	if (listen_cases[i].is_open) {
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) < 0)
			return 1;
		if (fds[0] != 3 && dup2(fds[0], 3) < 0)
			return 2;
	}
	r = sd_listen_socket(&err);
	if (r != listen_cases[i].result)
		return 3;
	if (getenv("LISTEN_PID") || getenv("LISTEN_FDS") || getenv("LISTEN_FDNAMES"))
		return 4;
	if ((r < -1) != (err.msg[0] != '\0'))
		return 5;
	if (r == 3 && !(fcntl(3, F_GETFD) & FD_CLOEXEC))
		return 6;
	/* A second look finds nothing. */
	return sd_listen_socket(&err) == -1 ? 0 : 7;
}

static void test_listen(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(listen_cases); i++) {
		int status = -1;
		pid_t pid = fork();

		if (pid == 0)
			_exit(listen_case(i));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (status != 0)
			fail_msg("case %zu: status %#x", i, (unsigned)status);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_notify),
		cmocka_unit_test(test_notify_never_blocks),
		cmocka_unit_test(test_notify_bad_address),
		cmocka_unit_test(test_listen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
