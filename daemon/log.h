#ifndef DAEMON_LOG_H
#define DAEMON_LOG_H

/* The daemon's own log: one line an event on stderr, with the <level> prefix that journald reads.
 */

#include <syslog.h>

void log_line(int level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
