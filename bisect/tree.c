#include "bisect/tree.h"

#include <errno.h>
#include <git2.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"
#include "bisect/git2_cleanup.h"
#include "bisect/place.h"
#include "base/banned.h"

#define BOOT_ID "/proc/sys/kernel/random/boot_id"
#define NOTHING "nothing" /* the folder was empty */
#define TREES_MAX 8	  /* more half-done changes than this: begin anew */

DEFINE_CLEANUP(git_blob_free, git_blob *);

/* The trees whose files may be in the folder: one when all is well. */
struct state {
	char ids[TREES_MAX][TREE_ID_SIZE];
	size_t n;
};

int tree_find(
	struct repo *repo, const char *commit, char ret_id[static TREE_ID_SIZE], struct err *err)
{
	cleanup(git_object_free) git_object *obj = NULL, *tree = NULL;
	int r;

	r = git_revparse_single(&obj, repo_git(repo), commit);
	if (r == 0)
		r = git_object_peel(&tree, obj, GIT_OBJECT_TREE);
	if (r == GIT_ENOTFOUND)
		return err_set(err, ENOENT, "%s has no commit %s", repo_path(repo), commit);
	if (r < 0)
		return repo_error(repo, r, err, "commit %s in %s", commit, repo_path(repo));
	git_oid_tostr(ret_id, TREE_ID_SIZE, git_object_id(tree));
	return 0;
}

/* The first line is the boot of the host that the rest is about. */
static int boot_line(struct buf *ret, struct err *err)
{
	return file_read(BOOT_ID, 64, ret, err);
}

static void state_add(struct state *state, const char *id)
{
	for (size_t i = 0; i < state->n; i++)
		if (!strcmp(state->ids[i], id))
			return;
	memcpy(state->ids[state->n], id, strlen(id) + 1);
	state->n++;
}

/* What slot/tree says. An empty state when it cannot be believed. */
static void state_load(const char *path, struct state *ret)
{
	cleanup(buf_release) struct buf text = BUF_INIT, boot = BUF_INIT;
	struct state state = {.n = 0};
	char *line, *save = NULL;

	*ret = state;
	if (file_read(path, 4096, &text, NULL) < 0 || boot_line(&boot, NULL) < 0 ||
		text.len <= boot.len || memcmp(text.data, boot.data, boot.len) != 0)
		return;
	for (line = strtok_r(text.data + boot.len, "\n", &save); line;
		line = strtok_r(NULL, "\n", &save)) {
		size_t len = strlen(line);

		if (state.n == TREES_MAX - 1 ||
			(strcmp(line, NOTHING) != 0 &&
				(len != TREE_ID_SIZE - 1 ||
					strspn(line, "0123456789abcdef") != len)))
			return;
		state_add(&state, line);
	}
	*ret = state;
}

static int state_save(const char *path, const struct state *state, struct err *err)
{
	cleanup(buf_release) struct buf text = BUF_INIT;
	int r = boot_line(&text, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < state->n; i++)
		buf_addf(&text, "%s\n", state->ids[i]);
	return file_write(path, text.data, text.len, 0644, err);
}

static int tree_lookup(struct repo *repo, const char *id, git_tree **ret, struct err *err)
{
	git_oid oid;
	int r = git_oid_fromstr(&oid, id);

	if (r == 0)
		r = git_tree_lookup(ret, repo_git(repo), &oid);
	return r < 0 ? repo_error(repo, r, err, "tree %s", id) : 0;
}

struct digest {
	struct hash *hash;
	int (*wanted)(const char *path);
};

static int digest_one(const char *folder, const git_tree_entry *entry, void *arg)
{
	const struct digest *digest = arg;
	const git_oid *id = git_tree_entry_id(entry);
	git_filemode_t mode = git_tree_entry_filemode(entry);
	cleanup(free) char *path = NULL;

	if (git_tree_entry_type(entry) != GIT_OBJECT_BLOB)
		return 0;
	path = xasprintf("%s%s", folder, git_tree_entry_name(entry));
	if (!digest->wanted(path))
		return 0;
	hash_part_str(digest->hash, path);
	hash_part(digest->hash, &mode, sizeof(mode));
	hash_part(digest->hash, id, sizeof(*id));
	return 0;
}

int tree_digest(struct repo *repo, const char *id, int (*wanted)(const char *path),
	char ret_hex[static HASH_HEX_SIZE], struct err *err)
{
	cleanup(git_tree_free) git_tree *tree = NULL;
	struct digest digest = {.wanted = wanted};
	char hex[HASH_HEX_SIZE];
	int r = tree_lookup(repo, id, &tree, err);

	if (r < 0)
		return r;
	digest.hash = hash_new();
	r = git_tree_walk(tree, GIT_TREEWALK_PRE, digest_one, &digest);
	hash_final(digest.hash, hex);
	if (r < 0)
		return repo_error(repo, r, err, "cannot read tree %s", id);
	memcpy(ret_hex, hex, sizeof(hex));
	return 0;
}

/* The differences from what each state says to the new tree; diffs[] has room for TREES_MAX. */
static int diff_all(struct repo *repo, const struct state *state, git_tree *to, git_diff **diffs,
	struct err *err)
{
	int r;

	for (size_t i = 0; i < state->n; i++) {
		cleanup(git_tree_free) git_tree *from = NULL;

		if (strcmp(state->ids[i], NOTHING) != 0) {
			r = tree_lookup(repo, state->ids[i], &from, err);
			if (r < 0)
				return r;
		}
		r = git_diff_tree_to_tree(&diffs[i], repo_git(repo), from, to, NULL);
		if (r < 0)
			return repo_error(repo, r, err, "cannot compare two trees");
	}
	return 0;
}

/* Does this side of a difference stand for something in the folder? A submodule does not. */
static int side_is_file(const git_diff_file *file)
{
	return file->mode == GIT_FILEMODE_BLOB || file->mode == GIT_FILEMODE_BLOB_EXECUTABLE ||
	       file->mode == GIT_FILEMODE_LINK;
}

static int write_one(
	struct repo *repo, struct place *place, const git_diff_file *file, struct err *err)
{
	cleanup(git_blob_free) git_blob *blob = NULL;
	cleanup(free) char *target = NULL;
	const char *data;
	size_t len;
	int r;

	r = git_blob_lookup(&blob, repo_git(repo), &file->id);
	if (r < 0)
		return repo_error(repo, r, err, "cannot read %s", file->path);
	data = git_blob_rawcontent(blob);
	len = (size_t)git_blob_rawsize(blob);
	if (file->mode != GIT_FILEMODE_LINK)
		return place_file(place, file->path, data, len,
			file->mode == GIT_FILEMODE_BLOB_EXECUTABLE, err);
	target = xstrndup(data, len);
	return place_link(place, file->path, target, err);
}

/* One pass over one difference: with `write` what it has new, else what it has no longer. */
static int apply(struct repo *repo, git_diff *diff, int write, struct place *place,
	struct tree_change *change, struct err *err)
{
	for (size_t i = 0; i < git_diff_num_deltas(diff); i++) {
		const git_diff_delta *delta = git_diff_get_delta(diff, i);
		int r = 0;

		if (write && side_is_file(&delta->new_file)) {
			r = write_one(repo, place, &delta->new_file, err);
			change->written++;
		} else if (!write && side_is_file(&delta->old_file) &&
			   !side_is_file(&delta->new_file)) {
			r = place_remove(place, delta->old_file.path, err);
			change->removed++;
		}
		if (r < 0)
			return r;
	}
	return 0;
}

/* All removals first: a file may make room for a folder of its name, and the other way round. */
static int apply_all(struct repo *repo, git_diff **diffs, size_t n, const char *src,
	struct tree_change *change, struct err *err)
{
	cleanup(place_close) struct place *place = NULL;
	int r = place_open(src, &place, err);

	for (int write = 0; write <= 1; write++)
		for (size_t i = 0; i < n && r == 0; i++)
			r = apply(repo, diffs[i], write, place, change, err);
	return r;
}

/* Mark, change, mark: see the header. */
static int change_tree(struct repo *repo, const char *id, const char *slot, struct state *state,
	struct tree_change *change, struct err *err)
{
	cleanup(free) char *src = file_join(slot, "src");
	cleanup(free) char *mark = file_join(slot, "tree");
	cleanup(git_tree_free) git_tree *to = NULL;
	git_diff *diffs[TREES_MAX] = {NULL};
	struct state marked;
	int r;

	r = tree_lookup(repo, id, &to, err);
	if (r == 0 && state->n && diff_all(repo, state, to, diffs, NULL) < 0)
		state->n = 0; /* a tree of another repository, or one that is gone */
	if (r == 0 && !state->n) {
		change->fresh = 1;
		r = file_remove(src, err);
		state_add(state, NOTHING);
		for (int i = 0; i < TREES_MAX; i++)
			git_diff_free(steal(&diffs[i]));
		if (r == 0)
			r = diff_all(repo, state, to, diffs, err);
	}
	marked = *state;
	state_add(&marked, id);
	if (r == 0)
		r = state_save(mark, &marked, err);
	if (r == 0)
		r = apply_all(repo, diffs, state->n, src, change, err);
	for (int i = 0; i < TREES_MAX; i++)
		git_diff_free(diffs[i]);
	marked = (struct state){.n = 0};
	state_add(&marked, id);
	return r < 0 ? r : state_save(mark, &marked, err);
}

int tree_checkout(struct repo *repo, const char *id, const char *slot, struct tree_change *ret,
	struct err *err)
{
	cleanup(free) char *mark = file_join(slot, "tree");
	struct tree_change change = {0};
	struct state state;
	int r;

	state_load(mark, &state);
	if (state.n != 1 || strcmp(state.ids[0], id) != 0) {
		/* Packs have checksums; hashing a whole kernel once more would take seconds. */
		git_libgit2_opts(GIT_OPT_ENABLE_STRICT_HASH_VERIFICATION, 0);
		r = change_tree(repo, id, slot, &state, &change, err);
		git_libgit2_opts(GIT_OPT_ENABLE_STRICT_HASH_VERIFICATION, 1);
		if (r < 0)
			return err_wrap(err, "cannot check out tree %.12s", id);
	}
	if (ret)
		*ret = change;
	return 0;
}
