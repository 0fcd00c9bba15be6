#include "boot/trial.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "boot/caplog.h"
#include "base/banned.h"

#define LOG_MAX (4 << 20)
#define OUTPUT_MAX (16 << 20) /* of one iteration, in memory */
#define QUOTE_MAX 300

/* One running trial. */
struct work {
	struct guest *guest;
	const struct trial_spec *spec;
	struct caplog *log;
	struct trial *ret;
	int timeout_ms;
};

static void on_output(void *arg, const char *data, size_t len)
{
	caplog_add(arg, data, len);
}

/* The last lines of what was printed, in one line: that is where programs complain. */
static char *last_words(const struct buf *output)
{
	const char *text = buf_str(output);
	size_t len = output->len, from;
	char *quote;

	while (len && (text[len - 1] == '\n' || text[len - 1] == ' '))
		len--;
	from = len > QUOTE_MAX ? len - QUOTE_MAX : 0;
	quote = xstrndup(text + from, len - from);
	for (char *p = quote; *p; p++)
		if (*p == '\n' || *p == '\r')
			*p = ' ';
	return quote;
}

static void fail(struct trial *ret, enum outcome outcome, char *detail)
{
	ret->outcome = outcome;
	free(ret->detail);
	ret->detail = detail;
}

static void fail_status(struct work *w, const char *what, int status, const struct buf *output)
{
	cleanup(free) char *quote = last_words(output);

	fail(w->ret, OUTCOME_TEST_FAILED,
		*quote ? xasprintf("%s: exit status %d; it printed: %s", what, status, quote)
		       : xasprintf("%s: exit status %d; it printed nothing", what, status));
}

/*
 * Run one command of the benchmark. 0 with *ret_done = 0 when the trial is over because of it;
 * negative when the connection is.
 */
static int run_command(struct work *w, const char *what, const char *command, struct buf *output,
	int *ret_done, struct err *err)
{
	int status, r;

	r = guest_exec(w->guest, command, w->timeout_ms, OUTPUT_MAX, w->spec->interrupt_fd,
		on_output, w->log, output, &status, err);
	*ret_done = 0;
	if (r == -ETIMEDOUT) {
		fail(w->ret, OUTCOME_TEST_TIMEOUT,
			xasprintf("%s: still running after %d s", what, w->timeout_ms / 1000));
		return 0;
	}
	if (r == -EFBIG) {
		fail(w->ret, OUTCOME_TEST_FAILED,
			xasprintf("%s: it printed more than %d MiB", what, OUTPUT_MAX >> 20));
		return 0;
	}
	if (r < 0)
		return err_wrap(err, "%s", what);
	if (!benchmark_status_ok(w->spec->benchmark, status))
		fail_status(w, what, status, output);
	else
		*ret_done = 1;
	return 0;
}

/* setup and teardown: a command that may be missing and whose output is of no interest. */
static int run_aside(
	struct work *w, const char *what, const char *command, int *ret_done, struct err *err)
{
	cleanup(buf_release) struct buf output = BUF_INIT;

	*ret_done = 1;
	if (!command)
		return 0;
	caplog_addf(w->log, "== %s\n", what);
	return run_command(w, what, command, &output, ret_done, err);
}

/* One iteration; the warm-up's numbers are not read. */
static int run_iteration(
	struct work *w, const char *command, int64_t number, int *ret_done, struct err *err)
{
	cleanup(buf_release) struct buf output = BUF_INIT;
	const struct benchmark *b = w->spec->benchmark;
	struct err why;
	int r;

	if (number > 0)
		caplog_addf(w->log, "== iteration %lld\n", (long long)number);
	else
		caplog_addf(w->log, "== warm-up\n");
	r = run_command(w, b->name, command, &output, ret_done, err);
	if (r < 0 || !*ret_done || number <= 0)
		return r;
	r = benchmark_extract(b, w->spec->metric, buf_str(&output), output.len,
		w->ret->values + w->ret->n * w->ret->n_metrics, &why);
	if (r < 0) {
		*ret_done = 0;
		fail(w->ret, OUTCOME_NO_METRIC, xstrdup(why.msg));
		return 0;
	}
	w->ret->n++;
	return 0;
}

static int run_all(struct work *w, struct err *err)
{
	const struct benchmark *b = w->spec->benchmark;
	int64_t n = w->spec->iterations ? w->spec->iterations : b->iterations;
	cleanup(free) char *command = NULL;
	struct err why;
	int r, go;

	if (benchmark_command(b, w->spec->args, &command, &why) < 0) {
		fail(w->ret, OUTCOME_TEST_FAILED, xstrdup(why.msg));
		return 0;
	}
	w->ret->n_metrics = b->n_metrics;
	w->ret->room = (size_t)n;
	w->ret->values = xcalloc((size_t)n * b->n_metrics, sizeof(*w->ret->values));
	r = run_aside(w, "setup", b->setup, &go, err);
	for (int64_t i = 1 - b->warmup; i <= n && r == 0 && go; i++)
		r = run_iteration(w, command, i, &go, err);
	if (r == 0 && go)
		r = run_aside(w, "teardown", b->teardown, &go, err);
	return r;
}

int trial_run(
	struct guest *guest, const struct trial_spec *spec, struct trial *ret, struct err *err)
{
	cleanup(caplog_close) struct caplog *log = NULL;
	int64_t timeout = spec->timeout_ms ? spec->timeout_ms : spec->benchmark->timeout;
	struct work w = {guest, spec, NULL, ret, timeout > INT_MAX ? INT_MAX : (int)timeout};
	int r, closed;

	r = caplog_open(spec->log, LOG_MAX, &log, err);
	if (r < 0)
		return r;
	w.log = log;
	ret->outcome = OUTCOME_OK;
	r = run_all(&w, err);
	closed = caplog_part(log, NULL, r < 0 ? NULL : err);
	return r < 0 ? r : closed;
}

/* How many iterations have a smaller value, or the same and came earlier. */
static size_t rank_of(const struct trial *t, size_t metric, size_t i)
{
	const struct parse_value *v = &t->values[i * t->n_metrics + metric];
	size_t rank = 0;

	for (size_t k = 0; k < t->n; k++) {
		const struct parse_value *o = &t->values[k * t->n_metrics + metric];

		if (o->text && (o->value < v->value || (o->value == v->value && k < i)))
			rank++;
	}
	return rank;
}

int trial_median(const struct trial *t, size_t metric)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++)
		n += t->values[i * t->n_metrics + metric].text != NULL;
	for (size_t i = 0; i < t->n; i++)
		if (t->values[i * t->n_metrics + metric].text &&
			rank_of(t, metric, i) == (n - 1) / 2)
			return (int)i;
	return -1;
}

void trial_release(struct trial *t)
{
	for (size_t i = 0; i < t->room; i++)
		benchmark_values_release(t->values + i * t->n_metrics, t->n_metrics);
	free(t->values);
	free(t->detail);
	*t = (struct trial){0};
}
