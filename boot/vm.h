#ifndef BOOT_VM_H
#define BOOT_VM_H

/*
 * One domain, from its creation to its end. Transient: nothing is ever defined.
 *
 * Life cycle: vm_create (it is paused, and its console is already read), vm_resume, vm_destroy,
 * vm_free (which destroys, if that was not done). Everything blocks. vm_destroy may run in another
 * thread than the rest, but not at the same time as another call for the same domain.
 */

#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "boot/host.h"

struct vm;

enum vm_end {
	VM_RUNS,
	VM_SHUT_DOWN, /* the guest powered off or was reset */
	VM_LOST,      /* QEMU died, or somebody else ended it */
};

/*
 * Called from threads of their own, one call of each at a time, never after vm_free began to
 * return. They must not call back into here.
 */
struct vm_events {
	void (*console)(void *arg, const char *data, size_t len);
	void (*ended)(void *arg, enum vm_end end);
	void *arg;
};

/*
 * -EADDRINUSE: the forwarded port was taken in the meantime. -EIO: QEMU or libvirt, in their own
 * words.
 */
int vm_create(struct host *host, const char *name, const char *xml, const struct vm_events *events,
	struct vm **ret, struct err *err);

int vm_resume(struct vm *vm, struct err *err);

/* When this returns 0, QEMU is gone and the console has been read to its end. */
int vm_destroy(struct vm *vm, struct err *err);

void vm_free(struct vm *vm);
DEFINE_CLEANUP(vm_free, struct vm *);

/* For boot/sweep.c: end a virDomainPtr. That it is gone already is no error. */
int vm_destroy_domain(void *dom, struct err *err);

/* A TCP port of 127.0.0.1 that nobody has at this moment. */
int vm_free_port(int *ret_port, struct err *err);

#endif
