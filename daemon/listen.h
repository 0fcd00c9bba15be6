#ifndef DAEMON_LISTEN_H
#define DAEMON_LISTEN_H

/*
 * The listening end of a Unix stream socket. The socket file appears complete: mode, group and a
 * queue for clients are there before its name is, and a dead daemon's file is replaced in the same
 * step. Blocks on the disk only.
 */

#include <sys/types.h>

#include "base/err.h"

struct listen_file {
	dev_t dev;
	ino_t ino;
};

/*
 * Create path with mode 0660 and the group, or 0600 when group is (gid_t)-1. -EADDRINUSE when
 * somebody answers there; -EEXIST when it is something other than a socket.
 */
int listen_create(
	const char *path, gid_t group, int *ret_fd, struct listen_file *ret_file, struct err *err);

/* The file's group, and the mode that goes with it, as above. */
int listen_regroup(const char *path, gid_t group, struct err *err);

/* Prepare a descriptor from outside. -EINVAL when it is not a listening Unix stream socket. */
int listen_adopt(int fd, struct err *err);

/* Remove path if it still is the file that listen_create made. */
void listen_remove(const char *path, const struct listen_file *file);

#endif
