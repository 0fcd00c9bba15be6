#include "boot/watch.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "boot/caplog.h"
#include "boot/console.h"
#include "base/banned.h"

#define CONSOLE_LOG_MAX (8 << 20)
#define SETTLE_QUIET_MS 200
#define DEADLY (CONSOLE_PANIC | CONSOLE_OOPS | CONSOLE_REBOOT)

struct watch {
	pthread_mutex_t lock; /* protects what follows up to the descriptors */
	struct console *console;
	struct caplog *log;
	struct buf clean;
	enum vm_end end;
	int64_t first_byte, last_byte;
	int wake;  /* eventfd: something changed */
	int fatal; /* eventfd: the guest is dead */
	int any;   /* epoll: fatal or stop */
	int stop;  /* borrowed */
};

static int watch_poll_add(struct watch *w, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN};

	return fd < 0 ? 0 : epoll_ctl(w->any, EPOLL_CTL_ADD, fd, &ev);
}

int watch_new(const char *log, int stop_fd, struct watch **ret, struct err *err)
{
	cleanup(watch_free) struct watch *w = xcalloc(1, sizeof(*w));
	int r;

	pthread_mutex_init(&w->lock, NULL);
	w->console = console_new();
	w->stop = stop_fd;
	w->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	w->fatal = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	w->any = epoll_create1(EPOLL_CLOEXEC);
	if (w->wake < 0 || w->fatal < 0 || w->any < 0 || watch_poll_add(w, w->fatal) < 0 ||
		watch_poll_add(w, stop_fd) < 0)
		return err_sys(err, errno, "cannot watch a domain");
	if (log) {
		r = caplog_open(log, CONSOLE_LOG_MAX, &w->log, err);
		if (r < 0)
			return r;
	}
	w->last_byte = clock_mono_ms();
	*ret = steal(&w);
	return 0;
}

static void post(int fd)
{
	uint64_t one = 1;

	/* It only fails when the counter is full, that is, when it was not read yet. */
	if (write(fd, &one, sizeof(one)) < 0)
		return;
}

void watch_console(void *arg, const char *data, size_t len)
{
	struct watch *w = arg;
	unsigned before, after;

	pthread_mutex_lock(&w->lock);
	before = console_events(w->console);
	buf_reset(&w->clean);
	console_feed(w->console, data, len, &w->clean);
	if (w->log)
		caplog_add(w->log, buf_str(&w->clean), w->clean.len);
	after = console_events(w->console);
	w->last_byte = clock_mono_ms();
	if (!w->first_byte)
		w->first_byte = w->last_byte;
	pthread_mutex_unlock(&w->lock);
	if (after & DEADLY & ~before)
		post(w->fatal);
	if (after != before)
		post(w->wake);
}

void watch_ended(void *arg, enum vm_end end)
{
	struct watch *w = arg;

	pthread_mutex_lock(&w->lock);
	w->end = end;
	pthread_mutex_unlock(&w->lock);
	post(w->fatal);
	post(w->wake);
}

/* Milliseconds that poll may sleep; 0 when one of the limits has passed. */
static int sleep_ms(int64_t now, int64_t deadline, int64_t silence_end)
{
	int64_t until = silence_end && silence_end < deadline ? silence_end : deadline;

	if (until <= now)
		return 0;
	/* The silence limit moves with each byte, which wakes nobody. */
	return until - now > 1000 ? 1000 : (int)(until - now);
}

enum watch_news watch_wait(struct watch *w, unsigned wanted, int64_t deadline, int64_t silence_ms)
{
	struct pollfd pfds[] = {{w->wake, POLLIN, 0}, {w->stop, POLLIN, 0}};

	for (;;) {
		int64_t now = clock_mono_ms(), silence_end;
		unsigned events;
		uint64_t n;
		enum vm_end end;

		if (read(w->wake, &n, sizeof(n)) < 0 && errno != EAGAIN)
			return WATCH_STOPPED;
		pthread_mutex_lock(&w->lock);
		events = console_events(w->console);
		end = w->end;
		silence_end = silence_ms ? w->last_byte + silence_ms : 0;
		pthread_mutex_unlock(&w->lock);
		if ((events & DEADLY) || end != VM_RUNS)
			return WATCH_DEAD;
		if (events & wanted)
			return WATCH_SEEN;
		if (pfds[1].revents)
			return WATCH_STOPPED;
		if (now >= deadline)
			return WATCH_LATE;
		if (silence_end && now >= silence_end)
			return WATCH_SILENT;
		if (poll(pfds, 2, sleep_ms(now, deadline, silence_end)) < 0 && errno != EINTR)
			return WATCH_STOPPED;
	}
}

void watch_settle(struct watch *w, int limit_ms)
{
	int64_t limit = clock_mono_ms() + limit_ms;

	for (;;) {
		int64_t now = clock_mono_ms(), quiet;
		enum vm_end end;

		pthread_mutex_lock(&w->lock);
		quiet = now - w->last_byte;
		end = w->end;
		pthread_mutex_unlock(&w->lock);
		if ((end != VM_RUNS && quiet >= 20) || now >= limit)
			return;
		if (quiet >= SETTLE_QUIET_MS && (watch_events(w) & DEADLY))
			return;
		poll(NULL, 0, 10);
	}
}

int watch_fd(const struct watch *w)
{
	return w->any;
}

unsigned watch_events(struct watch *w)
{
	unsigned events;

	pthread_mutex_lock(&w->lock);
	events = console_events(w->console);
	pthread_mutex_unlock(&w->lock);
	return events;
}

enum vm_end watch_end(struct watch *w)
{
	enum vm_end end;

	pthread_mutex_lock(&w->lock);
	end = w->end;
	pthread_mutex_unlock(&w->lock);
	return end;
}

int64_t watch_first_byte(struct watch *w)
{
	int64_t at;

	pthread_mutex_lock(&w->lock);
	at = w->first_byte;
	pthread_mutex_unlock(&w->lock);
	return at;
}

void watch_line(struct watch *w, unsigned event, struct buf *ret)
{
	pthread_mutex_lock(&w->lock);
	buf_adds(ret, console_line(w->console, (enum console_event)event));
	pthread_mutex_unlock(&w->lock);
}

void watch_tail(struct watch *w, struct buf *ret)
{
	pthread_mutex_lock(&w->lock);
	console_tail(w->console, ret);
	pthread_mutex_unlock(&w->lock);
}

int watch_finish(struct watch *w, struct err *err)
{
	int r;

	pthread_mutex_lock(&w->lock);
	console_finish(w->console);
	r = w->log ? caplog_part(w->log, NULL, err) : 0;
	pthread_mutex_unlock(&w->lock);
	return r;
}

void watch_free(struct watch *w)
{
	if (!w)
		return;
	console_free(w->console);
	caplog_close(w->log);
	buf_release(&w->clean);
	pthread_mutex_destroy(&w->lock);
	if (w->any >= 0)
		close(w->any);
	if (w->fatal >= 0)
		close(w->fatal);
	if (w->wake >= 0)
		close(w->wake);
	free(w);
}
