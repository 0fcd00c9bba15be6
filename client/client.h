#ifndef CLIENT_CLIENT_H
#define CLIENT_CLIENT_H

/*
 * What the commands of kbctl share: the options, the terminal, the connection (opened by the first
 * call), and the exit codes. A command returns an exit code, or a negative errno with a sentence,
 * which main prints and turns into an exit code.
 */

#include "base/err.h"
#include "base/json.h"
#include "client/options.h"
#include "client/rpc.h"
#include "client/term.h"

/* kbctl(1) documents these for scripts. */
enum client_exit {
	CLIENT_OK = 0,	       /* done; with waiting: the culprit was named */
	CLIENT_NO_CULPRIT = 1, /* the job ended with an answer that names no single commit */
	CLIENT_USAGE = 2,      /* wrong use, or refused as bad input */
	CLIENT_NO_DAEMON = 3,  /* not reachable, lost, or it talks nonsense */
	CLIENT_DENIED = 4,
	CLIENT_NOT_FOUND = 5, /* no such job, run or commit */
	CLIENT_FAILED = 6,    /* the job failed or was cancelled */
	CLIENT_STATE = 7,     /* the job is in the wrong state for this */
	CLIENT_OUTPUT = 8,    /* standard output cannot be written */
};

struct client {
	const struct client_command *command;
	struct options options;
	struct term term;
	const char *socket;
	struct rpc *rpc;
};

typedef int (*client_fn)(struct client *client, struct err *err);

struct client_command {
	const char *name;
	const char *args; /* for people; "" = none */
	size_t min_args, max_args;
	unsigned options; /* OPTION_* */
	client_fn fn;
	const char *help;
};

/* The table of main.c; ends with name = NULL. */
extern const struct client_command client_commands[];

int cmd_submit(struct client *client, struct err *err);
int cmd_keys(struct client *client, struct err *err);
int cmd_list(struct client *client, struct err *err);
int cmd_show(struct client *client, struct err *err);
int cmd_log(struct client *client, struct err *err);
int cmd_report(struct client *client, struct err *err);
int cmd_change(struct client *client, struct err *err); /* cancel, hold, resume, retry */
int cmd_retire(struct client *client, struct err *err);
int cmd_mark(struct client *client, struct err *err);
int cmd_status(struct client *client, struct err *err);
int cmd_benchmarks(struct client *client, struct err *err);

/* Call the daemon, connecting first where needed. As rpc_call. */
int client_call(
	struct client *client, const char *method, json_t *params, json_t **ret, struct err *err);

/* The number behind a JOB argument: a number, or "last" for the newest job. */
int client_job(struct client *client, const char *text, int64_t *ret, struct err *err);

/* {"job": id}, and "why" where the option was given. */
json_t *client_job_params(const struct client *client, int64_t job);

/* Print JSON: one line, or indented and in ASCII on a terminal. */
void client_print_json(const struct client *client, const json_t *json);

/* Print text of several lines, cleaned, with a line feed at the end. */
void client_print_text(const char *text);

/*
 * Follow a job until it ends, through restarts of the daemon. Returns the exit code for how it
 * ended. The log is printed (as JSON lines with --json) unless quiet; with `result` the last line
 * is the job's result.
 */
int client_follow(struct client *client, int64_t job, int quiet, int result, struct err *err);

/* Print the lines of a `log` answer or notification. */
void client_print_entry(struct client *client, const json_t *entry);

/* CLIENT_OK, CLIENT_NO_CULPRIT or CLIENT_FAILED; negative while the state is not an end. */
int client_result_exit(const char *state, const char *result);

#endif
