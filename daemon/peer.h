#ifndef DAEMON_PEER_H
#define DAEMON_PEER_H

/*
 * Who is at the other end of a Unix socket, and what that person may do. Looks users and groups up
 * through the C library, so it may block as long as that does: once for each connection.
 */

#include "daemon/control.h"

/* uid, gid and pid from the socket itself. */
int peer_identify(int fd, struct control_peer *ret, struct err *err);

/*
 * Set member and admin. Root and the daemon's own user are both. An administrator is a member, too.
 * The user's groups are those of the group database and the one that the process runs under.
 * group and admins may be NULL; a group that does not exist has no members.
 */
void peer_judge(struct control_peer *peer, const char *group, const char *admins);

/* -ENOENT with a sentence when there is no such group. */
int peer_group(const char *name, gid_t *ret, struct err *err);

#endif
