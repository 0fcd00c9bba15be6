#ifndef BASE_SD_H
#define BASE_SD_H

/*
 * The two things a service says to and hears from systemd: the listening socket that came with the
 * process, and its state. Both are a few lines over documented variables (sd_listen_fds(3),
 * sd_notify(3)), so no library is mapped for them. Without systemd both do nothing.
 */

#include "base/err.h"

/*
 * The socket passed to this process (LISTEN_PID, LISTEN_FDS), close-on-exec from now on, or -1
 * when there is none. -EINVAL when there are several or the variables make no sense. The variables
 * are removed, so that no child takes them for its own. The caller owns the descriptor.
 */
int sd_listen_socket(struct err *err);

/*
 * Send a state such as "READY=1" to NOTIFY_SOCKET. 1 = sent, 0 = nobody wants to know, else
 * -errno. Does not block: a manager that does not read is not waited for.
 */
int sd_notify_send(const char *state);

#endif
