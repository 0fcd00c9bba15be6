#ifndef BOOT_SWEEP_H
#define BOOT_SWEEP_H

/*
 * What a killed measuring process leaves behind, and how the next one finds it: a marker file in
 * the slot's folder, there from before its first domain until after its last.
 *
 * Everything blocks.
 */

#include "base/err.h"
#include "boot/host.h"

/* The marker. uri NULL = the embedded driver. */
int sweep_mark(const char *dir, const char *uri, struct err *err);
void sweep_unmark(const char *dir);

/*
 * If the slot is marked: destroy the domains that carry its name in their metadata, on the
 * hypervisor that the marker names, and end a QEMU of the embedded driver that libvirt does not
 * know any more; then remove the marker. *ret_n is increased by one for each. -EBUSY: a living
 * process has the slot.
 */
int sweep_slot(const char *dir, int *ret_n, struct err *err);

/* The same for a slot whose connection is open already. */
int sweep_domains(struct host *host, const char *dir, int *ret_n, struct err *err);

#endif
