/* Which accelerator and clock, with a stand-in for the boot that proves KVM. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "boot/accel.h"

struct probe {
	int answer; /* what the boot shows: 1, 0 or an error */
	int calls;
};

static int fake_probe(void *arg, struct err *err)
{
	struct probe *p = arg;

	p->calls++;
	if (p->answer <= 0)
		err_set(err, p->answer ? -p->answer : ETIMEDOUT, "a guest's kernel did not start");
	return p->answer;
}

static const struct {
	enum accel_wish wish;
	enum accel_timing timing;
	int works; /* does KVM? */
	int r;
	enum domain_accel accel;
	enum domain_timing clock;
	int calls;
} rows[] = {
	{ACCEL_AUTO, ACCEL_TIMING_AUTO, 1, 0, DOMAIN_KVM, DOMAIN_WALL, 1},
	{ACCEL_AUTO, ACCEL_TIMING_AUTO, 0, 0, DOMAIN_TCG, DOMAIN_VIRTUAL, 1},
	{ACCEL_AUTO, ACCEL_TIMING_WALL, 1, 0, DOMAIN_KVM, DOMAIN_WALL, 1},
	{ACCEL_AUTO, ACCEL_TIMING_WALL, 0, 0, DOMAIN_TCG, DOMAIN_WALL, 1},
	{ACCEL_AUTO, ACCEL_TIMING_VIRTUAL, 1, 0, DOMAIN_TCG, DOMAIN_VIRTUAL, 0},
	{ACCEL_TCG, ACCEL_TIMING_AUTO, 1, 0, DOMAIN_TCG, DOMAIN_VIRTUAL, 0},
	{ACCEL_TCG, ACCEL_TIMING_WALL, 1, 0, DOMAIN_TCG, DOMAIN_WALL, 0},
	{ACCEL_KVM, ACCEL_TIMING_AUTO, 1, 0, DOMAIN_KVM, DOMAIN_WALL, 0},
	{ACCEL_KVM, ACCEL_TIMING_VIRTUAL, 1, -EINVAL, 0, 0, 0},
	{ACCEL_AUTO, ACCEL_TIMING_AUTO, -EINTR, -EINTR, 0, 0, 1},
};

static char dir[] = "/tmp/test_accel.XXXXXX";

static void wishes_are_met(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct probe probe = {rows[i].works, 0};
		struct accel_spec spec = {
			rows[i].wish, rows[i].timing, dir, "test", 0, fake_probe, &probe};
		cleanup(free) char *kept = file_join(dir, "accel.json");
		struct accel accel;
		struct err err;

		unlink(kept);
		assert_int_equal(accel_choose(&spec, &accel, &err), rows[i].r);
		assert_int_equal(probe.calls, rows[i].calls);
		if (rows[i].r < 0)
			continue;
		assert_int_equal(accel.accel, rows[i].accel);
		assert_int_equal(accel.timing, rows[i].clock);
		assert_true(accel.why[0]);
	}
}

static void answer_is_remembered(void **state)
{
	struct probe probe = {1, 0};
	struct accel_spec spec = {
		ACCEL_AUTO, ACCEL_TIMING_AUTO, dir, "remembered", 0, fake_probe, &probe};
	struct accel accel;
	struct err err;

	(void)state;
	assert_int_equal(accel_choose(&spec, &accel, &err), 0);
	assert_int_equal(accel_choose(&spec, &accel, &err), 0);
	assert_int_equal(probe.calls, 1);
	assert_int_equal(accel.accel, DOMAIN_KVM);
	/* Another hypervisor is another question. */
	spec.uri = "elsewhere";
	assert_int_equal(accel_choose(&spec, &accel, &err), 0);
	assert_int_equal(probe.calls, 2);
}

static void failure_is_remembered_once_the_kernel_is_known_to_run(void **state)
{
	struct probe probe = {0, 0};
	struct accel_spec spec = {
		ACCEL_AUTO, ACCEL_TIMING_AUTO, dir, "broken", 0, fake_probe, &probe};
	struct accel accel;
	struct err err;

	(void)state;
	assert_int_equal(accel_choose(&spec, &accel, &err), 0);
	assert_int_equal(accel_choose(&spec, &accel, &err), 0);
	assert_int_equal(probe.calls, 2);
	assert_int_equal(accel_confirm(&spec, &accel, &err), 0);
	assert_int_equal(accel_choose(&spec, &accel, &err), 0);
	assert_int_equal(probe.calls, 2);
	assert_int_equal(accel.accel, DOMAIN_TCG);
}

static int make_dir(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	(void)state;
	return file_remove(dir, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wishes_are_met),
		cmocka_unit_test(answer_is_remembered),
		cmocka_unit_test(failure_is_remembered_once_the_kernel_is_known_to_run),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
