#include "daemon/job.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/banned.h"

#define AT(field) offsetof(struct job_spec, field)

const struct conf_key job_keys[] = {
	{"job", "name", CONF_STRING, AT(name), CONF_REQUIRED, NULL, NULL, NULL,
		"a short name for lists and subjects"},
	{"range", "repo", CONF_PATH, AT(repo), CONF_REQUIRED, NULL, NULL, NULL,
		"git repository, bare or not; never written to"},
	{"range", "good", CONF_STRING, AT(good), CONF_REQUIRED, NULL, NULL, NULL,
		"revision that is known to be good"},
	{"range", "bad", CONF_STRING, AT(bad), CONF_REQUIRED, NULL, NULL, NULL,
		"revision that is known to be bad"},
	{"build", "config", CONF_STRING, AT(config), "tiny", NULL, NULL, NULL,
		"tiny, the name of a defconfig, or a file (a value with a slash)"},
	{"build", "fragments", CONF_STRING, AT(fragments), NULL, NULL, NULL, NULL,
		"files with configuration lines to add, separated by spaces"},
	{"build", "cc", CONF_STRING, AT(cc), "gcc", NULL, NULL, NULL, "the C compiler"},
	{"build", "timeout", CONF_DURATION, AT(build_timeout), "2h", "1s", "7d", NULL,
		"time limit of one build"},
	{"boot", "cpus", CONF_INT, AT(cpus), "1", "1", "512", NULL, "CPUs of the guest"},
	{"boot", "memory", CONF_SIZE, AT(memory), "512M", "64M", "4T", NULL, "memory of the guest"},
	{"boot", "cmdline", CONF_STRING, AT(cmdline), NULL, NULL, NULL, NULL,
		"words to add to the kernel command line"},
	{"boot", "accel", CONF_ENUM, AT(accel), "auto", NULL, NULL, "auto|kvm|tcg",
		"hardware virtualisation (kvm), emulation (tcg), or what is seen to work"},
	{"boot", "timing", CONF_ENUM, AT(timing), "auto", NULL, NULL, "auto|wall|virtual",
		"the guest's clock: real time, or a count of instructions (tcg, one CPU)"},
	{"boot", "timeout", CONF_DURATION, AT(boot_timeout), "5m", "1s", "1d", NULL,
		"time limit from power-on to a login"},
	{"boot", "silence", CONF_DURATION, AT(silence), "120s", "1s", "1d", NULL,
		"a boot whose console says nothing for so long hangs"},
	{"boot", "failure", CONF_ENUM, AT(failure), "skip", NULL, NULL, "skip|bad",
		"verdict on a candidate that builds but does not boot or run the test"},
	{"test", "benchmark", CONF_STRING, AT(benchmark), CONF_REQUIRED, NULL, NULL, NULL,
		"name of a benchmark file, without .conf"},
	{"test", "args", CONF_STRING, AT(args), NULL, NULL, NULL, NULL,
		"arguments, in place of the benchmark's own"},
	{"test", "metric", CONF_STRING, AT(metric), NULL, NULL, NULL, NULL,
		"the metric that decides; default: the benchmark's first"},
	{"test", "better", CONF_ENUM, AT(better), "benchmark", NULL, NULL, "benchmark|higher|lower",
		"which direction is better; default: the metric's own"},
	{"test", "threshold", CONF_STRING, AT(threshold), "auto", NULL, NULL, NULL,
		"auto (between the endpoints), a value, or per cent of good such as -10%"},
	{"test", "iterations", CONF_INT, AT(iterations), "0", "0", "1000", NULL,
		"runs of the command in one boot; 0 = the benchmark's own"},
	{"test", "timeout", CONF_DURATION, AT(test_timeout), "0", NULL, "7d", NULL,
		"time limit of one iteration; 0 = the benchmark's own"},
	{"search", "strategy", CONF_ENUM, AT(strategy), "classic", NULL, NULL, "classic",
		"classic: so many samples a commit, their median against the threshold"},
	{"search", "samples", CONF_INT, AT(samples), "3", "1", "1000", NULL,
		"fresh boots of each commit"},
	{"search", "max-runs", CONF_INT, AT(max_runs), "0", "0", NULL, NULL,
		"most boots in all; 0 = no limit"},
	{"search", "max-hours", CONF_DURATION, AT(max_hours), "0", "0", NULL, NULL,
		"most time in all, such as 8h; 0 = no limit"},
	{"report", "mail", CONF_STRING, AT(mail), NULL, NULL, NULL, NULL,
		"addresses that get the verdict, separated by commas"},
	{"report", "in-reply-to", CONF_STRING, AT(in_reply_to), NULL, NULL, NULL, NULL,
		"Message-ID of the mail that the verdict answers"},
	CONF_END,
};

int threshold_parse(const char *text, struct threshold *ret, struct err *err)
{
	char *end;
	double v;

	if (strcmp(text, "auto") == 0) {
		*ret = (struct threshold){THRESHOLD_AUTO, 0};
		return 0;
	}
	v = strtod(text, &end);
	if (end == text || !isfinite(v) || (*end && strcmp(end, "%") != 0))
		return err_set(err, EINVAL,
			"expected auto, a number, or per cent of good such as -10%%, found \"%s\"",
			text);
	*ret = (struct threshold){*end ? THRESHOLD_PERCENT : THRESHOLD_ABSOLUTE, v};
	return 0;
}

int job_parse(
	const char *text, const char *where, const char *dir, struct job_spec *ret, struct err *err)
{
	struct job_spec spec = {0};
	struct threshold threshold;
	int r;

	r = conf_parse(text, strlen(text), where, dir, job_keys, &spec, err);
	if (r < 0)
		return r;
	r = threshold_parse(spec.threshold, &threshold, err);
	if (r < 0)
		r = err_wrap(err, "%s: threshold", where);
	if (r == 0 && spec.timing == JOB_TIMING_VIRTUAL && spec.accel == JOB_ACCEL_KVM)
		r = err_set(err, EINVAL,
			"%s: timing = virtual needs accel = tcg or auto, not kvm (it counts the "
			"instructions that the emulator runs)",
			where);
	if (r == 0 && spec.timing == JOB_TIMING_VIRTUAL && spec.cpus > 1)
		r = err_set(err, EINVAL,
			"%s: timing = virtual needs cpus = 1, found %lld (instructions are counted "
			"on "
			"one CPU)",
			where, (long long)spec.cpus);
	if (r < 0) {
		job_release(&spec);
		return r;
	}
	*ret = spec;
	return 0;
}

void job_release(struct job_spec *spec)
{
	conf_release(job_keys, spec);
}
