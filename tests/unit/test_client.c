/* The client's pure parts: options, cleaning of foreign text, tables, times, job files. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "client/client.h"
#include "client/format.h"
#include "client/options.h"
#include "client/submit.h"
#include "client/table.h"
#include "client/term.h"
#include "base/banned.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

static void test_clean(void **state)
{
	static const struct {
		const char *in;
		int keep_lines;
		const char *out;
	} cases[] = {
		{"plain text", 0, "plain text"},
		{"", 0, ""},
		{"\033[2J\a", 0, "\\x1b[2J\\x07"},
		{"a\rb\bc\x7f", 1, "a\\x0db\\x08c\\x7f"},
		{"a\nb\tc", 0, "a\\x0ab\\x09c"},
		{"a\nb\tc", 1, "a\nb\tc"},
		{"\xc2\x9b"
		 "31m",
			0, "\\x9b31m"},
		{"\x9b"
		 "31m",
			0, "\\x9b31m"},
		{"Jos\xc3\xa9 \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x90\xa7", 0,
			"Jos\xc3\xa9 \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x90\xa7"},
		{"x\xe2\x80\xaey", 0, "x\\u202ey"},
		{"\xe2\x81\xa6", 0, "\\u2066"},
		{"cut\xe6\x97", 0, "cut\\xe6\\x97"},
		{"\xc0\xaf\xed\xa0\x80\xf5", 0, "\\xc0\\xaf\\xed\\xa0\\x80\\xf5"},
		{"\xe0\x80\xaf", 0, "\\xe0\\x80\\xaf"},
		{"\xf4\x90\x80\x80", 0, "\\xf4\\x90\\x80\\x80"},
	};

	(void)state;
	for (size_t i = 0; i < N(cases); i++) {
		cleanup(buf_release) struct buf out = BUF_INIT;

		term_clean(cases[i].in, cases[i].keep_lines, &out);
		assert_string_equal(buf_str(&out), cases[i].out);
	}
}

static void test_width(void **state)
{
	static const struct {
		const char *text;
		int width, columns;
		size_t fit;
	} cases[] = {
		{"abc", 3, 2, 2},
		{"abc", 3, 9, 3},
		{"\xc3\xa9t\xc3\xa9", 3, 2, 3},	       /* one column each, two bytes */
		{"\xe6\x97\xa5\xe6\x9c\xac", 4, 3, 3}, /* two columns each: one fits */
		{"e\xcc\x81x", 2, 1, 3},	       /* a combining accent takes none */
		{"", 0, 5, 0},
		{"abc", 3, 0, 0},
	};
	struct term term;

	(void)state;
	term_init(&term);
	for (size_t i = 0; i < N(cases); i++) {
		assert_int_equal(term_width(cases[i].text), cases[i].width);
		assert_int_equal(term_fit(cases[i].text, cases[i].columns), cases[i].fit);
	}
}

static void test_duration(void **state)
{
	static const struct {
		int64_t ms;
		const char *text;
	} cases[] = {
		{-5, "0.0 s"},
		{0, "0.0 s"},
		{400, "0.4 s"},
		{1000, "1 s"},
		{119999, "119 s"},
		{120000, "2 min"},
		{3599999, "59 min"},
		{3600000, "1 h 00 min"},
		{3600000 * 3 + 60000 * 5, "3 h 05 min"},
		{86400000LL * 2 + 3600000 * 4, "2 d 04 h"},
	};

	(void)state;
	for (size_t i = 0; i < N(cases); i++) {
		cleanup(free) char *text = format_duration(cases[i].ms);

		assert_string_equal(text, cases[i].text);
	}
}

static void test_ago(void **state)
{
	const int64_t now = 1389174839000; /* 2014-01-08 09:53:59 UTC */
	static const struct {
		int64_t ago;
		const char *text;
	} cases[] = {
		{-3000, "now"}, /* a clock that is ahead */
		{500, "now"},
		{5000, "5 s ago"},
		{180000, "3 min ago"},
		{7200000, "2 h ago"},
		{86400000 * 3, "3 d ago"},
		{86400000LL * 30, "2013-12-09"},
	};
	cleanup(free) char *never = format_ago(0, now), *date = format_time(now);

	(void)state;
	assert_string_equal(never, "-");
	assert_string_equal(date, "2014-01-08 09:53:59");
	for (size_t i = 0; i < N(cases); i++) {
		cleanup(free) char *text = format_ago(now - cases[i].ago, now);

		assert_string_equal(text, cases[i].text);
	}
}

static void test_id(void **state)
{
	static const char *const wrong[] = {
		"", "0", "-1", "+1", " 1", "1 ", "1x", "last", "99999999999999999999"};
	int64_t id = 0;

	(void)state;
	for (size_t i = 0; i < N(wrong); i++)
		assert_int_equal(format_parse_id(wrong[i], &id), -EINVAL);
	assert_int_equal(id, 0);
	assert_int_equal(format_parse_id("42", &id), 0);
	assert_int_equal(id, 42);
}

static void test_value(void **state)
{
	static const struct {
		const char *json, *text;
	} cases[] = {
		{"\"2317.00\"", "2317.00"},
		{"2317", "2317"},
		{"2317.25", "2317.25"},
		{"null", "-"},
		{"[]", "-"},
	};

	(void)state;
	for (size_t i = 0; i < N(cases); i++) {
		cleanup(json_decref) json_t *json =
			json_loads(cases[i].json, JSON_DECODE_ANY, NULL);
		cleanup(free) char *text = format_value(json);

		assert_string_equal(text, cases[i].text);
	}
}

static void test_options(void **state)
{
	static const struct {
		unsigned allowed;
		const char *argv[6];
		const char *error; /* NULL = accepted */
		int json, follow;
		const char *why, *socket;
		size_t n_args;
	} cases[] = {
		{OPTION_FOLLOW, {"-fj", "7"}, NULL, 1, 1, NULL, NULL, 1},
		{OPTION_FOLLOW, {"7", "--follow"}, NULL, 0, 1, NULL, NULL, 1},
		{OPTION_WHY, {"--why", "-x", "7"}, NULL, 0, 0, "-x", NULL, 1},
		{OPTION_WHY, {"--why=a=b", "7"}, NULL, 0, 0, "a=b", NULL, 1},
		{0, {"--socket", "/s", "--", "-f"}, NULL, 0, 0, NULL, "/s", 1},
		{0, {"-"}, NULL, 0, 0, NULL, NULL, 1},
		{0, {"-f"}, "there is no option -f here", 0, 0, NULL, NULL, 0},
		{0, {"--follow"}, "there is no option --follow here", 0, 0, NULL, NULL, 0},
		{0, {"--js"}, "there is no option --js here", 0, 0, NULL, NULL, 0},
		{0, {"--json=1"}, "--json takes no value", 0, 0, NULL, NULL, 0},
		{0, {"--socket"}, "--socket needs a value", 0, 0, NULL, NULL, 0},
		{OPTION_LIST, {"-n"}, "-n needs a value", 0, 0, NULL, NULL, 0},
	};

	(void)state;
	for (size_t i = 0; i < N(cases); i++) {
		cleanup(options_release) struct options options = {0};
		struct err err = {0};
		int argc = 0, r;

		while (argc < 6 && cases[i].argv[argc])
			argc++;
		r = options_parse(
			&options, cases[i].allowed, 0, argc, (char **)cases[i].argv, &err);
		if (cases[i].error) {
			assert_int_equal(r, -EINVAL);
			assert_string_equal(err.msg, cases[i].error);
			continue;
		}
		assert_int_equal(r, argc);
		assert_int_equal(options.json, cases[i].json);
		assert_int_equal(options.follow, cases[i].follow);
		assert_int_equal(options.n_args, cases[i].n_args);
		assert_string_equal(
			options.why ? options.why : "", cases[i].why ? cases[i].why : "");
		assert_string_equal(options.socket ? options.socket : "",
			cases[i].socket ? cases[i].socket : "");
	}
}

static void test_options_stop(void **state)
{
	cleanup(options_release) struct options options = {0};
	const char *argv[] = {"--json", "log", "-f", "7"};
	struct err err = {0};

	(void)state;
	assert_int_equal(options_parse(&options, 0, 1, 4, (char **)argv, &err), 2);
	assert_int_equal(options.n_args, 1);
	assert_string_equal(options.args[0], "log");
}

static void test_submit(void **state)
{
	static const struct {
		const char *argv[7];
		const char *text, *error;
	} cases[] = {
		{{"--bad=v2", "--good", "v1", "--name=x", "--threshold", "-10%"},
			"[job]\nname = x\n[range]\ngood = v1\nbad = v2\n[test]\nthreshold = -10%\n",
			NULL},
		{{"--boot.timeout=5m", "--build.timeout=2h"},
			"[build]\ntimeout = 2h\n[boot]\ntimeout = 5m\n", NULL},
		{{"--good=a", "--good=b"}, "[range]\ngood = b\n", NULL},
		{{"--timeout=5m"}, NULL,
			"--timeout stands in two sections: say --build.timeout or --boot.timeout"},
		{{"--goood=a"}, NULL, "the job file has no key \"goood\" (see kbctl keys)"},
		{{"--boot.good=a"}, NULL, "the job file has no key \"boot.good\" (see kbctl keys)"},
		{{"--good=a\nbad=b"}, NULL, "the value of --good contains a line break"},
	};
	cleanup(json_decref) json_t *keys =
		json_loads("[{\"section\":\"job\",\"name\":\"name\"},{\"section\":\"range\","
			   "\"name\":\"good\"},"
			   "{\"section\":\"range\",\"name\":\"bad\"},{\"section\":\"build\","
			   "\"name\":\"timeout\"},"
			   "{\"section\":\"boot\",\"name\":\"timeout\"},"
			   "{\"section\":\"test\",\"name\":\"threshold\"}]",
			0, NULL);

	(void)state;
	for (size_t i = 0; i < N(cases); i++) {
		cleanup(options_release) struct options options = {0};
		cleanup(buf_release) struct buf text = BUF_INIT;
		struct err err = {0};
		int argc = 0, r;

		while (argc < 7 && cases[i].argv[argc])
			argc++;
		r = options_parse(&options, OPTION_KEYS, 0, argc, (char **)cases[i].argv, &err);
		assert_int_equal(r, argc);
		r = submit_text(keys, options.keys, options.n_keys, &text, &err);
		assert_int_equal(r, cases[i].error ? -EINVAL : 0);
		if (cases[i].error)
			assert_string_equal(err.msg, cases[i].error);
		else
			assert_string_equal(buf_str(&text), cases[i].text);
	}
}

/* Print a table into a string, in place of standard output. */
static char *print_to_string(const struct table *table, int width)
{
	const struct term term = {0};
	FILE *saved = stdout, *out;
	char *text = NULL;
	size_t len;

	out = open_memstream(&text, &len);
	stdout = out;
	table_print(table, &term, width);
	stdout = saved;
	fclose(out);
	return text;
}

static void test_table(void **state)
{
	static const struct table_column columns[] = {
		{"ID", 1, 0},
		{"NAME", 0, 6},
		{"SUBJECT", 0, 10},
		{NULL, 0, 0},
	};
	cleanup(table_release) struct table table = {.columns = columns};
	cleanup(free) char *wide = NULL, *narrow = NULL;

	(void)state;
	table_cell(&table, STYLE_PLAIN, "7");
	table_cell(&table, STYLE_GOOD, "short");
	table_cell(&table, STYLE_PLAIN, "x86: make it slow\033[31m");
	table_cellf(&table, STYLE_PLAIN, "%d", 123);
	table_cell(&table, STYLE_PLAIN, "\xe6\x97\xa5\xe6\x9c\xac");
	table_cell(&table, STYLE_PLAIN, NULL);
	wide = print_to_string(&table, 80);
	assert_string_equal(wide, " ID  NAME   SUBJECT\n"
				  "  7  short  x86: make it slow\\x1b[31m\n"
				  "123  \xe6\x97\xa5\xe6\x9c\xac   -\n");
	narrow = print_to_string(&table, 26);
	assert_string_equal(narrow, " ID  NAME   SUBJECT\n"
				    "  7  short  x86: make i...\n"
				    "123  \xe6\x97\xa5\xe6\x9c\xac   -\n");
}

static void test_result_exit(void **state)
{
	static const struct {
		const char *state, *result;
		int code;
	} cases[] = {
		{"done", "culprit", CLIENT_OK},
		{"done", "set", CLIENT_NO_CULPRIT},
		{"done", "not-reproducible", CLIENT_NO_CULPRIT},
		{"done", "", CLIENT_NO_CULPRIT},
		{"failed", "", CLIENT_FAILED},
		{"cancelled", "", CLIENT_FAILED},
		{"running", "", -EAGAIN},
		{"held", "", -EAGAIN},
		{"", "culprit", -EAGAIN},
	};

	(void)state;
	for (size_t i = 0; i < N(cases); i++)
		assert_int_equal(
			client_result_exit(cases[i].state, cases[i].result), cases[i].code);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clean),
		cmocka_unit_test(test_width),
		cmocka_unit_test(test_duration),
		cmocka_unit_test(test_ago),
		cmocka_unit_test(test_id),
		cmocka_unit_test(test_value),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_options_stop),
		cmocka_unit_test(test_submit),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_result_exit),
	};

	setenv("TZ", "UTC", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
