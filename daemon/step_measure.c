#include "daemon/step.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "boot/accel.h"
#include "boot/benchmark.h"
#include "boot/host.h"
#include "boot/image.h"
#include "boot/run.h"
#include "boot/sweep.h"
#include "base/banned.h"

#define PROBE_MS 10000

/* The request, and what was made of it. Strings are borrowed from the request. */
struct measure {
	const json_t *boots;
	const char *vm, *uri, *cmdline, *keys_dir;
	struct host *host;
	struct benchmark benchmark;
	size_t metric;
	char *initrd;
	struct accel_spec wish;
	struct accel accel;
	int cpus, stop_fd, claim_fd;
	int64_t memory, boot_timeout, silence;
	int64_t start; /* of the step: clock_mono_ms */
	const char *args;
	int64_t iterations, test_timeout;
};

/* One of the boots. */
struct boot {
	int64_t id;
	int64_t step_start; /* when the step began: clock_mono_ms */
	const char *kernel, *dir;
	char *name;
	struct run_spec spec;
	struct run *run;
};

/* The last boot's domain, ended in a thread while the next one starts. */
struct ending {
	pthread_t thread;
	int running;
	struct boot *boot;
	struct err err;
};

static void cleanup_measure(struct measure *m)
{
	host_close(m->host);
	benchmark_release(&m->benchmark);
	free(m->initrd);
	if (m->claim_fd >= 0)
		close(m->claim_fd);
	if (m->stop_fd >= 0)
		close(m->stop_fd);
}

static void boot_free(struct boot *boot)
{
	if (!boot)
		return;
	run_free(boot->run);
	free(boot->name);
	free(boot);
}
DEFINE_CLEANUP(boot_free, struct boot *);

static int choice(const json_t *obj, const char *key, const char *const *words)
{
	const char *word = json_opt_str(obj, key, words[0]);
	int i = 0;

	while (words[i] && strcmp(words[i], word) != 0)
		i++;
	return words[i] ? i : 0;
}

static void read_domain(const json_t *domain, struct measure *m)
{
	static const char *const accels[] = {"auto", "kvm", "tcg", NULL};
	static const char *const timings[] = {"auto", "wall", "virtual", NULL};

	m->cpus = (int)json_opt_int(domain, "cpus", 1);
	m->memory = json_opt_int(domain, "memory", 512LL << 20);
	m->cmdline = json_opt_str(domain, "cmdline", "");
	if (!*m->cmdline)
		m->cmdline = NULL;
	m->wish.wish = (enum accel_wish)choice(domain, "accel", accels);
	m->wish.timing = (enum accel_timing)choice(domain, "timing", timings);
	m->boot_timeout = json_opt_int(domain, "timeout_ms", 120000);
	m->silence = json_opt_int(domain, "silence_ms", 60000);
}

/* The benchmark's text was accepted before; a failure now is the job's. -EINVAL. */
static int read_benchmark(const json_t *request, struct measure *m, struct err *err)
{
	const char *name, *text, *metric;
	json_t *obj;
	int r = json_get_obj(request, "benchmark", &obj, err);

	if (r == 0)
		r = json_get_str(obj, "name", &name, err);
	if (r == 0)
		r = json_get_str(obj, "text", &text, err);
	if (r < 0)
		return r;
	m->args = json_opt_str(obj, "args", NULL);
	m->iterations = json_opt_int(obj, "iterations", 0);
	m->test_timeout = json_opt_int(obj, "timeout_ms", 0);
	r = benchmark_parse(text, strlen(text), name, name, &m->benchmark, err);
	if (r < 0)
		return r;
	metric = json_opt_str(obj, "metric", "");
	return benchmark_metric(&m->benchmark, *metric ? metric : NULL, &m->metric, err);
}

static int read_guest(const json_t *request, struct measure *m, struct err *err)
{
	struct image_spec spec = {
		.benchmark = m->benchmark.name,
		.programs = m->benchmark.programs,
	};
	json_t *guest;
	int r = json_get_obj(request, "guest", &guest, err);

	if (r == 0)
		r = json_get_str(guest, "keys", &spec.keys_dir, err);
	if (r == 0)
		r = json_get_str(guest, "cache", &spec.cache_dir, err);
	if (r == 0)
		r = json_get_str(guest, "mkguest", &spec.mkguest, err);
	if (r == 0)
		r = json_get_str(guest, "init", &spec.init, err);
	if (r < 0)
		return r;
	m->keys_dir = spec.keys_dir;
	return image_get(&spec, &m->initrd, err);
}

static int read_request(const json_t *request, struct measure *m, struct err *err)
{
	json_t *boots, *domain;
	int r = json_get_arr(request, "boots", &boots, err);

	if (r == 0)
		r = json_get_str(request, "vm", &m->vm, err);
	if (r == 0)
		r = json_get_obj(request, "domain", &domain, err);
	if (r < 0)
		return r;
	m->boots = boots;
	m->uri = json_opt_str(request, "uri", "");
	read_domain(domain, m);
	return sweep_claim(m->vm, &m->claim_fd, err);
}

/*
 * SIGTERM (a cancelled job, a dead daemon) becomes readable on a descriptor. Before any thread is
 * started, so that all of them have the signal blocked.
 */
static int catch_stop(struct err *err)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? err_sys(err, errno, "cannot wait for signals") : fd;
}

/* Run numbers are one daemon's; on a shared hypervisor another daemon has the same ones. */
static char *domain_name(const struct measure *m, int64_t id)
{
	struct hash *hash;
	char hex[HASH_HEX_SIZE];

	if (!*m->uri)
		return xasprintf("kbisectd-%lld", (long long)id);
	hash = hash_new();
	hash_part_str(hash, m->vm);
	hash_final(hash, hex);
	return xasprintf("kbisectd-%lld-%.8s", (long long)id, hex);
}

static int boot_new(const struct measure *m, const json_t *row, struct boot **ret, struct err *err)
{
	cleanup(boot_free) struct boot *boot = xcalloc(1, sizeof(*boot));
	int r = json_get_int(row, "run", &boot->id, err);

	if (r == 0)
		r = json_get_str(row, "kernel", &boot->kernel, err);
	if (r == 0)
		r = json_get_str(row, "dir", &boot->dir, err);
	if (r == 0)
		r = file_mkdir(boot->dir, 0755, err);
	if (r < 0)
		return r;
	boot->step_start = m->start;
	boot->name = domain_name(m, boot->id);
	boot->spec = (struct run_spec){
		.name = boot->name,
		.dir = boot->dir,
		.kernel = boot->kernel,
		.initrd = m->initrd,
		.cmdline = m->cmdline,
		.keys_dir = m->keys_dir,
		.owner = m->vm,
		.memory = m->memory,
		.cpus = m->cpus,
		.accel = m->accel.accel,
		.timing = m->accel.timing,
		.boot_timeout = m->boot_timeout,
		.silence = m->silence,
		.trial = {&m->benchmark, m->metric, m->args, m->iterations, m->test_timeout, NULL,
			-1},
		.stop_fd = m->stop_fd,
	};
	boot->run = run_new(m->host, &boot->spec);
	*ret = steal(&boot);
	return 0;
}

static json_t *metric_result(const struct trial *t, size_t metric)
{
	int median = trial_median(t, metric);
	const struct parse_value *v;
	json_t *obj = json_object(), *all = json_array();

	v = &t->values[(size_t)median * t->n_metrics + metric];
	json_set_real(obj, "value", v->value);
	json_object_set_new(obj, "text", json_text(v->text));
	for (size_t i = 0; i < t->n; i++)
		json_array_append_new(all, json_text(t->values[i * t->n_metrics + metric].text));
	json_object_set_new(obj, "all", all);
	return obj;
}

static json_t *boot_result(const struct measure *m, const struct boot *boot)
{
	const struct run_result *r = run_result(boot->run);
	json_t *obj = json_object(), *metrics = json_object();

	json_set_int(obj, "run", boot->id);
	json_set_str(obj, "outcome", outcome_name(r->outcome));
	if (r->detail)
		json_object_set_new(obj, "detail", json_text(r->detail));
	if (r->times.ssh)
		json_set_int(obj, "boot_ms", r->times.ssh - r->times.start);
	if (r->times.tested)
		json_set_int(obj, "test_ms", r->times.tested - r->times.ssh);
	for (size_t i = 0; r->outcome == OUTCOME_OK && i < r->trial.n_metrics; i++)
		if (trial_median(&r->trial, i) >= 0)
			json_object_set_new(
				metrics, m->benchmark.metrics[i].name, metric_result(&r->trial, i));
	json_object_set_new(obj, "metrics", metrics);
	return obj;
}

/* The record beside the logs, and the line for the daemon. */
static int report(const struct measure *m, const struct boot *boot, struct err *err)
{
	cleanup(free) char *path = file_join(boot->dir, "result.json");
	json_t *obj = boot_result(m, boot);
	cleanup(free) char *line = json_line(obj);
	int r = file_write(path, line, strlen(line), 0644, err);

	if (r < 0) {
		json_decref(obj);
		return r;
	}
	step_result(obj);
	return 0;
}

/* Milliseconds since the boot was asked for; -1 = it did not come to that. */
static long long since(const struct run_times *t, int64_t at)
{
	return at ? (long long)(at - t->start) : -1;
}

static void log_times(const struct boot *boot)
{
	const struct run_times *t = &run_result(boot->run)->times;

	fprintf(stderr,
		"run=%lld at %lld ms: created %lld, resumed %lld, first byte %lld, ready %lld, ssh "
		"%lld, "
		"tested %lld; ended %lld after %lld\n",
		(long long)boot->id, (long long)(t->start - boot->step_start), since(t, t->created),
		since(t, t->resumed), since(t, t->first_byte), since(t, t->ready), since(t, t->ssh),
		since(t, t->tested), since(t, t->ended), (long long)(t->ended - t->ending));
}

static void *end_boot(void *arg)
{
	struct ending *ending = arg;

	if (run_end(ending->boot->run, &ending->err) < 0)
		fprintf(stderr, "run=%lld: %s\n", (long long)ending->boot->id, ending->err.msg);
	log_times(ending->boot);
	boot_free(ending->boot);
	return NULL;
}

/* Wait for the domain that is being ended. Its failure is one. */
static int ending_wait(struct ending *ending, struct err *err)
{
	if (!ending->running)
		return 0;
	pthread_join(ending->thread, NULL);
	ending->running = 0;
	if (!ending->err.code)
		return 0;
	return err_set(err, ending->err.code, "%s", ending->err.msg);
}

/* Takes the boot. At most one is being ended at a time, so that there are never three domains. */
static int ending_start(struct ending *ending, struct boot *boot, struct err *err)
{
	int r = ending_wait(ending, err);

	ending->boot = boot;
	ending->err = (struct err){0};
	if (r == 0 && pthread_create(&ending->thread, NULL, end_boot, ending) == 0) {
		ending->running = 1;
		return 0;
	}
	end_boot(ending);
	return r;
}

static int measure_one(struct measure *m, const json_t *row, struct ending *ending, struct err *err)
{
	struct boot *boot;
	struct err later;
	json_t *state;
	int r = boot_new(m, row, &boot, err);

	if (r < 0)
		return r;
	state = json_object();
	json_set_int(state, "run", boot->id);
	json_set_str(state, "state", "booting");
	step_result(state);
	r = run_boot(boot->run, err);
	if (r == 0)
		r = report(m, boot, err);
	if (r == 0 && run_result(boot->run)->kernel_ran)
		r = accel_confirm(&m->wish, &m->accel, err);
	if (ending_start(ending, boot, &later) < 0 && r == 0)
		r = err_set(err, later.code, "%s", later.msg);
	return r;
}

/* Called by accel_choose: does the first boot's kernel run under KVM? */
static int probe_kvm(void *arg, struct err *err)
{
	struct measure *m = arg;
	cleanup(boot_free) struct boot *boot = NULL;
	int r = boot_new(m, json_array_get(m->boots, 0), &boot, err);
	int ended;

	if (r < 0)
		return r;
	boot->spec.accel = DOMAIN_KVM;
	boot->spec.timing = DOMAIN_WALL;
	r = run_probe(boot->run, PROBE_MS, err);
	ended = run_end(boot->run, r < 0 ? NULL : err);
	return r < 0 ? r : ended < 0 ? ended : r;
}

static int choose_accel(struct measure *m, struct err *err)
{
	json_t *line;
	int r;

	m->wish.dir = m->vm;
	m->wish.uri = m->uri;
	m->wish.local = host_root(m->host) != NULL;
	m->wish.probe = probe_kvm;
	m->wish.arg = m;
	r = accel_choose(&m->wish, &m->accel, err);
	if (r < 0)
		return r;
	line = json_object();
	json_set_str(line, "accel", accel_name(m->accel.accel));
	json_set_str(line, "timing", accel_timing_name(m->accel.timing));
	json_set_str(line, "why", m->accel.why);
	step_result(line);
	return 0;
}

static int measure_all(struct measure *m, struct err *err)
{
	struct ending ending = {0};
	struct err later;
	const json_t *row;
	size_t i;
	int r = 0, ended;

	json_array_foreach (m->boots, i, row) {
		r = measure_one(m, row, &ending, err);
		if (r < 0)
			break;
	}
	ended = ending_wait(&ending, &later);
	if (ended < 0 && r == 0)
		r = err_set(err, later.code, "%s", later.msg);
	if (ended == 0)
		sweep_unmark(m->vm);
	return r;
}

int step_measure(const json_t *request, struct err *err)
{
	cleanup(measure) struct measure m = {
		.stop_fd = -1, .claim_fd = -1, .start = clock_mono_ms()};
	int r = catch_stop(err), left = 0;

	if (r < 0)
		return r;
	m.stop_fd = r;
	r = read_request(request, &m, err);
	if (r < 0)
		return r;
	if (read_benchmark(request, &m, err) < 0)
		return step_refuse(err);
	r = read_guest(request, &m, err);
	if (r == -ENOENT)
		return step_refuse(err);
	if (r == 0)
		r = sweep_slot(m.vm, &left, err);
	if (r == 0)
		r = host_open(m.uri, m.vm, &m.host, err);
	if (r == 0)
		r = sweep_mark(m.vm, m.uri, err);
	if (r < 0)
		return r;
	fprintf(stderr, "connected to %s after %lld ms\n", host_uri(m.host),
		(long long)(clock_mono_ms() - m.start));
	r = choose_accel(&m, err);
	if (r == -EINVAL) {
		sweep_unmark(m.vm);
		return step_refuse(err);
	}
	return r < 0 ? r : measure_all(&m, err);
}
