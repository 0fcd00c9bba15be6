#ifndef BOOT_RUN_H
#define BOOT_RUN_H

/*
 * One fresh boot of one kernel, from nothing to a result:
 *
 *	created (paused, console open) -> resumed -> ready (our word on the console) -> ssh
 *		-> setup, warm-up, iterations -> result -> ended
 *
 * Life cycle: run_new, run_boot (blocks until there is a result), run_end (destroys the domain; may
 * be called in another thread, so that it overlaps the next run's boot), run_free. The result is
 * the run's and lives as long. Everything blocks, within the limits of the spec.
 *
 * Leaves in its folder: domain.xml, console.log, output.log.
 */

#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "boot/domain.h"
#include "boot/host.h"
#include "boot/outcome.h"
#include "boot/trial.h"

struct run_spec {
	const char *name; /* of the domain */
	const char *dir;  /* exists */
	const char *kernel, *initrd, *cmdline, *keys_dir;
	const char *owner; /* the slot's folder */
	int64_t memory;	   /* bytes */
	int cpus;
	enum domain_accel accel;
	enum domain_timing timing;
	int64_t boot_timeout, silence; /* ms; silence 0 = no limit */
	struct trial_spec trial;       /* log and interrupt_fd are set by run_boot */
	int stop_fd;		       /* readable: give up; -1 = none */
};

/* When what happened: clock_mono_ms, 0 = it did not. */
struct run_times {
	int64_t start, created, resumed, first_byte, ready, ssh, tested, ending, ended;
};

struct run_result {
	enum outcome outcome;
	char *detail;	    /* NULL when ok */
	struct trial trial; /* values; all zero when it was not reached */
	int kernel_ran;	    /* the kernel's banner was seen */
	struct run_times times;
};

struct run;

/* The spec and what it points to must outlive the run. */
struct run *run_new(struct host *host, const struct run_spec *spec);

/*
 * 0: there is a result, whatever it is. -EINTR: stop_fd became readable, there is none. Call
 * run_end in either case.
 */
int run_boot(struct run *run, struct err *err);

/* Does a kernel run under this accelerator? 1 = its banner was seen within limit_ms, 0 = no. */
int run_probe(struct run *run, int limit_ms, struct err *err);

const struct run_result *run_result(const struct run *run);

/* Until the domain is gone; 0 or what libvirt says. */
int run_end(struct run *run, struct err *err);

void run_free(struct run *run);
DEFINE_CLEANUP(run_free, struct run *);

#endif
