#include "daemon/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/banned.h"

#define BACKLOG 64

static int address(const char *path, struct sockaddr_un *ret, struct err *err)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	if (strlen(path) >= sizeof(addr.sun_path))
		return err_set(err, ENAMETOOLONG, "the socket's path %s is longer than %zu bytes",
			path, sizeof(addr.sun_path) - 1);
	memcpy(addr.sun_path, path, strlen(path) + 1);
	*ret = addr;
	return 0;
}

/* May the path be taken? Yes when nothing is there, or a socket at which nobody answers. */
static int check_path(const char *path, const struct sockaddr_un *addr, struct err *err)
{
	cleanup(close) int fd = -1;
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : err_sys(err, errno, "cannot look at %s", path);
	if (!S_ISSOCK(st.st_mode))
		return err_set(err, EEXIST, "%s is not a socket, so it is left alone", path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_sys(err, errno, "cannot create a socket");
	if (connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) < 0) {
		if (errno == ECONNREFUSED || errno == ENOENT)
			return 0;
		/* A full backlog is a living daemon, too. */
		if (errno != EAGAIN && errno != EPROTOTYPE)
			return err_sys(err, errno, "cannot find out who uses the socket %s", path);
	}
	return err_set(err, EADDRINUSE,
		"the socket %s is in use: another daemon answers there (stop it, or set another "
		"path)",
		path);
}

int listen_regroup(const char *path, gid_t group, struct err *err)
{
	if (group != (gid_t)-1 && lchown(path, (uid_t)-1, group) < 0)
		return err_sys(err, errno, "cannot give %s to its group", path);
	if (chmod(path, group == (gid_t)-1 ? 0600 : 0660) < 0)
		return err_sys(err, errno, "cannot set the mode of %s", path);
	return 0;
}

/* Bind under a temporary name with nothing allowed, then open it up as far as it shall be. */
static int bind_closed(int fd, const char *tmp, gid_t group, struct err *err)
{
	struct sockaddr_un addr;
	mode_t old;
	int r;

	r = address(tmp, &addr, err);
	if (r < 0)
		return r;
	if (unlink(tmp) < 0 && errno != ENOENT)
		return err_sys(err, errno, "cannot remove %s", tmp);
	old = umask(0777);
	r = bind(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0 ? -errno : 0;
	umask(old);
	if (r < 0)
		return err_sys(err, -r, "cannot create the socket %s", tmp);
	r = listen_regroup(tmp, group, err);
	if (r < 0)
		return r;
	if (listen(fd, BACKLOG) < 0)
		return err_sys(err, errno, "cannot listen on %s", tmp);
	return 0;
}

int listen_create(
	const char *path, gid_t group, int *ret_fd, struct listen_file *ret_file, struct err *err)
{
	cleanup(free) char *tmp = xasprintf("%s.new", path);
	cleanup(close) int fd = -1;
	struct sockaddr_un addr;
	struct stat st;
	int r;

	r = address(path, &addr, err);
	if (r == 0)
		r = check_path(path, &addr, err);
	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_sys(err, errno, "cannot create a socket");
	r = bind_closed(fd, tmp, group, err);
	if (r == 0 && (lstat(tmp, &st) < 0 || rename(tmp, path) < 0))
		r = err_sys(err, errno, "cannot create the socket %s", path);
	if (r < 0) {
		unlink(tmp);
		return r;
	}
	*ret_file = (struct listen_file){st.st_dev, st.st_ino};
	*ret_fd = steal_fd(&fd);
	return 0;
}

int listen_adopt(int fd, struct err *err)
{
	int domain = 0, type = 0, listens = 0;
	socklen_t len = sizeof(int);

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) < 0 ||
		getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) < 0 ||
		getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) < 0)
		return err_sys(err, errno, "descriptor %d, passed as the control socket", fd);
	if (domain != AF_UNIX || type != SOCK_STREAM || !listens)
		return err_set(err, EINVAL,
			"descriptor %d, passed as the control socket, is not a listening Unix "
			"stream socket",
			fd);
	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		return err_sys(err, errno, "descriptor %d", fd);
	return 0;
}

void listen_remove(const char *path, const struct listen_file *file)
{
	struct stat st;

	if (lstat(path, &st) == 0 && st.st_dev == file->dev && st.st_ino == file->ino)
		unlink(path);
}
