#ifndef DB_EVENT_H
#define DB_EVENT_H

/*
 * The job's diary and the mail queue. An event is written in the transaction of the change that it
 * tells about; followers of a log read them by id.
 */

#include <stdint.h>

#include "db/db.h"

struct db_event {
	int64_t id, job;
	int64_t at; /* Unix ms */
	char *kind; /* state, note, step, run, build, verdict */
	char *text; /* one line for people */
	char *data; /* JSON object for programs */
};

/* ret_id may be NULL, here and in every insert. */
int db_event_insert(struct db *db, const struct db_event *event, int64_t *ret_id, struct err *err);
typedef int (*db_event_fn)(void *arg, const struct db_event *event);
/* Those of a job with id > since, in order; fn's negative return stops and is returned. */
int db_event_list(
	struct db *db, int64_t job, int64_t since, db_event_fn fn, void *arg, struct err *err);

enum db_mail_state { DB_MAIL_QUEUED, DB_MAIL_SENT, DB_MAIL_REJECTED };

struct db_mail {
	int64_t id, job;
	enum db_mail_state state;
	int64_t attempts, next; /* when to try (again), Unix ms */
	char *message_id;
	char *request; /* JSON: the mail step's request without the server's settings */
	char *error;   /* the last attempt's; NULL = none */
};

/* -EINVAL when a mail of that message_id is there already: none is queued twice. */
int db_mail_insert(struct db *db, const struct db_mail *mail, int64_t *ret_id, struct err *err);
/* Writes state, attempts, next, error. */
int db_mail_update(struct db *db, const struct db_mail *mail, struct err *err);
/* The queued one that is due first; -ENOENT (without a message) when none is queued. */
int db_mail_next(struct db *db, struct db_mail *ret, struct err *err);
/* The newest of a job; -ENOENT when it has none. */
int db_mail_of_job(struct db *db, int64_t job, struct db_mail *ret, struct err *err);
void db_mail_release(struct db_mail *mail);
static inline void cleanup_db_mail_release(struct db_mail *mail)
{
	db_mail_release(mail);
}

#endif
