#include "boot/parse.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "boot/parse_formats.h"
#include "base/banned.h"

#define VALUES_MAX 100000
#define NUMBER_MAX 64	     /* characters; no program prints longer ones */
#define LINE_MAX_REGEX 16384 /* a longer line is not searched: cut, it could show a cut number */

/* In the order of PARSE_FORMAT_CHOICES. */
static const struct format {
	const char *name, *keys;
	int (*check)(struct parse_spec *spec, const char **ret_key, struct err *err);
	int (*collect)(const struct parse_spec *spec, const char *text, size_t len,
		struct parse_list *list, struct err *err);
} formats[] = {
	{"regex", "|pattern|group|", parse_regex_check, parse_regex},
	{"csv", "|column|row|ignore|", parse_grid_check, parse_csv},
	{"json", "|path|", parse_json_check, parse_json},
	{"table", "|column|row|ignore|", parse_grid_check, parse_table},
};

const char *parse_format_name(const struct parse_spec *spec)
{
	return formats[spec->format].name;
}

int parse_format_uses(const struct parse_spec *spec, const char *key)
{
	cleanup(free) char *word = xasprintf("|%s|", key);

	return strstr(formats[spec->format].keys, word) != NULL;
}

int parse_spec_check(struct parse_spec *spec, const char **ret_key, struct err *err)
{
	if (spec->scale == 0)
		spec->scale = 1;
	return formats[spec->format].check(spec, ret_key, err);
}

void parse_spec_release(struct parse_spec *spec)
{
	if (spec->re) {
		regfree(spec->re);
		free(steal(&spec->re));
	}
	free(steal(&spec->pattern));
	free(steal(&spec->column));
	free(steal(&spec->row));
	free(steal(&spec->ignore));
	free(steal(&spec->path));
}

void parse_value_release(struct parse_value *value)
{
	free(steal(&value->text));
}

static size_t digits(const char *s)
{
	size_t n = 0;

	while (isdigit((unsigned char)s[n]))
		n++;
	return n;
}

int parse_number(const char *text, size_t len, double *ret, struct err *err)
{
	char copy[NUMBER_MAX + 1];
	const char *p = copy;
	size_t n = len < NUMBER_MAX ? len : NUMBER_MAX, fraction = 1, exponent = 1;
	double value;

	memcpy(copy, text, n);
	copy[n] = '\0';
	p += *p == '+' || *p == '-';
	n = digits(p);
	p += n;
	if (n && *p == '.') {
		fraction = digits(++p);
		p += fraction;
	}
	if (n && fraction && (*p == 'e' || *p == 'E')) {
		p++;
		p += *p == '+' || *p == '-';
		exponent = digits(p);
		p += exponent;
	}
	/* The length tells an embedded or missing tail, such as a zero byte, from the end. */
	if (!n || !fraction || !exponent || (size_t)(p - copy) != len) {
		cleanup(buf_release) struct buf shown = BUF_INIT;

		buf_add_excerpt(&shown, text, len, NUMBER_MAX);
		return err_set(err, EBADMSG, "\"%s\" is not a number", buf_str(&shown));
	}
	value = strtod(copy, NULL);
	if (!isfinite(value))
		return err_set(err, EBADMSG, "%s is too large for a number", copy);
	*ret = value;
	return 0;
}

int parse_list_add(struct parse_list *list, const char *text, size_t len, struct err *err)
{
	double value;
	int r = parse_number(text, len, &value, err);

	if (r < 0)
		return r;
	if (list->which == PARSE_LAST && list->n)
		parse_value_release(&list->values[--list->n]);
	if (list->n >= VALUES_MAX)
		return err_set(err, E2BIG, "more than %d numbers match", VALUES_MAX);
	ALLOC_GROW(list->values, list->n, list->cap);
	list->values[list->n++] = (struct parse_value){xstrndup(text, len), value};
	return list->which == PARSE_FIRST;
}

static void parse_list_release(struct parse_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		parse_value_release(&list->values[i]);
	free(list->values);
}

static void cleanup_parse_list_release(struct parse_list *list)
{
	parse_list_release(list);
}

int parse_next_line(const char **text, size_t *len, const char **ret_line, size_t *ret_len)
{
	size_t n = 0;

	if (!*len)
		return 0;
	while (n < *len && (*text)[n] != '\n' && (*text)[n] != '\r')
		n++;
	*ret_line = *text;
	*ret_len = n;
	n += n < *len;
	*text += n;
	*len -= n;
	return 1;
}

static int compare_values(const void *a, const void *b)
{
	double x = ((const struct parse_value *)a)->value;
	double y = ((const struct parse_value *)b)->value;

	return (x > y) - (x < y);
}

/* A number that was not printed but computed; what it says is what it is worth. */
static int computed(double value, struct parse_value *ret, struct err *err)
{
	if (!isfinite(value))
		return err_set(err, EBADMSG, "the numbers are too large to compute with");
	ret->text = xasprintf("%.12g", value);
	ret->value = strtod(ret->text, NULL);
	return 0;
}

/* One number of many. The list may be reordered and loses the value that is handed out. */
static int choose(struct parse_list *list, struct parse_value *ret, struct err *err)
{
	size_t pick = 0, n = list->n;
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += list->values[i].value;
	switch ((enum parse_which)list->which) {
	case PARSE_SUM:
		return computed(sum, ret, err);
	case PARSE_MEAN:
		return computed(sum / (double)n, ret, err);
	case PARSE_MEDIAN:
		qsort(list->values, n, sizeof(*list->values), compare_values);
		pick = n / 2;
		if (n % 2 == 0)
			return computed(
				list->values[pick - 1].value / 2 + list->values[pick].value / 2,
				ret, err);
		break;
	case PARSE_MIN:
	case PARSE_MAX:
		qsort(list->values, n, sizeof(*list->values), compare_values);
		pick = list->which == PARSE_MAX ? n - 1 : 0;
		break;
	case PARSE_FIRST:
	case PARSE_LAST:
		break;
	}
	*ret = list->values[pick];
	list->values[pick].text = NULL;
	return 0;
}

int parse_output(const struct parse_spec *spec, const char *output, size_t len,
	struct parse_value *ret, struct err *err)
{
	cleanup(parse_list_release) struct parse_list list = {.which = spec->which};
	struct parse_value value = {NULL, 0};
	int r = formats[spec->format].collect(spec, output, len, &list, err);

	if (r < 0)
		return r;
	if (!list.n)
		return err_set(err, ENODATA, "no number of that description");
	r = choose(&list, &value, err);
	if (r == 0 && spec->scale != 1) {
		parse_value_release(&value);
		r = computed(value.value * spec->scale, &value, err);
	}
	if (r == 0)
		*ret = value;
	return r;
}

int parse_regex_check(struct parse_spec *spec, const char **ret_key, struct err *err)
{
	char text[256];
	int r;

	*ret_key = "pattern";
	if (!spec->pattern)
		return err_set(err, EINVAL, "a pattern is needed");
	/* glibc takes this for the letter d, and the metric would just never be found. */
	if (strstr(spec->pattern, "\\d"))
		return err_set(
			err, EINVAL, "\\d is not known in POSIX extended expressions; write [0-9]");
	spec->re = xcalloc(1, sizeof(*spec->re));
	r = regcomp(spec->re, spec->pattern, REG_EXTENDED);
	if (r) {
		regerror(r, spec->re, text, sizeof(text));
		free(steal(&spec->re));
		return err_set(err, EINVAL, "\"%s\" does not compile: %s", spec->pattern, text);
	}
	*ret_key = "group";
	if (spec->group > (int64_t)spec->re->re_nsub)
		return err_set(err, EINVAL,
			"the pattern has no group %d: put ( ) around the number, or say group = 0",
			(int)spec->group);
	return 0;
}

/* All matches in one line. */
static int regex_line(const struct parse_spec *spec, const char *line, size_t len,
	struct parse_list *list, struct err *err)
{
	size_t n_groups = spec->re->re_nsub + 1, at = 0;
	cleanup(free) regmatch_t *m = xcalloc(n_groups, sizeof(*m));
	int r = 0;

	while (r == 0 && at <= len) {
		m[0].rm_so = (regoff_t)at;
		m[0].rm_eo = (regoff_t)len;
		if (regexec(spec->re, line, n_groups, m, REG_STARTEND))
			break;
		at = (size_t)m[0].rm_eo + (m[0].rm_eo == m[0].rm_so);
		m[0] = m[spec->group];
		/* A group in a branch that was not taken. */
		if (m[0].rm_so >= 0)
			r = parse_list_add(
				list, line + m[0].rm_so, (size_t)(m[0].rm_eo - m[0].rm_so), err);
	}
	return r;
}

int parse_regex(const struct parse_spec *spec, const char *text, size_t len,
	struct parse_list *list, struct err *err)
{
	cleanup(buf_release) struct buf copy = BUF_INIT;
	const char *line;
	size_t n;
	int r = 0;

	while (r == 0 && parse_next_line(&text, &len, &line, &n)) {
		if (n > LINE_MAX_REGEX)
			continue;
		/* Some C libraries' regexec look for the terminating zero even with REG_STARTEND.
		 */
		buf_reset(&copy);
		buf_add(&copy, line, n);
		r = regex_line(spec, buf_str(&copy), n, list, err);
	}
	if (r >= 0 && !list->n)
		return err_set(err, ENODATA, "no line matches \"%s\"", spec->pattern);
	return r;
}
