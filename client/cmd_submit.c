/* submit and keys: job files, and the keys that they consist of. */

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"
#include "client/client.h"
#include "client/submit.h"
#include "base/banned.h"

#define JOB_FILE_MAX (1u << 20)

static int read_stdin(struct buf *ret, struct err *err)
{
	char chunk[4096];
	size_t n;

	while ((n = fread(chunk, 1, sizeof(chunk), stdin)) > 0) {
		buf_add(ret, chunk, n);
		if (ret->len > JOB_FILE_MAX)
			return err_set(err, EINVAL, "standard input is larger than %u bytes",
				JOB_FILE_MAX);
	}
	return ferror(stdin) ? err_set(err, EINVAL, "cannot read standard input") : 0;
}

/* The folder that relative paths in the job file start from: the file's own. */
static int folder_of(const char *file, char **ret, struct err *err)
{
	cleanup(free) char *path = realpath(file, NULL);
	char *slash;

	if (!path)
		return err_set(err, EINVAL, "cannot find %s: %s", file, strerror(errno));
	slash = strrchr(path, '/');
	slash[slash == path] = '\0';
	*ret = steal(&path);
	return 0;
}

static int read_job(const char *file, struct buf *ret_text, char **ret_dir, struct err *err)
{
	int r;

	if (strcmp(file, "-") == 0) {
		*ret_dir = getcwd(NULL, 0);
		return read_stdin(ret_text, err);
	}
	r = folder_of(file, ret_dir, err);
	if (r < 0)
		return r;
	r = file_read(file, JOB_FILE_MAX, ret_text, err);
	if (r < 0)
		err->code = EINVAL;
	return r < 0 ? -EINVAL : 0;
}

/* Make the text of a job file from the options, asking the daemon in which section each key is. */
static int text_of_options(struct client *client, struct buf *ret, struct err *err)
{
	cleanup(json_decref) json_t *keys = NULL;
	int r = client_call(client, "keys", NULL, &keys, err);

	if (r < 0)
		return r;
	return submit_text(json_object_get(keys, "keys"), client->options.keys,
		client->options.n_keys, ret, err);
}

/* Fill what `submit` sends. */
static int make_params(struct client *client, json_t *params, struct err *err)
{
	const struct options *options = &client->options;
	const char *file = options->n_args ? options->args[0] : NULL;
	cleanup(buf_release) struct buf text = BUF_INIT;
	cleanup(free) char *dir = NULL;
	json_t *value;
	int r;

	if (file && options->n_keys)
		return err_set(err, EINVAL,
			"give a job file or keys, not both (found \"%s\" and --%.*s)", file,
			(int)options->keys[0].name_len, options->keys[0].name);
	if (!file && !options->n_keys)
		return err_set(err, EINVAL,
			"submit needs a job file, or keys such as --good v6.1 "
			"(see kbctl keys)");
	r = file ? read_job(file, &text, &dir, err) : text_of_options(client, &text, err);
	if (r < 0)
		return r;
	if (!file)
		dir = getcwd(NULL, 0);
	if (!dir)
		return err_set(err, EINVAL, "cannot tell the current folder: %s", strerror(errno));
	value = json_stringn(buf_str(&text), text.len);
	if (!value || strlen(buf_str(&text)) != text.len) {
		json_decref(value);
		return err_set(err, EINVAL, "%s is not UTF-8 text", file ? file : "an option");
	}
	json_object_set_new(params, "text", value);
	json_set_str(params, "where", !file ? "options" : strcmp(file, "-") ? file : "stdin");
	json_set_str(params, "dir", dir);
	return 0;
}

int cmd_submit(struct client *client, struct err *err)
{
	cleanup(json_decref) json_t *answer = NULL, *params = json_object();
	const struct options *options = &client->options;
	int64_t job;
	int r;

	r = make_params(client, params, err);
	if (r < 0)
		return r;
	r = client_call(client, "submit", json_incref(params), &answer, err);
	if (r < 0)
		return r;
	r = json_get_int(answer, "job", &job, err);
	if (r < 0)
		return err_set(err, EPROTO, "the daemon took the job but gave no number");
	if (options->json)
		client_print_json(client, answer);
	else
		printf("job %lld\n", (long long)job);
	fflush(stdout);
	if (!options->wait && !options->follow)
		return CLIENT_OK;
	return client_follow(client, job, !options->follow, !options->follow, err);
}

static void print_key(const json_t *key, const struct term *term)
{
	const char *def = json_opt_str(key, "default", NULL);
	const char *choices = json_opt_str(key, "choices", NULL);
	cleanup(buf_release) struct buf line = BUF_INIT, clean = BUF_INIT;

	buf_adds(&line, choices ? choices : json_opt_str(key, "type", "?"));
	if (json_opt_bool(key, "required", 0))
		buf_adds(&line, ", required");
	else if (def && *def)
		buf_addf(&line, ", default %s", def);
	term_clean(json_opt_str(key, "name", "?"), 0, &clean);
	printf("  %s%-12s%s ", term_on(term, STYLE_BOLD), buf_str(&clean),
		term_off(term, STYLE_BOLD));
	buf_reset(&clean);
	term_clean(buf_str(&line), 0, &clean);
	printf("%s\n", buf_str(&clean));
	buf_reset(&clean);
	term_clean(json_opt_str(key, "help", ""), 0, &clean);
	printf("  %-12s   %s\n", "", buf_str(&clean));
}

int cmd_keys(struct client *client, struct err *err)
{
	cleanup(json_decref) json_t *answer = NULL;
	const char *section = "";
	json_t *key;
	size_t i;
	int r = client_call(client, "keys", NULL, &answer, err);

	if (r < 0)
		return r;
	if (client->options.json) {
		client_print_json(client, answer);
		return CLIENT_OK;
	}
	json_array_foreach (json_object_get(answer, "keys"), i, key) {
		const char *in = json_opt_str(key, "section", "");

		if (strcmp(in, section) != 0) {
			cleanup(free) char *title = xasprintf("[%s]", in);

			term_line(&client->term, STYLE_PLAIN, title);
			section = in;
		}
		print_key(key, &client->term);
	}
	return CLIENT_OK;
}
