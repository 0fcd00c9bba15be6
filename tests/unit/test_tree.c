/* The source tree of a build slot, against what `git archive` makes of the same commits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fts.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "bisect/place.h"
#include "bisect/tree.h"
#include "gitrepo.h"

#define COMMITS 24

static struct gitrepo scratch;
static char ids[COMMITS][TREE_ID_SIZE];

static uint32_t seed = 20140108;

static unsigned chance(unsigned n)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % n;
}

/* A path of few names, so that files and folders often want the same one. */
static void random_path(struct buf *out)
{
	unsigned depth = 1 + chance(4);

	for (unsigned i = 0; i < depth; i++)
		buf_addf(out, "%s%c%s", i ? "/" : "", 'a' + (char)chance(4),
			chance(9) ? "" : "\xff .c");
}

/* git fast-import's language: each commit changes some paths of the one before. */
static void random_history(struct buf *out)
{
	static const char *const modes[] = {"100644", "100755", "120000", "160000"};

	for (int c = 0; c < COMMITS; c++) {
		buf_addf(out, "commit refs/heads/main\ncommitter A <a@b> %d +0000\ndata 0\n", c);
		for (int i = 0; i < 20; i++) {
			cleanup(buf_release) struct buf path = BUF_INIT;
			unsigned mode = chance(8) > 3 ? 0 : chance(4);

			random_path(&path);
			if (c && !chance(3))
				buf_addf(out, "D \"%s\"\n", path.data);
			else if (mode == 3)
				buf_addf(out, "M 160000 %040d \"%s\"\n", 7, path.data);
			else
				buf_addf(out, "M %s inline \"%s\"\ndata 4\n%04u\n", modes[mode],
					path.data, chance(2000));
		}
		buf_addf(out, "\n");
	}
}

static int setup(void **state)
{
	cleanup(buf_release) struct buf stream = BUF_INIT;
	cleanup(free) char *path = NULL;
	cleanup(free) char *trees = NULL;
	struct err err = {0};

	(void)state;
	gitrepo_init(&scratch);
	random_history(&stream);
	path = file_join(scratch.dir, "stream");
	assert_int_equal(file_write(path, stream.data, stream.len, 0600, &err), 0);
	gitrepo_do(&scratch, "git init -q --bare r.git; git -C r.git fast-import --quiet <stream");
	trees = gitrepo_sh(&scratch, "git -C r.git log --reverse --format=%%T main");
	for (int c = 0; c < COMMITS; c++)
		memcpy(ids[c], trees + c * TREE_ID_SIZE, TREE_ID_SIZE - 1);
	for (int c = 0; c < COMMITS; c++)
		gitrepo_do(&scratch,
			"mkdir -p want/%d; git -C r.git archive %s | tar x -C want/%d; "
			"find want/%d -mindepth 1 -type d -empty -delete",
			c, ids[c], c, c);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	gitrepo_remove(&scratch);
	return 0;
}

static struct repo *open_repo(const char *name)
{
	cleanup(free) char *path = file_join(scratch.dir, name);
	struct repo *repo = NULL;
	struct err err = {0};

	if (repo_open(path, &repo, &err) < 0)
		fail_msg("%s", err.msg);
	return repo;
}

static void go(struct repo *repo, const char *slot_name, const char *id, struct tree_change *ret)
{
	cleanup(free) char *slot = file_join(scratch.dir, slot_name);
	struct err err = {0};

	if (file_mkdir(slot, 0755, &err) < 0 || tree_checkout(repo, id, slot, ret, &err) < 0)
		fail_msg("%s", err.msg);
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* All that is below a folder, in order: path, type, executable bit, link target or contents. */
static char *describe(char *root)
{
	char *const roots[] = {root, NULL};
	FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
	struct buf out = BUF_INIT;
	struct err err = {0};
	FTSENT *e;

	assert_non_null(walk);
	while ((e = fts_read(walk))) {
		char target[64] = "";

		assert_true(e->fts_info != FTS_NS && e->fts_info != FTS_DNR);
		if (e->fts_info == FTS_DP)
			continue;
		if (e->fts_info == FTS_SL)
			assert_true(readlink(e->fts_path, target, sizeof(target) - 1) > 0);
		buf_addf(&out, "%s %o %d %s\n", e->fts_path + strlen(root),
			e->fts_statp->st_mode & S_IFMT, e->fts_statp->st_mode & S_IXUSR ? 1 : 0,
			target);
		if (e->fts_info == FTS_F && file_read(e->fts_path, 1 << 20, &out, &err) < 0)
			fail_msg("%s", err.msg);
	}
	fts_close(walk);
	return buf_detach(&out);
}

/* The slot's tree is that of the archive. */
static void compare(const char *slot, int commit)
{
	cleanup(free) char *root = xasprintf("%s/%s/src", scratch.dir, slot);
	cleanup(free) char *want_root = xasprintf("%s/want/%d", scratch.dir, commit);
	cleanup(free) char *is = describe(root);
	cleanup(free) char *want = describe(want_root);

	assert_string_equal(is, want);
}

static void goes_from_any_tree_to_any(void **state)
{
	cleanup(repo_free) struct repo *repo = open_repo("r.git");

	(void)state;
	for (int i = 0; i < 60; i++) {
		int c = i < COMMITS ? i : (int)chance(COMMITS);

		go(repo, "any", ids[c], NULL);
		compare("any", c);
	}
}

static void leaves_other_files_alone(void **state)
{
	cleanup(repo_free) struct repo *repo = NULL;
	struct tree_change change;
	cleanup(free) char *first = NULL;
	cleanup(free) char *second = NULL;
	cleanup(free) char *path = NULL;
	struct stat before, after;

	(void)state;
	gitrepo_do(&scratch, "git init -q w; cd w; mkdir d; echo 1 >d/one; echo 1 >two; "
			     "git add .; git commit -qm 1; echo 2 >two; git commit -qam 2");
	repo = open_repo("w");
	first = gitrepo_sh(&scratch, "git -C w rev-parse HEAD~1^{tree}");
	second = gitrepo_sh(&scratch, "git -C w rev-parse HEAD^{tree}");
	go(repo, "still", first, &change);
	assert_int_equal(change.written, 2);
	assert_int_equal(change.fresh, 1);
	path = file_join(scratch.dir, "still/src/d/one");
	assert_int_equal(stat(path, &before), 0);
	go(repo, "still", second, &change);
	assert_int_equal(change.written, 1);
	assert_int_equal(change.removed, 0);
	assert_int_equal(change.fresh, 0);
	assert_int_equal(stat(path, &after), 0);
	assert_memory_equal(&before.st_mtim, &after.st_mtim, sizeof(before.st_mtim));
	assert_int_equal(before.st_ino, after.st_ino);
	/* The very same tree once more touches nothing. */
	go(repo, "still", second, &change);
	assert_int_equal(change.written, 0);
	/* The repository was only read. */
	gitrepo_do(&scratch, "git -C w diff --quiet HEAD && test ! -e w/.git/index.lock");
}

/* Killed at any moment, and again while repairing. */
static void survives_kills(void **state)
{
	cleanup(repo_free) struct repo *repo = open_repo("r.git");
	cleanup(free) char *slot = file_join(scratch.dir, "killed");
	struct err err = {0};
	int status, r, killed = 0;

	(void)state;
	assert_int_equal(file_mkdir(slot, 0755, &err), 0);
	for (int round = 0; round < 40; round++) {
		int c = (int)chance(COMMITS), kills = 1 + (int)chance(3);

		for (int k = 0; k < kills; k++) {
			int to = (int)chance(COMMITS);
			pid_t pid = fork();

			if (pid == 0) {
				r = tree_checkout(repo, ids[to], slot, NULL, &err);
				if (r < 0)
					fprintf(stderr, "%s\n", err.msg);
				_exit(r < 0);
			}
			usleep(chance(8000));
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
			killed += WIFSIGNALED(status);
		}
		go(repo, "killed", ids[c], NULL);
		compare("killed", c);
	}
	assert_true(killed > 0);
}

/* A failure in the middle is reported, and the next call repairs. */
static void repairs_after_failure(void **state)
{
	cleanup(repo_free) struct repo *repo = NULL;
	cleanup(free) char *tree = NULL;
	cleanup(free) char *slot = file_join(scratch.dir, "failed");
	struct err err = {0};

	(void)state;
	gitrepo_do(&scratch,
		"git init -q f; cd f; for i in 1 2 3 4 5; do echo $i >$i; done; "
		"git add .; git commit -qm 1; "
		"o=.git/objects/$(git rev-parse HEAD:3 | sed 's,^..,&/,'); mv $o ../kept; "
		"echo $o >../name");
	repo = open_repo("f");
	tree = gitrepo_sh(&scratch, "git -C f rev-parse HEAD^{tree}");
	assert_int_equal(file_mkdir(slot, 0755, &err), 0);
	assert_true(tree_checkout(repo, tree, slot, NULL, &err) < 0);
	assert_non_null(strstr(err.msg, "cannot read 3"));
	gitrepo_do(&scratch, "test -e failed/src/2; test ! -e failed/src/3; mv kept f/$(cat name)");
	go(repo, "failed", tree, NULL);
	gitrepo_do(&scratch, "cat failed/src/? | tr -d '\\n' | grep -qx 12345");
}

/* A tree that this repository does not have, or a mark that says nothing: begin anew. */
static void begins_anew(void **state)
{
	static const char *const marks[] = {
		"%s%040d\\n", "%srubbish\\n", "no boot of ours %s%040d\\n", "%s"};
	cleanup(repo_free) struct repo *repo = open_repo("r.git");
	struct tree_change change;

	(void)state;
	for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++) {
		go(repo, "anew", ids[1], NULL);
		gitrepo_do(&scratch,
			"echo stray >anew/src/stray; boot=$(head -n 1 anew/tree); "
			"printf '%s' \"$boot\n\" 7 >anew/tree",
			marks[i]);
		go(repo, "anew", ids[2], &change);
		assert_int_equal(change.fresh, 1);
		compare("anew", 2);
	}
}

static void refuses_names_that_lead_out(void **state)
{
	static const char *const names[] = {"../x", "a/../../x", "..", ".", "a/./b", "/etc/x", "",
		"a//b", "a/", ".git/hooks/x", "a/.GIT/x", ".git"};
	cleanup(free) char *root = file_join(scratch.dir, "place");
	cleanup(place_close) struct place *place = NULL;
	struct err err = {0};

	(void)state;
	assert_int_equal(place_open(root, &place, &err), 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		assert_int_equal(place_file(place, names[i], "x", 1, 0, &err), -EINVAL);
		assert_int_equal(place_link(place, names[i], "x", &err), -EINVAL);
		assert_int_equal(place_remove(place, names[i], &err), -EINVAL);
	}
	gitrepo_do(&scratch, "test -z \"$(ls -A place)\"");
}

static void never_follows_links(void **state)
{
	cleanup(free) char *root = file_join(scratch.dir, "links");
	cleanup(place_close) struct place *place = NULL;
	struct err err = {0};

	(void)state;
	gitrepo_do(&scratch, "mkdir outside; echo precious >outside/f");
	assert_int_equal(place_open(root, &place, &err), 0);
	assert_int_equal(place_link(place, "out", "../outside", &err), 0);
	assert_int_equal(place_link(place, "file", "../outside/f", &err), 0);
	assert_int_equal(place_remove(place, "out/f", &err), 0);
	assert_int_equal(place_file(place, "out/f", "bad", 3, 0, &err), 0);
	assert_int_equal(place_file(place, "file", "bad", 3, 0, &err), 0);
	gitrepo_do(&scratch, "grep -qx precious outside/f; test -d links/out; test ! -L links/out; "
			     "test ! -L links/file; grep -qx bad links/file");
}

/* A tree made by hand with a name that git itself would refuse. */
static void refuses_a_hostile_tree(void **state)
{
	cleanup(repo_free) struct repo *repo = NULL;
	cleanup(free) char *tree = NULL;
	cleanup(free) char *slot = file_join(scratch.dir, "hostile");
	struct err err = {0};

	(void)state;
	tree = gitrepo_sh(&scratch,
		"git init -q h; cd h; b=$(echo evil | git hash-object -w --stdin); "
		"t=$(printf '100644 blob %%s\\tevil\\n' $b | git mktree); "
		"printf '040000 tree %%s\\t..\\n' $t | git mktree");
	repo = open_repo("h");
	assert_int_equal(file_mkdir(slot, 0755, &err), 0);
	assert_true(tree_checkout(repo, tree, slot, NULL, &err) < 0);
	assert_non_null(strstr(err.msg, "dangerous name"));
	gitrepo_do(&scratch, "test ! -e hostile/evil");
}

static int only_c(const char *path)
{
	return path[0] == 'c';
}

static void digest_is_of_wanted_files(void **state)
{
	cleanup(repo_free) struct repo *repo = NULL;
	char hex[3][HASH_HEX_SIZE];
	struct err err = {0};

	(void)state;
	gitrepo_do(&scratch, "git init -q g; cd g; echo 1 >c; echo 1 >d; git add .; "
			     "git commit -qm 1; echo 2 >d; git commit -qam 2; echo 2 >c; "
			     "git commit -qam 3");
	repo = open_repo("g");
	for (int i = 0; i < 3; i++) {
		cleanup(free) char *name = xasprintf("HEAD~%d", 2 - i);
		char id[TREE_ID_SIZE];

		assert_int_equal(tree_find(repo, name, id, &err), 0);
		assert_int_equal(tree_digest(repo, id, only_c, hex[i], &err), 0);
	}
	assert_string_equal(hex[0], hex[1]);
	assert_string_not_equal(hex[1], hex[2]);
	assert_true(tree_find(repo, "no-such", hex[0], &err) == -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(goes_from_any_tree_to_any),
		cmocka_unit_test(leaves_other_files_alone),
		cmocka_unit_test(survives_kills),
		cmocka_unit_test(repairs_after_failure),
		cmocka_unit_test(begins_anew),
		cmocka_unit_test(refuses_names_that_lead_out),
		cmocka_unit_test(never_follows_links),
		cmocka_unit_test(refuses_a_hostile_tree),
		cmocka_unit_test(digest_is_of_wanted_files),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
