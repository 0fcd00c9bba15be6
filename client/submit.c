#include "client/submit.h"

#include <errno.h>
#include <string.h>

#include "base/banned.h"

static int is(const struct options_key *given, const char *text, size_t len)
{
	return given->name_len == len && strncmp(given->name, text, len) == 0;
}

/* Does the option mean this key? */
static int matches(const struct options_key *given, const json_t *key)
{
	const char *section = json_opt_str(key, "section", "");
	const char *name = json_opt_str(key, "name", "");
	size_t len = strlen(section);

	if (is(given, name, strlen(name)))
		return 1;
	return given->name_len == len + 1 + strlen(name) &&
	       strncmp(given->name, section, len) == 0 && given->name[len] == '.' &&
	       strncmp(given->name + len + 1, name, strlen(name)) == 0;
}

/* Check that the option means exactly one key, and that its value fits on a line. */
static int check_given(const json_t *keys, const struct options_key *given, struct err *err)
{
	const json_t *found = NULL, *key;
	int len = (int)given->name_len;
	size_t i;

	json_array_foreach (keys, i, key) {
		if (!matches(given, key))
			continue;
		if (found)
			return err_set(err, EINVAL,
				"--%.*s stands in two sections: say --%s.%.*s or --%s.%.*s", len,
				given->name, json_opt_str(found, "section", ""), len, given->name,
				json_opt_str(key, "section", ""), len, given->name);
		found = key;
	}
	if (!found)
		return err_set(err, EINVAL, "the job file has no key \"%.*s\" (see kbctl keys)",
			len, given->name);
	if (strchr(given->value, '\n'))
		return err_set(
			err, EINVAL, "the value of --%.*s contains a line break", len, given->name);
	return 0;
}

int submit_text(const json_t *keys, const struct options_key *given, size_t n, struct buf *ret,
	struct err *err)
{
	const char *section = NULL;
	json_t *key;
	size_t i;

	for (size_t k = 0; k < n; k++) {
		int r = check_given(keys, &given[k], err);

		if (r < 0)
			return r;
	}
	json_array_foreach (keys, i, key) {
		const char *in = json_opt_str(key, "section", ""), *value = NULL;

		for (size_t k = 0; k < n; k++)
			if (matches(&given[k], key))
				value = given[k].value;
		if (!value)
			continue;
		if (!section || strcmp(section, in) != 0)
			buf_addf(ret, "[%s]\n", in);
		section = in;
		buf_addf(ret, "%s = %s\n", json_opt_str(key, "name", ""), value);
	}
	return 0;
}
