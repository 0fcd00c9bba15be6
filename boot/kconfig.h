#ifndef BOOT_KCONFIG_H
#define BOOT_KCONFIG_H

/*
 * What configuration a kernel is to have, and whether it came to have it. A recipe is a base, our
 * own additions, and the job's fragments, in this order; where two lines name the same symbol, the
 * later one counts. Plain values, all strings borrowed; pure functions, no disk.
 */

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"

struct kconfig_text {
	const char *name; /* for error texts */
	const char *text;
};

enum kconfig_base {
	KCONFIG_TINY,	   /* make tinyconfig, then the tiny text */
	KCONFIG_DEFCONFIG, /* make NAME */
	KCONFIG_FILE,	   /* the text of a file */
};

struct kconfig_recipe {
	enum kconfig_base base;
	struct kconfig_text file;  /* the file, or the name of the defconfig */
	struct kconfig_text tiny;  /* tiny.config */
	struct kconfig_text guest; /* guest.config: after the base, whatever it is */
	const struct kconfig_text *fragments;
	size_t nfragments;
};

/* "tiny", "defconfig" or "file". */
int kconfig_base_parse(const char *name, enum kconfig_base *ret, struct err *err);

/* Everything in the recipe that makes a difference, into a key. */
void kconfig_hash(const struct kconfig_recipe *recipe, struct hash *hash);

/* Can this file of a kernel's source, by its path there, change what a recipe comes to? */
int kconfig_depends_on(const char *path);

/* Everything that is appended to what the base gives. */
void kconfig_additions(const struct kconfig_recipe *recipe, struct buf *ret);

/*
 * Did each line of the job's fragments, and of its file, come through `make olddefconfig`? Lines
 * that a later text overrides do not count, nor do the lines of a file that a kernel's own
 * configuration program wrote: it lists everything, and no other version has all of it.
 * -EINVAL with a sentence about the first that is lost; lost (may be NULL) gets a line for each,
 * those of guest.config included, which are never an error.
 */
int kconfig_check(
	const struct kconfig_recipe *recipe, const char *final, struct buf *lost, struct err *err);

#endif
