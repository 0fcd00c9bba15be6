#include "daemon/step.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/ini.h"
#include "bisect/range.h"
#include "boot/benchmark.h"
#include "daemon/commit_json.h"
#include "daemon/job.h"
#include "daemon/mail.h"
#include "base/banned.h"

#define CONFIG_MAX (4 << 20)

struct acceptance {
	const char *text, *where, *dir, *benchmarks; /* borrowed from the request */
	struct job_spec spec;
	struct repo *repo;
	char good[REPO_ID_SIZE], bad[REPO_ID_SIZE];
	json_t *result;
};

static void cleanup_acceptance_release(struct acceptance *a)
{
	job_release(&a->spec);
	repo_free(a->repo);
	json_decref(a->result);
}

struct wanted_line {
	const char *section, *name;
	int line;
};

static int find_line(void *arg, const char *section, const char *name, const char *value, int line,
	struct err *err)
{
	struct wanted_line *wanted = arg;

	(void)value;
	(void)err;
	if (name && strcmp(section, wanted->section) == 0 && strcmp(name, wanted->name) == 0)
		wanted->line = line;
	return 0;
}

/* Put the place of a key, and its value (NULL = leave it out), in front of what is wrong with it.
 */
static int blame(const struct acceptance *a, const char *section, const char *name,
	const char *value, struct err *err)
{
	struct wanted_line wanted = {section, name, 0};

	ini_read(a->text, strlen(a->text), a->where, find_line, &wanted, NULL);
	if (value)
		err_wrap(err, "%s = %s", name, value);
	if (wanted.line)
		return err_wrap(err, "%s:%d", a->where, wanted.line);
	return err_wrap(err, "%s: [%s]", a->where, section);
}

/* What every kernel tree has had for as long as its build has worked as it does. */
static int check_kernel_tree(const struct acceptance *a, const char *id, struct err *err)
{
	static const char *const names[] = {"Makefile", "Kconfig", "arch/x86"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int r = repo_has(a->repo, id, names[i], err);

		if (r < 0)
			return r;
		if (r == 0)
			return err_set(
				err, EINVAL, "not a Linux kernel: there is no %s in it", names[i]);
	}
	return 0;
}

static int check_end(struct acceptance *a, const char *name, const char *revision,
	char ret_id[static REPO_ID_SIZE], struct err *err)
{
	json_t *commit;
	int r = repo_resolve(a->repo, revision, ret_id, err);

	if (r == 0)
		r = check_kernel_tree(a, ret_id, err);
	if (r == 0)
		r = commit_json(a->repo, ret_id, COMMIT_SHORT, &commit, err);
	if (r < 0)
		return blame(a, "range", name, revision, err);
	json_object_set_new(a->result, name, commit);
	return 0;
}

static int check_range(struct acceptance *a, struct err *err)
{
	cleanup(range_release) struct range range = {.graph = GRAPH_INIT};
	const char *const good[] = {a->good};
	int r = repo_open(a->spec.repo, &a->repo, err);

	if (r < 0)
		return blame(a, "range", "repo", a->spec.repo, err);
	r = check_end(a, "good", a->spec.good, a->good, err);
	if (r == 0)
		r = check_end(a, "bad", a->spec.bad, a->bad, err);
	if (r < 0)
		return r;
	r = range_check(a->repo, a->good, a->bad, err);
	if (r == 0)
		r = range_load(a->repo, good, 1, a->bad, &range, err);
	if (r < 0)
		return blame(a, "range", "bad", NULL, err);
	json_set_int(a->result, "commits", range.graph.n);
	json_set_int(a->result, "merges", range.merges);
	return 0;
}

/* The length of CONFIG_NAME at the start of a line, or 0. */
static size_t symbol_length(const char *line)
{
	size_t n = strlen("CONFIG_");

	if (strncmp(line, "CONFIG_", n) != 0)
		return 0;
	while (isalnum((unsigned char)line[n]) || line[n] == '_')
		n++;
	return n;
}

/*
 * Only lines that a kernel configuration may have. What is in the file is not shown: the daemon may
 * be allowed to read files that the one who named it is not.
 */
static int check_config_text(const struct buf *text, struct err *err)
{
	const char *line = buf_str(text);

	if (strlen(line) != text->len)
		return err_set(err, EINVAL, "not a text file");
	for (int number = 1; *line; number++) {
		line += strspn(line, " \t");
		if (!strchr("#\r\n", *line) && line[symbol_length(line)] != '=')
			return err_set(err, EINVAL,
				"line %d is neither CONFIG_NAME=VALUE nor a comment", number);
		line += strcspn(line, "\n");
		line += *line == '\n';
	}
	return 0;
}

/* Read a configuration file that the job names, relative to the job's folder. */
static int read_config_file(
	const struct acceptance *a, const char *name, struct buf *ret, struct err *err)
{
	cleanup(free) char *path = file_join(a->dir, name);
	struct stat st;
	int r;

	if (stat(path, &st) < 0)
		return err_sys(err, errno, "%s", path);
	if (!S_ISREG(st.st_mode)) /* a pipe would block for ever */
		return err_set(err, EINVAL, "%s: not a regular file", path);
	r = file_read(path, CONFIG_MAX, ret, err);
	if (r < 0)
		return r;
	r = check_config_text(ret, err);
	return r < 0 ? err_wrap(err, "%s", path) : 0;
}

static int set_config(struct acceptance *a, const char *base, const char *name, const char *text)
{
	json_t *config = json_object();

	json_set_str(config, "base", base);
	json_set_str(config, "name", name);
	json_set_str(config, "text", text);
	json_object_set_new(a->result, "config", config);
	return 0;
}

/* A target of the kernel's own Makefile, or a file of the tree that makes one. */
static int check_defconfig(struct acceptance *a, const char *name, struct err *err)
{
	static const char *const targets[] = {"defconfig", "tinyconfig", "allnoconfig",
		"alldefconfig", "allmodconfig", "allyesconfig"};
	cleanup(free) char *path = xasprintf("arch/x86/configs/%s", name);
	const char *tail = strstr(name, "_defconfig");
	int r = 0;

	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++)
		if (strcmp(name, targets[i]) == 0)
			return set_config(a, "defconfig", name, "");
	if (tail && strcmp(tail, "_defconfig") == 0)
		r = repo_has(a->repo, a->good, path, err);
	if (r > 0)
		return set_config(a, "defconfig", name, "");
	if (r < 0)
		return r;
	return err_set(err, EINVAL,
		"neither tiny nor a defconfig: %s has no arch/x86/configs/%s (a file of yours is "
		"written with a slash, such as ./%s)",
		a->spec.good, name, name);
}

static int check_config(struct acceptance *a, struct err *err)
{
	cleanup(buf_release) struct buf text = BUF_INIT;
	const char *name = a->spec.config;
	int r;

	if (strcmp(name, "tiny") == 0)
		return set_config(a, "tiny", name, "");
	if (strchr(name, '/')) {
		r = read_config_file(a, name, &text, err);
		if (r == 0)
			r = set_config(a, "file", name, buf_str(&text));
	} else {
		r = check_defconfig(a, name, err);
	}
	return r < 0 ? blame(a, "build", "config", name, err) : 0;
}

static int check_fragments(struct acceptance *a, struct err *err)
{
	json_t *fragments = json_array();
	const char *at = a->spec.fragments ? a->spec.fragments : "";

	json_object_set_new(a->result, "fragments", fragments);
	for (at += strspn(at, " \t"); *at; at += strspn(at, " \t")) {
		size_t len = strcspn(at, " \t");
		cleanup(free) char *name = xstrndup(at, len);
		cleanup(buf_release) struct buf text = BUF_INIT;
		json_t *fragment;

		if (read_config_file(a, name, &text, err) < 0)
			return blame(a, "build", "fragments", name, err);
		fragment = json_object();
		json_set_str(fragment, "name", name);
		json_set_str(fragment, "text", buf_str(&text));
		json_array_append_new(fragments, fragment);
		at += len;
	}
	return 0;
}

/* The job may turn the metric's direction round: `command` cannot know what its number means. */
static int set_metric(struct acceptance *a, const struct benchmark_metric *metric, const char *text)
{
	int lower = a->spec.better == JOB_BETTER_BENCHMARK ? metric->better_lower
							   : a->spec.better == JOB_BETTER_LOWER;
	json_t *benchmark = json_object();

	json_set_str(benchmark, "name", a->spec.benchmark);
	json_set_str(benchmark, "text", text);
	json_object_set_new(a->result, "benchmark", benchmark);
	json_set_str(a->result, "metric", metric->name);
	json_set_str(a->result, "better", lower ? "lower" : "higher");
	json_set_str(a->result, "unit", metric->unit ? metric->unit : "");
	return 0;
}

static int check_benchmark(struct acceptance *a, struct err *err)
{
	cleanup(benchmark_release) struct benchmark benchmark = {0};
	cleanup(buf_release) struct buf text = BUF_INIT;
	cleanup(free) char *command = NULL;
	size_t metric;
	int r = benchmark_load(a->benchmarks, a->spec.benchmark, &text, &benchmark, err);

	if (r < 0)
		return blame(a, "test", "benchmark", NULL, err);
	r = benchmark_metric(&benchmark, a->spec.metric, &metric, err);
	if (r < 0)
		return blame(a, "test", "metric", NULL, err);
	r = benchmark_command(&benchmark, a->spec.args, &command, err);
	if (r < 0)
		return blame(a, "test", "args", NULL, err);
	return set_metric(a, &benchmark.metrics[metric], buf_str(&text));
}

static int check_report(struct acceptance *a, struct err *err)
{
	int r = 0;

	if (a->spec.mail)
		r = mail_check_addresses(a->spec.mail, err);
	if (r < 0)
		return blame(a, "report", "mail", NULL, err);
	if (a->spec.in_reply_to)
		r = mail_check_message_id(a->spec.in_reply_to, err);
	if (r < 0)
		return blame(a, "report", "in-reply-to", NULL, err);
	return 0;
}

/* Cheap checks first; check_config needs the range. */
static int (*const checks[])(struct acceptance *a, struct err *err) = {
	check_report,
	check_benchmark,
	check_range,
	check_config,
	check_fragments,
};

int step_accept(const json_t *request, struct err *err)
{
	cleanup(acceptance_release) struct acceptance a = {.result = json_object()};
	int r = json_get_str(request, "text", &a.text, err);

	if (r == 0)
		r = json_get_str(request, "where", &a.where, err);
	if (r == 0)
		r = json_get_str(request, "dir", &a.dir, err);
	if (r == 0)
		r = json_get_str(request, "benchmarks", &a.benchmarks, err);
	if (r < 0)
		return r;
	r = job_parse(a.text, a.where, a.dir, &a.spec, err);
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]) && r == 0; i++)
		r = checks[i](&a, err);
	if (r < 0)
		return step_refuse(err);
	step_result(steal(&a.result));
	return 0;
}
