/*
 * A benchmark's output, through every format. The first byte chooses `which`; whatever comes back
 * as a number must be one.
 */

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "boot/parse.h"
#include "base/banned.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct spec_text {
	const char *format, *pattern, *column, *row, *ignore, *path;
} specs[] = {
	{"regex", "([0-9.e+-]+)( |$)", NULL, NULL, NULL, NULL},
	{"csv", NULL, "processes", NULL, "tasks=0", NULL},
	{"csv", NULL, "#2", "#1=cycles", NULL, NULL},
	{"json", NULL, NULL, NULL, NULL, "jobs[0].read.iops"},
	{"json", NULL, NULL, NULL, NULL, "jobs[*].read[\"iops\"]"},
	{"table", NULL, "Busy%", "CPU=-", NULL, NULL},
	{"table", NULL, "Busy%", NULL, NULL, NULL},
};

static const char *const formats[] = {"regex", "csv", "json", "table"};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (size_t i = 0; size && i < sizeof(specs) / sizeof(specs[0]); i++) {
		const struct spec_text *t = &specs[i];
		struct parse_spec spec = {.which = data[0] % (PARSE_MAX + 1), .group = 1};
		struct parse_value value = {NULL, 0};
		const char *key;
		struct err err;

		while (strcmp(formats[spec.format], t->format) != 0)
			spec.format++;
		spec.pattern = xstrdup_null(t->pattern);
		spec.column = xstrdup_null(t->column);
		spec.row = xstrdup_null(t->row);
		spec.ignore = xstrdup_null(t->ignore);
		spec.path = xstrdup_null(t->path);
		if (parse_spec_check(&spec, &key, &err) < 0)
			assert(!"the specs are right");
		if (parse_output(&spec, (const char *)data, size, &value, &err) == 0) {
			double again;

			assert(isfinite(value.value));
			assert(parse_number(value.text, strlen(value.text), &again, NULL) == 0);
			assert(again == value.value);
		} else {
			assert(!value.text && err.msg[0]);
		}
		parse_value_release(&value);
		parse_spec_release(&spec);
	}
	return 0;
}
