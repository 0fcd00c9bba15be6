#ifndef CLIENT_TABLE_H
#define CLIENT_TABLE_H

/*
 * A table of text with aligned columns that fits a width: columns that may shrink are cut, with
 * "..." at the end, the widest first. Cells are cleaned (term_clean) as they come in.
 *
 * Life cycle: zero it with the columns set; table_cell for each cell, left to right; table_print;
 * table_release.
 */

#include <stddef.h>

#include "client/term.h"

struct table_column {
	const char *title; /* NULL ends the list */
	int right;	   /* align to the right */
	int shrink;	   /* may be cut down to so many columns; 0 = never */
};

struct table_cell {
	char *text;
	enum style style;
};

struct table {
	const struct table_column *columns;
	struct table_cell *cells;
	size_t n, cap;
};

/* Add the next cell; NULL counts as "-". */
void table_cell(struct table *table, enum style style, const char *text);
void table_cellf(struct table *table, enum style style, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Title line and rows to standard output. */
void table_print(const struct table *table, const struct term *term, int width);

void table_release(struct table *table);

static inline void cleanup_table_release(struct table *table)
{
	table_release(table);
}

#endif
