/* Kernel configuration: what was asked for against what came of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "boot/kconfig.h"

#define GENERATED "#\n# Automatically generated file; DO NOT EDIT.\n#\n"
#define FINAL "CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_NAME=\"x y\"\nCONFIG_HZ=250\nCONFIG_AB=m\n"

static const struct {
	const char *file;  /* NULL = tiny */
	const char *guest; /* NULL = "" */
	const char *first, *second;
	const char *refused; /* what the sentence begins with; NULL = accepted */
	const char *lost;    /* what the list contains; NULL = it is empty */
} rows[] = {
	{NULL, NULL, "CONFIG_A=y\n", "", NULL, NULL},
	{NULL, NULL, "# CONFIG_B is not set\nCONFIG_GONE=n\n# CONFIG_GONE is not set\n", "", NULL,
		NULL},
	{NULL, NULL, "CONFIG_NAME=\"x y\"\n  CONFIG_HZ=250 \r\n", "", NULL, NULL},
	{NULL, NULL, "# a comment\n\nCONFIG_B=y\n", "",
		"first:3: \"CONFIG_B=y\" does not hold in this kernel's configuration, which says "
		"CONFIG_B=n",
		"first:3"},
	{NULL, NULL, "", "CONFIG_GONE=y",
		"second:1: \"CONFIG_GONE=y\" does not hold in this kernel's configuration, which "
		"has no such symbol",
		"second:1"},
	{NULL, NULL, "# CONFIG_A is not set\n", "", "first:1: \"# CONFIG_A is not set\"", "first"},
	{NULL, NULL, "CONFIG_A=m\n", "", "first:1", "CONFIG_A=y"},
	/* The last word counts, in one text and between two. */
	{NULL, NULL, "CONFIG_A=n\nCONFIG_A=y\n", "", NULL, NULL},
	{NULL, NULL, "CONFIG_B=y\n", "CONFIG_B=n\n", NULL, NULL},
	{NULL, NULL, "CONFIG_A=y\n", "CONFIG_A=n\n", "second:1", "second:1"},
	/* A name that begins like another. */
	{NULL, NULL, "CONFIG_AB=m\nCONFIG_A=y\n", "", NULL, NULL},
	/* guest.config is only told about. */
	{NULL, "CONFIG_VIRTIO=y\n", "CONFIG_A=y\n", "", NULL, "guest:1: \"CONFIG_VIRTIO=y\""},
	/* A file by hand is a request, one by a program is not, and guest.config beats both. */
	{"CONFIG_GONE=y\n", NULL, "", "", "file:1", "file:1"},
	{GENERATED "CONFIG_GONE=y\n", NULL, "", "", NULL, "file:4"},
	{"CONFIG_B=y\n", "CONFIG_B=n\n", "", "", NULL, NULL},
};

static void keeps_or_refuses(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct kconfig_text fragments[] = {
			{"first", rows[i].first}, {"second", rows[i].second}};
		struct kconfig_recipe recipe = {
			.base = rows[i].file ? KCONFIG_FILE : KCONFIG_TINY,
			.file = {"file", rows[i].file},
			.tiny = {"tiny", "CONFIG_LOST=y\n"},
			.guest = {"guest", rows[i].guest ? rows[i].guest : ""},
			.fragments = fragments,
			.nfragments = 2,
		};
		cleanup(buf_release) struct buf lost = BUF_INIT;
		struct err err = {0};
		int r = kconfig_check(&recipe, FINAL, &lost, &err);

		if (!rows[i].refused != (r == 0))
			fail_msg("row %zu: %d %s", i, r, err.msg);
		if (rows[i].refused && strncmp(err.msg, rows[i].refused, strlen(rows[i].refused)))
			fail_msg("row %zu: %s", i, err.msg);
		if (rows[i].lost ? !strstr(buf_str(&lost), rows[i].lost) : lost.len)
			fail_msg("row %zu: lost %s", i, buf_str(&lost));
	}
}

static void appends_in_order(void **state)
{
	struct kconfig_text fragments[] = {{"f", "F1"}, {"g", "F2"}};
	struct kconfig_recipe recipe = {.base = KCONFIG_TINY,
		.tiny = {"t", "TINY"},
		.guest = {"g", "GUEST"},
		.fragments = fragments,
		.nfragments = 2};
	cleanup(buf_release) struct buf tiny = BUF_INIT, other = BUF_INIT;

	(void)state;
	kconfig_additions(&recipe, &tiny);
	assert_string_equal(tiny.data, "\nTINY\nGUEST\nF1\nF2\n");
	recipe.base = KCONFIG_DEFCONFIG;
	kconfig_additions(&recipe, &other);
	assert_string_equal(other.data, "\nGUEST\nF1\nF2\n");
}

static void knows_what_configuration_depends_on(void **state)
{
	static const char *const yes[] = {"Kconfig", "net/unix/Kconfig", "Makefile", "Kbuild",
		"arch/x86/Makefile", "arch/x86/Makefile.um", "scripts/cc-version.sh",
		"arch/x86/configs/x86_64_defconfig", "kernel/configs/tiny.config",
		"lib/Kconfig.debug", "arch/x86/Kconfig.cpu"};
	static const char *const no[] = {"net/unix/af_unix.c", "net/unix/Makefile",
		"arch/x86/kernel/Makefile", "include/linux/kernel.h", "tools/Makefile"};
	enum kconfig_base base;
	struct err err = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(yes) / sizeof(*yes); i++)
		if (!kconfig_depends_on(yes[i]))
			fail_msg("%s", yes[i]);
	for (size_t i = 0; i < sizeof(no) / sizeof(*no); i++)
		if (kconfig_depends_on(no[i]))
			fail_msg("%s", no[i]);
	assert_int_equal(kconfig_base_parse("defconfig", &base, &err), 0);
	assert_int_equal(base, KCONFIG_DEFCONFIG);
	assert_true(kconfig_base_parse("huge", &base, &err) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_or_refuses),
		cmocka_unit_test(appends_in_order),
		cmocka_unit_test(knows_what_configuration_depends_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
