#ifndef BASE_BUF_H
#define BASE_BUF_H

/*
 * A growing byte string. data is always NUL-terminated once something was added, and NULL before;
 * buf_str gives "" instead. An all-zero struct (BUF_INIT) is an empty buffer.
 */

#include <stddef.h>

#include "base/cleanup.h"

struct buf {
	char *data;
	size_t len;
	size_t cap;
};

#define BUF_INIT                                                                                   \
	{                                                                                          \
		NULL, 0, 0                                                                         \
	}

void buf_add(struct buf *buf, const void *data, size_t len);
void buf_adds(struct buf *buf, const char *s);
void buf_addc(struct buf *buf, char c);
void buf_addf(struct buf *buf, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), nonnull(2)));

/*
 * Foreign text as one line of at most about max bytes, fit for an error message: lines are joined
 * by " | ", control characters become spaces, what is cut off leaves "...".
 */
void buf_add_excerpt(struct buf *buf, const char *text, size_t len, size_t max);

/* Remove n bytes from the front. */
void buf_drop(struct buf *buf, size_t n);

/* The text so far, never NULL, owned by the buffer. */
const char *buf_str(const struct buf *buf);

/* Hand the text over to the caller (free it) and leave the buffer empty. */
char *buf_detach(struct buf *buf);

/* Forget the content, keep the memory. */
void buf_reset(struct buf *buf);

void buf_release(struct buf *buf);

static inline void cleanup_buf_release(struct buf *buf)
{
	buf_release(buf);
}

#endif
