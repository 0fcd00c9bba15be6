#ifndef BOOT_BENCHMARK_H
#define BOOT_BENCHMARK_H

/*
 * A benchmark file (NAME.conf in a folder; kbisectd-benchmark(5)): what to put in the guest, what
 * to run there, and how to read each metric out of what it prints.
 *
 * Life cycle: benchmark_load or benchmark_parse fill a zeroed struct; benchmark_release. On failure
 * there is nothing to release. Errors in a file begin with "where:line: ". Nothing here talks to a
 * guest.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "boot/parse.h"

struct benchmark_metric {
	char *name;
	int better_lower; /* 0 = higher is better */
	char *unit;	  /* NULL = none */
	char *description;
	struct parse_spec parse;
};

struct benchmark {
	char *name; /* without .conf */
	char *description;
	char **programs; /* NULL-terminated, never NULL itself */
	char *command;	 /* may contain ${args} */
	char *args;	 /* their default; NULL = none */
	char *setup,
		*teardown; /* commands before the first and after the last iteration, or NULL */
	int64_t iterations, warmup;
	int64_t timeout; /* ms, of one iteration, and of setup and of teardown */
	int *status;	 /* exit statuses that are fine */
	size_t n_status;
	struct benchmark_metric *metrics; /* at least one; the first is the default */
	size_t n_metrics;
};

/* name becomes ret->name; where stands in front of errors. */
int benchmark_parse(const char *text, size_t len, const char *name, const char *where,
	struct benchmark *ret, struct err *err);

/*
 * Read dir/name.conf. -ENOENT lists the names there are; -EINVAL when the name cannot be one (it
 * contains a slash, begins with a dot). ret_text, unless NULL, gets the file's text, which
 * benchmark_parse accepts later.
 */
int benchmark_load(const char *dir, const char *name, struct buf *ret_text, struct benchmark *ret,
	struct err *err);

/* The names in a folder, sorted, NULL-terminated; free with benchmark_names_free. */
int benchmark_list(const char *dir, char ***ret, struct err *err);
void benchmark_names_free(char **names);
DEFINE_CLEANUP(benchmark_names_free, char **);

/*
 * The command with every ${args} replaced by args (NULL = the benchmark's own). -EINVAL when it
 * needs some and there are none, or when args are given and it takes none. Free *ret.
 */
int benchmark_command(const struct benchmark *b, const char *args, char **ret, struct err *err);

/* The metric of that name, NULL = the default one. An unknown name is -ENOENT and lists them. */
int benchmark_metric(
	const struct benchmark *b, const char *name, size_t *ret_index, struct err *err);

int benchmark_status_ok(const struct benchmark *b, int status);

/*
 * Read every metric from one iteration's output into ret[b->n_metrics]; free with
 * benchmark_values_release. One that is missing or not a number is left empty, unless it is the
 * chosen one: then -ENODATA or -EBADMSG, with what the benchmark printed instead.
 */
int benchmark_extract(const struct benchmark *b, size_t chosen, const char *output, size_t len,
	struct parse_value *ret, struct err *err);
void benchmark_values_release(struct parse_value *values, size_t n);

void benchmark_release(struct benchmark *b);

static inline void cleanup_benchmark_release(struct benchmark *b)
{
	benchmark_release(b);
}

/* The keys of both kinds of section, for the man-page check. */
extern const struct conf_key benchmark_keys[], benchmark_metric_keys[];

#endif
