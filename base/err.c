#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/banned.h"

int err_set(struct err *err, int code, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return -code;
	err->code = code;
	va_start(ap, fmt);
	vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	return -code;
}

int err_sys(struct err *err, int code, const char *fmt, ...)
{
	va_list ap;
	size_t len;

	if (!err)
		return -code;
	err->code = code;
	va_start(ap, fmt);
	vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	len = strlen(err->msg);
	snprintf(err->msg + len, sizeof(err->msg) - len, ": %s", strerror(code));
	return -code;
}

int err_wrap(struct err *err, const char *fmt, ...)
{
	char inner[ERR_MSG_MAX];
	va_list ap;
	size_t len;

	if (!err)
		return -1;
	memcpy(inner, err->msg, sizeof(inner));
	va_start(ap, fmt);
	vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	len = strlen(err->msg);
	snprintf(err->msg + len, sizeof(err->msg) - len, ": %s", inner);
	return err->code ? -err->code : -1;
}
