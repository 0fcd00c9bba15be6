#include "boot/image.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/child.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/banned.h"

#define KEYS_TIMEOUT_MS 60000
#define IMAGE_TIMEOUT_MS 300000
#define KEEP 4 /* images; one job at a time uses one */
#define WORDS_MAX 256
#define LIST_MAX (1 << 20)

/* What mkguest looks for on PATH by itself; users' PATH lacks the sbin folders. */
static const char *const always[] = {"busybox", "dropbear", NULL};
static const char *const more_path[] = {"/usr/local/sbin", "/usr/sbin", "/sbin", NULL};

static int try_program(const char *dir, size_t dir_len, const char *name, char **ret)
{
	cleanup(free) char *path = xasprintf("%.*s/%s", (int)dir_len, dir, name);
	struct stat st;

	if (!dir_len || stat(path, &st) < 0 || !S_ISREG(st.st_mode) || access(path, X_OK) < 0)
		return 0;
	*ret = steal(&path);
	return 1;
}

/* A program's file: the path itself, or the first on PATH. 1 and *ret (free it), or 0. */
static int find_program(const char *name, char **ret)
{
	const char *path = getenv("PATH");

	if (strchr(name, '/')) {
		if (access(name, R_OK) < 0)
			return 0;
		*ret = xstrdup(name);
		return 1;
	}
	while (path && *path) {
		size_t len = strcspn(path, ":");

		if (try_program(path, len, name, ret))
			return 1;
		path += len + (path[len] == ':');
	}
	for (const char *const *dir = more_path; *dir; dir++)
		if (try_program(*dir, strlen(*dir), name, ret))
			return 1;
	return 0;
}

/* "size mtime inode path": another line when the file changes. */
static void add_stamp(struct buf *out, const char *path)
{
	struct stat st = {0};

	(void)stat(path, &st); /* a file that is gone differs from every file that was there */
	buf_addf(out, "%lld %lld.%09ld %llu %s\n", (long long)st.st_size,
		(long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec, (unsigned long long)st.st_ino,
		path);
}

/* Everything on the host that goes into an image, as far as names tell: see boot/image.h. */
struct recipe {
	char *args[WORDS_MAX];	/* for mkguest; NULL-terminated, owned */
	char *files[WORDS_MAX]; /* programs to look for libraries of; the same */
	size_t n_args, n_files;
	char key[HASH_HEX_SIZE];
};

static void recipe_release(struct recipe *r)
{
	for (size_t i = 0; i < r->n_args; i++)
		free(r->args[i]);
	for (size_t i = 0; i < r->n_files; i++)
		free(r->files[i]);
}

static void cleanup_recipe_release(struct recipe *r)
{
	recipe_release(r);
}

/* One word of the benchmark's programs: a program, or FILE=GUESTPATH. */
static int recipe_add(
	struct recipe *r, const struct image_spec *spec, const char *word, struct err *err)
{
	const char *eq = strchr(word, '=');
	cleanup(free) char *name = eq ? xstrndup(word, (size_t)(eq - word)) : xstrdup(word);
	char *path;

	if (r->n_args >= WORDS_MAX - 8)
		return err_set(err, E2BIG, "more than %d programs for the guest", WORDS_MAX - 8);
	if (!find_program(name, &path))
		return err_set(err, ENOENT,
			"%s is not on this host; benchmark %s needs it in the guest", name,
			spec->benchmark ? spec->benchmark : "(unnamed)");
	r->args[r->n_args++] = xasprintf("%s%s", path, eq ? eq : "");
	r->files[r->n_files++] = path;
	return 0;
}

static int hash_content(struct hash *hash, const char *dir, const char *name, struct err *err)
{
	cleanup(free) char *path = file_join(dir, name);
	char hex[HASH_HEX_SIZE];
	int r = hash_file(path, hex, err);

	if (r == 0)
		hash_part_str(hash, hex);
	return r;
}

/* Find the programs, and the key of all that is known without asking for libraries. */
static int recipe_init(struct recipe *recipe, const struct image_spec *spec, struct err *err)
{
	cleanup(buf_release) struct buf stamps = BUF_INIT;
	struct hash *hash;
	int r = 0;

	for (char *const *word = spec->programs; r == 0 && *word; word++)
		r = recipe_add(recipe, spec, *word, err);
	if (r < 0)
		return r;
	/* If one of these is missing, mkguest says which package has it. */
	for (const char *const *name = always; *name; name++)
		recipe->n_files += (size_t)find_program(*name, &recipe->files[recipe->n_files]);
	for (size_t i = 0; i < recipe->n_files; i++)
		add_stamp(&stamps, recipe->files[i]);
	hash = hash_new();
	for (size_t i = 0; i < recipe->n_args; i++)
		hash_part_str(hash, recipe->args[i]);
	hash_part_str(hash, buf_str(&stamps));
	r = hash_content(hash, ".", spec->mkguest, err);
	if (r == 0)
		r = hash_content(hash, ".", spec->init, err);
	if (r == 0)
		r = hash_content(hash, spec->keys_dir, "host_key", err);
	if (r == 0)
		r = hash_content(hash, spec->keys_dir, "client_key.pub", err);
	hash_final(hash, recipe->key);
	return r;
}

/* The paths in ldd's lines: "\tlibz.so.1 => /lib/libz.so.1 (0x...)", "\t/lib64/ld.so (0x...)". */
static void stamp_libraries(const char *ldd, struct buf *ret)
{
	while (*ldd) {
		size_t len = strcspn(ldd, "\n");
		const char *path = memchr(ldd, '/', len);
		const char *end = path ? memmem(path, len - (size_t)(path - ldd), " (0x", 4) : NULL;
		cleanup(free) char *name = end ? xstrndup(path, (size_t)(end - path)) : NULL;

		if (name)
			add_stamp(ret, name);
		ldd += len + (ldd[len] == '\n');
	}
}

/* Ask ldd; slow, so the answer is kept. What is not a dynamic program has none. */
static int find_libraries(const struct recipe *recipe, struct buf *ret, struct err *err)
{
	const char *argv[WORDS_MAX + 8] = {
		"sh", "-c", "for f; do LC_ALL=C ldd \"$f\" 2>/dev/null; done; exit 0", "sh"};
	cleanup(buf_release) struct buf out = BUF_INIT;
	int r;

	for (size_t i = 0; i < recipe->n_files; i++)
		argv[4 + i] = recipe->files[i];
	r = child_output(argv, IMAGE_TIMEOUT_MS, LIST_MAX, &out, err);
	if (r == 0)
		stamp_libraries(buf_str(&out), ret);
	return r;
}

/* Do the files of a kept list still bear their stamps? */
static int still_true(const struct buf *list)
{
	cleanup(buf_release) struct buf now = BUF_INIT;

	for (const char *p = buf_str(list); *p;) {
		size_t len = strcspn(p, "\n");
		const char *path = memchr(p, '/', len);
		cleanup(free) char *name = path ? xstrndup(path, len - (size_t)(path - p)) : NULL;

		if (name)
			add_stamp(&now, name);
		p += len + (p[len] == '\n');
	}
	return now.len == list->len && memcmp(buf_str(&now), buf_str(list), now.len) == 0;
}

/*
 * The libraries' stamps, from the kept list or, when `ask`, from ldd. 1: they are in ret; 0: the
 * list is missing or old.
 */
static int libraries(const struct recipe *recipe, const char *cache_dir, int ask, struct buf *ret,
	struct err *err)
{
	cleanup(free) char *path = xasprintf("%s/%s.libs", cache_dir, recipe->key);
	int r = file_read(path, LIST_MAX, ret, NULL);

	if (r == 0 && still_true(ret))
		return 1;
	buf_reset(ret);
	if (!ask)
		return 0;
	r = find_libraries(recipe, ret, err);
	if (r == 0)
		r = file_write(path, buf_str(ret), ret->len, 0644, err);
	return r < 0 ? r : 1;
}

/* The image's path, from all that goes into it. Free it. */
static char *image_path(const struct recipe *recipe, const struct buf *libs, const char *cache_dir)
{
	struct hash *hash = hash_new();
	char hex[HASH_HEX_SIZE];

	hash_part_str(hash, recipe->key);
	hash_part_str(hash, buf_str(libs));
	hash_final(hash, hex);
	return xasprintf("%s/%s.cpio", cache_dir, hex);
}

/* Run mkguest; its last line of stderr is the error. */
static int run_mkguest(const char *const *argv, int timeout_ms, struct err *err)
{
	cleanup(close) int fd = memfd_create("mkguest", MFD_CLOEXEC);
	struct child_spec child = {.argv = argv, .fd_in = -1, .fd_out = -1, .fd_err = fd};
	static const char prefix[] = "mkguest: ";
	char text[ERR_MSG_MAX / 2];
	char *line = text;
	ssize_t n;
	int r = child_run(&child, timeout_ms, err);

	if (r != -ECHILD)
		return r;
	n = pread(fd, text, sizeof(text) - 1, 0);
	while (n > 0 && text[n - 1] == '\n')
		n--;
	if (n <= 0)
		return r;
	text[n] = '\0';
	line = strrchr(text, '\n') ? strrchr(text, '\n') + 1 : text;
	line += strncmp(line, prefix, strlen(prefix)) == 0 ? strlen(prefix) : 0;
	return err_set(err, ECHILD, "%s", line);
}

int image_keys(const struct image_spec *spec, struct err *err)
{
	cleanup(free) char *last = file_join(spec->keys_dir, "client_key.pub");
	const char *argv[] = {spec->mkguest, "keys", spec->keys_dir, NULL};
	int r;

	if (access(last, R_OK) == 0)
		return 0;
	r = run_mkguest(argv, KEYS_TIMEOUT_MS, err);
	return r < 0 ? err_wrap(err, "cannot make the guest's keys") : 0;
}

static int image_build(const struct image_spec *spec, const struct recipe *recipe, const char *path,
	struct err *err)
{
	const char *argv[WORDS_MAX + 8] = {spec->mkguest, "image", path, spec->keys_dir};
	int r;

	for (size_t i = 0; i < recipe->n_args; i++)
		argv[4 + i] = recipe->args[i];
	r = run_mkguest(argv, IMAGE_TIMEOUT_MS, err);
	return r < 0 ? err_wrap(err, "cannot make the guest's image") : 0;
}

struct entry {
	char *path;
	struct timespec used;
};

static int newest_first(const void *a, const void *b)
{
	const struct timespec *x = &((const struct entry *)a)->used;
	const struct timespec *y = &((const struct entry *)b)->used;

	if (x->tv_sec != y->tv_sec)
		return x->tv_sec < y->tv_sec ? 1 : -1;
	return (x->tv_nsec < y->tv_nsec) - (x->tv_nsec > y->tv_nsec);
}

/* Keep the most recently used files of that ending. Failures can wait for the next time. */
static void prune(const char *cache_dir, const char *suffix, int keep)
{
	cleanup(closedir) DIR *dir = opendir(cache_dir);
	struct entry *entries = NULL;
	size_t n = 0, cap = 0;
	struct dirent *e;

	while (dir && (e = readdir(dir))) {
		const char *dot = strstr(e->d_name, suffix);
		struct stat st;
		char *path;

		if (!dot)
			continue;
		path = file_join(cache_dir, e->d_name);
		/* Behind the suffix: what a killed mkguest or file_write left. */
		if (dot[strlen(suffix)] || stat(path, &st) < 0) {
			file_remove(path, NULL);
			free(path);
			continue;
		}
		ALLOC_GROW(entries, n, cap);
		entries[n++] = (struct entry){path, st.st_mtim};
	}
	if (n)
		qsort(entries, n, sizeof(*entries), newest_first);
	for (size_t i = 0; i < n; i++) {
		if (i >= (size_t)keep)
			unlink(entries[i].path);
		free(entries[i].path);
	}
	free(entries);
}

/* An image that is there already: note that it was used. */
static int image_cached(const char *path)
{
	return utimensat(AT_FDCWD, path, NULL, 0) == 0;
}

/* With the cache's lock held. */
static int image_make(const struct image_spec *spec, const struct recipe *recipe, char **ret_path,
	struct err *err)
{
	cleanup(buf_release) struct buf libs = BUF_INIT;
	cleanup(free) char *path = NULL;
	int r = libraries(recipe, spec->cache_dir, 1, &libs, err);

	if (r < 0)
		return r;
	path = image_path(recipe, &libs, spec->cache_dir);
	if (!image_cached(path)) {
		r = image_build(spec, recipe, path, err);
		if (r < 0)
			return r;
		prune(spec->cache_dir, ".cpio", KEEP);
		prune(spec->cache_dir, ".libs", KEEP);
	}
	*ret_path = steal(&path);
	return 0;
}

int image_get(const struct image_spec *spec, char **ret_path, struct err *err)
{
	cleanup(recipe_release) struct recipe recipe = {0};
	cleanup(buf_release) struct buf libs = BUF_INIT;
	cleanup(free) char *lock_path = file_join(spec->cache_dir, "lock");
	cleanup(free) char *path = NULL;
	cleanup(close) int lock = -1;
	int r = image_keys(spec, err);

	if (r == 0)
		r = recipe_init(&recipe, spec, err);
	if (r == 0)
		r = libraries(&recipe, spec->cache_dir, 0, &libs, err);
	if (r < 0)
		return r;
	path = image_path(&recipe, &libs, spec->cache_dir);
	if (r > 0 && image_cached(path)) {
		*ret_path = steal(&path);
		return 0;
	}
	r = file_mkdir(spec->cache_dir, 0755, err);
	if (r == 0)
		r = file_lock(lock_path, 1, &lock, err);
	return r < 0 ? r : image_make(spec, &recipe, ret_path, err);
}
