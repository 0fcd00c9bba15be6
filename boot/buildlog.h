#ifndef BOOT_BUILDLOG_H
#define BOOT_BUILDLOG_H

/*
 * Why a kernel build failed, read from the output of make, compilers, linkers and the kernel's own
 * checkers. A pure function over any bytes.
 */

#include <stddef.h>

enum build_fault {
	BUILD_FAULT_CANDIDATE, /* the source does not build */
	BUILD_FAULT_DISK,      /* the build host has no space left */
	BUILD_FAULT_KILLED,    /* the compiler was killed or got no memory */
	BUILD_FAULT_TOOL,      /* the build host lacks a program or a library */
};

/*
 * The line that tells it: the first real error, or the fault of the host wherever it stands, since
 * that causes errors of every other kind. At most a few hundred bytes, without the prefix (a
 * folder with its slash, may be "") wherever that stands in it. NULL when nothing looks like an
 * error; *ret_fault is then the candidate's. Free it.
 */
char *buildlog_error(const char *log, size_t len, const char *prefix, enum build_fault *ret_fault);

/*
 * The object file whose making failed first, as a target of make, so that it can be tried alone.
 * NULL when the failure is of another kind. Free it.
 */
char *buildlog_target(const char *log, size_t len);

#endif
