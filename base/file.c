#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/banned.h"

int file_read(const char *path, size_t max, struct buf *ret, struct err *err)
{
	cleanup(close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	char chunk[65536];
	ssize_t n;

	if (fd < 0)
		return err_sys(err, errno, "cannot open %s", path);
	while ((n = read(fd, chunk, sizeof(chunk))) > 0) {
		if (ret->len + (size_t)n > max) {
			buf_release(ret);
			return err_set(err, EFBIG, "%s is larger than %zu bytes", path, max);
		}
		buf_add(ret, chunk, (size_t)n);
	}
	if (n < 0) {
		buf_release(ret);
		return err_sys(err, errno, "cannot read %s", path);
	}
	return 0;
}

/* Write all bytes and make them durable. */
static int write_all(int fd, const char *data, size_t len)
{
	while (len) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		data += n;
		len -= (size_t)n;
	}
	return fsync(fd) < 0 ? -errno : 0;
}

/* A rename is durable once the folder is. */
static int sync_folder(const char *path)
{
	const char *slash = strrchr(path, '/');
	cleanup(free) char *dir = slash ? xstrndup(path, (size_t)(slash - path) + 1) : xstrdup(".");
	cleanup(close) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

int file_write(const char *path, const void *data, size_t len, mode_t mode, struct err *err)
{
	cleanup(free) char *tmp = xasprintf("%s.%d.tmp", path, (int)getpid());
	cleanup(close) int fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
	int r;

	if (fd < 0)
		return err_sys(err, errno, "cannot write %s", path);
	r = write_all(fd, data, len);
	if (r == 0 && rename(tmp, path) < 0)
		r = -errno;
	if (r < 0) {
		unlink(tmp);
		return err_sys(err, -r, "cannot write %s", path);
	}
	r = sync_folder(path);
	return r < 0 ? err_sys(err, -r, "cannot sync the folder of %s", path) : 0;
}

int file_mkdir(const char *path, mode_t mode, struct err *err)
{
	cleanup(free) char *part = xstrdup(path);
	struct stat st;

	for (char *p = part + 1;; p++) {
		char c = *p;

		if (c != '/' && c != '\0')
			continue;
		*p = '\0';
		if (mkdir(part, mode) < 0 && errno != EEXIST)
			return err_sys(err, errno, "cannot make the folder %s", part);
		if (c == '\0')
			break;
		*p = c;
	}
	if (stat(path, &st) < 0)
		return err_sys(err, errno, "cannot look at %s", path);
	if (!S_ISDIR(st.st_mode))
		return err_set(err, ENOTDIR, "%s is there but is not a folder", path);
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st, (void)flag, (void)ftw;
	return remove(path) < 0 && errno != ENOENT ? -1 : 0;
}

int file_remove(const char *path, struct err *err)
{
	if (nftw(path, remove_one, 64, FTW_DEPTH | FTW_PHYS) < 0 && errno != ENOENT)
		return err_sys(err, errno, "cannot remove %s", path);
	return 0;
}

int file_copy(const char *from, const char *to, struct err *err)
{
	cleanup(close) int in = open(from, O_RDONLY | O_CLOEXEC);
	cleanup(close) int out = -1;
	struct stat st;
	ssize_t n;

	if (in < 0 || fstat(in, &st) < 0)
		return err_sys(err, errno, "cannot open %s", from);
	if (unlink(to) < 0 && errno != ENOENT)
		return err_sys(err, errno, "cannot replace %s", to);
	out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, st.st_mode & 0777);
	if (out < 0)
		return err_sys(err, errno, "cannot write %s", to);
	while ((n = copy_file_range(in, NULL, out, NULL, 1 << 30, 0)) > 0)
		;
	if (n < 0)
		return err_sys(err, errno, "cannot copy %s to %s", from, to);
	return 0;
}

static __thread uint64_t usage_bytes;

static int usage_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)path, (void)flag, (void)ftw;
	usage_bytes += (uint64_t)st->st_blocks * 512;
	return 0;
}

int file_usage(const char *path, uint64_t *ret_bytes, struct err *err)
{
	usage_bytes = 0;
	if (nftw(path, usage_one, 64, FTW_PHYS) < 0)
		return err_sys(err, errno, "cannot look into %s", path);
	*ret_bytes = usage_bytes;
	return 0;
}

int file_lock(const char *path, int wait, int *ret_fd, struct err *err)
{
	cleanup(close) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_sys(err, errno, "cannot open the lock %s", path);
	if (flock(fd, LOCK_EX | (wait ? 0 : LOCK_NB)) < 0)
		return errno == EWOULDBLOCK
			       ? err_set(err, EWOULDBLOCK, "%s is locked by another process", path)
			       : err_sys(err, errno, "cannot lock %s", path);
	*ret_fd = steal_fd(&fd);
	return 0;
}

char *file_join(const char *base, const char *name)
{
	return name[0] == '/' ? xstrdup(name) : xasprintf("%s/%s", base, name);
}
