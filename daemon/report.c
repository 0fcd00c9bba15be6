#include "daemon/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "bisect/stats.h"
#include "daemon/record.h"
#include "db/event.h"
#include "base/banned.h"

static json_t *parse_summary(const struct view *view)
{
	json_t *summary = NULL;

	if (view->job.summary)
		json_parse(view->job.summary, strlen(view->job.summary), &summary, NULL);
	return summary;
}

const struct view_commit *report_culprit(const struct view *view, const json_t *summary)
{
	const char *id = json_opt_str(json_object_get(summary, "culprit"), "id", NULL);

	return id ? view_find(view, id) : NULL;
}

const struct view_commit *report_last_good(const struct view *view, const json_t *summary)
{
	json_t *parents = json_object_get(json_object_get(summary, "culprit"), "parents"), *parent;
	size_t i;

	json_array_foreach (parents, i, parent) {
		const char *id = json_opt_str(parent, "id", "");
		const struct view_commit *c = view_find(view, id);

		if (c && c->n)
			return c;
	}
	return NULL;
}

/* What is compared in the first sentence: parent and culprit where measured, else the ends. */
static void compared(const struct view *view, const json_t *summary,
	const struct view_commit **ret_before, const struct view_commit **ret_after)
{
	*ret_before = report_last_good(view, summary);
	*ret_after = report_culprit(view, summary);
	if (!*ret_before || !(*ret_before)->n)
		*ret_before = &view->commits[0];
	if (!*ret_after || !(*ret_after)->n)
		*ret_after = &view->commits[1];
}

/* ": time rises from 4.83 s to 6.08 s (+25.9%, 95% interval +25.1% to +26.7%)" */
static void add_effect(const struct view *view, const json_t *summary, struct buf *out)
{
	const struct view_commit *before, *after;
	struct stats_welch w;
	double a, b;

	if (view->n_commits < 2)
		return;
	compared(view, summary, &before, &after);
	if (!before->n || !after->n)
		return;
	a = stats_median(before->values, before->n);
	b = stats_median(after->values, after->n);
	stats_welch(before->values, before->n, after->values, after->n, 0.95, &w);
	buf_addf(out, ": %s %s from %.4g to %.4g %s", view->metric, b > a ? "rises" : "falls", a, b,
		view->unit);
	if (a != 0)
		buf_addf(out, " (%+.1f%%", 100 * (b - a) / fabs(a));
	if (a != 0 && isfinite(w.low) && w.df > 0)
		buf_addf(out, ", 95%% interval %+.1f%% to %+.1f%%", 100 * w.low / fabs(a),
			100 * w.high / fabs(a));
	buf_adds(out, a != 0 ? ")" : "");
}

/* How near the closest verdict was to the threshold, in units of the scatter between boots. */
static void add_certainty(const struct view *view, struct buf *out)
{
	const struct view_commit *closest = NULL;
	double least = INFINITY;
	size_t boots = SIZE_MAX;

	for (size_t i = 0; i < view->n_commits; i++) {
		const struct view_commit *c = &view->commits[i];
		double sd, margin;

		if (!c->n || (c->verdict != VERDICT_GOOD && c->verdict != VERDICT_BAD))
			continue;
		if (c->n < boots)
			boots = c->n;
		sd = stats_sd(c->values, c->n);
		margin = fabs(stats_median(c->values, c->n) - view->threshold);
		margin = sd > 0 ? margin / sd : INFINITY;
		if (margin < least) {
			least = margin;
			closest = c;
		}
	}
	if (boots == SIZE_MAX || !isfinite(view->threshold))
		return;
	buf_addf(out, "Every verdict rests on at least %zu fresh boots", boots);
	if (closest)
		buf_addf(out, "; the closest call is %s, its median %.3g sd from the threshold",
			closest->row->label, least);
	buf_adds(out, ".\n");
}

char *report_headline(const struct view *view)
{
	cleanup(buf_release) struct buf out = BUF_INIT;
	cleanup(json_decref) json_t *summary = parse_summary(view);
	const char *reason = view->job.reason ? view->job.reason : "still running";

	buf_adds(&out, reason);
	if (view->job.result && strcmp(view->job.result, "not-reproducible") != 0)
		add_effect(view, summary, &out);
	return buf_detach(&out);
}

/* A long sentence as lines of at most 76 columns. */
static void add_wrapped(const char *text, struct buf *out)
{
	size_t column = 0;

	while (*text) {
		size_t len = strcspn(text, " \n");

		if (column && column + 1 + len > 76) {
			buf_addc(out, '\n');
			column = 0;
		} else if (column) {
			buf_addc(out, ' ');
			column++;
		}
		buf_add(out, text, len);
		column += len;
		text += len;
		text += strspn(text, " \n");
	}
	buf_addc(out, '\n');
}

static void add_heading(const char *title, struct buf *out)
{
	buf_addf(out, "\n%s\n", title);
	for (size_t i = strlen(title); i > 0; i--)
		buf_addc(out, '-');
	buf_adds(out, "\n\n");
}

static void add_indented(const char *text, struct buf *out)
{
	while (*text) {
		size_t len = strcspn(text, "\n");

		buf_addf(out, len ? "    %.*s\n" : "\n", (int)len, text);
		text += len;
		text += *text == '\n';
	}
}

static void add_culprit(const json_t *summary, struct buf *out)
{
	const json_t *c = json_object_get(summary, "culprit");
	cleanup(free) char *date = NULL;

	if (!c)
		return;
	add_heading("The commit", out);
	date = record_date(json_opt_int(c, "date", 0) * 1000);
	buf_addf(out, "commit %s\nAuthor: %s\nDate:   %s\n\n", json_opt_str(c, "id", ""),
		json_opt_str(c, "author", "unknown"), date);
	buf_addf(out, "    %s\n\n", json_opt_str(c, "subject", ""));
	add_indented(json_opt_str(c, "body", ""), out);
	buf_addf(out, "\n%s\n", json_opt_str(c, "diffstat", ""));
}

/* The commits that skips left, each with the reason why it could not be tested. */
static void add_set(const struct view *view, const json_t *summary, struct buf *out)
{
	json_t *set = json_object_get(summary, "set"), *one;
	size_t i;

	if (!json_array_size(set))
		return;
	add_heading("The commits that are left, oldest first", out);
	json_array_foreach (set, i, one) {
		const struct view_commit *c = view_find(view, json_opt_str(one, "id", ""));

		buf_addf(out, "%s %s\n", json_opt_str(one, "label", "?"),
			json_opt_str(one, "subject", ""));
		if (c)
			buf_addf(out, "    %s%s%s\n", verdict_name(c->verdict),
				*c->reason ? ": " : "", c->reason);
	}
}

static int add_log_line(void *arg, const struct db_event *event)
{
	if (strcmp(event->kind, "run") == 0)
		buf_addf(arg, "%s\n", event->text);
	else if (strcmp(event->kind, "note") == 0 || strcmp(event->kind, "verdict") == 0)
		buf_addf(arg, "# %s\n", event->text);
	return 0;
}

static void add_log(struct db *db, const struct view *view, struct buf *out)
{
	struct err err = {0};

	add_heading("Log", out);
	if (db_event_list(db, view->job.id, 0, add_log_line, out, &err) < 0)
		buf_addf(out, "(cannot be read: %s)\n", err.msg);
}

/* "Intel(R) Xeon(R) ..." as /proc/cpuinfo has it. Free it. */
static char *cpu_model(void)
{
	cleanup(buf_release) struct buf text = BUF_INIT;
	const char *p;

	if (file_read("/proc/cpuinfo", 8 << 20, &text, NULL) < 0)
		return xstrdup("unknown CPU");
	p = strstr(buf_str(&text), "model name");
	p = p ? strchr(p, ':') : NULL;
	return p ? xstrndup(p + 2, strcspn(p + 2, "\n")) : xstrdup("unknown CPU");
}

static const char *timing_words(const char *timing)
{
	if (strcmp(timing, "virtual") == 0)
		return "virtual time: the guest's clock counts the instructions of one CPU, so "
		       "caches,\n"
		       "  power states and real parallelism are not in the numbers";
	return "wall time: the guest's clock is real time";
}

static void add_machine(const struct view *view, struct buf *out)
{
	cleanup(free) char *cpu = cpu_model();
	const struct db_run *last = NULL;
	struct utsname uts;

	for (size_t i = 0; i < view->n_runs; i++)
		if (view->runs[i].accel && view->runs[i].timing)
			last = &view->runs[i];
	uname(&uts);
	add_heading("Machine and settings", out);
	buf_addf(out, "- host %s: %s, Linux %s\n", view->job.host, cpu, uts.release);
	buf_addf(out, "- guest: %lld CPU, %lld MiB", (long long)view->spec.cpus,
		(long long)(view->spec.memory >> 20));
	if (last)
		buf_addf(out, ", accel = %s\n- %s", last->accel, timing_words(last->timing));
	buf_adds(out, "\n");
}

static void add_kernel(const struct view *view, struct buf *out)
{
	const json_t *config = json_object_get(view->facts, "config");
	const struct view_commit *bad = view->n_commits > 1 ? &view->commits[1] : NULL;

	buf_addf(out, "- kernel configuration: %s%s%s, built with %s\n",
		json_opt_str(config, "name", view->spec.config),
		view->spec.fragments ? " plus " : "",
		view->spec.fragments ? view->spec.fragments : "", view->spec.cc);
	if (bad && bad->row->kernel) {
		const char *slash = strrchr(bad->row->kernel, '/');

		buf_addf(out, "- the bad end's whole .config: %.*s/config\n",
			(int)(slash - bad->row->kernel), bad->row->kernel);
	}
}

static void add_reproduce(const struct view *view, struct buf *out)
{
	cleanup(free) char *git = report_git_log(view);

	add_heading("How to reproduce", out);
	buf_addf(out,
		"Submit this job again (kbctl submit FILE), or replay the verdicts in %s\n"
		"with git bisect replay.\n\n",
		view->spec.repo);
	add_indented(view->job.text, out);
	buf_addc(out, '\n');
	add_indented(git, out);
}

char *report_text(const struct config *config, struct db *db, const struct view *view)
{
	cleanup(buf_release) struct buf out = BUF_INIT;
	cleanup(json_decref) json_t *summary = parse_summary(view);
	cleanup(free) char *headline = report_headline(view);
	cleanup(free) char *took = NULL;

	(void)config;
	headline[0] =
		(char)(headline[0] >= 'a' && headline[0] <= 'z' ? headline[0] - 32 : headline[0]);
	add_wrapped(headline, &out);
	buf_addc(&out, '\n');
	add_certainty(view, &out);
	if (view->job.ended) {
		took = record_duration(view->job.ended - view->job.started);
		buf_addf(&out, "Job %lld (%s), %lld boots of %zu commits in %s.\n",
			(long long)view->job.id, view->spec.name, (long long)view->boots,
			view->n_commits, took);
	}
	add_culprit(summary, &out);
	add_set(view, summary, &out);
	if (view->n_commits >= 2 && view->commits[0].n) {
		add_heading("Numbers", &out);
		report_numbers(view, &out);
	}
	add_log(db, view, &out);
	add_machine(view, &out);
	add_kernel(view, &out);
	add_reproduce(view, &out);
	return buf_detach(&out);
}

char *report_git_log(const struct view *view)
{
	static const char *const words[] = {
		[VERDICT_NONE] = NULL,
		[VERDICT_GOOD] = "good",
		[VERDICT_BAD] = "bad",
		[VERDICT_SKIP] = "skip",
		[VERDICT_UNSURE] = "skip",
	};
	cleanup(buf_release) struct buf out = BUF_INIT;
	cleanup(json_decref) json_t *summary = parse_summary(view);
	const json_t *culprit = json_object_get(summary, "culprit");

	buf_adds(&out, "git bisect start\n");
	for (size_t k = 0; k < view->n_commits; k++) {
		/* git wants the bad end first. */
		size_t i = k < 2 ? 1 - k : k;
		const struct view_commit *c = &view->commits[i < view->n_commits ? i : k];
		const char *word = words[c->verdict];

		if (word)
			buf_addf(&out, "# %s: [%s] %s\ngit bisect %s %s\n", word, c->row->sha,
				c->row->subject ? c->row->subject : "", word, c->row->sha);
	}
	if (culprit)
		buf_addf(&out, "# first bad commit: [%s] %s\n", json_opt_str(culprit, "id", ""),
			json_opt_str(culprit, "subject", ""));
	return buf_detach(&out);
}

/* "[kbisectd] ebizzy: culprit 3d97ea08 (\"x86 idle: ...\")" */
static char *mail_subject(const struct view *view)
{
	cleanup(json_decref) json_t *summary = parse_summary(view);
	const json_t *culprit = json_object_get(summary, "culprit");

	if (culprit)
		return xasprintf("[kbisectd] %s: culprit %s (\"%s\")", view->spec.name,
			json_opt_str(culprit, "label", "?"), json_opt_str(culprit, "subject", ""));
	if (view->job.result && strcmp(view->job.result, "set") == 0)
		return xasprintf("[kbisectd] %s: culprit is one of %zu commits", view->spec.name,
			json_array_size(json_object_get(summary, "set")));
	if (view->job.result && strcmp(view->job.result, "not-reproducible") == 0)
		return xasprintf("[kbisectd] %s: not reproducible", view->spec.name);
	return xasprintf("[kbisectd] %s: %s", view->spec.name,
		view->job.result ? view->job.result : db_job_state_name(view->job.state));
}

/* The addresses of a comma-separated list, commas inside quotes left alone. */
static json_t *split_addresses(const char *list)
{
	json_t *array = json_array();
	const char *start = list;
	int quoted = 0;

	for (const char *p = list;; p++) {
		if (*p == '"')
			quoted = !quoted;
		if (*p && (*p != ',' || quoted))
			continue;
		cleanup(free) char *one = xstrndup(start, (size_t)(p - start));

		if (one[strspn(one, " \t")])
			json_array_append_new(array, json_text(one + strspn(one, " \t")));
		if (!*p)
			return array;
		start = p + 1;
	}
}

json_t *report_mail(const struct config *config, struct db *db, const struct view *view)
{
	cleanup(free) char *body = report_text(config, db, view);
	cleanup(free) char *subject = mail_subject(view);
	cleanup(free) char *from = config->from ? xstrdup(config->from)
						: xasprintf("kbisectd <kbisectd@%s>", config->host);
	/* Unique: the job's end time tells two ends of one job (after a retry) apart. */
	cleanup(free) char *id = xasprintf("<kbisectd.job%lld.%lld@%s>", (long long)view->job.id,
		(long long)view->job.ended, config->host);
	json_t *mail = json_object();

	json_set_str(mail, "from", from);
	json_object_set_new(mail, "to", split_addresses(view->spec.mail));
	json_set_str(mail, "subject", subject);
	json_set_str(mail, "body", body);
	json_set_str(mail, "message_id", id);
	json_set_str(mail, "in_reply_to", view->spec.in_reply_to);
	json_set_int(mail, "date", clock_wall_ms() / 1000);
	return mail;
}
