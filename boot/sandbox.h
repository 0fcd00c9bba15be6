#ifndef BOOT_SANDBOX_H
#define BOOT_SANDBOX_H

/*
 * Where the code of a candidate may run on the build host: bubblewrap's namespaces with no network,
 * no other process in sight, the system's programs read-only, and nothing writable but the build's
 * own folders. Everything inside dies with the process that started it.
 *
 * The paths inside are the same for every slot, which makes images identical between slots. With
 * `off` the command runs on the host as it is, and only its output and its time are limited.
 */

#include <stdint.h>

#include "base/err.h"
#include "boot/caplog.h"

struct sandbox {
	const char *slot;   /* slot/src is seen read-only, slot/conf and slot/obj for writing */
	const char *ccache; /* folder; NULL or "" = none */
	const char *cc;	    /* when it is a path, the folder above its own is seen too */
	int off;
};

/* The path that a command must use for "src", "conf", "obj" or "ccache". Free it. */
char *sandbox_path(const struct sandbox *box, const char *name);

/* Can it work on this host? If not, -ENOSYS, and the sentence says what to install or to enable. */
int sandbox_check(const struct sandbox *box, struct err *err);

/*
 * Run argv (looked up inside) with env until it ends, its output into the log. The folders exist.
 * deadline is a clock_mono_ms: at that time everything is killed, and the result is -ETIMEDOUT.
 * *ret_status is waitpid's.
 */
int sandbox_run(const struct sandbox *box, const char *const *argv, const char *const *env,
	int64_t deadline, struct caplog *log, int *ret_status, struct err *err);

#endif
