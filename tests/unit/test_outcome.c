/* What a dead guest's signs mean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "boot/console.h"
#include "boot/outcome.h"

static const struct {
	unsigned events;
	enum vm_end end;
	enum outcome outcome;
} rows[] = {
	{CONSOLE_BANNER | CONSOLE_PANIC, VM_RUNS, OUTCOME_PANIC},
	{CONSOLE_BANNER | CONSOLE_PANIC, VM_SHUT_DOWN, OUTCOME_PANIC},
	{CONSOLE_BANNER | CONSOLE_PANIC, VM_LOST, OUTCOME_PANIC},
	{CONSOLE_BANNER | CONSOLE_OOPS | CONSOLE_PANIC, VM_SHUT_DOWN, OUTCOME_PANIC},
	{CONSOLE_BANNER | CONSOLE_OOPS, VM_RUNS, OUTCOME_OOPS},
	{CONSOLE_BANNER | CONSOLE_OOPS, VM_SHUT_DOWN, OUTCOME_OOPS},
	{CONSOLE_BANNER | CONSOLE_REBOOT, VM_RUNS, OUTCOME_TRIPLE_FAULT},
	{CONSOLE_BANNER, VM_SHUT_DOWN, OUTCOME_TRIPLE_FAULT},
	{0, VM_SHUT_DOWN, OUTCOME_TRIPLE_FAULT},
	{CONSOLE_BANNER | CONSOLE_READY, VM_SHUT_DOWN, OUTCOME_TRIPLE_FAULT},
	{CONSOLE_BANNER | CONSOLE_READY, VM_LOST, OUTCOME_INFRA},
	{0, VM_LOST, OUTCOME_INFRA},
	{CONSOLE_BANNER | CONSOLE_READY, VM_RUNS, OUTCOME_INFRA},
};

static void death_has_a_name(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		assert_string_equal(outcome_name(outcome_of_death(rows[i].events, rows[i].end)),
			outcome_name(rows[i].outcome));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(death_has_a_name)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
