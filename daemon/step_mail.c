/*
 * The mail step (daemon/step.h): compose one message and deliver it, once.
 *
 * What keeps it from being sent twice: the moment somebody else has the message, the marker file
 * is on the disk, before the connection is even ended. Where a server took it for some recipients
 * and put off others, MARKER.part lists who is done, and the next try asks for the rest only. The
 * .part file is written before anything is sent, so a full disk is found out in time.
 */

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "daemon/mail.h"
#include "daemon/sendmail.h"
#include "daemon/smtp.h"
#include "daemon/step.h"

#include "base/banned.h"

#define MARKER_MAX (1 << 20)

struct delivery {
	struct mail mail;
	char *to; /* all addresses as one list */
	struct mail_rcpts from, rcpts;
	struct smtp_server server;
	const char *sendmail; /* NULL = by SMTP */
	int64_t timeout_ms;
	const char *marker;
	char *part;
	char *reply; /* the words with which the message was last taken */
};

static void cleanup_delivery_release(struct delivery *d)
{
	free(d->to);
	mail_rcpts_release(&d->from);
	mail_rcpts_release(&d->rcpts);
	free(d->part);
	free(d->reply);
}

static int read_server(const json_t *request, struct delivery *d, struct err *err)
{
	json_t *smtp = NULL;
	int r;

	d->sendmail = json_opt_str(request, "sendmail", NULL);
	d->timeout_ms = json_opt_int(request, "timeout_ms", 0);
	if (d->sendmail)
		return 0;
	r = json_get_obj(request, "smtp", &smtp, err);
	if (r == 0)
		r = json_get_str(smtp, "url", &d->server.url, err);
	if (r < 0)
		return r;
	d->server.user = json_opt_str(smtp, "user", NULL);
	d->server.password_file = json_opt_str(smtp, "password_file", NULL);
	d->server.ca_file = json_opt_str(smtp, "ca_file", NULL);
	d->server.timeout_ms = d->timeout_ms;
	return smtp_tls_parse(json_opt_str(smtp, "tls", "auto"), &d->server.tls, err);
}

static int read_recipients(const json_t *request, struct delivery *d, struct err *err)
{
	cleanup(buf_release) struct buf list = BUF_INIT;
	json_t *to, *one;
	size_t i;
	int r;

	r = json_get_arr(request, "to", &to, err);
	if (r < 0)
		return r;
	json_array_foreach (to, i, one) {
		if (!json_is_string(one))
			return err_set(err, EBADMSG, "\"to\" must be an array of strings");
		buf_addf(&list, "%s%s", i ? ", " : "", json_string_value(one));
	}
	d->to = buf_detach(&list);
	d->mail.to = d->to;
	return 0;
}

static int read_request(const json_t *request, struct delivery *d, struct err *err)
{
	int r = json_get_str(request, "from", &d->mail.from, err);

	if (r == 0)
		r = read_recipients(request, d, err);
	if (r == 0)
		r = json_get_str(request, "subject", &d->mail.subject, err);
	if (r == 0)
		r = json_get_str(request, "body", &d->mail.body, err);
	if (r == 0)
		r = json_get_str(request, "message_id", &d->mail.message_id, err);
	if (r == 0)
		r = json_get_int(request, "date", &d->mail.date, err);
	if (r == 0)
		r = json_get_str(request, "marker", &d->marker, err);
	if (r < 0)
		return r;
	d->mail.in_reply_to = json_opt_str(request, "in_reply_to", NULL);
	if (d->mail.in_reply_to && !*d->mail.in_reply_to)
		d->mail.in_reply_to = NULL;
	d->part = xasprintf("%s.part", d->marker);
	return read_server(request, d, err);
}

/* Who is done, as both files have it. */
static json_t *record_make(const struct delivery *d)
{
	json_t *record = json_object(), *taken = json_array(), *refused = json_object();

	for (size_t i = 0; i < d->rcpts.n; i++) {
		const struct mail_rcpt *rcpt = &d->rcpts.v[i];

		if (rcpt->state == MAIL_TAKEN)
			json_array_append_new(taken, json_text(rcpt->addr));
		else if (rcpt->state == MAIL_TURNED_DOWN)
			json_set_str(refused, rcpt->addr, rcpt->reply ? rcpt->reply : "");
	}
	json_set_str(record, "message_id", d->mail.message_id);
	json_set_str(record, "reply", d->reply);
	json_object_set_new(record, "taken", taken);
	json_object_set_new(record, "refused", refused);
	return record;
}

static int record_write(const struct delivery *d, const char *path, struct err *err)
{
	cleanup(json_decref) json_t *record = record_make(d);
	cleanup(free) char *line = json_line(record);

	return file_write(path, line, strlen(line), 0600, err);
}

/* Take over what an earlier try has got done. A marker that says nothing still means "sent". */
static void record_read(struct delivery *d, const char *path, bool is_marker)
{
	cleanup(buf_release) struct buf text = BUF_INIT;
	cleanup(json_decref) json_t *record = NULL;
	json_t *taken, *refused, *one;
	size_t k;

	if (file_read(path, MARKER_MAX, &text, NULL) == 0)
		json_parse(buf_str(&text), text.len, &record, NULL);
	taken = json_object_get(record, "taken");
	refused = json_object_get(record, "refused");
	for (size_t i = 0; i < d->rcpts.n; i++) {
		struct mail_rcpt *rcpt = &d->rcpts.v[i];
		const char *reply = json_opt_str(refused, rcpt->addr, NULL);

		json_array_foreach (taken, k, one)
			if (strcmp(json_string_value(one) ? json_string_value(one) : "",
				    rcpt->addr) == 0)
				rcpt->state = MAIL_TAKEN;
		if (reply) {
			rcpt->state = MAIL_TURNED_DOWN;
			rcpt->reply = xstrdup(reply);
		} else if (is_marker) {
			rcpt->state = MAIL_TAKEN;
		}
	}
	d->reply = xstrdup_null(json_opt_str(record, "reply", NULL));
}

static size_t count(const struct delivery *d, enum mail_state state)
{
	size_t n = 0;

	for (size_t i = 0; i < d->rcpts.n; i++)
		n += d->rcpts.v[i].state == state;
	return n;
}

/* Called while the connection still stands. */
static void on_taken(void *arg, const char *reply)
{
	struct delivery *d = arg;
	struct err err;

	free(d->reply);
	d->reply = xstrdup(reply);
	if (record_write(d, count(d, MAIL_LEFT) ? d->part : d->marker, &err) < 0)
		fprintf(stderr, "mail: sent, but this cannot be noted: %s\n", err.msg);
}

static int send_now(struct delivery *d, struct err *err)
{
	cleanup(buf_release) struct buf text = BUF_INIT;
	int r = mail_compose(&d->mail, d->sendmail ? MAIL_LF : MAIL_CRLF, &text, err);

	if (r < 0) {
		err->code = MAIL_REFUSED;
		return -MAIL_REFUSED;
	}
	r = record_write(d, d->part, err);
	if (r < 0)
		return err_wrap(err, "the mail is not sent, because that could not be noted");
	if (!d->sendmail)
		return smtp_send(&d->server, d->from.v[0].addr, &d->rcpts, &text, on_taken, d, err);
	r = sendmail_send(d->sendmail, &d->rcpts, &text, d->timeout_ms, err);
	if (r == 0)
		on_taken(d, "handed over to sendmail");
	return r;
}

/* Some have it, and the rest was refused along with the whole second try: that is final. */
static void turn_down_rest(struct delivery *d, const struct err *err)
{
	for (size_t i = 0; i < d->rcpts.n; i++) {
		struct mail_rcpt *rcpt = &d->rcpts.v[i];

		if (rcpt->state != MAIL_LEFT)
			continue;
		rcpt->state = MAIL_TURNED_DOWN;
		free(rcpt->reply);
		rcpt->reply = xstrdup(err->msg);
	}
}

/* Everybody has it, or never will. */
static void report_sent(const struct delivery *d)
{
	json_t *result = json_object(), *refused = json_array();

	json_set_bool(result, "sent", 1);
	json_set_str(result, "reply", d->reply ? d->reply : "sent before");
	for (size_t i = 0; i < d->rcpts.n; i++) {
		cleanup(free) char *line = xasprintf("%s: %s", d->rcpts.v[i].addr,
			d->rcpts.v[i].reply ? d->rcpts.v[i].reply : "");

		if (d->rcpts.v[i].state == MAIL_TURNED_DOWN)
			json_array_append_new(refused, json_text(line));
	}
	json_object_set_new(result, "refused", refused);
	step_result(result);
}

static int report_rejected(const struct delivery *d, const struct err *err)
{
	json_t *result = json_object();

	unlink(d->part);
	json_set_str(result, "rejected", err->msg);
	step_result(result);
	return 0;
}

/* Some were put off: the next try is for them alone. */
static int report_left(const struct delivery *d, struct err *err)
{
	cleanup(buf_release) struct buf list = BUF_INIT;

	for (size_t i = 0; i < d->rcpts.n; i++)
		if (d->rcpts.v[i].state == MAIL_LEFT)
			buf_addf(&list, "%s%s: %s", list.len ? "; " : "", d->rcpts.v[i].addr,
				d->rcpts.v[i].reply ? d->rcpts.v[i].reply : "no answer");
	return err_set(err, EAGAIN, "the mail went to %zu of %zu, the server put off %s",
		count(d, MAIL_TAKEN), d->rcpts.n, buf_str(&list));
}

int step_mail(const json_t *request, struct err *err)
{
	cleanup(delivery_release) struct delivery d = {.reply = NULL};
	int r = read_request(request, &d, err);

	if (r < 0)
		return r;
	if (mail_rcpts_parse(d.mail.from, &d.from, err) < 0 ||
		mail_rcpts_parse(d.to, &d.rcpts, err) < 0)
		return report_rejected(&d, err);
	if (access(d.marker, F_OK) == 0)
		record_read(&d, d.marker, true);
	else
		record_read(&d, d.part, false);
	if (count(&d, MAIL_LEFT) > 0) {
		r = send_now(&d, err);
		if (r == -MAIL_REFUSED && count(&d, MAIL_TAKEN) == 0)
			return report_rejected(&d, err);
		if (r == -MAIL_REFUSED) {
			turn_down_rest(&d, err);
			r = record_write(&d, d.marker, err);
		}
		if (r < 0) {
			record_write(&d, d.part, NULL); /* whom not to ask again */
			return r;
		}
	}
	if (count(&d, MAIL_LEFT) > 0)
		return report_left(&d, err);
	unlink(d.part);
	report_sent(&d);
	return 0;
}
