#ifndef BOOT_OUTCOME_H
#define BOOT_OUTCOME_H

/*
 * How a boot ended, as a word. Pure functions: what is the candidate's doing and what is the
 * infrastructure's is decided here and nowhere else.
 */

#include "boot/vm.h"

enum outcome {
	OUTCOME_OK,
	OUTCOME_PANIC,	      /* the kernel said so */
	OUTCOME_OOPS,	      /* an oops, BUG or call trace, and no panic */
	OUTCOME_TRIPLE_FAULT, /* reset or switched off without a word */
	OUTCOME_SILENCE,      /* no console output for too long before it was ready */
	OUTCOME_BOOT_TIMEOUT, /* still talking, but not ready in time */
	OUTCOME_TEST_FAILED,  /* the benchmark or its setup ended with an error */
	OUTCOME_TEST_TIMEOUT, /* the benchmark was too slow or hung */
	OUTCOME_NO_METRIC,    /* its output does not contain the number */
	OUTCOME_INFRA,	      /* says nothing about the candidate: to be repeated */
};

/* "triple-fault", for records and logs. */
const char *outcome_name(enum outcome outcome);

/*
 * A guest died: which outcome do its console's events (boot/console.h) and its domain's end make?
 * What the console says counts first, since a panic is followed by a reset, and a reset by the
 * domain's end. A domain that vanished by itself, or one that lives and says nothing although its
 * ssh connection broke, is infrastructure.
 */
enum outcome outcome_of_death(unsigned console_events, enum vm_end end);

#endif
