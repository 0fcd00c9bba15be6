#ifndef BASE_HASH_H
#define BASE_HASH_H

/*
 * SHA-256 over parts, for store keys and image identity. Each part is preceded by its length, so
 * ("ab", "c") and ("a", "bc") differ. hash_final writes 64 hex digits and frees the state.
 */

#include <stddef.h>

#include "base/err.h"

#define HASH_HEX_SIZE 65

struct hash;

struct hash *hash_new(void);
void hash_part(struct hash *hash, const void *data, size_t len);
void hash_part_str(struct hash *hash, const char *s);
void hash_final(struct hash *hash, char ret_hex[static HASH_HEX_SIZE]);

/* SHA-256 of a file's bytes alone (what sha256sum prints). */
int hash_file(const char *path, char ret_hex[static HASH_HEX_SIZE], struct err *err);

#endif
