#include "boot/outcome.h"

#include "boot/console.h"
#include "base/banned.h"

const char *outcome_name(enum outcome outcome)
{
	static const char *const names[] = {
		[OUTCOME_OK] = "ok",
		[OUTCOME_PANIC] = "panic",
		[OUTCOME_OOPS] = "oops",
		[OUTCOME_TRIPLE_FAULT] = "triple-fault",
		[OUTCOME_SILENCE] = "silence",
		[OUTCOME_BOOT_TIMEOUT] = "boot-timeout",
		[OUTCOME_TEST_FAILED] = "test-failed",
		[OUTCOME_TEST_TIMEOUT] = "test-timeout",
		[OUTCOME_NO_METRIC] = "no-metric",
		[OUTCOME_INFRA] = "infra",
	};

	return names[outcome];
}

enum outcome outcome_of_death(unsigned events, enum vm_end end)
{
	if (events & CONSOLE_PANIC)
		return OUTCOME_PANIC;
	if (events & CONSOLE_OOPS)
		return OUTCOME_OOPS;
	if ((events & CONSOLE_REBOOT) || end == VM_SHUT_DOWN)
		return OUTCOME_TRIPLE_FAULT;
	return OUTCOME_INFRA;
}
