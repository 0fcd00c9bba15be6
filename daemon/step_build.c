/* The build step (daemon/step.h): one candidate's kernel, from the store or from its source. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "bisect/repo.h"
#include "bisect/tree.h"
#include "boot/build.h"
#include "boot/buildslot.h"
#include "boot/store.h"
#include "daemon/step.h"
#include "base/banned.h"

#define KERNEL_CONFIG_MAX (1 << 20)

/* The request, and what is found out on the way. Strings are the request's unless said otherwise.
 */
struct job {
	const char *repo_path, *commit, *store;
	struct build_spec spec;
	struct store_limit limit;
	const char **keep;		/* owned; limit's */
	struct kconfig_text *fragments; /* owned; spec's */
	struct buf tiny, guest;		/* owned; spec's */
	struct build_tools tools;	/* owned */
	struct repo *repo;		/* owned */
	char tree[TREE_ID_SIZE];
	char key[STORE_KEY_SIZE];
	char config_inputs[HASH_HEX_SIZE];
};

static void cleanup_job(struct job *job)
{
	free(job->keep);
	free(job->fragments);
	buf_release(&job->tiny);
	buf_release(&job->guest);
	build_tools_release(&job->tools);
	repo_free(job->repo);
}

/* Strings that must be there, in one table. */
static int read_strings(const json_t *request, struct job *job, struct err *err)
{
	const struct {
		const char *key;
		const char **value;
	} strings[] = {
		{"repo", &job->repo_path},
		{"commit", &job->commit},
		{"store", &job->store},
		{"slot", &job->spec.box.slot},
		{"cc", &job->spec.box.cc},
		{"log", &job->spec.log},
	};
	int r = 0;

	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]) && r == 0; i++)
		r = json_get_str(request, strings[i].key, strings[i].value, err);
	return r;
}

static int read_kernel_dir(const json_t *request, struct job *job, struct err *err)
{
	cleanup(free) char *tiny = NULL, *guest = NULL;
	const char *dir;
	int r = json_get_str(request, "kernel_dir", &dir, err);

	if (r < 0)
		return r;
	tiny = file_join(dir, "tiny.config");
	guest = file_join(dir, "guest.config");
	r = file_read(tiny, KERNEL_CONFIG_MAX, &job->tiny, err);
	if (r == 0)
		r = file_read(guest, KERNEL_CONFIG_MAX, &job->guest, err);
	job->spec.recipe.tiny = (struct kconfig_text){"tiny.config", buf_str(&job->tiny)};
	job->spec.recipe.guest = (struct kconfig_text){"guest.config", buf_str(&job->guest)};
	return r;
}

static int read_recipe(const json_t *request, struct job *job, struct err *err)
{
	struct kconfig_recipe *recipe = &job->spec.recipe;
	json_t *config, *fragments, *item;
	const char *base;
	size_t i;
	int r = json_get_obj(request, "config", &config, err);

	if (r == 0)
		r = json_get_str(config, "base", &base, err);
	if (r == 0)
		r = kconfig_base_parse(base, &recipe->base, err);
	if (r == 0)
		r = read_kernel_dir(request, job, err);
	if (r < 0)
		return r;
	recipe->file.name = json_opt_str(config, "name", "");
	recipe->file.text = json_opt_str(config, "text", "");
	fragments = json_object_get(request, "fragments");
	job->fragments = xcalloc(json_array_size(fragments) + 1, sizeof(*job->fragments));
	json_array_foreach (fragments, i, item) {
		r = json_get_str(item, "name", &job->fragments[i].name, err);
		if (r == 0)
			r = json_get_str(item, "text", &job->fragments[i].text, err);
		if (r < 0)
			return err_wrap(err, "fragment %zu", i + 1);
	}
	recipe->fragments = job->fragments;
	recipe->nfragments = json_array_size(fragments);
	return 0;
}

static int read_request(const json_t *request, struct job *job, struct err *err)
{
	json_t *keep = json_object_get(request, "keep"), *item;
	size_t i;
	int r = read_strings(request, job, err);

	if (r == 0)
		r = read_recipe(request, job, err);
	if (r < 0)
		return r;
	job->spec.box.ccache = json_opt_str(request, "ccache", "");
	job->spec.box.off = !json_opt_bool(request, "sandbox", 1);
	job->spec.jobs = (int)json_opt_int(request, "jobs", 1);
	job->spec.timeout_ms = json_opt_int(request, "timeout_ms", 3600000);
	job->spec.strict = json_opt_bool(request, "endpoint", 0);
	job->limit.bytes = (uint64_t)json_opt_int(request, "store_size", 0);
	job->keep = xcalloc(json_array_size(keep) + 1, sizeof(*job->keep));
	json_array_foreach (keep, i, item)
		if (json_is_string(item))
			job->keep[job->limit.nkeep++] = json_string_value(item);
	job->limit.keep = job->keep;
	return 0;
}

/* The key of everything that goes into the image. */
static void make_key(struct job *job)
{
	struct hash *hash = hash_new();

	hash_part_str(hash, job->tree);
	kconfig_hash(&job->spec.recipe, hash);
	build_tools_hash(&job->tools, hash);
	hash_part_str(hash, job->spec.box.cc);
	hash_part_str(hash, job->spec.box.off ? "host" : "sandbox");
	hash_final(hash, job->key);
}

static void report(const struct job *job, const struct store_entry *entry, int cached)
{
	json_t *result = json_object();

	json_set_bool(result, "ok", 1);
	json_set_str(result, "key", job->key);
	json_set_str(result, "kernel", entry->kernel);
	json_set_str(result, "image", entry->image);
	json_set_real(result, "seconds", (double)entry->ms / 1000);
	json_set_bool(result, "cached", cached);
	json_set_str(result, "compiler", entry->compiler);
	step_result(result);
}

static void report_failure(const struct build_result *build)
{
	json_t *result = json_object();

	if (build->end == BUILD_REFUSED) {
		json_set_str(result, "refused", build->text);
	} else {
		json_set_bool(result, "ok", 0);
		json_set_str(result, "error", build->text);
		json_set_real(result, "seconds", (double)build->ms / 1000);
	}
	fprintf(stderr, "build: failed: %s\n", build->text);
	step_result(result);
}

/* Bring the slot to the candidate's tree. */
static int prepare_slot(struct job *job, struct err *err)
{
	const char *slot = job->spec.box.slot;
	struct tree_change change;
	int64_t start = clock_mono_ms();
	int r = buildslot_prepare(slot, err);

	if (r > 0)
		fprintf(stderr, "build: objects of an earlier build dropped from %s\n", slot);
	if (r >= 0)
		r = tree_checkout(job->repo, job->tree, slot, &change, err);
	if (r == 0)
		r = tree_digest(job->repo, job->tree, kconfig_depends_on, job->config_inputs, err);
	if (r < 0)
		return r;
	fprintf(stderr, "build: tree %.12s: %zu files written, %zu removed in %lld ms%s\n",
		job->tree, change.written, change.removed, (long long)(clock_mono_ms() - start),
		change.fresh ? " (first time)" : "");
	return 0;
}

static int build(struct job *job, struct err *err)
{
	cleanup(build_result_release) struct build_result result = {.end = BUILD_FAILED};
	cleanup(store_entry_release) struct store_entry entry = {.kernel = NULL};
	struct store_files files;
	cleanup(close) int lock = -1;
	int r;

	r = store_check(job->store, err);
	if (r == 0)
		r = buildslot_lock(job->spec.box.slot, &lock, err);
	if (r == 0)
		r = prepare_slot(job, err);
	if (r < 0)
		return r;
	/* Its mapped packs would lie in memory for as long as the compilers need theirs. */
	repo_free(steal(&job->repo));
	job->spec.config_inputs = job->config_inputs;
	fprintf(stderr, "build: %s, log %s\n", job->tools.cc, job->spec.log);
	r = build_kernel(&job->spec, &result, err);
	if (r < 0)
		return r;
	if (result.end != BUILD_OK) {
		report_failure(&result);
		return 0;
	}
	files = (struct store_files){
		result.image, result.config, job->spec.log, job->tools.cc, result.ms};
	r = store_add(job->store, job->key, &files, &job->limit, &entry, err);
	if (r < 0)
		return r;
	fprintf(stderr, "build: done in %lld ms, kept as %s\n", (long long)result.ms, job->key);
	report(job, &entry, 0);
	return 0;
}

/* The store knows the key: the slot is not touched. */
static int use_stored(const struct job *job, const struct store_entry *entry, struct err *err)
{
	int r = file_copy(entry->log, job->spec.log, err);

	if (r < 0)
		return r;
	fprintf(stderr, "build: taken from the store, %s\n", entry->kernel);
	report(job, entry, 1);
	return 0;
}

int step_build(const json_t *request, struct err *err)
{
	cleanup(job) struct job job = {.repo = NULL};
	cleanup(store_entry_release) struct store_entry entry = {.kernel = NULL};
	int r = read_request(request, &job, err);

	if (r < 0)
		return err_wrap(err, "bad request");
	r = repo_open(job.repo_path, &job.repo, err);
	if (r == 0)
		r = tree_find(job.repo, job.commit, job.tree, err);
	if (r < 0)
		return r;
	r = build_tools_probe(job.spec.box.cc, &job.tools, err);
	if (r < 0)
		return step_refuse(err);
	job.spec.tools = &job.tools;
	make_key(&job);
	fprintf(stderr, "build: commit %s, tree %.12s\n", job.commit, job.tree);
	r = store_find(job.store, job.key, &entry, err);
	if (r == 0)
		return use_stored(&job, &entry, err);
	return r == -ENOENT ? build(&job, err) : r;
}
