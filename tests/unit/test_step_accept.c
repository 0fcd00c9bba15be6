#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gitrepo.h"
#include "steprun.h"
#include "base/banned.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct gitrepo git;

/* A repository that looks like a kernel's from v1 on, and a folder for jobs beside it. */
static const char script[] =
	"git init -q -b main linux; cd linux\n"
	"git commit -q --allow-empty -m 'empty'; git tag v0\n"
	"mkdir -p arch/x86/configs; touch Makefile Kconfig\n"
	"touch arch/x86/configs/x86_64_defconfig arch/x86/configs/tiny.config\n"
	"git add .; git commit -q -m 'one: begin'; git tag -a -m v1 v1\n"
	"git checkout -q -b side; echo s >s; git add s; git commit -q -m 'side: of things'\n"
	"git checkout -q main; echo t >t; git add t; git commit -q -m 'two: go on'\n"
	"git merge -q -m 'merge side' side; git tag v2; git tag tree HEAD^{tree}\n"
	"cd ..; mkdir jobs benchmarks\n"
	"printf 'CONFIG_64BIT=y\\n# CONFIG_SMP is not set\\n\\n' >jobs/my.config\n"
	"printf 'CONFIG_NET=y\\r\\n' >jobs/net.config; : >jobs/empty.config\n"
	"printf 'CONFIG_64BIT=y\\nroot:secret\\n' >jobs/shadow\n"
	"printf 'CONFIG_A=y\\n\\0' >jobs/zero; mkfifo jobs/fifo\n"
	"{ echo [benchmark]; echo 'command = run ${args}'; echo 'args = -x'\n"
	"  for m in time=lower rate=higher; do\n"
	"    echo \"[metric ${m%=*}]\"; echo 'format = regex'; echo 'pattern = (.*)'\n"
	"    echo \"better = ${m#*=}\"; echo 'unit = s'; done; } >benchmarks/speed.conf\n"
	"grep -v args benchmarks/speed.conf | sed '1a command = run' >benchmarks/plain.conf\n"
	"grep -v '^args' benchmarks/speed.conf >benchmarks/needy.conf\n"
	"echo '[benchmark' >benchmarks/broken.conf\n";

static int setup(void **state)
{
	(void)state;
	gitrepo_init(&git);
	gitrepo_do(&git, "%s", script);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	gitrepo_remove(&git);
	return 0;
}

/* A good job file; line numbers in the cases below are those of this text. */
static const char *const good_job[] = {
	"[job]",
	"name = test",
	"[range]",
	"repo = ../linux",
	"good = v1",
	"bad = v2",
	"[test]",
	"benchmark = speed",
	"[build]",
	"config = tiny",
	"[report]",
	"mail = ann@example.org",
};

/* The good job with one line replaced (0 = none) and, at the end, more lines. */
static json_t *run_job(int line, const char *text, const char *more, struct err *err)
{
	cleanup(buf_release) struct buf job = BUF_INIT;
	cleanup(json_decref) json_t *request = json_object();
	cleanup(free) char *dir = file_join(git.dir, "jobs");
	cleanup(free) char *benchmarks = file_join(git.dir, "benchmarks");

	for (size_t i = 0; i < COUNT(good_job); i++)
		buf_addf(&job, "%s\n", (int)i + 1 == line ? text : good_job[i]);
	buf_adds(&job, more);
	json_set_str(request, "text", buf_str(&job));
	json_set_str(request, "where", "x.job");
	json_set_str(request, "dir", dir);
	json_set_str(request, "benchmarks", benchmarks);
	return steprun(step_accept, request, err);
}

static void test_result(void **state)
{
	struct err err = {0};
	cleanup(json_decref) json_t *result = run_job(0, NULL, "", &err);
	json_t *good = json_object_get(result, "good"), *config = json_object_get(result, "config");
	cleanup(free) char *id = gitrepo_sh(&git, "git -C linux rev-parse 'v1^{commit}'");

	(void)state;
	if (!good)
		fail_msg("%s", json_opt_str(result, "refused", err.msg));
	assert_string_equal(json_opt_str(good, "id", ""), id);
	assert_string_equal(json_opt_str(good, "label", ""), "v1");
	assert_string_equal(json_opt_str(good, "subject", ""), "one: begin");
	assert_string_equal(json_opt_str(json_object_get(result, "bad"), "label", ""), "v2");
	assert_int_equal(json_opt_int(result, "commits", 0), 3);
	assert_int_equal(json_opt_int(result, "merges", 0), 1);
	assert_string_equal(json_opt_str(config, "base", ""), "tiny");
	assert_int_equal(json_array_size(json_object_get(result, "fragments")), 0);
	assert_string_equal(
		json_opt_str(json_object_get(result, "benchmark"), "name", ""), "speed");
	assert_non_null(strstr(
		json_opt_str(json_object_get(result, "benchmark"), "text", ""), "command = run"));
	assert_string_equal(json_opt_str(result, "metric", ""), "time");
	assert_string_equal(json_opt_str(result, "better", ""), "lower");
	assert_string_equal(json_opt_str(result, "unit", ""), "s");
}

/* What a line makes of one key of the result. */
static const struct {
	int line;
	const char *text, *more, *object, *key, *value;
} choices[] = {
	{10, "config = defconfig", "", "config", "base", "defconfig"},
	{10, "config = x86_64_defconfig", "", "config", "name", "x86_64_defconfig"},
	{10, "config = ./my.config", "", "config", "base", "file"},
	{10, "config = ./my.config", "", "config", "name", "./my.config"},
	{10, "config = ./my.config", "", "config", "text",
		"CONFIG_64BIT=y\n# CONFIG_SMP is not set\n\n"},
	{10, "config = ./empty.config", "", "config", "text", ""},
	{8, "benchmark = speed\nmetric = rate", "", NULL, "better", "higher"},
	{8, "benchmark = speed\nmetric = rate", "", NULL, "metric", "rate"},
	{8, "benchmark = speed\nbetter = higher", "", NULL, "better", "higher"},
	{8, "benchmark = speed\nmetric = rate\nbetter = lower", "", NULL, "better", "lower"},
	{8, "benchmark = plain", "", NULL, "metric", "time"},
	{8, "benchmark = needy\nargs = -y", "", "benchmark", "name", "needy"},
};

static void test_choices(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(choices); i++) {
		struct err err = {0};
		cleanup(json_decref) json_t *result =
			run_job(choices[i].line, choices[i].text, choices[i].more, &err);
		json_t *object =
			choices[i].object ? json_object_get(result, choices[i].object) : result;
		const char *value = json_opt_str(object, choices[i].key, NULL);

		if (!value || strcmp(value, choices[i].value) != 0)
			fail_msg("%s: %s", choices[i].text,
				value ? value : json_opt_str(result, "refused", err.msg));
	}
}

static void test_fragments(void **state)
{
	struct err err = {0};
	cleanup(json_decref) json_t *result =
		run_job(10, "fragments = my.config  ./net.config", "", &err);
	json_t *fragments = json_object_get(result, "fragments");

	(void)state;
	if (json_array_size(fragments) != 2)
		fail_msg("%s", json_opt_str(result, "refused", err.msg));
	assert_string_equal(json_opt_str(json_array_get(fragments, 0), "name", ""), "my.config");
	assert_string_equal(
		json_opt_str(json_array_get(fragments, 1), "text", ""), "CONFIG_NET=y\r\n");
}

/* One sentence a mistake, with the place. */
static const struct {
	int line;
	const char *text, *place, *words;
} mistakes[] = {
	{2, "nmae = test", "x.job:2: ", "nmae"},
	{4, "repo = ../linus", "x.job:4: repo = ", "linus: no such repository"},
	{4, "repo = .", "x.job:4: ", "not a git repository"},
	{4, "repo = my.config", "x.job:4: ", "not a git repository (it is a file)"},
	{5, "good = v1x", "x.job:5: good = v1x: ", "no such revision in "},
	{5, "good = v1x", "x.job:5: ", "did you mean v1?"},
	{5, "good = --help", "x.job:5: good = --help: ", "no such revision"},
	{5, "good = v1 v2", "x.job:5: good = v1 v2: ", "no such revision"},
	{5, "good = tree", "x.job:5: good = tree: ", "names a tree"},
	{5, "good = v0", "x.job:5: good = v0: ", "not a Linux kernel: there is no Makefile"},
	{5, "good = v2", "x.job:6: ", "good and bad are the same commit (v2)"},
	{6, "bad = side~1", "x.job:6: ", "good and bad are the same commit (v1)"},
	{6, "bad = v3", "x.job:6: bad = v3: ", "no such revision"},
	{8, "benchmark = spead", "x.job:8: ", "there are: "},
	{8, "benchmark = ../speed", "x.job:8: ", "cannot be a benchmark's name"},
	{8, "benchmark = broken", "x.job:8: ", "broken.conf:1: "},
	{8, "benchmark = speed\nmetric = tiem", "x.job:9: ", "no metric \"tiem\""},
	{8, "benchmark = plain\nargs = 3", "x.job:9: ", "takes no args"},
	{8, "benchmark = needy", "x.job: [test]: ", "needs args"},
	{8, "benchmark = speed\nthreshold = fast", "x.job", "expected auto"},
	{10, "config = foo", "x.job:10: config = foo: ", "v1 has no arch/x86/configs/foo"},
	{10, "config = tiny.config", "x.job:10: ", "neither tiny nor a defconfig"},
	{10, "config = -k_defconfig", "x.job:10: ", "neither tiny nor a defconfig"},
	{10, "config = ./absent", "x.job:10: config = ./absent: ", "No such file"},
	{10, "config = ./", "x.job:10: ", "not a regular file"},
	{10, "config = ./fifo", "x.job:10: ", "not a regular file"},
	{10, "config = ./zero", "x.job:10: ", "not a text file"},
	{10, "config = ./shadow", "x.job:10: ", "line 2 is neither CONFIG_NAME=VALUE nor"},
	{10, "fragments = my.config absent", "x.job:10: fragments = absent: ", "No such file"},
	{12, "mail = ann", "x.job:12: ", "not a mail address"},
	{12, "in-reply-to = a b", "x.job:12: ", "a b"},
};

static void test_mistakes(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(mistakes); i++) {
		struct err err = {0};
		cleanup(json_decref) json_t *result =
			run_job(mistakes[i].line, mistakes[i].text, "", &err);
		const char *words = json_opt_str(result, "refused", NULL);

		if (!words || !strstr(words, mistakes[i].words) ||
			strncmp(words, mistakes[i].place, strlen(mistakes[i].place)) != 0 ||
			strchr(words, '\n') || strstr(words, "secret"))
			fail_msg("%s: %s", mistakes[i].text, words ? words : err.msg);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_result),
		cmocka_unit_test(test_choices),
		cmocka_unit_test(test_fragments),
		cmocka_unit_test(test_mistakes),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
