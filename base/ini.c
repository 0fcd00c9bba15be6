#include "base/ini.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/banned.h"

struct ini {
	const char *where;
	ini_fn fn;
	void *arg;
	struct err *err;
	char *section;	  /* owned */
	char *name;	  /* the key being collected, or NULL; owned */
	struct buf value; /* what it has so far */
	int line;	  /* where it began */
};

/* Strip white space at both ends, in place. */
static char *strip(char *s)
{
	char *end = s + strlen(s);

	while (end > s && isspace((unsigned char)end[-1]))
		*--end = '\0';
	while (isspace((unsigned char)*s))
		s++;
	return s;
}

/* Hand the collected key over, if there is one. */
static int flush(struct ini *ini)
{
	int r;

	if (!ini->name)
		return 0;
	r = ini->fn(ini->arg, ini->section, ini->name, buf_str(&ini->value), ini->line, ini->err);
	free(steal(&ini->name));
	buf_reset(&ini->value);
	return r;
}

static int header(struct ini *ini, char *s, int line)
{
	size_t len = strlen(s);

	if (s[len - 1] != ']')
		return err_set(ini->err, EINVAL, "%s:%d: the section header has no closing ']'",
			ini->where, line);
	s[len - 1] = '\0';
	free(ini->section);
	ini->section = xstrdup(strip(s + 1));
	return ini->fn(ini->arg, ini->section, NULL, NULL, line, ini->err);
}

static int key(struct ini *ini, char *s, int line)
{
	char *eq = strchr(s, '=');

	if (!eq || eq == s)
		return err_set(ini->err, EINVAL,
			"%s:%d: expected \"key = value\" or \"[section]\", found \"%.60s\"",
			ini->where, line, s);
	*eq = '\0';
	ini->name = xstrdup(strip(s));
	ini->line = line;
	buf_adds(&ini->value, strip(eq + 1));
	return 0;
}

static int one_line(struct ini *ini, char *raw, int line)
{
	int indented = isspace((unsigned char)raw[0]);
	char *s = strip(raw);
	int r;

	if (!*s)
		return flush(ini);
	if (*s == '#' || *s == ';')
		return 0;
	if (indented && ini->name) {
		if (ini->value.len)
			buf_addc(&ini->value, ' ');
		buf_adds(&ini->value, s);
		return 0;
	}
	r = flush(ini);
	if (r < 0)
		return r;
	return *s == '[' ? header(ini, s, line) : key(ini, s, line);
}

int ini_read(const char *text, size_t len, const char *where, ini_fn fn, void *arg, struct err *err)
{
	struct ini ini = {.where = where, .fn = fn, .arg = arg, .err = err};
	const char *end = text + len;
	int r = 0, line = 1;

	ini.section = xstrdup("");
	if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		text += 3;
	for (; r >= 0 && text < end; line++) {
		const char *nl = memchr(text, '\n', (size_t)(end - text));
		size_t n = (size_t)((nl ? nl : end) - text);
		cleanup(free) char *raw = xstrndup(text, n);

		if (memchr(text, '\0', n))
			r = err_set(err, EINVAL, "%s:%d: not a text file (zero byte)", where, line);
		else
			r = one_line(&ini, raw, line);
		text += n + 1;
	}
	if (r >= 0)
		r = flush(&ini);
	free(ini.section);
	free(ini.name);
	buf_release(&ini.value);
	return r < 0 ? r : 0;
}
