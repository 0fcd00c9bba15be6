/* log and report: what happened, line by line, and what came of it. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "client/client.h"
#include "base/banned.h"

/* Only the verdict gets a colour: the last word, not counting details in parentheses behind it. */
static void print_sample(struct client *client, const char *text)
{
	cleanup(buf_release) struct buf clean = BUF_INIT;
	const char *line, *end, *verdict;
	cleanup(free) char *word = NULL;
	enum style style;

	term_clean(text, 0, &clean);
	line = buf_str(&clean);
	end = strstr(line, " (");
	if (!end)
		end = line + clean.len;
	verdict = memrchr(line, ' ', (size_t)(end - line));
	verdict = verdict ? verdict + 1 : line;
	word = xstrndup(verdict, (size_t)(end - verdict));
	style = term_style(word);
	term_status_clear(&client->term);
	printf("%.*s%s%s%s%s\n", (int)(verdict - line), line, term_on(&client->term, style), word,
		term_off(&client->term, style), end);
}

void client_print_entry(struct client *client, const json_t *entry)
{
	const char *text = json_opt_str(entry, "text", "");
	cleanup(buf_release) struct buf line = BUF_INIT;

	if (client->options.json) {
		term_status_clear(&client->term);
		client_print_json(client, entry);
		return;
	}
	if (strcmp(json_opt_str(entry, "kind", ""), "run") == 0) {
		print_sample(client, text);
		return;
	}
	buf_addf(&line, "# %s", text);
	term_line(&client->term, STYLE_DIM, buf_str(&line));
}

static int log_once(struct client *client, int64_t job, struct err *err)
{
	cleanup(json_decref) json_t *answer = NULL;
	json_t *params = client_job_params(client, job), *entry;
	size_t i;
	int r;

	if (client->options.git)
		json_set_str(params, "format", "git");
	r = client_call(client, "log", params, &answer, err);
	if (r < 0)
		return r;
	if (client->options.git && client->options.json)
		client_print_json(client, answer);
	else if (client->options.git)
		client_print_text(json_opt_str(answer, "text", ""));
	json_array_foreach (json_object_get(answer, "entries"), i, entry)
		client_print_entry(client, entry);
	return CLIENT_OK;
}

int cmd_log(struct client *client, struct err *err)
{
	const struct options *options = &client->options;
	int64_t job;
	int r;

	if (options->git && options->follow)
		return err_set(err, EINVAL, "--git and --follow do not go together");
	r = client_job(client, options->args[0], &job, err);
	if (r < 0)
		return r;
	if (options->follow)
		return client_follow(client, job, 0, 0, err);
	return log_once(client, job, err);
}

int cmd_report(struct client *client, struct err *err)
{
	cleanup(json_decref) json_t *answer = NULL;
	int64_t job;
	int r;

	r = client_job(client, client->options.args[0], &job, err);
	if (r < 0)
		return r;
	r = client_call(client, "report", client_job_params(client, job), &answer, err);
	if (r < 0)
		return r;
	if (client->options.json) {
		client_print_json(client, answer);
		return CLIENT_OK;
	}
	client_print_text(json_opt_str(answer, "text", ""));
	if (client->term.live && !json_opt_bool(answer, "final", 1))
		fputs("(so far: the job has not ended)\n", stderr);
	return CLIENT_OK;
}
