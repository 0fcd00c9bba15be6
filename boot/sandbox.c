#include "boot/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/child.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/banned.h"

#define ROOT "/build"
#define ARGS_MAX 128

/* An argument list under construction; the strings are its own. */
struct args {
	char *v[ARGS_MAX + 1];
	size_t n;
};

static void args_add(struct args *args, const char *s)
{
	if (args->n < ARGS_MAX)
		args->v[args->n++] = xstrdup(s);
}

static void args_add3(struct args *args, const char *option, const char *from, const char *to)
{
	args_add(args, option);
	args_add(args, from);
	args_add(args, to);
}

static void cleanup_args(struct args *args)
{
	for (size_t i = 0; i < args->n; i++)
		free(args->v[i]);
}

static int has_ccache(const struct sandbox *box)
{
	return box->ccache && *box->ccache;
}

char *sandbox_path(const struct sandbox *box, const char *name)
{
	if (!box->off)
		return file_join(ROOT, name);
	return strcmp(name, "ccache") != 0 ? file_join(box->slot, name) : xstrdup(box->ccache);
}

/* A compiler that is not the system's needs its own installation: bin/gcc lives beside lib/. */
static void add_compiler(struct args *args, const char *cc)
{
	char path[PATH_MAX];

	if (!strchr(cc, '/') || !realpath(cc, path))
		return;
	for (int i = 0; i < 2; i++) {
		char *slash = strrchr(path, '/');

		if (slash && slash != path)
			*slash = '\0';
	}
	args_add3(args, "--ro-bind", path, path);
	if (cc[0] == '/' && strncmp(cc, path, strlen(path)) != 0)
		args_add3(args, "--ro-bind", cc, cc);
}

/* bwrap and its options, up to the command. */
static void add_bwrap(struct args *args, const struct sandbox *box)
{
	static const char *const options[] = {"bwrap", "--die-with-parent", "--unshare-net",
		"--unshare-pid", "--unshare-ipc", "--cap-drop", "ALL", "--proc", "/proc", "--dev",
		"/dev", "--tmpfs", "/tmp"};
	/* Of /etc only what finding programs and libraries needs: there are secrets beside it. */
	static const char *const system[] = {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64",
		"/libx32", "/opt", "/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf",
		"/etc/ld.so.conf.d", "/etc/passwd", "/etc/group"};
	static const struct {
		const char *option, *name;
	} own[] = {{"--ro-bind", "src"}, {"--bind", "conf"}, {"--bind", "obj"}};

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		args_add(args, options[i]);
	for (size_t i = 0; i < sizeof(system) / sizeof(system[0]); i++)
		args_add3(args, "--ro-bind-try", system[i], system[i]);
	add_compiler(args, box->cc);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		cleanup(free) char *from = file_join(box->slot, own[i].name);
		cleanup(free) char *to = file_join(ROOT, own[i].name);

		args_add3(args, own[i].option, from, to);
	}
	if (has_ccache(box))
		args_add3(args, "--bind", box->ccache, ROOT "/ccache");
	args_add(args, "--chdir");
	args_add(args, ROOT);
}

int sandbox_check(const struct sandbox *box, struct err *err)
{
	static const char *const test[] = {"sh", "-c",
		"exec bwrap --ro-bind / / --proc /proc --dev /dev --unshare-net --unshare-pid true "
		"2>&1",
		NULL};
	static const char *const version[] = {"bwrap", "--version", NULL};
	cleanup(buf_release) struct buf out = BUF_INIT, ignored = BUF_INIT;

	if (box->off || child_output(test, 10000, 1024, &out, NULL) == 0)
		return 0;
	if (child_output(version, 10000, 1024, &ignored, NULL) < 0)
		return err_set(err, ENOSYS,
			"bubblewrap, in which kernels are built, is not installed: install the "
			"package bubblewrap, or set sandbox = no in kbisectd.conf");
	return err_set(err, ENOSYS,
		"bubblewrap cannot make a sandbox on this host (%.*s): allow user namespaces "
		"(sysctl kernel.unprivileged_userns_clone=1, user.max_user_namespaces above 0, "
		"kernel.apparmor_restrict_unprivileged_userns=0), or set sandbox = no in "
		"kbisectd.conf",
		(int)strcspn(buf_str(&out), "\n"), buf_str(&out));
}

/* Move the child's output into the log until it ends or the time is up. */
static void copy_output(int fd, int64_t deadline, struct caplog *log)
{
	char chunk[65536];

	for (;;) {
		struct pollfd pfd = {.fd = fd, .events = POLLIN};
		int64_t left = deadline - clock_mono_ms();
		ssize_t n;
		int r;

		if (left <= 0)
			return;
		r = poll(&pfd, 1, left < INT_MAX ? (int)left : INT_MAX);
		if (r == 0 || (r < 0 && errno == EINTR))
			continue;
		n = read(fd, chunk, sizeof(chunk));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		caplog_add(log, chunk, (size_t)n);
	}
}

int sandbox_run(const struct sandbox *box, const char *const *argv, const char *const *env,
	int64_t deadline, struct caplog *log, int *ret_status, struct err *err)
{
	cleanup(args) struct args args = {.n = 0};
	cleanup(close) int rd = -1, wr = -1;
	struct child_spec spec = {.env = env, .fd_in = -1};
	int64_t left;
	int fds[2], r;
	pid_t pid;

	if (!box->off)
		add_bwrap(&args, box);
	for (size_t i = 0; argv[i]; i++)
		args_add(&args, argv[i]);
	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_sys(err, errno, "cannot start %s", argv[0]);
	rd = fds[0];
	wr = fds[1];
	spec.argv = (const char *const *)args.v;
	spec.fd_out = spec.fd_err = wr;
	r = child_start(&spec, &pid, err);
	if (r < 0)
		return r;
	close(steal_fd(&wr));
	copy_output(rd, deadline, log);
	left = deadline - clock_mono_ms();
	return child_wait(pid,
		left <= 0	 ? 0
		: left < INT_MAX ? (int)left
				 : INT_MAX,
		ret_status, err);
}
