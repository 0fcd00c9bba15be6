#include "boot/run.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "boot/console.h"
#include "boot/guest.h"
#include "boot/vm.h"
#include "boot/watch.h"
#include "base/banned.h"

#define PORT_TRIES 5
/* How long a dying kernel may talk, and how long a lost connection's cause may take to show. */
#define SETTLE_MS 2000
#define LOSS_SETTLE_MS 1500
#define SSH_TRY_MS 30000
#define SSH_RETRY_MS 50

struct run {
	struct host *host;
	const struct run_spec *spec;
	struct watch *watch;
	struct vm *vm;
	struct guest *guest;
	int port;
	char *xml;
	struct run_result result;
};

struct run *run_new(struct host *host, const struct run_spec *spec)
{
	struct run *run = xcalloc(1, sizeof(*run));

	run->host = host;
	run->spec = spec;
	return run;
}

const struct run_result *run_result(const struct run *run)
{
	return &run->result;
}

/* Takes the detail. */
static void conclude(struct run *run, enum outcome outcome, char *detail)
{
	run->result.outcome = outcome;
	free(run->result.detail);
	run->result.detail = detail;
}

static void conclude_infra(struct run *run, const struct err *err)
{
	conclude(run, OUTCOME_INFRA, xstrdup(err->msg));
}

/* The domain's XML with a port that is free now, in run->xml. */
static int make_xml(struct run *run, struct err *err)
{
	const struct run_spec *s = run->spec;
	struct domain_spec spec = {
		.name = s->name,
		.owner = s->owner,
		.kernel = s->kernel,
		.initrd = s->initrd,
		.cmdline = s->cmdline,
		.memory = s->memory,
		.cpus = s->cpus,
		.accel = s->accel,
		.timing = s->timing,
	};
	int r = vm_free_port(&run->port, err);

	spec.ssh_port = run->port;
	free(run->xml);
	run->xml = NULL;
	return r < 0 ? r : domain_xml(&spec, &run->xml, err);
}

static int create(struct run *run, struct err *err)
{
	struct vm_events events = {watch_console, watch_ended, run->watch};
	int r = make_xml(run, err);

	return r < 0 ? r : vm_create(run->host, run->spec->name, run->xml, &events, &run->vm, err);
}

/* For whoever wants to start the same domain by hand. The guest boots meanwhile. */
static int write_xml(const struct run *run, struct err *err)
{
	cleanup(free) char *path = file_join(run->spec->dir, "domain.xml");

	return run->xml ? file_write(path, run->xml, strlen(run->xml), 0644, err) : 0;
}

/* Create, retrying when somebody else took the port, and let it go. */
static int start(struct run *run, struct err *err)
{
	cleanup(free) char *log = file_join(run->spec->dir, "console.log");
	struct run_times *t = &run->result.times;
	int r;

	t->start = clock_mono_ms();
	r = watch_new(log, run->spec->stop_fd, &run->watch, err);
	if (r < 0)
		return r;
	r = create(run, err);
	for (int i = 1; r == -EADDRINUSE && i < PORT_TRIES; i++)
		r = create(run, err);
	t->created = clock_mono_ms();
	if (r == 0)
		r = vm_resume(run->vm, err);
	t->resumed = clock_mono_ms();
	return r;
}

/* What a dead guest's console has to say. Free it. */
static char *last_words(struct run *run, enum outcome outcome)
{
	cleanup(buf_release) struct buf words = BUF_INIT;
	unsigned events = watch_events(run->watch);

	if (events & CONSOLE_OOPS)
		watch_line(run->watch, CONSOLE_OOPS, &words);
	if (events & CONSOLE_PANIC) {
		buf_adds(&words, words.len ? "; " : "");
		watch_line(run->watch, CONSOLE_PANIC, &words);
	}
	if (words.len)
		return buf_detach(&words);
	switch (outcome) {
	case OUTCOME_TRIPLE_FAULT:
		buf_adds(&words, "the guest was reset or switched off without a word");
		break;
	case OUTCOME_SILENCE:
		buf_addf(&words, "nothing on the console for %lld s",
			(long long)(run->spec->silence / 1000));
		break;
	case OUTCOME_BOOT_TIMEOUT:
		buf_addf(&words, "not ready after %lld s",
			(long long)(run->spec->boot_timeout / 1000));
		break;
	default:
		buf_adds(&words, "QEMU ended, and the guest had not said why");
	}
	buf_adds(&words, "; the console ends with:\n");
	watch_tail(run->watch, &words);
	return buf_detach(&words);
}

static void conclude_death(struct run *run, int settle_ms)
{
	enum outcome outcome;

	watch_settle(run->watch, settle_ms);
	outcome = outcome_of_death(watch_events(run->watch), watch_end(run->watch));
	conclude(run, outcome, last_words(run, outcome));
}

/* Wait for the guest's word. 1 = it is ready, 0 = there is a result instead. */
static int await_ready(struct run *run, int64_t deadline, struct err *err)
{
	switch (watch_wait(run->watch, CONSOLE_READY, deadline, run->spec->silence)) {
	case WATCH_SEEN:
		run->result.times.ready = clock_mono_ms();
		return 1;
	case WATCH_STOPPED:
		return err_set(err, EINTR, "told to stop");
	case WATCH_DEAD:
		conclude_death(run, SETTLE_MS);
		return 0;
	case WATCH_SILENT:
		conclude(run, OUTCOME_SILENCE, last_words(run, OUTCOME_SILENCE));
		return 0;
	case WATCH_LATE:
		conclude(run, OUTCOME_BOOT_TIMEOUT, last_words(run, OUTCOME_BOOT_TIMEOUT));
		return 0;
	}
	return 0;
}

static int stopped(const struct run *run)
{
	struct pollfd pfd = {.fd = run->spec->stop_fd, .events = POLLIN};

	return run->spec->stop_fd >= 0 && poll(&pfd, 1, 0) > 0;
}

static int guest_is_dead(struct run *run)
{
	return watch_wait(run->watch, 0, 0, 0) == WATCH_DEAD;
}

/* The connection failed in some way. 0 = there is a result; -EINTR. */
static int conclude_loss(struct run *run, const struct err *why, struct err *err)
{
	if (stopped(run))
		return err_set(err, EINTR, "told to stop");
	watch_settle(run->watch, guest_is_dead(run) ? SETTLE_MS : LOSS_SETTLE_MS);
	if (guest_is_dead(run))
		conclude_death(run, SETTLE_MS);
	else
		conclude_infra(run, why);
	return 0;
}

/* The server listens already, but a busy host may make the first attempt fail. */
static int connect_guest(struct run *run, int64_t deadline, struct err *err)
{
	struct guest_spec spec = {
		.host = "127.0.0.1",
		.port = run->port,
		.keys_dir = run->spec->keys_dir,
	};
	int r;

	do {
		int64_t left = deadline - clock_mono_ms();

		spec.timeout_ms = left > SSH_TRY_MS ? SSH_TRY_MS : left > 1 ? (int)left : 1;
		r = guest_open(&spec, &run->guest, err);
		if (r == 0 || r == -EACCES || r == -EKEYREJECTED)
			break;
		poll(NULL, 0, SSH_RETRY_MS);
	} while (clock_mono_ms() < deadline && !stopped(run) && !guest_is_dead(run));
	if (r == 0)
		run->result.times.ssh = clock_mono_ms();
	return r < 0 ? err_wrap(err, "cannot reach the guest") : 0;
}

static int test(struct run *run, struct err *err)
{
	cleanup(free) char *log = file_join(run->spec->dir, "output.log");
	struct trial_spec spec = run->spec->trial;
	struct trial *trial = &run->result.trial;
	int r;

	spec.log = log;
	spec.interrupt_fd = watch_fd(run->watch);
	r = trial_run(run->guest, &spec, trial, err);
	run->result.times.tested = clock_mono_ms();
	if (r < 0)
		return r;
	/* A kernel that broke during the test is dead, whatever the test says. */
	if (guest_is_dead(run))
		conclude_death(run, SETTLE_MS);
	else
		conclude(run, trial->outcome, xstrdup_null(trial->detail));
	return 0;
}

int run_boot(struct run *run, struct err *err)
{
	struct err why = {0};
	int64_t deadline;
	int r = start(run, &why), written = write_xml(run, r < 0 ? NULL : &why);

	if (r < 0 || written < 0) {
		conclude_infra(run, &why);
		return 0;
	}
	deadline = clock_mono_ms() + run->spec->boot_timeout;
	r = await_ready(run, deadline, err);
	run->result.times.first_byte = watch_first_byte(run->watch);
	run->result.kernel_ran = (watch_events(run->watch) & CONSOLE_BANNER) != 0;
	if (r <= 0)
		return r;
	r = connect_guest(run, deadline, &why);
	if (r == 0)
		r = test(run, &why);
	return r < 0 ? conclude_loss(run, &why, err) : 0;
}

int run_probe(struct run *run, int limit_ms, struct err *err)
{
	enum watch_news news;
	int r = start(run, err);

	if (r < 0)
		return 0;
	news = watch_wait(run->watch, CONSOLE_BANNER, clock_mono_ms() + limit_ms, 0);
	if (news == WATCH_STOPPED)
		return err_set(err, EINTR, "told to stop");
	if (news == WATCH_SEEN || (watch_events(run->watch) & CONSOLE_BANNER))
		return 1;
	err_set(err, ETIMEDOUT, "a guest's kernel did not start within %d s", limit_ms / 1000);
	return 0;
}

int run_end(struct run *run, struct err *err)
{
	int r = 0;

	run->result.times.ending = clock_mono_ms();
	if (run->vm)
		r = vm_destroy(run->vm, err);
	if (r == 0 && run->watch)
		r = watch_finish(run->watch, err);
	run->result.times.ended = clock_mono_ms();
	return r;
}

void run_free(struct run *run)
{
	if (!run)
		return;
	guest_close(run->guest);
	vm_free(run->vm);
	watch_free(run->watch);
	trial_release(&run->result.trial);
	free(run->result.detail);
	free(run->xml);
	free(run);
}
