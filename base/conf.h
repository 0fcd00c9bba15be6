#ifndef BASE_CONF_H
#define BASE_CONF_H

/*
 * Table-driven configuration. One row names a key, its type, where its value lives in the target
 * struct, its default, its bounds and one line of help; parsing, defaults, bounds, error texts, the
 * list of keys for `kbctl submit --help` and the man-page check all come from the row.
 *
 * Life cycle: zero the struct; conf_load or conf_parse (they set the defaults, read, check what is
 * required); use; conf_release frees its strings. On failure the struct is released already.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

enum conf_type {
	CONF_STRING,   /* char *, owned; NULL when there is neither value nor default */
	CONF_PATH,     /* the same; a relative path is an error unless a folder is given */
	CONF_BOOL,     /* int: yes/no, true/false, on/off, 1/0 */
	CONF_INT,      /* int64_t */
	CONF_REAL,     /* double */
	CONF_SIZE,     /* int64_t bytes: 512M; K, M, G, T are powers of 1024 */
	CONF_DURATION, /* int64_t ms: 500ms, 20s, 15m, 2h, 3d; a bare number is seconds */
	CONF_ENUM,     /* int: index into the choices */
};

struct conf_key {
	const char *section, *name;
	enum conf_type type;
	size_t offset;
	const char *def;       /* as it would be written; NULL = none; CONF_REQUIRED */
	const char *min, *max; /* as they would be written; NULL = no bound */
	const char *choices;   /* CONF_ENUM: "auto|kvm|tcg" */
	const char *help;
};

/* The default of a key that must be given. */
#define CONF_REQUIRED "\x01required"

/* A table ends with a row whose name is NULL. */
#define CONF_END                                                                                   \
	{                                                                                          \
		.name = NULL                                                                       \
	}

/* dir: relative CONF_PATH values are taken from there; NULL = they are refused. */
int conf_load(
	const char *path, const char *dir, const struct conf_key *keys, void *dst, struct err *err);
int conf_parse(const char *text, size_t len, const char *where, const char *dir,
	const struct conf_key *keys, void *dst, struct err *err);

/* The parts, for files whose sections repeat: defaults, one key, the check for required keys. */
void conf_defaults(const struct conf_key *keys, void *dst);
int conf_set(const struct conf_key *keys, void *dst, const char *section, const char *name,
	const char *value, const char *where, int line, const char *dir, struct err *err);
int conf_check(const struct conf_key *keys, const void *dst, const char *where, struct err *err);

void conf_release(const struct conf_key *keys, void *dst);

/* All values as INI text with every key, in the order of the table. */
void conf_print(const struct conf_key *keys, const void *src, struct buf *out);

/* Single values; `what` stands in front of the error text. */
int conf_parse_size(const char *text, int64_t *ret_bytes, struct err *err);
int conf_parse_duration(const char *text, int64_t *ret_ms, struct err *err);

#endif
