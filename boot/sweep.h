#ifndef BOOT_SWEEP_H
#define BOOT_SWEEP_H

/*
 * A slot for domains: a folder that one process at a time works in. What a killed process leaves
 * behind there is found by a marker file, which is there from before its first domain until after
 * its last.
 *
 * Life cycle: sweep_claim; sweep_slot; sweep_mark, domains, sweep_unmark; close the claim. The
 * claim ends with its process. Everything blocks.
 */

#include "base/err.h"

/*
 * Make the folder and claim it. A process that is about to end gets some seconds to do so; then
 * -EBUSY.
 */
int sweep_claim(const char *dir, int *ret_fd, struct err *err);

/* The marker. uri NULL = the embedded driver. */
int sweep_mark(const char *dir, const char *uri, struct err *err);
void sweep_unmark(const char *dir);

/*
 * For a claimed slot, if it is marked: destroy the domains that carry its name in their metadata,
 * on the hypervisor that the marker names, and end a QEMU of the embedded driver that libvirt does
 * not know any more; then remove the marker. *ret_n is increased by one for each.
 */
int sweep_slot(const char *dir, int *ret_n, struct err *err);

#endif
