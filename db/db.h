#ifndef DB_DB_H
#define DB_DB_H

/*
 * The database: one SQLite file, WAL, owned by the daemon's one thread. Blocks on the disk.
 *
 * Rows come out as plain structs whose strings the caller frees with the type's _release. Every
 * change happens between db_begin and db_commit: one event, one transaction; what is not committed
 * when the process dies has not happened. Statements are prepared once and kept.
 *
 * A statement that fails inside a transaction undoes the whole transaction there and then. Further
 * changes, and db_commit, are -ECANCELED until the next db_begin; so are changes outside a
 * transaction. An -ENOENT (no such row) undoes nothing: the caller decides.
 *
 * Errors that people can do something about say what: -ENOSPC (disk full, quota, file size limit),
 * -EBUSY (another process holds it), -EUCLEAN (damaged), -EROFS, -EACCES, -EIO. -EINVAL is a record
 * that the schema refuses.
 */

#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

struct db;

/*
 * Open or create. Migrates an older schema (user_version) in one transaction. Refused untouched: a
 * newer one, -EPROTO with a sentence that says which versions; a file that is not a database, or
 * another program's, -EMEDIUMTYPE. synchronous=FULL; two daemons are kept apart by the lock on the
 * state folder, not here.
 */
int db_open(const char *path, struct db **ret, struct err *err);
void db_close(struct db *db);
DEFINE_CLEANUP(db_close, struct db *);

int db_begin(struct db *db, struct err *err);  /* -EBUSY also when one is open already */
int db_commit(struct db *db, struct err *err); /* on failure the transaction is rolled back */
void db_rollback(struct db *db);	       /* without a transaction: does nothing */

#endif
