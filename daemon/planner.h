#ifndef DAEMON_PLANNER_H
#define DAEMON_PLANNER_H

/*
 * What to do next for a job: a pure function of its recorded state. The queue carries it out,
 * records what came of it, and asks again.
 */

#include <stddef.h>

#include "daemon/view.h"

enum plan_action {
	PLAN_BUILD,   /* build `commit` */
	PLAN_MEASURE, /* boot each commit in `boots`, in that order */
	PLAN_PICK,    /* every picked commit has its verdict: ask for the next, or for the answer */
	PLAN_END,     /* the job is over: `result` and `reason` */
};

#define PLAN_BOOTS_MAX 64

struct plan {
	enum plan_action action;
	size_t commit;		      /* index into the view's commits */
	size_t boots[PLAN_BOOTS_MAX]; /* indices, in the order to boot */
	size_t n_boots;
	int failed;	    /* PLAN_END: ended without an answer */
	const char *result; /* PLAN_END: not-reproducible, inconclusive; NULL when failed */
	char reason[1024];  /* PLAN_END: one sentence */
};

/* now: Unix ms, for the job's time budget. */
void plan_next(const struct view *view, int64_t now, struct plan *ret);

#endif
