#include "db/db.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "db/stmt.h"
#include "base/banned.h"

/* In the file's header, so that another program's database is never taken for ours: "kbis". */
#define APPLICATION_ID 0x6b626973

/* How long to wait for a person's sqlite3 shell to let go. The whole daemon waits with it. */
#define BUSY_MS 250

static const char schema[] =
#include "db/schema.sql.h"
	;

/* Entry i leads from version i to i + 1. A released entry is never edited: add the next one. */
static const char *const migrations[] = {schema};

#define NEWEST ((int)(sizeof(migrations) / sizeof(migrations[0])))

/* Run statements whose results do not matter. Not for user data: no binds. */
static int run_sql(struct db *db, const char *sql, struct err *err)
{
	int rc;

	errno = 0;
	rc = sqlite3_exec(db->handle, sql, NULL, NULL, NULL);
	return rc == SQLITE_OK ? 0 : db_error(db, rc, err);
}

/* The single number that a PRAGMA or SELECT gives. */
static int read_number(struct db *db, const char *sql, int64_t *ret, struct err *err)
{
	sqlite3_stmt *handle;
	int rc = sqlite3_prepare_v2(db->handle, sql, -1, &handle, NULL);

	if (rc == SQLITE_OK) {
		rc = sqlite3_step(handle);
		if (rc == SQLITE_ROW)
			*ret = sqlite3_column_int64(handle, 0);
		sqlite3_finalize(handle);
	}
	return rc == SQLITE_ROW ? 0 : db_error(db, rc, err);
}

/* Is it ours, and not newer than we are? Changes nothing in the file. *ret_version: 0 = new. */
static int check_version(struct db *db, int *ret_version, struct err *err)
{
	int64_t id, version, tables;
	int r;

	r = read_number(db, "PRAGMA application_id", &id, err);
	if (r == 0)
		r = read_number(db, "PRAGMA user_version", &version, err);
	if (r == 0)
		r = read_number(db, "SELECT count(*) FROM sqlite_schema", &tables, err);
	if (r < 0)
		return r;
	if (tables > 0 && id != APPLICATION_ID)
		return err_set(err, EMEDIUMTYPE,
			"%s is another program's database (move it away, or name another state "
			"folder)",
			db->path);
	if (version > NEWEST)
		return err_set(err, EPROTO,
			"%s was written by a newer kbisectd (schema version %lld, this one knows "
			"up to %d): install that version again, or name another state folder",
			db->path, (long long)version, NEWEST);
	*ret_version = (int)version;
	return 0;
}

/* Bring the schema up to date, in one transaction: after a power cut it is the old or the new. */
static int migrate(struct db *db, int version, struct err *err)
{
	cleanup(free) char *mark = xasprintf(
		"PRAGMA application_id = %d; PRAGMA user_version = %d;", APPLICATION_ID, NEWEST);
	int r;

	if (version == NEWEST)
		return 0;
	r = db_begin(db, err);
	for (int i = version; r == 0 && i < NEWEST; i++)
		r = run_sql(db, migrations[i], err);
	if (r == 0)
		r = run_sql(db, mark, err);
	if (r == 0)
		r = db_commit(db, err);
	if (r < 0) {
		db_rollback(db);
		err_wrap(err, "cannot bring the database from schema version %d to %d", version,
			NEWEST);
	}
	return r;
}

int db_open(const char *path, struct db **ret, struct err *err)
{
	cleanup(db_close) struct db *db = xcalloc(1, sizeof(*db));
	int rc, version = 0, r;

	db->path = xstrdup(path);
	rc = sqlite3_open_v2(path, &db->handle,
		SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
	if (rc != SQLITE_OK)
		return db_error(db, rc, err);
	sqlite3_extended_result_codes(db->handle, 1);
	sqlite3_busy_timeout(db->handle, BUSY_MS);
	/* Until the version is known, not even a checkpoint may touch the file. */
	sqlite3_db_config(db->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	/* A small cache: an idle daemon keeps it for ever, and the kernel caches the file anyway.
	 */
	r = run_sql(db, "PRAGMA cache_size = -512; PRAGMA mmap_size = 0;", err);
	if (r == 0)
		r = check_version(db, &version, err);
	if (r < 0)
		return r;
	sqlite3_db_config(db->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
	r = run_sql(db,
		"PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;",
		err);
	if (r == 0)
		r = migrate(db, version, err);
	if (r < 0)
		return r;
	*ret = steal(&db);
	return 0;
}

void db_close(struct db *db)
{
	if (!db)
		return;
	while (db->stmts) {
		struct stmt *stmt = db->stmts;

		db->stmts = stmt->next;
		sqlite3_finalize(stmt->handle);
		free(stmt);
	}
	db_rollback(db);
	sqlite3_close(db->handle);
	free(db->path);
	free(db);
}

int db_begin(struct db *db, struct err *err)
{
	if (!sqlite3_get_autocommit(db->handle))
		return err_set(err, EBUSY, "database %s: a transaction is open already", db->path);
	/* IMMEDIATE takes the write lock here, so that a busy database is met before any change. */
	return run_sql(db, "BEGIN IMMEDIATE", err);
}

int db_commit(struct db *db, struct err *err)
{
	int r;

	if (sqlite3_get_autocommit(db->handle))
		return err_set(err, ECANCELED,
			"database %s: nothing to commit (an earlier error undid the transaction)",
			db->path);
	r = run_sql(db, "COMMIT", err);
	if (r < 0)
		db_rollback(db);
	return r;
}

void db_rollback(struct db *db)
{
	if (db->handle && !sqlite3_get_autocommit(db->handle))
		sqlite3_exec(db->handle, "ROLLBACK", NULL, NULL, NULL);
}
