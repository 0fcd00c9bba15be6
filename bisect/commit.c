#include "bisect/commit.h"

#include <errno.h>
#include <iconv.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "bisect/git2_cleanup.h"
#include "base/banned.h"

/* A diffstat with more files than this is cut down to its last line: nobody reads more in a mail.
 */
#define DIFFSTAT_FILES 60
#define DIFFSTAT_WIDTH 78

/* Convert into ret, which must be empty; 0 when every byte could be converted. */
static int convert(const char *encoding, const char *text, struct buf *ret)
{
	iconv_t cd = iconv_open("UTF-8", encoding);
	char *in = (char *)text;
	size_t left = strlen(text);
	int r = 0;

	if (cd == (iconv_t)-1)
		return -EINVAL;
	while (left > 0 && r == 0) {
		char out[512], *end = out;
		size_t room = sizeof(out);

		if (iconv(cd, &in, &left, &end, &room) == (size_t)-1 && errno != E2BIG)
			r = -EILSEQ;
		buf_add(ret, out, sizeof(out) - room);
	}
	iconv_close(cd);
	if (r < 0)
		buf_reset(ret);
	return r;
}

/*
 * UTF-8 from a text whose commit says that it is in this encoding (NULL: it does not say, which
 * means UTF-8). Old commits lie about it: what does not convert is taken for Latin-1, in which
 * every byte is a letter.
 */
static char *to_utf8(const char *encoding, const char *text)
{
	struct buf out = BUF_INIT;

	if (!text)
		return xstrdup("");
	if (encoding && convert(encoding, text, &out) == 0)
		return out.data ? buf_detach(&out) : xstrdup("");
	if (convert("UTF-8", text, &out) < 0) {
		for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
			if (*p >= 0x80)
				buf_addc(&out, (char)(0xc0 | *p >> 6));
			buf_addc(&out, (char)(*p >= 0x80 ? 0x80 | (*p & 0x3f) : *p));
		}
	}
	return out.data ? buf_detach(&out) : xstrdup("");
}

static int diffstat(struct repo *repo, git_commit *commit, char **ret, struct err *err)
{
	cleanup(git_commit_free) git_commit *parent = NULL;
	cleanup(git_tree_free) git_tree *before = NULL;
	cleanup(git_tree_free) git_tree *after = NULL;
	cleanup(git_diff_free) git_diff *diff = NULL;
	cleanup(git_diff_stats_free) git_diff_stats *stats = NULL;
	cleanup(git_buf_dispose) git_buf text = {0};
	git_diff_stats_format_t format = GIT_DIFF_STATS_SHORT;
	int r = git_commit_tree(&after, commit);

	if (r == 0 && git_commit_parentcount(commit) > 0) {
		r = git_commit_parent(&parent, commit, 0);
		if (r == 0)
			r = git_commit_tree(&before, parent);
	}
	if (r == 0)
		r = git_diff_tree_to_tree(&diff, repo_git(repo), before, after, NULL);
	if (r == 0 && git_diff_num_deltas(diff) <= DIFFSTAT_FILES) {
		format = GIT_DIFF_STATS_FULL | GIT_DIFF_STATS_INCLUDE_SUMMARY;
		r = git_diff_find_similar(diff, NULL);
	}
	if (r == 0)
		r = git_diff_get_stats(&stats, diff);
	if (r == 0)
		r = git_diff_stats_to_buf(&text, stats, format, DIFFSTAT_WIDTH);
	if (r < 0)
		return repo_error(repo, r, err, "diffstat");
	*ret = to_utf8(NULL, text.ptr);
	return 0;
}

/* git_commit_summary and git_commit_body cut at the right places; the encoding is up to us. */
static void read_text(git_commit *raw, struct commit *commit)
{
	const char *encoding = git_commit_message_encoding(raw);
	const git_signature *author = git_commit_author(raw);
	cleanup(free) char *name = to_utf8(encoding, author ? author->name : NULL);
	cleanup(free) char *email = to_utf8(encoding, author ? author->email : NULL);

	commit->subject = to_utf8(encoding, git_commit_summary(raw));
	commit->body = to_utf8(encoding, git_commit_body(raw));
	commit->author = xasprintf("%s <%s>", name, email);
	commit->date = author ? author->when.time : 0;
}

int commit_read(struct repo *repo, const char *id, enum commit_parts parts, struct commit *ret,
	struct err *err)
{
	cleanup(git_commit_free) git_commit *raw = NULL;
	cleanup(commit_release) struct commit commit = {0};
	git_oid oid;
	int r = git_oid_fromstr(&oid, id);

	if (r == 0)
		r = git_commit_lookup(&raw, repo_git(repo), &oid);
	if (r < 0)
		return repo_error(repo, r, err, "commit %s", id);
	git_oid_tostr(commit.id, sizeof(commit.id), &oid);
	commit.label = repo_label(repo, commit.id);
	read_text(raw, &commit);
	commit.nparents = git_commit_parentcount(raw);
	commit.parents = xcalloc(commit.nparents + 1, sizeof(commit.parents[0]));
	for (size_t i = 0; i < commit.nparents; i++)
		git_oid_tostr(
			commit.parents[i], REPO_ID_SIZE, git_commit_parent_id(raw, (unsigned)i));
	if (parts == COMMIT_FULL) {
		r = diffstat(repo, raw, &commit.diffstat, err);
		if (r < 0)
			return err_wrap(err, "commit %s", id);
	}
	*ret = commit;
	commit = (struct commit){0};
	return 0;
}

void commit_release(struct commit *commit)
{
	free(commit->label);
	free(commit->subject);
	free(commit->body);
	free(commit->author);
	free(commit->diffstat);
	free(commit->parents);
	*commit = (struct commit){0};
}
