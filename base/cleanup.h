#ifndef BASE_CLEANUP_H
#define BASE_CLEANUP_H

/*
 * Scope-bound cleanup: `cleanup(close) int fd = -1;` closes fd when the scope ends, and
 * `return steal(&ptr)` hands a pointer over instead. DEFINE_CLEANUP(f, type) makes the wrapper for
 * a function `void f(type)` that accepts its empty value.
 */

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define cleanup(f) __attribute__((cleanup(cleanup_##f)))

#define DEFINE_CLEANUP(f, type)                                                                    \
	static inline void cleanup_##f(type *p)                                                    \
	{                                                                                          \
		if (*p)                                                                            \
			f(*p);                                                                     \
	}                                                                                          \
	struct cleanup_##f##_semicolon

static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_close(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

DEFINE_CLEANUP(fclose, FILE *);
DEFINE_CLEANUP(closedir, DIR *);

/* Take the value out of *p and leave NULL, so that its cleanup does nothing. */
#define steal(p)                                                                                   \
	({                                                                                         \
		__typeof__(p) steal_p = (p);                                                       \
		__typeof__(*steal_p) steal_v = *steal_p;                                           \
		*steal_p = NULL;                                                                   \
		steal_v;                                                                           \
	})

/* The same for a descriptor: leaves -1. */
static inline int steal_fd(int *fd)
{
	int v = *fd;

	*fd = -1;
	return v;
}

#endif
