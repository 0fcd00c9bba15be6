#ifndef DB_STMT_H
#define DB_STMT_H

/*
 * Inside db/ only: statements that are prepared once and kept, binds and columns by name, and
 * SQLite's errors turned into ours.
 *
 * A struct's fields are described by a table of `struct field`; from it come the binds of an
 * INSERT or UPDATE (the parameter :x takes the field of column x), the reading of a row and the
 * release of its strings. Life cycle of a statement: stmt_open, binds, stmt_step or stmt_change,
 * columns, stmt_done (which lends it to the next stmt_open of the same text). Bound strings are
 * borrowed until stmt_done. A bind's error is kept and returned by the next stmt_step.
 *
 * When a statement fails inside a transaction, the transaction is rolled back there and then; the
 * statements that follow are refused until the next db_begin, so nothing of it can be half kept.
 */

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "db/db.h"

struct stmt {
	struct stmt *next;
	struct db *db;
	const char *sql; /* static text: its address is the key of the cache */
	sqlite3_stmt *handle;
	int lent;
	int rc; /* first failed bind */
};

struct db {
	sqlite3 *handle;
	char *path;
	struct stmt *stmts;
};

enum field_type {
	FIELD_INT,  /* int64_t */
	FIELD_FLAG, /* int, 0 or 1 */
	FIELD_ENUM, /* an enum, stored as its word */
	FIELD_REAL, /* double, NaN = NULL */
	FIELD_TEXT, /* char *, owned, NULL = NULL */
};

struct field {
	const char *column; /* NULL ends the table */
	enum field_type type;
	size_t offset;
	const char *const *names; /* of an enum, ends with NULL */
};

/* SQLite's last error on db as one of ours, with what to do about it. Returns -errno. */
int db_error(struct db *db, int rc, struct err *err);

/* sql must be static text. A statement that is in use is prepared a second time. */
int stmt_open(struct db *db, const char *sql, struct stmt **ret, struct err *err);
void stmt_done(struct stmt *stmt);
DEFINE_CLEANUP(stmt_done, struct stmt *);

/* name is without the colon. */
void stmt_bind_int(struct stmt *stmt, const char *name, int64_t value);
void stmt_bind_text(struct stmt *stmt, const char *name, const char *value);
void stmt_bind_real(struct stmt *stmt, const char *name, double value);
/* Every parameter that the table has a column for. */
void stmt_bind_row(struct stmt *stmt, const struct field *fields, const void *row);

/* 1 = a row, 0 = no more. */
int stmt_step(struct stmt *stmt, struct err *err);

/* For changes: run to the end; returns how many rows were changed. */
int stmt_change(struct stmt *stmt, struct err *err);

/* The current row into an all-zero struct: columns that the table names. */
void stmt_read_row(struct stmt *stmt, const struct field *fields, void *ret);

/* All rows as one array of structs of `size` bytes; NULL and 0 when there are none. */
int stmt_read_all(struct stmt *stmt, const struct field *fields, size_t size, void **ret,
	size_t *ret_n, struct err *err);

/* One row; -ENOENT, without a message, when there is none. */
int stmt_read_one(
	struct stmt *stmt, const struct field *fields, size_t size, void *ret, struct err *err);

/* Free the row's strings and zero it; the second form frees an array of rows, too. */
void row_release(const struct field *fields, size_t size, void *row);
void rows_free(const struct field *fields, size_t size, void *rows, size_t n);

/* INSERT a row: bind, run, give its id. */
int stmt_insert(struct db *db, const char *sql, const struct field *fields, const void *row,
	int64_t *ret_id, struct err *err);

/* UPDATE one row by id: -ENOENT with a sentence when there is no such `what`. */
int stmt_update(struct db *db, const char *sql, const struct field *fields, const void *row,
	const char *what, int64_t id, struct err *err);

#endif
