#ifndef BOOT_PARSE_FORMATS_H
#define BOOT_PARSE_FORMATS_H

/*
 * The inside of boot/parse.h: what a format is, and the list that its collector fills. A new format
 * is a check, a collector and a row in parse.c; a check's errors do not name the key.
 */

#include "base/buf.h"
#include "boot/parse.h"

/* All numbers found, in order; only one when `which` needs no more. */
struct parse_list {
	int which;
	struct parse_value *values;
	size_t n, cap;
};

/* Add one printed number. 1: no more are needed. -EBADMSG: it is not a number. -E2BIG. */
int parse_list_add(struct parse_list *list, const char *text, size_t len, struct err *err);

/*
 * The next line without its end; both \n and \r end one, as progress bars use \r. Returns 0 after
 * the last.
 */
int parse_next_line(const char **text, size_t *len, const char **ret_line, size_t *ret_len);

int parse_regex_check(struct parse_spec *spec, const char **ret_key, struct err *err);
int parse_regex(const struct parse_spec *spec, const char *text, size_t len,
	struct parse_list *list, struct err *err);

int parse_grid_check(struct parse_spec *spec, const char **ret_key, struct err *err);
int parse_csv(const struct parse_spec *spec, const char *text, size_t len, struct parse_list *list,
	struct err *err);
int parse_table(const struct parse_spec *spec, const char *text, size_t len,
	struct parse_list *list, struct err *err);

int parse_json_check(struct parse_spec *spec, const char **ret_key, struct err *err);
int parse_json(const struct parse_spec *spec, const char *text, size_t len, struct parse_list *list,
	struct err *err);

#endif
