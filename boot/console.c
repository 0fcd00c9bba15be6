#include "boot/console.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/banned.h"

#define LINE_MAX_LEN 512 /* what is judged of a line; the rest is passed on, not looked at */
#define TAIL_LINES 6
#define EVENTS 5
/* A warning's or a stall report's call trace stands within so many lines behind its first. */
#define EXCUSED_LINES 60

enum escape {
	ESCAPE_NONE,
	ESCAPE_START,	 /* ESC was seen */
	ESCAPE_SEQUENCE, /* ESC [ was seen: until a byte from @ to ~ */
};

/* What a line can be, beside an event. */
enum {
	LINE_EXCUSE = 1 << 8,  /* the next call trace is a warning's */
	LINE_TRACE = 1 << 9,   /* a call trace: an oops unless excused */
	LINE_IGNORE = 1 << 10, /* a self-test that prints traces begins */
	LINE_HEED = 1 << 11,   /* it has ended */
};

struct pattern {
	const char *text;
	int anywhere; /* 0 = only where the message begins */
	int meaning;
};

/*
 * The first that fits decides. The words are those of the kernel's own printk calls; a soft lockup
 * ("watchdog: BUG: ...") and a stall ("rcu: INFO: ...") are no oops, since a busy host causes them.
 */
static const struct pattern patterns[] = {
	{"Linux version ", 0, CONSOLE_BANNER},
	{"Kernel panic - ", 0, CONSOLE_PANIC},
	{"kbisectd-guest: ready", 1, CONSOLE_READY},
	{"[ backtrace testing ]", 1, LINE_IGNORE},
	{"[ end of backtrace testing ]", 1, LINE_HEED},
	{"Oops: ", 0, CONSOLE_OOPS},
	{"Oops - ", 0, CONSOLE_OOPS},
	{"BUG: ", 0, CONSOLE_OOPS},
	{"kernel BUG at ", 0, CONSOLE_OOPS},
	{"general protection fault", 0, CONSOLE_OOPS},
	{"Unable to handle kernel ", 0, CONSOLE_OOPS},
	{"Internal error: ", 0, CONSOLE_OOPS},
	{"PANIC: double fault", 0, CONSOLE_OOPS},
	{"PANIC: early exception", 0, CONSOLE_PANIC},
	{"double fault: ", 0, CONSOLE_OOPS},
	{"divide error: ", 0, CONSOLE_OOPS},
	{"invalid opcode: ", 0, CONSOLE_OOPS},
	{"stack segment: ", 0, CONSOLE_OOPS},
	{"WARNING: ", 0, LINE_EXCUSE},
	{"INFO: ", 1, LINE_EXCUSE},
	{"watchdog: BUG: ", 0, LINE_EXCUSE},
	{"Call Trace:", 0, LINE_TRACE},
};

struct console {
	char line[LINE_MAX_LEN + 1];
	size_t len;
	enum escape escape;
	unsigned events;
	char *first[EVENTS]; /* the line behind each event, by bit number */
	char *tail[TAIL_LINES];
	size_t tail_next;
	int ignoring;
	int excused; /* lines for which a call trace still is a warning's */
};

struct console *console_new(void)
{
	return xcalloc(1, sizeof(struct console));
}

/* Past "<5>", "[   12.345678] " and the "[    T1] " that CONFIG_PRINTK_CALLER adds. */
static const char *message_of(const char *line)
{
	if (line[0] == '<' && line[1] >= '0' && line[1] <= '7' && line[2] == '>')
		line += 3;
	while (*line == '[') {
		size_t n = strspn(line + 1, " .0123456789TC");

		if (line[n + 1] != ']')
			break;
		line += n + 2;
		line += strspn(line, " ");
	}
	return line;
}

static void happen(struct console *c, unsigned event, const char *message)
{
	c->events |= event;
	for (int i = 0; i < EVENTS; i++)
		if (event == 1U << i && !c->first[i])
			c->first[i] = xstrdup(message);
}

static const struct pattern *find_pattern(const char *message)
{
	for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++) {
		const struct pattern *p = &patterns[i];

		if (p->anywhere ? strstr(message, p->text) != NULL
				: strncmp(message, p->text, strlen(p->text)) == 0)
			return p;
	}
	return NULL;
}

static void act(struct console *c, int meaning, const char *message)
{
	switch (meaning) {
	case LINE_IGNORE:
		c->ignoring = 1;
		return;
	case LINE_HEED:
		c->ignoring = 0;
		return;
	case LINE_EXCUSE:
		c->excused = EXCUSED_LINES;
		return;
	case LINE_TRACE:
		/* A panic prints one, too. */
		if (!c->excused && !c->ignoring && !(c->events & CONSOLE_PANIC))
			happen(c, CONSOLE_OOPS, message);
		return;
	case CONSOLE_BANNER:
		/* A reset ends a self-test, too. */
		c->ignoring = 0;
		happen(c, c->events & CONSOLE_BANNER ? CONSOLE_REBOOT : CONSOLE_BANNER, message);
		return;
	case CONSOLE_OOPS:
		if (!c->ignoring)
			happen(c, CONSOLE_OOPS, message);
		return;
	default:
		happen(c, (unsigned)meaning, message);
	}
}

static void keep_in_tail(struct console *c)
{
	free(c->tail[c->tail_next]);
	c->tail[c->tail_next] = xstrdup(c->line);
	c->tail_next = (c->tail_next + 1) % TAIL_LINES;
}

static void end_line(struct console *c)
{
	const struct pattern *p;
	const char *message;

	c->line[c->len] = '\0';
	c->len = 0;
	if (!c->line[strspn(c->line, " \t")])
		return;
	keep_in_tail(c);
	if (c->excused)
		c->excused--;
	message = message_of(c->line);
	p = find_pattern(message);
	if (p)
		act(c, p->meaning, message);
}

/* Is this byte text, and not part of an escape sequence? */
static int is_text(struct console *c, unsigned char byte)
{
	if (byte == '\x1b') {
		c->escape = ESCAPE_START;
		return 0;
	}
	switch (c->escape) {
	case ESCAPE_START:
		c->escape = byte == '[' ? ESCAPE_SEQUENCE : ESCAPE_NONE;
		/* An escape that was cut off by the end of its line must not swallow that. */
		return byte == '\n';
	case ESCAPE_SEQUENCE:
		if (byte >= '@' || byte == '\n')
			c->escape = ESCAPE_NONE;
		return byte == '\n';
	case ESCAPE_NONE:
		break;
	}
	return (byte >= ' ' && byte != 0x7f) || byte == '\n' || byte == '\t';
}

void console_feed(struct console *c, const char *data, size_t len, struct buf *ret_clean)
{
	for (size_t i = 0; i < len; i++) {
		if (!is_text(c, (unsigned char)data[i]))
			continue;
		if (ret_clean)
			buf_addc(ret_clean, data[i]);
		if (data[i] == '\n')
			end_line(c);
		else if (c->len < LINE_MAX_LEN)
			c->line[c->len++] = data[i];
	}
}

void console_finish(struct console *c)
{
	end_line(c);
}

unsigned console_events(const struct console *c)
{
	return c->events;
}

const char *console_line(const struct console *c, enum console_event event)
{
	for (int i = 0; i < EVENTS; i++)
		if ((unsigned)event == 1U << i && c->first[i])
			return c->first[i];
	return "";
}

void console_tail(const struct console *c, struct buf *ret)
{
	for (size_t i = 0; i < TAIL_LINES; i++) {
		const char *line = c->tail[(c->tail_next + i) % TAIL_LINES];

		if (line)
			buf_addf(ret, "%s\n", line);
	}
}

void console_free(struct console *c)
{
	if (!c)
		return;
	for (int i = 0; i < EVENTS; i++)
		free(c->first[i]);
	for (int i = 0; i < TAIL_LINES; i++)
		free(c->tail[i]);
	free(c);
}
