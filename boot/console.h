#ifndef BOOT_CONSOLE_H
#define BOOT_CONSOLE_H

/*
 * What a kernel's console says: a scanner fed with bytes as they come, in chunks of any size. It
 * does no input or output, never fails, and keeps a bounded amount whatever it is fed: the guest is
 * not trusted.
 *
 * Life cycle: console_new, console_feed as bytes come, console_finish when there are no more,
 * console_free. Not thread-safe.
 *
 * A line is judged when it is complete, without its time stamp. Everything between kernel
 * markers that announce a test of the backtrace code is ignored, and so is the call trace of a
 * warning.
 */

#include <stddef.h>

#include "base/buf.h"
#include "base/cleanup.h"

enum console_event {
	CONSOLE_BANNER = 1 << 0, /* the kernel printed its version: it runs */
	CONSOLE_REBOOT = 1 << 1, /* it did so again: it was reset without a word */
	CONSOLE_PANIC = 1 << 2,
	CONSOLE_OOPS = 1 << 3,	/* an oops, a BUG or a call trace: the kernel is damaged */
	CONSOLE_READY = 1 << 4, /* our guest's ssh server listens */
};

struct console;

struct console *console_new(void);

/*
 * Take the next bytes. The same bytes without escape sequences and control characters are appended
 * to ret_clean, unless that is NULL.
 */
void console_feed(struct console *console, const char *data, size_t len, struct buf *ret_clean);

/* Judge the last line although it has no end. */
void console_finish(struct console *console);

/* All events so far, or-ed. */
unsigned console_events(const struct console *console);

/* The first line that made this event happen, without its time stamp; "" before. Borrowed. */
const char *console_line(const struct console *console, enum console_event event);

/* The last few lines that are not empty, oldest first, a newline behind each. */
void console_tail(const struct console *console, struct buf *ret);

void console_free(struct console *console);
DEFINE_CLEANUP(console_free, struct console *);

#endif
