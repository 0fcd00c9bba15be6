#ifndef CLIENT_OPTIONS_H
#define CLIENT_OPTIONS_H

/*
 * The command line's options, from one table (options_help prints it). An option may stand before
 * or behind the command and its arguments; "--" ends them. With OPTION_KEYS every other long option
 * is taken as a key of the job file.
 */

#include <stddef.h>
#include <stdio.h>

#include "base/err.h"

enum {
	OPTION_ALWAYS = 1 << 0, /* --socket, --json, --help, --version */
	OPTION_FOLLOW = 1 << 1,
	OPTION_GIT = 1 << 2,
	OPTION_WAIT = 1 << 3,
	OPTION_WHY = 1 << 4,
	OPTION_UNDO = 1 << 5,
	OPTION_LIST = 1 << 6, /* --all, --state, --limit */
	OPTION_KEYS = 1 << 7,
};

struct options_key {
	const char *name; /* "good" or "range.good"; not NUL-terminated at the '=' */
	size_t name_len;
	const char *value;
};

/* Everything borrows from argv; options_release frees the two arrays. */
struct options {
	const char *socket, *why, *state, *limit;
	int json, help, version, follow, git, wait, undo, all;
	struct options_key *keys;
	size_t n_keys, cap_keys;
	char **args; /* what is no option, in order */
	size_t n_args, cap_args;
};

/*
 * Read argv[0..argc-1] into ret, adding to what it holds. allowed: a mask of OPTION_*. With
 * stop_at_arg it stops behind the first argument (the command). Returns how many were read, or
 * -EINVAL with a sentence.
 */
int options_parse(struct options *ret, unsigned allowed, int stop_at_arg, int argc, char **argv,
	struct err *err);

/* The options of the mask, a line each. */
void options_help(unsigned allowed, FILE *out);

void options_release(struct options *options);

static inline void cleanup_options_release(struct options *options)
{
	options_release(options);
}

#endif
