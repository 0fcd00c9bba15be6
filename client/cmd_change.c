/* cancel, hold, resume, retry, retire, mark: what changes a job. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "client/client.h"
#include "client/format.h"
#include "base/banned.h"

/* Print the answer as JSON, or else the line. */
static int confirm(struct client *client, const json_t *answer, const struct buf *line)
{
	if (client->options.json)
		client_print_json(client, answer);
	else
		term_line(&client->term, STYLE_PLAIN, buf_str(line));
	return CLIENT_OK;
}

int cmd_change(struct client *client, struct err *err)
{
	cleanup(json_decref) json_t *answer = NULL;
	cleanup(buf_release) struct buf line = BUF_INIT;
	int64_t job;
	int r;

	r = client_job(client, client->options.args[0], &job, err);
	if (r < 0)
		return r;
	r = client_call(
		client, client->command->name, client_job_params(client, job), &answer, err);
	if (r < 0)
		return r;
	buf_addf(&line, "job %lld: %s", (long long)job, json_opt_str(answer, "state", "?"));
	return confirm(client, answer, &line);
}

int cmd_retire(struct client *client, struct err *err)
{
	cleanup(json_decref) json_t *answer = NULL;
	cleanup(buf_release) struct buf line = BUF_INIT;
	const struct options *options = &client->options;
	json_t *params;
	int64_t run;
	int r;

	if (format_parse_id(options->args[0], &run) < 0)
		return err_set(err, EINVAL,
			"\"%s\" is no run: give its number (see kbctl show JOB)", options->args[0]);
	params = json_object();
	json_set_int(params, "run", run);
	json_set_str(params, "why", options->why);
	if (options->undo)
		json_set_bool(params, "undo", 1);
	r = client_call(client, "retire", params, &answer, err);
	if (r < 0)
		return r;
	buf_addf(&line, "run %lld of job %lld %s", (long long)run,
		(long long)json_opt_int(answer, "job", 0),
		json_opt_bool(answer, "retired", !options->undo) ? "is retired" : "counts again");
	return confirm(client, answer, &line);
}

int cmd_mark(struct client *client, struct err *err)
{
	cleanup(json_decref) json_t *answer = NULL;
	cleanup(buf_release) struct buf line = BUF_INIT;
	char **args = client->options.args;
	json_t *params;
	int64_t job;
	int r;

	if (strcmp(args[2], "good") != 0 && strcmp(args[2], "bad") != 0 &&
		strcmp(args[2], "skip") != 0 && strcmp(args[2], "none") != 0)
		return err_set(
			err, EINVAL, "a verdict is good, bad, skip or none, not \"%s\"", args[2]);
	r = client_job(client, args[0], &job, err);
	if (r < 0)
		return r;
	params = client_job_params(client, job);
	json_set_str(params, "commit", args[1]);
	json_set_str(params, "verdict", args[2]);
	r = client_call(client, "mark", params, &answer, err);
	if (r < 0)
		return r;
	buf_addf(&line, "job %lld: %s is marked %s", (long long)job,
		json_opt_str(answer, "commit", args[1]), json_opt_str(answer, "verdict", args[2]));
	return confirm(client, answer, &line);
}
