#ifndef DAEMON_SERVER_H
#define DAEMON_SERVER_H

/*
 * The daemon's parts, wired together by main, and what the control methods work on. The method
 * tables: daemon/methods_read.c (nothing changes) and daemon/methods_change.c.
 */

#include "daemon/config.h"
#include "daemon/control.h"
#include "daemon/mailer.h"
#include "daemon/queue.h"
#include "daemon/record.h"
#include "daemon/followers.h"

struct server {
	struct event_base *base;
	struct config *config; /* swapped whole by a reload */
	const char *config_path;
	const char *program; /* what is run for a step */
	struct db *db;
	struct recorder *recorder;
	struct queue *queue;
	struct mailer *mailer;
	struct followers *followers;
	struct control *control;
	int64_t started; /* Unix ms */
	int slots;
	int draining;  /* parts that have not ended yet, while the daemon ends */
	int accepting; /* accept steps that run now */
	int64_t accept_number;
};

extern const struct control_method methods[];

/* Each a control_fn whose arg is the server. */
void method_hello(void *arg, struct call *call, const json_t *params);
void method_list(void *arg, struct call *call, const json_t *params);
void method_show(void *arg, struct call *call, const json_t *params);
void method_log(void *arg, struct call *call, const json_t *params);
void method_report(void *arg, struct call *call, const json_t *params);
void method_status(void *arg, struct call *call, const json_t *params);
void method_benchmarks(void *arg, struct call *call, const json_t *params);
void method_keys(void *arg, struct call *call, const json_t *params);
void method_submit(void *arg, struct call *call, const json_t *params);
void method_cancel(void *arg, struct call *call, const json_t *params);
void method_hold(void *arg, struct call *call, const json_t *params);
void method_resume(void *arg, struct call *call, const json_t *params);
void method_retry(void *arg, struct call *call, const json_t *params);
void method_retire(void *arg, struct call *call, const json_t *params);
void method_mark(void *arg, struct call *call, const json_t *params);

/* The "job" parameter: -1 after the call was answered with an error, when it is missing. */
int method_job_param(struct call *call, const json_t *params, int64_t *ret_job);

/* Answer with an error that came from below: -ENOENT is "not found", others are internal. */
void method_fail(struct call *call, const struct err *err);

#endif
