#ifndef BOOT_ACCEL_H
#define BOOT_ACCEL_H

/*
 * KVM or TCG, and which clock. That /dev/kvm opens proves nothing: on nested or broken hosts guests
 * hang there. So KVM counts as usable when a guest was seen to boot under it, once for each boot of
 * the host, version of QEMU and KVM device; the answer is kept in a file of the slot's folder.
 */

#include "base/err.h"
#include "boot/domain.h"

enum accel_wish { ACCEL_AUTO, ACCEL_KVM, ACCEL_TCG };
enum accel_timing { ACCEL_TIMING_AUTO, ACCEL_TIMING_WALL, ACCEL_TIMING_VIRTUAL };

struct accel {
	enum domain_accel accel;
	enum domain_timing timing;
	char why[256]; /* a sentence's part, for the log */
	int unproven;  /* KVM failed with a kernel that was not seen to run otherwise either */
};

struct accel_spec {
	enum accel_wish wish;
	enum accel_timing timing;
	const char *dir; /* where the answer is kept */
	const char *uri; /* what it is about */
	int local;	 /* QEMU runs here, as this process's user: /dev/kvm can be looked at */
	/* Boot a guest under KVM: 1 = its kernel ran, 0 = it did not (words in err), < 0 = error.
	 */
	int (*probe)(void *arg, struct err *err);
	void *arg;
};

/*
 * -EINVAL: the wishes exclude each other, or KVM is insisted on and is not there. May boot a guest
 * (the probe's time limit).
 */
int accel_choose(const struct accel_spec *spec, struct accel *ret, struct err *err);

/*
 * After a guest of the same kernel was seen to run under TCG: its failure under KVM was not the
 * kernel's fault, and is remembered. Nothing happens unless accel->unproven.
 */
int accel_confirm(const struct accel_spec *spec, struct accel *accel, struct err *err);

const char *accel_name(enum domain_accel accel);
const char *accel_timing_name(enum domain_timing timing);

#endif
