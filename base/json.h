#ifndef BASE_JSON_H
#define BASE_JSON_H

/*
 * jansson with errors in our form. Getters leave *ret untouched on failure and say which key was
 * missing or of the wrong type; json_opt_* give a default for a missing key. Strings are borrowed
 * from the object. The `cleanup(json_decref) json_t *` form is available.
 */

#include <jansson.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

DEFINE_CLEANUP(json_decref, json_t *);

/* Parse one JSON text. *ret is a new reference. */
int json_parse(const char *text, size_t len, json_t **ret, struct err *err);

int json_get_str(const json_t *obj, const char *key, const char **ret, struct err *err);
int json_get_int(const json_t *obj, const char *key, int64_t *ret, struct err *err);
int json_get_obj(const json_t *obj, const char *key, json_t **ret, struct err *err);
int json_get_arr(const json_t *obj, const char *key, json_t **ret, struct err *err);

const char *json_opt_str(const json_t *obj, const char *key, const char *def);
int64_t json_opt_int(const json_t *obj, const char *key, int64_t def);
double json_opt_real(const json_t *obj, const char *key, double def);
int json_opt_bool(const json_t *obj, const char *key, int def);

/* A string value from bytes that need not be UTF-8: what is not becomes U+FFFD. NULL gives null. */
json_t *json_text(const char *s);

/* obj[key] = value for every kind of value; a NULL string sets nothing. */
void json_set_str(json_t *obj, const char *key, const char *value);
void json_set_int(json_t *obj, const char *key, int64_t value);
void json_set_real(json_t *obj, const char *key, double value);
void json_set_bool(json_t *obj, const char *key, int value);

/* Compact one-line text. Free it. */
char *json_line(const json_t *json);

#endif
