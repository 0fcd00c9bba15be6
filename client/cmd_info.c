/* status and benchmarks: the daemon and what it offers. */

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "client/client.h"
#include "client/format.h"
#include "client/table.h"
#include "base/banned.h"

static void fact(struct client *client, const char *name, const char *text)
{
	cleanup(buf_release) struct buf line = BUF_INIT;

	buf_addf(&line, "%-12s %s", name, text);
	term_line(&client->term, STYLE_PLAIN, buf_str(&line));
}

static void job_counts(struct client *client, const json_t *jobs)
{
	cleanup(buf_release) struct buf line = BUF_INIT;
	const char *state;
	json_t *count;

	json_object_foreach ((json_t *)jobs, state, count)
		if (json_integer_value(count))
			buf_addf(&line, "%s%lld %s", line.len ? ", " : "",
				(long long)json_integer_value(count), state);
	fact(client, "jobs", line.len ? buf_str(&line) : "none");
}

int cmd_status(struct client *client, struct err *err)
{
	cleanup(json_decref) json_t *s = NULL;
	cleanup(buf_release) struct buf line = BUF_INIT;
	cleanup(free) char *uptime = NULL;
	int r = client_call(client, "status", NULL, &s, err);

	if (r < 0)
		return r;
	if (client->options.json) {
		client_print_json(client, s);
		return CLIENT_OK;
	}
	uptime = format_duration(json_opt_int(s, "uptime_s", 0) * 1000);
	buf_addf(&line, "kbisectd %s on %s, process %lld, up %s", json_opt_str(s, "version", "?"),
		json_opt_str(s, "host", "?"), (long long)json_opt_int(s, "pid", 0), uptime);
	fact(client, "daemon", buf_str(&line));
	job_counts(client, json_object_get(s, "jobs"));
	buf_reset(&line);
	buf_addf(&line, "%lld", (long long)json_opt_int(s, "slots", 0));
	fact(client, "slots", buf_str(&line));
	fact(client, "libvirt", json_opt_str(s, "uri", "?"));
	fact(client, "state", json_opt_str(s, "state_dir", "?"));
	buf_reset(&line);
	buf_addf(&line, "%lld", (long long)json_opt_int(s, "connections", 0));
	fact(client, "connections", buf_str(&line));
	return CLIENT_OK;
}

static const struct table_column columns[] = {
	{"BENCHMARK", 0, 12},
	{"METRIC", 0, 12},
	{"UNIT", 0, 8},
	{"BETTER", 0, 0},
	{"DESCRIPTION", 0, 20},
	{NULL, 0, 0},
};

/* A row for each metric; the benchmark's name and description stand on the first. */
static void add_benchmark(struct table *table, const json_t *b)
{
	json_t *metrics = json_object_get(b, "metrics"), *metric;
	const char *error = json_opt_str(b, "error", NULL);
	const char *description = json_opt_str(b, "description", "");
	size_t i;

	if (error || !json_array_size(metrics)) {
		table_cell(table, STYLE_PLAIN, json_opt_str(b, "name", NULL));
		for (int k = 0; k < 3; k++)
			table_cell(table, STYLE_PLAIN, NULL);
		table_cell(table, error ? STYLE_BAD : STYLE_PLAIN,
			error ? "cannot be used, see below" : description);
		return;
	}
	json_array_foreach (metrics, i, metric) {
		table_cell(table, STYLE_PLAIN, i ? "" : json_opt_str(b, "name", NULL));
		table_cell(table, STYLE_PLAIN, json_opt_str(metric, "name", NULL));
		table_cell(table, STYLE_PLAIN, json_opt_str(metric, "unit", NULL));
		table_cell(table, STYLE_PLAIN, json_opt_str(metric, "better", NULL));
		table_cell(table, STYLE_PLAIN, i ? "" : description);
	}
}

/* What is wrong with the files that cannot be used, each sentence whole. */
static void print_errors(struct client *client, const json_t *benchmarks)
{
	json_t *benchmark;
	size_t i;

	json_array_foreach (benchmarks, i, benchmark) {
		const char *error = json_opt_str(benchmark, "error", NULL);

		if (error)
			term_line(&client->term, STYLE_BAD, error);
	}
}

int cmd_benchmarks(struct client *client, struct err *err)
{
	cleanup(json_decref) json_t *answer = NULL;
	cleanup(table_release) struct table table = {.columns = columns};
	json_t *benchmark;
	size_t i;
	int r = client_call(client, "benchmarks", NULL, &answer, err);

	if (r < 0)
		return r;
	if (client->options.json) {
		client_print_json(client, answer);
		return CLIENT_OK;
	}
	json_array_foreach (json_object_get(answer, "benchmarks"), i, benchmark)
		add_benchmark(&table, benchmark);
	if (table.n)
		table_print(&table, &client->term, term_columns());
	print_errors(client, json_object_get(answer, "benchmarks"));
	return CLIENT_OK;
}
