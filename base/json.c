#include "base/json.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/banned.h"

int json_parse(const char *text, size_t len, json_t **ret, struct err *err)
{
	json_error_t jerr;
	json_t *json = json_loadb(text, len, 0, &jerr);

	if (!json)
		return err_set(err, EBADMSG, "not JSON: %s (column %d)", jerr.text, jerr.column);
	*ret = json;
	return 0;
}

/* The member, or NULL with an error that says what it should have been. */
static json_t *member(
	const json_t *obj, const char *key, int ok_type, const char *type_name, struct err *err)
{
	json_t *value = json_object_get(obj, key);

	if (!value) {
		err_set(err, EBADMSG, "\"%s\" is missing (expected %s)", key, type_name);
		return NULL;
	}
	if ((int)json_typeof(value) != ok_type) {
		err_set(err, EBADMSG, "\"%s\" must be %s", key, type_name);
		return NULL;
	}
	return value;
}

int json_get_str(const json_t *obj, const char *key, const char **ret, struct err *err)
{
	json_t *value = member(obj, key, JSON_STRING, "a string", err);

	if (!value)
		return -EBADMSG;
	*ret = json_string_value(value);
	return 0;
}

int json_get_int(const json_t *obj, const char *key, int64_t *ret, struct err *err)
{
	json_t *value = member(obj, key, JSON_INTEGER, "an integer", err);

	if (!value)
		return -EBADMSG;
	*ret = json_integer_value(value);
	return 0;
}

int json_get_obj(const json_t *obj, const char *key, json_t **ret, struct err *err)
{
	json_t *value = member(obj, key, JSON_OBJECT, "an object", err);

	if (!value)
		return -EBADMSG;
	*ret = value;
	return 0;
}

int json_get_arr(const json_t *obj, const char *key, json_t **ret, struct err *err)
{
	json_t *value = member(obj, key, JSON_ARRAY, "an array", err);

	if (!value)
		return -EBADMSG;
	*ret = value;
	return 0;
}

const char *json_opt_str(const json_t *obj, const char *key, const char *def)
{
	const char *s = json_string_value(json_object_get(obj, key));

	return s ? s : def;
}

int64_t json_opt_int(const json_t *obj, const char *key, int64_t def)
{
	json_t *value = json_object_get(obj, key);

	return json_is_integer(value) ? json_integer_value(value) : def;
}

double json_opt_real(const json_t *obj, const char *key, double def)
{
	json_t *value = json_object_get(obj, key);

	return json_is_number(value) ? json_number_value(value) : def;
}

int json_opt_bool(const json_t *obj, const char *key, int def)
{
	json_t *value = json_object_get(obj, key);

	return json_is_boolean(value) ? json_is_true(value) : def;
}

/* Length of the UTF-8 sequence that starts at s, or 0 when there is no valid one (RFC 3629). */
static size_t utf8_len(const unsigned char *s)
{
	static const struct {
		unsigned char lo, hi, lo2, hi2, len;
	} forms[] = {
		{0x01, 0x7f, 0x00, 0x00, 1},
		{0xc2, 0xdf, 0x80, 0xbf, 2},
		{0xe0, 0xe0, 0xa0, 0xbf, 3},
		{0xe1, 0xec, 0x80, 0xbf, 3},
		{0xed, 0xed, 0x80, 0x9f, 3},
		{0xee, 0xef, 0x80, 0xbf, 3},
		{0xf0, 0xf0, 0x90, 0xbf, 4},
		{0xf1, 0xf3, 0x80, 0xbf, 4},
		{0xf4, 0xf4, 0x80, 0x8f, 4},
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		if (s[0] < forms[i].lo || s[0] > forms[i].hi)
			continue;
		if (forms[i].len > 1 && (s[1] < forms[i].lo2 || s[1] > forms[i].hi2))
			return 0;
		for (size_t k = 2; k < forms[i].len; k++)
			if ((s[k] & 0xc0) != 0x80)
				return 0;
		return forms[i].len;
	}
	return 0;
}

json_t *json_text(const char *s)
{
	cleanup(buf_release) struct buf clean = BUF_INIT;

	if (!s)
		return json_null();
	while (*s) {
		size_t n = utf8_len((const unsigned char *)s);

		if (n)
			buf_add(&clean, s, n);
		else
			buf_adds(&clean, "\xef\xbf\xbd");
		s += n ? n : 1;
	}
	return json_string(buf_str(&clean));
}

void json_set_str(json_t *obj, const char *key, const char *value)
{
	if (value)
		json_object_set_new(obj, key, json_text(value));
}

void json_set_int(json_t *obj, const char *key, int64_t value)
{
	json_object_set_new(obj, key, json_integer(value));
}

void json_set_real(json_t *obj, const char *key, double value)
{
	json_object_set_new(obj, key, json_real(value));
}

void json_set_bool(json_t *obj, const char *key, int value)
{
	json_object_set_new(obj, key, json_boolean(value));
}

char *json_line(const json_t *json)
{
	char *s = json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY);

	return s ? s : xstrdup("null");
}
