#include "client/format.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/banned.h"

#define SECOND 1000LL
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)

char *format_duration(int64_t ms)
{
	if (ms < 0)
		ms = 0;
	if (ms < SECOND)
		return xasprintf("%.1f s", (double)ms / 1000);
	if (ms < 2 * MINUTE)
		return xasprintf("%lld s", (long long)(ms / SECOND));
	if (ms < HOUR)
		return xasprintf("%lld min", (long long)(ms / MINUTE));
	if (ms < DAY)
		return xasprintf("%lld h %02lld min", (long long)(ms / HOUR),
			(long long)(ms % HOUR / MINUTE));
	return xasprintf("%lld d %02lld h", (long long)(ms / DAY), (long long)(ms % DAY / HOUR));
}

static char *local_time(int64_t at, const char *format)
{
	time_t t = (time_t)(at / SECOND);
	struct tm tm;
	char text[64];

	if (at <= 0 || !localtime_r(&t, &tm))
		return xstrdup("-");
	if (!strftime(text, sizeof(text), format, &tm))
		return xstrdup("-");
	return xstrdup(text);
}

char *format_ago(int64_t at, int64_t now)
{
	cleanup(free) char *duration = NULL;
	int64_t ago = now - at;

	if (at <= 0 || ago >= 7 * DAY)
		return local_time(at, "%Y-%m-%d");
	if (ago < 2 * SECOND)
		return xstrdup("now");
	if (ago >= DAY)
		return xasprintf("%lld d ago", (long long)(ago / DAY));
	if (ago >= HOUR)
		return xasprintf("%lld h ago", (long long)(ago / HOUR));
	duration = format_duration(ago);
	return xasprintf("%s ago", duration);
}

char *format_time(int64_t at)
{
	return local_time(at, "%Y-%m-%d %H:%M:%S");
}

char *format_value(const json_t *value)
{
	if (json_is_string(value))
		return xstrdup(json_string_value(value));
	if (json_is_integer(value))
		return xasprintf("%lld", (long long)json_integer_value(value));
	if (json_is_real(value))
		return xasprintf("%.6g", json_real_value(value));
	return xstrdup("-");
}

int format_parse_id(const char *text, int64_t *ret)
{
	int64_t id;
	char *end;

	if (!*text || strspn(text, "0123456789") != strlen(text))
		return -EINVAL;
	errno = 0;
	id = strtoll(text, &end, 10);
	if (errno || id <= 0)
		return -EINVAL;
	*ret = id;
	return 0;
}
