/* show: one job with its commits, boots and verdicts. */

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "client/client.h"
#include "client/format.h"
#include "client/table.h"
#include "base/banned.h"

#define FACT "%-10s "

static void fact(struct client *client, const char *name, enum style style, const char *text)
{
	cleanup(buf_release) struct buf clean = BUF_INIT;

	if (!text || !*text)
		return;
	term_clean(text, 0, &clean);
	printf(FACT "%s%s%s\n", name, term_on(&client->term, style), buf_str(&clean),
		term_off(&client->term, style));
}

/* "v6.1 (subject)" of a {label, subject}; "" when there is none. Free it. */
static char *commit_text(const json_t *commit)
{
	const char *label = json_opt_str(commit, "label", "");
	const char *subject = json_opt_str(commit, "subject", "");

	return *subject ? xasprintf("%s (%s)", label, subject) : xstrdup(label);
}

static void show_times(struct client *client, const json_t *job)
{
	int64_t now = clock_wall_ms(), ended = json_opt_int(job, "ended", 0);
	int64_t submitted = json_opt_int(job, "submitted", 0);
	int64_t started = json_opt_int(job, "started", 0);
	cleanup(free) char *date = format_time(submitted), *ago = format_ago(submitted, now);
	cleanup(free) char *start = format_ago(started, now), *end = format_ago(ended, now);
	cleanup(free) char *took = format_duration((ended ? ended : now) - started);
	cleanup(buf_release) struct buf line = BUF_INIT;

	buf_addf(&line, "%s (%s)", date, ago);
	fact(client, "submitted", STYLE_PLAIN, buf_str(&line));
	if (!started)
		return;
	buf_reset(&line);
	if (ended)
		buf_addf(&line, "%s, took %s", end, took);
	else
		buf_addf(&line, "started %s, running for %s", start, took);
	fact(client, ended ? "ended" : "time", STYLE_PLAIN, buf_str(&line));
}

/* What was asked: the range, the benchmark, the threshold. */
static void show_question(struct client *client, const json_t *job)
{
	cleanup(free) char *good = commit_text(json_object_get(job, "good"));
	cleanup(free) char *bad = commit_text(json_object_get(job, "bad"));
	cleanup(free) char *threshold = format_value(json_object_get(job, "threshold"));
	const char *unit = json_opt_str(job, "unit", "");
	cleanup(buf_release) struct buf line = BUF_INIT;

	fact(client, "good", STYLE_PLAIN, good);
	fact(client, "bad", STYLE_PLAIN, bad);
	buf_addf(&line, "%lld in the range", (long long)json_opt_int(job, "commits", 0));
	if (json_is_integer(json_object_get(job, "steps_left")))
		buf_addf(&line, ", about %lld more to test",
			(long long)json_opt_int(job, "steps_left", 0));
	fact(client, "commits", STYLE_PLAIN, buf_str(&line));
	buf_reset(&line);
	buf_addf(&line, "%s, %s%s%s%s, %s is better", json_opt_str(job, "benchmark", "?"),
		json_opt_str(job, "metric", "?"), *unit ? " (" : "", unit, *unit ? ")" : "",
		json_opt_str(job, "better", "?"));
	fact(client, "benchmark", STYLE_PLAIN, buf_str(&line));
	fact(client, "threshold", STYLE_PLAIN,
		json_is_number(json_object_get(job, "threshold"))
			? threshold
			: "from the endpoints, when they are measured");
}

static void show_mail(struct client *client, const json_t *mail)
{
	const char *state = json_opt_str(mail, "state", ""),
		   *error = json_opt_str(mail, "error", "");
	cleanup(buf_release) struct buf line = BUF_INIT;

	if (!*state)
		return;
	buf_adds(&line, state);
	if (*error)
		buf_addf(&line, " (try %lld: %s)", (long long)json_opt_int(mail, "attempts", 0),
			error);
	fact(client, "mail", term_style(state), buf_str(&line));
}

static void show_head(struct client *client, const json_t *job)
{
	const char *state = json_opt_str(job, "state", "?"),
		   *result = json_opt_str(job, "result", "");
	cleanup(free) char *id = format_value(json_object_get(job, "job"));
	cleanup(free) char *culprit = commit_text(json_object_get(job, "culprit"));
	cleanup(buf_release) struct buf line = BUF_INIT;

	buf_addf(&line, "%s  %s", id, json_opt_str(job, "name", ""));
	fact(client, "job", STYLE_BOLD, buf_str(&line));
	buf_reset(&line);
	buf_addf(&line, "%s%s%s", state, *result ? ": " : "", result);
	fact(client, "state", term_style(*result ? result : state), buf_str(&line));
	fact(client, "culprit", STYLE_BOLD, culprit);
	fact(client, "reason", STYLE_PLAIN, json_opt_str(job, "reason", ""));
	fact(client, "now", STYLE_PLAIN, json_opt_str(job, "now", ""));
	buf_reset(&line);
	buf_addf(&line, "%s, on %s", json_opt_str(job, "owner", "?"),
		json_opt_str(job, "host", "?"));
	fact(client, "owner", STYLE_PLAIN, buf_str(&line));
	show_times(client, job);
	show_question(client, job);
	show_mail(client, json_object_get(job, "mail"));
}

static const struct table_column commit_columns[] = {
	{"COMMIT", 0, 12},
	{"VERDICT", 0, 0},
	{"MEDIAN", 1, 0},
	{"BUILD", 1, 0},
	{"RUNS", 1, 0},
	{"SUBJECT", 0, 16},
	{NULL, 0, 0},
};

static const struct table_column run_columns[] = {
	{"RUN", 1, 0},
	{"COMMIT", 0, 12},
	{"OUTCOME", 0, 0},
	{"VALUE", 1, 0},
	{"BOOT", 1, 0},
	{"TEST", 1, 0},
	{"ACCEL", 0, 0},
	{"TIMING", 0, 0},
	{"", 0, 7},
	{NULL, 0, 0},
};

static void add_commit(struct table *table, const json_t *commit)
{
	const char *verdict = json_opt_str(commit, "verdict", "");
	const char *build = json_opt_str(commit, "build", "");
	cleanup(free) char *median = format_value(json_object_get(commit, "median"));
	cleanup(free) char *took = format_duration(json_opt_int(commit, "build_ms", 0));

	if (strcmp(verdict, "none") == 0)
		verdict = "";
	table_cell(table, STYLE_PLAIN, json_opt_str(commit, "label", NULL));
	table_cell(table, term_style(verdict), *verdict ? verdict : NULL);
	table_cell(table, STYLE_PLAIN, median);
	if (strcmp(build, "failed") == 0)
		table_cell(table, STYLE_BAD, "failed");
	else
		table_cell(table, STYLE_PLAIN, strcmp(build, "ok") == 0 ? took : NULL);
	table_cellf(table, STYLE_PLAIN, "%zu", json_array_size(json_object_get(commit, "runs")));
	table_cell(table, STYLE_PLAIN, json_opt_str(commit, "subject", NULL));
}

static void add_run(struct table *table, const json_t *commit, const json_t *run)
{
	const char *outcome = json_opt_str(run, "outcome", "");
	cleanup(free) char *id = format_value(json_object_get(run, "run"));
	cleanup(free) char *value = format_value(json_object_get(run, "value"));
	cleanup(free) char *boot = format_duration(json_opt_int(run, "boot_ms", 0));
	cleanup(free) char *test = format_duration(json_opt_int(run, "test_ms", 0));

	table_cell(table, STYLE_PLAIN, id);
	table_cell(table, STYLE_PLAIN, json_opt_str(commit, "label", NULL));
	table_cell(table, term_style(outcome), *outcome ? outcome : "running");
	table_cell(table, STYLE_PLAIN, value);
	table_cell(table, STYLE_PLAIN, json_opt_int(run, "boot_ms", 0) ? boot : NULL);
	table_cell(table, STYLE_PLAIN, json_opt_int(run, "test_ms", 0) ? test : NULL);
	table_cell(table, STYLE_PLAIN, json_opt_str(run, "accel", NULL));
	table_cell(table, STYLE_PLAIN, json_opt_str(run, "timing", NULL));
	table_cell(table, STYLE_SKIP, json_opt_bool(run, "retired", 0) ? "retired" : "");
}

/* "label: what: detail (where)", as far as each is there. */
static void note(struct client *client, const char *label, const char *what, const char *detail,
	const char *where)
{
	cleanup(buf_release) struct buf line = BUF_INIT;

	buf_addf(&line, "%s: %s", label, what);
	if (*detail)
		buf_addf(&line, "%s%s", *what ? ": " : "", detail);
	if (*where)
		buf_addf(&line, " (%s)", where);
	term_line(&client->term, STYLE_PLAIN, buf_str(&line));
}

/* What went wrong with a commit and its boots, with the folder or file to look into. */
static void show_notes(struct client *client, const json_t *commit)
{
	const char *label = json_opt_str(commit, "label", "?");
	const char *reason = json_opt_str(commit, "reason", "");
	json_t *run;
	size_t i;

	if (strcmp(json_opt_str(commit, "build", ""), "failed") == 0)
		note(client, label, "does not build", json_opt_str(commit, "build_error", ""),
			json_opt_str(commit, "build_log", ""));
	else if (*reason)
		note(client, label, "", reason, "");
	json_array_foreach (json_object_get(commit, "runs"), i, run) {
		const char *outcome = json_opt_str(run, "outcome", "ok");
		cleanup(free) char *id = format_value(json_object_get(run, "run"));
		cleanup(free) char *name = xasprintf("run %s", id);

		if (strcmp(outcome, "ok") != 0)
			note(client, name, outcome, json_opt_str(run, "detail", ""),
				json_opt_str(run, "dir", ""));
	}
}

/* A blank line and the table, unless it is empty. */
static void print_part(struct client *client, const struct table *table)
{
	if (!table->n)
		return;
	putchar('\n');
	table_print(table, &client->term, term_columns());
}

static void show_commits(struct client *client, const json_t *commits)
{
	cleanup(table_release) struct table table = {.columns = commit_columns};
	cleanup(table_release) struct table runs = {.columns = run_columns};
	json_t *commit, *run;
	size_t i, k;

	json_array_foreach (commits, i, commit) {
		add_commit(&table, commit);
		json_array_foreach (json_object_get(commit, "runs"), k, run)
			add_run(&runs, commit, run);
	}
	print_part(client, &table);
	print_part(client, &runs);
	if (table.n)
		putchar('\n');
	json_array_foreach (commits, i, commit)
		show_notes(client, commit);
}

int cmd_show(struct client *client, struct err *err)
{
	cleanup(json_decref) json_t *job = NULL;
	int64_t id;
	int r;

	r = client_job(client, client->options.args[0], &id, err);
	if (r < 0)
		return r;
	r = client_call(client, "show", client_job_params(client, id), &job, err);
	if (r < 0)
		return r;
	if (client->options.json) {
		client_print_json(client, job);
		return CLIENT_OK;
	}
	show_head(client, job);
	show_commits(client, json_object_get(job, "commit_list"));
	return CLIENT_OK;
}
