#include "bisect/repo.h"

#include <errno.h>
#include <fcntl.h>
#include <git2.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "bisect/git2_cleanup.h"
#include "bisect/label.h"
#include "base/banned.h"

#define LABEL_DIGITS 12

struct repo {
	char *path;
	git_repository *git;
	struct labels *labels; /* NULL until a label is asked for */
};

const char *repo_path(const struct repo *repo)
{
	return repo->path;
}

git_repository *repo_git(struct repo *repo)
{
	return repo->git;
}

int repo_error(struct repo *repo, int code, struct err *err, const char *fmt, ...)
{
	const git_error *last = git_error_last();
	char text[ERR_MSG_MAX];
	va_list ap;
	int missing;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* Some of libgit2's walks forget the code of a missing object, but not its class. */
	missing = code == GIT_ENOTFOUND || (last && last->klass == GIT_ERROR_ODB);
	if (missing && git_repository_is_shallow(repo->git) == 1)
		return err_set(err, ENOENT,
			"%s: %s is a shallow clone and lacks commits that are needed "
			"(git fetch --unshallow gets them)",
			text, repo->path);
	return err_set(err, missing ? ENOENT : EIO, "%s: %s", text,
		last ? last->message : "libgit2 gives no reason");
}

/* Tell the three ways in which people get the path wrong apart before libgit2 lumps them. */
static int check_folder(const char *path, struct err *err)
{
	struct stat st;

	if (stat(path, &st) < 0) {
		if (errno == ENOENT || errno == ENOTDIR)
			return err_set(err, ENOENT, "%s: no such repository", path);
		if (errno != EACCES)
			return err_sys(err, errno, "%s", path);
	} else if (!S_ISDIR(st.st_mode)) {
		return err_set(err, ENOTDIR, "%s: not a git repository (it is a file)", path);
	} else if (faccessat(AT_FDCWD, path, R_OK | X_OK, AT_EACCESS) == 0) {
		return 0;
	}
	return err_set(err, EACCES, "%s: cannot be read by the daemon (user id %u)", path,
		(unsigned)geteuid());
}

/* A repository may be open to all while its objects are not. */
static int check_objects(const struct repo *repo, struct err *err)
{
	static const char *const names[] = {"objects", "refs"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		cleanup(free) char *dir = file_join(git_repository_commondir(repo->git), names[i]);

		if (faccessat(AT_FDCWD, dir, R_OK | X_OK, AT_EACCESS) < 0)
			return err_sys(err, errno, "%s: cannot be read by the daemon (user id %u)",
				dir, (unsigned)geteuid());
	}
	return 0;
}

int repo_open(const char *path, struct repo **ret, struct err *err)
{
	static const char *const extensions[] = {"worktreeconfig"};
	cleanup(repo_free) struct repo *repo = NULL;
	const git_error *last;
	int r = check_folder(path, err);

	if (r < 0)
		return r;
	git_libgit2_init();
	/* Other people's repositories are what we are for, and none of their hooks are run. */
	git_libgit2_opts(GIT_OPT_SET_OWNER_VALIDATION, 0);
	/* Worktrees with their own configuration are common; it does not matter for reading. */
	git_libgit2_opts(GIT_OPT_SET_EXTENSIONS, extensions, (size_t)1);
	repo = xcalloc(1, sizeof(*repo));
	repo->path = xstrdup(path);
	r = git_repository_open_ext(&repo->git, path, GIT_REPOSITORY_OPEN_NO_SEARCH, NULL);
	if (r == GIT_ENOTFOUND)
		return err_set(err, EINVAL, "%s: not a git repository", path);
	if (r < 0) {
		last = git_error_last();
		return err_set(err, EINVAL, "%s: cannot be opened as a git repository: %s", path,
			last ? last->message : "libgit2 gives no reason");
	}
	r = check_objects(repo, err);
	if (r < 0)
		return r;
	*ret = steal(&repo);
	return 0;
}

void repo_free(struct repo *repo)
{
	if (!repo)
		return;
	labels_free(repo->labels);
	git_repository_free(repo->git);
	free(repo->path);
	free(repo);
	git_libgit2_shutdown();
}

/* How far a name is from what was asked for; a remote's branch may be meant without the remote. */
static size_t name_distance(const char *revision, const char *refname)
{
	const char *name = label_short_name(refname), *branch;
	size_t distance = label_distance(revision, name);

	branch = strncmp(refname, "refs/remotes/", 13) == 0 ? strchr(name, '/') : NULL;
	return branch && strcmp(revision, branch + 1) == 0 ? 1 : distance;
}

/* The name that is nearest to what was asked for, or NULL. Free it. */
static char *suggestion(struct repo *repo, const char *revision)
{
	git_strarray names = {NULL, 0};
	size_t best = strlen(revision) / 3;
	char *found = NULL;

	if (git_reference_list(&names, repo->git) < 0)
		return NULL;
	for (size_t i = 0; i < names.count; i++) {
		size_t distance = name_distance(revision, names.strings[i]);

		if (distance > 2 || distance > best || (found && distance == best))
			continue;
		best = distance;
		free(found);
		found = xstrdup(label_short_name(names.strings[i]));
	}
	git_strarray_dispose(&names);
	return found;
}

static int no_such_revision(struct repo *repo, const char *revision, struct err *err)
{
	cleanup(free) char *near = suggestion(repo, revision);

	if (near)
		return err_set(
			err, ENOENT, "no such revision in %s; did you mean %s?", repo->path, near);
	if (git_repository_is_shallow(repo->git) == 1)
		return err_set(err, ENOENT,
			"no such revision in %s, which is a shallow clone (git fetch --unshallow "
			"gets the rest)",
			repo->path);
	return err_set(err, ENOENT, "no such revision in %s", repo->path);
}

/* What libgit2 makes of odd names differs a lot; what the disk does to it does not. */
static int is_disk_error(int code)
{
	const git_error *last = git_error_last();

	return code != GIT_ENOTFOUND && last &&
	       (last->klass == GIT_ERROR_OS || last->klass == GIT_ERROR_ODB ||
		       last->klass == GIT_ERROR_ZLIB);
}

int repo_resolve(
	struct repo *repo, const char *revision, char ret_id[static REPO_ID_SIZE], struct err *err)
{
	cleanup(git_object_free) git_object *object = NULL;
	cleanup(git_object_free) git_object *commit = NULL;
	int r;

	if (!*revision)
		return err_set(err, EINVAL, "empty");
	r = git_revparse_single(&object, repo->git, revision);
	if (r == GIT_EAMBIGUOUS)
		return err_set(err, EINVAL,
			"ambiguous in %s: more than one object has an id that begins so",
			repo->path);
	if (r < 0 && !is_disk_error(r))
		return no_such_revision(repo, revision, err);
	if (r < 0)
		return repo_error(repo, r, err, "cannot be looked up in %s", repo->path);
	r = git_object_peel(&commit, object, GIT_OBJECT_COMMIT);
	if (r == GIT_EPEEL || r == GIT_EINVALIDSPEC)
		return err_set(err, EINVAL, "names a %s in %s, not a commit",
			git_object_type2string(git_object_type(object)), repo->path);
	if (r < 0)
		return repo_error(repo, r, err, "cannot be read from %s", repo->path);
	git_oid_tostr(ret_id, REPO_ID_SIZE, git_object_id(commit));
	return 0;
}

char *repo_label(struct repo *repo, const char *id)
{
	cleanup(git_odb_free) git_odb *odb = NULL;
	const char *tag;
	git_oid oid, found;
	size_t digits = LABEL_DIGITS;

	if (git_oid_fromstr(&oid, id) < 0)
		return xstrdup(id);
	if (!repo->labels)
		repo->labels = labels_load(repo->git);
	tag = labels_find(repo->labels, id);
	if (tag)
		return xstrdup(tag);
	if (git_repository_odb(&odb, repo->git) < 0)
		return xstrdup(id);
	while (digits < GIT_OID_HEXSZ &&
		git_odb_exists_prefix(&found, odb, &oid, digits) == GIT_EAMBIGUOUS)
		digits++;
	return xstrndup(id, digits);
}

int repo_has(struct repo *repo, const char *id, const char *path, struct err *err)
{
	cleanup(git_commit_free) git_commit *commit = NULL;
	cleanup(git_tree_free) git_tree *tree = NULL;
	cleanup(git_tree_entry_free) git_tree_entry *entry = NULL;
	git_oid oid;
	int r = git_oid_fromstr(&oid, id);

	if (r == 0)
		r = git_commit_lookup(&commit, repo->git, &oid);
	if (r == 0)
		r = git_commit_tree(&tree, commit);
	if (r < 0)
		return repo_error(repo, r, err, "commit %s", id);
	r = git_tree_entry_bypath(&entry, tree, path);
	if (r == GIT_ENOTFOUND)
		return 0;
	if (r < 0)
		return repo_error(repo, r, err, "%s in commit %s", path, id);
	return 1;
}
