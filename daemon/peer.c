#include "daemon/peer.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/banned.h"

int peer_identify(int fd, struct control_peer *ret, struct err *err)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return err_sys(err, errno, "cannot learn who is at the other end");
	*ret = (struct control_peer){.uid = cred.uid, .gid = cred.gid, .pid = cred.pid};
	return 0;
}

int peer_group(const char *name, gid_t *ret, struct err *err)
{
	struct group *gr = getgrnam(name);

	if (!gr)
		return err_set(err, ENOENT, "there is no group \"%s\" on this machine", name);
	*ret = gr->gr_gid;
	return 0;
}

/* Is the user in the group by the group database? */
static int in_group(uid_t uid, gid_t gid)
{
	cleanup(free) gid_t *groups = NULL;
	cleanup(free) char *name = NULL;
	struct passwd *pw = getpwuid(uid);
	int n = 32, cap;
	gid_t own;

	if (!pw)
		return 0;
	name = xstrdup(pw->pw_name);
	own = pw->pw_gid;
	do {
		cap = n;
		groups = xreallocarray(groups, (size_t)cap, sizeof(*groups));
	} while (getgrouplist(name, own, groups, &n) < 0 && n > cap);
	for (int i = 0; i < n && i < cap; i++)
		if (groups[i] == gid)
			return 1;
	return 0;
}

/* Is the user one of the blank-separated names? By number, since two names may share one. */
static int is_named(uid_t uid, const char *names)
{
	while (*names) {
		size_t n = strcspn(names, " \t,");
		cleanup(free) char *name = xstrndup(names, n);
		struct passwd *pw = n ? getpwnam(name) : NULL;

		if (pw && pw->pw_uid == uid)
			return 1;
		names += n;
		names += strspn(names, " \t,");
	}
	return 0;
}

void peer_judge(struct control_peer *peer, const char *group, const char *admins)
{
	gid_t gid = (gid_t)-1;

	peer->admin =
		peer->uid == 0 || peer->uid == geteuid() || (admins && is_named(peer->uid, admins));
	peer->member = peer->admin;
	if (peer->member || !group || peer_group(group, &gid, NULL) < 0)
		return;
	peer->member = peer->gid == gid || in_group(peer->uid, gid);
}
