/* The part of a report that is numbers: the ends, the last good and the first bad, side by side. */
#include "daemon/report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bisect/stats.h"
#include "base/banned.h"

#define COLUMNS_MAX 4

struct column {
	const char *title;
	const struct view_commit *commit;
};

typedef void (*cell_fn)(
	const struct view *view, const struct view_commit *c, char *out, size_t size);

static void cell_commit(
	const struct view *view, const struct view_commit *c, char *out, size_t size)
{
	(void)view;
	snprintf(out, size, "%.14s", c->row->label);
}

static void cell_boots(const struct view *view, const struct view_commit *c, char *out, size_t size)
{
	(void)view;
	snprintf(out, size, "%zu", c->n);
}

static void cell_min(const struct view *view, const struct view_commit *c, char *out, size_t size)
{
	(void)view;
	snprintf(out, size, "%.6g", stats_min(c->values, c->n));
}

static void cell_median(
	const struct view *view, const struct view_commit *c, char *out, size_t size)
{
	(void)view;
	snprintf(out, size, "%.6g", stats_median(c->values, c->n));
}

static void cell_mean(const struct view *view, const struct view_commit *c, char *out, size_t size)
{
	(void)view;
	snprintf(out, size, "%.6g", stats_mean(c->values, c->n));
}

static void cell_sd(const struct view *view, const struct view_commit *c, char *out, size_t size)
{
	double mean = stats_mean(c->values, c->n), sd = stats_sd(c->values, c->n);

	(void)view;
	if (c->n < 2)
		snprintf(out, size, "-");
	else if (mean != 0)
		snprintf(out, size, "%.3g (%.1f%%)", sd, 100 * sd / fabs(mean));
	else
		snprintf(out, size, "%.3g", sd);
}

static void cell_max(const struct view *view, const struct view_commit *c, char *out, size_t size)
{
	(void)view;
	snprintf(out, size, "%.6g", stats_max(c->values, c->n));
}

static void cell_change(
	const struct view *view, const struct view_commit *c, char *out, size_t size)
{
	double good = stats_median(view->commits[0].values, view->commits[0].n);

	if (c == &view->commits[0] || good == 0)
		snprintf(out, size, "-");
	else
		snprintf(out, size, "%+.2f%%",
			100 * (stats_median(c->values, c->n) - good) / fabs(good));
}

static const struct {
	const char *name;
	cell_fn fn;
} rows[] = {
	{"commit", cell_commit},
	{"boots", cell_boots},
	{"min", cell_min},
	{"median", cell_median},
	{"mean", cell_mean},
	{"sd", cell_sd},
	{"max", cell_max},
	{"against good", cell_change},
};

/* Those of the four that were measured, without naming one commit twice. */
static size_t choose_columns(const struct view *view, const json_t *summary, struct column *ret)
{
	const struct column all[COLUMNS_MAX] = {
		{"good end", &view->commits[0]},
		{"last good", report_last_good(view, summary)},
		{"first bad", report_culprit(view, summary)},
		{"bad end", &view->commits[1]},
	};
	size_t n = 0;

	for (size_t i = 0; i < COLUMNS_MAX; i++) {
		int twice = (i == 1 && all[1].commit == all[0].commit) ||
			    (i == 2 && all[2].commit == all[3].commit);

		if (all[i].commit && all[i].commit->n && !twice)
			ret[n++] = all[i];
	}
	return n;
}

void report_numbers(const struct view *view, struct buf *out)
{
	cleanup(json_decref) json_t *summary = NULL;
	struct column columns[COLUMNS_MAX];
	char cell[64];
	size_t n;

	if (view->n_commits < 2 || !view->commits[0].n)
		return;
	if (view->job.summary)
		json_parse(view->job.summary, strlen(view->job.summary), &summary, NULL);
	n = choose_columns(view, summary, columns);
	buf_addf(out, "%s in %s, %s is better; one sample is one fresh boot\n\n", view->metric,
		*view->unit ? view->unit : "no unit", view->higher_better ? "higher" : "lower");
	buf_addf(out, "%-13s", "");
	for (size_t i = 0; i < n; i++)
		buf_addf(out, " %15s", columns[i].title);
	buf_addc(out, '\n');
	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		buf_addf(out, "%-13s", rows[r].name);
		for (size_t i = 0; i < n; i++) {
			rows[r].fn(view, columns[i].commit, cell, sizeof(cell));
			buf_addf(out, " %15s", cell);
		}
		buf_addc(out, '\n');
	}
	if (isfinite(view->threshold))
		buf_addf(out, "\nThreshold: %.6g\n", view->threshold);
}
