/* INI files and tables of keys: values, bounds, and the sentences that bad ones get. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/conf.h"
#include "daemon/job.h"

struct sample {
	char *text, *path;
	int flag, choice;
	int64_t count, size, time;
	double real;
};

#define AT(f) offsetof(struct sample, f)

static const struct conf_key keys[] = {
	{"a", "text", CONF_STRING, AT(text), CONF_REQUIRED, NULL, NULL, NULL, "a text"},
	{"a", "path", CONF_PATH, AT(path), NULL, NULL, NULL, NULL, "a path"},
	{"a", "flag", CONF_BOOL, AT(flag), "yes", NULL, NULL, NULL, "a flag"},
	{"b", "choice", CONF_ENUM, AT(choice), "one", NULL, NULL, "one|two|three", "a choice"},
	{"b", "count", CONF_INT, AT(count), "3", "1", "9", NULL, "a count"},
	{"b", "size", CONF_SIZE, AT(size), "1M", "4K", "1G", NULL, "a size"},
	{"b", "time", CONF_DURATION, AT(time), "5m", "1s", NULL, NULL, "a time"},
	{"b", "real", CONF_REAL, AT(real), "0.5", "0", "1", NULL, "a number"},
	CONF_END,
};

static int parse(const char *text, struct sample *ret, struct err *err)
{
	*ret = (struct sample){0};
	return conf_parse(text, strlen(text), "f.conf", NULL, keys, ret, err);
}

static void test_values(void **state)
{
	struct sample s;
	struct err err;

	(void)state;
	assert_int_equal(parse("# note\n[a]\ntext = sh -c 'x ; y' # stays\n  and more\n"
			       "path=/x\nflag = off\n[b]\nchoice = three\ncount = 9\n"
			       "size = 4K\ntime = 90\nreal = 1\n",
				 &s, &err),
		0);
	assert_string_equal(s.text, "sh -c 'x ; y' # stays and more");
	assert_string_equal(s.path, "/x");
	assert_int_equal(s.flag, 0);
	assert_int_equal(s.choice, 2);
	assert_int_equal(s.count, 9);
	assert_int_equal(s.size, 4096);
	assert_int_equal(s.time, 90000);
	assert_true(s.real == 1);
	conf_release(keys, &s);
}

static void test_defaults_and_print(void **state)
{
	cleanup(buf_release) struct buf out = BUF_INIT;
	struct sample s, again;
	struct err err;

	(void)state;
	assert_int_equal(parse("[a]\ntext = t", &s, &err), 0);
	assert_int_equal(s.time, 300000);
	conf_print(keys, &s, &out);
	assert_string_equal(out.data, "[a]\ntext = t\n# path =\nflag = yes\n\n[b]\nchoice = one\n"
				      "count = 3\nsize = 1M\ntime = 5m\nreal = 0.5\n");
	assert_int_equal(parse(out.data, &again, &err), 0);
	assert_int_equal(again.size, s.size);
	conf_release(keys, &s);
	conf_release(keys, &again);
}

static void test_long_line(void **state)
{
	char *text = malloc(100100);
	struct sample s;
	struct err err;

	(void)state;
	memset(text, 'x', 100099);
	memcpy(text, "[a]\ntext = ", 11);
	text[100099] = '\0';
	assert_int_equal(parse(text, &s, &err), 0);
	assert_int_equal(strlen(s.text), 100099 - 11);
	conf_release(keys, &s);
	free(text);
}

static const struct {
	const char *text, *error;
} bad[] = {
	{"", "f.conf: \"text\" is missing in [a] (a text)"},
	{"[a]\ntxt = 1\n", "f.conf:2: unknown key \"txt\" in [a]; known are: text, path, flag"},
	{"[c]\n", "f.conf:1: unknown section [c]; known are: [a], [b]"},
	{"text = 1\n", "f.conf:1: \"text\" stands before any section"},
	{"[a]\ntext = 1\ntext = 2\n", "f.conf:3: \"text\" was given already in line 2"},
	{"[a\n", "f.conf:1: the section header has no closing ']'"},
	{"[a]\nwhat\n", "f.conf:2: expected \"key = value\" or \"[section]\", found \"what\""},
	{"[a]\ntext =\n", "f.conf:2: text: the value is empty"},
	{"[a]\npath = x\n", "f.conf:2: path: expected an absolute path, found \"x\""},
	{"[a]\nflag = maybe\n", "f.conf:2: flag: expected yes or no, found \"maybe\""},
	{"[b]\nchoice = four\n", "f.conf:2: choice: expected one of one|two|three, found \"four\""},
	{"[b]\ncount = 10\n", "f.conf:2: count: expected at most 9, found \"10\""},
	{"[b]\ncount = 0\n", "f.conf:2: count: expected at least 1, found \"0\""},
	{"[b]\ncount = 1x\n", "f.conf:2: count: expected a whole number, found \"1x\""},
	{"[b]\nsize = 1Q\n", "f.conf:2: size: expected a size such as 512M or 2G, found \"1Q\""},
	{"[b]\nsize = -1M\n", "f.conf:2: size: expected a size"},
	{"[b]\nsize = 1\n", "f.conf:2: size: expected at least 4K, found \"1\""},
	{"[b]\ntime = soon\n", "f.conf:2: time: expected a time such as 90s, 15m or 2h"},
	{"[b]\nreal = nan\n", "f.conf:2: real: expected a number, found \"nan\""},
	{"[b]\nreal = 1.5\n", "f.conf:2: real: expected at most 1, found \"1.5\""},
};

static void test_bad(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct sample s;
		struct err err = {0};

		assert_true(parse(bad[i].text, &s, &err) < 0);
		if (strncmp(err.msg, bad[i].error, strlen(bad[i].error)) != 0)
			fail_msg("case %zu: \"%s\", expected \"%s\"", i, err.msg, bad[i].error);
	}
}

static void test_zero_byte(void **state)
{
	static const char text[] = "[a]\ntext = a\0b\n";
	struct sample s = {0};
	struct err err;

	(void)state;
	assert_true(conf_parse(text, sizeof(text) - 1, "f", NULL, keys, &s, &err) < 0);
	assert_string_equal(err.msg, "f:2: not a text file (zero byte)");
}

#define JOB "[job]\nname=n\n[range]\nrepo=r\ngood=a\nbad=b\n[test]\nbenchmark=x\n"

static void test_job(void **state)
{
	struct job_spec spec;
	struct err err;

	(void)state;
	assert_int_equal(job_parse(JOB, "j", "/d", &spec, &err), 0);
	assert_string_equal(spec.repo, "/d/r");
	assert_int_equal(spec.samples, 3);
	assert_int_equal(spec.boot_timeout, 300000);
	job_release(&spec);
	assert_true(job_parse(JOB "threshold = ten\n", "j", "/d", &spec, &err) < 0);
	assert_string_equal(err.msg,
		"j: threshold: expected auto, a number, or per cent of good such as -10%, "
		"found \"ten\"");
	assert_true(job_parse(JOB "[boot]\ntiming=virtual\ncpus=2\n", "j", "/d", &spec, &err) < 0);
	assert_non_null(strstr(err.msg, "timing = virtual needs cpus = 1, found 2"));
	assert_true(
		job_parse(JOB "[boot]\ntiming=virtual\naccel=kvm\n", "j", "/d", &spec, &err) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_defaults_and_print),
		cmocka_unit_test(test_long_line),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_zero_byte),
		cmocka_unit_test(test_job),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
