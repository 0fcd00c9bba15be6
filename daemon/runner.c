#include "daemon/runner.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/child.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/banned.h"

#define RESULT_LINE_MAX (16 << 20)
#define STOP_GRACE_S 15

struct runner {
	struct runner_spec spec;
	char *name;
	pid_t pid;
	struct bufferevent *results; /* NULL once the pipe is closed */
	struct event *reaper;	     /* on the pidfd; NULL once reaped */
	struct event *timer;	     /* deadline, then the grace time before SIGKILL */
	int pidfd;
	int stopping;
	struct err err; /* the first thing that went wrong */
};

static void runner_free(struct runner *runner)
{
	if (runner->results)
		bufferevent_free(runner->results);
	if (runner->reaper)
		event_free(runner->reaper);
	if (runner->timer)
		event_free(runner->timer);
	if (runner->pidfd >= 0)
		close(runner->pidfd);
	free(runner->name);
	free(runner);
}

static void fail(struct runner *runner, int code, const char *text)
{
	if (!runner->err.code)
		err_set(&runner->err, code, "the %s step: %s", runner->name, text);
}

/* The end, when both the pipe and the child are done with. */
static void maybe_done(struct runner *runner)
{
	struct runner_spec spec = runner->spec;
	struct err err = runner->err;

	if (runner->results || runner->reaper)
		return;
	runner_free(runner);
	if (spec.done)
		spec.done(spec.arg, &err);
}

static void one_line(struct runner *runner, const char *line, size_t len)
{
	cleanup(json_decref) json_t *json = NULL;
	struct err err;

	if (json_parse(line, len, &json, &err) < 0 || !json_is_object(json)) {
		fail(runner, EBADMSG, "its result is not a JSON object");
		return;
	}
	if (runner->spec.line)
		runner->spec.line(runner->spec.arg, json);
}

static void on_read(struct bufferevent *bev, void *arg)
{
	struct runner *runner = arg;
	struct evbuffer *input = bufferevent_get_input(bev);
	size_t len;
	char *line;

	while ((line = evbuffer_readln(input, &len, EVBUFFER_EOL_LF))) {
		one_line(runner, line, len);
		free(line);
	}
	if (evbuffer_get_length(input) > RESULT_LINE_MAX) {
		fail(runner, EFBIG, "a result line is too long");
		evbuffer_drain(input, evbuffer_get_length(input));
		runner_stop(runner);
	}
}

static void on_close(struct bufferevent *bev, short what, void *arg)
{
	struct runner *runner = arg;

	(void)what;
	if (evbuffer_get_length(bufferevent_get_input(bev)) > 0)
		fail(runner, EBADMSG, "its last result line is cut off");
	bufferevent_free(bev);
	runner->results = NULL;
	maybe_done(runner);
}

static void on_exit_of_child(evutil_socket_t fd, short what, void *arg)
{
	struct runner *runner = arg;
	cleanup(free) char *text = NULL;
	int status = 0;

	(void)fd, (void)what;
	if (waitpid(runner->pid, &status, WNOHANG) == 0)
		return;
	/* Whatever it started and left behind goes with it. */
	kill(-runner->pid, SIGKILL);
	if (status) {
		text = child_status_text(status);
		fail(runner, ECHILD, text);
	}
	event_free(runner->reaper);
	runner->reaper = NULL;
	maybe_done(runner);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct runner *runner = arg;

	(void)fd, (void)what;
	if (runner->stopping) {
		kill(-runner->pid, SIGKILL);
		return;
	}
	fail(runner, ETIMEDOUT, "not finished by its deadline, stopped");
	runner_stop(runner);
}

void runner_stop(struct runner *runner)
{
	struct timeval grace = {STOP_GRACE_S, 0};

	if (runner->stopping || !runner->reaper)
		return;
	runner->stopping = 1;
	fail(runner, ECANCELED, "stopped");
	kill(-runner->pid, SIGTERM);
	event_add(runner->timer, &grace);
}

void runner_orphan(struct runner *runner)
{
	runner->spec.line = NULL;
	runner->spec.done = NULL;
}

pid_t runner_pid(const struct runner *runner)
{
	return runner->pid;
}

/* The request as a file (so that a person can run the step again), opened for reading. */
static int request_file(const struct runner_spec *spec, int *ret_fd, struct err *err)
{
	cleanup(free) char *path = xasprintf("%s/%s.json", spec->dir, spec->name);
	cleanup(free) char *text = json_dumps(spec->request, JSON_INDENT(1));
	int fd, r;

	r = file_write(path, text, strlen(text), 0600, err);
	if (r < 0)
		return r;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, errno, "cannot open %s", path);
	*ret_fd = fd;
	return 0;
}

static int start_child(struct runner *runner, int pipe_out, struct err *err)
{
	const struct runner_spec *spec = &runner->spec;
	const char *argv[] = {spec->program, "--step", spec->name, NULL};
	cleanup(free) char *path = xasprintf("%s/%s.log", spec->dir, spec->name);
	cleanup(close) int in = -1;
	cleanup(close) int log = -1;
	int r;

	r = request_file(spec, &in, err);
	if (r < 0)
		return r;
	log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
	if (log < 0)
		return err_sys(err, errno, "cannot write %s", path);
	return child_start(
		&(struct child_spec){argv, NULL, NULL, in, pipe_out, log}, &runner->pid, err);
}

/* Hook the child's pipe, end and deadline into the event loop. */
static void watch(struct runner *runner, int fd)
{
	struct event_base *base = runner->spec.base;
	int64_t ms = runner->spec.deadline_ms;
	struct timeval deadline = {ms / 1000, (ms % 1000) * 1000};

	evutil_make_socket_nonblocking(fd);
	runner->results = bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE);
	bufferevent_setcb(runner->results, on_read, NULL, on_close, runner);
	bufferevent_enable(runner->results, EV_READ);
	runner->pidfd = (int)syscall(SYS_pidfd_open, runner->pid, 0);
	if (runner->pidfd < 0)
		abort();
	runner->reaper =
		event_new(base, runner->pidfd, EV_READ | EV_PERSIST, on_exit_of_child, runner);
	event_add(runner->reaper, NULL);
	runner->timer = evtimer_new(base, on_timer, runner);
	event_add(runner->timer, &deadline);
}

int runner_start(const struct runner_spec *spec, struct runner **ret, struct err *err)
{
	struct runner *runner = xcalloc(1, sizeof(*runner));
	int fds[2], r;

	runner->spec = *spec;
	runner->name = xstrdup(spec->name);
	runner->pidfd = -1;
	if (pipe2(fds, O_CLOEXEC) < 0) {
		runner_free(runner);
		return err_sys(err, errno, "cannot start the %s step", spec->name);
	}
	r = start_child(runner, fds[1], err);
	close(fds[1]);
	if (r < 0) {
		close(fds[0]);
		runner_free(runner);
		return r;
	}
	watch(runner, fds[0]);
	*ret = runner;
	return 0;
}
