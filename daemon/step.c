#include "daemon/step.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/banned.h"

#define REQUEST_MAX (64 << 20)

static const struct {
	const char *name;
	step_fn run;
} steps[] = {
	{"accept", step_accept},
	{"pick", step_pick},
	{"build", step_build},
	{"measure", step_measure},
	{"mail", step_mail},
	{"sweep", step_sweep},
};

/* The results' own descriptor: fd 1 itself belongs to the log, whoever prints there. */
static int result_fd = STDOUT_FILENO;

void step_result(json_t *result)
{
	cleanup(json_decref) json_t *owned = result;
	cleanup(free) char *text = json_line(owned);
	cleanup(buf_release) struct buf line = BUF_INIT;
	size_t done = 0;

	buf_addf(&line, "%s\n", text);
	while (done < line.len) {
		ssize_t n = write(result_fd, line.data + done, line.len - done);

		if (n < 0 && errno == EINTR)
			continue;
		/* The daemon is gone: nobody is left to work for. */
		if (n < 0)
			exit(1);
		done += (size_t)n;
	}
}

int step_refuse(const struct err *err)
{
	json_t *result = json_object();

	json_set_str(result, "refused", err->msg);
	step_result(result);
	return 0;
}

static int read_request(json_t **ret, struct err *err)
{
	cleanup(buf_release) struct buf text = BUF_INIT;
	char chunk[65536];
	ssize_t n;

	while ((n = read(STDIN_FILENO, chunk, sizeof(chunk))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, errno, "cannot read the request");
		if (text.len + (size_t)n > REQUEST_MAX)
			return err_set(err, EFBIG, "the request is larger than 64 MiB");
		buf_add(&text, chunk, (size_t)n);
	}
	return json_parse(buf_str(&text), text.len, ret, err);
}

/* Keep stdout for results alone; what libraries print there goes to the log. */
static int claim_stdout(struct err *err)
{
	result_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	if (result_fd < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return err_sys(err, errno, "cannot use stdout");
	return 0;
}

int step_main(const char *name)
{
	cleanup(json_decref) json_t *request = NULL;
	struct err err = {0, ""};
	step_fn run = NULL;
	json_t *result;
	int r;

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		if (!strcmp(steps[i].name, name))
			run = steps[i].run;
	if (!run) {
		fprintf(stderr, "there is no step called %s\n", name);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	setvbuf(stderr, NULL, _IOLBF, 0);
	r = claim_stdout(&err);
	if (r == 0)
		r = read_request(&request, &err);
	if (r == 0)
		r = run(request, &err);
	if (r >= 0)
		return 0;
	fprintf(stderr, "%s: %s\n", name, err.msg);
	result = json_object();
	json_set_str(result, "infra", err.msg);
	step_result(result);
	return 0;
}
