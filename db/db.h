#ifndef DB_DB_H
#define DB_DB_H

/*
 * The database: one SQLite file, WAL, owned by the daemon's one thread. Blocks on the disk.
 *
 * Rows come out as plain structs whose strings the caller frees with the type's _release. Every
 * change happens between db_begin and db_commit: one event, one transaction; what is not committed
 * when the process dies has not happened. Statements are prepared once and kept.
 */

#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

struct db;

/*
 * Open or create. Migrates an older schema (user_version) in one transaction; a newer one is
 * -EPROTO with a sentence that says which versions. synchronous=FULL.
 */
int db_open(const char *path, struct db **ret, struct err *err);
void db_close(struct db *db);
DEFINE_CLEANUP(db_close, struct db *);

int db_begin(struct db *db, struct err *err);
int db_commit(struct db *db, struct err *err); /* on failure the transaction is rolled back */
void db_rollback(struct db *db);

#endif
