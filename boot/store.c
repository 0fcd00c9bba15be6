#include "boot/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/json.h"
#include "base/banned.h"

#define META_MAX 65536
#define TEMP_PREFIX "tmp."

/* An entry as eviction sees it. */
struct used {
	char key[STORE_KEY_SIZE];
	struct timespec when;
	uint64_t bytes;
};

void store_entry_release(struct store_entry *entry)
{
	free(steal(&entry->kernel));
	free(steal(&entry->log));
	free(steal(&entry->compiler));
}

static int is_key(const char *name)
{
	return strlen(name) == STORE_KEY_SIZE - 1 &&
	       strspn(name, "0123456789abcdef") == STORE_KEY_SIZE - 1;
}

/* The lock of the whole store, for the moments in which entries appear and disappear. */
static int lock_store(const char *store, int *ret_fd, struct err *err)
{
	cleanup(free) char *path = file_join(store, "lock");
	int r = file_mkdir(store, 0755, err);

	return r < 0 ? r : file_lock(path, 1, ret_fd, err);
}

/*
 * Under the lock: out of sight by a rename first, so that a kill leaves something for the sweep
 * rather than half an entry.
 */
static int drop(const char *store, const char *name, struct err *err)
{
	cleanup(free) char *path = file_join(store, name);
	cleanup(free) char *gone = xasprintf("%s/" TEMP_PREFIX "%d.%s", store, (int)getpid(), name);

	if (rename(path, gone) < 0)
		return errno == ENOENT ? 0 : err_sys(err, errno, "cannot remove %s", path);
	return file_remove(gone, err);
}

/* Read and verify an entry. */
static int load(const char *dir, struct store_entry *ret, struct err *err)
{
	cleanup(store_entry_release) struct store_entry entry = {.kernel = NULL};
	cleanup(free) char *meta_path = file_join(dir, "meta.json");
	cleanup(json_decref) json_t *meta = NULL;
	cleanup(buf_release) struct buf text = BUF_INIT;
	const char *image, *compiler;
	int r;

	r = file_read(meta_path, META_MAX, &text, err);
	if (r == 0)
		r = json_parse(buf_str(&text), text.len, &meta, err);
	if (r == 0)
		r = json_get_str(meta, "image", &image, err);
	if (r == 0)
		r = json_get_str(meta, "compiler", &compiler, err);
	if (r == 0)
		r = json_get_int(meta, "ms", &entry.ms, err);
	if (r < 0)
		return r;
	entry.kernel = file_join(dir, "bzImage");
	entry.log = file_join(dir, "build.log");
	entry.compiler = xstrdup(compiler);
	r = hash_file(entry.kernel, entry.image, err);
	if (r < 0)
		return r;
	if (strcmp(entry.image, image) != 0)
		return err_set(err, EBADMSG, "%s has changed since it was built", entry.kernel);
	*ret = entry;
	entry = (struct store_entry){.kernel = NULL};
	return 0;
}

int store_find(const char *store, const char *key, struct store_entry *ret, struct err *err)
{
	cleanup(free) char *dir = file_join(store, key);
	cleanup(close) int lock = -1;
	int r;

	if (!is_key(key) || access(dir, F_OK) < 0)
		return err_set(err, ENOENT, "%s is not in the store", key);
	r = lock_store(store, &lock, err);
	if (r < 0)
		return r;
	if (load(dir, ret, err) < 0) {
		r = drop(store, key, err);
		return r < 0 ? r : err_set(err, ENOENT, "%s was damaged", dir);
	}
	if (utimensat(AT_FDCWD, dir, NULL, 0) < 0) {
		store_entry_release(ret);
		return err_sys(err, errno, "the store of kernels cannot be written: %s", dir);
	}
	return 0;
}

static int write_meta(const char *dir, const struct store_files *files, struct err *err)
{
	cleanup(free) char *path = file_join(dir, "meta.json");
	cleanup(free) char *kernel = file_join(dir, "bzImage");
	cleanup(json_decref) json_t *meta = json_object();
	cleanup(free) char *text = NULL;
	char image[HASH_HEX_SIZE];
	int r = hash_file(kernel, image, err);

	if (r < 0)
		return r;
	json_set_str(meta, "image", image);
	json_set_str(meta, "compiler", files->compiler);
	json_set_int(meta, "ms", files->ms);
	text = json_line(meta);
	return file_write(path, text, strlen(text), 0644, err);
}

static int sync_path(const char *path, struct err *err)
{
	cleanup(close) int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fsync(fd) < 0)
		return err_sys(err, errno, "cannot write %s", path);
	return 0;
}

/* Fill a new folder and make it durable. */
static int fill(const char *dir, const struct store_files *files, struct err *err)
{
	const struct {
		const char *from, *name;
	} parts[] = {
		{files->kernel, "bzImage"}, {files->config, "config"}, {files->log, "build.log"}};
	int r = 0;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && r == 0; i++) {
		cleanup(free) char *to = file_join(dir, parts[i].name);

		r = file_copy(parts[i].from, to, err);
		if (r == 0)
			r = sync_path(to, err);
	}
	if (r == 0)
		r = write_meta(dir, files, err);
	return r < 0 ? r : sync_path(dir, err);
}

/* All entries. *ret is an array to free. */
static int list_used(const char *store, struct used **ret, size_t *ret_n, struct err *err)
{
	cleanup(closedir) DIR *dir = opendir(store);
	cleanup(free) struct used *all = NULL;
	const struct dirent *entry;
	size_t n = 0, cap = 0;

	if (!dir)
		return err_sys(err, errno, "cannot look into %s", store);
	while ((entry = readdir(dir))) {
		cleanup(free) char *path = file_join(store, entry->d_name);
		struct used one;
		struct stat st;
		int r;

		if (!is_key(entry->d_name) || stat(path, &st) < 0)
			continue;
		memcpy(one.key, entry->d_name, sizeof(one.key));
		one.when = st.st_mtim;
		r = file_usage(path, &one.bytes, err);
		if (r < 0)
			return r;
		ALLOC_GROW(all, n, cap);
		all[n++] = one;
	}
	*ret = steal(&all);
	*ret_n = n;
	return 0;
}

static int by_use(const void *a, const void *b)
{
	const struct timespec *x = &((const struct used *)a)->when;
	const struct timespec *y = &((const struct used *)b)->when;

	if (x->tv_sec != y->tv_sec)
		return x->tv_sec < y->tv_sec ? -1 : 1;
	return x->tv_nsec < y->tv_nsec ? -1 : x->tv_nsec > y->tv_nsec;
}

static int must_stay(const struct store_limit *limit, const char *added, const char *key)
{
	for (size_t i = 0; i < limit->nkeep; i++)
		if (!strcmp(limit->keep[i], key))
			return 1;
	return !strcmp(added, key);
}

/* Under the lock: drop entries, least recently used first, until the store is below its limit. */
static int evict(
	const char *store, const struct store_limit *limit, const char *added, struct err *err)
{
	cleanup(free) struct used *all = NULL;
	uint64_t total = 0;
	size_t n = 0;
	int r;

	if (!limit->bytes)
		return 0;
	r = list_used(store, &all, &n, err);
	if (r < 0)
		return r;
	qsort(all, n, sizeof(*all), by_use);
	for (size_t i = 0; i < n; i++)
		total += all[i].bytes;
	for (size_t i = 0; i < n && total > limit->bytes && r == 0; i++) {
		if (must_stay(limit, added, all[i].key))
			continue;
		r = drop(store, all[i].key, err);
		total -= all[i].bytes;
	}
	return r;
}

/* Under the lock: the finished folder gets its name, unless someone else was faster. */
static int publish(const char *store, const char *temp, const char *key, struct err *err)
{
	cleanup(free) char *dir = file_join(store, key);

	if (rename(temp, dir) == 0)
		return sync_path(store, err);
	if (errno == EEXIST || errno == ENOTEMPTY)
		return file_remove(temp, err);
	return err_sys(err, errno, "cannot write %s", dir);
}

/* A new folder for a new entry; the lock on it tells the sweep that its maker is alive. */
static int make_temp(const char *store, char *temp, int *ret_fd, struct err *err)
{
	cleanup(close) int lock = -1, fd = -1;
	int r = lock_store(store, &lock, err);

	if (r < 0)
		return r;
	if (!mkdtemp(temp))
		return err_sys(err, errno, "cannot write into %s", store);
	fd = open(temp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || flock(fd, LOCK_EX) < 0 || fchmod(fd, 0755) < 0)
		return err_sys(err, errno, "cannot write %s", temp);
	*ret_fd = steal_fd(&fd);
	return 0;
}

int store_check(const char *store, struct err *err)
{
	cleanup(free) char *temp = file_join(store, TEMP_PREFIX "XXXXXX");
	cleanup(close) int alive = -1;
	int r = make_temp(store, temp, &alive, err);

	if (r == 0)
		r = file_remove(temp, err);
	return r < 0 ? err_wrap(err, "the store of kernels cannot be written") : 0;
}

int store_add(const char *store, const char *key, const struct store_files *files,
	const struct store_limit *limit, struct store_entry *ret, struct err *err)
{
	cleanup(free) char *temp = file_join(store, TEMP_PREFIX "XXXXXX");
	cleanup(free) char *dir = file_join(store, key);
	cleanup(close) int lock = -1, alive = -1;
	int r;

	if (!is_key(key))
		return err_set(err, EINVAL, "\"%s\" is not a key", key);
	r = make_temp(store, temp, &alive, err);
	if (r == 0)
		r = fill(temp, files, err);
	if (r == 0)
		r = lock_store(store, &lock, err);
	if (r == 0)
		r = publish(store, temp, key, err);
	if (r == 0)
		r = evict(store, limit, key, err);
	if (r == 0)
		return load(dir, ret, err);
	file_remove(temp, NULL);
	return err_wrap(err, "the store of kernels cannot be written");
}

int store_sweep(const char *store, struct err *err)
{
	cleanup(closedir) DIR *dir = opendir(store);
	cleanup(close) int lock = -1;
	const struct dirent *entry;
	int n = 0, r;

	if (!dir)
		return 0;
	r = lock_store(store, &lock, err);
	while (r == 0 && (entry = readdir(dir))) {
		cleanup(free) char *path = file_join(store, entry->d_name);
		cleanup(close) int fd = -1;

		if (strncmp(entry->d_name, TEMP_PREFIX, strlen(TEMP_PREFIX)) != 0)
			continue;
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
			continue; /* its maker is alive */
		r = file_remove(path, err);
		n++;
	}
	return r < 0 ? r : n;
}
