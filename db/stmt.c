#include "db/stmt.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/banned.h"

/* What SQLite says, what we call it, and what the reader can do about it. %s is the file. */
static const struct {
	int rc, code;
	const char *what, *hint;
} errors[] = {
	{SQLITE_FULL, ENOSPC, "disk full: cannot write to the database",
		"what was recorded before is safe; free some space"},
	{SQLITE_BUSY, EBUSY, "another process holds the database",
		"end the program that has it open"},
	{SQLITE_LOCKED, EBUSY, "a table is in use in the database", "try again"},
	{SQLITE_CORRUPT, EUCLEAN, "the database is damaged",
		"stop the daemon, keep a copy, and save what can be read with sqlite3's .recover"},
	{SQLITE_NOTADB, EMEDIUMTYPE, "this is not a database",
		"move the file away, or name another state folder"},
	{SQLITE_READONLY, EROFS, "the database cannot be written",
		"check the owner and mode of the file and its folder"},
	{SQLITE_CANTOPEN, EACCES, "cannot open the database",
		"check that its folder exists and belongs to the daemon"},
	{SQLITE_PERM, EACCES, "cannot open the database", "check the owner and mode"},
	{SQLITE_IOERR, EIO, "input or output error on the database",
		"check the disk and the kernel's log"},
	{SQLITE_TOOBIG, E2BIG, "a text is too large for the database",
		"it must be below 1,000,000,000 bytes"},
	{SQLITE_CONSTRAINT, EINVAL, "a record does not fit the database",
		"this is a mistake in kbisectd"},
};

int db_error(struct db *db, int rc, struct err *err)
{
	int os = db->handle ? sqlite3_system_errno(db->handle) : 0;
	int primary = rc & 0xff, full;

	if (!os)
		os = errno; /* a failed COMMIT does not record it; see stmt_step and run_sql */
	if (primary == SQLITE_NOMEM)
		abort(); /* as everywhere: the file makes death safe */
	/* Only ENOSPC becomes SQLITE_FULL; quotas and file size limits mean the same. */
	full = os == ENOSPC || os == EDQUOT || os == EFBIG;
	if (primary == SQLITE_IOERR && full)
		primary = SQLITE_FULL;
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		if (errors[i].rc != primary)
			continue;
		return err_set(err, errors[i].code, "%s %s: %s (%s)", errors[i].what, db->path,
			primary == SQLITE_FULL && full ? strerror(os) : sqlite3_errmsg(db->handle),
			errors[i].hint);
	}
	return err_set(err, EIO, "database %s: %s", db->path, sqlite3_errmsg(db->handle));
}

/* Turn the error into ours, then undo the transaction (which would overwrite it). */
static int stmt_fail(struct stmt *stmt, int rc, struct err *err)
{
	int r = db_error(stmt->db, rc, err);

	sqlite3_reset(stmt->handle);
	db_rollback(stmt->db);
	return r;
}

int stmt_open(struct db *db, const char *sql, struct stmt **ret, struct err *err)
{
	struct stmt *stmt;
	int rc;

	for (stmt = db->stmts; stmt; stmt = stmt->next)
		if (stmt->sql == sql && !stmt->lent)
			break;
	if (!stmt) {
		sqlite3_stmt *handle;

		rc = sqlite3_prepare_v3(
			db->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &handle, NULL);
		if (rc != SQLITE_OK) {
			int r = db_error(db, rc, err);

			db_rollback(db);
			return r;
		}
		stmt = xcalloc(1, sizeof(*stmt));
		*stmt = (struct stmt){db->stmts, db, sql, handle, 0, SQLITE_OK};
		db->stmts = stmt;
	}
	stmt->lent = 1;
	*ret = stmt;
	return 0;
}

void stmt_done(struct stmt *stmt)
{
	if (!stmt)
		return;
	sqlite3_reset(stmt->handle);
	sqlite3_clear_bindings(stmt->handle);
	stmt->lent = 0;
	stmt->rc = SQLITE_OK;
}

static int param_index(struct stmt *stmt, const char *name)
{
	int n = sqlite3_bind_parameter_count(stmt->handle);

	for (int i = 1; i <= n; i++)
		if (strcmp(sqlite3_bind_parameter_name(stmt->handle, i) + 1, name) == 0)
			return i;
	return 0;
}

static void note(struct stmt *stmt, int rc)
{
	if (stmt->rc == SQLITE_OK)
		stmt->rc = rc;
}

void stmt_bind_int(struct stmt *stmt, const char *name, int64_t value)
{
	note(stmt, sqlite3_bind_int64(stmt->handle, param_index(stmt, name), value));
}

void stmt_bind_text(struct stmt *stmt, const char *name, const char *value)
{
	note(stmt,
		sqlite3_bind_text(stmt->handle, param_index(stmt, name), value, -1, SQLITE_STATIC));
}

void stmt_bind_real(struct stmt *stmt, const char *name, double value)
{
	/* SQLite takes NaN as NULL. */
	note(stmt, sqlite3_bind_double(stmt->handle, param_index(stmt, name), value));
}

static void bind_field(struct stmt *stmt, const struct field *field, const void *row)
{
	const void *at = (const char *)row + field->offset;

	switch (field->type) {
	case FIELD_INT:
		stmt_bind_int(stmt, field->column, *(const int64_t *)at);
		break;
	case FIELD_FLAG:
		stmt_bind_int(stmt, field->column, *(const int *)at != 0);
		break;
	case FIELD_ENUM:
		stmt_bind_text(stmt, field->column, field->names[*(const unsigned *)at]);
		break;
	case FIELD_REAL:
		stmt_bind_real(stmt, field->column, *(const double *)at);
		break;
	case FIELD_TEXT:
		stmt_bind_text(stmt, field->column, *(char *const *)at);
		break;
	}
}

void stmt_bind_row(struct stmt *stmt, const struct field *fields, const void *row)
{
	for (; fields->column; fields++)
		if (param_index(stmt, fields->column))
			bind_field(stmt, fields, row);
}

int stmt_step(struct stmt *stmt, struct err *err)
{
	int rc = stmt->rc;

	if (!sqlite3_stmt_readonly(stmt->handle) && sqlite3_get_autocommit(stmt->db->handle))
		return err_set(err, ECANCELED,
			"database %s: a change outside a transaction was refused (an earlier error "
			"undid the transaction)",
			stmt->db->path);
	errno = 0;
	if (rc == SQLITE_OK)
		rc = sqlite3_step(stmt->handle);
	if (rc == SQLITE_ROW)
		return 1;
	if (rc == SQLITE_DONE)
		return 0;
	return stmt_fail(stmt, rc, err);
}

int stmt_change(struct stmt *stmt, struct err *err)
{
	int r;

	do {
		r = stmt_step(stmt, err);
	} while (r > 0);
	return r < 0 ? r : sqlite3_changes(stmt->db->handle);
}

static char *column_text(sqlite3_stmt *handle, int i)
{
	return xstrdup_null((const char *)sqlite3_column_text(handle, i));
}

static unsigned column_enum(sqlite3_stmt *handle, int i, const char *const *names)
{
	const char *word = (const char *)sqlite3_column_text(handle, i);

	for (unsigned k = 0; word && names[k]; k++)
		if (strcmp(names[k], word) == 0)
			return k;
	return 0; /* the schema's CHECK allows no other word */
}

static void read_field(sqlite3_stmt *handle, int i, const struct field *field, void *row)
{
	void *at = (char *)row + field->offset;

	switch (field->type) {
	case FIELD_INT:
		*(int64_t *)at = sqlite3_column_int64(handle, i);
		break;
	case FIELD_FLAG:
		*(int *)at = sqlite3_column_int(handle, i);
		break;
	case FIELD_ENUM:
		*(unsigned *)at = column_enum(handle, i, field->names);
		break;
	case FIELD_REAL:
		*(double *)at = sqlite3_column_type(handle, i) == SQLITE_NULL
					? NAN
					: sqlite3_column_double(handle, i);
		break;
	case FIELD_TEXT:
		*(char **)at = column_text(handle, i);
		break;
	}
}

void stmt_read_row(struct stmt *stmt, const struct field *fields, void *ret)
{
	int n = sqlite3_column_count(stmt->handle);

	for (int i = 0; i < n; i++) {
		const char *name = sqlite3_column_name(stmt->handle, i);

		for (const struct field *f = fields; f->column; f++)
			if (strcmp(f->column, name) == 0) {
				read_field(stmt->handle, i, f, ret);
				break;
			}
	}
}

int stmt_read_all(struct stmt *stmt, const struct field *fields, size_t size, void **ret,
	size_t *ret_n, struct err *err)
{
	char *rows = NULL;
	size_t n = 0, cap = 0;
	int r;

	while ((r = stmt_step(stmt, err)) > 0) {
		if (n == cap) {
			cap = cap ? cap * 2 : 16;
			rows = xreallocarray(rows, cap, size);
		}
		memset(rows + n * size, 0, size);
		stmt_read_row(stmt, fields, rows + n * size);
		n++;
	}
	if (r < 0) {
		rows_free(fields, size, rows, n);
		return r;
	}
	*ret = rows;
	*ret_n = n;
	return 0;
}

int stmt_read_one(
	struct stmt *stmt, const struct field *fields, size_t size, void *ret, struct err *err)
{
	int r = stmt_step(stmt, err);

	if (r < 0)
		return r;
	if (r == 0)
		return -ENOENT;
	memset(ret, 0, size);
	stmt_read_row(stmt, fields, ret);
	return 0;
}

void row_release(const struct field *fields, size_t size, void *row)
{
	for (const struct field *f = fields; f->column; f++)
		if (f->type == FIELD_TEXT)
			free(*(char **)((char *)row + f->offset));
	memset(row, 0, size);
}

void rows_free(const struct field *fields, size_t size, void *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		row_release(fields, size, (char *)rows + i * size);
	free(rows);
}

int stmt_insert(struct db *db, const char *sql, const struct field *fields, const void *row,
	int64_t *ret_id, struct err *err)
{
	cleanup(stmt_done) struct stmt *stmt = NULL;
	int r;

	r = stmt_open(db, sql, &stmt, err);
	if (r < 0)
		return r;
	stmt_bind_row(stmt, fields, row);
	r = stmt_change(stmt, err);
	if (r < 0)
		return r;
	if (ret_id)
		*ret_id = sqlite3_last_insert_rowid(db->handle);
	return 0;
}

int stmt_update(struct db *db, const char *sql, const struct field *fields, const void *row,
	const char *what, int64_t id, struct err *err)
{
	cleanup(stmt_done) struct stmt *stmt = NULL;
	int r;

	r = stmt_open(db, sql, &stmt, err);
	if (r < 0)
		return r;
	stmt_bind_row(stmt, fields, row);
	r = stmt_change(stmt, err);
	if (r < 0)
		return r;
	if (r == 0)
		return err_set(err, ENOENT, "there is no %s %lld", what, (long long)id);
	return 0;
}
