#ifndef DAEMON_ACCEPT_H
#define DAEMON_ACCEPT_H

/*
 * A submitted job file on its way into the queue: the accept step looks at repository, revisions,
 * configuration and benchmark; only when all of it is right does a job come into being, with its
 * two endpoints, in one transaction. Answers the call, now or when the step is over.
 */

#include "daemon/server.h"

void accept_job(struct server *server, struct call *call, const char *text, const char *where,
	const char *dir);

#endif
