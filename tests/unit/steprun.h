#ifndef TESTS_STEPRUN_H
#define TESTS_STEPRUN_H

/* Call a step's body in this process and catch its one result line. */

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "daemon/step.h"

/* NULL with words in err when the body failed (which would be an infrastructure failure). */
static inline json_t *steprun(step_fn fn, const json_t *request, struct err *err)
{
	char path[] = "/tmp/kbisect-step-XXXXXX";
	cleanup(close) int out = mkstemp(path);
	cleanup(close) int saved = dup(STDOUT_FILENO);
	cleanup(buf_release) struct buf text = BUF_INIT;
	json_t *result = NULL;
	int r;

	fflush(stdout);
	dup2(out, STDOUT_FILENO);
	r = fn(request, err);
	dup2(saved, STDOUT_FILENO);
	if (file_read(path, 16 << 20, &text, err) < 0)
		fail_msg("%s", err->msg);
	unlink(path);
	if (r < 0) {
		assert_int_equal(text.len, 0);
		return NULL;
	}
	if (json_parse(buf_str(&text), text.len, &result, err) < 0)
		fail_msg("not one line of JSON: %s", buf_str(&text));
	return result;
}

#endif
