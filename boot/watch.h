#ifndef BOOT_WATCH_H
#define BOOT_WATCH_H

/*
 * Where the news of one boot meet: console bytes and the domain's end come in from libvirt's
 * threads, and the thread that does the work waits here for what they mean.
 *
 * Life cycle: watch_new; its two functions are given to vm_create as events; watch_wait and so on;
 * after vm_destroy, watch_finish, and after vm_free, watch_free. Also writes the console's log file
 * (8 MiB at most).
 *
 * stop_fd is watched everywhere: when it becomes readable, this process was asked to end.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "boot/vm.h"

struct watch;

/* log: the console's file, NULL = none. stop_fd: -1 = none; borrowed. */
int watch_new(const char *log, int stop_fd, struct watch **ret, struct err *err);

/* For struct vm_events; arg is the watch. */
void watch_console(void *arg, const char *data, size_t len);
void watch_ended(void *arg, enum vm_end end);

enum watch_news {
	WATCH_SEEN,    /* one of the wanted console events */
	WATCH_DEAD,    /* panic, oops, reboot or the domain's end */
	WATCH_SILENT,  /* no byte for silence_ms */
	WATCH_LATE,    /* deadline */
	WATCH_STOPPED, /* stop_fd */
};

/*
 * Wait for one of the console events `wanted` (or-ed). deadline: of clock_mono_ms. silence_ms: 0 =
 * no limit.
 */
enum watch_news watch_wait(
	struct watch *watch, unsigned wanted, int64_t deadline, int64_t silence_ms);

/* After a sign of death: give the kernel time to finish its message, or the domain its end. */
void watch_settle(struct watch *watch, int limit_ms);

/* Readable from when watch_wait would return WATCH_DEAD or WATCH_STOPPED. Borrowed. */
int watch_fd(const struct watch *watch);

/* Console events and the domain's end so far. */
unsigned watch_events(struct watch *watch);
enum vm_end watch_end(struct watch *watch);

/* clock_mono_ms of the first console byte; 0 = none yet. */
int64_t watch_first_byte(struct watch *watch);

/* The line behind a console event, and the last lines. */
void watch_line(struct watch *watch, unsigned event, struct buf *ret);
void watch_tail(struct watch *watch, struct buf *ret);

/* No more bytes will come (vm_destroy has returned): end the log. */
int watch_finish(struct watch *watch, struct err *err);

void watch_free(struct watch *watch);
DEFINE_CLEANUP(watch_free, struct watch *);

#endif
