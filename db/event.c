#include "db/event.h"

#include <errno.h>

#include "db/stmt.h"
#include "base/banned.h"

#define EVENT_AT(field) offsetof(struct db_event, field)
#define MAIL_AT(field) offsetof(struct db_mail, field)

static const struct field event_fields[] = {
	{"id", FIELD_INT, EVENT_AT(id), NULL},
	{"job", FIELD_INT, EVENT_AT(job), NULL},
	{"at", FIELD_INT, EVENT_AT(at), NULL},
	{"kind", FIELD_TEXT, EVENT_AT(kind), NULL},
	{"text", FIELD_TEXT, EVENT_AT(text), NULL},
	{"data", FIELD_TEXT, EVENT_AT(data), NULL},
	{NULL, FIELD_INT, 0, NULL},
};

static const char *const mail_states[] = {
	[DB_MAIL_QUEUED] = "queued",
	[DB_MAIL_SENT] = "sent",
	[DB_MAIL_REJECTED] = "rejected",
	NULL,
};

static const struct field mail_fields[] = {
	{"id", FIELD_INT, MAIL_AT(id), NULL},
	{"job", FIELD_INT, MAIL_AT(job), NULL},
	{"state", FIELD_ENUM, MAIL_AT(state), mail_states},
	{"attempts", FIELD_INT, MAIL_AT(attempts), NULL},
	{"due", FIELD_INT, MAIL_AT(next), NULL},
	{"message_id", FIELD_TEXT, MAIL_AT(message_id), NULL},
	{"request", FIELD_TEXT, MAIL_AT(request), NULL},
	{"error", FIELD_TEXT, MAIL_AT(error), NULL},
	{NULL, FIELD_INT, 0, NULL},
};

int db_event_insert(struct db *db, const struct db_event *event, int64_t *ret_id, struct err *err)
{
	static const char sql[] = "INSERT INTO event (job, at, kind, text, data) "
				  "VALUES (:job, :at, :kind, :text, :data)";

	return stmt_insert(db, sql, event_fields, event, ret_id, err);
}

int db_event_list(
	struct db *db, int64_t job, int64_t since, db_event_fn fn, void *arg, struct err *err)
{
	static const char sql[] = "SELECT id, job, at, kind, text, data FROM event "
				  "WHERE job = :job AND id > :since ORDER BY id";
	cleanup(stmt_done) struct stmt *stmt = NULL;
	int r;

	r = stmt_open(db, sql, &stmt, err);
	if (r < 0)
		return r;
	stmt_bind_int(stmt, "job", job);
	stmt_bind_int(stmt, "since", since);
	while ((r = stmt_step(stmt, err)) > 0) {
		struct db_event event = {0};

		stmt_read_row(stmt, event_fields, &event);
		r = fn(arg, &event);
		row_release(event_fields, sizeof(event), &event);
		if (r < 0)
			return r;
	}
	return r;
}

int db_mail_insert(struct db *db, const struct db_mail *mail, int64_t *ret_id, struct err *err)
{
	static const char sql[] =
		"INSERT INTO mail (job, state, attempts, due, message_id, request, error) "
		"VALUES (:job, :state, :attempts, :due, :message_id, :request, :error)";

	return stmt_insert(db, sql, mail_fields, mail, ret_id, err);
}

int db_mail_update(struct db *db, const struct db_mail *mail, struct err *err)
{
	static const char sql[] = "UPDATE mail SET state = :state, attempts = :attempts,"
				  " due = :due, error = :error WHERE id = :id";

	return stmt_update(db, sql, mail_fields, mail, "mail", mail->id, err);
}

int db_mail_next(struct db *db, struct db_mail *ret, struct err *err)
{
	static const char sql[] =
		"SELECT id, job, state, attempts, due, message_id, request, error "
		"FROM mail WHERE state = 'queued' ORDER BY due, id LIMIT 1";
	cleanup(stmt_done) struct stmt *stmt = NULL;
	int r;

	r = stmt_open(db, sql, &stmt, err);
	if (r < 0)
		return r;
	return stmt_read_one(stmt, mail_fields, sizeof(*ret), ret, err);
}

int db_mail_of_job(struct db *db, int64_t job, struct db_mail *ret, struct err *err)
{
	static const char sql[] =
		"SELECT id, job, state, attempts, due, message_id, request, error "
		"FROM mail WHERE job = :job ORDER BY id DESC LIMIT 1";
	cleanup(stmt_done) struct stmt *stmt = NULL;
	int r;

	r = stmt_open(db, sql, &stmt, err);
	if (r < 0)
		return r;
	stmt_bind_int(stmt, "job", job);
	return stmt_read_one(stmt, mail_fields, sizeof(*ret), ret, err);
}

void db_mail_release(struct db_mail *mail)
{
	row_release(mail_fields, sizeof(*mail), mail);
}
