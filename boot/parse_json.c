#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "boot/parse_formats.h"
#include "base/banned.h"

/* One step of a path: a member's name, an element's number, or every element. */
struct step {
	const char *name; /* NULL = an element */
	size_t name_len;
	long index; /* -1 = all */
};

/* [3], [*] or ["name"], behind the bracket. */
static int bracket_step(const char **path, struct step *ret, struct err *err)
{
	const char *p = *path, *close;
	char *end;

	if (*p == '"') {
		close = strchr(p + 1, '"');
		if (!close || close[1] != ']')
			return err_set(err, EINVAL, "no closing \"] after [%.40s", p);
		*ret = (struct step){p + 1, (size_t)(close - p - 1), 0};
		*path = close + 2;
		return 1;
	}
	*ret = (struct step){NULL, 0, -1};
	end = (char *)p + 1;
	if (*p != '*') {
		ret->index = isdigit((unsigned char)*p) ? strtol(p, &end, 10) : -1;
		if (ret->index < 0 || ret->index > INT_MAX)
			return err_set(
				err, EINVAL, "expected [NUMBER], [*] or [\"NAME\"] at [%.40s", p);
	}
	if (*end != ']')
		return err_set(err, EINVAL, "no closing ] after [%.40s", p);
	*path = end + 1;
	return 1;
}

/* The next step of a path such as a.b[0]["c.d"].e; 1, or 0 at its end. */
static int path_step(const char **path, int first, struct step *ret, struct err *err)
{
	const char *p = *path;
	size_t n;

	if (!*p)
		return 0;
	if (*p == '[') {
		*path = p + 1;
		return bracket_step(path, ret, err);
	}
	if (!first && *p++ != '.')
		return err_set(err, EINVAL, "expected . or [ at \"%.40s\"", p - 1);
	n = strcspn(p, ".[");
	if (!n)
		return err_set(err, EINVAL, "a name is missing at \"%.40s\"", *path);
	*ret = (struct step){p, n, 0};
	*path = p + n;
	return 1;
}

int parse_json_check(struct parse_spec *spec, const char **ret_key, struct err *err)
{
	const char *path = spec->path;
	struct step step;
	int r;

	*ret_key = "path";
	if (!path)
		return err_set(err, EINVAL, "a path is needed");
	r = path_step(&path, 1, &step, err);
	while (r > 0)
		r = path_step(&path, 0, &step, err);
	return r;
}

/*
 * The JSON object in the output, from the first { to its }, with every number in quotes: jansson
 * would keep a number's value, but not the characters that were printed.
 */
static int quote_numbers(const char *text, size_t len, struct buf *ret, struct err *err)
{
	const char *p = memchr(text, '{', len), *end = text + len;
	int depth = 0, in_string = 0;

	if (!p)
		return err_set(err, ENODATA, "there is no JSON object");
	for (; p < end; p++) {
		size_t n = 0;

		if (in_string) {
			if (*p == '\\' && p + 1 < end)
				buf_addc(ret, *p++);
			else if (*p == '"')
				in_string = 0;
			buf_addc(ret, *p);
			continue;
		}
		while (p + n < end && p[n] && strchr(n ? "0123456789+-.eE" : "0123456789-", p[n]))
			n++;
		if (n) {
			buf_addc(ret, '"');
			buf_add(ret, p, n);
			buf_addc(ret, '"');
			p += n - 1;
			continue;
		}
		buf_addc(ret, *p);
		in_string = *p == '"';
		depth += (*p == '{' || *p == '[') - (*p == '}' || *p == ']');
		if (depth == 0)
			return 0;
	}
	return err_set(err, EBADMSG, "the JSON ends in the middle");
}

static const char *type_word(const json_t *json)
{
	return json_is_object(json)  ? "an object"
	       : json_is_array(json) ? "an array"
	       : json_is_null(json)  ? "null"
				     : "true or false";
}

/* Follow the rest of the path, which was checked; every end that is a number is added. */
static int walk(
	const json_t *json, const char *path, int first, struct parse_list *list, struct err *err)
{
	struct step step;
	int r = path_step(&path, first, &step, err);

	if (r < 0 || !json)
		return r < 0 ? r : 0;
	if (r == 0 && json_is_string(json))
		return parse_list_add(list, json_string_value(json), json_string_length(json), err);
	if (r == 0)
		return err_set(err, EBADMSG, "found %s, not a number", type_word(json));
	if (step.name) {
		cleanup(free) char *name = xstrndup(step.name, step.name_len);

		return walk(json_object_get(json, name), path, 0, list, err);
	}
	if (step.index >= 0)
		return walk(json_array_get(json, (size_t)step.index), path, 0, list, err);
	r = 0;
	for (size_t i = 0; r == 0 && i < json_array_size(json); i++)
		r = walk(json_array_get(json, i), path, 0, list, err);
	return r;
}

int parse_json(const struct parse_spec *spec, const char *text, size_t len, struct parse_list *list,
	struct err *err)
{
	cleanup(buf_release) struct buf quoted = BUF_INIT;
	cleanup(json_decref) json_t *json = NULL;
	int r = quote_numbers(text, len, &quoted, err);

	if (r == 0)
		r = json_parse(buf_str(&quoted), quoted.len, &json, err);
	if (r == 0)
		r = walk(json, spec->path, 1, list, err);
	if (r < 0)
		return err_wrap(err, "%s", spec->path);
	if (!list->n)
		return err_set(err, ENODATA, "the JSON has no %s", spec->path);
	return 0;
}
