/* boot/image.h with a stand-in for mkguest that is quick and can be told to fail; and once for
 * real. */

#include "boot/image.h"

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/banned.h"

/* Counts its image runs in DIR/count; prints what the real one would on failure. */
static const char fake[] =
	"#!/bin/sh\n"
	"here=$(dirname \"$0\")\n"
	"[ ! -e \"$here/fail\" ] || { echo 'mkguest: no luck today' >&2; exit 1; }\n"
	"case $1 in\n"
	"keys) mkdir -p \"$2\"; for k in host_key host_key.pub client_key\n"
	"do echo $k >\"$2/$k\"; done; echo x >\"$2/client_key.pub\" ;;\n"
	"image) echo run >>\"$here/count\"; sleep 0.1; echo \"$@\" >\"$2.tmp\"\n"
	"mv \"$2.tmp\" \"$2\" ;;\n"
	"esac\n";

struct fixture {
	char dir[64];
	char *mkguest, *init, *program, *keys, *cache;
	char *programs[3];
	struct image_spec spec;
};

static void put(const char *path, const char *text, mode_t mode)
{
	struct err err;

	if (file_write(path, text, strlen(text), mode, &err) < 0)
		fail_msg("%s", err.msg);
}

static int setup(void **state)
{
	struct fixture *f = xcalloc(1, sizeof(*f));

	snprintf(f->dir, sizeof(f->dir), "/tmp/test_image.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	f->mkguest = file_join(f->dir, "mkguest");
	f->init = file_join(f->dir, "init");
	f->program = file_join(f->dir, "program");
	f->keys = file_join(f->dir, "keys");
	f->cache = file_join(f->dir, "deep/cache");
	put(f->mkguest, fake, 0755);
	put(f->init, "init", 0755);
	put(f->program, "#!/bin/sh\n", 0755);
	f->programs[0] = f->program;
	f->spec = (struct image_spec){.keys_dir = f->keys,
		.cache_dir = f->cache,
		.mkguest = f->mkguest,
		.init = f->init,
		.benchmark = "demo",
		.programs = f->programs};
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	file_remove(f->dir, NULL);
	free(f->mkguest);
	free(f->init);
	free(f->program);
	free(f->keys);
	free(f->cache);
	free(f);
	return 0;
}

static char *get(struct fixture *f)
{
	char *path = NULL;
	struct err err;

	if (image_get(&f->spec, &path, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(access(path, R_OK), 0);
	return path;
}

static int builds(struct fixture *f)
{
	cleanup(free) char *path = file_join(f->dir, "count");
	cleanup(buf_release) struct buf text = BUF_INIT;

	return file_read(path, 100000, &text, NULL) < 0 ? 0 : (int)(text.len / 4);
}

static void test_cached(void **state)
{
	struct fixture *f = *state;
	cleanup(free) char *first = get(f);
	cleanup(free) char *second = NULL;

	for (int i = 0; i < 20; i++) {
		free(second);
		second = get(f);
	}
	assert_string_equal(first, second);
	assert_int_equal(builds(f), 1);
}

/* Each thing that goes into an image makes another one when it changes. */
static void test_changes(void **state)
{
	struct fixture *f = *state;
	cleanup(free) char *host_key = NULL, *client_key = NULL, *last = get(f);
	cleanup(free) char *data = file_join(f->dir, "data=/etc/data");
	cleanup(free) char *data_file = file_join(f->dir, "data");

	host_key = file_join(f->keys, "host_key");
	client_key = file_join(f->keys, "client_key.pub");
	for (int i = 0; i < 6; i++) {
		cleanup(free) char *mkguest = xasprintf("%s# new\n", fake);
		char *next;

		if (i == 0)
			put(f->program, "#!/bin/sh\n#new\n", 0755);
		else if (i == 1)
			put(f->init, "another init", 0755);
		else if (i == 2)
			put(host_key, "another key", 0600);
		else if (i == 3)
			put(client_key, "another key", 0600);
		else if (i == 4)
			put(f->mkguest, mkguest, 0755);
		else
			put(data_file, "data", 0644), f->programs[1] = data;
		next = get(f);
		if (strcmp(next, last) == 0)
			fail_msg("change %d went unnoticed", i);
		free(last);
		last = next;
	}
	assert_int_equal(builds(f), 7);
}

/* The kept list of libraries is looked at file by file. */
static void test_library(void **state)
{
	struct fixture *f = *state;
	cleanup(free) char *first = NULL, *second = NULL, *third = NULL;
	cleanup(closedir) DIR *dir = NULL;
	struct dirent *e;

	f->programs[0] = (char *)"cat";
	first = get(f);
	dir = opendir(f->cache);
	while ((e = readdir(dir))) {
		cleanup(free) char *path = file_join(f->cache, e->d_name);
		cleanup(buf_release) struct buf text = BUF_INIT;

		if (!strstr(e->d_name, ".libs"))
			continue;
		assert_int_equal(file_read(path, 100000, &text, NULL), 0);
		assert_non_null(strstr(text.data, "/libc.so.6\n"));
		text.data[0] = text.data[0] == '9' ? '8' : '9';
		put(path, text.data, 0644);
	}
	second = get(f);
	assert_string_equal(first, second); /* asked ldd again, and it is the same library */
	third = get(f);
	assert_string_equal(first, third);
	assert_int_equal(builds(f), 1);
}

static void test_errors(void **state)
{
	struct fixture *f = *state;
	cleanup(free) char *fail = file_join(f->dir, "fail");
	cleanup(free) char *file = file_join(f->dir, "init/cache");
	char *path = NULL;
	struct err err;

	free(get(f));
	f->programs[1] = (char *)"no-such-program-here";
	assert_int_equal(image_get(&f->spec, &path, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "no-such-program-here"));
	assert_non_null(strstr(err.msg, "benchmark demo"));

	f->programs[1] = NULL;
	put(f->program, "changed", 0755);
	put(fail, "", 0644);
	assert_int_equal(image_get(&f->spec, &path, &err), -ECHILD);
	assert_string_equal(err.msg, "cannot make the guest's image: no luck today");
	file_remove(f->keys, NULL);
	assert_int_equal(image_get(&f->spec, &path, &err), -ECHILD);
	assert_string_equal(err.msg, "cannot make the guest's keys: no luck today");
	unlink(fail);

	f->spec.cache_dir = file;
	assert_int_equal(image_get(&f->spec, &path, &err), -ENOTDIR);
	assert_non_null(strstr(err.msg, "init"));
	assert_null(path);
}

static int count_images(const char *dir)
{
	cleanup(closedir) DIR *d = opendir(dir);
	struct dirent *e;
	int n = 0;

	while ((e = readdir(d)))
		n += strstr(e->d_name, ".cpio") != NULL;
	return n;
}

static void test_prune(void **state)
{
	struct fixture *f = *state;
	cleanup(free) char *left = file_join(f->cache, "abc.cpio.Xy12");
	cleanup(free) char *last = NULL;

	for (int i = 0; i < 7; i++) {
		cleanup(free) char *text = xasprintf("#!/bin/sh\n# %d\n", i);

		put(f->program, text, 0755);
		free(last);
		last = get(f);
		if (i == 0)
			assert_int_equal(file_mkdir(left, 0755, NULL), 0);
	}
	assert_int_equal(count_images(f->cache), 4);
	assert_int_equal(access(last, R_OK), 0);
	assert_int_equal(access(left, F_OK), -1);
}

static void test_at_once(void **state)
{
	struct fixture *f = *state;
	int status = 0;

	free(get(f));
	put(f->program, "#!/bin/sh\n# at once\n", 0755);
	for (int i = 0; i < 4; i++) {
		if (fork() == 0) {
			char *path;

			_exit(image_get(&f->spec, &path, NULL) < 0 || access(path, R_OK) < 0);
		}
	}
	for (int i = 0; i < 4; i++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	assert_int_equal(builds(f), 2);
}

static void test_real(void **state)
{
	struct fixture *f = *state;
	cleanup(free) char *path = NULL;
	cleanup(buf_release) struct buf image = BUF_INIT;
	struct err err;

	if (access("/usr/sbin/dropbear", X_OK) < 0 || access("/bin/busybox", X_OK) < 0 ||
		access("/usr/bin/cpio", X_OK) < 0)
		skip();
	f->spec.mkguest = "etc/guest/mkguest";
	f->spec.init = "etc/guest/init";
	f->programs[0] = (char *)"cat";
	path = get(f);
	assert_int_equal(file_read(path, 1 << 28, &image, &err), 0);
	assert_true(image.len > 1 << 20);
	assert_memory_equal(image.data, "070701", 6);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {TEST(test_cached), TEST(test_changes),
		TEST(test_library), TEST(test_errors), TEST(test_prune), TEST(test_at_once),
		TEST(test_real)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
