#ifndef TESTS_GITREPO_H
#define TESTS_GITREPO_H

/* Scratch git repositories for tests, made with git itself and without anybody's configuration. */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/child.h"
#include "base/file.h"

struct gitrepo {
	char dir[64];
};

static inline void gitrepo_init(struct gitrepo *repo)
{
	snprintf(repo->dir, sizeof(repo->dir), "/tmp/kbisect-test-XXXXXX");
	if (!mkdtemp(repo->dir))
		fail_msg("no temporary folder");
	setenv("GIT_CONFIG_GLOBAL", "/dev/null", 1);
	setenv("GIT_CONFIG_SYSTEM", "/dev/null", 1);
	setenv("GIT_AUTHOR_NAME", "Ann Other", 1);
	setenv("GIT_AUTHOR_EMAIL", "ann@example.org", 1);
	setenv("GIT_COMMITTER_NAME", "Ann Other", 1);
	setenv("GIT_COMMITTER_EMAIL", "ann@example.org", 1);
	setenv("GIT_AUTHOR_DATE", "1389174839 +0100", 1);
	setenv("GIT_COMMITTER_DATE", "1389174839 +0100", 1);
}

/* Run a shell script in the folder; its output without the last newline. Free it. */
static inline __attribute__((format(printf, 2, 3))) char *gitrepo_sh(
	struct gitrepo *repo, const char *fmt, ...)
{
	cleanup(free) char *script = NULL;
	cleanup(free) char *line = NULL;
	struct buf out = BUF_INIT;
	struct err err = {0};
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&script, fmt, ap) < 0)
		abort();
	va_end(ap);
	line = xasprintf("set -e\ncd %s\n%s", repo->dir, script);
	const char *const argv[] = {"sh", "-c", line, NULL};
	if (child_output(argv, 60000, 64 << 20, &out, &err) < 0)
		fail_msg("%s: %s", script, err.msg);
	if (out.len && out.data[out.len - 1] == '\n')
		out.data[--out.len] = 0;
	return out.data ? buf_detach(&out) : xstrdup("");
}

/* The same where nobody wants the output. */
#define gitrepo_do(...) free(gitrepo_sh(__VA_ARGS__))

static inline void gitrepo_remove(struct gitrepo *repo)
{
	struct err err = {0};

	if (file_remove(repo->dir, &err) < 0)
		fail_msg("%s", err.msg);
}

#endif
