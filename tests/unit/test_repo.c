#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "bisect/commit.h"
#include "bisect/range.h"
#include "bisect/repo.h"

#include "gitrepo.h"
#include "base/banned.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct gitrepo git;

/*
 *   v1 -- (latin) -- v2 -- v3 (merge) -- main        orphan: no parents, tag island
 *     \------ side --------/
 */
static const char script[] =
	"git init -q -b main w; cd w\n"
	"c() { git commit -q --allow-empty \"$@\"; }\n"
	"mkdir -p arch/x86; echo all: >Makefile; echo 1 >arch/x86/Kconfig; git add .\n"
	"c -m 'one: begin'; git tag -a -m v1 v1; git tag v1-plain; git tag a1\n"
	"git checkout -q -b side; echo s >s; git add s; c -m 'side: of things'\n"
	"git checkout -q main; git mv arch/x86/Kconfig arch/x86/Konfig; seq 9 >>Makefile; git add "
	".\n"
	"printf 'caf\\351: fa\\347ade\\n\\nna\\357ve body\\n\\nSigned-off-by: x\\n' >m\n"
	"GIT_AUTHOR_NAME=$(printf 'Jos\\351') git -c i18n.commitEncoding=ISO-8859-1 commit -q -F "
	"m\n"
	"git tag latin\n"
	"git cat-file commit HEAD | sed /^encoding/d >c; git hash-object -t commit -w c >id\n"
	"git tag undeclared $(cat id)\n"
	"c -m two; git tag -a -m v2 v2; git tag -a -m v2 v2-again\n"
	"git merge -q --no-ff -m 'merge: side' side; git tag v3\n"
	"c -m four\n"
	"git checkout -q --orphan lone; c -m alone; git tag island\n"
	"git checkout -q main; git tag tree HEAD^{tree}; git tag blob HEAD:Makefile\n"
	"git update-ref refs/remotes/origin/linux-6.1.y HEAD\n"
	"cd ..; git clone -q --bare w bare\n"
	"git clone -q --depth 2 file://$PWD/w shallow\n"
	"mkdir empty; git init -q -b main fresh; echo x >file\n"
	"git -C w worktree add -q --detach ../tree; git -C w config extensions.worktreeConfig "
	"true\n";

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

static struct repo *open_repo(const char *name)
{
	cleanup(free) char *path = file_join(git.dir, name);
	struct repo *repo = NULL;
	struct err err = {0};

	if (repo_open(path, &repo, &err) < 0)
		fail_msg("%s", err.msg);
	return repo;
}

/* What git itself thinks of a revision. */
static void git_id(const char *revision, char ret[static REPO_ID_SIZE])
{
	cleanup(free) char *out = gitrepo_sh(&git, "git -C w rev-parse '%s^{commit}'", revision);

	snprintf(ret, REPO_ID_SIZE, "%.40s", out);
}

static const struct {
	const char *name, *words; /* NULL = opens */
} openings[] = {
	{"w", NULL},
	{"w/.git", NULL},
	{"bare", NULL},
	{"tree", NULL},
	{"shallow", NULL},
	{"absent", "absent: no such repository"},
	{"file", "file: not a git repository (it is a file)"},
	{"file/x", "no such repository"},
	{"empty", "empty: not a git repository"},
	/* not the one that some folder above happens to be in */
	{"w/arch", "arch: not a git repository"},
};

static void test_open(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(openings); i++) {
		cleanup(repo_free) struct repo *repo = NULL;
		cleanup(free) char *path = file_join(git.dir, openings[i].name);
		struct err err = {0};
		int r = repo_open(path, &repo, &err);

		if ((r < 0) != (openings[i].words != NULL) ||
			(r < 0 && !strstr(err.msg, openings[i].words)))
			fail_msg("%s: %d %s", openings[i].name, r, err.msg);
	}
}

/* As another user, for whom a folder or only the objects are closed. */
static void test_unreadable(void **state)
{
	static const char *const closed[] = {"bare", "bare/objects"};
	cleanup(free) char *path = file_join(git.dir, "bare");

	(void)state;
	if (geteuid() != 0)
		skip();
	chmod(git.dir, 0755);
	for (size_t i = 0; i < COUNT(closed); i++) {
		cleanup(repo_free) struct repo *repo = NULL;
		cleanup(free) char *folder = file_join(git.dir, closed[i]);
		struct err err = {0};
		int r;

		chmod(folder, 0700);
		assert_int_equal(seteuid(65534), 0);
		r = repo_open(path, &repo, &err);
		assert_int_equal(seteuid(0), 0);
		chmod(folder, 0755);
		if (r != -EACCES ||
			!strstr(err.msg, "cannot be read by the daemon (user id 65534)"))
			fail_msg("%s: %d %s", closed[i], r, err.msg);
	}
	/* Somebody else's repository is fine, however. */
	cleanup(repo_free) struct repo *repo = NULL;
	struct err err = {0};
	assert_int_equal(seteuid(65534), 0);
	int r = repo_open(path, &repo, &err);
	assert_int_equal(seteuid(0), 0);
	if (r < 0)
		fail_msg("%s", err.msg);
}

static const char *const revisions[] = {"v1", "v1-plain", "v3", "main", "HEAD", "HEAD~1", "v3^2",
	"refs/tags/v2", "origin/linux-6.1.y", "v1^{commit}"};

static void test_resolve(void **state)
{
	cleanup(repo_free) struct repo *repo = open_repo("w");
	char expected[REPO_ID_SIZE], id[REPO_ID_SIZE], abbreviated[10];
	struct err err = {0};

	(void)state;
	for (size_t i = 0; i < COUNT(revisions); i++) {
		git_id(revisions[i], expected);
		if (repo_resolve(repo, revisions[i], id, &err) < 0)
			fail_msg("%s: %s", revisions[i], err.msg);
		assert_string_equal(id, expected);
	}
	git_id("v2", expected);
	assert_int_equal(repo_resolve(repo, expected, id, &err), 0);
	assert_string_equal(id, expected);
	snprintf(abbreviated, sizeof(abbreviated), "%.9s", expected);
	assert_int_equal(repo_resolve(repo, abbreviated, id, &err), 0);
	assert_string_equal(id, expected);
}

static const struct {
	const char *revision, *words;
} strangers[] = {
	{"", "empty"},
	{"v4x5", "no such revision in"},
	{"v2-agein", "did you mean v2-again?"},
	{"mian", "no such revision"},
	{"mai", "did you mean main?"},
	{"linux-6.1.y", "did you mean origin/linux-6.1.y?"},
	{"v9.9.9", "no such revision"},
	{"-h", "no such revision"},
	{"--exec=x", "no such revision"},
	{"a b", "no such revision"},
	{"a\nb", "no such revision"},
	{"v1..v2", "no such revision"},
	{"^v1", "no such revision"},
	{"^", "no such revision"},
	{"@{", "no such revision"},
	{"@{-1000}", "no such revision"},
	{"~", "no such revision"},
	{":", "no such revision"},
	{":/(", "no such revision"},
	{"v1^{", "no such revision"},
	{"v1^{blub}", "no such revision"},
	{"v1~99", "no such revision"},
	{"v1^7", "no such revision"},
	{"HEAD:absent", "no such revision"},
	{"../../etc/passwd", "no such revision"},
	{"\xff\xfe", "no such revision"},
	{"0123456789012345678901234567890123456789", "no such revision"},
	{"01234567890123456789012345678901234567890123", "no such revision"},
	{"tree", "names a tree in"},
	{"blob", "names a blob in"},
};

static void test_no_such_revision(void **state)
{
	cleanup(repo_free) struct repo *repo = open_repo("w");
	char id[REPO_ID_SIZE] = "untouched";

	(void)state;
	for (size_t i = 0; i < COUNT(strangers); i++) {
		struct err err = {0};
		int r = repo_resolve(repo, strangers[i].revision, id, &err);

		if (r >= 0 || !strstr(err.msg, strangers[i].words) || strchr(err.msg, '\n'))
			fail_msg("\"%s\": %d %s", strangers[i].revision, r, err.msg);
		assert_string_equal(id, "untouched");
	}
	cleanup(repo_free) struct repo *fresh = open_repo("fresh");
	struct err err = {0};
	assert_int_equal(repo_resolve(fresh, "HEAD", id, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "no such revision"));
}

static void test_labels(void **state)
{
	static const struct {
		const char *revision, *label;
	} cases[] = {
		{"v1-plain", "v1"}, /* annotated wins over shorter or earlier ones */
		{"v2-again", "v2"},
		{"v3", "v3"},
		{"island", "island"},
	};
	cleanup(repo_free) struct repo *repo = open_repo("bare");
	char id[REPO_ID_SIZE];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		git_id(cases[i].revision, id);
		cleanup(free) char *label = repo_label(repo, id);
		assert_string_equal(label, cases[i].label);
	}
	git_id("main", id);
	cleanup(free) char *label = repo_label(repo, id);
	assert_int_equal(strlen(label), 12);
	assert_int_equal(strncmp(label, id, 12), 0);
}

static void test_has(void **state)
{
	cleanup(repo_free) struct repo *repo = open_repo("bare");
	char id[REPO_ID_SIZE];
	struct err err = {0};

	(void)state;
	git_id("v1", id);
	assert_int_equal(repo_has(repo, id, "Makefile", &err), 1);
	assert_int_equal(repo_has(repo, id, "arch", &err), 1);
	assert_int_equal(repo_has(repo, id, "arch/x86/Kconfig", &err), 1);
	assert_int_equal(repo_has(repo, id, "arch/x86/absent", &err), 0);
	assert_int_equal(repo_has(repo, id, "Makefile/x", &err), 0);
	assert_int_equal(repo_has(repo, id, "s", &err), 0);
	assert_int_equal(repo_has(repo, "00", "s", &err) < 0, 1);
}

/* The text must come out right whether the commit names its encoding or not. */
static void test_commit_text(void **state)
{
	static const char *const names[] = {"latin", "undeclared"};
	cleanup(repo_free) struct repo *repo = open_repo("w");

	(void)state;
	for (size_t i = 0; i < COUNT(names); i++) {
		cleanup(commit_release) struct commit commit = {0};
		cleanup(free) char *stat =
			gitrepo_sh(&git, "git -C w show --format= --stat=78 latin");
		char id[REPO_ID_SIZE], parent[REPO_ID_SIZE];
		struct err err = {0};

		git_id(names[i], id);
		git_id("v1", parent);
		if (commit_read(repo, id, COMMIT_FULL, &commit, &err) < 0)
			fail_msg("%s", err.msg);
		assert_string_equal(commit.id, id);
		assert_string_equal(commit.label, names[i]);
		assert_string_equal(commit.subject, "caf\u00e9: fa\u00e7ade");
		assert_string_equal(commit.body, "na\u00efve body\n\nSigned-off-by: x");
		assert_string_equal(commit.author, "Jos\u00e9 <ann@example.org>");
		assert_int_equal(commit.date, 1389174839);
		assert_int_equal(commit.nparents, 1);
		assert_string_equal(commit.parents[0], parent);
		assert_non_null(strstr(commit.diffstat, "Makefile"));
		assert_non_null(strstr(commit.diffstat, "2 files changed, 9 insertions(+)"));
		assert_non_null(strstr(stat, "2 files changed, 9 insertions(+)"));
		assert_non_null(strstr(commit.diffstat, "{Kconfig => Konfig}"));
	}
}

static void test_commit_shapes(void **state)
{
	cleanup(repo_free) struct repo *repo = open_repo("w");
	cleanup(commit_release) struct commit root = {0};
	cleanup(commit_release) struct commit merge = {0};
	cleanup(commit_release) struct commit none = {0};
	char id[REPO_ID_SIZE];
	struct err err = {0};

	(void)state;
	git_id("v1", id);
	assert_int_equal(commit_read(repo, id, COMMIT_FULL, &root, &err), 0);
	assert_int_equal(root.nparents, 0);
	assert_string_equal(root.body, "");
	assert_non_null(strstr(root.diffstat, "2 files changed, 2 insertions(+)"));
	git_id("v3", id);
	assert_int_equal(commit_read(repo, id, COMMIT_SHORT, &merge, &err), 0);
	assert_int_equal(merge.nparents, 2);
	assert_null(merge.diffstat);
	assert_int_equal(commit_read(repo, "0123456789012345678901234567890123456789", COMMIT_FULL,
				 &none, &err),
		-ENOENT);
	assert_null(none.label);
}

static const struct {
	const char *repo, *good, *bad, *words; /* NULL = fine */
} ranges[] = {
	{"w", "v1", "v3", NULL},
	{"bare", "side", "main", NULL},
	{"w", "v2", "v2-again", "good and bad are the same commit (v2)"},
	{"w", "v3", "v1", "bad (v1) is an ancestor of good (v3): are good and bad the wrong way"},
	{"w", "v1", "island", "good (v1) and bad (island) have no history in common"},
	{"w", "v3^2", "v2", "is not an ancestor of bad (v2): they part at v1"},
};

static void test_range_check(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(ranges); i++) {
		cleanup(repo_free) struct repo *repo = open_repo(ranges[i].repo);
		char good[REPO_ID_SIZE], bad[REPO_ID_SIZE];
		struct err err = {0};
		int r;

		git_id(ranges[i].good, good);
		git_id(ranges[i].bad, bad);
		r = range_check(repo, good, bad, &err);
		if ((r < 0) != (ranges[i].words != NULL) ||
			(r < 0 && !strstr(err.msg, ranges[i].words)))
			fail_msg("%s..%s: %d %s", ranges[i].good, ranges[i].bad, r, err.msg);
	}
}

static void test_range_load(void **state)
{
	cleanup(repo_free) struct repo *repo = open_repo("bare");
	cleanup(range_release) struct range range = {.graph = GRAPH_INIT};
	char good[REPO_ID_SIZE], bad[REPO_ID_SIZE], id[REPO_ID_SIZE];
	const char *const goods[] = {good};
	struct err err = {0};
	uint32_t merge;

	(void)state;
	git_id("v1", good);
	git_id("main", bad);
	assert_int_equal(range_load(repo, goods, 1, bad, &range, &err), 0);
	assert_int_equal(range.graph.n, 5);
	assert_int_equal(range.merges, 1);
	assert_int_equal(range_find(&range, good), RANGE_NONE);
	assert_int_equal(range_find(&range, "rubbish"), RANGE_NONE);
	assert_int_equal(range_find(&range, bad), 4);
	range_id(&range, 4, id);
	assert_string_equal(id, bad);
	git_id("v3", id);
	merge = range_find(&range, id);
	assert_int_equal(range.graph.end[merge] - graph_first(&range.graph, merge), 2);
	assert_int_equal(range_contains(repo, good, bad, &err), 1);
	assert_int_equal(range_contains(repo, bad, good, &err), 0);
	assert_int_equal(range_contains(repo, bad, bad, &err), 1);
}

/* Two commits of main are there, and v1 is not. */
static void test_shallow(void **state)
{
	cleanup(repo_free) struct repo *repo = open_repo("shallow");
	cleanup(range_release) struct range range = {.graph = GRAPH_INIT};
	char good[REPO_ID_SIZE], bad[REPO_ID_SIZE], id[REPO_ID_SIZE];
	const char *const goods[] = {good};
	struct err err = {0};

	(void)state;
	assert_int_equal(repo_resolve(repo, "v1", id, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "shallow clone"));
	git_id("v1", good);
	git_id("main", bad);
	assert_true(range_check(repo, good, bad, &err) < 0);
	if (!strstr(err.msg, "shallow clone and lacks commits"))
		fail_msg("%s", err.msg);
	assert_true(range_load(repo, goods, 1, bad, &range, &err) < 0);
	if (!strstr(err.msg, "shallow clone and lacks commits"))
		fail_msg("%s", err.msg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_open),
		cmocka_unit_test(test_unreadable),
		cmocka_unit_test(test_resolve),
		cmocka_unit_test(test_no_such_revision),
		cmocka_unit_test(test_labels),
		cmocka_unit_test(test_has),
		cmocka_unit_test(test_commit_text),
		cmocka_unit_test(test_commit_shapes),
		cmocka_unit_test(test_range_check),
		cmocka_unit_test(test_range_load),
		cmocka_unit_test(test_shallow),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
