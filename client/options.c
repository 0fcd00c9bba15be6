#include "client/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "client/protocol.h"
#include "base/banned.h"

#define AT(field) offsetof(struct options, field)

struct row {
	const char *name;
	char letter;
	const char *value; /* what its value is called; NULL = it has none and sets an int to 1 */
	unsigned mask;
	size_t offset;
	const char *help;
};

static const struct row rows[] = {
	{"follow", 'f', NULL, OPTION_FOLLOW, AT(follow), "follow the log until the job ends"},
	{"wait", 'w', NULL, OPTION_WAIT, AT(wait), "wait until the job ends, and say how"},
	{"git", 0, NULL, OPTION_GIT, AT(git), "the log for `git bisect replay`"},
	{"all", 'a', NULL, OPTION_LIST, AT(all), "every job, not only the newest"},
	{"limit", 'n', "N", OPTION_LIST, AT(limit), "at most so many jobs (default 20)"},
	{"state", 's', "STATE", OPTION_LIST, AT(state),
		"only jobs in this state, or \"unfinished\" ones"},
	{"undo", 0, NULL, OPTION_UNDO, AT(undo), "count it again"},
	{"why", 0, "TEXT", OPTION_WHY, AT(why), "the reason, for the job's log"},
	{"json", 'j', NULL, OPTION_ALWAYS, AT(json), "JSON, for programs"},
	{"socket", 0, "PATH", OPTION_ALWAYS, AT(socket),
		"the daemon's socket, in place of $" PROTOCOL_SOCKET_ENV},
	{"help", 'h', NULL, OPTION_ALWAYS, AT(help), "this text"},
	{"version", 'V', NULL, OPTION_ALWAYS, AT(version), "the version of kbctl"},
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

static const struct row *find_long(unsigned allowed, const char *name, size_t len)
{
	for (size_t i = 0; i < ROWS; i++)
		if ((rows[i].mask & allowed) && strncmp(rows[i].name, name, len) == 0 &&
			rows[i].name[len] == '\0')
			return &rows[i];
	return NULL;
}

static const struct row *find_letter(unsigned allowed, char letter)
{
	for (size_t i = 0; i < ROWS; i++)
		if ((rows[i].mask & allowed) && rows[i].letter == letter)
			return &rows[i];
	return NULL;
}

static void set(struct options *options, const struct row *row, const char *value)
{
	void *at = (char *)options + row->offset;

	if (row->value)
		*(const char **)at = value;
	else
		*(int *)at = 1;
}

/* "--name", "--name=value" or "--name value". Returns how many arguments it was. */
static int parse_long(
	struct options *options, unsigned allowed, int argc, char **argv, struct err *err)
{
	const char *name = argv[0] + 2;
	size_t len = strcspn(name, "=");
	const char *value = name[len] ? name + len + 1 : NULL;
	const struct row *row = find_long(allowed, name, len);
	int used = 1;

	if (!row && !(allowed & OPTION_KEYS))
		return err_set(err, EINVAL, "there is no option --%.*s here", (int)len, name);
	if (row && !row->value && value)
		return err_set(err, EINVAL, "--%s takes no value", row->name);
	if ((!row || row->value) && !value) {
		if (argc < 2)
			return err_set(err, EINVAL, "--%.*s needs a value", (int)len, name);
		value = argv[used++];
	}
	if (row) {
		set(options, row, value);
		return used;
	}
	ALLOC_GROW(options->keys, options->n_keys, options->cap_keys);
	options->keys[options->n_keys++] = (struct options_key){name, len, value};
	return used;
}

/* "-fj", "-n 5" or "-n5". Returns how many arguments it was. */
static int parse_letters(
	struct options *options, unsigned allowed, int argc, char **argv, struct err *err)
{
	for (const char *p = argv[0] + 1; *p; p++) {
		const struct row *row = find_letter(allowed, *p);

		if (!row)
			return err_set(err, EINVAL, "there is no option -%c here", *p);
		if (!row->value) {
			set(options, row, NULL);
			continue;
		}
		if (p[1]) {
			set(options, row, p + 1);
			return 1;
		}
		if (argc < 2)
			return err_set(err, EINVAL, "-%c needs a value", *p);
		set(options, row, argv[1]);
		return 2;
	}
	return 1;
}

static void add_arg(struct options *options, char *arg)
{
	ALLOC_GROW(options->args, options->n_args, options->cap_args);
	options->args[options->n_args++] = arg;
}

int options_parse(struct options *ret, unsigned allowed, int stop_at_arg, int argc, char **argv,
	struct err *err)
{
	int i = 0, plain = 0;

	allowed |= OPTION_ALWAYS;
	while (i < argc) {
		int used = 1;

		if (plain || argv[i][0] != '-' || argv[i][1] == '\0') {
			add_arg(ret, argv[i]);
			if (stop_at_arg)
				return i + 1;
		} else if (strcmp(argv[i], "--") == 0) {
			plain = 1;
		} else if (argv[i][1] == '-') {
			used = parse_long(ret, allowed, argc - i, argv + i, err);
		} else {
			used = parse_letters(ret, allowed, argc - i, argv + i, err);
		}
		if (used < 0)
			return used;
		i += used;
	}
	return i;
}

void options_help(unsigned allowed, FILE *out)
{
	for (size_t i = 0; i < ROWS; i++) {
		cleanup(free) char *name = NULL;

		if (!(rows[i].mask & allowed))
			continue;
		name = xasprintf("--%s%s%s", rows[i].name, rows[i].value ? " " : "",
			rows[i].value ? rows[i].value : "");
		fprintf(out, "  %c%c%c %-14s %s\n", rows[i].letter ? '-' : ' ',
			rows[i].letter ? rows[i].letter : ' ', rows[i].letter ? ',' : ' ', name,
			rows[i].help);
	}
}

void options_release(struct options *options)
{
	free(options->keys);
	free(options->args);
}
