#include "boot/buildlog.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/banned.h"

#define LINE_MAX_LEN 400

/*
 * What error lines look like, as POSIX extended expressions. Of the rows with the lowest rank that
 * match anything, the first line of the log is it.
 */
static const struct pattern {
	int rank;
	enum build_fault fault;
	const char *regex;
} patterns[] = {
	{0, BUILD_FAULT_DISK, ": (No space left on device|Disk quota exceeded)\\.?$"},
	{0, BUILD_FAULT_DISK, "^fatal error: .*: No space left on device"},
	{1, BUILD_FAULT_KILLED, "Killed signal terminated program"},
	{1, BUILD_FAULT_KILLED, "internal compiler error: Killed"},
	{1, BUILD_FAULT_KILLED, "(virtual memory exhausted|out of memory allocating)"},
	{1, BUILD_FAULT_KILLED,
		"(ld|ar|as|clang|cc1): .*(memory exhausted|[Cc]annot allocate memory)"},
	{1, BUILD_FAULT_KILLED, "[Ff]ork: .*(Cannot allocate memory|temporarily unavailable)"},
	{1, BUILD_FAULT_KILLED, "^(make.*\\*\\*\\* .* )?Killed$"},
	{2, BUILD_FAULT_TOOL, "^/bin/(ba)?sh: ([^:]*: )*[^ /:]+: (command )?not found$"},
	{2, BUILD_FAULT_TOOL, "^make.*: [^ /:]+: (Command not found|No such file or directory)$"},
	{2, BUILD_FAULT_TOOL, "fatal error: (openssl|gelf|libelf|elfutils)[^ ]*: No such file"},
	/* gcc, clang, sparse, Kconfig's own errors. */
	{3, BUILD_FAULT_CANDIDATE, "^[^ :]+:[0-9]+:([0-9]+:)? ?(fatal )?error:"},
	{3, BUILD_FAULT_CANDIDATE,
		"^[^ :]+:[0-9]+:([0-9]+:)? (internal compiler error|undefined ref)"},
	{3, BUILD_FAULT_CANDIDATE, "^(cc1|gcc|clang|collect2|as|pahole)[^ :]*: (fatal )?error:"},
	{3, BUILD_FAULT_CANDIDATE, "^(fatal )?error: "},
	/* The assembler, the linkers. */
	{3, BUILD_FAULT_CANDIDATE, "^[^ :]+:[0-9]+: Error: "},
	{3, BUILD_FAULT_CANDIDATE, ": undefined reference to "},
	{3, BUILD_FAULT_CANDIDATE, ": multiple definition of "},
	{3, BUILD_FAULT_CANDIDATE,
		"(^|/)ld[^ :]*: ([^ ]+: )?(cannot |error|final link|section .* overlaps|.*ASSERT)"},
	/* The kernel's own checkers. */
	{3, BUILD_FAULT_CANDIDATE, "^ERROR: "},
	{3, BUILD_FAULT_CANDIDATE, "^FATAL: modpost"},
	{3, BUILD_FAULT_CANDIDATE, "^FAILED: (load )?BTF"},
	{3, BUILD_FAULT_CANDIDATE, "objtool: .*(error|can't|failed)"},
	{3, BUILD_FAULT_CANDIDATE, "^error, forbidden warning:"},
	{3, BUILD_FAULT_CANDIDATE,
		"^[^ ]*Kconfig[^ :]*:[0-9]+: ?(syntax "
		"error|unknown|unexpected|invalid|can't|missing)"},
	{3, BUILD_FAULT_CANDIDATE, "^(Error in reading|Recursive include|\\*\\*\\* Can't find)"},
	{3, BUILD_FAULT_CANDIDATE, "^\\*\\*\\* "},
	{3, BUILD_FAULT_CANDIDATE, "^[^ :]+:[0-9]+: \\*\\*\\* "},
	{3, BUILD_FAULT_CANDIDATE, "^make[^ ]*: \\*\\*\\* No rule to make target"},
	{3, BUILD_FAULT_CANDIDATE,
		"^/bin/(ba)?sh: .*(syntax error|[Ss]yntax error|Permission denied)"},
	{3, BUILD_FAULT_CANDIDATE, "^Traceback \\(most recent call last\\)"},
	/* Nothing better than what make says itself. */
	{4, BUILD_FAULT_CANDIDATE, "^make[^ ]*: \\*\\*\\* "},
};

#define NPATTERNS (sizeof(patterns) / sizeof(patterns[0]))

struct match {
	const char *line;
	size_t len;
	const struct pattern *pattern;
};

static void compile_all(regex_t *compiled)
{
	for (size_t i = 0; i < NPATTERNS; i++)
		if (regcomp(&compiled[i], patterns[i].regex, REG_EXTENDED | REG_NOSUB) != 0)
			abort();
}

/* Compilers quote source lines behind a margin; what stands there is nobody's error. */
static int is_quote(const char *line, size_t len)
{
	size_t i = 0;

	while (i < len && strchr(" 0123456789", line[i]))
		i++;
	return i > 0 && i < len && line[i] == '|';
}

/* Most lines are "  CC  file.o"; every pattern needs one of these, so that they cost nothing. */
static int is_suspect(const char *line)
{
	static const char *const words[] = {"rror", "***", "ndefined", "ultiple", "No space",
		"Disk", "illed", "emory", "fork", "Fork", "ot found", "No such", "ERROR", "FATAL",
		"FAILED", "objtool", "Kconfig", "cannot", "final link", "overlaps", "ASSERT",
		"Recursive", "Permission", "Traceback", "temporarily"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strstr(line, words[i]))
			return 1;
	return 0;
}

/* Is this line better than the best so far? */
static void try_line(
	const regex_t *compiled, const char *text, const char *line, size_t len, struct match *best)
{
	for (size_t i = 0; i < NPATTERNS; i++) {
		if (best->pattern && patterns[i].rank >= best->pattern->rank)
			return;
		if (regexec(&compiled[i], text, 0, NULL, 0) == 0) {
			*best = (struct match){line, len, &patterns[i]};
			return;
		}
	}
}

/* The line as people want to see it. */
static char *tidy(const struct match *match, const char *prefix)
{
	cleanup(buf_release) struct buf out = BUF_INIT;
	const char *p = match->line, *end = p + match->len;
	size_t skip = strlen(prefix);

	while (p < end && out.len < LINE_MAX_LEN) {
		if (skip && (size_t)(end - p) >= skip && !memcmp(p, prefix, skip))
			p += skip;
		else
			buf_addc(&out, *p++);
	}
	return buf_detach(&out);
}

char *buildlog_error(const char *log, size_t len, const char *prefix, enum build_fault *ret_fault)
{
	regex_t compiled[NPATTERNS];
	struct match best = {NULL, 0, NULL};
	const char *end = log + len;

	compile_all(compiled);
	for (const char *line = log, *next; line < end; line = next) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));
		size_t n = (size_t)((newline ? newline : end) - line);
		char text[LINE_MAX_LEN * 4];
		size_t copied;

		next = newline ? newline + 1 : end;
		while (n && line[n - 1] == '\r')
			n--;
		copied = n < sizeof(text) ? n : sizeof(text) - 1;
		memcpy(text, line, copied);
		text[copied] = '\0';
		if (is_suspect(text) && !is_quote(text, copied))
			try_line(compiled, text, line, n, &best);
	}
	for (size_t i = 0; i < NPATTERNS; i++)
		regfree(&compiled[i]);
	*ret_fault = best.pattern ? best.pattern->fault : BUILD_FAULT_CANDIDATE;
	return best.pattern ? tidy(&best, prefix) : NULL;
}

/* The name in "make[3]: *** [Makefile:250: net/core/dev.o] Error 1"; older ones have no file:line.
 */
char *buildlog_target(const char *log, size_t len)
{
	const char *end = log + len, *line = log;

	while ((line = memmem(line, (size_t)(end - line), ": *** [", 7))) {
		const char *stop = memchr(line, '\n', (size_t)(end - line));
		const char *close, *name;

		line += 7;
		close = memmem(line, (size_t)((stop ? stop : end) - line), ".o] Error ", 10);
		if (!close)
			continue;
		name = close;
		while (name > line && !strchr(" [:", name[-1]))
			name--;
		if (*name == '/' || *name == '-' || memmem(name, (size_t)(close - name), "..", 2))
			return NULL;
		return xstrndup(name, (size_t)(close - name) + 2);
	}
	return NULL;
}
