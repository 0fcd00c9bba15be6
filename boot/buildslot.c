#include "boot/buildslot.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/banned.h"

#define BOOT_ID "/proc/sys/kernel/random/boot_id"

int buildslot_lock(const char *slot, int *ret_fd, struct err *err)
{
	cleanup(free) char *path = file_join(slot, "lock");
	int r = file_mkdir(slot, 0755, err);

	return r < 0 ? r : file_lock(path, 0, ret_fd, err);
}

int buildslot_put_back(const char *slot, struct err *err)
{
	cleanup(free) char *obj = file_join(slot, "obj");
	cleanup(free) char *old = file_join(slot, "obj.old");
	int r;

	if (access(old, F_OK) < 0)
		return 0;
	r = file_remove(obj, err);
	if (r < 0)
		return r;
	return rename(old, obj) < 0 ? err_sys(err, errno, "cannot rename %s", old) : 1;
}

int buildslot_set_aside(const char *slot, struct err *err)
{
	cleanup(free) char *obj = file_join(slot, "obj");
	cleanup(free) char *old = file_join(slot, "obj.old");

	if (rename(obj, old) < 0)
		return err_sys(err, errno, "cannot rename %s", obj);
	return file_mkdir(obj, 0755, err);
}

int buildslot_drop_aside(const char *slot, struct err *err)
{
	cleanup(free) char *old = file_join(slot, "obj.old");

	return file_remove(old, err);
}

/* slot/boot names the boot of the host in which obj was last used, and its time tells when. */
static int is_trusted(const char *mark, const struct buf *boot)
{
	cleanup(buf_release) struct buf text = BUF_INIT;
	struct stat st;

	return file_read(mark, 64, &text, NULL) == 0 && !strcmp(buf_str(&text), buf_str(boot)) &&
	       stat(mark, &st) == 0 && (int64_t)st.st_mtim.tv_sec * 1000 <= clock_wall_ms();
}

int buildslot_begin(const char *slot, struct err *err)
{
	cleanup(free) char *mark = file_join(slot, "building");

	return file_write(mark, "", 0, 0644, err);
}

int buildslot_end(const char *slot, struct err *err)
{
	cleanup(free) char *mark = file_join(slot, "building");

	return unlink(mark) < 0 ? err_sys(err, errno, "cannot remove %s", mark) : 0;
}

static __thread struct timespec distrusted_since;

static int remove_if_newer(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	const struct timespec *since = &distrusted_since;

	(void)ftw;
	if (flag == FTW_D || st->st_mtim.tv_sec < since->tv_sec ||
		(st->st_mtim.tv_sec == since->tv_sec && st->st_mtim.tv_nsec < since->tv_nsec))
		return 0;
	return unlink(path);
}

/* Remove all that a build which never ended has written. Returns 1 when there was one. */
static int drop_unfinished(const char *slot, struct err *err)
{
	static const char *const folders[] = {"obj", "conf"};
	cleanup(free) char *mark = file_join(slot, "building");
	struct stat st;
	int r;

	if (stat(mark, &st) < 0)
		return 0;
	distrusted_since = st.st_mtim;
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		cleanup(free) char *path = file_join(slot, folders[i]);

		if (nftw(path, remove_if_newer, 64, FTW_PHYS) < 0 && errno != ENOENT)
			return err_sys(err, errno, "cannot clean %s", path);
	}
	r = buildslot_end(slot, err);
	return r < 0 ? r : 1;
}

int buildslot_prepare(const char *slot, struct err *err)
{
	static const char *const untrusted[] = {"obj", "obj.old", "conf"};
	cleanup(free) char *mark = file_join(slot, "boot");
	cleanup(buf_release) struct buf boot = BUF_INIT;
	int n = 0, r;

	r = file_read(BOOT_ID, 64, &boot, err);
	if (r < 0)
		return r;
	if (!is_trusted(mark, &boot))
		for (size_t i = 0; i < sizeof(untrusted) / sizeof(untrusted[0]); i++) {
			cleanup(free) char *path = file_join(slot, untrusted[i]);

			n += access(path, F_OK) == 0;
			r = file_remove(path, err);
			if (r < 0)
				return r;
		}
	r = buildslot_put_back(slot, err);
	if (r < 0)
		return r;
	n += r;
	r = drop_unfinished(slot, err);
	if (r < 0)
		return r;
	n += r;
	r = file_write(mark, boot.data, boot.len, 0644, err);
	return r < 0 ? r : n;
}

/* Remove what file_write left half-done in one folder. */
static int sweep_temporaries(const char *slot, const char *name, struct err *err)
{
	cleanup(free) char *path = file_join(slot, name);
	cleanup(closedir) DIR *dir = opendir(path);
	const struct dirent *entry;
	int n = 0;

	while (dir && (entry = readdir(dir))) {
		size_t len = strlen(entry->d_name);
		cleanup(free) char *file = NULL;
		int r;

		if (len < 4 || strcmp(entry->d_name + len - 4, ".tmp") != 0)
			continue;
		file = file_join(path, entry->d_name);
		r = file_remove(file, err);
		if (r < 0)
			return r;
		n++;
	}
	return n;
}

int buildslot_sweep(const char *slot, struct err *err)
{
	static const char *const folders[] = {".", "conf", "obj"};
	cleanup(close) int lock = -1;
	struct err busy;
	int total, r;

	if (access(slot, F_OK) < 0)
		return 0;
	r = buildslot_lock(slot, &lock, &busy);
	if (r == -EWOULDBLOCK)
		return 0;
	if (r < 0)
		return err_set(err, busy.code, "%s", busy.msg);
	total = r = buildslot_prepare(slot, err);
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]) && r >= 0; i++) {
		r = sweep_temporaries(slot, folders[i], err);
		total += r;
	}
	return r < 0 ? r : total;
}
