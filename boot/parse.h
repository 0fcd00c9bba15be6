#ifndef BOOT_PARSE_H
#define BOOT_PARSE_H

/*
 * Reading one number out of what a benchmark printed. Pure functions, no input or output; the text
 * comes from the guest and is not trusted.
 *
 * A format is a row of a table: its name, the keys it uses, a check, and a function that collects
 * all its candidates in the order of the output; `which` then makes one number of them. Numbers are
 * parsed strictly: anything that is not wholly a finite decimal number is an error.
 *
 * Life cycle: zero the spec, fill it (conf_set with parse_keys), parse_spec_check, then any number
 * of parse_output calls, parse_spec_release.
 */

#include <regex.h>
#include <stddef.h>
#include <stdint.h>

#include "base/conf.h"
#include "base/err.h"

enum parse_which {
	PARSE_FIRST,
	PARSE_LAST,
	PARSE_MEDIAN,
	PARSE_MEAN,
	PARSE_SUM,
	PARSE_MIN,
	PARSE_MAX,
};
#define PARSE_WHICH_CHOICES "first|last|median|mean|sum|min|max"

#define PARSE_FORMAT_CHOICES "regex|csv|json|table"

struct parse_spec {
	int format;    /* index into PARSE_FORMAT_CHOICES */
	int which;     /* enum parse_which */
	char *pattern; /* regex: POSIX extended, tried on every line */
	int64_t group; /* regex: the group that is the number; 0 = the whole match */
	char *column;  /* csv, table: a header's name, or #N = the N-th field, no header needed */
	char *row;     /* csv, table: COLUMN=VALUE, ...: only rows where all are true */
	char *ignore;  /* csv, table: COLUMN=VALUE, ...: not the rows where any is true */
	char *path;    /* json: a.b[0].c["d.e"]; [*] = every element */
	double scale;  /* the printed number times this */
	regex_t *re;   /* regex: compiled by parse_spec_check */
};

/*
 * text: the characters that were printed, or the shortest form of a computed number; owned, NULL
 * where there is no value.
 */
struct parse_value {
	char *text;
	double value;
};

/*
 * Does the spec make sense? Compiles the pattern. *ret_key names the key that is wrong (static
 * text), for the caller to say where it stands.
 */
int parse_spec_check(struct parse_spec *spec, const char **ret_key, struct err *err);

const char *parse_format_name(const struct parse_spec *spec);

/* Does this spec's format use the key of this name? */
int parse_format_uses(const struct parse_spec *spec, const char *key);

/*
 * -ENODATA: the output does not contain it, and err says what was looked for. -EBADMSG: there is
 * something in its place that is not a number.
 */
int parse_output(const struct parse_spec *spec, const char *output, size_t len,
	struct parse_value *ret, struct err *err);

void parse_value_release(struct parse_value *value);

void parse_spec_release(struct parse_spec *spec);

/* The strict number: [+-]digits[.digits][e[+-]digits], finite, nothing before or behind it. */
int parse_number(const char *text, size_t len, double *ret, struct err *err);

#endif
