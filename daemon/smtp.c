#include "daemon/smtp.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include <curl/curl.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/banned.h"

#define CONNECT_TIMEOUT_MS 60000
#define REPLY_MAX 500

enum phase {
	PHASE_CONNECT, /* until our first command */
	PHASE_HELLO,
	PHASE_TLS,
	PHASE_LOGIN,
	PHASE_SENDER,
	PHASE_RCPT,
	PHASE_DATA,    /* may the message come? */
	PHASE_MESSAGE, /* it was sent; the answer decides */
	PHASE_QUIT     /* only in the table of verbs: goodbyes change nothing */
};

/* What a refusal in each phase is about. */
static const char *const phase_words[] = {
	[PHASE_CONNECT] = "the connection",
	[PHASE_HELLO] = "the greeting",
	[PHASE_TLS] = "encryption",
	[PHASE_LOGIN] = "the login",
	[PHASE_SENDER] = "the sender",
	[PHASE_RCPT] = "every recipient",
	[PHASE_DATA] = "the message",
	[PHASE_MESSAGE] = "the message",
};

static const struct {
	const char *verb;
	enum phase phase;
} verbs[] = {
	{"EHLO", PHASE_HELLO},
	{"HELO", PHASE_HELLO},
	{"STARTTLS", PHASE_TLS},
	{"AUTH", PHASE_LOGIN},
	{"MAIL", PHASE_SENDER},
	{"RCPT", PHASE_RCPT},
	{"DATA", PHASE_DATA},
	{"QUIT", PHASE_QUIT},
};

/*
 * What was said. curl's result says that something failed; only the dialogue says who refused
 * what, for which recipient, and whether for good (5xx) or for now (4xx).
 */
struct dialogue {
	enum phase phase;
	int code;  /* of the last answer in this phase; 0 = none yet */
	bool more; /* the answer goes on in the next line */
	bool over; /* we said goodbye, as curl also does after a refusal */
	bool taken;
	struct buf reply;	 /* that answer: "550 no such user" */
	struct mail_rcpt **sent; /* who was asked for, in order; at = asked so far */
	bool *accepted;
	size_t n, at;
	const char *text; /* what is left to send */
	size_t len;
};

static void dialogue_release(struct dialogue *d)
{
	buf_release(&d->reply);
	free(d->sent);
	free(d->accepted);
}

static void cleanup_dialogue_release(struct dialogue *d)
{
	dialogue_release(d);
}

DEFINE_CLEANUP(curl_easy_cleanup, CURL *);
DEFINE_CLEANUP(curl_slist_free_all, struct curl_slist *);
DEFINE_CLEANUP(curl_url_cleanup, CURLU *);
DEFINE_CLEANUP(curl_free, char *);

static void dialogue_begin(struct dialogue *d, enum phase phase)
{
	d->phase = phase;
	d->code = 0;
	buf_reset(&d->reply);
	if (phase == PHASE_RCPT && d->at < d->n)
		d->at++;
}

/* Our command: which phase does it begin? Whatever belongs to a login stays out of the log. */
static void dialogue_out(struct dialogue *d, const char *line, int len)
{
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		int n = (int)strlen(verbs[i].verb);

		if (len < n || strncmp(line, verbs[i].verb, (size_t)n) != 0 ||
			(len > n && line[n] != ' '))
			continue;
		fprintf(stderr, "> %.*s\n", verbs[i].phase == PHASE_LOGIN ? n : len, line);
		d->over |= verbs[i].phase == PHASE_QUIT;
		if (!d->over)
			dialogue_begin(d, verbs[i].phase);
		return;
	}
	fprintf(stderr, "> (not shown)\n");
}

/* A complete answer. */
static void dialogue_answer(struct dialogue *d)
{
	if (d->phase == PHASE_RCPT && d->at > 0) {
		struct mail_rcpt *rcpt = d->sent[d->at - 1];

		d->accepted[d->at - 1] = d->code / 100 == 2;
		free(rcpt->reply);
		rcpt->reply = d->code / 100 == 2 ? NULL : xstrdup(buf_str(&d->reply));
		if (d->code / 100 == 5)
			rcpt->state = MAIL_TURNED_DOWN;
	} else if (d->phase == PHASE_DATA && d->code == 354) {
		d->phase = PHASE_MESSAGE;
		d->code = 0;
		buf_reset(&d->reply);
	} else if (d->phase == PHASE_MESSAGE && d->code / 100 == 2) {
		d->taken = true;
	}
}

/* A line of the server's: three digits, and '-' when more lines follow. */
static void dialogue_in(struct dialogue *d, const char *line, int len)
{
	fprintf(stderr, "< %.*s\n", len, line);
	if (d->over || len < 3 || !isdigit((unsigned char)line[0]) ||
		!isdigit((unsigned char)line[1]) || !isdigit((unsigned char)line[2]))
		return;
	if (!d->more)
		buf_reset(&d->reply);
	for (int i = d->more ? 3 : 0; i < len && d->reply.len < REPLY_MAX; i++)
		buf_addc(&d->reply, i == 3 || iscntrl((unsigned char)line[i]) ? ' ' : line[i]);
	d->more = len > 3 && line[3] == '-';
	if (d->more)
		return;
	d->code = (line[0] - '0') * 100 + (line[1] - '0') * 10 + (line[2] - '0');
	dialogue_answer(d);
}

static int on_debug(CURL *curl, curl_infotype type, char *data, size_t size, void *arg)
{
	struct dialogue *d = arg;

	(void)curl;
	for (char *p = data, *end = data + size; p < end;) {
		char *nl = memchr(p, '\n', (size_t)(end - p));
		int len = (int)((nl ? nl : end) - p);

		while (len && p[len - 1] == '\r')
			len--;
		if (type == CURLINFO_HEADER_OUT)
			dialogue_out(d, p, len);
		else if (type == CURLINFO_HEADER_IN)
			dialogue_in(d, p, len);
		p = nl ? nl + 1 : end;
	}
	return 0;
}

static size_t on_read(char *buf, size_t size, size_t n, void *arg)
{
	struct dialogue *d = arg;
	size_t len = size * n < d->len ? size * n : d->len;

	memcpy(buf, d->text, len);
	d->text += len;
	d->len -= len;
	return len;
}

int smtp_tls_parse(const char *name, enum smtp_tls *ret, struct err *err)
{
	static const char *const names[] = {
		[SMTP_TLS_AUTO] = "auto",
		[SMTP_TLS_NONE] = "none",
		[SMTP_TLS_STARTTLS] = "starttls",
		[SMTP_TLS_IMPLICIT] = "implicit",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0) {
			*ret = (enum smtp_tls)i;
			return 0;
		}
	return err_set(err, EINVAL, "tls is auto, none, starttls or implicit, not \"%.50s\"", name);
}

/* Check the server's URL. *ret_where is HOST or HOST:PORT, for error texts. */
static int parse_url(
	const struct smtp_server *server, CURLU **ret, char **ret_where, struct err *err)
{
	cleanup(curl_url_cleanup) CURLU *url = curl_url();
	cleanup(curl_free) char *scheme = NULL, *host = NULL, *port = NULL, *user = NULL;

	if (curl_url_set(url, CURLUPART_URL, server->url, 0) != CURLUE_OK ||
		curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
		curl_url_get(url, CURLUPART_HOST, &host, 0) != CURLUE_OK ||
		(strcasecmp(scheme, "smtp") != 0 && strcasecmp(scheme, "smtps") != 0))
		return err_set(err, EINVAL,
			"the mail server must be given as smtp://HOST[:PORT] or "
			"smtps://HOST[:PORT]");
	if (curl_url_get(url, CURLUPART_USER, &user, 0) == CURLUE_OK)
		return err_set(err, EINVAL,
			"the login to the mail server belongs into user and "
			"password-file, not into its URL");
	if (server->tls == SMTP_TLS_IMPLICIT)
		curl_url_set(url, CURLUPART_SCHEME, "smtps", 0);
	if (curl_url_get(url, CURLUPART_PORT, &port, 0) == CURLUE_OK)
		*ret_where = xasprintf("%s:%s", host, port);
	else
		*ret_where = xstrdup(host);
	*ret = steal(&url);
	return 0;
}

/* The password is the file's first line. */
static int set_login(CURL *curl, const struct smtp_server *server, struct err *err)
{
	cleanup(buf_release) struct buf password = BUF_INIT;
	int r;

	if (!server->user)
		return 0;
	if (server->password_file) {
		r = file_read(server->password_file, 4096, &password, err);
		if (r < 0)
			return err_wrap(err, "the password for the mail server");
	}
	if (password.data)
		password.data[strcspn(password.data, "\r\n")] = '\0';
	curl_easy_setopt(curl, CURLOPT_USERNAME, server->user);
	curl_easy_setopt(curl, CURLOPT_PASSWORD, buf_str(&password));
	if (password.data)
		explicit_bzero(password.data, password.cap);
	return 0;
}

/*
 * Encryption that is only taken when offered protects from no one who can change the traffic, so
 * a certificate nobody vouches for is good enough there; it is checked in every other case.
 */
static void set_tls(CURL *curl, const struct smtp_server *server)
{
	bool opportunistic = server->tls == SMTP_TLS_AUTO && !server->user && !server->ca_file;
	long use = CURLUSESSL_ALL;

	if (server->tls == SMTP_TLS_NONE)
		use = CURLUSESSL_NONE;
	else if (server->tls == SMTP_TLS_AUTO && !server->user)
		use = CURLUSESSL_TRY;
	curl_easy_setopt(curl, CURLOPT_USE_SSL, use);
	if (server->ca_file)
		curl_easy_setopt(curl, CURLOPT_CAINFO, server->ca_file);
	if (opportunistic && strncasecmp(server->url, "smtps:", 6) != 0) {
		curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
		curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
	}
}

static void set_limits(CURL *curl, int64_t timeout_ms)
{
	long s;

	if (timeout_ms <= 0)
		timeout_ms = SMTP_TIMEOUT_MS;
	s = (long)((timeout_ms + 999) / 1000);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS,
		(long)(timeout_ms < CONNECT_TIMEOUT_MS ? timeout_ms : CONNECT_TIMEOUT_MS));
	curl_easy_setopt(curl, CURLOPT_SERVER_RESPONSE_TIMEOUT, s);
	curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
	curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, s);
}

/* Everybody was refused: say so, each with the server's words. */
static int refused_by_all(const struct dialogue *d, const char *where, struct err *err)
{
	cleanup(buf_release) struct buf list = BUF_INIT;
	bool later = false;

	for (size_t i = 0; i < d->n; i++) {
		buf_addf(&list, "%s%s: %s", i ? "; " : "", d->sent[i]->addr,
			d->sent[i]->reply ? d->sent[i]->reply : "no answer");
		later |= d->sent[i]->state == MAIL_LEFT;
	}
	return err_set(err, later ? EAGAIN : MAIL_REFUSED, "%s %s every recipient (%s)", where,
		later ? "put off or refused" : "refused", buf_str(&list));
}

/* Nobody has the message. Whose fault is it, and can it be better next time? */
static int failure(const struct dialogue *d, CURLcode rc, const char *where, const char *detail,
	struct err *err)
{
	if (d->phase == PHASE_RCPT && d->at == d->n && d->code)
		return refused_by_all(d, where, err);
	if (d->code / 100 == 5 || (rc == CURLE_LOGIN_DENIED && d->code / 100 != 4))
		return err_set(err, MAIL_REFUSED, "%s refused %s: %s", where,
			phase_words[rc == CURLE_LOGIN_DENIED ? PHASE_LOGIN : d->phase],
			d->code / 100 == 5 ? buf_str(&d->reply)
					   : "it offers no way to log in that is known here");
	if (d->code / 100 == 4)
		return err_set(err, EAGAIN, "%s put off %s: %s", where, phase_words[d->phase],
			buf_str(&d->reply));
	if (rc == CURLE_USE_SSL_FAILED)
		return err_set(err, EPROTO,
			"%s offers no encryption (STARTTLS), and nothing is "
			"sent in clear unless tls = none",
			where);
	if (rc == CURLE_PEER_FAILED_VERIFICATION)
		return err_set(
			err, EPROTO, "the certificate of %s is not trusted: %s", where, detail);
	if (rc == CURLE_OPERATION_TIMEDOUT)
		return err_set(err, ETIMEDOUT, "%s does not answer (%s)", where, detail);
	if (rc == CURLE_COULDNT_RESOLVE_HOST || rc == CURLE_COULDNT_CONNECT)
		return err_set(err, EHOSTUNREACH, "cannot reach %s: %s", where, detail);
	return err_set(err, EIO, "the connection to %s failed at %s: %s", where,
		phase_words[d->phase], detail);
}

/* Note whom to ask for, in the order in which curl will. */
static struct curl_slist *dialogue_open(struct dialogue *d, struct mail_rcpts *rcpts)
{
	struct curl_slist *list = NULL;

	d->sent = xcalloc(rcpts->n, sizeof(struct mail_rcpt *));
	d->accepted = xcalloc(rcpts->n, sizeof(bool));
	for (size_t i = 0; i < rcpts->n; i++) {
		if (rcpts->v[i].state != MAIL_LEFT)
			continue;
		d->sent[d->n++] = &rcpts->v[i];
		list = curl_slist_append(list, rcpts->v[i].addr);
	}
	return list;
}

static int perform(CURL *curl, struct dialogue *d, const char *where, struct err *err)
{
	char detail[CURL_ERROR_SIZE] = "";
	CURLcode rc;

	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "smtp,smtps");
	curl_easy_setopt(curl, CURLOPT_PROXY, "");
	curl_easy_setopt(curl, CURLOPT_MAIL_RCPT_ALLLOWFAILS, 1L);
	curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
	curl_easy_setopt(curl, CURLOPT_INFILESIZE_LARGE, (curl_off_t)d->len);
	curl_easy_setopt(curl, CURLOPT_READFUNCTION, on_read);
	curl_easy_setopt(curl, CURLOPT_READDATA, d);
	curl_easy_setopt(curl, CURLOPT_DEBUGFUNCTION, on_debug);
	curl_easy_setopt(curl, CURLOPT_DEBUGDATA, d);
	curl_easy_setopt(curl, CURLOPT_VERBOSE, 1L);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, detail);
	rc = curl_easy_perform(curl);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, NULL);
	if (!d->taken)
		return failure(d, rc, where, *detail ? detail : curl_easy_strerror(rc), err);
	for (size_t i = 0; i < d->n; i++)
		if (d->accepted[i])
			d->sent[i]->state = MAIL_TAKEN;
	return 0;
}

/*
 * The goodbye goes out when curl closes the connection. A server that never answers it must not
 * hold up the step, so there is nothing more to be heard from here on.
 */
static void stop_listening(CURL *curl)
{
	curl_socket_t fd = CURL_SOCKET_BAD;

	if (curl_easy_getinfo(curl, CURLINFO_ACTIVESOCKET, &fd) == CURLE_OK &&
		fd != CURL_SOCKET_BAD)
		shutdown(fd, SHUT_RD);
}

int smtp_send(const struct smtp_server *server, const char *from, struct mail_rcpts *rcpts,
	const struct buf *text, mail_taken_fn taken, void *arg, struct err *err)
{
	cleanup(dialogue_release) struct dialogue d = {.text = buf_str(text), .len = text->len};
	cleanup(curl_slist_free_all) struct curl_slist *list = NULL;
	cleanup(curl_url_cleanup) CURLU *url = NULL;
	cleanup(free) char *where = NULL;
	cleanup(curl_easy_cleanup) CURL *curl = NULL;
	int r;

	curl_global_init(CURL_GLOBAL_DEFAULT);
	r = parse_url(server, &url, &where, err);
	if (r < 0)
		return r;
	curl = curl_easy_init();
	if (!curl)
		return err_set(err, EIO, "libcurl does not start");
	list = dialogue_open(&d, rcpts);
	curl_easy_setopt(curl, CURLOPT_CURLU, url);
	curl_easy_setopt(curl, CURLOPT_MAIL_FROM, from);
	curl_easy_setopt(curl, CURLOPT_MAIL_RCPT, list);
	set_limits(curl, server->timeout_ms);
	set_tls(curl, server);
	r = set_login(curl, server, err);
	if (r == 0)
		r = perform(curl, &d, where, err);
	if (r < 0)
		return r;
	taken(arg, buf_str(&d.reply));
	stop_listening(curl);
	return 0;
}
