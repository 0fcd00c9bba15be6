/* What is seen on a console, whatever the chunks it comes in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "boot/console.h"

#define BOOT "[    0.000000] Linux version 6.1.0 (x@y) #1\n"

struct row {
	const char *name, *text;
	unsigned events;
	enum console_event which; /* whose line is compared; 0 = none */
	const char *line;
};

static const struct row rows[] = {
	{"nothing", "", 0, 0, NULL},
	{"the firmware", "SeaBIOS (version 1.16)\nBooting from ROM...\n", 0, 0, NULL},
	{"a banner", BOOT, CONSOLE_BANNER, CONSOLE_BANNER, "Linux version 6.1.0 (x@y) #1"},
	{"a banner with a level", "<5>" BOOT, CONSOLE_BANNER, 0, NULL},
	{"a banner with a caller", "[    0.000000][    T0] Linux version 6\r\n", CONSOLE_BANNER,
		CONSOLE_BANNER, "Linux version 6"},
	{"a banner that is quoted", "[    1.0] it was Linux version 6.1\n", 0, 0, NULL},
	{"a banner without an end", "Linux version 6.1", CONSOLE_BANNER, 0, NULL},
	{"a reset", BOOT "x\n" BOOT, CONSOLE_BANNER | CONSOLE_REBOOT, 0, NULL},
	{"ready", BOOT "kbisectd-guest: ready\n", CONSOLE_BANNER | CONSOLE_READY, 0, NULL},
	{"ready, in the middle of a message", "[ 1.2] foo kbisectd-guest: ready\n", CONSOLE_READY,
		0, NULL},
	{"a panic", "[    0.6] Kernel panic - not syncing: VFS: no root\n[    0.6] Call Trace:\n",
		CONSOLE_PANIC, CONSOLE_PANIC, "Kernel panic - not syncing: VFS: no root"},
	{"the end of a panic is no panic", "[ 1.0] ---[ end Kernel panic - not syncing: x ]---\n",
		0, 0, NULL},
	{"an oops",
		"[    3.1] BUG: kernel NULL pointer dereference, address: 8\n"
		"[    3.1] Oops: 0002 [#1] SMP\n",
		CONSOLE_OOPS, CONSOLE_OOPS, "BUG: kernel NULL pointer dereference, address: 8"},
	{"a BUG()", "[    3.1] kernel BUG at mm/slub.c:305!\n", CONSOLE_OOPS, 0, NULL},
	{"a protection fault", "[ 3.1] general protection fault: 0000 [#1] SMP\n", CONSOLE_OOPS, 0,
		NULL},
	{"a program's protection fault", "[ 3.1] traps: sh[7] general protection fault ip:1\n", 0,
		0, NULL},
	{"a call trace", "[    3.1] Call Trace:\n", CONSOLE_OOPS, CONSOLE_OOPS, "Call Trace:"},
	{"a warning's call trace",
		"[ 3.1] WARNING: CPU: 0 PID: 1 at init/main.c:1\n[ 3.1] RIP: 0010:x\n[ 3.1] Call "
		"Trace:\n",
		0, 0, NULL},
	{"a stall's call trace",
		"[ 3.1] rcu: INFO: rcu_sched self-detected stall on CPU\n[ 3.1] Call Trace:\n", 0,
		0, NULL},
	{"a soft lockup", "[ 3.1] watchdog: BUG: soft lockup - CPU#0 stuck for 22s!\n", 0, 0, NULL},
	{"an oops behind a warning",
		"[ 3.1] WARNING: CPU: 0\n[ 3.1] Call Trace:\n[ 3.2] Oops: 0000 [#1]\n",
		CONSOLE_OOPS, CONSOLE_OOPS, "Oops: 0000 [#1]"},
	{"a self-test",
		"[ 1.0] ====[ backtrace testing ]====\n[ 1.0] Call Trace:\n[ 1.0] BUG: x\n"
		"[ 1.1] ====[ end of backtrace testing ]====\n",
		0, 0, NULL},
	{"an oops behind a self-test",
		"[ 1.0] ====[ backtrace testing ]====\n[ 1.0] Call Trace:\n"
		"[ 1.1] ====[ end of backtrace testing ]====\n[ 1.2] Call Trace:\n",
		CONSOLE_OOPS, 0, NULL},
	{"a panic in a self-test",
		"[ 1.0] ====[ backtrace testing ]====\n[ 1.0] Kernel panic - not syncing: y\n",
		CONSOLE_PANIC, 0, NULL},
	{"colours", "\x1b[1;31m[    0.6] Kernel \x1b[0mpanic - z\x1b[m\n", CONSOLE_PANIC,
		CONSOLE_PANIC, "Kernel panic - z"},
	{"a cut escape sequence", "\x1b[1;3\nLinux version 7\n\x1b\nOops: 1\n",
		CONSOLE_BANNER | CONSOLE_OOPS, CONSOLE_BANNER, "Linux version 7"},
	{"a bracket that is no time", "[drm] Oops: none\n", 0, 0, NULL},
};

static void check_row(const struct row *row, size_t chunk)
{
	cleanup(console_free) struct console *c = console_new();
	size_t len = strlen(row->text);

	for (size_t i = 0; i < len; i += chunk)
		console_feed(c, row->text + i, len - i < chunk ? len - i : chunk, NULL);
	console_finish(c);
	if (console_events(c) != row->events)
		fail_msg("%s, chunks of %zu: events %#x, expected %#x", row->name, chunk,
			console_events(c), row->events);
	if (row->which)
		assert_string_equal(console_line(c, row->which), row->line);
}

static void events_are_seen_in_any_chunks(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		for (size_t chunk = 1; chunk <= strlen(rows[i].text) + 1; chunk++)
			check_row(&rows[i], chunk);
}

static void excuse_of_a_warning_wears_off(void **state)
{
	cleanup(console_free) struct console *c = console_new();

	(void)state;
	console_feed(c, "WARNING: x\n", 11, NULL);
	for (int i = 0; i < 100; i++)
		console_feed(c, "a line\n", 7, NULL);
	console_feed(c, "Call Trace:\n", 12, NULL);
	assert_int_equal(console_events(c), CONSOLE_OOPS);
}

static void clean_text_has_no_control_characters(void **state)
{
	static const char raw[] = "a\0b\x1b[2Jc\r\n\td\x07\x7f\xc3\xa9\n";
	cleanup(console_free) struct console *c = console_new();
	cleanup(buf_release) struct buf clean = BUF_INIT;

	(void)state;
	console_feed(c, raw, sizeof(raw) - 1, &clean);
	assert_string_equal(buf_str(&clean), "abc\n\td\xc3\xa9\n");
}

static void tail_is_the_last_lines(void **state)
{
	cleanup(console_free) struct console *c = console_new();
	cleanup(buf_release) struct buf tail = BUF_INIT;

	(void)state;
	for (int i = 0; i < 20; i++) {
		char line[] = {(char)('a' + i), '\n', '\n'};

		console_feed(c, line, sizeof(line), NULL);
	}
	console_tail(c, &tail);
	assert_string_equal(buf_str(&tail), "o\np\nq\nr\ns\nt\n");
}

static void endless_line_is_bounded(void **state)
{
	cleanup(console_free) struct console *c = console_new();
	cleanup(buf_release) struct buf tail = BUF_INIT;
	static const char junk[4096] = {[0 ... 4095] = 'x'};

	(void)state;
	for (int i = 0; i < 1000; i++)
		console_feed(c, junk, sizeof(junk), NULL);
	console_feed(c, "\nLinux version 6\n", 17, NULL);
	console_tail(c, &tail);
	assert_true(tail.len < 1024);
	assert_int_equal(console_events(c), CONSOLE_BANNER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_are_seen_in_any_chunks),
		cmocka_unit_test(excuse_of_a_warning_wears_off),
		cmocka_unit_test(clean_text_has_no_control_characters),
		cmocka_unit_test(tail_is_the_last_lines),
		cmocka_unit_test(endless_line_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
