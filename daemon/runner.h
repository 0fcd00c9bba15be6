#ifndef DAEMON_RUNNER_H
#define DAEMON_RUNNER_H

/*
 * One running step, watched by the event loop. Life cycle: runner_start, any number of `line`
 * calls, exactly one `done` call, after which the runner is freed by itself. done comes when the
 * result pipe is closed and the child is reaped, never before both. Does not block.
 */

#include <event2/event.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"

struct runner;

struct runner_spec {
	struct event_base *base;
	const char *program; /* run as `program --step name` */
	const char *name;
	const char *dir; /* request and log go here: NAME.json, NAME.log, appended */
	const json_t *request;
	int64_t deadline_ms; /* then the step is killed, and done gets an error */
	void (*line)(void *arg, const json_t *result);
	/* err->code = 0: it did its work. Otherwise err says why not (exit, signal, deadline). */
	void (*done)(void *arg, const struct err *err);
	void *arg;
};

int runner_start(const struct runner_spec *spec, struct runner **ret, struct err *err);

/* End it: SIGTERM to its process group, SIGKILL after some seconds. done still comes. */
void runner_stop(struct runner *runner);

/* Forget the callbacks (at exit or when the job is gone); the child is still reaped. */
void runner_orphan(struct runner *runner);

pid_t runner_pid(const struct runner *runner);

#endif
