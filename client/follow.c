/* Following a job: the log as it grows, a status line, and the end; restarts are bridged. */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "client/client.h"
#include "client/format.h"
#include "base/banned.h"

#define RECONNECT_MS 30000     /* how long a daemon may be away */
#define RECONNECT_PAUSE_MS 100 /* between two tries */
#define REDRAW_MS 1000

struct follow {
	struct client *client;
	int64_t job;
	int quiet;
	int64_t last;	 /* the newest entry that was printed: none is printed twice */
	char *progress;	 /* what runs now; NULL = nothing known */
	double fraction; /* of it that is done; below 0 = not known */
	int64_t since;	 /* when progress was said last, monotonic ms */
	int64_t lost_at; /* when the connection went away; 0 = it stands */
	int ended;
	char *state, *result, *reason;
};

/* What to say when a signal ends the following: prepared, since a handler cannot format. */
static char farewell[128];

/* Erase the status line and die of the signal, as a shell expects; the job goes on. */
static void on_interrupt(int sig)
{
	static const char erase[] = "\r\033[K";
	ssize_t ignored = write(STDOUT_FILENO, erase, sizeof(erase) - 1);

	ignored += write(STDERR_FILENO, farewell, strlen(farewell));
	(void)ignored;
	signal(sig, SIG_DFL);
	raise(sig);
}

/* In a pipe there is no status line, and dying is all there is to do. */
static void catch_signals(const struct follow *f)
{
	struct sigaction sa = {.sa_handler = on_interrupt};

	if (!f->client->term.live)
		return;
	snprintf(farewell, sizeof(farewell),
		"kbctl: job %lld goes on; `kbctl log -f %lld` follows it again\n",
		(long long)f->job, (long long)f->job);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
}

static void draw(struct follow *f)
{
	cleanup(buf_release) struct buf line = BUF_INIT;
	int64_t quiet = clock_mono_ms() - f->since;

	if (f->lost_at) {
		term_status(&f->client->term, "the daemon is away, waiting for it ...");
		return;
	}
	if (!f->progress) {
		term_status_clear(&f->client->term);
		return;
	}
	buf_adds(&line, f->progress);
	if (f->fraction >= 0)
		buf_addf(&line, " %d%%", (int)(f->fraction * 100));
	/* The text carries its own clock; say it only when nothing has been heard for long. */
	if (quiet >= 5 * REDRAW_MS) {
		cleanup(free) char *text = format_duration(quiet);

		buf_addf(&line, " (said %s ago)", text);
	}
	term_status(&f->client->term, buf_str(&line));
}

static void on_entry(struct follow *f, const json_t *entry)
{
	int64_t id = json_opt_int(entry, "id", 0);

	if (id && id <= f->last)
		return;
	if (id)
		f->last = id;
	if (!f->quiet)
		client_print_entry(f->client, entry);
}

static void on_progress(struct follow *f, const json_t *params)
{
	const char *text = json_opt_str(params, "text", "");

	free(f->progress);
	f->progress = *text ? xstrdup(text) : NULL;
	f->fraction = json_opt_real(params, "fraction", -1);
	if (!(f->fraction >= 0 && f->fraction <= 1))
		f->fraction = -1;
	f->since = clock_mono_ms();
}

static void on_end(struct follow *f, const json_t *params)
{
	f->ended = 1;
	free(f->state);
	free(f->result);
	free(f->reason);
	f->state = xstrdup(json_opt_str(params, "state", ""));
	f->result = xstrdup(json_opt_str(params, "result", ""));
	f->reason = xstrdup(json_opt_str(params, "reason", ""));
}

static const struct {
	const char *method;
	void (*fn)(struct follow *f, const json_t *params);
} notifications[] = {
	{"log", on_entry},
	{"progress", on_progress},
	{"end", on_end},
};

/* Act on a notification; those of a later protocol are passed over. */
static void dispatch(struct follow *f, const json_t *msg)
{
	const char *method = json_opt_str(msg, "method", "");

	f->lost_at = 0;
	for (size_t i = 0; i < sizeof(notifications) / sizeof(notifications[0]); i++)
		if (strcmp(notifications[i].method, method) == 0)
			notifications[i].fn(f, json_object_get(msg, "params"));
}

/* Ask for the log from the last entry on, and print what there is already. */
static int subscribe(struct follow *f, struct err *err)
{
	cleanup(json_decref) json_t *answer = NULL;
	json_t *params = json_object(), *entry;
	size_t i;
	int r;

	json_set_int(params, "job", f->job);
	json_set_int(params, "since", f->last);
	json_set_bool(params, "follow", 1);
	r = client_call(f->client, "log", params, &answer, err);
	if (r < 0)
		return r;
	json_array_foreach (json_object_get(answer, "entries"), i, entry)
		on_entry(f, entry);
	/* It has ended already, and the answer says how: nothing more will come. */
	if (client_result_exit(json_opt_str(answer, "state", ""), "") >= 0)
		on_end(f, answer);
	return 0;
}

/* Take notifications until the job ends. -EPIPE: nobody reads our output any more. */
static int listen_to(struct follow *f, struct err *err)
{
	while (!f->ended) {
		cleanup(json_decref) json_t *msg = NULL;
		int timeout = f->client->term.live ? REDRAW_MS : -1, r;

		fflush(stdout);
		if (f->client->term.live)
			draw(f);
		r = rpc_next(f->client->rpc, timeout, STDOUT_FILENO, &msg, err);
		if (r < 0 && r != -EAGAIN)
			return r;
		if (r == 0)
			dispatch(f, msg);
	}
	return 0;
}

/* Drop the connection and wait a little. Fails with the error at hand when it has been too long. */
static int prepare_retry(struct follow *f, const struct err *err)
{
	struct timespec pause = {0, RECONNECT_PAUSE_MS * 1000000L};

	rpc_free(f->client->rpc);
	f->client->rpc = NULL;
	free(f->progress);
	f->progress = NULL;
	if (!f->lost_at)
		f->lost_at = clock_mono_ms();
	if (clock_mono_ms() - f->lost_at >= RECONNECT_MS)
		return -err->code;
	fflush(stdout);
	draw(f);
	nanosleep(&pause, NULL);
	return 0;
}

/* Subscribe and listen, again and again while the daemon is only away for a while. */
static int follow_to_end(struct follow *f, struct err *err)
{
	int r, subscribed = 0;

	for (;;) {
		r = subscribe(f, err);
		if (r == 0) {
			subscribed = 1;
			r = listen_to(f, err);
		}
		if (r == 0 || !subscribed || r != -ENOTCONN)
			return r;
		r = prepare_retry(f, err);
		if (r < 0)
			return r;
	}
}

/* The last word: how it ended, as a line or as JSON. */
static void print_result(struct follow *f)
{
	const char *word = *f->result ? f->result : f->state;
	cleanup(buf_release) struct buf line = BUF_INIT;

	if (f->client->options.json) {
		cleanup(json_decref) json_t *end = json_object();

		json_set_int(end, "job", f->job);
		json_set_str(end, "state", f->state);
		json_set_str(end, "result", *f->result ? f->result : NULL);
		json_set_str(end, "reason", *f->reason ? f->reason : NULL);
		client_print_json(f->client, end);
		return;
	}
	buf_addf(&line, "%s%s%s", word, *f->reason ? ": " : "", f->reason);
	term_line(&f->client->term, term_style(word), buf_str(&line));
}

int client_follow(struct client *client, int64_t job, int quiet, int result, struct err *err)
{
	struct follow f = {.client = client, .job = job, .quiet = quiet, .fraction = -1};
	int r;

	catch_signals(&f);
	r = follow_to_end(&f, err);
	term_status_clear(&client->term);
	if (r == 0) {
		if (result)
			print_result(&f);
		r = client_result_exit(f.state, f.result);
		if (r < 0)
			r = err_set(err, EPROTO,
				"the daemon ended the log without saying how the "
				"job ended");
	} else if (r == -EPIPE) {
		r = CLIENT_OUTPUT;
	}
	free(f.progress);
	free(f.state);
	free(f.result);
	free(f.reason);
	return r;
}
