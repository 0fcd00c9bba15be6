#ifndef DAEMON_ACTIVE_PRIV_H
#define DAEMON_ACTIVE_PRIV_H

/*
 * Inside of daemon/active.c, shared with daemon/outcome.c, which records what the steps found.
 * A handler gets one result line and writes it in one transaction; a negative return counts as an
 * infrastructure failure.
 */

#include "daemon/active.h"
#include "daemon/planner.h"

struct event;
struct runner;

typedef int (*active_handler)(struct active *a, const json_t *result, struct err *err);

struct active {
	struct active_spec spec;
	struct runner *runner; /* NULL between steps */
	struct event *timer;   /* when to plan again */
	const char *step;
	active_handler handle;
	int results;	       /* lines that the step gave so far */
	int stopping;	       /* its end was asked for */
	int quitting;	       /* the daemon ends */
	char *infra, *refused; /* what the step said, to be acted on when it is over */
	char *now;
	int64_t commit;		    /* row of the commit being built */
	int64_t steps_left;	    /* about so many more picks; -1 = not known yet */
	char accel[16], timing[16]; /* as the measure step chose */
};

/* "booting v6.1": what people see while it runs. */
void active_progress(struct active *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Insert the rows of the boots that the plan wants and fill the request's array. Leaves the array
 * empty when a kernel has left the store: its commit is then to be built again. */
int active_boots(struct active *a, const struct view *view, const struct plan *plan, json_t *boots,
	struct err *err);

int active_built(struct active *a, const json_t *result, struct err *err);
int active_measured(struct active *a, const json_t *result, struct err *err);
int active_picked(struct active *a, const json_t *result, struct err *err);

#endif
