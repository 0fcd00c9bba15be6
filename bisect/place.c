#include "bisect/place.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/banned.h"

#define OPEN_DIR (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

struct place {
	char *root;
	int root_fd;
	char *dir; /* the folder that dir_fd is, relative to root; NULL = none */
	int dir_fd;
	int thinned; /* something was removed from dir */
};

int place_open(const char *root, struct place **ret, struct err *err)
{
	struct place *place;
	int fd, r;

	r = file_mkdir(root, 0755, err);
	if (r < 0)
		return r;
	fd = open(root, OPEN_DIR);
	if (fd < 0)
		return err_sys(err, errno, "cannot open the folder %s", root);
	place = xcalloc(1, sizeof(*place));
	*place = (struct place){.root = xstrdup(root), .root_fd = fd, .dir_fd = -1};
	*ret = place;
	return 0;
}

/* Would this name stay inside the folder, and clear of what git itself refuses? */
static int name_check(const char *name, struct err *err)
{
	for (const char *p = name;; p++) {
		size_t n = strcspn(p, "/");

		if (n == 0 || (n == 1 && p[0] == '.') || (n == 2 && !memcmp(p, "..", 2)) ||
			(n == 4 && !strncasecmp(p, ".git", 4)) || n > NAME_MAX)
			return err_set(err, EINVAL,
				"the tree has a file of the dangerous name \"%s\"", name);
		p += n;
		if (!*p)
			return 0;
	}
}

/* Step from a folder into one below it; with `make`, whatever is not a folder gives way to one. */
static int enter(int parent, const char *name, int make)
{
	int fd = openat(parent, name, OPEN_DIR);

	if (fd >= 0 || !make)
		return fd;
	if ((errno == ENOTDIR || errno == ELOOP) && unlinkat(parent, name, 0) < 0)
		return -1;
	if (mkdirat(parent, name, 0777) < 0 && errno != EEXIST)
		return -1;
	return openat(parent, name, OPEN_DIR);
}

/* Open root/dir, component by component. */
static int walk(const struct place *place, const char *dir, int make)
{
	cleanup(free) char *copy = xstrdup(dir);
	int fd = fcntl(place->root_fd, F_DUPFD_CLOEXEC, 3);
	char *save = NULL;

	for (char *name = strtok_r(copy, "/", &save); name && fd >= 0;
		name = strtok_r(NULL, "/", &save)) {
		int next = enter(fd, name, make), code = errno;

		close(fd);
		errno = code;
		fd = next;
	}
	return fd;
}

/* Remove dir if it is empty, then its parent, and so on up to but not including the root. */
static void prune(const struct place *place, const char *dir)
{
	cleanup(free) char *path = xstrdup(dir);

	while (*path) {
		char *slash = strrchr(path, '/');
		cleanup(close) int fd = -1;
		const char *name = slash ? slash + 1 : path;

		if (slash)
			*slash = '\0';
		fd = slash ? walk(place, path, 0) : fcntl(place->root_fd, F_DUPFD_CLOEXEC, 3);
		/* One that is gone already was removed by a call that was then killed. */
		if ((fd >= 0 && unlinkat(fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT) || !slash)
			return;
	}
}

/* Forget the open folder. */
static void leave(struct place *place)
{
	if (place->dir_fd >= 0)
		close(place->dir_fd);
	place->dir_fd = -1;
	if (place->thinned)
		prune(place, place->dir);
	place->thinned = 0;
	free(steal(&place->dir));
}

/*
 * Make dir_fd the folder of the name, and *ret_base the name in it. -ENOENT, without a message,
 * when it is not there and not to be made.
 */
static int arrive(
	struct place *place, const char *name, int make, const char **ret_base, struct err *err)
{
	const char *slash = strrchr(name, '/');
	size_t len = slash ? (size_t)(slash - name) : 0;
	int r = name_check(name, err);

	if (r < 0)
		return r;
	*ret_base = slash ? slash + 1 : name;
	if (place->dir && strlen(place->dir) == len && !memcmp(place->dir, name, len))
		return 0;
	leave(place);
	place->dir = xstrndup(name, len);
	place->dir_fd = walk(place, place->dir, make);
	if (place->dir_fd >= 0)
		return 0;
	r = -errno;
	free(steal(&place->dir));
	if (!make && (r == -ENOENT || r == -ENOTDIR || r == -ELOOP))
		return -ENOENT;
	return err_sys(err, -r, "cannot open the folder of %s/%s", place->root, name);
}

int place_remove(struct place *place, const char *name, struct err *err)
{
	const char *base;
	int r = arrive(place, name, 0, &base, err);

	if (r == -ENOENT) {
		cleanup(free) char *dir = xstrndup(name, (size_t)(base - name - 1));

		prune(place, dir);
		return 0;
	}
	if (r < 0)
		return r;
	/* A folder in its place belongs to another tree, whose own files are removed by name. */
	if (unlinkat(place->dir_fd, base, 0) < 0 && errno != ENOENT && errno != EISDIR)
		return err_sys(err, errno, "cannot remove %s/%s", place->root, name);
	place->thinned = 1;
	return 0;
}

/* Free the name, whatever has it. */
static int clear(struct place *place, const char *name, const char *base, struct err *err)
{
	cleanup(free) char *path = NULL;

	if (unlinkat(place->dir_fd, base, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR)
		return err_sys(err, errno, "cannot replace %s/%s", place->root, name);
	path = file_join(place->root, name);
	return file_remove(path, err);
}

static int write_all(int fd, const char *data, size_t len)
{
	while (len) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

int place_file(struct place *place, const char *name, const void *data, size_t len, int executable,
	struct err *err)
{
	const char *base;
	int fd, r = arrive(place, name, 1, &base, err);

	if (r == 0)
		r = clear(place, name, base, err);
	if (r < 0)
		return r;
	fd = openat(place->dir_fd, base, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		executable ? 0777 : 0666);
	if (fd < 0)
		return err_sys(err, errno, "cannot write %s/%s", place->root, name);
	r = write_all(fd, data, len);
	if (close(fd) < 0 && r == 0)
		r = -errno;
	return r < 0 ? err_sys(err, -r, "cannot write %s/%s", place->root, name) : 0;
}

int place_link(struct place *place, const char *name, const char *target, struct err *err)
{
	const char *base;
	int r = arrive(place, name, 1, &base, err);

	if (r == 0)
		r = clear(place, name, base, err);
	if (r < 0)
		return r;
	if (symlinkat(target, place->dir_fd, base) < 0)
		return err_sys(err, errno, "cannot make the link %s/%s", place->root, name);
	return 0;
}

void place_close(struct place *place)
{
	if (!place)
		return;
	leave(place);
	close(place->root_fd);
	free(place->root);
	free(place);
}
