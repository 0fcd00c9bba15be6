#ifndef BOOT_BUILD_H
#define BOOT_BUILD_H

/*
 * One kernel, built from slot/src into slot/obj. slot/conf is where its configuration is made, so
 * that slot/obj/.config changes only when the outcome does and make stays incremental.
 *
 * Life cycle: build_tools_probe; buildslot_lock and buildslot_prepare before anything in the slot
 * is touched; the caller brings slot/src up to date; build_kernel; build_result_release. Everything
 * blocks, build_kernel for minutes.
 *
 * A negative return of build_kernel is the host's failure, never the candidate's: no space, no
 * memory, a missing program. A failed build is tried once more in a clean slot/obj before it
 * counts, unless it was clean already; if that fails too the old slot/obj, still good for the next
 * candidate, comes back.
 */

#include <stdint.h>

#include "base/err.h"
#include "base/hash.h"
#include "boot/kconfig.h"
#include "boot/sandbox.h"

/* Raise it when a change here makes the same inputs give another kernel. */
#define BUILD_RECIPE_VERSION "1"

struct build_tools {
	char *cc; /* the first lines of --version */
	char *ld;
};

/* -ENOENT, with what to do, when a program is missing or does not run. */
int build_tools_probe(const char *cc, struct build_tools *ret, struct err *err);
/* Into a key, together with BUILD_RECIPE_VERSION. */
void build_tools_hash(const struct build_tools *tools, struct hash *hash);
void build_tools_release(struct build_tools *tools);

static inline void cleanup_build_tools_release(struct build_tools *tools)
{
	build_tools_release(tools);
}

struct build_spec {
	struct sandbox box;
	struct kconfig_recipe recipe;
	const char *config_inputs; /* names the state of all files that configuration depends on */
	const struct build_tools *tools;
	int jobs;
	int64_t timeout_ms; /* both attempts together */
	int strict;	    /* a configuration request that the kernel ignores refuses the job */
	const char *log;
};

enum build_end {
	BUILD_OK,
	BUILD_FAILED,  /* text: the compiler's first error line */
	BUILD_REFUSED, /* text: what is wrong with the job */
};

struct build_result {
	enum build_end end;
	char *text;
	char *image, *config; /* files in the slot, valid until its next build */
	int64_t ms;
};

int build_kernel(const struct build_spec *spec, struct build_result *ret, struct err *err);
void build_result_release(struct build_result *result);

static inline void cleanup_build_result_release(struct build_result *result)
{
	build_result_release(result);
}

#endif
