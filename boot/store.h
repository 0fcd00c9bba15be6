#ifndef BOOT_STORE_H
#define BOOT_STORE_H

/*
 * Kernels that were built, by the key of everything that went into them, so that none is built
 * twice: store/KEY/{bzImage,config,build.log,meta.json}. An entry is made in a folder of its own,
 * synced and renamed, so it is whole or not there; the image's hash is checked when it is found.
 * The store is kept below a size by dropping what was used least recently.
 *
 * Any number of processes may use a store at once. Everything blocks on the disk; errors name the
 * path, and are the host's, never a candidate's.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/hash.h"

#define STORE_KEY_SIZE HASH_HEX_SIZE

struct store_entry {
	char *kernel;		   /* the file; may go when the key is not in the next add's keep */
	char *log;		   /* the file */
	char image[HASH_HEX_SIZE]; /* the kernel's SHA-256 */
	char *compiler;
	int64_t ms; /* what the build took */
};

struct store_files {
	const char *kernel, *config, *log; /* copied */
	const char *compiler;
	int64_t ms;
};

struct store_limit {
	uint64_t bytes;		 /* 0 = no limit */
	const char *const *keep; /* keys that must stay */
	size_t nkeep;
};

/*
 * Look a key up, and count that as a use. -ENOENT when it is not there; an entry that is damaged is
 * removed and not there.
 */
int store_find(const char *store, const char *key, struct store_entry *ret, struct err *err);

/* Can an entry be made at all? Worth asking before a build rather than after it. */
int store_check(const char *store, struct err *err);

/*
 * Add an entry (nothing happens if it is there already), then drop old ones until the store is
 * below its limit; never the new one.
 */
int store_add(const char *store, const char *key, const struct store_files *files,
	const struct store_limit *limit, struct store_entry *ret, struct err *err);

/* Remove what dead processes left half-made. Returns how many things were removed. */
int store_sweep(const char *store, struct err *err);

void store_entry_release(struct store_entry *entry);

static inline void cleanup_store_entry_release(struct store_entry *entry)
{
	store_entry_release(entry);
}

#endif
