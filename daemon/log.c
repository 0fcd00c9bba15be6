#include "daemon/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/banned.h"

void log_line(int level, const char *fmt, ...)
{
	cleanup(buf_release) struct buf line = BUF_INIT;
	cleanup(free) char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		abort();
	va_end(ap);
	/* The prefix is noise on a terminal; the journal sets JOURNAL_STREAM. */
	if (getenv("JOURNAL_STREAM"))
		buf_addf(&line, "<%d>", level);
	for (const char *p = text; *p; p++)
		buf_addc(&line, *p == '\n' ? ' ' : *p);
	buf_addc(&line, '\n');
	fwrite(line.data, 1, line.len, stderr);
}
