/* boot/parse.h: numbers, and every format on what real programs print. */

#include "boot/parse.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/banned.h"

enum { REGEX, CSV, JSON, TABLE };

#define N(array) (sizeof(array) / sizeof((array)[0]))

static void test_number(void **state)
{
	static const struct {
		const char *text;
		double value;
	} good[] = {
		{"0", 0},
		{"42", 42},
		{"-1", -1},
		{"+7", 7},
		{"0.599", 0.599},
		{"1e3", 1000},
		{"1.5E-2", 0.015},
		{"007", 7},
		{"12345678901234567890", 1.2345678901234567e19},
	};
	static const char *const bad[] = {"", "-", ".", ".5", "5.", "1e", "1e+", "1.5e", "nan",
		"NaN", "inf", "-inf", "0x10", "1,5", "1 ", " 1", "1s", "--1", "1e999", "1.2.3",
		"<not counted>",
		"1111111111111111111111111111111111111111111111111111111111111111111111"};
	double value;
	struct err err;

	(void)state;
	for (size_t i = 0; i < N(good); i++) {
		assert_int_equal(parse_number(good[i].text, strlen(good[i].text), &value, &err), 0);
		assert_true(value == good[i].value);
	}
	for (size_t i = 0; i < N(bad); i++) {
		value = 99;
		if (parse_number(bad[i], strlen(bad[i]), &value, &err) != -EBADMSG)
			fail_msg("\"%s\" was taken for a number", bad[i]);
		assert_true(value == 99);
	}
	assert_int_equal(parse_number("1\0002", 3, &value, &err), -EBADMSG);
	assert_int_equal(parse_number("123", 2, &value, &err), 0);
	assert_true(value == 12);
}

/* One row: a spec, an output, and the text that must come of it, or the error. */
struct row {
	int format, which;
	const char *key; /* pattern, column or path */
	const char *row, *ignore;
	double scale;
	const char *output;
	const char *text; /* NULL = an error */
	int code;
	const char *message; /* part of the error's */
};

static void check_row(const struct row *row, size_t line)
{
	struct parse_spec spec = {.format = row->format, .which = row->which, .group = 1};
	struct parse_value value = {NULL, 0};
	char *key = xstrdup(row->key);
	const char *wrong;
	struct err err = {0};
	int r;

	if (row->format == REGEX)
		spec.pattern = key;
	else if (row->format == JSON)
		spec.path = key;
	else
		spec.column = key;
	spec.row = xstrdup_null(row->row);
	spec.ignore = xstrdup_null(row->ignore);
	spec.scale = row->scale;
	if (parse_spec_check(&spec, &wrong, &err) < 0)
		fail_msg("row %zu: %s: %s", line, wrong, err.msg);
	r = parse_output(&spec, row->output, strlen(row->output), &value, &err);
	if (row->text && r < 0)
		fail_msg("row %zu: %s", line, err.msg);
	if (row->text && strcmp(value.text, row->text) != 0)
		fail_msg("row %zu: found %s, not %s", line, value.text, row->text);
	if (row->text && value.value != strtod(row->text, NULL))
		fail_msg("row %zu: %s is not %g", line, row->text, value.value);
	if (!row->text && (r != row->code || !strstr(err.msg, row->message)))
		fail_msg("row %zu: %d, %s", line, r, r < 0 ? err.msg : value.text);
	parse_value_release(&value);
	parse_spec_release(&spec);
}

#define CHECK(rows)                                                                                \
	for (size_t i = 0; i < N(rows); i++)                                                       \
	check_row(&(rows)[i], i)

static const char hackbench[] =
	"Running in process mode with 2 groups using 40 file descriptors each (== 80 tasks)\n"
	"Each sender will pass 20 messages of 100 bytes\n"
	"Time: 0.599\n";

static const char sysbench[] = "CPU speed:\n"
			       "    events per second:  3226.13\n\n"
			       "General statistics:\n"
			       "    total time:                          1.0003s\n"
			       "    total number of events:              3239\n\n"
			       "Latency (ms):\n"
			       "         min:                                    0.23\n"
			       "         max:                                    5.93\n"
			       "         95th percentile:                        0.42\n";

static const char sysbench_memory[] = "Total operations: 5809071 (5793310.66 per second)\n\n"
				      "5672.92 MiB transferred (5657.53 MiB/sec)\n";

static const char ebizzy[] = "2317 records/s 580 577 582 578\n"
			     "real 10.00 s\nuser 39.60 s\nsys   0.28 s\n";

static const char netperf[] = "Local /Remote\n"
			      "Socket Size   Request  Resp.   Elapsed  Trans.\n"
			      "Send   Recv   Size     Size    Time     Rate\n"
			      "bytes  Bytes  bytes    bytes   secs.    per sec\n\n"
			      "16384  131072 1        1       30.00    48192.47\n"
			      "16384  131072\n";

static const char kernbench[] = "Average Optimal load -j 16 Run (std deviation):\n"
				"Elapsed Time 120.68 (0.42)\n"
				"User Time 1234.5 (1.1)\n";

static void test_regex(void **state)
{
	static const struct row rows[] = {
		{.key = "^Time: ([0-9.]+)$", .output = hackbench, .text = "0.599"},
		{.key = "events per second: +([0-9.]+)", .output = sysbench, .text = "3226.13"},
		{.key = "95th percentile: +([0-9.]+)", .output = sysbench, .text = "0.42"},
		{.key = "\\(([0-9.]+) per second\\)",
			.output = sysbench_memory,
			.text = "5793310.66"},
		{.key = "\\(([0-9.]+) MiB/sec\\)", .output = sysbench_memory, .text = "5657.53"},
		{.key = "^([0-9]+) records/s", .output = ebizzy, .text = "2317"},
		{.key = "^[0-9]+ +[0-9]+ +[0-9]+ +[0-9]+ +[0-9.]+ +([0-9.]+)$",
			.output = netperf,
			.text = "48192.47"},
		{.key = "^Elapsed Time ([0-9.]+)", .output = kernbench, .text = "120.68"},
		{.key = "^real +[0-9]+m([0-9.]+)s",
			.output = "real\t5m52.363s\n",
			.code = -ENODATA,
			.message = "no line matches"},
		{.key = "m([0-9.]+)s", .output = "real\t5m52.363s\n", .text = "52.363"},
		/* Several matches. */
		{.which = PARSE_FIRST, .key = "([0-9]+)", .output = "3 1\n2", .text = "3"},
		{.which = PARSE_LAST, .key = "([0-9]+)", .output = "3 1\n2", .text = "2"},
		{.which = PARSE_MEDIAN,
			.key = "([0-9.]+)",
			.output = "3.00 1\n2.50",
			.text = "2.50"},
		{.which = PARSE_MEDIAN, .key = "([0-9]+)", .output = "4 1 2 9", .text = "3"},
		{.which = PARSE_MEAN, .key = "([0-9]+)", .output = "1 2", .text = "1.5"},
		{.which = PARSE_MEAN, .key = "([0-9.]+)", .output = "0.1 0.2 0.3", .text = "0.2"},
		{.which = PARSE_SUM, .key = "([0-9]+)", .output = "1 2 39", .text = "42"},
		{.which = PARSE_MIN, .key = "([-0-9.]+)", .output = "1 -2.0 3", .text = "-2.0"},
		{.which = PARSE_MAX, .key = "([-0-9.]+)", .output = "1 -2 3.10", .text = "3.10"},
		{.which = PARSE_SUM,
			.key = "([0-9e]+)",
			.output = "1e308 1e308",
			.code = -EBADMSG,
			.message = "too large"},
		{.key = "([0-9.]+)", .scale = 0.001, .output = "1500", .text = "1.5"},
		{.key = "([0-9.]+)", .scale = 1, .output = "1500.0", .text = "1500.0"},
		/* Carriage returns end lines; the last line may lack its end. */
		{.which = PARSE_LAST, .key = "^([0-9]+)$", .output = "10\r20\r\n30", .text = "30"},
		/* A group in the other branch is no match. */
		{.key = "a=([0-9]+)|b=[0-9]+", .output = "a=1 b=2", .text = "1"},
		/* What is not a number is never one. */
		{.key = "x=(.*)", .output = "x=nan", .code = -EBADMSG, .message = "\"nan\""},
		{.key = "x=([0-9.]+)", .output = "x=12.", .code = -EBADMSG, .message = "\"12.\""},
		{.key = "x=([0-9.]*)", .output = "x=", .code = -EBADMSG, .message = "not a number"},
		{.key = "x=([0-9]+)", .output = "", .code = -ENODATA, .message = "x=([0-9]+)"},
	};

	(void)state;
	CHECK(rows);
}

static const char will_it_scale[] = "tasks,processes,processes_idle,threads,threads_idle,linear\n"
				    "0,0,100,0,100,0\n"
				    "1,186543,49.99,171234,49.98,186543\n"
				    "4,701234,0.12,-1,0.34,746172\n";

static const char perf_stat[] = "# started on Wed Jan  8\n\n"
				"1.000,1234567,,cycles,1000,100.00,,\n"
				"1.000,<not counted>,,branches,0,100.00,,\n"
				"1.000,99,,\"a,b\",0,100.00,,\n";

static void test_csv(void **state)
{
	static const struct row rows[] = {
		{CSV, PARSE_LAST, "processes", "tasks=4", NULL, 0, will_it_scale, "701234", 0,
			NULL},
		{CSV, PARSE_FIRST, "processes", NULL, "tasks=0", 0, will_it_scale, "186543", 0,
			NULL},
		{CSV, PARSE_MAX, "threads", NULL, "tasks=0, threads=-1", 0, will_it_scale, "171234",
			0, NULL},
		{CSV, PARSE_LAST, "processes", "tasks=3", NULL, 0, will_it_scale, NULL, -ENODATA,
			"tasks=3"},
		{CSV, PARSE_LAST, "ops", NULL, NULL, 0, will_it_scale, NULL, -ENODATA,
			"no line names the column \"ops\""},
		{CSV, PARSE_LAST, "#2", "#4=cycles", NULL, 0, perf_stat, "1234567", 0, NULL},
		{CSV, PARSE_LAST, "#2", "#4=branches", NULL, 0, perf_stat, NULL, -EBADMSG,
			"<not counted>"},
		/* Text between rows is skipped, a broken row is not. */
		{CSV, PARSE_SUM, "b", NULL, NULL, 0,
			"hello\na,b\n1,2\nbye, all, of you\n3,4\nend\n", "6", 0, NULL},
		{CSV, PARSE_SUM, "b", NULL, NULL, 0, "a,b\n1,2\n3,\n", NULL, -EBADMSG, "\"\""},
		{CSV, PARSE_LAST, "b", NULL, NULL, 0, "a , \"b\"\n 1 , \"2.50\" \n", "2.50", 0,
			NULL},
		{CSV, PARSE_LAST, "b", NULL, NULL, 0, "", NULL, -ENODATA, "\"b\""},
	};

	(void)state;
	CHECK(rows);
}

static const char turbostat[] = "turbostat version 2022.10.04 - Len Brown\n"
				"CPUID(0): GenuineIntel 22 CPUID levels\n"
				"Core\tCPU\tAvg_MHz\tBusy%\tBzy_MHz\tPkgWatt\n"
				"-\t-\t12\t0.55\t2095\t1.20\n"
				"0\t0\t14\t0.61\t2100\t1.20\n"
				"0\t1\t10\t0.48\n"
				"Core\tCPU\tAvg_MHz\tBusy%\tBzy_MHz\tPkgWatt\n"
				"-\t-\t13\t0.650\t2095\t1.30\n";

static void test_table(void **state)
{
	static const struct row rows[] = {
		{TABLE, PARSE_LAST, "Busy%", "CPU=-", NULL, 0, turbostat, "0.650", 0, NULL},
		{TABLE, PARSE_FIRST, "Busy%", "CPU=-", NULL, 0, turbostat, "0.55", 0, NULL},
		{TABLE, PARSE_LAST, "Busy%", "CPU=1", NULL, 0, turbostat, "0.48", 0, NULL},
		{TABLE, PARSE_LAST, "Busy%", "CPU=-, Core=-", "Avg_MHz=13", 0, turbostat, "0.55", 0,
			NULL},
		{TABLE, PARSE_LAST, "PkgWatt", "CPU=1", NULL, 0, turbostat, NULL, -ENODATA,
			"CPU=1"},
		{TABLE, PARSE_LAST, "CPU", NULL, NULL, 0, turbostat, NULL, -EBADMSG, "\"-\""},
		{TABLE, PARSE_LAST, "%c0", NULL, NULL, 0, turbostat, NULL, -ENODATA, "%c0"},
		{TABLE, PARSE_LAST, "#6", NULL, NULL, 0, netperf, "48192.47", 0, NULL},
	};

	(void)state;
	CHECK(rows);
}

static const char fio[] = "fio: file system does not support direct=1\n"
			  "{\n \"fio version\" : \"fio-3.33\",\n \"jobs\" : [\n"
			  "  {\"jobname\" : \"a } \\\" [\", \"error\" : 0,\n"
			  "   \"read\" : {\"iops\" : 12345.600000, \"bw\" : 49382, \"clat_ns\" : "
			  "{\"percentile\" : {\"99.000000\" : 4128}}}},\n"
			  "  {\"jobname\" : \"b\", \"read\" : {\"iops\" : 2e3}, \"x\" : \"77\"}\n"
			  " ]\n}\nRun complete\n";

static const char iperf[] = "{\"start\":{},\"end\":{\"sum_received\":{\"seconds\":10.000123,"
			    "\"bits_per_second\":941573291.12}}}";

static void test_json(void **state)
{
	static const struct row rows[] = {
		{JSON, PARSE_LAST, "jobs[0].read.iops", NULL, NULL, 0, fio, "12345.600000", 0,
			NULL},
		{JSON, PARSE_SUM, "jobs[*].read.iops", NULL, NULL, 0, fio, "14345.6", 0, NULL},
		{JSON, PARSE_LAST, "jobs[0].read.clat_ns.percentile[\"99.000000\"]", NULL, NULL, 0,
			fio, "4128", 0, NULL},
		{JSON, PARSE_LAST, "jobs[1].x", NULL, NULL, 0, fio, "77", 0, NULL},
		{JSON, PARSE_LAST, "end.sum_received.bits_per_second", NULL, NULL, 0, iperf,
			"941573291.12", 0, NULL},
		{JSON, PARSE_LAST, "end.sum_received.bits_per_second", NULL, NULL, 1e-6, iperf,
			"941.57329112", 0, NULL},
		{JSON, PARSE_LAST, "jobs[2].read.iops", NULL, NULL, 0, fio, NULL, -ENODATA,
			"jobs[2].read.iops"},
		{JSON, PARSE_LAST, "jobs[0].write.iops", NULL, NULL, 0, fio, NULL, -ENODATA,
			"write"},
		{JSON, PARSE_LAST, "jobs[0].read", NULL, NULL, 0, fio, NULL, -EBADMSG, "an object"},
		{JSON, PARSE_LAST, "jobs[0].jobname", NULL, NULL, 0, fio, NULL, -EBADMSG,
			"not a number"},
		{JSON, PARSE_LAST, "a", NULL, NULL, 0, "{\"a\":nan}", NULL, -EBADMSG, "not JSON"},
		{JSON, PARSE_LAST, "a", NULL, NULL, 0, "{\"a\":-inf}", NULL, -EBADMSG, "not JSON"},
		{JSON, PARSE_LAST, "a", NULL, NULL, 0, "{\"a\":1-2}", NULL, -EBADMSG, "\"1-2\""},
		{JSON, PARSE_LAST, "a", NULL, NULL, 0, "{\"a\":null}", NULL, -EBADMSG, "null"},
		{JSON, PARSE_LAST, "a", NULL, NULL, 0, "{\"a\":12", NULL, -EBADMSG,
			"ends in the middle"},
		{JSON, PARSE_LAST, "a", NULL, NULL, 0, "{\"a\":12]", NULL, -EBADMSG, "a: "},
		{JSON, PARSE_LAST, "a", NULL, NULL, 0, "no json", NULL, -ENODATA, "no JSON object"},
	};

	(void)state;
	CHECK(rows);
}

/* A spec that cannot work is refused before anything runs, with the key that is wrong. */
static void test_check(void **state)
{
	static const struct {
		int format;
		int64_t group;
		const char *text, *row, *key, *message;
	} rows[] = {
		{REGEX, 1, "([0-9]+", NULL, "pattern", "does not compile: Unmatched ("},
		{REGEX, 1, "x=\\d+", NULL, "pattern", "write [0-9]"},
		{REGEX, 1, "[0-9]+", NULL, "group", "no group 1"},
		{REGEX, 2, "([0-9]+)", NULL, "group", "no group 2"},
		{REGEX, 1, NULL, NULL, "pattern", "needed"},
		{CSV, 1, NULL, NULL, "column", "needed"},
		{CSV, 1, "#0", NULL, "column", "#0"},
		{CSV, 1, "#1.5", NULL, "column", "#1.5"},
		{CSV, 1, "#2", "#4=a,b", "row", "COLUMN=VALUE, found \"b\""},
		{TABLE, 1, "x", "=3", "row", "empty"},
		{JSON, 1, NULL, NULL, "path", "needed"},
		{JSON, 1, "a..b", NULL, "path", "name is missing"},
		{JSON, 1, ".a", NULL, "path", "name is missing"},
		{JSON, 1, "a[", NULL, "path", "[NUMBER]"},
		{JSON, 1, "a[1", NULL, "path", "]"},
		{JSON, 1, "a[-1]", NULL, "path", "[NUMBER]"},
		{JSON, 1, "a[99999999999999999999]", NULL, "path", "[NUMBER]"},
		{JSON, 1, "a[\"b]", NULL, "path", "no closing"},
		{JSON, 1, "a[0]b", NULL, "path", "expected . or ["},
	};

	(void)state;
	for (size_t i = 0; i < N(rows); i++) {
		struct parse_spec spec = {.format = rows[i].format, .group = rows[i].group};
		char *text = xstrdup_null(rows[i].text);
		const char *key = "";
		struct err err = {0};

		if (rows[i].format == REGEX)
			spec.pattern = text;
		else if (rows[i].format == JSON)
			spec.path = text;
		else
			spec.column = text;
		spec.row = xstrdup_null(rows[i].row);
		assert_int_equal(parse_spec_check(&spec, &key, &err), -EINVAL);
		assert_string_equal(key, rows[i].key);
		if (!strstr(err.msg, rows[i].message))
			fail_msg("row %zu: %s", i, err.msg);
		parse_spec_release(&spec);
	}
}

/* Big and hostile output costs time in proportion, and memory within bounds. */
static void test_big(void **state)
{
	cleanup(buf_release) struct buf text = BUF_INIT;
	struct parse_spec spec = {.which = PARSE_LAST, .group = 1};
	struct parse_value value = {NULL, 0};
	const char *key;
	struct err err;

	(void)state;
	spec.pattern = xstrdup("([0-9]+)");
	assert_int_equal(parse_spec_check(&spec, &key, &err), 0);
	for (int i = 0; i < 150000; i++)
		buf_addf(&text, "%d\n", i);
	assert_int_equal(parse_output(&spec, text.data, text.len, &value, &err), 0);
	assert_string_equal(value.text, "149999");
	parse_value_release(&value);
	spec.which = PARSE_MEDIAN;
	assert_int_equal(parse_output(&spec, text.data, text.len, &value, &err), -E2BIG);

	/* A line without end is not searched, those around it are. */
	buf_reset(&text);
	buf_adds(&text, "5\n");
	for (int i = 0; i < 100000; i++)
		buf_addc(&text, '7');
	spec.which = PARSE_LAST;
	assert_int_equal(parse_output(&spec, text.data, text.len, &value, &err), 0);
	assert_string_equal(value.text, "5");
	parse_value_release(&value);
	parse_spec_release(&spec);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_number),
		cmocka_unit_test(test_regex),
		cmocka_unit_test(test_csv),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_big),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
