#ifndef BASE_INI_H
#define BASE_INI_H

/*
 * The INI dialect of configuration, job and benchmark files: [section], key = value, lines that
 * start with # or ; are comments, and an indented line continues the value above it (joined by one
 * space). Values are taken as they stand: no quotes, no escapes, no comments behind them, no length
 * limit, so that shell commands and regular expressions need no care.
 */

#include <stddef.h>

#include "base/err.h"

/*
 * Called for each key, and once with name = value = NULL for each section header. Section is ""
 * before the first header. A negative return stops the reading and becomes ini_read's.
 */
typedef int (*ini_fn)(void *arg, const char *section, const char *name, const char *value, int line,
	struct err *err);

/* Errors begin with "where:line: ". */
int ini_read(
	const char *text, size_t len, const char *where, ini_fn fn, void *arg, struct err *err);

#endif
