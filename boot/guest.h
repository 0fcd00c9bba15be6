#ifndef BOOT_GUEST_H
#define BOOT_GUEST_H

/*
 * One ssh session to the guest: run commands, copy files. One at a time, one thread.
 *
 * Life cycle: guest_open, any number of guest_exec/_upload/_download, guest_close. Every call
 * blocks until it is done, but never beyond its time limit. The guest is not trusted: what it sends
 * is bounded by the caller, and its host key is pinned.
 *
 * Errors: -ETIMEDOUT, -ECONNRESET (the guest or its ssh server went away), -ECONNREFUSED
 * (guest_open only), -EKEYREJECTED (guest_open only: another host key than the pinned one), -EACCES
 * (guest_open only: the guest refuses the client key), -EPROTO (anything else that libssh2
 * reports). After -ECONNRESET or -EPROTO the session is of no more use; close it. After any other
 * error it still is, except that -ETIMEDOUT, -EINTR and -EFBIG leave a killed command's channel
 * behind in the guest.
 */

#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"

struct guest;

struct guest_spec {
	const char *host; /* a numeric address */
	int port;
	const char *keys_dir; /* with host_key.pub, client_key and client_key.pub (mkguest) */
	const char *user;     /* NULL = root */
	int timeout_ms;	      /* for all of guest_open */
};

/* Connect once, check the host key, log in. A guest that is not up yet is an error. */
int guest_open(const struct guest_spec *spec, struct guest **ret, struct err *err);

/* Output as it comes, in the guest's order. */
typedef void (*guest_output_fn)(void *arg, const char *data, size_t len);

/*
 * Run a shell command and wait for its end. stdout and stderr together are appended to ret_output
 * (also on failure, as far as they came) and passed to fn; either may be NULL. *ret_status is the
 * exit status, or 128 + the signal that killed it.
 *
 * -EFBIG: more than max_output bytes. -EINTR: interrupt_fd (-1 = none) became readable; nothing is
 * read from it. Then, as on time-out, the command's channel is closed: it ends when it next writes,
 * or with the guest.
 */
int guest_exec(struct guest *guest, const char *command, int timeout_ms, size_t max_output,
	int interrupt_fd, guest_output_fn fn, void *arg, struct buf *ret_output, int *ret_status,
	struct err *err);

/* Copy a local file into the guest. A partial file may be left there on failure. */
int guest_upload(struct guest *guest, const char *local, const char *remote, mode_t mode,
	int timeout_ms, struct err *err);

/* Copy a file of at most max bytes (-EFBIG beyond) out of the guest; local is replaced whole. */
int guest_download(struct guest *guest, const char *remote, const char *local, size_t max,
	int timeout_ms, struct err *err);

void guest_close(struct guest *guest);
DEFINE_CLEANUP(guest_close, struct guest *);

#endif
