#include "base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/banned.h"

/* In the child: put fd (or /dev/null) in place of `target`. */
static int place(int fd, int target, int flags)
{
	if (fd < 0)
		fd = open("/dev/null", flags);
	return fd < 0 ? -1 : dup2(fd, target);
}

/* In the child: never returns; reports a failure as errno on `report`. */
static void __attribute__((noreturn))
child_exec(const struct child_spec *spec, pid_t parent, int report)
{
	sigset_t none;
	int code;

	sigemptyset(&none);
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (getppid() != parent)
		_exit(127);
	/* Above 2, so that placing one of the three cannot overwrite another. */
	int in = spec->fd_in < 0 ? -1 : fcntl(spec->fd_in, F_DUPFD_CLOEXEC, 10);
	int out = spec->fd_out < 0 ? -1 : fcntl(spec->fd_out, F_DUPFD_CLOEXEC, 10);
	int errfd = spec->fd_err < 0 ? -1 : fcntl(spec->fd_err, F_DUPFD_CLOEXEC, 10);
	report = fcntl(report, F_DUPFD_CLOEXEC, 10);
	if (place(in, 0, O_RDONLY) >= 0 && place(out, 1, O_WRONLY) >= 0 &&
		place(errfd, 2, O_WRONLY) >= 0 && (!spec->dir || chdir(spec->dir) == 0)) {
		syscall(SYS_close_range, 3U, ~0U, 4U /* CLOSE_RANGE_CLOEXEC */);
		if (spec->env)
			execvpe(spec->argv[0], (char *const *)spec->argv, (char *const *)spec->env);
		else
			execvp(spec->argv[0], (char *const *)spec->argv);
	}
	code = errno;
	if (write(report, &code, sizeof(code)) < 0)
		_exit(126);
	_exit(127);
}

int child_start(const struct child_spec *spec, pid_t *ret_pid, struct err *err)
{
	pid_t parent = getpid(), pid;
	int report[2], code;
	ssize_t n;

	if (pipe2(report, O_CLOEXEC) < 0)
		return err_sys(err, errno, "cannot start %s", spec->argv[0]);
	pid = fork();
	if (pid == 0)
		child_exec(spec, parent, report[1]);
	code = errno;
	close(report[1]);
	if (pid < 0) {
		close(report[0]);
		return err_sys(err, code, "cannot start %s", spec->argv[0]);
	}
	setpgid(pid, pid);
	do
		n = read(report[0], &code, sizeof(code));
	while (n < 0 && errno == EINTR);
	close(report[0]);
	if (n == (ssize_t)sizeof(code)) {
		waitpid(pid, NULL, 0);
		return err_sys(err, code, "cannot start %s", spec->argv[0]);
	}
	*ret_pid = pid;
	return 0;
}

int child_wait(pid_t pid, int timeout_ms, int *ret_status, struct err *err)
{
	cleanup(close) int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	int64_t end = timeout_ms < 0 ? INT64_MAX : clock_mono_ms() + timeout_ms;
	struct pollfd pfd = {.fd = pidfd, .events = POLLIN};
	int r, late = 0;

	if (pidfd < 0)
		return err_sys(err, errno, "cannot watch process %d", (int)pid);
	for (;;) {
		int64_t left = end - clock_mono_ms();

		r = poll(&pfd, 1, timeout_ms < 0 ? -1 : left > 0 ? (int)left : 0);
		if (r > 0 || (r < 0 && errno != EINTR))
			break;
		if (r == 0) {
			late = 1;
			kill(-pid, SIGKILL);
			break;
		}
	}
	while (waitpid(pid, ret_status, 0) < 0)
		if (errno != EINTR)
			return err_sys(err, errno, "cannot reap process %d", (int)pid);
	if (late)
		return err_set(
			err, ETIMEDOUT, "still running after %d s, killed", timeout_ms / 1000);
	return 0;
}

char *child_status_text(int status)
{
	if (WIFSIGNALED(status))
		return xasprintf(
			"killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
	return xasprintf("exit status %d", WEXITSTATUS(status));
}

/* Wait for a started child and judge its exit status. */
static int child_finish(const char *name, pid_t pid, int timeout_ms, struct err *err)
{
	cleanup(free) char *text = NULL;
	int status, r;

	r = child_wait(pid, timeout_ms, &status, err);
	if (r < 0)
		return err_wrap(err, "%s", name);
	if (status == 0)
		return 0;
	text = child_status_text(status);
	return err_set(err, ECHILD, "%s: %s", name, text);
}

int child_run(const struct child_spec *spec, int timeout_ms, struct err *err)
{
	pid_t pid;
	int r = child_start(spec, &pid, err);

	return r < 0 ? r : child_finish(spec->argv[0], pid, timeout_ms, err);
}

int child_output(
	const char *const *argv, int timeout_ms, size_t max, struct buf *ret, struct err *err)
{
	int64_t end = timeout_ms < 0 ? INT64_MAX : clock_mono_ms() + timeout_ms;
	cleanup(close) int rd = -1;
	char chunk[4096];
	int fds[2], r;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_sys(err, errno, "cannot start %s", argv[0]);
	rd = fds[0];
	r = child_start(&(struct child_spec){argv, NULL, NULL, -1, fds[1], -1}, &pid, err);
	close(fds[1]);
	if (r < 0)
		return r;
	for (;;) {
		struct pollfd pfd = {.fd = rd, .events = POLLIN};
		int64_t left = end - clock_mono_ms();
		ssize_t n;

		if (poll(&pfd, 1, timeout_ms < 0 ? -1 : left > 0 ? (int)left : 0) <= 0)
			break;
		n = read(rd, chunk, sizeof(chunk));
		if (n <= 0)
			break;
		if (ret->len < max)
			buf_add(ret, chunk,
				(size_t)n < max - ret->len ? (size_t)n : max - ret->len);
	}
	end -= clock_mono_ms();
	return child_finish(argv[0], pid, timeout_ms < 0 ? -1 : end > 0 ? (int)end : 0, err);
}
