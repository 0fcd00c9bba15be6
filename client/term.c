#include "client/term.h"

#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "base/banned.h"

static const char *const style_codes[] = {
	[STYLE_PLAIN] = "",
	[STYLE_GOOD] = "\033[32m",
	[STYLE_BAD] = "\033[31m",
	[STYLE_SKIP] = "\033[33m",
	[STYLE_UNSURE] = "\033[35m",
	[STYLE_DIM] = "\033[2m",
	[STYLE_BOLD] = "\033[1m",
};

static const struct {
	const char *word;
	enum style style;
} word_styles[] = {
	{"good", STYLE_GOOD},
	{"ok", STYLE_GOOD},
	{"culprit", STYLE_GOOD},
	{"sent", STYLE_GOOD},
	{"running", STYLE_BOLD},
	{"bad", STYLE_BAD},
	{"failed", STYLE_BAD},
	{"rejected", STYLE_BAD},
	{"panic", STYLE_BAD},
	{"oops", STYLE_BAD},
	{"triple-fault", STYLE_BAD},
	{"skip", STYLE_SKIP},
	{"held", STYLE_SKIP},
	{"set", STYLE_SKIP},
	{"not-reproducible", STYLE_SKIP},
	{"inconclusive", STYLE_SKIP},
	{"unsure", STYLE_UNSURE},
	{"queued", STYLE_DIM},
	{"cancelled", STYLE_DIM},
};

void term_init(struct term *term)
{
	const char *kind = getenv("TERM"), *no_colour = getenv("NO_COLOR");

	/* wcwidth knows wide and combining characters only in a UTF-8 locale. */
	setlocale(LC_CTYPE, "C.UTF-8");
	*term = (struct term){0};
	term->live = isatty(STDOUT_FILENO) && kind && *kind && strcmp(kind, "dumb") != 0;
	term->colour = term->live && !(no_colour && *no_colour);
}

int term_columns(void)
{
	const char *env = getenv("COLUMNS");
	struct winsize size;
	long n = env ? strtol(env, NULL, 10) : 0;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col)
		n = size.ws_col;
	if (n <= 0 || n > 10000)
		n = 80;
	return n < 40 ? 40 : (int)n;
}

enum style term_style(const char *word)
{
	for (size_t i = 0; i < sizeof(word_styles) / sizeof(word_styles[0]); i++)
		if (strcmp(word_styles[i].word, word) == 0)
			return word_styles[i].style;
	return STYLE_PLAIN;
}

const char *term_on(const struct term *term, enum style style)
{
	return term->colour ? style_codes[style] : "";
}

const char *term_off(const struct term *term, enum style style)
{
	return term->colour && style != STYLE_PLAIN ? "\033[0m" : "";
}

/* Decode one UTF-8 character (RFC 3629); 0 = s does not start with a whole one. */
static size_t decode(const char *s, uint32_t *ret)
{
	const unsigned char *u = (const unsigned char *)s;
	size_t n = u[0] < 0x80 ? 1 : u[0] < 0xc2 ? 0 : u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : 4;
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	uint32_t c;

	if (n <= 1) {
		*ret = u[0];
		return n;
	}
	c = u[0] & (0xffu >> (n + 1));
	for (size_t i = 1; i < n; i++) {
		if ((u[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (u[i] & 0x3f);
	}
	if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 0;
	*ret = c;
	return n;
}

/* Can this character steer a terminal, or make a line read otherwise than it is? */
static int steers(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029 ||
	       (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

void term_clean(const char *text, int keep_lines, struct buf *out)
{
	uint32_t c = 0;
	size_t n;

	for (; *text; text += n) {
		n = decode(text, &c);
		if (n == 0) {
			buf_addf(out, "\\x%02x", (unsigned char)*text);
			n = 1;
		} else if (!steers(c) || (keep_lines && (c == '\n' || c == '\t'))) {
			buf_add(out, text, n);
		} else {
			buf_addf(out, c < 0x100 ? "\\x%02x" : "\\u%04x", c);
		}
	}
}

/* Columns of the character at text, and its bytes. */
static int char_width(const char *text, size_t *ret_bytes)
{
	uint32_t c = 0;
	size_t n = decode(text, &c);
	int width = n ? wcwidth((wchar_t)c) : 1;

	*ret_bytes = n ? n : 1;
	return width < 0 ? 1 : width;
}

int term_width(const char *text)
{
	int width = 0;
	size_t n;

	for (; *text; text += n)
		width += char_width(text, &n);
	return width;
}

size_t term_fit(const char *text, int columns)
{
	const char *at = text;
	size_t n;

	while (*at) {
		columns -= char_width(at, &n);
		if (columns < 0)
			break;
		at += n;
	}
	return (size_t)(at - text);
}

void term_line(struct term *term, enum style style, const char *text)
{
	cleanup(buf_release) struct buf line = BUF_INIT;

	term_clean(text, 0, &line);
	term_status_clear(term);
	printf("%s%s%s\n", term_on(term, style), buf_str(&line), term_off(term, style));
}

void term_status(struct term *term, const char *text)
{
	cleanup(buf_release) struct buf line = BUF_INIT;

	if (!term->live)
		return;
	term_clean(text, 0, &line);
	printf("\r%s%.*s%s\033[K", term_on(term, STYLE_DIM),
		(int)term_fit(buf_str(&line), term_columns() - 1), buf_str(&line),
		term_off(term, STYLE_DIM));
	fflush(stdout);
	term->status = 1;
}

void term_status_clear(struct term *term)
{
	if (!term->status)
		return;
	fputs("\r\033[K", stdout);
	fflush(stdout);
	term->status = 0;
}
