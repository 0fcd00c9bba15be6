#include "boot/kconfig.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/banned.h"

/* What one line says about one symbol. */
struct request {
	const char *name;
	size_t name_len;
	const char *value; /* "n" for "is not set" */
	size_t value_len;
};

struct line {
	const char *text;
	size_t len;
	int number;
};

int kconfig_base_parse(const char *name, enum kconfig_base *ret, struct err *err)
{
	static const char *const names[] = {"tiny", "defconfig", "file"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i])) {
			*ret = (enum kconfig_base)i;
			return 0;
		}
	return err_set(err, EINVAL, "no kind of configuration is called \"%s\"", name);
}

void kconfig_additions(const struct kconfig_recipe *recipe, struct buf *ret)
{
	if (recipe->base == KCONFIG_TINY)
		buf_addf(ret, "\n%s", recipe->tiny.text);
	buf_addf(ret, "\n%s", recipe->guest.text);
	for (size_t i = 0; i < recipe->nfragments; i++)
		buf_addf(ret, "\n%s", recipe->fragments[i].text);
	buf_addc(ret, '\n');
}

void kconfig_hash(const struct kconfig_recipe *recipe, struct hash *hash)
{
	cleanup(buf_release) struct buf added = BUF_INIT;

	kconfig_additions(recipe, &added);
	hash_part(hash, &recipe->base, sizeof(recipe->base));
	hash_part_str(hash, recipe->base == KCONFIG_DEFCONFIG ? recipe->file.name : "");
	hash_part_str(hash, recipe->base == KCONFIG_FILE ? recipe->file.text : "");
	hash_part_str(hash, buf_str(&added));
}

/*
 * Kconfig files and configurations by their names; the version in the top Makefile; the compiler's
 * options, which Kconfig tries out, in the architectures' Makefiles and in scripts/.
 */
int kconfig_depends_on(const char *path)
{
	const char *base = strrchr(path, '/');
	int makefile, depth = 0;

	base = base ? base + 1 : path;
	for (const char *p = path; *p; p++)
		depth += *p == '/';
	makefile = !strncmp(base, "Makefile", 8) || !strncmp(base, "Kbuild", 6);
	return strstr(base, "onfig") || !strncmp(path, "scripts/", 8) || (makefile && depth == 0) ||
	       (makefile && depth == 2 && !strncmp(path, "arch/", 5));
}

/* The next line of *text, without its end and the blanks around it; 0 at the end. */
static int next_line(const char **text, struct line *line)
{
	const char *p = *text, *end;

	if (!*p)
		return 0;
	end = strchrnul(p, '\n');
	*text = *end ? end + 1 : end;
	while (p < end && strchr(" \t", *p))
		p++;
	while (end > p && strchr(" \t\r", end[-1]))
		end--;
	line->text = p;
	line->len = (size_t)(end - p);
	line->number++;
	return 1;
}

static int is_symbol_char(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

/* "CONFIG_X=value" or "# CONFIG_X is not set"; 0 for every other line. */
static int parse_request(const struct line *line, struct request *ret)
{
	static const char unset[] = " is not set";
	const char *p = line->text, *end = line->text + line->len;
	int comment = line->len > 2 && !memcmp(p, "# ", 2);
	struct request req;

	p += comment ? 2 : 0;
	if (end - p < 8 || memcmp(p, "CONFIG_", 7) != 0)
		return 0;
	req.name = p;
	while (p < end && is_symbol_char(*p))
		p++;
	req.name_len = (size_t)(p - req.name);
	if (!comment && p < end && *p == '=') {
		req.value = p + 1;
		req.value_len = (size_t)(end - p - 1);
	} else if (comment && (size_t)(end - p) == sizeof(unset) - 1 &&
		   !memcmp(p, unset, sizeof(unset) - 1)) {
		req.value = "n";
		req.value_len = 1;
	} else {
		return 0;
	}
	*ret = req;
	return 1;
}

/* The last thing that a text says about a symbol; 0 when it says nothing. */
static int find_request(const char *text, const struct request *wanted, struct request *ret)
{
	const char *end = text + strlen(text), *p = text;
	int found = 0;

	while ((p = memmem(p, (size_t)(end - p), wanted->name, wanted->name_len))) {
		const char *start = p;
		struct line line = {.number = 0};
		struct request req;

		while (start > text && start[-1] != '\n')
			start--;
		p += wanted->name_len;
		if (next_line(&start, &line) && parse_request(&line, &req) &&
			req.name_len == wanted->name_len &&
			!memcmp(req.name, wanted->name, req.name_len)) {
			*ret = req;
			found = 1;
		}
	}
	return found;
}

/* The lost line as a sentence. got = NULL: the kernel knows nothing of it. */
static void describe(const struct kconfig_text *from, const struct line *line,
	const struct request *got, struct buf *ret)
{
	buf_addf(ret, "%s:%d: \"%.*s\" does not hold in this kernel's configuration", from->name,
		line->number, (int)line->len, line->text);
	if (!got)
		buf_adds(ret, ", which has no such symbol there: it is unknown to this kernel, or "
			      "something that it depends on is missing");
	else
		buf_addf(ret,
			", which says %.*s=%.*s: something it depends on is missing, or "
			"something else selects it",
			(int)got->name_len, got->name, (int)got->value_len, got->value);
}

/* All lines of one text, against the texts after it and the outcome. */
static int check_text(const struct kconfig_text *from, const char *later, const char *final,
	int strict, struct buf *lost, struct err *err)
{
	struct line line = {.number = 0};
	const char *text = from->text;
	struct request req, got;
	int r = 0;

	while (next_line(&text, &line)) {
		cleanup(buf_release) struct buf words = BUF_INIT;
		int found;

		if (!parse_request(&line, &req) || find_request(text, &req, &got) ||
			find_request(later, &req, &got))
			continue;
		found = find_request(final, &req, &got);
		if (found ? got.value_len == req.value_len &&
					!memcmp(got.value, req.value, req.value_len)
			  : req.value_len == 1 && *req.value == 'n')
			continue;
		describe(from, &line, found ? &got : NULL, &words);
		if (lost)
			buf_addf(lost, "%s\n", buf_str(&words));
		if (strict && r == 0)
			r = err_set(err, EINVAL,
				"%s; add what it needs to the fragment, or take the line out",
				buf_str(&words));
	}
	return r;
}

/* Did a configuration program write this, rather than a person? */
static int is_generated(const char *text)
{
	return memmem(text, strnlen(text, 256), "Automatically generated", 23) != NULL;
}

int kconfig_check(
	const struct kconfig_recipe *recipe, const char *final, struct buf *lost, struct err *err)
{
	cleanup(buf_release) struct buf later = BUF_INIT;
	int r = 0;

	/* From the last to the first; `later` is everything behind. */
	for (size_t i = recipe->nfragments; i-- > 0 && r == 0;) {
		cleanup(buf_release) struct buf all = BUF_INIT;

		r = check_text(&recipe->fragments[i], buf_str(&later), final, 1, lost, err);
		buf_addf(&all, "%s\n%s", recipe->fragments[i].text, buf_str(&later));
		buf_release(&later);
		later = all;
		all = (struct buf)BUF_INIT;
	}
	if (r == 0)
		r = check_text(&recipe->guest, buf_str(&later), final, 0, lost, err);
	if (r < 0 || recipe->base != KCONFIG_FILE)
		return r;
	buf_addf(&later, "\n%s", recipe->guest.text);
	return check_text(
		&recipe->file, buf_str(&later), final, !is_generated(recipe->file.text), lost, err);
}
