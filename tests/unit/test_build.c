/* The build of a kernel, with a source tree of one small Makefile in place of a kernel's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/child.h"
#include "base/file.h"
#include "boot/build.h"
#include "boot/buildslot.h"
#include "boot/caplog.h"

/* What make runs for each target; Kconfig here knows every symbol but CONFIG_GONE. */
#define MAKEFILE                                                                                   \
	"tinyconfig:\n\techo CONFIG_A=y >$(O)/.config\n"                                           \
	"olddefconfig:\n\tgrep -v GONE $(O)/.config >$(O)/new; mv $(O)/new $(O)/.config\n"         \
	"bzImage:\n\t@touch $(O)/Makefile; mkdir -p $(O)/arch/x86/boot; . ./script\n"              \
	"a.o:\n\t@touch $(O)/Makefile $(O)/alone; . ./script\n"

static char top[64];
static const char *slot, *log_path;
static const char *ccache = ""; /* folder of the next builds */
static const struct build_tools tools = {(char *)"cc 1", (char *)"ld 1"};

static void write_at(const char *name, const char *text)
{
	cleanup(free) char *path = file_join(top, name);
	struct err err = {0};

	if (file_write(path, text, strlen(text), 0644, &err) < 0)
		fail_msg("%s", err.msg);
}

static int there(const char *name)
{
	cleanup(free) char *path = file_join(top, name);

	return access(path, F_OK) == 0;
}

static int setup(void **state)
{
	cleanup(free) char *src = NULL;
	struct err err = {0};

	(void)state;
	setenv("PATH", "/usr/bin:/bin", 1);
	snprintf(top, sizeof(top), "/tmp/kbisect-build-XXXXXX");
	if (!mkdtemp(top))
		return -1;
	slot = file_join(top, "slot");
	log_path = file_join(top, "log");
	src = file_join(slot, "src");
	return file_mkdir(src, 0755, &err);
}

static int teardown(void **state)
{
	struct err err = {0};

	(void)state;
	free((char *)slot);
	free((char *)log_path);
	return file_remove(top, &err);
}

static int has_sandbox(void)
{
	struct sandbox box = {.slot = slot};

	return sandbox_check(&box, NULL) == 0;
}

/* Build with this script as bzImage's recipe. */
static int run(const char *script, int off, int strict, const char *fragment, int64_t timeout_ms,
	struct build_result *ret, struct err *err)
{
	struct kconfig_text fragments[] = {{"frag", fragment}};
	struct build_spec spec = {
		.box = {.slot = slot, .cc = "cc", .off = off, .ccache = ccache},
		.recipe = {.base = KCONFIG_TINY,
			.tiny = {"tiny", "CONFIG_TINY=y"},
			.guest = {"guest", "CONFIG_GUEST=y"},
			.fragments = fragments,
			.nfragments = 1},
		.config_inputs = "inputs",
		.tools = &tools,
		.jobs = 1,
		.timeout_ms = timeout_ms,
		.strict = strict,
		.log = log_path,
	};

	write_at("slot/src/Makefile", MAKEFILE);
	write_at("slot/src/script", script);
	return build_kernel(&spec, ret, err);
}

/* make exports O, from its command line, to the scripts. */
static const struct {
	const char *script, *fragment;
	int strict;
	int code; /* build_kernel's */
	enum build_end end;
	const char *text;     /* the result's, or the error's; what it begins with */
	const char *in_log;   /* NULL = nothing special */
	int old_objects_stay; /* what an earlier build made is still there */
} rows[] = {
	{"echo k >$O/arch/x86/boot/bzImage", "CONFIG_A=y", 1, 0, BUILD_OK, NULL, NULL, 1},
	{"test ! -e $O/old || { echo 'a.c:1:2: error: stale'; exit 1; }; "
	 "echo k >$O/arch/x86/boot/bzImage",
		"", 0, 0, BUILD_OK, NULL, "once more in a clean folder", 0},
	{"echo \"$PWD/a.c:1:2: error: boom\"; exit 1", "", 0, 0, BUILD_FAILED,
		"a.c:1:2: error: boom", "once more in a clean folder", 1},
	{"exit 1", "", 0, 0, BUILD_FAILED, "make: *** [Makefile:", NULL, 1},
	/* An object file is tried alone, and all of it only when that does not tell. */
	{"echo 'a.c:1:2: error: boom'; echo 'make: *** [M:1: a.o] Error 1'; exit 1", "", 0, 0,
		BUILD_FAILED, "a.c:1:2: error: boom", "$ make a.o\n", 1},
	{"test ! -e $O/old || { echo 'a.c:1:2: error: x'; echo 'make: *** [M:1: a.o] Error 1'; "
	 "exit 1; }; test -e $O/alone && echo k >$O/arch/x86/boot/bzImage",
		"", 0, 0, BUILD_OK, NULL, "$ make a.o\n", 0},
	{"echo 'as: a.o: No space left on device'; exit 1", "", 0, -ENOSPC, 0,
		"the disk of the build is full: as: a.o: No space", NULL, 1},
	{"echo 'gcc: fatal error: Killed signal terminated program cc1'; exit 1", "", 0, -ENOMEM, 0,
		"the build got no memory: ", NULL, 1},
	{"no_such_program_here", "", 0, -ENOENT, 0, "the build host lacks a program: ", NULL, 1},
	{"exit 0", "CONFIG_GONE=y", 1, 0, BUILD_REFUSED, "frag:1: \"CONFIG_GONE=y\" does not hold",
		NULL, 1},
	{"exit 0", "CONFIG_GONE=y", 0, 0, BUILD_OK, NULL, "frag:1: \"CONFIG_GONE=y\" does not", 1},
};

static void ends_as_it_should(int off)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		cleanup(build_result_release) struct build_result result = {.text = NULL};
		cleanup(buf_release) struct buf log = BUF_INIT;
		struct err err = {0};
		int r;

		assert_int_equal(buildslot_prepare(slot, &err) < 0, 0);
		cleanup(free) char *obj = file_join(slot, "obj");
		assert_int_equal(file_mkdir(obj, 0755, &err), 0);
		write_at("slot/obj/Makefile", "");
		write_at("slot/obj/old", "");
		r = run(rows[i].script, off, rows[i].strict, rows[i].fragment, 60000, &result,
			&err);
		if (r != rows[i].code || (r == 0 && result.end != rows[i].end))
			fail_msg("row %zu: %d %d %s %s", i, r, (int)result.end,
				result.text ? result.text : "", err.msg);
		const char *text = r < 0 ? err.msg : result.text;
		if (rows[i].text && (!text || strncmp(text, rows[i].text, strlen(rows[i].text))))
			fail_msg("row %zu: %s", i, text ? text : "(none)");
		assert_int_equal(file_read(log_path, 1 << 20, &log, &err), 0);
		if (rows[i].in_log && !strstr(buf_str(&log), rows[i].in_log))
			fail_msg("row %zu: log %s", i, buf_str(&log));
		assert_int_equal(there("slot/obj/old"), rows[i].old_objects_stay);
		assert_false(there("slot/obj.old"));
	}
}

static void ends_as_it_should_on_the_host(void **state)
{
	(void)state;
	ends_as_it_should(1);
}

static void ends_as_it_should_in_the_sandbox(void **state)
{
	(void)state;
	if (!has_sandbox())
		skip();
	ends_as_it_should(0);
}

/* make looks at the time of .config, so it stays as long as the text does. */
static void leaves_an_unchanged_config_alone(void **state)
{
	cleanup(free) char *path = file_join(slot, "obj/.config");
	cleanup(buf_release) struct buf text = BUF_INIT;
	static const char *const fragments[] = {"CONFIG_B=y", "CONFIG_B=y", "CONFIG_C=y"};
	ino_t inode[3];
	struct err err = {0};

	(void)state;
	for (int i = 0; i < 3; i++) {
		cleanup(build_result_release) struct build_result result = {.text = NULL};
		struct stat st;

		assert_int_equal(run("exit 0", 1, 1, fragments[i], 60000, &result, &err), 0);
		assert_int_equal(result.end, BUILD_OK);
		assert_false(there("slot/building"));
		assert_int_equal(stat(path, &st), 0);
		inode[i] = st.st_ino;
	}
	assert_true(inode[0] == inode[1]);
	assert_int_equal(file_read(path, 4096, &text, &err), 0);
	assert_string_equal(text.data, "CONFIG_A=y\n\nCONFIG_TINY=y\nCONFIG_GUEST=y\nCONFIG_C=y\n");
}

/* What .incbin takes in is not in the text that the compiler sees; piggy.S holds the kernel so. */
static void ccache_sees_what_incbin_takes_in(void **state)
{
	static const char *const images[] = {"AAAA", "BBBB"};
	cleanup(free) char *cache = file_join(top, "ccache");
	cleanup(free) char *image = file_join(slot, "obj/arch/x86/boot/bzImage");
	struct err err = {0};

	(void)state;
	if (system("ccache --version >/dev/null 2>&1") != 0)
		skip();
	ccache = cache;
	for (int i = 0; i < 2; i++) {
		cleanup(build_result_release) struct build_result result = {.text = NULL};
		cleanup(buf_release) struct buf object = BUF_INIT;
		cleanup(free) char *script = xasprintf("cd $O; printf %s >blob; "
						       "printf '.data\\n.incbin \"blob\"\\n' >p.S; "
						       "$CC -Wp,-MMD,p.d -c p.S -o p.o; "
						       "cp p.o arch/x86/boot/bzImage",
			images[i]);

		assert_int_equal(run(script, 1, 0, "", 60000, &result, &err), 0);
		assert_int_equal(result.end, BUILD_OK);
		assert_int_equal(file_read(image, 1 << 20, &object, &err), 0);
		assert_non_null(memmem(object.data, object.len, images[i], 4));
	}
	ccache = "";
}

/* Is a process with this argument alive? */
static int alive(const char *argument)
{
	cleanup(free) char *script =
		xasprintf("cat /proc/[0-9]*/cmdline | grep -qa '%s'", argument);
	const char *const argv[] = {"sh", "-c", script, NULL};
	struct child_spec spec = {.argv = argv, .fd_in = -1, .fd_out = -1, .fd_err = -1};

	return child_run(&spec, 10000, NULL) == 0;
}

static void ends_at_its_time_limit(void **state)
{
	(void)state;
	for (int off = has_sandbox() ? 0 : 1; off <= 1; off++) {
		cleanup(build_result_release) struct build_result result = {.text = NULL};
		struct err err = {0};

		assert_int_equal(
			run("sleep 77.7731 & sleep 77.7731", off, 0, "", 1500, &result, &err), 0);
		assert_int_equal(result.end, BUILD_FAILED);
		assert_string_equal(result.text, "the build took more than 1 min");
		assert_true(there("slot/building"));
		usleep(100000);
		assert_false(alive("[7]7\\.7731"));
	}
}

static void dies_with_its_step(void **state)
{
	pid_t pid;

	(void)state;
	if (!has_sandbox())
		skip();
	pid = fork();
	if (pid == 0) {
		struct build_result result;

		run("sleep 37.7731 & sleep 37.7731", 0, 0, "", 60000, &result, NULL);
		_exit(0);
	}
	for (int i = 0; i < 100 && !alive("[3]7\\.7731"); i++)
		usleep(100000);
	assert_true(alive("[3]7\\.7731"));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	for (int i = 0; i < 50 && alive("[3]7\\.7731"); i++)
		usleep(100000);
	assert_false(alive("[3]7\\.7731"));
}

static void shuts_the_candidate_in(void **state)
{
	cleanup(build_result_release) struct build_result result = {.text = NULL};
	struct err err = {0};

	(void)state;
	if (!has_sandbox())
		skip();
	assert_int_equal(run("no() { echo \"a.c:1:1: error: $*\"; exit 1; }\n"
			     "touch /build/src/x 2>/dev/null && no source is writable\n"
			     "touch /usr/x 2>/dev/null && no system is writable\n"
			     "test -e /etc/shadow && no secrets are there\n"
			     "test -e /home && no homes are there\n"
			     "test $(grep -c : /proc/net/dev) = 1 || no network is there\n"
			     "test $(ls -d /proc/[0-9]* | wc -l) -lt 12 || no processes are seen\n"
			     "test \"$KBUILD_BUILD_HOST\" = kbisectd || no fixed host\n"
			     "echo k >$O/arch/x86/boot/bzImage",
				 0, 0, "", 60000, &result, &err),
		0);
	if (result.end != BUILD_OK)
		fail_msg("%s", result.text);
}

static void drops_what_cannot_be_trusted(void **state)
{
	cleanup(free) char *mark = file_join(slot, "boot");
	cleanup(free) char *obj = file_join(slot, "obj");
	struct timespec future[2] = {{.tv_sec = time(NULL) + 1000}, {.tv_sec = time(NULL) + 1000}};
	struct err err = {0};
	cleanup(close) int lock = -1;

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_true(buildslot_prepare(slot, &err) >= 0);
		assert_int_equal(file_mkdir(obj, 0755, &err), 0);
		write_at("slot/obj/made", "");
		if (i == 1)
			write_at("slot/boot", "another boot\n");
		if (i == 2)
			assert_int_equal(utimensat(AT_FDCWD, mark, future, 0), 0);
		assert_int_equal(buildslot_prepare(slot, &err) > 0, i > 0);
		assert_int_equal(there("slot/obj/made"), i == 0);
	}
	assert_int_equal(file_remove(obj, &err), 0);
	/* What a killed build wrote goes, what was there before stays. */
	assert_int_equal(file_mkdir(obj, 0755, &err), 0);
	write_at("slot/obj/before", "");
	usleep(20000);
	assert_int_equal(buildslot_begin(slot, &err), 0);
	usleep(20000);
	write_at("slot/obj/after", "");
	assert_int_equal(buildslot_prepare(slot, &err), 1);
	assert_true(there("slot/obj/before"));
	assert_false(there("slot/obj/after"));
	assert_int_equal(buildslot_prepare(slot, &err), 0);
	assert_int_equal(file_remove(obj, &err), 0);
	/* Half a retry: the old objects come back. */
	assert_int_equal(file_mkdir(obj, 0755, &err), 0);
	write_at("slot/obj/made", "");
	assert_int_equal(buildslot_set_aside(slot, &err), 0);
	write_at("slot/obj/half", "");
	write_at("slot/tree.77.tmp", "");
	assert_int_equal(buildslot_lock(slot, &lock, &err), 0);
	assert_int_equal(buildslot_sweep(slot, &err), 0);
	close(steal_fd(&lock));
	assert_int_equal(buildslot_sweep(slot, &err), 2);
	assert_true(there("slot/obj/made"));
	assert_false(there("slot/obj/half") || there("slot/tree.77.tmp"));
	assert_int_equal(buildslot_sweep("/no/such/slot", &err), 0);
}

static void log_keeps_both_ends(void **state)
{
	cleanup(caplog_close) struct caplog *log = NULL;
	cleanup(buf_release) struct buf first = BUF_INIT, second = BUF_INIT, whole = BUF_INIT;
	struct err err = {0};

	(void)state;
	assert_int_equal(caplog_open(log_path, 40, &log, &err), 0);
	for (int i = 0; i < 1000; i++)
		caplog_addf(log, "%08d\n", i);
	assert_int_equal(caplog_part(log, &first, &err), 0);
	assert_string_equal(first.data,
		"00000000\n00000001\n00000002\n000\n[8960 bytes left out]\n\n00000999\n");
	caplog_addf(log, "short\n");
	assert_int_equal(caplog_part(log, &second, &err), 0);
	assert_string_equal(second.data, "short\n");
	assert_int_equal(file_read(log_path, 4096, &whole, &err), 0);
	assert_int_equal(whole.len, first.len + second.len);
	assert_true(caplog_open("/no/such/folder/log", 40, &log, &err) < 0);
}

static void names_a_missing_compiler(void **state)
{
	struct build_tools found = {NULL, NULL};
	struct err err = {0};

	(void)state;
	assert_int_equal(build_tools_probe("no-such-cc", &found, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "no-such-cc is not installed"));
	assert_int_equal(build_tools_probe("cc", &found, &err), 0);
	build_tools_release(&found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(log_keeps_both_ends),
		cmocka_unit_test(names_a_missing_compiler),
		cmocka_unit_test(ends_as_it_should_on_the_host),
		cmocka_unit_test(ends_as_it_should_in_the_sandbox),
		cmocka_unit_test(leaves_an_unchanged_config_alone),
		cmocka_unit_test(ccache_sees_what_incbin_takes_in),
		cmocka_unit_test(ends_at_its_time_limit),
		cmocka_unit_test(dies_with_its_step),
		cmocka_unit_test(shuts_the_candidate_in),
		cmocka_unit_test(drops_what_cannot_be_trusted),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
