/* boot/benchmark.h: what files say, what is refused, and the files that are shipped. */

#include "boot/benchmark.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/banned.h"

#define SHIPPED "etc/benchmarks.d"
#define N(array) (sizeof(array) / sizeof((array)[0]))

static const char full[] = "[benchmark]\n"
			   "description = all keys\n"
			   "programs = a  /b/c\n"
			   "\td=/e\n"
			   "command = run ${args} -- ${args} ${x} $$ ${args\n"
			   "args = -1 -2\n"
			   "iterations = 5\n"
			   "warmup = 2\n"
			   "timeout = 90s\n"
			   "setup = mkdir x\n"
			   "teardown = rmdir x\n"
			   "status = 0 3\n"
			   "[metric rate-4]\n"
			   "format = regex\n"
			   "pattern = ^rate: ([0-9.]+)$\n"
			   "which = median\n"
			   "unit = ops/s\n"
			   "better = higher\n"
			   "[metric lat]\n"
			   "format = json\n"
			   "path = a.b\n"
			   "better = lower\n"
			   "scale = 0.5\n";

static void test_full(void **state)
{
	cleanup(benchmark_release) struct benchmark b = {0};
	struct err err;

	(void)state;
	if (benchmark_parse(full, strlen(full), "full", "full.conf", &b, &err) < 0)
		fail_msg("%s", err.msg);
	assert_string_equal(b.name, "full");
	assert_string_equal(b.description, "all keys");
	assert_string_equal(b.programs[0], "a");
	assert_string_equal(b.programs[1], "/b/c");
	assert_string_equal(b.programs[2], "d=/e");
	assert_null(b.programs[3]);
	assert_int_equal(b.iterations, 5);
	assert_int_equal(b.warmup, 2);
	assert_int_equal(b.timeout, 90000);
	assert_string_equal(b.setup, "mkdir x");
	assert_string_equal(b.teardown, "rmdir x");
	assert_true(benchmark_status_ok(&b, 0) && benchmark_status_ok(&b, 3));
	assert_false(benchmark_status_ok(&b, 1) || benchmark_status_ok(&b, 137));
	assert_int_equal(b.n_metrics, 2);
	assert_string_equal(b.metrics[0].name, "rate-4");
	assert_string_equal(b.metrics[0].unit, "ops/s");
	assert_int_equal(b.metrics[0].better_lower, 0);
	assert_int_equal(b.metrics[0].parse.which, PARSE_MEDIAN);
	assert_string_equal(b.metrics[1].name, "lat");
	assert_null(b.metrics[1].unit);
	assert_int_equal(b.metrics[1].better_lower, 1);
}

#define HEAD "[benchmark]\ncommand = x\n"
#define METRIC HEAD "[metric m]\nbetter = lower\nformat = regex\npattern = ([0-9]+)\n"

static void test_refused(void **state)
{
	static const struct {
		const char *text, *message;
	} rows[] = {
		{"", "b.conf: \"command\" is missing in [benchmark]"},
		{HEAD, "b.conf: there is no [metric NAME] section"},
		{"command = x\n", "b.conf:1: \"command\" stands before any section"},
		{METRIC "[job]\n", "b.conf:7: unknown section [job]"},
		{METRIC "[metric]\n", "b.conf:7: unknown section [metric]"},
		{METRIC "[benchmark]\n", "b.conf:7: a second [benchmark]"},
		{METRIC "[metric m]\n", "b.conf:7: a second [metric m]"},
		{METRIC "[metric a b]\n", "b.conf:7: \"a b\" cannot be a metric's name"},
		{METRIC "colour = red\n", "b.conf:7: unknown key \"colour\" in [metric]"},
		{"[benchmark]\ncomand = x\n", "b.conf:2: unknown key \"comand\" in [benchmark]"},
		{METRIC "pattern = x\n", "b.conf:7: \"pattern\" was given already in line 6"},
		{METRIC "column = x\n", "b.conf:7: format = regex has no key \"column\""},
		{METRIC "which = some\n", "b.conf:7: which: expected one of first|last|"},
		{METRIC "scale = 0\n", "b.conf:7: scale: expected at least"},
		{HEAD "iterations = 0\n", "b.conf:3: iterations: expected at least 1"},
		{HEAD "timeout = soon\n", "b.conf:3: timeout: expected a time"},
		{HEAD "status = 0 256\n", "b.conf: status: expected exit statuses"},
		{HEAD "[metric m]\nformat = csv\ncolumn = a\n",
			"b.conf:3: \"better\" is missing in [metric m]"},
		{HEAD "[metric m]\nbetter = lower\n",
			"b.conf:3: \"format\" is missing in [metric m]"},
		{HEAD "[metric m]\nbetter = lower\nformat = csv\n",
			"b.conf:3: column: a column is needed"},
		{HEAD "[metric m]\nbetter = lower\nformat = regex\npattern = ([0-9]+\n",
			"b.conf:6: pattern: \"([0-9]+\" does not compile: Unmatched ("},
		{HEAD "[metric m]\npattern = a[0-9]+\nbetter = lower\nformat = regex\n",
			"b.conf:3: group: the pattern has no group 1"},
		{HEAD "[metric m]\nbetter = lower\nformat = json\npath = a[x]\n[metric n]\n",
			"b.conf:6: path: expected [NUMBER]"},
	};

	(void)state;
	for (size_t i = 0; i < N(rows); i++) {
		struct benchmark b = {0};
		struct err err = {0};

		if (benchmark_parse(rows[i].text, strlen(rows[i].text), "b", "b.conf", &b, &err) !=
				-EINVAL &&
			err.code != ERANGE)
			fail_msg("row %zu: accepted, or another error: %s", i, err.msg);
		if (strncmp(err.msg, rows[i].message, strlen(rows[i].message)) != 0)
			fail_msg("row %zu: %s", i, err.msg);
		assert_null(b.name);
	}
}

static void test_command(void **state)
{
	static const struct {
		const char *command, *args, *job, *result;
	} rows[] = {
		{"run ${args} -- ${args}", "-1", NULL, "run -1 -- -1"},
		{"run ${args} -- ${args}", "-1", "a b", "run a b -- a b"},
		{"run ${args}", NULL, "${args} $$", "run ${args} $$"},
		{"run $$ ${x} ${args", NULL, NULL, "run $$ ${x} ${args"},
		{"run ${args}", NULL, NULL, NULL},
		{"run", NULL, "a", NULL},
	};

	(void)state;
	for (size_t i = 0; i < N(rows); i++) {
		struct benchmark b = {.name = (char *)"b",
			.command = (char *)rows[i].command,
			.args = (char *)rows[i].args};
		cleanup(free) char *command = NULL;
		struct err err;
		int r = benchmark_command(&b, rows[i].job, &command, &err);

		assert_int_equal(r, rows[i].result ? 0 : -EINVAL);
		if (rows[i].result)
			assert_string_equal(command, rows[i].result);
		else
			assert_non_null(strstr(err.msg, "benchmark b"));
	}
}

static void test_extract(void **state)
{
	static const char output[] = "rate: 10.50\nrate: 9.00\nrate: 11\n\033[1mjson\033[0m\n";
	static const char both[] = "rate: 7.0\n{\"a\":{\"b\":4}}\n";
	cleanup(benchmark_release) struct benchmark b = {0};
	struct parse_value v[2] = {{NULL, 0}, {NULL, 0}};
	struct err err;
	size_t chosen = 9;

	(void)state;
	assert_int_equal(benchmark_parse(full, strlen(full), "full", "f", &b, &err), 0);
	assert_int_equal(benchmark_metric(&b, NULL, &chosen, &err), 0);
	assert_int_equal(chosen, 0);
	assert_int_equal(benchmark_extract(&b, chosen, output, strlen(output), v, &err), 0);
	assert_string_equal(v[0].text, "10.50");
	assert_true(v[0].value == 10.5);
	assert_null(v[1].text); /* missing, but nobody asked for it */
	benchmark_values_release(v, 2);

	assert_int_equal(benchmark_metric(&b, "lat", &chosen, &err), 0);
	assert_int_equal(benchmark_extract(&b, chosen, output, strlen(output), v, &err), -ENODATA);
	assert_string_equal(err.msg,
		"metric \"lat\": a.b: there is no JSON object; the benchmark printed: "
		"rate: 10.50 | rate: 9.00 | rate: 11 |  [1mjson [0m");
	assert_null(v[0].text);
	assert_int_equal(benchmark_extract(&b, chosen, "", 0, v, &err), -ENODATA);
	assert_non_null(strstr(err.msg, "the benchmark printed nothing"));

	assert_int_equal(benchmark_extract(&b, chosen, both, strlen(both), v, &err), 0);
	assert_string_equal(v[0].text, "7.0");
	assert_string_equal(v[1].text, "2");
	benchmark_values_release(v, 2);

	assert_int_equal(benchmark_metric(&b, "none", &chosen, &err), -ENOENT);
	assert_string_equal(
		err.msg, "benchmark full has no metric \"none\"; there are: rate-4, lat");
}

static void test_load(void **state)
{
	static const char *const bad[] = {"../etc/x", "a/b", ".hidden", "", "a b", "a\nb"};
	cleanup(benchmark_release) struct benchmark b = {0};
	cleanup(benchmark_names_free) char **names = NULL;
	struct err err;

	(void)state;
	for (size_t i = 0; i < N(bad); i++)
		assert_int_equal(benchmark_load(SHIPPED, bad[i], NULL, &b, &err), -EINVAL);
	assert_int_equal(benchmark_load(SHIPPED, "absent", NULL, &b, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "no benchmark is named \"absent\"; there are: "));
	assert_non_null(strstr(err.msg, "hackbench"));
	assert_int_equal(benchmark_load("/nonexistent", "absent", NULL, &b, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "/nonexistent"));
	assert_int_equal(benchmark_list(SHIPPED, &names, &err), 0);
	for (char **p = names; p[0] && p[1]; p++)
		assert_true(strcmp(p[0], p[1]) < 0);
}

/* Every file that is shipped can be read, also from the text that a job keeps. */
static void test_shipped(void **state)
{
	cleanup(benchmark_names_free) char **names = NULL;
	struct err err;
	int n = 0;

	(void)state;
	assert_int_equal(benchmark_list(SHIPPED, &names, &err), 0);
	for (char **p = names; *p; p++, n++) {
		cleanup(benchmark_release) struct benchmark b = {0}, again = {0};
		cleanup(buf_release) struct buf text = BUF_INIT;

		if (benchmark_load(SHIPPED, *p, &text, &b, &err) < 0)
			fail_msg("%s", err.msg);
		assert_int_equal(benchmark_parse(text.data, text.len, *p, "job", &again, &err), 0);
		assert_int_equal(b.n_metrics, again.n_metrics);
		assert_non_null(b.description);
		for (size_t i = 0; i < b.n_metrics; i++)
			assert_non_null(b.metrics[i].description);
	}
	assert_true(n >= 3);
}

/* The shipped files on what their programs print. */
static void test_shipped_output(void **state)
{
	static const struct {
		const char *benchmark, *metric, *output, *text;
	} rows[] = {
		{"hackbench", "time",
			"Running in process mode with 2 groups using 40 file descriptors each (== "
			"80 "
			"tasks)\nEach sender will pass 20 messages of 100 bytes\nTime: 0.599\n",
			"0.599"},
		{"sysbench-cpu", "events",
			"Number of threads: 1\nCPU speed:\n    events per second:    92.66\n"
			"    total time:                          1.0003s\n",
			"92.66"},
		{"sysbench-cpu", "latency-95",
			"         95th percentile:                       10.65\n", "10.65"},
		{"command", "time", "a=5 6\nx 7 y\n\nelapsed_0.009978_s\n", "0.009978"},
		{"command", "value", "a=5 6\nx 7.50 y\n\nelapsed_0.009978_s\n", "7.50"},
		{"command", "value", "speed: 1.5e3MB/s\nelapsed_0.009978_s\n", "1.5e3"},
		{"command", "value", "(-3)\nelapsed_1.000000_s\n", "-3"},
		{"command", "value", "no number\n\nelapsed_0.009978_s\n", NULL},
	};

	(void)state;
	for (size_t i = 0; i < N(rows); i++) {
		cleanup(benchmark_release) struct benchmark b = {0};
		struct parse_value v[8] = {{NULL, 0}};
		struct err err;
		size_t m = 0;
		int r;

		assert_int_equal(benchmark_load(SHIPPED, rows[i].benchmark, NULL, &b, &err), 0);
		assert_true(b.n_metrics <= N(v));
		assert_int_equal(benchmark_metric(&b, rows[i].metric, &m, &err), 0);
		r = benchmark_extract(&b, m, rows[i].output, strlen(rows[i].output), v, &err);
		assert_int_equal(r, rows[i].text ? 0 : -ENODATA);
		if (rows[i].text)
			assert_string_equal(v[m].text, rows[i].text);
		benchmark_values_release(v, b.n_metrics);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_command),
		cmocka_unit_test(test_extract),
		cmocka_unit_test(test_load),
		cmocka_unit_test(test_shipped),
		cmocka_unit_test(test_shipped_output),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
