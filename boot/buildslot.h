#ifndef BOOT_BUILDSLOT_H
#define BOOT_BUILDSLOT_H

/*
 * The folder of a build slot: src (the source), conf (where its configuration is made), obj (what
 * make made of it), obj.old (obj, set aside while a clean one is tried), lock, tree, boot,
 * building. What is in it is kept from one candidate to the next, as long as it can be trusted.
 *
 * Every user holds the lock. Everything blocks on the disk.
 */

#include "base/err.h"

/* The slot's own lock, held until the descriptor is closed; -EWOULDBLOCK when someone has it. */
int buildslot_lock(const char *slot, int *ret_fd, struct err *err);

/*
 * Before the source changes: drop what cannot be built upon. That is half a retry, objects of an
 * earlier boot of the host (a power cut may have truncated them), and objects from the future when
 * the clock went back (make would take them for newer than the source), and what a build that was
 * killed had made (a half-written object has a new time, so make would keep it). Returns how many
 * things were dropped.
 */
int buildslot_prepare(const char *slot, struct err *err);

/* Around a build; without the end, the next buildslot_prepare distrusts what it made. */
int buildslot_begin(const char *slot, struct err *err);
int buildslot_end(const char *slot, struct err *err);

/* obj becomes obj.old, and a new obj is made. */
int buildslot_set_aside(const char *slot, struct err *err);
/* obj.old, if there is one, becomes obj again. Returns 1 when there was. */
int buildslot_put_back(const char *slot, struct err *err);
int buildslot_drop_aside(const char *slot, struct err *err);

/*
 * After a crash: buildslot_prepare, and temporary files. Returns how many things were removed; 0
 * for a slot that is not there, or that a living process has.
 */
int buildslot_sweep(const char *slot, struct err *err);

#endif
