#ifndef DAEMON_CONFIG_H
#define DAEMON_CONFIG_H

/*
 * kbisectd.conf(5) as a plain value. config_load fills a new struct, so that a reload swaps it in
 * whole or changes nothing; config_free releases it.
 */

#include <stdint.h>

#include "base/cleanup.h"
#include "base/conf.h"
#include "base/err.h"

enum config_tls { CONFIG_TLS_AUTO, CONFIG_TLS_NONE, CONFIG_TLS_STARTTLS, CONFIG_TLS_IMPLICIT };

struct config {
	/* [daemon] */
	char *state_dir, *socket, *group, *admins, *host;
	char *benchmarks, *data_dir, *step_program;
	/* [limits] */
	int64_t connections, line, queue; /* connections; bytes; bytes */
	int64_t infra_tries;
	int64_t retry_delay; /* ms */
	/* [build] */
	int64_t build_jobs; /* 0 = one for each CPU */
	int64_t store_size; /* bytes */
	int ccache, sandbox;
	/* [boot] */
	char *uri; /* NULL = the embedded driver in the state folder */
	/* [mail] */
	char *from, *smtp, *user, *password_file, *ca_file, *sendmail;
	int tls;
	int64_t mail_retry; /* ms */
};

extern const struct conf_key config_keys[];

/* Errors name file and line. */
int config_load(const char *path, struct config **ret, struct err *err);

void config_free(struct config *config);
DEFINE_CLEANUP(config_free, struct config *);

/* The word of a tls value, as the mail step takes it. */
const char *config_tls_name(int tls);

#endif
