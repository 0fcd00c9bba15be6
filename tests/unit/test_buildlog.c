/* The first error of a kernel build's output: one row a kind of failure. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "boot/buildlog.h"

#define CC "  CC      kernel/fork.o\n"
#define STOP                                                                                       \
	"make[3]: *** [/build/src/scripts/Makefile.build:250: net/unix/af_unix.o] Error 1\n"       \
	"make[1]: *** [/build/src/Makefile:1853: net] Error 2\nmake: *** [Makefile:219] Error 2\n"

static const struct {
	const char *log;
	const char *line; /* NULL = nothing found */
	enum build_fault fault;
} rows[] = {
	{CC "/build/src/net/unix/af_unix.c: In function 'broken':\n"
	    "/build/src/net/unix/af_unix.c:12:5: warning: unused variable 'error'\n"
	    "/build/src/net/unix/af_unix.c:2187:27: error: 'nope' undeclared (first use)\n"
	    " 2187 | int broken(void) { return nope; }\n"
	    "/build/src/net/unix/af_unix.c:2190:1: error: the second one\n" STOP,
		"net/unix/af_unix.c:2187:27: error: 'nope' undeclared (first use)",
		BUILD_FAULT_CANDIDATE},
	{CC "/build/src/a.c:1:10: fatal error: nope.h: No such file or directory\n" STOP,
		"a.c:1:10: fatal error: nope.h: No such file or directory", BUILD_FAULT_CANDIDATE},
	{"ld: net/socket.o: in function `sock_init':\n"
	 "/build/src/net/socket.c:99: undefined reference to `gone'\nmake: *** [x] Error 1\n",
		"net/socket.c:99: undefined reference to `gone'", BUILD_FAULT_CANDIDATE},
	{"ld: a.o: in function `f':\na.c:(.text+0x1): multiple definition of `g'\n",
		"a.c:(.text+0x1): multiple definition of `g'", BUILD_FAULT_CANDIDATE},
	{"ld.lld: error: undefined symbol: gone\n>>> referenced by x\n",
		"ld.lld: error: undefined symbol: gone", BUILD_FAULT_CANDIDATE},
	{"ld: cannot find lib.a: No such file or directory\n",
		"ld: cannot find lib.a: No such file or directory", BUILD_FAULT_CANDIDATE},
	{"ld: section .a LMA [0,1] overlaps section .b LMA [1,2]\n",
		"ld: section .a LMA [0,1] overlaps section .b LMA [1,2]", BUILD_FAULT_CANDIDATE},
	{CC "make[2]: *** No rule to make target 'kernel/gone.o', needed by 'x'.  Stop.\n" STOP,
		"make[2]: *** No rule to make target 'kernel/gone.o', needed by 'x'.  Stop.",
		BUILD_FAULT_CANDIDATE},
	{"ERROR: modpost: \"gone\" [net/unix/unix.ko] undefined!\n" STOP,
		"ERROR: modpost: \"gone\" [net/unix/unix.ko] undefined!", BUILD_FAULT_CANDIDATE},
	{"net/Kconfig:12: syntax error\nnet/Kconfig:11: unknown statement \"cnfig\"\n",
		"net/Kconfig:12: syntax error", BUILD_FAULT_CANDIDATE},
	{"/build/src/net/Kconfig:9:error: recursive dependency detected!\n",
		"net/Kconfig:9:error: recursive dependency detected!", BUILD_FAULT_CANDIDATE},
	{"init/Kconfig:7: can't open file \"nope/Kconfig\"\n",
		"init/Kconfig:7: can't open file \"nope/Kconfig\"", BUILD_FAULT_CANDIDATE},
	{"***\n*** Can't find default configuration \"arch/x86/configs/x_defconfig\"!\n***\n",
		"*** Can't find default configuration \"arch/x86/configs/x_defconfig\"!",
		BUILD_FAULT_CANDIDATE},
	{"FAILED: load BTF from vmlinux: No such file or directory\n",
		"FAILED: load BTF from vmlinux: No such file or directory", BUILD_FAULT_CANDIDATE},
	{"a.o: warning: objtool: f+0x1: unreachable instruction\n"
	 "vmlinux.o: error: objtool: elf_write failed\n",
		"vmlinux.o: error: objtool: elf_write failed", BUILD_FAULT_CANDIDATE},
	{"/build/src/x.S: Assembler messages:\n/build/src/x.S:3: Error: no such instruction: `x'\n",
		"x.S:3: Error: no such instruction: `x'", BUILD_FAULT_CANDIDATE},
	{"/build/src/Makefile:700: *** this kernel needs a newer gcc.  Stop.\n",
		"Makefile:700: *** this kernel needs a newer gcc.  Stop.", BUILD_FAULT_CANDIDATE},
	{"cc1: error: unrecognized command-line option '-fnope'\n",
		"cc1: error: unrecognized command-line option '-fnope'", BUILD_FAULT_CANDIDATE},
	{"/build/src/b.c:3:1: error: \xff\xfe bytes\n", "b.c:3:1: error: \xff\xfe bytes",
		BUILD_FAULT_CANDIDATE},
	{"/build/src/b.c:3:1: error: dos\r\n", "b.c:3:1: error: dos", BUILD_FAULT_CANDIDATE},
	{"/build/src/b.c:3:1: error: no newline", "b.c:3:1: error: no newline",
		BUILD_FAULT_CANDIDATE},
	/* Only make's own words. */
	{CC STOP, "make[3]: *** [scripts/Makefile.build:250: net/unix/af_unix.o] Error 1",
		BUILD_FAULT_CANDIDATE},
	/* The host, whatever else is said. */
	{"/build/src/a.c:1:1: error: x\nas: a.o: No space left on device\n" STOP,
		"as: a.o: No space left on device", BUILD_FAULT_DISK},
	{"fatal error: error writing to /tmp/ccx.s: No space left on device\n",
		"fatal error: error writing to /tmp/ccx.s: No space left on device",
		BUILD_FAULT_DISK},
	{"/build/src/a.c:1:1: fatal error: error writing to /tmp/x.s: No space left on device\n",
		"a.c:1:1: fatal error: error writing to /tmp/x.s: No space left on device",
		BUILD_FAULT_DISK},
	{CC "gcc: fatal error: Killed signal terminated program cc1\n" STOP,
		"gcc: fatal error: Killed signal terminated program cc1", BUILD_FAULT_KILLED},
	{"cc1: out of memory allocating 65536 bytes after a total of 1 bytes\n",
		"cc1: out of memory allocating 65536 bytes after a total of 1 bytes",
		BUILD_FAULT_KILLED},
	{"make: fork: Cannot allocate memory\n", "make: fork: Cannot allocate memory",
		BUILD_FAULT_KILLED},
	{"/bin/sh: 1: flex: not found\n" STOP, "/bin/sh: 1: flex: not found", BUILD_FAULT_TOOL},
	{"/build/src/certs/x.c:2:10: fatal error: openssl/bio.h: No such file or directory\n",
		"certs/x.c:2:10: fatal error: openssl/bio.h: No such file or directory",
		BUILD_FAULT_TOOL},
	/* A source line that talks of such things is no such thing. */
	{"   12 |  pr_err(\"a: No space left on device\n"
	 "/build/src/a.c:1:1: error: missing terminating \" character\n",
		"a.c:1:1: error: missing terminating \" character", BUILD_FAULT_CANDIDATE},
	/* Nothing at all. */
	{CC "  LD      vmlinux\n", NULL, BUILD_FAULT_CANDIDATE},
	{"  CC      lib/errname.o\n  CC      drivers/error.o\n", NULL, BUILD_FAULT_CANDIDATE},
	{"", NULL, BUILD_FAULT_CANDIDATE},
};

static void finds_the_line_that_tells_it(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		cleanup(free) char *line = NULL;
		enum build_fault fault;

		line = buildlog_error(rows[i].log, strlen(rows[i].log), "/build/src/", &fault);
		if (!line != !rows[i].line || (line && strcmp(line, rows[i].line) != 0))
			fail_msg("row %zu: \"%s\"", i, line ? line : "(none)");
		if (fault != rows[i].fault)
			fail_msg("row %zu (%s): fault %d", i, rows[i].line, (int)fault);
	}
}

/* Hostile sizes: one endless line, zero bytes, a log of nothing but warnings. */
static void takes_any_bytes(void **state)
{
	cleanup(buf_release) struct buf log = BUF_INIT;
	cleanup(free) char *line = NULL;
	enum build_fault fault;

	(void)state;
	buf_adds(&log, "x.c:1:1: error: ");
	for (int i = 0; i < 100000; i++)
		buf_addc(&log, 'y');
	line = buildlog_error(log.data, log.len, "", &fault);
	assert_int_equal(strlen(line), 400);
	buf_reset(&log);
	for (int i = 0; i < 100000; i++)
		buf_add(&log, "a.c:1:1: warning: error \0\n", 26);
	buf_adds(&log, "b.c:2:2: error: late\n");
	free(line);
	line = buildlog_error(log.data, log.len, "", &fault);
	assert_string_equal(line, "b.c:2:2: error: late");
}

static void names_the_object_that_failed(void **state)
{
	static const struct {
		const char *log, *target;
	} logs[] = {
		{CC STOP, "net/unix/af_unix.o"},
		{"make[2]: *** [kernel/fork.o] Error 1\n", "kernel/fork.o"},
		{"make[1]: *** [Makefile:9: net] Error 2\nmake[1]: *** [M:1: a/b.o] Error 1",
			"a/b.o"},
		{"make[1]: *** [Makefile:9: vmlinux] Error 1\n", NULL},
		{"make[1]: *** [Makefile:9: ../../x.o] Error 1\n", NULL},
		{"make[1]: *** [Makefile:9: /x.o] Error 1\n", NULL},
		{"make[1]: *** [Makefile:9: -x.o] Error 1\n", NULL},
		{"make: *** [", NULL},
		{"", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(logs) / sizeof(*logs); i++) {
		cleanup(free) char *target = buildlog_target(logs[i].log, strlen(logs[i].log));

		if (!target != !logs[i].target || (target && strcmp(target, logs[i].target) != 0))
			fail_msg("row %zu: %s", i, target ? target : "(none)");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_line_that_tells_it),
		cmocka_unit_test(takes_any_bytes),
		cmocka_unit_test(names_the_object_that_failed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
