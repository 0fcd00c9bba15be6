#include "base/sd.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/banned.h"

/* The first descriptor that systemd passes. */
#define LISTEN_START 3

/* A positive decimal number, or 0. */
static long number(const char *text)
{
	char *end;
	long n;

	if (!text || *text < '0' || *text > '9')
		return 0;
	errno = 0;
	n = strtol(text, &end, 10);
	return errno || *end ? 0 : n;
}

int sd_listen_socket(struct err *err)
{
	const char *count = getenv("LISTEN_FDS");
	long n = number(count);
	int mine = number(getenv("LISTEN_PID")) == (long)getpid();

	if (mine && n != 1)
		err_set(err, EINVAL, "systemd passed LISTEN_FDS=%s, expected one socket",
			count ? count : "");
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	if (!mine)
		return -1;
	if (n != 1)
		return -EINVAL;
	if (fcntl(LISTEN_START, F_SETFD, FD_CLOEXEC) < 0)
		return err_set(err, EINVAL, "systemd promised a socket as descriptor %d: %s",
			LISTEN_START, strerror(errno));
	return LISTEN_START;
}

int sd_notify_send(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	size_t len = path ? strlen(path) : 0;
	cleanup(close) int fd = -1;

	if (!len)
		return 0;
	if ((path[0] != '/' && path[0] != '@') || len >= sizeof(addr.sun_path))
		return -EINVAL;
	memcpy(addr.sun_path, path, len);
	if (path[0] == '@')
		addr.sun_path[0] = '\0';
	else
		len++;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	len += offsetof(struct sockaddr_un, sun_path);
	if (sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&addr,
		    (socklen_t)len) < 0)
		return -errno;
	return 1;
}
