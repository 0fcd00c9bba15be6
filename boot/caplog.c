#include "boot/caplog.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/banned.h"

#define TAIL_PART 4 /* the end gets a fourth of the room */

struct caplog {
	char *path;
	int fd;
	size_t head_max, tail_max;
	off_t start;	 /* of this part */
	size_t head;	 /* bytes of this part in the file */
	struct buf tail; /* what came after; at most twice tail_max */
	size_t dropped;
	int failed; /* errno of the first failed write */
};

int caplog_open(const char *path, size_t part_max, struct caplog **ret, struct err *err)
{
	struct caplog *log;
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);

	if (fd < 0)
		return err_sys(err, errno, "cannot write the log %s", path);
	log = xcalloc(1, sizeof(*log));
	log->path = xstrdup(path);
	log->fd = fd;
	log->tail_max = part_max / TAIL_PART;
	log->head_max = part_max - log->tail_max;
	*ret = log;
	return 0;
}

static void put(struct caplog *log, const char *data, size_t len)
{
	while (len && !log->failed) {
		ssize_t n = write(log->fd, data, len);

		if (n < 0 && errno != EINTR)
			log->failed = errno;
		if (n < 0)
			continue;
		data += n;
		len -= (size_t)n;
	}
}

void caplog_add(struct caplog *log, const void *data, size_t len)
{
	size_t room = log->head_max - log->head;
	size_t n = len < room ? len : room;

	put(log, data, n);
	log->head += n;
	buf_add(&log->tail, (const char *)data + n, len - n);
	if (log->tail.len > 2 * log->tail_max) {
		size_t extra = log->tail.len - log->tail_max;

		buf_drop(&log->tail, extra);
		log->dropped += extra;
	}
}

void caplog_addf(struct caplog *log, const char *fmt, ...)
{
	char line[4096];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (n > 0)
		caplog_add(log, line, (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1);
}

static int read_back(const struct caplog *log, off_t end, struct buf *ret)
{
	off_t pos = log->start;
	char chunk[65536];

	while (pos < end) {
		ssize_t n = pread(log->fd, chunk, sizeof(chunk), pos);

		if (n < 0)
			return -errno;
		if (n == 0)
			return 0;
		buf_add(ret, chunk, (size_t)n);
		pos += n;
	}
	return 0;
}

int caplog_part(struct caplog *log, struct buf *ret, struct err *err)
{
	size_t extra = log->tail.len > log->tail_max ? log->tail.len - log->tail_max : 0;
	off_t end;
	int r = 0;

	if (log->dropped + extra) {
		char line[64];
		int n = snprintf(
			line, sizeof(line), "\n[%zu bytes left out]\n", log->dropped + extra);

		put(log, line, (size_t)n);
	}
	put(log, buf_str(&log->tail) + extra, log->tail.len - extra);
	end = lseek(log->fd, 0, SEEK_END);
	if (log->failed)
		r = -log->failed;
	else if (ret)
		r = read_back(log, end, ret);
	buf_reset(&log->tail);
	log->head = log->dropped = 0;
	log->start = end;
	return r < 0 ? err_sys(err, -r, "cannot write the log %s", log->path) : 0;
}

void caplog_close(struct caplog *log)
{
	if (!log)
		return;
	close(log->fd);
	buf_release(&log->tail);
	free(log->path);
	free(log);
}
