#include "boot/benchmark.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/ini.h"
#include "base/banned.h"

#define FILE_MAX (1 << 20)
#define EXCERPT 600 /* bytes of output in an error text */
#define SUFFIX ".conf"
#define ARGS "${args}"
#define METRIC "metric "
#define METRICS_MAX 1000
#define KEYS_MAX 24

/* A file while it is read: the benchmark, and what is text until the end. */
struct file {
	struct benchmark b;
	char *programs, *status;
	const char *where;
	int seen[KEYS_MAX];	     /* line of each key of the section at hand, 0 = not given */
	const struct conf_key *keys; /* of that section; NULL before the first */
	int line;		     /* of its header */
	int n_benchmark;	     /* headers seen */
};

#define FILE_KEY(field) offsetof(struct file, field)
#define METRIC_KEY(field) offsetof(struct benchmark_metric, field)

const struct conf_key benchmark_keys[] = {
	{"benchmark", "description", CONF_STRING, FILE_KEY(b.description), NULL, NULL, NULL, NULL,
		"one line about what it measures"},
	{"benchmark", "programs", CONF_STRING, FILE_KEY(programs), NULL, NULL, NULL, NULL,
		"programs of the host to put in the guest, or FILE=GUESTPATH, separated by spaces"},
	{"benchmark", "command", CONF_STRING, FILE_KEY(b.command), CONF_REQUIRED, NULL, NULL, NULL,
		"shell command of one iteration; ${args} stands for the arguments"},
	{"benchmark", "args", CONF_STRING, FILE_KEY(b.args), NULL, NULL, NULL, NULL,
		"arguments when the job gives none"},
	{"benchmark", "iterations", CONF_INT, FILE_KEY(b.iterations), "3", "1", "10000", NULL,
		"runs of the command in one boot"},
	{"benchmark", "warmup", CONF_INT, FILE_KEY(b.warmup), "0", "0", "1000", NULL,
		"runs before those, whose numbers are dropped"},
	{"benchmark", "timeout", CONF_DURATION, FILE_KEY(b.timeout), "10m", "1s", "7d", NULL,
		"time limit of one iteration, of setup and of teardown"},
	{"benchmark", "setup", CONF_STRING, FILE_KEY(b.setup), NULL, NULL, NULL, NULL,
		"shell command before the first iteration"},
	{"benchmark", "teardown", CONF_STRING, FILE_KEY(b.teardown), NULL, NULL, NULL, NULL,
		"shell command after the last iteration"},
	{"benchmark", "status", CONF_STRING, FILE_KEY(status), "0", NULL, NULL, NULL,
		"exit statuses that mean success, separated by spaces"},
	CONF_END,
};

const struct conf_key benchmark_metric_keys[] = {
	{"metric", "description", CONF_STRING, METRIC_KEY(description), NULL, NULL, NULL, NULL,
		"one line about what it means"},
	{"metric", "unit", CONF_STRING, METRIC_KEY(unit), NULL, NULL, NULL, NULL,
		"unit, for reports"},
	{"metric", "better", CONF_ENUM, METRIC_KEY(better_lower), NULL, NULL, NULL, "higher|lower",
		"which direction is better (required)"},
	{"metric", "format", CONF_ENUM, METRIC_KEY(parse.format), NULL, NULL, NULL,
		PARSE_FORMAT_CHOICES, "how the number is found in the output (required)"},
	{"metric", "which", CONF_ENUM, METRIC_KEY(parse.which), "last", NULL, NULL,
		PARSE_WHICH_CHOICES, "which number, when several are found"},
	{"metric", "scale", CONF_REAL, METRIC_KEY(parse.scale), "1", "1e-15", "1e15", NULL,
		"the printed number is multiplied by this"},
	{"metric", "pattern", CONF_STRING, METRIC_KEY(parse.pattern), NULL, NULL, NULL, NULL,
		"regex: POSIX extended regular expression, tried on every line"},
	{"metric", "group", CONF_INT, METRIC_KEY(parse.group), "1", "0", "9", NULL,
		"regex: the group that is the number; 0 = the whole match"},
	{"metric", "column", CONF_STRING, METRIC_KEY(parse.column), NULL, NULL, NULL, NULL,
		"csv, table: the column's header, or #N for the N-th field"},
	{"metric", "row", CONF_STRING, METRIC_KEY(parse.row), NULL, NULL, NULL, NULL,
		"csv, table: only rows with COLUMN=VALUE, ..."},
	{"metric", "ignore", CONF_STRING, METRIC_KEY(parse.ignore), NULL, NULL, NULL, NULL,
		"csv, table: not the rows with COLUMN=VALUE, ..."},
	{"metric", "path", CONF_STRING, METRIC_KEY(parse.path), NULL, NULL, NULL, NULL,
		"json: where the number is, as in jobs[0].read.iops"},
	CONF_END,
};

/* A word that a log line, a file name and a command line take as it stands. */
static int is_name(const char *s)
{
	if (!isalnum((unsigned char)*s) && *s != '_')
		return 0;
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && !strchr("_.-+%/", *s))
			return 0;
	return 1;
}

static struct benchmark_metric *last_metric(struct file *f)
{
	return &f->b.metrics[f->b.n_metrics - 1];
}

/* Line of a key of the section at hand; 0 = not given. */
static int seen_line(const struct file *f, const char *key)
{
	for (int i = 0; f->keys[i].name; i++)
		if (strcmp(f->keys[i].name, key) == 0)
			return f->seen[i];
	return 0;
}

/* Keys of another format are a misunderstanding, not something to overlook. */
static int check_format_keys(
	const struct file *f, const struct benchmark_metric *m, struct err *err)
{
	static const char *const keys[] = {"pattern", "group", "column", "row", "ignore", "path"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		int line = seen_line(f, keys[i]);

		if (line && !parse_format_uses(&m->parse, keys[i]))
			return err_set(err, EINVAL, "%s:%d: format = %s has no key \"%s\"",
				f->where, line, parse_format_name(&m->parse), keys[i]);
	}
	return 0;
}

/* The section at hand is complete: what only then can be checked. */
static int section_end(struct file *f, struct err *err)
{
	static const char *const required[] = {"better", "format"};
	const char *key = "";
	int line, r;

	if (f->keys != benchmark_metric_keys)
		return 0;
	struct benchmark_metric *m = last_metric(f);
	for (int i = 0; i < 2; i++)
		if (!seen_line(f, required[i]))
			return err_set(err, EINVAL, "%s:%d: \"%s\" is missing in [metric %s]",
				f->where, f->line, required[i], m->name);
	r = check_format_keys(f, m, err);
	if (r < 0)
		return r;
	r = parse_spec_check(&m->parse, &key, err);
	line = seen_line(f, key);
	return r < 0 ? err_wrap(err, "%s:%d: %s", f->where, line ? line : f->line, key) : 0;
}

static int metric_begin(struct file *f, const char *name, int line, struct err *err)
{
	struct benchmark *b = &f->b;

	if (!is_name(name))
		return err_set(err, EINVAL,
			"%s:%d: \"%s\" cannot be a metric's name (letters, digits, _ . - + %% /)",
			f->where, line, name);
	if (b->n_metrics >= METRICS_MAX)
		return err_set(
			err, EINVAL, "%s:%d: more than %d metrics", f->where, line, METRICS_MAX);
	for (size_t i = 0; i < b->n_metrics; i++)
		if (strcmp(b->metrics[i].name, name) == 0)
			return err_set(
				err, EINVAL, "%s:%d: a second [metric %s]", f->where, line, name);
	b->metrics = xreallocarray(b->metrics, b->n_metrics + 1, sizeof(*b->metrics));
	b->metrics[b->n_metrics++] = (struct benchmark_metric){.name = xstrdup(name)};
	conf_defaults(benchmark_metric_keys, last_metric(f));
	f->keys = benchmark_metric_keys;
	return 0;
}

static int section_begin(struct file *f, const char *section, int line, struct err *err)
{
	int r = section_end(f, err);

	if (r < 0)
		return r;
	memset(f->seen, 0, sizeof(f->seen));
	f->line = line;
	if (strncmp(section, METRIC, strlen(METRIC)) == 0)
		return metric_begin(f, section + strlen(METRIC), line, err);
	if (strcmp(section, "benchmark") != 0)
		return err_set(err, EINVAL,
			"%s:%d: unknown section [%s]; known are: [benchmark], [metric NAME]",
			f->where, line, section);
	if (f->n_benchmark++)
		return err_set(err, EINVAL, "%s:%d: a second [benchmark]", f->where, line);
	f->keys = benchmark_keys;
	return 0;
}

static int one_key(void *arg, const char *section, const char *name, const char *value, int line,
	struct err *err)
{
	struct file *f = arg;
	void *dst;

	if (!name)
		return section_begin(f, section, line, err);
	if (!f->keys)
		return err_set(err, EINVAL, "%s:%d: \"%s\" stands before any section", f->where,
			line, name);
	for (int i = 0; f->keys[i].name; i++) {
		if (strcmp(f->keys[i].name, name) != 0)
			continue;
		if (f->seen[i])
			return err_set(err, EINVAL, "%s:%d: \"%s\" was given already in line %d",
				f->where, line, name, f->seen[i]);
		f->seen[i] = line;
	}
	dst = f->keys == benchmark_keys ? (void *)f : (void *)last_metric(f);
	return conf_set(f->keys, dst, f->keys[0].section, name, value, f->where, line, NULL, err);
}

/* Words separated by white space, NULL-terminated. */
static char **split_words(const char *text)
{
	char **words = NULL;
	size_t n = 0, cap = 0;

	for (;;) {
		size_t len;

		while (isspace((unsigned char)*text))
			text++;
		ALLOC_GROW(words, n, cap);
		words[n] = NULL;
		if (!*text)
			return words;
		len = strcspn(text, " \t\r\n\v\f");
		words[n++] = xstrndup(text, len);
		text += len;
	}
}

void benchmark_names_free(char **names)
{
	for (char **p = names; p && *p; p++)
		free(*p);
	free(names);
}

static int parse_status(struct file *f, struct err *err)
{
	cleanup(benchmark_names_free) char **words = split_words(f->status);
	size_t n = 0;

	while (words[n])
		n++;
	f->b.status = xcalloc(n, sizeof(*f->b.status));
	for (size_t i = 0; i < n; i++) {
		char *end;
		long v = strtol(words[i], &end, 10);

		if (*end || v < 0 || v > 255)
			return err_set(err, EINVAL,
				"%s: status: expected exit statuses from 0 to 255, found \"%s\"",
				f->where, words[i]);
		f->b.status[f->b.n_status++] = (int)v;
	}
	return 0;
}

static int file_finish(struct file *f, struct err *err)
{
	int r = section_end(f, err);

	if (r == 0)
		r = conf_check(benchmark_keys, f, f->where, err);
	if (r == 0)
		r = parse_status(f, err);
	if (r < 0)
		return r;
	if (!f->b.n_metrics)
		return err_set(err, EINVAL, "%s: there is no [metric NAME] section", f->where);
	f->b.programs = split_words(f->programs ? f->programs : "");
	return 0;
}

int benchmark_parse(const char *text, size_t len, const char *name, const char *where,
	struct benchmark *ret, struct err *err)
{
	struct file f = {.where = where};
	int r;

	conf_defaults(benchmark_keys, &f);
	f.b.name = xstrdup(name);
	r = ini_read(text, len, where, one_key, &f, err);
	if (r == 0)
		r = file_finish(&f, err);
	free(f.programs);
	free(f.status);
	if (r < 0)
		benchmark_release(&f.b);
	else
		*ret = f.b;
	return r;
}

void benchmark_release(struct benchmark *b)
{
	for (size_t i = 0; i < b->n_metrics; i++) {
		struct benchmark_metric *m = &b->metrics[i];

		free(m->name);
		free(m->unit);
		free(m->description);
		parse_spec_release(&m->parse);
	}
	free(b->metrics);
	benchmark_names_free(b->programs);
	free(b->status);
	free(b->name);
	free(b->description);
	free(b->command);
	free(b->args);
	free(b->setup);
	free(b->teardown);
	*b = (struct benchmark){0};
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int benchmark_list(const char *dir, char ***ret, struct err *err)
{
	cleanup(closedir) DIR *d = opendir(dir);
	char **names = NULL;
	size_t n = 0, cap = 0;
	struct dirent *e;

	if (!d)
		return err_sys(err, errno, "cannot open the benchmarks' folder %s", dir);
	while ((e = readdir(d))) {
		size_t len = strlen(e->d_name);

		if (len <= strlen(SUFFIX) ||
			strcmp(e->d_name + len - strlen(SUFFIX), SUFFIX) != 0 ||
			e->d_name[0] == '.')
			continue;
		ALLOC_GROW(names, n, cap);
		names[n++] = xstrndup(e->d_name, len - strlen(SUFFIX));
	}
	if (n)
		qsort(names, n, sizeof(*names), compare_names);
	ALLOC_GROW(names, n, cap);
	names[n] = NULL;
	*ret = names;
	return 0;
}

/* "no such benchmark; there are: a, b" */
static int no_such(const char *dir, const char *name, struct err *err)
{
	cleanup(benchmark_names_free) char **names = NULL;
	cleanup(buf_release) struct buf list = BUF_INIT;
	int r = benchmark_list(dir, &names, err);

	if (r < 0)
		return r;
	for (char **p = names; *p; p++)
		buf_addf(&list, "%s%s", list.len ? ", " : "", *p);
	return err_set(err, ENOENT, "no benchmark is named \"%s\"; %s%s", name,
		list.len ? "there are: " : "there is none in ", list.len ? list.data : dir);
}

int benchmark_load(const char *dir, const char *name, struct buf *ret_text, struct benchmark *ret,
	struct err *err)
{
	cleanup(free) char *path = xasprintf("%s/%s" SUFFIX, dir, name);
	cleanup(buf_release) struct buf text = BUF_INIT;
	int r;

	if (!is_name(name) || strchr(name, '/'))
		return err_set(err, EINVAL, "\"%s\" cannot be a benchmark's name", name);
	r = file_read(path, FILE_MAX, &text, err);
	if (r == -ENOENT)
		return no_such(dir, name, err);
	if (r == 0)
		r = benchmark_parse(buf_str(&text), text.len, name, path, ret, err);
	if (r == 0 && ret_text)
		buf_add(ret_text, buf_str(&text), text.len);
	return r;
}

int benchmark_command(const struct benchmark *b, const char *args, char **ret, struct err *err)
{
	const char *p = b->command, *hit = strstr(p, ARGS);
	struct buf out = BUF_INIT;

	if (args && !hit)
		return err_set(err, EINVAL, "benchmark %s takes no args", b->name);
	if (!args)
		args = b->args;
	if (hit && !args)
		return err_set(err, EINVAL, "benchmark %s needs args", b->name);
	for (; hit; hit = strstr(p, ARGS)) {
		buf_add(&out, p, (size_t)(hit - p));
		buf_adds(&out, args);
		p = hit + strlen(ARGS);
	}
	buf_adds(&out, p);
	*ret = buf_detach(&out);
	return 0;
}

int benchmark_metric(
	const struct benchmark *b, const char *name, size_t *ret_index, struct err *err)
{
	cleanup(buf_release) struct buf list = BUF_INIT;

	for (size_t i = 0; i < b->n_metrics; i++) {
		if (!name || strcmp(b->metrics[i].name, name) == 0) {
			*ret_index = i;
			return 0;
		}
		buf_addf(&list, "%s%s", i ? ", " : "", b->metrics[i].name);
	}
	return err_set(err, ENOENT, "benchmark %s has no metric \"%s\"; there are: %s", b->name,
		name, buf_str(&list));
}

int benchmark_status_ok(const struct benchmark *b, int status)
{
	for (size_t i = 0; i < b->n_status; i++)
		if (b->status[i] == status)
			return 1;
	return 0;
}

/* Put what the benchmark printed behind the error, for a person to see why. */
static int show_output(const char *metric, const char *output, size_t len, struct err *err)
{
	cleanup(buf_release) struct buf shown = BUF_INIT;
	struct err cause = {0};

	if (!err)
		return 0;
	cause = *err;
	buf_add_excerpt(&shown, output, len, EXCERPT);
	return err_set(err, cause.code, "metric \"%s\": %s; the benchmark printed%s%s", metric,
		cause.msg, shown.len ? ": " : " nothing", buf_str(&shown));
}

int benchmark_extract(const struct benchmark *b, size_t chosen, const char *output, size_t len,
	struct parse_value *ret, struct err *err)
{
	struct parse_value *values = xcalloc(b->n_metrics, sizeof(*values));
	int r = 0;

	for (size_t i = 0; r == 0 && i < b->n_metrics; i++) {
		struct err *e = i == chosen ? err : NULL;
		int one = parse_output(&b->metrics[i].parse, output, len, &values[i], e);

		if (one < 0 && i == chosen) {
			show_output(b->metrics[i].name, output, len, err);
			r = one;
		}
	}
	if (r == 0)
		memcpy(ret, values, b->n_metrics * sizeof(*values));
	else
		benchmark_values_release(values, b->n_metrics);
	free(values);
	return r;
}

void benchmark_values_release(struct parse_value *values, size_t n)
{
	for (size_t i = 0; i < n; i++)
		parse_value_release(&values[i]);
}
