#ifndef BISECT_PLACE_H
#define BISECT_PLACE_H

/*
 * Files put into and removed from one folder, by names that a stranger chose. No name reaches
 * outside: `..`, `.git`, empty and absolute names are refused, and no component is ever followed
 * through a symbolic link. Whatever stands in the way of a new file or folder is removed.
 *
 * Life cycle: place_open, place_remove for everything that must go, then place_file and place_link,
 * place_close. The last folder used is kept open, so names in the order of a git tree are cheap.
 * Blocks on the disk; errors name the file.
 */

#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"

struct place;

/* The folder is made when it is missing. */
int place_open(const char *root, struct place **ret, struct err *err);

/* Remove a file or link, and the folders that this leaves empty. Absent is fine. */
int place_remove(struct place *place, const char *name, struct err *err);

/* A new file with a new time stamp, 0755 or 0644 before the umask. */
int place_file(struct place *place, const char *name, const void *data, size_t len, int executable,
	struct err *err);

/* A symbolic link; the target is not looked at. */
int place_link(struct place *place, const char *name, const char *target, struct err *err);

void place_close(struct place *place);

DEFINE_CLEANUP(place_close, struct place *);

#endif
