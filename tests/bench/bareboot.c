/*
 * bareboot PORT KEYS QEMU ARGUMENT...: start a QEMU whose serial console is its stdout, wait for
 * our guest's word on it, open an ssh session through 127.0.0.1:PORT, end the QEMU. Prints
 * "READY SSH", both in milliseconds since before the start. The ssh session and the scanner are
 * the daemon's own, so that what is compared with it is everything else.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "boot/console.h"
#include "boot/guest.h"
#include "base/banned.h"

#define LIMIT_MS 120000

/* Feed the console until the guest is ready. */
static int await_ready(int fd, int64_t deadline, struct err *err)
{
	cleanup(console_free) struct console *console = console_new();
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	char chunk[16384];

	while (!(console_events(console) & CONSOLE_READY)) {
		int64_t left = deadline - clock_mono_ms();
		ssize_t n;

		if (left <= 0 || poll(&pfd, 1, (int)left) == 0)
			return err_set(err, ETIMEDOUT, "the guest was not ready in time");
		n = read(fd, chunk, sizeof(chunk));
		if (n <= 0)
			return err_set(err, EIO, "QEMU ended before the guest was ready");
		console_feed(console, chunk, (size_t)n, NULL);
	}
	return 0;
}

static int boot(char **argv, int port, const char *keys, int64_t ret[static 2], struct err *err)
{
	cleanup(guest_close) struct guest *guest = NULL;
	struct guest_spec spec = {"127.0.0.1", port, keys, NULL, LIMIT_MS};
	int64_t start = clock_mono_ms();
	int fds[2], status, r;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_sys(err, errno, "pipe");
	r = child_start(&(struct child_spec){(const char *const *)argv, NULL, NULL, -1, fds[1],
				STDERR_FILENO},
		&pid, err);
	close(fds[1]);
	if (r == 0) {
		r = await_ready(fds[0], start + LIMIT_MS, err);
		ret[0] = clock_mono_ms() - start;
		if (r == 0)
			r = guest_open(&spec, &guest, err);
		ret[1] = clock_mono_ms() - start;
		kill(-pid, SIGKILL);
		child_wait(pid, -1, &status, NULL);
	}
	close(fds[0]);
	return r;
}

int main(int argc, char **argv)
{
	struct err err;
	int64_t at[2] = {0, 0};

	if (argc < 4) {
		fputs("usage: bareboot PORT KEYS QEMU ARGUMENT...\n", stderr);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	if (boot(argv + 3, (int)strtol(argv[1], NULL, 10), argv[2], at, &err) < 0) {
		fprintf(stderr, "bareboot: %s\n", err.msg);
		return 1;
	}
	printf("%lld %lld\n", (long long)at[0], (long long)at[1]);
	return 0;
}
