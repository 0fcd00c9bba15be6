#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "boot/parse_formats.h"
#include "base/banned.h"

/*
 * CSV and header-row tables: rows of fields, told apart by how a line is split. A column is named
 * by its header, or numbered (#3), which needs no header.
 */

struct slice {
	const char *s;
	size_t len;
};

struct row {
	struct slice *fields;
	size_t n, cap;
};

/* A column that the spec names, and for a condition the value that its cell must have. */
struct ref {
	struct slice column, value;
	int is_ignore;
	size_t index; /* in a row; SIZE_MAX = header not seen yet */
};

struct grid {
	const struct parse_spec *spec;
	struct ref *refs; /* the first is the metric's own column */
	size_t n_refs, cap;
	size_t width; /* fields of the header row; 0 = none seen */
	int named;    /* a header is needed */
};

typedef void (*split_fn)(const char *line, size_t len, struct row *row);

static void grid_release(struct grid *grid)
{
	free(grid->refs);
}

static void cleanup_grid_release(struct grid *grid)
{
	grid_release(grid);
}

static void cleanup_row(struct row *row)
{
	free(row->fields);
}

static struct slice trim(const char *s, size_t len)
{
	while (len && isspace((unsigned char)s[0]))
		s++, len--;
	while (len && isspace((unsigned char)s[len - 1]))
		len--;
	return (struct slice){s, len};
}

static int same(struct slice a, struct slice b)
{
	return a.len == b.len && memcmp(a.s, b.s, a.len) == 0;
}

static void row_add(struct row *row, struct slice field)
{
	ALLOC_GROW(row->fields, row->n, row->cap);
	row->fields[row->n++] = field;
}

static void split_spaces(const char *line, size_t len, struct row *row)
{
	const char *end = line + len;

	for (;;) {
		const char *begin;

		while (line < end && isspace((unsigned char)*line))
			line++;
		if (line == end)
			return;
		begin = line;
		while (line < end && !isspace((unsigned char)*line))
			line++;
		row_add(row, (struct slice){begin, (size_t)(line - begin)});
	}
}

/* Commas; a field in double quotes may contain them. */
static void split_commas(const char *line, size_t len, struct row *row)
{
	const char *end = line + len;
	int quoted = 0;

	for (const char *begin = line; line <= end; line++) {
		struct slice f;

		if (line < end && *line == '"')
			quoted = !quoted;
		if (line < end && (*line != ',' || quoted))
			continue;
		f = trim(begin, (size_t)(line - begin));
		if (f.len >= 2 && f.s[0] == '"' && f.s[f.len - 1] == '"')
			f = (struct slice){f.s + 1, f.len - 2};
		row_add(row, f);
		begin = line + 1;
	}
}

/* "#3" is the third field; any other name waits for its header. */
static int grid_add(
	struct grid *grid, struct slice column, struct slice value, int is_ignore, struct err *err)
{
	struct ref ref = {column, value, is_ignore, SIZE_MAX};

	if (!column.len)
		return err_set(err, EINVAL, "a column's name is empty");
	if (column.s[0] == '#') {
		double n;

		if (parse_number(column.s + 1, column.len - 1, &n, NULL) < 0 || !(n >= 1) ||
			n > 10000 || n != (double)(size_t)n)
			return err_set(err, EINVAL, "\"%.*s\" is not a field's number",
				(int)column.len, column.s);
		ref.index = (size_t)n - 1;
	} else {
		grid->named = 1;
	}
	ALLOC_GROW(grid->refs, grid->n_refs, grid->cap);
	grid->refs[grid->n_refs++] = ref;
	return 0;
}

/* "tasks=4, cpu=-" */
static int grid_conditions(struct grid *grid, const char *text, int is_ignore, struct err *err)
{
	while (text) {
		const char *comma = strchrnul(text, ',');
		const char *eq = memchr(text, '=', (size_t)(comma - text));
		int r;

		if (!eq)
			return err_set(err, EINVAL, "expected COLUMN=VALUE, found \"%.*s\"",
				(int)(comma - text), text);
		r = grid_add(grid, trim(text, (size_t)(eq - text)),
			trim(eq + 1, (size_t)(comma - eq - 1)), is_ignore, err);
		if (r < 0)
			return r;
		text = *comma ? comma + 1 : NULL;
	}
	return 0;
}

static int grid_init(
	struct grid *grid, const struct parse_spec *spec, const char **ret_key, struct err *err)
{
	int r;

	*grid = (struct grid){.spec = spec};
	*ret_key = "column";
	if (!spec->column)
		return err_set(err, EINVAL, "a column is needed");
	r = grid_add(grid, trim(spec->column, strlen(spec->column)), (struct slice){"", 0}, 0, err);
	if (r < 0)
		return r;
	*ret_key = "row";
	r = grid_conditions(grid, spec->row, 0, err);
	if (r < 0)
		return r;
	*ret_key = "ignore";
	return grid_conditions(grid, spec->ignore, 1, err);
}

int parse_grid_check(struct parse_spec *spec, const char **ret_key, struct err *err)
{
	cleanup(grid_release) struct grid grid = {0};

	return grid_init(&grid, spec, ret_key, err);
}

/* A row with all the names is a header, also a repeated one. */
static int grid_header(struct grid *grid, const struct row *row)
{
	if (!grid->named)
		return 0;
	for (int store = 0; store <= 1; store++) {
		for (size_t i = 0; i < grid->n_refs; i++) {
			struct ref *ref = &grid->refs[i];
			size_t j = 0;

			if (ref->column.s[0] == '#')
				continue;
			while (j < row->n && !same(row->fields[j], ref->column))
				j++;
			if (j == row->n)
				return 0;
			if (store)
				ref->index = j;
		}
	}
	grid->width = row->n;
	return 1;
}

static int grid_selects(const struct grid *grid, const struct row *row)
{
	if (grid->named && (!grid->width || row->n > grid->width))
		return 0;
	for (size_t i = 0; i < grid->n_refs; i++) {
		const struct ref *ref = &grid->refs[i];

		if (ref->index >= row->n)
			return 0;
		if (i > 0 && same(row->fields[ref->index], ref->value) == ref->is_ignore)
			return 0;
	}
	return 1;
}

/*
 * A selected cell that is not a number is an error where the line must be a row: it is as wide as
 * the header, or a condition asked for it. Elsewhere it is other text between the rows.
 */
static int grid_row(
	struct grid *grid, const struct row *row, struct parse_list *list, struct err *err)
{
	const struct slice *cell;
	int must;

	if (grid_header(grid, row) || !grid_selects(grid, row))
		return 0;
	cell = &row->fields[grid->refs[0].index];
	must = grid->spec->row || row->n == grid->width;
	if (!must && parse_number(cell->s, cell->len, &(double){0}, NULL) < 0)
		return 0;
	return parse_list_add(list, cell->s, cell->len, err);
}

static int grid_collect(const struct parse_spec *spec, split_fn split, const char *text, size_t len,
	struct parse_list *list, struct err *err)
{
	cleanup(grid_release) struct grid grid = {0};
	cleanup(row) struct row row = {0};
	const char *line, *key;
	size_t n;
	int r = grid_init(&grid, spec, &key, err);

	while (r == 0 && parse_next_line(&text, &len, &line, &n)) {
		row.n = 0;
		split(line, n, &row);
		r = grid_row(&grid, &row, list, err);
	}
	if (r < 0)
		return r;
	if (!list->n && grid.named && !grid.width)
		return err_set(err, ENODATA, "no line names the column \"%s\"%s", spec->column,
			grid.n_refs > 1 ? " and those of row and ignore" : "");
	if (!list->n)
		return err_set(err, ENODATA, "no row with a number in column \"%s\"%s%s",
			spec->column, spec->row ? " and " : "", spec->row ? spec->row : "");
	return 0;
}

int parse_csv(const struct parse_spec *spec, const char *text, size_t len, struct parse_list *list,
	struct err *err)
{
	return grid_collect(spec, split_commas, text, len, list, err);
}

int parse_table(const struct parse_spec *spec, const char *text, size_t len,
	struct parse_list *list, struct err *err)
{
	return grid_collect(spec, split_spaces, text, len, list, err);
}
