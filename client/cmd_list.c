/* list: the jobs in a table. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "client/client.h"
#include "client/format.h"
#include "client/table.h"
#include "base/banned.h"

#define LIST_LIMIT 20

static const struct table_column columns[] = {
	{"JOB", 1, 0},
	{"NAME", 0, 12},
	{"STATE", 0, 0},
	{"OWNER", 0, 6},
	{"SUBMITTED", 0, 0},
	{"TOOK", 1, 0},
	{NULL, 0, 0},
};

static void add_job(struct table *table, const json_t *job, int64_t now)
{
	const char *state = json_opt_str(job, "state", "?");
	const char *result = json_opt_str(job, "result", NULL);
	int64_t started = json_opt_int(job, "started", 0), ended = json_opt_int(job, "ended", 0);
	cleanup(free) char *id = format_value(json_object_get(job, "job"));
	cleanup(free) char *ago = format_ago(json_opt_int(job, "submitted", 0), now);
	cleanup(free) char *took = format_duration((ended ? ended : now) - started);

	/* Of a job that is done, the answer is what one looks for. */
	if (strcmp(state, "done") == 0 && result && *result)
		state = result;
	table_cell(table, STYLE_PLAIN, id);
	table_cell(table, STYLE_PLAIN, json_opt_str(job, "name", NULL));
	table_cell(table, term_style(state), state);
	table_cell(table, STYLE_PLAIN, json_opt_str(job, "owner", NULL));
	table_cell(table, STYLE_PLAIN, ago);
	table_cell(table, STYLE_PLAIN, started ? took : NULL);
}

static int make_params(
	const struct options *options, json_t *params, int64_t *ret_limit, struct err *err)
{
	int64_t limit = options->all ? 0 : LIST_LIMIT;

	if (options->limit && format_parse_id(options->limit, &limit) < 0)
		return err_set(err, EINVAL, "--limit needs a number above 0, found \"%s\"",
			options->limit);
	json_set_str(params, "state", options->state);
	json_set_int(params, "limit", limit);
	*ret_limit = limit;
	return 0;
}

int cmd_list(struct client *client, struct err *err)
{
	cleanup(json_decref) json_t *answer = NULL, *params = json_object();
	cleanup(table_release) struct table table = {.columns = columns};
	int64_t limit = 0, now = clock_wall_ms();
	json_t *jobs, *job;
	size_t i;
	int r;

	r = make_params(&client->options, params, &limit, err);
	if (r == 0)
		r = client_call(client, "list", json_incref(params), &answer, err);
	if (r < 0)
		return r;
	if (client->options.json) {
		client_print_json(client, answer);
		return CLIENT_OK;
	}
	jobs = json_object_get(answer, "jobs");
	json_array_foreach (jobs, i, job)
		add_job(&table, job, now);
	if (table.n)
		table_print(&table, &client->term, term_columns());
	else if (client->term.live)
		fputs("no such jobs\n", stderr);
	if (client->term.live && limit && (int64_t)json_array_size(jobs) == limit &&
		!client->options.limit)
		fputs("(the newest 20; --all shows the rest)\n", stderr);
	return CLIENT_OK;
}
