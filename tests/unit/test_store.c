/* The store of kernels: whole entries or none, the least recently used goes, several processes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "boot/store.h"

#define MIB (1 << 20)

static char top[64];

static int setup(void **state)
{
	(void)state;
	snprintf(top, sizeof(top), "/tmp/kbisect-store-XXXXXX");
	return mkdtemp(top) ? 0 : -1;
}

static int teardown(void **state)
{
	struct err err = {0};

	(void)state;
	return file_remove(top, &err);
}

static void write_at(const char *name, size_t size)
{
	cleanup(free) char *path = file_join(top, name);
	cleanup(free) char *data = xcalloc(1, size + 1);
	struct err err = {0};

	memset(data, name[0], size);
	if (file_write(path, data, size, 0644, &err) < 0)
		fail_msg("%s", err.msg);
}

static char *key_of(int n)
{
	return xasprintf("%064x", n);
}

/* Add entry n, a kernel of 1 MiB; the error's code or 0. */
static int add(const char *store_name, int n, const struct store_limit *limit, struct err *err)
{
	cleanup(free) char *store = file_join(top, store_name);
	cleanup(free) char *kernel = file_join(top, "kernel");
	cleanup(free) char *config = file_join(top, "config");
	cleanup(free) char *log = file_join(top, "log");
	cleanup(free) char *key = key_of(n);
	cleanup(store_entry_release) struct store_entry entry = {.kernel = NULL};
	struct store_files files = {kernel, config, log, "cc 1.0", 3456};

	write_at("kernel", MIB);
	write_at("config", 10);
	write_at("log", 10);
	return store_add(store, key, &files, limit, &entry, err);
}

static int find(const char *store_name, int n)
{
	cleanup(free) char *store = file_join(top, store_name);
	cleanup(free) char *key = key_of(n);
	cleanup(store_entry_release) struct store_entry entry = {.kernel = NULL};
	struct err err = {0};
	int r = store_find(store, key, &entry, &err);

	if (r < 0 && r != -ENOENT)
		fail_msg("%s", err.msg);
	if (r < 0)
		return 0;
	assert_int_equal(entry.ms, 3456);
	assert_string_equal(entry.compiler, "cc 1.0");
	assert_int_equal(strlen(entry.image), 64);
	assert_int_equal(access(entry.kernel, R_OK), 0);
	assert_int_equal(access(entry.log, R_OK), 0);
	return 1;
}

static void keeps_what_was_added(void **state)
{
	struct store_limit limit = {0};
	struct err err = {0};

	(void)state;
	assert_false(find("plain", 1));
	assert_int_equal(add("plain", 1, &limit, &err), 0);
	assert_true(find("plain", 1));
	assert_false(find("plain", 2));
	/* Once more is no error. */
	assert_int_equal(add("plain", 1, &limit, &err), 0);
	assert_true(find("plain", 1));
}

static void drops_the_least_recently_used(void **state)
{
	cleanup(free) char *kept = key_of(2);
	const char *keep[] = {kept};
	struct store_limit limit = {.bytes = 3 * MIB + MIB / 2, .keep = keep, .nkeep = 1};
	struct err err = {0};

	(void)state;
	for (int n = 1; n <= 3; n++) {
		assert_int_equal(add("lru", n, &limit, &err), 0);
		usleep(20000);
	}
	assert_true(find("lru", 1)); /* used: 2, which is kept, and 3 are older now */
	assert_int_equal(add("lru", 4, &limit, &err), 0);
	assert_true(find("lru", 1));
	assert_true(find("lru", 2));
	assert_false(find("lru", 3));
	assert_true(find("lru", 4));
	/* Smaller than anything: the new one and the kept one stay. */
	limit.bytes = 1;
	assert_int_equal(add("lru", 5, &limit, &err), 0);
	assert_false(find("lru", 1));
	assert_true(find("lru", 2));
	assert_false(find("lru", 4));
	assert_true(find("lru", 5));
}

static void finds_damage(void **state)
{
	static const char *const parts[] = {"bzImage", "meta.json"};
	struct store_limit limit = {0};
	struct err err = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		cleanup(free) char *key = key_of(1);
		cleanup(free) char *path = xasprintf("%s/damage/%s/%s", top, key, parts[i]);

		assert_int_equal(add("damage", 1, &limit, &err), 0);
		assert_int_equal(truncate(path, 5), 0);
		assert_false(find("damage", 1));
		assert_int_equal(add("damage", 1, &limit, &err), 0);
		assert_true(find("damage", 1));
		assert_int_equal(unlink(path), 0);
		assert_false(find("damage", 1));
	}
}

static void sweeps_half_made_ones(void **state)
{
	cleanup(free) char *store = file_join(top, "sweep");
	cleanup(free) char *dead = file_join(store, "tmp.dead");
	cleanup(free) char *alive = file_join(store, "tmp.alive");
	struct store_limit limit = {0};
	struct err err = {0};

	(void)state;
	assert_int_equal(store_sweep(store, &err), 0); /* not there yet */
	assert_int_equal(add("sweep", 1, &limit, &err), 0);
	assert_int_equal(mkdir(dead, 0755), 0);
	assert_int_equal(mkdir(alive, 0755), 0);
	write_at("sweep/tmp.dead/bzImage", 100);
	pid_t pid = fork();
	if (pid == 0) {
		int held = open(alive, O_RDONLY | O_DIRECTORY);

		flock(held, LOCK_EX);
		pause();
		_exit(held);
	}
	usleep(200000);
	assert_int_equal(store_sweep(store, &err), 1);
	assert_int_not_equal(access(dead, F_OK), 0);
	assert_int_equal(access(alive, F_OK), 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(store_sweep(store, &err), 1);
	assert_true(find("sweep", 1));
}

/* Eight processes add and find in a store with room for three. */
static void bears_many_processes(void **state)
{
	struct store_limit limit = {.bytes = 3 * MIB + MIB / 2};
	struct err err = {0};
	int failures = 0;

	(void)state;
	for (int p = 0; p < 8; p++) {
		if (fork() != 0)
			continue;
		for (int i = 0; i < 6; i++) {
			cleanup(free) char *store = file_join(top, "many");
			cleanup(free) char *key = key_of((p + i) % 5);
			cleanup(free) char *own = xasprintf("kernel.%d", p);
			cleanup(free) char *kernel = file_join(top, own);
			struct store_files files = {kernel, kernel, kernel, "cc 1.0", 3456};
			struct store_entry entry = {.kernel = NULL};
			int r;

			write_at(own, MIB);
			r = store_add(store, key, &files, &limit, &entry, &err);
			store_entry_release(&entry);
			if (r == 0)
				r = store_find(store, key, &entry, &err);
			store_entry_release(&entry);
			if (r < 0 && r != -ENOENT) {
				fprintf(stderr, "%s\n", err.msg);
				_exit(1);
			}
		}
		_exit(0);
	}
	for (int p = 0; p < 8; p++) {
		int status;

		assert_true(wait(&status) > 0);
		failures += status != 0;
	}
	assert_int_equal(failures, 0);
}

static void says_that_it_cannot_write(void **state)
{
	struct store_limit limit = {0};
	struct err err = {0};

	(void)state;
	write_at("file", 1);
	assert_int_equal(add("file", 1, &limit, &err), -ENOTDIR);
	assert_non_null(strstr(err.msg, "the store of kernels cannot be written"));
	assert_non_null(strstr(err.msg, "/file"));
	cleanup(free) char *file = file_join(top, "file");
	cleanup(free) char *fresh = file_join(top, "fresh/store");
	assert_int_equal(store_check(file, &err), -ENOTDIR);
	assert_non_null(strstr(err.msg, "the store of kernels cannot be written"));
	assert_int_equal(store_check(fresh, &err), 0);
	assert_int_equal(store_sweep(fresh, &err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_what_was_added),
		cmocka_unit_test(drops_the_least_recently_used),
		cmocka_unit_test(finds_damage),
		cmocka_unit_test(sweeps_half_made_ones),
		cmocka_unit_test(bears_many_processes),
		cmocka_unit_test(says_that_it_cannot_write),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
