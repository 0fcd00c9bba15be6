#include "boot/host.h"

#include <errno.h>
#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/banned.h"

#define GUARD_S 180
#define REAP_PAUSE_MS 5
#define LEADER_MS 500
/* libvirt puts lib/qemu/domain-1-NAME/monitor.sock below the root; a socket's path has 107 bytes.
 */
#define ROOT_MAX 58

struct host {
	virConnectPtr conn;
	char *uri;
	char *root;
};

static atomic_int guarded;

static void on_alarm(int sig)
{
	static const char text[] = "libvirt did not answer within its time limit\n";

	(void)sig;
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(3);
	_exit(2);
}

void host_guard(void)
{
	atomic_fetch_add(&guarded, 1);
	alarm(GUARD_S);
}

void host_unguard(void)
{
	if (atomic_fetch_sub(&guarded, 1) == 1)
		alarm(0);
}

/* libvirt would print every error; they are ours to report. */
static void on_error(void *arg, virErrorPtr error)
{
	(void)arg;
	(void)error;
}

static void *event_loop(void *arg)
{
	while (virEventRunDefaultImpl() == 0)
		;
	return arg;
}

/*
 * Was this dead child orphaned by a parent that daemonised it, so that nobody waits for it? Then it
 * has another session than we. The one child of another session that libvirt does wait for is the
 * leader in between, for which it waits at once: a leader that stays is QEMU's own (-daemonize).
 */
static int is_orphan(pid_t pid, int pauses)
{
	pid_t sid = getsid(pid);

	return sid > 0 && sid != getsid(0) && (sid != pid || pauses * REAP_PAUSE_MS >= LEADER_MS);
}

/*
 * libvirt starts QEMU as a daemon and learns of its end by asking whether the process still exists.
 * A zombie exists: until PID 1 finds time to reap it, a destroy takes a second or two, and so does
 * the first probing of QEMU. So orphans become our children, and are reaped at once. All other
 * children are left to whoever started them.
 */
static void *reap_orphans(void *arg)
{
	int pauses = 0;
	pid_t last = 0;

	for (;;) {
		siginfo_t info = {.si_pid = 0};
		int r = waitid(P_ALL, 0, &info, WEXITED | WNOWAIT);

		pauses = info.si_pid == last ? pauses : 0;
		last = info.si_pid;
		if (r == 0 && is_orphan(info.si_pid, pauses)) {
			waitpid(info.si_pid, NULL, 0);
			continue;
		}
		pauses++;
		poll(NULL, 0, REAP_PAUSE_MS);
	}
	return arg;
}

static int start_thread(void *(*fn)(void *), struct err *err)
{
	pthread_t thread;
	int r = pthread_create(&thread, NULL, fn, NULL);

	if (r)
		return err_sys(err, r, "cannot start a thread");
	pthread_detach(thread);
	return 0;
}

/* Once in the life of the process: libvirt's event loop cannot be taken down again. */
static int start_events(struct err *err)
{
	static int started;
	int r;

	if (started)
		return 0;
	/* Its errors come back from its functions; for a look inside, set this variable. */
	setenv("LIBVIRT_LOG_OUTPUTS", "4:file:/dev/null", 0);
	virSetErrorFunc(NULL, on_error);
	signal(SIGALRM, on_alarm);
	signal(SIGPIPE, SIG_IGN);
	if (virInitialize() < 0 || virEventRegisterDefaultImpl() < 0)
		return host_error(err, "cannot start libvirt's event loop");
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	r = start_thread(event_loop, err);
	if (r == 0)
		r = start_thread(reap_orphans, err);
	if (r < 0)
		return r;
	started = 1;
	return 0;
}

#define NO_QEMU "QEMU is missing: install qemu-system-x86_64 (Debian: qemu-system-x86)"

/* Errors that have a cause which the reader can remove. */
static const struct {
	const char *in; /* what libvirt says */
	int code;
	const char *text;
} known_errors[] = {
	{"suitable emulator", ENOENT, NO_QEMU},
	{"No emulator found", ENOENT, NO_QEMU},
	{"no connection driver", ENOENT,
		"libvirt's QEMU driver is missing (Debian: libvirt-daemon-driver-qemu)"},
	{"Failed to parse user", ENOENT,
		"as root, libvirt's QEMU driver needs the user libvirt-qemu (Debian: "
		"libvirt-daemon-system); any other user can do without"},
	{"state driver is not active", EBUSY,
		"libvirt's QEMU driver does not start: another process has its folder, or the "
		"folder cannot be written"},
	{"does not support virt type 'kvm'", ENODEV, "KVM is not available to QEMU"},
};

int host_error(struct err *err, const char *what)
{
	virErrorPtr e = virGetLastError();
	const char *said = e && e->message ? e->message : "unknown error";

	for (size_t i = 0; i < sizeof(known_errors) / sizeof(*known_errors); i++) {
		if (strstr(said, known_errors[i].in))
			return err_set(
				err, known_errors[i].code, "%s: %s", what, known_errors[i].text);
	}
	return err_set(err, EIO, "%s: libvirt: %s", what, said);
}

char *host_root_of(const char *dir)
{
	return file_join(dir, "v");
}

/*
 * The driver's own configuration: domains belong to this user, without helpers of a system that is
 * set up for libvirt (virtlogd, cgroups, mount namespaces, changed file owners).
 */
static int prepare_root(const char *root, struct err *err)
{
	cleanup(free) char *etc = file_join(root, "etc");
	cleanup(free) char *path = file_join(etc, "qemu.conf");
	cleanup(free) char *text = xasprintf("user = \"+%d\"\n"
					     "group = \"+%d\"\n"
					     "dynamic_ownership = 0\n"
					     "remember_owner = 0\n"
					     "security_driver = \"none\"\n"
					     "namespaces = []\n"
					     "cgroup_controllers = []\n"
					     "stdio_handler = \"file\"\n",
		(int)geteuid(), (int)getegid());
	cleanup(buf_release) struct buf old = BUF_INIT;
	int r;

	if (strlen(root) > ROOT_MAX)
		return err_set(err, ENAMETOOLONG,
			"the path %s is too long for libvirt's sockets below it: %zu bytes, at "
			"most %d; choose a shorter state folder",
			root, strlen(root), ROOT_MAX);
	r = file_mkdir(etc, 0700, err);
	if (r < 0)
		return r;
	if (file_read(path, 1 << 16, &old, NULL) == 0 && strcmp(buf_str(&old), text) == 0)
		return 0;
	return file_write(path, text, strlen(text), 0600, err);
}

int host_open(const char *uri, const char *dir, struct host **ret, struct err *err)
{
	cleanup(host_close) struct host *host = xcalloc(1, sizeof(*host));
	int r = start_events(err);

	if (r < 0)
		return r;
	if (!uri || !*uri) {
		host->root = host_root_of(dir);
		host->uri = xasprintf("qemu:///embed?root=%s", host->root);
		r = prepare_root(host->root, err);
		if (r < 0)
			return r;
	} else {
		host->uri = xstrdup(uri);
	}
	host_guard();
	host->conn = virConnectOpen(host->uri);
	host_unguard();
	if (!host->conn) {
		cleanup(free) char *what = xasprintf("cannot connect to %s", host->uri);

		return host_error(err, what);
	}
	if (!host->root)
		virConnectSetKeepAlive(host->conn, 5, 6);
	*ret = steal(&host);
	return 0;
}

const char *host_uri(const struct host *host)
{
	return host->uri;
}

const char *host_root(const struct host *host)
{
	return host->root;
}

void *host_connection(const struct host *host)
{
	return host->conn;
}

void host_close(struct host *host)
{
	if (!host)
		return;
	if (host->conn) {
		host_guard();
		virConnectClose(host->conn);
		host_unguard();
	}
	free(host->uri);
	free(host->root);
	free(host);
}
