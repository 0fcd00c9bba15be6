#ifndef BASE_FILE_H
#define BASE_FILE_H

/*
 * Files and folders, whole at a time. Everything here blocks on the disk. Errors name the path.
 */

#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

/* Read a whole file of at most max bytes (-EFBIG beyond that) into ret, which must be empty. */
int file_read(const char *path, size_t max, struct buf *ret, struct err *err);

/*
 * Write a file so that after a crash there is the old one or the new one, never half: a temporary
 * beside it, fsync, rename. mode is that of the new file.
 */
int file_write(const char *path, const void *data, size_t len, mode_t mode, struct err *err);

/* mkdir -p. Existing folders are fine. */
int file_mkdir(const char *path, mode_t mode, struct err *err);

/* rm -rf. A path that is not there is fine. Never follows symbolic links. */
int file_remove(const char *path, struct err *err);

/* Copy a file's bytes and mode (reflink where the file system can). The target is replaced. */
int file_copy(const char *from, const char *to, struct err *err);

/* Bytes that the files below path occupy. */
int file_usage(const char *path, uint64_t *ret_bytes, struct err *err);

/*
 * Take an exclusive lock on path (created if missing); held until the descriptor is closed.
 * -EWOULDBLOCK, with a message that names the path, when another process has it and !wait.
 */
int file_lock(const char *path, int wait, int *ret_fd, struct err *err);

/* base/name, or name itself when it is absolute. Free it. */
char *file_join(const char *base, const char *name);

#endif
