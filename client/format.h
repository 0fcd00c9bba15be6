#ifndef CLIENT_FORMAT_H
#define CLIENT_FORMAT_H

/* Times, durations and numbers as people read them. Pure; results are freed by the caller. */

#include <stdint.h>

#include "base/json.h"

/* "41 s", "12 min", "3 h 05 min", "2 d 04 h"; below a second "0.4 s". Negative counts as 0. */
char *format_duration(int64_t ms);

/* Unix ms as "3 min ago", seen from now; from a week on the date; "-" for 0. */
char *format_ago(int64_t at, int64_t now);

/* Unix ms as "2014-01-08 09:53:59" local time; "-" for 0. */
char *format_time(int64_t at);

/* A JSON string as it is, a number in its shortest form, "-" for null and everything else. */
char *format_value(const json_t *value);

/* A decimal id such as a job's number; -EINVAL, without a message, unless it is one above 0. */
int format_parse_id(const char *text, int64_t *ret);

#endif
