#ifndef BOOT_HOST_H
#define BOOT_HOST_H

/*
 * A connection to a hypervisor, and libvirt's event loop in a thread of this process.
 *
 * Life cycle: host_open, vm_create and so on (boot/vm.h), host_close. Everything blocks. libvirt
 * has no time limits of its own for most calls, so a process in which one hangs for host_limit_s
 * ends itself: this is code for a step, never for the daemon.
 *
 * The embedded driver needs no libvirtd. Its state is a folder, which one process at a time may
 * have; its domains run as this process's user, and outlive the process (there is no autodestroy):
 * boot/sweep.h.
 */

#include "base/cleanup.h"
#include "base/err.h"

struct host;

/*
 * uri NULL or "": the embedded driver, with its state below dir. Otherwise any URI of libvirt's
 * QEMU driver. -EBUSY: another process has the embedded driver's folder.
 */
int host_open(const char *uri, const char *dir, struct host **ret, struct err *err);

/* What was connected to, as libvirt writes it. */
const char *host_uri(const struct host *host);

/* The folder of the embedded driver, NULL for any other. */
const char *host_root(const struct host *host);

/* The embedded driver's folder for a slot's folder. Free it. */
char *host_root_of(const char *dir);

void host_close(struct host *host);
DEFINE_CLEANUP(host_close, struct host *);

/* For boot/vm.c and boot/sweep.c: virConnectPtr, and libvirt's last error as ours. */
void *host_connection(const struct host *host);
int host_error(struct err *err, const char *what);

/* Around a call into libvirt that may hang. They nest and may overlap between threads. */
void host_guard(void);
void host_unguard(void);

#endif
