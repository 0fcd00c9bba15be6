#ifndef BASE_ALLOC_H
#define BASE_ALLOC_H

/*
 * Memory that is always there: out of memory aborts the process, since the database makes the
 * death of any process safe. Everything returned is freed with free().
 */

#include <stddef.h>

void *xmalloc(size_t size) __attribute__((malloc, returns_nonnull));
void *xcalloc(size_t n, size_t size) __attribute__((malloc, returns_nonnull));
void *xreallocarray(void *ptr, size_t n, size_t size) __attribute__((returns_nonnull));
char *xstrdup(const char *s) __attribute__((malloc, returns_nonnull));
char *xstrndup(const char *s, size_t n) __attribute__((malloc, returns_nonnull));
char *xasprintf(const char *fmt, ...)
	__attribute__((malloc, returns_nonnull, format(printf, 1, 2)));

/* strdup that passes NULL through. */
char *xstrdup_null(const char *s);

/* Make room for one more element in a growing array: doubles *cap when n has reached it. */
#define ALLOC_GROW(array, n, cap)                                                                  \
	do {                                                                                       \
		if ((n) >= (cap)) {                                                                \
			(cap) = (cap) ? (cap)*2 : 8;                                               \
			(array) = xreallocarray((array), (cap), sizeof(*(array)));                 \
		}                                                                                  \
	} while (0)

#endif
