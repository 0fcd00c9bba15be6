#include "daemon/request.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/banned.h"

#define MINUTE_MS 60000

static void set_path(json_t *obj, const char *key, const char *base, const char *name)
{
	cleanup(free) char *path = xasprintf("%s/%s", base, name);

	json_set_str(obj, key, path);
}

static json_t *slot_path(const struct config *config, const char *kind, int slot)
{
	cleanup(free) char *path = xasprintf("%s/%s/%d", config->state_dir, kind, slot);

	return json_text(path);
}

char *path_job(const struct config *config, int64_t job)
{
	return xasprintf("%s/jobs/%lld", config->state_dir, (long long)job);
}

char *path_run(const struct config *config, int64_t job, int64_t run)
{
	return xasprintf(
		"%s/jobs/%lld/runs/%lld", config->state_dir, (long long)job, (long long)run);
}

json_t *request_accept(
	const struct config *config, const char *text, const char *where, const char *dir)
{
	json_t *req = json_object();

	json_set_str(req, "text", text);
	json_set_str(req, "where", where);
	json_set_str(req, "dir", dir);
	json_set_str(req, "benchmarks", config->benchmarks);
	return req;
}

json_t *request_pick(const struct view *view)
{
	json_t *req = json_object(), *verdicts = json_object(), *good = json_array();

	json_set_str(req, "repo", view->spec.repo);
	json_array_append_new(good, json_string(view->rows[0].sha));
	json_object_set_new(req, "good", good);
	json_set_str(req, "bad", view->rows[1].sha);
	for (size_t i = 2; i < view->n_commits; i++) {
		const struct view_commit *c = &view->commits[i];

		if (c->verdict != VERDICT_NONE)
			json_set_str(verdicts, c->row->sha, verdict_name(c->verdict));
	}
	json_object_set_new(req, "verdicts", verdicts);
	return req;
}

/* Store keys that this job still needs: its endpoints' and those of commits being measured. */
static json_t *keys_in_use(const struct view *view)
{
	json_t *keep = json_array();

	for (size_t i = 0; i < view->n_commits; i++) {
		const struct view_commit *c = &view->commits[i];

		if (c->row->build_key && (i < 2 || c->verdict == VERDICT_NONE))
			json_array_append_new(keep, json_string(c->row->build_key));
	}
	return keep;
}

json_t *request_build(const struct config *config, const struct view *view,
	const struct view_commit *commit, int slot, const char *log)
{
	json_t *req = json_object();
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	json_set_str(req, "repo", view->spec.repo);
	json_set_str(req, "commit", commit->row->sha);
	json_set_str(req, "label", commit->row->label);
	json_object_set_new(req, "slot", slot_path(config, "build", slot));
	set_path(req, "store", config->state_dir, "store");
	json_set_int(req, "store_size", config->store_size);
	json_object_set_new(req, "keep", keys_in_use(view));
	json_object_set(req, "config", json_object_get(view->facts, "config"));
	json_object_set(req, "fragments", json_object_get(view->facts, "fragments"));
	set_path(req, "kernel_dir", config->data_dir, "kernel");
	json_set_str(req, "cc", view->spec.cc);
	json_set_int(req, "jobs", config->build_jobs ? config->build_jobs : cpus);
	json_set_int(req, "timeout_ms", view->spec.build_timeout);
	if (config->ccache)
		set_path(req, "ccache", config->state_dir, "ccache");
	else
		json_set_str(req, "ccache", "");
	json_set_bool(req, "sandbox", config->sandbox);
	json_set_str(req, "log", log);
	json_set_bool(req, "endpoint", commit->row->role != DB_ROLE_CANDIDATE);
	return req;
}

static json_t *domain_request(const struct job_spec *spec)
{
	static const char *const accels[] = {"auto", "kvm", "tcg"};
	static const char *const timings[] = {"auto", "wall", "virtual"};
	json_t *domain = json_object();

	json_set_int(domain, "cpus", spec->cpus);
	json_set_int(domain, "memory", spec->memory);
	json_set_str(domain, "cmdline", spec->cmdline ? spec->cmdline : "");
	json_set_str(domain, "accel", accels[spec->accel]);
	json_set_str(domain, "timing", timings[spec->timing]);
	json_set_int(domain, "timeout_ms", spec->boot_timeout);
	json_set_int(domain, "silence_ms", spec->silence);
	return domain;
}

static json_t *guest_request(const struct config *config)
{
	json_t *guest = json_object();

	set_path(guest, "keys", config->state_dir, "guest/keys");
	set_path(guest, "cache", config->state_dir, "guest/images");
	set_path(guest, "mkguest", config->data_dir, "guest/mkguest");
	set_path(guest, "init", config->data_dir, "guest/init");
	return guest;
}

static json_t *benchmark_request(const struct view *view)
{
	json_t *bench = json_object();
	const json_t *facts = json_object_get(view->facts, "benchmark");

	json_set_str(bench, "name", view->spec.benchmark);
	json_set_str(bench, "text", json_opt_str(facts, "text", ""));
	json_set_str(bench, "args", view->spec.args);
	json_set_str(bench, "metric", view->metric);
	json_set_int(bench, "timeout_ms", view->spec.test_timeout);
	json_set_int(bench, "iterations", view->spec.iterations);
	return bench;
}

json_t *request_measure(
	const struct config *config, const struct view *view, json_t *boots, int slot)
{
	json_t *req = json_object();

	json_object_set_new(req, "boots", boots);
	json_object_set_new(req, "vm", slot_path(config, "vm", slot));
	json_set_str(req, "uri", config->uri);
	json_object_set_new(req, "domain", domain_request(&view->spec));
	json_object_set_new(req, "guest", guest_request(config));
	json_object_set_new(req, "benchmark", benchmark_request(view));
	return req;
}

json_t *request_sweep(const struct config *config, int slots)
{
	json_t *req = json_object(), *vms = json_array(), *builds = json_array();

	for (int i = 0; i < slots; i++) {
		json_array_append_new(vms, slot_path(config, "vm", i));
		json_array_append_new(builds, slot_path(config, "build", i));
	}
	json_object_set_new(req, "vms", vms);
	json_object_set_new(req, "slots", builds);
	set_path(req, "store", config->state_dir, "store");
	json_set_str(req, "uri", config->uri);
	return req;
}

json_t *request_mail(const struct config *config, const json_t *stored, const char *marker)
{
	json_t *req = json_deep_copy(stored), *smtp;

	json_set_str(req, "marker", marker);
	if (config->sendmail) {
		json_set_str(req, "sendmail", config->sendmail);
		return req;
	}
	smtp = json_object();
	json_set_str(smtp, "url", config->smtp);
	json_set_str(smtp, "user", config->user);
	json_set_str(smtp, "password_file", config->password_file);
	json_set_str(smtp, "ca_file", config->ca_file);
	json_set_str(smtp, "tls", config_tls_name(config->tls));
	json_object_set_new(req, "smtp", smtp);
	return req;
}

int64_t request_build_deadline(const struct view *view)
{
	/* An incremental try, a clean one, and the checkout of the whole tree. */
	return 2 * view->spec.build_timeout + 30 * MINUTE_MS;
}

int64_t request_measure_deadline(const struct view *view, size_t boots)
{
	int64_t test = view->spec.test_timeout ? view->spec.test_timeout : 60 * MINUTE_MS;
	int64_t iterations = view->spec.iterations ? view->spec.iterations : 20;

	return (int64_t)boots * (view->spec.boot_timeout + iterations * test) + 30 * MINUTE_MS;
}
