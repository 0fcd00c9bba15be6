#ifndef BASE_CHILD_H
#define BASE_CHILD_H

/*
 * Child processes. A child leads its own process group, so that ending it ends what it started; it
 * gets SIGTERM when its parent dies; its descriptors are the three it is given and nothing else.
 *
 * child_start does not block. child_wait and child_run do, and are for steps and the client; the
 * daemon watches its children through its event loop instead.
 */

#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

struct child_spec {
	const char *const *argv;   /* argv[0] is looked up on PATH; NULL-terminated */
	const char *const *env;	   /* NULL = the parent's */
	const char *dir;	   /* NULL = the parent's */
	int fd_in, fd_out, fd_err; /* -1 = /dev/null; borrowed */
};

/* Start it. *ret_pid is also its process group. An exec failure is reported here, by name. */
int child_start(const struct child_spec *spec, pid_t *ret_pid, struct err *err);

/*
 * Wait until it ends, for at most timeout_ms (-1 = for ever), and reap it. On time-out the whole
 * group is killed, the child reaped, and -ETIMEDOUT returned. *ret_status is waitpid's.
 */
int child_wait(pid_t pid, int timeout_ms, int *ret_status, struct err *err);

/* Start, wait, and turn any end but exit status 0 into -ECHILD with words ("make: exit status 2").
 */
int child_run(const struct child_spec *spec, int timeout_ms, struct err *err);

/*
 * Run and capture at most max bytes of stdout (stderr goes to /dev/null); more is dropped.
 * Otherwise like child_run.
 */
int child_output(
	const char *const *argv, int timeout_ms, size_t max, struct buf *ret, struct err *err);

/* "exit status 2" or "killed by signal 9 (Killed)". Free it. */
char *child_status_text(int status);

#endif
