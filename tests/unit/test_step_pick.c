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

/*
 *   good -- c1 -- c2 --------- m -- c5 -- bad        (every one a tag, bad annotated)
 *              \-- s1 -- s2 --/
 */
static const char script[] =
	"git init -q -b main .\n"
	"c() { echo $1 >>f; git add f; git commit -q -m \"$1: subject\" -m 'A body.'; git tag $1; "
	"}\n"
	"c good; c c1; git checkout -q -b side; echo x >g; git add g; c s1; c s2\n"
	"git checkout -q main; echo y >h; git add h; git commit -q -m 'c2: subject'; git tag c2\n"
	"git merge -q -m 'm: subject' side; git tag m; c c5\n"
	"echo z >>f; git commit -qam 'bad: subject'; git tag -a -m x bad\n";

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

static char *git_id(const char *name)
{
	return gitrepo_sh(&git, "git rev-parse '%s^{commit}'", name);
}

/* verdicts: "c1=good m=skip" */
static json_t *make_request(const char *good, const char *bad, const char *verdicts)
{
	json_t *request = json_object(), *goods = json_array(), *map = json_object();
	cleanup(free) char *good_id = git_id(good);
	cleanup(free) char *bad_id = git_id(bad);

	json_set_str(request, "repo", git.dir);
	json_array_append_new(goods, json_string(good_id));
	json_object_set_new(request, "good", goods);
	json_set_str(request, "bad", bad_id);
	while (*verdicts) {
		size_t name_len = strcspn(verdicts, "="), len = strcspn(verdicts, " ");
		cleanup(free) char *name = xstrndup(verdicts, name_len);
		cleanup(free) char *verdict = xstrndup(verdicts + name_len + 1, len - name_len - 1);
		cleanup(free) char *id = git_id(name);

		json_set_str(map, id, verdict);
		verdicts += len;
		verdicts += strspn(verdicts, " ");
	}
	json_object_set_new(request, "verdicts", map);
	return request;
}

/* What the answer comes down to: "next 3 2 LABELS" (left, steps; any of the labels will do). */
static const struct {
	const char *verdicts, *key;
	const char *labels; /* for next: any of them; for set: all, in this order */
	int left, steps;
} answers[] = {
	{"", "next", "c2 s1 s2", 7, 3},
	{"bad=bad good=good", "next", "c2 s1 s2", 7, 3},
	{"bad=unsure good=skip", "next", "c2 s1 s2", 7, 3},
	{"m=bad", "next", "c2 s1 s2", 5, 3},
	{"m=bad c1=good", "next", "s2", 4, 2},
	{"m=bad s2=good", "next", "c2", 2, 1},
	{"m=bad s2=good c2=good", "culprit", "m", 1, 0},
	{"c1=bad", "culprit", "c1", 1, 0},
	{"c5=good", "culprit", "bad", 1, 0},
	{"m=good c5=skip", "set", "c5 bad", 2, 1},
	{"m=good c5=unsure", "set", "c5 bad", 2, 1},
	{"s2=bad c1=skip s1=skip", "set", "c1 s1 s2", 3, 2},
};

static void test_answers(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(answers); i++) {
		cleanup(json_decref) json_t *request =
			make_request("good", "bad", answers[i].verdicts);
		cleanup(buf_release) struct buf set = BUF_INIT;
		struct err err = {0};
		cleanup(json_decref) json_t *result = steprun(step_pick, request, &err);
		cleanup(free) char *line = json_line(result);
		json_t *found = json_object_get(result, answers[i].key), *one;
		size_t k;

		if (!found || json_opt_int(result, "left", -1) != answers[i].left ||
			json_opt_int(result, "steps", -1) != answers[i].steps)
			fail_msg("%s: %s %s", answers[i].verdicts, line, err.msg);
		json_array_foreach (found, k, one)
			buf_addf(&set, "%s%s", k ? " " : "", json_opt_str(one, "label", "?"));
		if (json_is_array(found)
				? strcmp(buf_str(&set), answers[i].labels) != 0
				: !strstr(answers[i].labels, json_opt_str(found, "label", "?")))
			fail_msg("%s: %s", answers[i].verdicts, line);
	}
}

static void test_culprit(void **state)
{
	cleanup(json_decref) json_t *request = make_request("good", "bad", "m=bad s2=good c2=good");
	struct err err = {0};
	cleanup(json_decref) json_t *result = steprun(step_pick, request, &err);
	json_t *culprit = json_object_get(result, "culprit");
	json_t *parents = json_object_get(culprit, "parents");
	cleanup(free) char *id = git_id("m");

	(void)state;
	assert_string_equal(json_opt_str(culprit, "id", ""), id);
	assert_string_equal(json_opt_str(culprit, "subject", ""), "m: subject");
	assert_string_equal(json_opt_str(culprit, "body", "?"), "");
	assert_string_equal(json_opt_str(culprit, "author", ""), "Ann Other <ann@example.org>");
	assert_int_equal(json_opt_int(culprit, "date", 0), 1389174839);
	assert_non_null(strstr(json_opt_str(culprit, "diffstat", ""), "2 files changed"));
	assert_int_equal(json_array_size(parents), 2);
	assert_string_equal(json_opt_str(json_array_get(parents, 0), "label", ""), "c2");
	assert_string_equal(json_opt_str(json_array_get(parents, 1), "label", ""), "s2");
	assert_string_equal(json_opt_str(json_array_get(parents, 1), "subject", ""), "s2: subject");
}

static const struct {
	const char *good, *bad, *verdicts, *words;
} refusals[] = {
	{"good", "bad", "m=good c2=bad", "m is good but contains c2, which is bad"},
	{"good", "bad", "bad=good", "bad is both good and bad"},
	{"good", "bad", "good=bad", "good is both good and bad"},
	{"c1", "bad", "good=bad", "c1 is good but contains good, which is bad"},
	{"good", "bad", "c1=good c2=bad s2=bad", "more than one commit is at fault"},
};

static void test_refusals(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(refusals); i++) {
		cleanup(json_decref) json_t *request =
			make_request(refusals[i].good, refusals[i].bad, refusals[i].verdicts);
		struct err err = {0};
		cleanup(json_decref) json_t *result = steprun(step_pick, request, &err);
		const char *words = json_opt_str(result, "refused", "none");

		if (!strstr(words, refusals[i].words))
			fail_msg("%s: %s %s", refusals[i].verdicts, words, err.msg);
	}
}

/* Not the job's fault as far as anyone can tell: a retry may help. */
static void test_infra(void **state)
{
	cleanup(json_decref) json_t *request = make_request("good", "bad", "");
	struct err err = {0};

	(void)state;
	json_set_str(request, "repo", "/nonexistent");
	assert_null(steprun(step_pick, request, &err));
	assert_string_equal(err.msg, "/nonexistent: no such repository");
	json_set_str(request, "repo", git.dir);
	json_set_str(json_object_get(request, "verdicts"), "00", "perhaps");
	assert_null(steprun(step_pick, request, &err));
	assert_non_null(strstr(err.msg, "\"perhaps\" is no verdict"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_culprit),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_infra),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
