/*
 * A benchmark file's text. What is accepted is then used: its command is made, and its metrics are
 * looked for in the file itself.
 */

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "boot/benchmark.h"
#include "base/banned.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct benchmark b = {0};
	struct parse_value *values;
	struct err err;
	char *command;

	if (benchmark_parse((const char *)data, size, "fuzz", "fuzz.conf", &b, &err) < 0) {
		assert(strncmp(err.msg, "fuzz.conf:", 10) == 0);
		return 0;
	}
	if (benchmark_command(&b, NULL, &command, &err) == 0)
		free(command);
	values = xcalloc(b.n_metrics, sizeof(*values));
	if (benchmark_extract(&b, 0, (const char *)data, size, values, &err) == 0)
		assert(values[0].text);
	benchmark_values_release(values, b.n_metrics);
	free(values);
	benchmark_release(&b);
	return 0;
}
