/* The domain's XML against its golden files; UPDATE_GOLDEN=1 rewrites them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/file.h"
#include "boot/domain.h"

#define SPEC(...)                                                                                  \
	{                                                                                          \
		.name = "kbisectd-7", .owner = "/state/vm/0", .kernel = "/state/store/k/bzImage",  \
		.initrd = "/state/guest/i.cpio", .memory = 536870912, .ssh_port = 40022,           \
		__VA_ARGS__                                                                        \
	}

static const struct {
	const char *golden;
	struct domain_spec spec;
} rows[] = {
	{"tcg-virtual", SPEC(.cpus = 4, .accel = DOMAIN_TCG, .timing = DOMAIN_VIRTUAL)},
	{"tcg-wall", SPEC(.cpus = 2, .accel = DOMAIN_TCG, .timing = DOMAIN_WALL)},
	{"kvm-wall", SPEC(.cpus = 4, .accel = DOMAIN_KVM, .timing = DOMAIN_WALL)},
	{"cmdline", SPEC(.cpus = 1, .cmdline = "a=<b> \"c\" d='e' & f=\xc3\xa9")},
};

static void xml_is_as_recorded(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		cleanup(free) char *path = xasprintf("tests/golden/domain-%s.xml", rows[i].golden);
		cleanup(buf_release) struct buf golden = BUF_INIT;
		cleanup(free) char *xml = NULL;
		struct err err = {0};

		assert_int_equal(domain_xml(&rows[i].spec, &xml, &err), 0);
		if (getenv("UPDATE_GOLDEN"))
			file_write(path, xml, strlen(xml), 0644, &err);
		if (file_read(path, 1 << 20, &golden, &err) < 0)
			fail_msg("%s", err.msg);
		assert_string_equal(xml, buf_str(&golden));
	}
}

static void unfit_text_is_refused(void **state)
{
	static const char *const cmdlines[] = {"a\nb", "a\x1b", "\xff\xfe"};

	(void)state;
	for (size_t i = 0; i < sizeof(cmdlines) / sizeof(*cmdlines); i++) {
		struct domain_spec spec = SPEC(.cpus = 1, .cmdline = cmdlines[i]);
		char *xml = NULL;
		struct err err;

		assert_int_equal(domain_xml(&spec, &xml, &err), -EINVAL);
		assert_null(xml);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(xml_is_as_recorded),
		cmocka_unit_test(unfit_text_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
