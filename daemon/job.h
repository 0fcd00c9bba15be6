#ifndef DAEMON_JOB_H
#define DAEMON_JOB_H

/*
 * The job file: what to bisect, how to build, boot and measure, and what to do with the answer.
 * A plain value, parsed from INI text (kbisectd-job(5)); job_release frees its strings.
 */

#include <stdint.h>

#include "base/conf.h"
#include "base/err.h"

enum job_accel { JOB_ACCEL_AUTO, JOB_ACCEL_KVM, JOB_ACCEL_TCG };
enum job_timing { JOB_TIMING_AUTO, JOB_TIMING_WALL, JOB_TIMING_VIRTUAL };
enum job_failure { JOB_FAILURE_SKIP, JOB_FAILURE_BAD };
enum job_better { JOB_BETTER_BENCHMARK, JOB_BETTER_HIGHER, JOB_BETTER_LOWER };

struct job_spec {
	char *name;
	/* [range] */
	char *repo, *good, *bad;
	/* [build] */
	char *config, *fragments, *cc;
	int64_t build_timeout; /* ms */
	/* [boot] */
	int64_t cpus, memory; /* CPUs; bytes */
	char *cmdline;
	int accel, timing;
	int64_t boot_timeout, silence; /* ms */
	int failure;		       /* what a candidate that does not boot or run counts as */
	/* [test] */
	char *benchmark, *args, *metric;
	int better;
	char *threshold;
	int64_t iterations;   /* 0 = the benchmark's own */
	int64_t test_timeout; /* ms; 0 = the benchmark's own */
	/* [search] */
	int strategy;
	int64_t samples;
	int64_t max_runs;  /* 0 = no limit */
	int64_t max_hours; /* ms; 0 = no limit */
	/* [report] */
	char *mail, *in_reply_to;
};

extern const struct conf_key job_keys[];

/* where: the file's name for error texts; dir: what relative paths are taken from. */
int job_parse(const char *text, const char *where, const char *dir, struct job_spec *ret,
	struct err *err);

void job_release(struct job_spec *spec);

static inline void cleanup_job_release(struct job_spec *spec)
{
	job_release(spec);
}

/* A threshold: how a measured value is told good from bad. */
enum threshold_kind { THRESHOLD_AUTO, THRESHOLD_ABSOLUTE, THRESHOLD_PERCENT };

struct threshold {
	enum threshold_kind kind;
	double value; /* the metric's unit, or per cent of the good level (signed) */
};

/* "auto", "2000" or "-10%". */
int threshold_parse(const char *text, struct threshold *ret, struct err *err);

#endif
