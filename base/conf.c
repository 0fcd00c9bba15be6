#include "base/conf.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/ini.h"
#include "base/banned.h"

#define CONF_FILE_MAX (1 << 20)

struct suffix {
	const char *text;
	double factor;
};

static const struct suffix size_suffixes[] = {
	{"", 1},
	{"K", 1024.0},
	{"M", 1048576.0},
	{"G", 1073741824.0},
	{"T", 1099511627776.0},
	{NULL, 0},
};

static const struct suffix duration_suffixes[] = {
	{"", 1000},
	{"ms", 1},
	{"s", 1000},
	{"m", 60000},
	{"min", 60000},
	{"h", 3600000},
	{"d", 86400000},
	{NULL, 0},
};

/* A non-negative number with one of the suffixes. */
static int parse_scaled(const char *text, const struct suffix *suffixes, const char *expected,
	int64_t *ret, struct err *err)
{
	char *end;
	double v = strtod(text, &end);

	if (end == text || !isdigit((unsigned char)text[0]))
		return err_set(err, EINVAL, "expected %s, found \"%s\"", expected, text);
	while (*end == ' ')
		end++;
	for (; suffixes->text; suffixes++) {
		if (strcmp(end, suffixes->text) != 0)
			continue;
		v *= suffixes->factor;
		if (!(v < 9e18))
			return err_set(err, ERANGE, "\"%s\" is too large", text);
		*ret = (int64_t)llround(v);
		return 0;
	}
	return err_set(err, EINVAL, "expected %s, found \"%s\"", expected, text);
}

int conf_parse_size(const char *text, int64_t *ret_bytes, struct err *err)
{
	return parse_scaled(text, size_suffixes, "a size such as 512M or 2G", ret_bytes, err);
}

int conf_parse_duration(const char *text, int64_t *ret_ms, struct err *err)
{
	return parse_scaled(text, duration_suffixes, "a time such as 90s, 15m or 2h", ret_ms, err);
}

static int parse_bool(const char *text, int *ret, struct err *err)
{
	static const char *const words[] = {"no", "yes", "false", "true", "off", "on", "0", "1"};

	for (int i = 0; i < 8; i++) {
		if (strcmp(text, words[i]) == 0) {
			*ret = i & 1;
			return 0;
		}
	}
	return err_set(err, EINVAL, "expected yes or no, found \"%s\"", text);
}

static int parse_int(const char *text, int64_t *ret, struct err *err)
{
	char *end;

	errno = 0;
	long long v = strtoll(text, &end, 10);
	if (end == text || *end || errno)
		return err_set(err, EINVAL, "expected a whole number, found \"%s\"", text);
	*ret = v;
	return 0;
}

static int parse_real(const char *text, double *ret, struct err *err)
{
	char *end;
	double v = strtod(text, &end);

	if (end == text || *end || !isfinite(v))
		return err_set(err, EINVAL, "expected a number, found \"%s\"", text);
	*ret = v;
	return 0;
}

static int parse_enum(const char *text, const char *choices, int *ret, struct err *err)
{
	size_t len = strlen(text);
	const char *p = choices;

	for (int i = 0;; i++) {
		const char *bar = strchrnul(p, '|');

		if ((size_t)(bar - p) == len && memcmp(p, text, len) == 0) {
			*ret = i;
			return 0;
		}
		if (!*bar)
			break;
		p = bar + 1;
	}
	return err_set(err, EINVAL, "expected one of %s, found \"%s\"", choices, text);
}

/* A value of one of the number types. */
union number {
	int b;
	int64_t i;
	double r;
};

static int parse_number(
	const struct conf_key *k, const char *text, union number *ret, struct err *err)
{
	switch (k->type) {
	case CONF_BOOL:
		return parse_bool(text, &ret->b, err);
	case CONF_INT:
		return parse_int(text, &ret->i, err);
	case CONF_REAL:
		return parse_real(text, &ret->r, err);
	case CONF_SIZE:
		return conf_parse_size(text, &ret->i, err);
	case CONF_DURATION:
		return conf_parse_duration(text, &ret->i, err);
	case CONF_ENUM:
		return parse_enum(text, k->choices, &ret->b, err);
	case CONF_STRING:
	case CONF_PATH:
		break;
	}
	return err_set(err, EINVAL, "not a number type");
}

static double number_value(const struct conf_key *k, const union number *n)
{
	return k->type == CONF_REAL ? n->r : (double)n->i;
}

static int check_bounds(
	const struct conf_key *k, const union number *n, const char *text, struct err *err)
{
	union number bound;

	if (k->min && parse_number(k, k->min, &bound, NULL) == 0 &&
		number_value(k, n) < number_value(k, &bound))
		return err_set(err, ERANGE, "expected at least %s, found \"%s\"", k->min, text);
	if (k->max && parse_number(k, k->max, &bound, NULL) == 0 &&
		number_value(k, n) > number_value(k, &bound))
		return err_set(err, ERANGE, "expected at most %s, found \"%s\"", k->max, text);
	return 0;
}

static int store_text(
	const struct conf_key *k, void *field, const char *text, const char *dir, struct err *err)
{
	char *value;

	if (k->type == CONF_PATH && text[0] != '/' && !dir)
		return err_set(err, EINVAL, "expected an absolute path, found \"%s\"", text);
	if (!*text)
		return err_set(
			err, EINVAL, "the value is empty (leave the key out for its default)");
	value = k->type == CONF_PATH && dir ? file_join(dir, text) : xstrdup(text);
	free(*(char **)field);
	*(char **)field = value;
	return 0;
}

static int store(
	const struct conf_key *k, void *dst, const char *text, const char *dir, struct err *err)
{
	void *field = (char *)dst + k->offset;
	union number n;
	int r;

	if (k->type == CONF_STRING || k->type == CONF_PATH)
		return store_text(k, field, text, dir, err);
	r = parse_number(k, text, &n, err);
	if (r == 0 && k->type != CONF_BOOL && k->type != CONF_ENUM)
		r = check_bounds(k, &n, text, err);
	if (r < 0)
		return r;
	if (k->type == CONF_BOOL || k->type == CONF_ENUM)
		memcpy(field, &n.b, sizeof(n.b));
	else if (k->type == CONF_REAL)
		memcpy(field, &n.r, sizeof(n.r));
	else
		memcpy(field, &n.i, sizeof(n.i));
	return 0;
}

static int is_required(const struct conf_key *k)
{
	return k->def && strcmp(k->def, CONF_REQUIRED) == 0;
}

void conf_defaults(const struct conf_key *keys, void *dst)
{
	for (const struct conf_key *k = keys; k->name; k++) {
		struct err err;

		if (k->def && !is_required(k) && store(k, dst, k->def, "/", &err) < 0)
			abort();
	}
}

/* "good, bad, repo": what could have been meant. */
static void list_keys(const struct conf_key *keys, const char *section, struct buf *out)
{
	for (const struct conf_key *k = keys; k->name; k++)
		if (strcmp(k->section, section) == 0)
			buf_addf(out, "%s%s", out->len ? ", " : "", k->name);
}

static void list_sections(const struct conf_key *keys, struct buf *out)
{
	const char *last = "";

	for (const struct conf_key *k = keys; k->name; k++) {
		if (strcmp(k->section, last) != 0)
			buf_addf(out, "%s[%s]", out->len ? ", " : "", k->section);
		last = k->section;
	}
}

static int unknown_key(const struct conf_key *keys, const char *section, const char *name,
	const char *where, int line, struct err *err)
{
	cleanup(buf_release) struct buf known = BUF_INIT;

	list_keys(keys, section, &known);
	if (known.len && name)
		return err_set(err, EINVAL, "%s:%d: unknown key \"%s\" in [%s]; known are: %s",
			where, line, name, section, known.data);
	if (known.len)
		return 0;
	list_sections(keys, &known);
	if (!*section)
		return err_set(err, EINVAL,
			"%s:%d: \"%s\" stands before any section; expected one of %s", where, line,
			name, buf_str(&known));
	return err_set(err, EINVAL, "%s:%d: unknown section [%s]; known are: %s", where, line,
		section, buf_str(&known));
}

int conf_set(const struct conf_key *keys, void *dst, const char *section, const char *name,
	const char *value, const char *where, int line, const char *dir, struct err *err)
{
	for (const struct conf_key *k = keys; name && k->name; k++) {
		int r;

		if (strcmp(k->section, section) != 0 || strcmp(k->name, name) != 0)
			continue;
		r = store(k, dst, value, dir, err);
		return r < 0 ? err_wrap(err, "%s:%d: %s", where, line, name) : 0;
	}
	return unknown_key(keys, section, name, where, line, err);
}

int conf_check(const struct conf_key *keys, const void *dst, const char *where, struct err *err)
{
	for (const struct conf_key *k = keys; k->name; k++)
		if (is_required(k) && !*(char *const *)((const char *)dst + k->offset))
			return err_set(err, EINVAL, "%s: \"%s\" is missing in [%s] (%s)", where,
				k->name, k->section, k->help);
	return 0;
}

void conf_release(const struct conf_key *keys, void *dst)
{
	for (const struct conf_key *k = keys; k->name; k++) {
		char **field = (char **)((char *)dst + k->offset);

		if (k->type == CONF_STRING || k->type == CONF_PATH)
			free(steal(field));
	}
}

struct parse {
	const struct conf_key *keys;
	void *dst;
	const char *where, *dir;
	int *seen; /* line of each key, 0 = not yet */
};

static int parse_one(void *arg, const char *section, const char *name, const char *value, int line,
	struct err *err)
{
	struct parse *p = arg;

	for (size_t i = 0; name && p->keys[i].name; i++) {
		const struct conf_key *k = &p->keys[i];

		if (strcmp(k->section, section) != 0 || strcmp(k->name, name) != 0)
			continue;
		if (p->seen[i])
			return err_set(err, EINVAL, "%s:%d: \"%s\" was given already in line %d",
				p->where, line, name, p->seen[i]);
		p->seen[i] = line;
	}
	return conf_set(p->keys, p->dst, section, name, value, p->where, line, p->dir, err);
}

int conf_parse(const char *text, size_t len, const char *where, const char *dir,
	const struct conf_key *keys, void *dst, struct err *err)
{
	struct parse p = {.keys = keys, .dst = dst, .where = where, .dir = dir};
	cleanup(free) int *seen = NULL;
	size_t n = 0;
	int r;

	while (keys[n].name)
		n++;
	p.seen = seen = xcalloc(n, sizeof(*seen));
	conf_defaults(keys, dst);
	r = ini_read(text, len, where, parse_one, &p, err);
	if (r == 0)
		r = conf_check(keys, dst, where, err);
	if (r < 0)
		conf_release(keys, dst);
	return r;
}

int conf_load(
	const char *path, const char *dir, const struct conf_key *keys, void *dst, struct err *err)
{
	cleanup(buf_release) struct buf text = BUF_INIT;
	int r = file_read(path, CONF_FILE_MAX, &text, err);

	return r < 0 ? r : conf_parse(buf_str(&text), text.len, path, dir, keys, dst, err);
}

static void print_scaled(
	int64_t v, const struct suffix *suffixes, const char *zero, struct buf *out)
{
	const struct suffix *best = NULL;

	for (const struct suffix *s = suffixes; s->text; s++)
		if (v && *s->text && v % (int64_t)s->factor == 0 &&
			(!best || s->factor > best->factor))
			best = s;
	if (best)
		buf_addf(out, "%lld%s", (long long)(v / (int64_t)best->factor), best->text);
	else
		buf_addf(out, "%lld%s", (long long)v, zero);
}

static void print_choice(const char *choices, int index, struct buf *out)
{
	const char *p = choices;

	while (index-- > 0 && *p)
		p = strchrnul(p, '|') + 1;
	buf_add(out, p, (size_t)(strchrnul(p, '|') - p));
}

static void print_value(const struct conf_key *k, const void *field, struct buf *out)
{
	switch (k->type) {
	case CONF_STRING:
	case CONF_PATH:
		buf_adds(out, *(char *const *)field);
		break;
	case CONF_BOOL:
		buf_adds(out, *(const int *)field ? "yes" : "no");
		break;
	case CONF_INT:
		buf_addf(out, "%lld", (long long)*(const int64_t *)field);
		break;
	case CONF_REAL:
		buf_addf(out, "%.15g", *(const double *)field);
		break;
	case CONF_SIZE:
		print_scaled(*(const int64_t *)field, size_suffixes, "", out);
		break;
	case CONF_DURATION:
		print_scaled(*(const int64_t *)field, duration_suffixes, "ms", out);
		break;
	case CONF_ENUM:
		print_choice(k->choices, *(const int *)field, out);
		break;
	}
}

void conf_print(const struct conf_key *keys, const void *src, struct buf *out)
{
	const char *section = "";

	for (const struct conf_key *k = keys; k->name; k++) {
		const void *field = (const char *)src + k->offset;

		if (strcmp(section, k->section) != 0)
			buf_addf(out, "%s[%s]\n", *section ? "\n" : "", k->section);
		section = k->section;
		if ((k->type == CONF_STRING || k->type == CONF_PATH) && !*(char *const *)field) {
			buf_addf(out, "# %s =\n", k->name);
			continue;
		}
		buf_addf(out, "%s = ", k->name);
		print_value(k, field, out);
		buf_addc(out, '\n');
	}
}
