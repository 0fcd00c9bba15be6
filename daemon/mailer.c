#include "daemon/mailer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "daemon/log.h"
#include "daemon/request.h"
#include "daemon/runner.h"
#include "base/banned.h"

#define MAIL_DEADLINE_MS (20 * 60000) /* above the 10 minutes that RFC 5321 gives a last answer */
#define MAIL_WAIT_MAX (6 * 3600000LL)
#define DB_RETRY_MS 30000

struct mailer {
	struct queue_spec spec;
	struct event *timer;
	struct runner *runner;
	struct db_mail mail; /* the one being handed over */
	char *marker;
	int answered;
	void (*drained)(void *arg); /* set while the daemon ends */
	void *drained_arg;
};

static void mailer_next(struct mailer *m);

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	mailer_next(arg);
}

struct mailer *mailer_new(const struct queue_spec *spec)
{
	struct mailer *m = xcalloc(1, sizeof(*m));

	m->spec = *spec;
	m->timer = evtimer_new(spec->base, on_timer, m);
	return m;
}

static void wait_ms(struct mailer *m, int64_t ms)
{
	struct timeval tv = {ms / 1000, (ms % 1000) * 1000};

	event_add(m->timer, &tv);
}

/* Write the mail's new state, with a line in its job's diary. */
static void record(struct mailer *m, const char *line)
{
	struct err err = {0};
	int r;

	log_line(LOG_NOTICE, "job=%lld step=mail %s", (long long)m->mail.job, line);
	r = record_begin(m->spec.recorder, &err);
	if (r == 0)
		r = db_mail_update(m->spec.db, &m->mail, &err);
	if (r == 0)
		r = record_event(m->spec.recorder, m->mail.job, "note", NULL, &err, "%s", line);
	if (r == 0)
		r = record_commit(m->spec.recorder, &err);
	if (r == 0)
		return;
	record_rollback(m->spec.recorder);
	log_line(LOG_ERR, "job=%lld step=mail cannot record: %s", (long long)m->mail.job, err.msg);
}

/* Not delivered, and not the mail's fault: later. */
static void postpone(struct mailer *m, const char *why)
{
	cleanup(free) char *line = NULL;
	cleanup(free) char *when = NULL;
	int64_t wait = (*m->spec.config)->mail_retry;

	for (int64_t i = 0; i < m->mail.attempts && wait < MAIL_WAIT_MAX; i++)
		wait *= 2;
	m->mail.attempts++;
	m->mail.next = clock_wall_ms() + wait;
	free(m->mail.error);
	m->mail.error = xstrdup(why);
	when = record_duration(wait);
	line = xasprintf("mail not delivered, tried again in %s: %s", when, why);
	record(m, line);
}

static void on_line(void *arg, const json_t *result)
{
	struct mailer *m = arg;
	const char *rejected = json_opt_str(result, "rejected", NULL);
	const char *text = json_opt_str(result, "infra", json_opt_str(result, "refused", NULL));
	cleanup(free) char *line = NULL;

	if (m->answered++)
		return;
	if (json_opt_bool(result, "sent", 0)) {
		m->mail.state = DB_MAIL_SENT;
		free(steal(&m->mail.error));
		record(m, "mail delivered");
	} else if (rejected) {
		m->mail.state = DB_MAIL_REJECTED;
		free(m->mail.error);
		m->mail.error = xstrdup(rejected);
		line = xasprintf("mail refused for good: %s", rejected);
		record(m, line);
	} else {
		postpone(m, text ? text : "the mail step gave no answer");
	}
}

static void on_done(void *arg, const struct err *err)
{
	struct mailer *m = arg;

	m->runner = NULL;
	if (!m->answered)
		postpone(m, err->code ? err->msg : "the mail step gave no answer");
	db_mail_release(&m->mail);
	free(steal(&m->marker));
	mailer_next(m);
}

static int start(struct mailer *m, struct err *err)
{
	const struct config *config = *m->spec.config;
	cleanup(json_decref) json_t *stored = NULL;
	cleanup(json_decref) json_t *request = NULL;
	cleanup(free) char *dir = xasprintf("%s/mail", config->state_dir);
	struct runner_spec spec = {
		.base = m->spec.base,
		.program = m->spec.program,
		.name = "mail",
		.dir = dir,
		.deadline_ms = MAIL_DEADLINE_MS,
		.line = on_line,
		.done = on_done,
		.arg = m,
	};
	int r;

	r = json_parse(m->mail.request, strlen(m->mail.request), &stored, err);
	if (r == 0)
		r = file_mkdir(dir, 0750, err);
	if (r < 0)
		return r;
	m->marker = xasprintf("%s/%lld.sent", dir, (long long)m->mail.id);
	spec.request = request = request_mail(config, stored, m->marker);
	m->answered = 0;
	return runner_start(&spec, &m->runner, err);
}

static void mailer_next(struct mailer *m)
{
	const struct config *config = *m->spec.config;
	struct err err = {0};
	int64_t now = clock_wall_ms();
	int r;

	if (m->runner)
		return;
	if (m->drained) {
		m->drained(m->drained_arg);
		return;
	}
	r = db_mail_next(m->spec.db, &m->mail, &err);
	if (r == -ENOENT)
		return;
	if (r < 0) {
		log_line(LOG_ERR, "step=mail %s", err.msg);
		wait_ms(m, DB_RETRY_MS);
		return;
	}
	if (m->mail.next > now || (!config->smtp && !config->sendmail)) {
		if (m->mail.next > now)
			wait_ms(m, m->mail.next - now);
		db_mail_release(&m->mail);
		return;
	}
	r = start(m, &err);
	if (r < 0) {
		postpone(m, err.msg);
		db_mail_release(&m->mail);
		free(steal(&m->marker));
		wait_ms(m, DB_RETRY_MS);
	}
}

void mailer_kick(struct mailer *m)
{
	mailer_next(m);
}

void mailer_drain(struct mailer *m, void (*fn)(void *arg), void *arg)
{
	m->drained = fn;
	m->drained_arg = arg;
	event_del(m->timer);
	mailer_next(m);
}

void mailer_free(struct mailer *m)
{
	if (!m)
		return;
	if (m->runner) {
		runner_orphan(m->runner);
		runner_stop(m->runner);
	}
	event_free(m->timer);
	db_mail_release(&m->mail);
	free(m->marker);
	free(m);
}
