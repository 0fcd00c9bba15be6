#include "client/client.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "client/format.h"
#include "base/banned.h"

int client_call(
	struct client *client, const char *method, json_t *params, json_t **ret, struct err *err)
{
	int r;

	if (!client->rpc) {
		r = rpc_open(client->socket, &client->rpc, err);
		if (r < 0) {
			json_decref(params);
			return r;
		}
	}
	return rpc_call(client->rpc, method, params, ret, err);
}

int client_job(struct client *client, const char *text, int64_t *ret, struct err *err)
{
	cleanup(json_decref) json_t *list = NULL;
	json_t *params, *first;
	int r;

	if (format_parse_id(text, ret) == 0)
		return 0;
	if (strcmp(text, "last") != 0)
		return err_set(err, EINVAL, "\"%s\" is no job: give its number, or \"last\"", text);
	params = json_object();
	json_set_int(params, "limit", 1);
	r = client_call(client, "list", params, &list, err);
	if (r < 0)
		return r;
	first = json_array_get(json_object_get(list, "jobs"), 0);
	if (!first)
		return err_set(err, ESRCH, "there are no jobs yet");
	r = json_get_int(first, "job", ret, err);
	return r < 0 ? err_set(err, EPROTO, "the daemon's list has a job without a number") : 0;
}

json_t *client_job_params(const struct client *client, int64_t job)
{
	json_t *params = json_object();

	json_set_int(params, "job", job);
	json_set_str(params, "why", client->options.why);
	return params;
}

void client_print_json(const struct client *client, const json_t *json)
{
	size_t flags = client->term.live ? JSON_INDENT(2) | JSON_ENSURE_ASCII : JSON_COMPACT;
	cleanup(free) char *text = json_dumps(json, flags | JSON_ENCODE_ANY);

	puts(text ? text : "null");
}

void client_print_text(const char *text)
{
	cleanup(buf_release) struct buf clean = BUF_INIT;

	term_clean(text, 1, &clean);
	fwrite(buf_str(&clean), 1, clean.len, stdout);
	if (clean.len && clean.data[clean.len - 1] != '\n')
		putchar('\n');
}

int client_result_exit(const char *state, const char *result)
{
	static const struct {
		const char *state, *result;
		enum client_exit exit;
	} ends[] = {
		{"done", "culprit", CLIENT_OK},
		{"done", NULL, CLIENT_NO_CULPRIT},
		{"failed", NULL, CLIENT_FAILED},
		{"cancelled", NULL, CLIENT_FAILED},
	};

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (strcmp(ends[i].state, state) == 0 &&
			(!ends[i].result || strcmp(ends[i].result, result) == 0))
			return (int)ends[i].exit;
	return -EAGAIN;
}
