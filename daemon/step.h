#ifndef DAEMON_STEP_H
#define DAEMON_STEP_H

/*
 * Steps: everything that can block, crash or hang, each a short-lived child `kbisectd --step NAME`.
 *
 * Contract. The request is one JSON object on stdin. Results are JSON objects, one a line, on
 * stdout, flushed as they come. stderr is the log file. Exit status 0 after the last result means
 * that the step did its work, whatever it found; any other end is an infrastructure failure and is
 * retried. A result line may instead be
 *	{"infra": SENTENCE}	this failed for a reason that is not the candidate's: retry
 *	{"refused": SENTENCE}	the job itself is wrong: no retry can help
 *
 * accept	is the job valid, and what does it name?
 *   request	text, where, dir (for relative paths), benchmarks (folder), slots
 *   result	good, bad: {id, label, subject}; commits, merges (in the range);
 *		config: {base: "tiny" | "defconfig" | "file", name, text};
 *		fragments: [{name, text}]; benchmark: {name, text};
 *		metric, better ("higher" | "lower"), unit
 * pick		which commit next
 *   request	repo, good: [id], bad: id, verdicts: {id: "good" | "bad" | "skip" | "unsure"}
 *   result	next: COMMIT, left, steps (about so many more picks)
 *	    or	culprit: COMMIT with body, author, date, diffstat, parents: [COMMIT]
 *	    or	set: [COMMIT] (what skips left, oldest first)
 *		COMMIT = {id, label, subject}; label = a tag's name or an abbreviated id
 * build	one candidate's kernel
 *   request	repo, commit, slot (folder), store (folder), store_size (bytes), keep: [key],
 *		config, fragments (as in accept's result), kernel_dir (tiny.config, guest.config),
 *		cc, jobs, timeout_ms, ccache (folder, "" = none), log (file), endpoint (bool)
 *   result	ok: true, key, kernel (file), image (its SHA-256), seconds, cached, compiler
 *	    or	ok: false, error (the compiler's first error line), seconds
 * measure	fresh boots, one after the other
 *   request	boots: [{run, kernel, dir}]; vm (folder of this slot), uri; domain: {cpus, memory,
 *		cmdline, accel, timing, timeout_ms, silence_ms};
 *		guest: {keys, cache, mkguest, init};
 *		benchmark: {name, text, args, timeout_ms, iterations}
 *   result	{accel, timing, why} once; {run, state: "booting"}; then for each boot
 *		{run, outcome, detail, boot_ms, test_ms, metrics:
 *			{NAME: {value, text, all: [text]}}}
 *		outcome = ok, panic, oops, triple-fault, silence, boot-timeout, test-failed,
 *		test-timeout, no-metric, infra
 * mail		deliver one message
 *   request	from, to: [address], subject, body, message_id, in_reply_to, date (Unix seconds),
 *		smtp: {url, user, password_file, tls, ca_file} or sendmail (command); marker (file:
 *		there as soon as nothing is left to send; a step that finds it sends nothing);
 *		timeout_ms (of each answer; default 10 minutes, so the deadline must be longer)
 *   result	{sent: true, reply, refused: ["ADDRESS: why"]} or {rejected: SENTENCE}
 * sweep	remove what a killed daemon left behind
 *   request	vms: [folder], slots: [folder], store
 *   result	{swept: n}
 */

#include "base/err.h"
#include "base/json.h"

/* A step's body. A negative return becomes {"infra": err->msg}. */
typedef int (*step_fn)(const json_t *request, struct err *err);

int step_accept(const json_t *request, struct err *err);
int step_pick(const json_t *request, struct err *err);
int step_build(const json_t *request, struct err *err);
int step_measure(const json_t *request, struct err *err);
int step_mail(const json_t *request, struct err *err);
int step_sweep(const json_t *request, struct err *err);

/* In a step: write one result line (takes the reference). */
void step_result(json_t *result);

/* In a step: {"refused": err->msg}; returns 0, so that a body can end with it. */
int step_refuse(const struct err *err);

/* The main of kbisectd-step: read the request, run the body; returns the exit status. */
int step_main(const char *name);

#endif
