#include "client/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/banned.h"

#define TABLE_COLUMNS_MAX 16
#define TABLE_GAP 2

void table_cell(struct table *table, enum style style, const char *text)
{
	struct buf clean = BUF_INIT;

	term_clean(text ? text : "-", 0, &clean);
	ALLOC_GROW(table->cells, table->n, table->cap);
	table->cells[table->n++] = (struct table_cell){buf_detach(&clean), style};
}

void table_cellf(struct table *table, enum style style, const char *fmt, ...)
{
	cleanup(free) char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		abort();
	va_end(ap);
	table_cell(table, style, text);
}

/* Natural widths of the columns. Returns their number. */
static size_t measure(const struct table *table, int *widths)
{
	size_t n = 0;

	for (; table->columns[n].title && n < TABLE_COLUMNS_MAX; n++)
		widths[n] = term_width(table->columns[n].title);
	for (size_t i = 0; i < table->n; i++) {
		int w = term_width(table->cells[i].text);

		if (w > widths[i % n])
			widths[i % n] = w;
	}
	return n;
}

/* Take columns away from the widest that may shrink until all fit, or none is left to take from. */
static void shrink(const struct table *table, int *widths, size_t n, int width)
{
	int total = (int)(n - 1) * TABLE_GAP;

	for (size_t i = 0; i < n; i++)
		total += widths[i];
	while (total > width) {
		size_t widest = n;

		for (size_t i = 0; i < n; i++)
			if (table->columns[i].shrink && widths[i] > table->columns[i].shrink &&
				(widest == n || widths[i] > widths[widest]))
				widest = i;
		if (widest == n)
			return;
		widths[widest]--;
		total--;
	}
}

static void pad(int columns)
{
	if (columns > 0)
		printf("%*s", columns, "");
}

/* One cell, cut and aligned; the last one gets no blanks behind it. */
static void print_cell(const struct table_column *column, const struct table_cell *cell, int width,
	int last, const struct term *term)
{
	int natural = term_width(cell->text), cut = natural > width && width > 3;
	int len = cut ? (int)term_fit(cell->text, width - 3) : (int)strlen(cell->text);
	cleanup(free) char *text = xasprintf("%.*s%s", len, cell->text, cut ? "..." : "");
	int blank = width - term_width(text);

	if (column->right)
		pad(blank);
	printf("%s%s%s", term_on(term, cell->style), text, term_off(term, cell->style));
	if (!column->right && !last)
		pad(blank);
	if (last)
		putchar('\n');
	else
		pad(TABLE_GAP);
}

void table_print(const struct table *table, const struct term *term, int width)
{
	int widths[TABLE_COLUMNS_MAX];
	size_t n = measure(table, widths);

	shrink(table, widths, n, width);
	for (size_t i = 0; i < n; i++) {
		struct table_cell title = {(char *)table->columns[i].title, STYLE_BOLD};

		print_cell(&table->columns[i], &title, widths[i], i == n - 1, term);
	}
	for (size_t i = 0; i < table->n; i++)
		print_cell(&table->columns[i % n], &table->cells[i], widths[i % n], i % n == n - 1,
			term);
}

void table_release(struct table *table)
{
	for (size_t i = 0; i < table->n; i++)
		free(table->cells[i].text);
	free(table->cells);
	table->cells = NULL;
	table->n = table->cap = 0;
}
