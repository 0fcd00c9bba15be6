#ifndef BOOT_DOMAIN_H
#define BOOT_DOMAIN_H

/*
 * The domain that a candidate is booted in, as libvirt's XML: a pure function, pinned by the files
 * tests/golden/domain-*.xml.
 *
 * The kernel is booted directly, with an initramfs and no disk. Its console is the serial port; its
 * ssh port is reached through QEMU's user networking at ssh_port of 127.0.0.1, and restrict=on
 * keeps the guest from reaching anything else. A reboot, a crash and a power-off all end it.
 */

#include <stdint.h>

#include "base/err.h"

enum domain_accel { DOMAIN_TCG, DOMAIN_KVM };

/*
 * Wall time, or QEMU's instruction counter as the guest's only clock: one CPU, 8 ns an instruction,
 * never waiting for the host's clock.
 */
enum domain_timing { DOMAIN_WALL, DOMAIN_VIRTUAL };

/* The namespace of our element in <metadata>. */
#define DOMAIN_METADATA_URI "https://kbisectd.example/domain/1"

struct domain_spec {
	const char *name;
	const char *owner;	     /* the slot's folder: which sweep may remove this domain */
	const char *kernel, *initrd; /* absolute paths on the hypervisor's host */
	const char *cmdline;	     /* the job's words, behind ours; NULL = none */
	int64_t memory;		     /* bytes */
	int cpus;		     /* DOMAIN_VIRTUAL makes it one */
	enum domain_accel accel;
	enum domain_timing timing;
	int ssh_port;
};

/* Free *ret. -EINVAL: a string that no XML can hold. */
int domain_xml(const struct domain_spec *spec, char **ret, struct err *err);

#endif
