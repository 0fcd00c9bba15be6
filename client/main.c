/* kbctl(1): the command line. What a command does is in cmd_*.c; here is the table. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/client.h"
#include "client/protocol.h"
#include "base/banned.h"

static int cmd_help(struct client *client, struct err *err);

const struct client_command client_commands[] = {
	{"submit", "FILE | --KEY VALUE ...", 0, 1, OPTION_KEYS | OPTION_FOLLOW | OPTION_WAIT,
		cmd_submit, "hand in a job file (- = standard input), or its keys as options"},
	{"list", "", 0, 0, OPTION_LIST, cmd_list, "jobs, the newest first"},
	{"show", "JOB", 1, 1, 0, cmd_show, "one job: its commits, boots and verdicts"},
	{"log", "JOB", 1, 1, OPTION_FOLLOW | OPTION_GIT, cmd_log, "its log, a line a sample"},
	{"report", "JOB", 1, 1, 0, cmd_report, "its result, as the mail tells it"},
	{"cancel", "JOB", 1, 1, OPTION_WHY, cmd_change, "end a job"},
	{"hold", "JOB", 1, 1, OPTION_WHY, cmd_change, "stop a job for now"},
	{"resume", "JOB", 1, 1, 0, cmd_change, "let a held job go on"},
	{"retry", "JOB", 1, 1, 0, cmd_change, "let a job that has ended go on where it was"},
	{"retire", "RUN", 1, 1, OPTION_WHY | OPTION_UNDO, cmd_retire,
		"take a sample out: it counts for nothing"},
	{"mark", "JOB COMMIT good|bad|skip|none", 3, 3, OPTION_WHY, cmd_mark,
		"set a commit's verdict by hand; none: take that back"},
	{"status", "", 0, 0, 0, cmd_status, "the daemon: its version, jobs and limits"},
	{"benchmarks", "", 0, 0, 0, cmd_benchmarks, "benchmarks that jobs may name"},
	{"keys", "", 0, 0, 0, cmd_keys, "keys of the job file"},
	{"help", "[COMMAND]", 0, 1, 0, cmd_help, "this text, or that of a command"},
	{.name = NULL},
};

static const struct {
	int code;
	enum client_exit exit;
} exits[] = {
	{EINVAL, CLIENT_USAGE},
	{ENOTCONN, CLIENT_NO_DAEMON},
	{ETIMEDOUT, CLIENT_NO_DAEMON},
	{EPROTO, CLIENT_NO_DAEMON},
	{EIO, CLIENT_NO_DAEMON},
	{EPERM, CLIENT_DENIED},
	{ESRCH, CLIENT_NOT_FOUND},
	{EBUSY, CLIENT_STATE},
};

static const struct client_command *find_command(const char *name)
{
	const struct client_command *command = client_commands;

	while (command->name && strcmp(command->name, name) != 0)
		command++;
	return command->name ? command : NULL;
}

static void usage(FILE *out)
{
	fputs("usage: kbctl [options] COMMAND [arguments]\n\n", out);
	for (const struct client_command *c = client_commands; c->name; c++)
		fprintf(out, "  %-11s %s\n", c->name, c->help);
	fputs("\nJOB is a job's number, or \"last\" for the newest. Options of every command:\n\n",
		out);
	options_help(OPTION_ALWAYS, out);
	fputs("\n`kbctl help COMMAND` tells more; the manual is kbctl(1).\n", out);
}

static void usage_command(const struct client_command *c)
{
	printf("usage: kbctl %s [options]%s%s\n%s.\n\n", c->name, *c->args ? " " : "", c->args,
		c->help);
	options_help(c->options | OPTION_ALWAYS, stdout);
	if (c->options & OPTION_KEYS)
		fputs("\nKEY is a key of the job file, such as --good, or --boot.timeout where a "
		      "name\nstands in two sections. `kbctl keys` lists them all.\n",
			stdout);
}

static int cmd_help(struct client *client, struct err *err)
{
	const struct client_command *command;

	if (!client->options.n_args) {
		usage(stdout);
		return CLIENT_OK;
	}
	command = find_command(client->options.args[0]);
	if (!command)
		return err_set(err, EINVAL, "there is no command \"%s\" (see kbctl help)",
			client->options.args[0]);
	usage_command(command);
	return CLIENT_OK;
}

/* Read the options; find the command and check the number of its arguments. */
static int parse_command_line(struct client *client, int argc, char **argv, struct err *err)
{
	struct options *options = &client->options;
	int n = options_parse(options, 0, 1, argc, argv, err);

	if (n < 0 || options->n_args == 0)
		return n < 0 ? n : 0;
	client->command = find_command(options->args[0]);
	if (!client->command)
		return err_set(err, EINVAL, "there is no command \"%s\" (see kbctl help)",
			options->args[0]);
	options->n_args = 0;
	n = options_parse(options, client->command->options, 0, argc - n, argv + n, err);
	if (n < 0)
		return err_wrap(err, "%s", client->command->name);
	if (options->help)
		return 0;
	if (options->n_args < client->command->min_args)
		return err_set(err, EINVAL, "%s needs %s (see kbctl help %s)",
			client->command->name, client->command->args, client->command->name);
	if (options->n_args > client->command->max_args)
		return err_set(err, EINVAL, "%s does not take the argument \"%s\"",
			client->command->name, options->args[client->command->max_args]);
	return 0;
}

static int run(struct client *client, struct err *err)
{
	if (client->options.version) {
		puts("kbctl " KBISECTD_VERSION);
		return CLIENT_OK;
	}
	if (client->options.help) {
		if (client->command)
			usage_command(client->command);
		else
			usage(stdout);
		return CLIENT_OK;
	}
	if (!client->command) {
		usage(stderr);
		return CLIENT_USAGE;
	}
	return client->command->fn(client, err);
}

/* Print the one sentence, cleaned: parts of it come from the daemon. Returns the exit code. */
static int report_error(const struct err *err)
{
	cleanup(buf_release) struct buf text = BUF_INIT;

	fflush(stdout);
	term_clean(err->msg, 0, &text);
	fprintf(stderr, "kbctl: %s\n", buf_str(&text));
	for (size_t i = 0; i < sizeof(exits) / sizeof(exits[0]); i++)
		if (exits[i].code == err->code)
			return exits[i].exit;
	return CLIENT_NO_DAEMON;
}

/*
 * Fill the three standard descriptors, so that no socket becomes one of them. A standard output
 * that was closed is opened for reading only: writing to it stays an error.
 */
static void open_standard_fds(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	while (fd >= 0 && fd <= STDERR_FILENO)
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (fd > STDERR_FILENO)
		close(fd);
}

/* Output that was lost must not look like success; a reader that has read enough needs no word. */
static int check_output(int code)
{
	struct pollfd out = {STDOUT_FILENO, 0, 0};
	int lost = ferror(stdout);

	errno = 0;
	if (fflush(stdout) != 0)
		lost = 1;
	if (!lost)
		return code;
	if (errno != EPIPE && !(poll(&out, 1, 0) > 0 && (out.revents & POLLERR)))
		fprintf(stderr, "kbctl: cannot write to standard output: %s\n",
			errno ? strerror(errno) : "an earlier write failed");
	return CLIENT_OUTPUT;
}

int main(int argc, char **argv)
{
	struct client client = {0};
	const char *env = getenv(PROTOCOL_SOCKET_ENV);
	struct err err = {0};
	int r;

	open_standard_fds();
	signal(SIGPIPE, SIG_IGN);
	term_init(&client.term);
	r = parse_command_line(&client, argc - 1, argv + 1, &err);
	client.socket = client.options.socket;
	if (!client.socket)
		client.socket = env && *env ? env : PROTOCOL_SOCKET;
	if (r == 0)
		r = run(&client, &err);
	term_status_clear(&client.term);
	if (r < 0)
		r = report_error(&err);
	rpc_free(client.rpc);
	options_release(&client.options);
	return check_output(r);
}
