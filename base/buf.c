#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/banned.h"

static void buf_room(struct buf *buf, size_t len)
{
	if (buf->len + len + 1 <= buf->cap)
		return;
	buf->cap = (buf->len + len + 1) * 2;
	buf->data = xreallocarray(buf->data, buf->cap, 1);
}

void buf_add(struct buf *buf, const void *data, size_t len)
{
	buf_room(buf, len);
	if (len)
		memcpy(buf->data + buf->len, data, len);
	buf->len += len;
	buf->data[buf->len] = '\0';
}

void buf_adds(struct buf *buf, const char *s)
{
	buf_add(buf, s, strlen(s));
}

void buf_addc(struct buf *buf, char c)
{
	buf_add(buf, &c, 1);
}

void buf_addf(struct buf *buf, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	buf_room(buf, (size_t)n);
	va_start(ap, fmt);
	vsnprintf(buf->data + buf->len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	buf->len += (size_t)n;
}

void buf_add_excerpt(struct buf *buf, const char *text, size_t len, size_t max)
{
	size_t start = buf->len;
	int newline = 0;

	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '\n' || c == '\r') {
			newline = buf->len > start;
			continue;
		}
		/* Between two characters only, so that a UTF-8 sequence is not torn. */
		if (buf->len - start >= max && (c & 0xc0) != 0x80) {
			buf_adds(buf, "...");
			return;
		}
		if (newline)
			buf_adds(buf, " | ");
		newline = 0;
		buf_addc(buf, c < ' ' || c == 0x7f ? ' ' : (char)c);
	}
}

void buf_drop(struct buf *buf, size_t n)
{
	if (!n)
		return;
	memmove(buf->data, buf->data + n, buf->len - n + 1);
	buf->len -= n;
}

const char *buf_str(const struct buf *buf)
{
	return buf->data ? buf->data : "";
}

char *buf_detach(struct buf *buf)
{
	char *s = buf->data ? buf->data : xstrdup("");

	*buf = (struct buf)BUF_INIT;
	return s;
}

void buf_reset(struct buf *buf)
{
	buf->len = 0;
	if (buf->data)
		buf->data[0] = '\0';
}

void buf_release(struct buf *buf)
{
	free(buf->data);
	*buf = (struct buf)BUF_INIT;
}
