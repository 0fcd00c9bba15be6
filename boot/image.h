#ifndef BOOT_IMAGE_H
#define BOOT_IMAGE_H

/*
 * The guest's initramfs, made by mkguest when it is not in the cache yet. An image is named after
 * everything that went into it, so an upgraded library or a changed key makes a new one. Blocks: a
 * few milliseconds when cached, some seconds when not; several processes may call it at once.
 *
 * Errors: -ENOENT, a program that the benchmark needs is not on this host (the job cannot run
 * here); anything else is the host's trouble. The sentence is mkguest's where it has one.
 */

#include "base/err.h"

struct image_spec {
	const char *keys_dir;  /* made when missing */
	const char *cache_dir; /* made when missing */
	const char *mkguest;   /* the script; its init is beside it */
	const char *init;
	const char *benchmark; /* whose programs they are, for the error text */
	char *const *programs; /* NULL-terminated: paths or names on PATH, or FILE=GUESTPATH */
};

/* *ret_path: the image, below cache_dir. Free it. */
int image_get(const struct image_spec *spec, char **ret_path, struct err *err);

/* Only the keys: for an installation, and for a guest that brings its own image. */
int image_keys(const struct image_spec *spec, struct err *err);

#endif
