#ifndef BOOT_TRIAL_H
#define BOOT_TRIAL_H

/*
 * A benchmark in a booted guest: setup, warm-up, iterations, teardown, and the numbers of each
 * iteration. Blocks, within the time limits of the benchmark.
 *
 * Life cycle: zero the result; trial_run; trial_release.
 */

#include <stddef.h>

#include "base/err.h"
#include "boot/benchmark.h"
#include "boot/guest.h"
#include "boot/outcome.h"

struct trial_spec {
	const struct benchmark *benchmark;
	size_t metric;	    /* the one that must be there: an index */
	const char *args;   /* NULL = the benchmark's own */
	int64_t iterations; /* 0 = the benchmark's own */
	int64_t timeout_ms; /* 0 = the benchmark's own */
	const char *log;    /* file for everything it prints, 4 MiB at most */
	int interrupt_fd;   /* readable: the guest is dead, or this process shall end */
};

struct trial {
	enum outcome outcome;	    /* ok, test-failed, test-timeout, no-metric */
	char *detail;		    /* NULL when ok */
	size_t room;		    /* iterations there is space for */
	size_t n, n_metrics;	    /* iterations that were read, metrics of each */
	struct parse_value *values; /* [iteration * n_metrics + metric]; text NULL = not there */
};

/*
 * 0: ret says how it went. -EINTR: interrupt_fd; any other: the connection to the guest failed
 * (boot/guest.h). ret is to be released in every case.
 */
int trial_run(
	struct guest *guest, const struct trial_spec *spec, struct trial *ret, struct err *err);

/*
 * The iteration whose value is the median of a metric's (the lower of the two middle ones), so that
 * it is a number that was printed. -1 when no iteration has it.
 */
int trial_median(const struct trial *trial, size_t metric);

void trial_release(struct trial *trial);

#endif
