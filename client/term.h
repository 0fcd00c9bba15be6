#ifndef CLIENT_TERM_H
#define CLIENT_TERM_H

/*
 * Standard output as a person sees it: colours, a status line that is redrawn, and text from
 * elsewhere made safe to print. Colours and the status line exist only on a terminal; in a pipe or
 * a file nothing of them is ever written.
 */

#include "base/buf.h"

enum style {
	STYLE_PLAIN,
	STYLE_GOOD,
	STYLE_BAD,
	STYLE_SKIP,
	STYLE_UNSURE,
	STYLE_DIM,
	STYLE_BOLD,
};

struct term {
	int live;   /* a terminal that understands cursor movement: the status line */
	int colour; /* live, and NO_COLOR is not set */
	int status; /* a status line stands on the screen */
};

void term_init(struct term *term);

/* Columns to lay text out for: the terminal's, else COLUMNS, else 80; never below 40. */
int term_columns(void);

/* The style of a verdict, state, result or outcome, by its word. */
enum style term_style(const char *word);

/* Escape sequences to begin and end a style; "" without colours. */
const char *term_on(const struct term *term, enum style style);
const char *term_off(const struct term *term, enum style style);

/*
 * Append text with every character that could steer a terminal (C0, C1, DEL, direction overrides,
 * bytes that are not UTF-8) as \xNN or \uNNNN. keep_lines lets line feeds and tabs through.
 */
void term_clean(const char *text, int keep_lines, struct buf *out);

/* Columns that UTF-8 text takes, and the bytes of it that fit into so many columns. */
int term_width(const char *text);
size_t term_fit(const char *text, int columns);

/* Print cleaned text and a line feed; a status line on the screen gives way first. */
void term_line(struct term *term, enum style style, const char *text);

/* Draw the status line, or erase it. Cleans and cuts the text; nothing happens in a pipe. */
void term_status(struct term *term, const char *text);
void term_status_clear(struct term *term);

#endif
