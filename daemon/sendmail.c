#include "daemon/sendmail.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/child.h"
#include "base/cleanup.h"
#include "base/banned.h"

#define TIMEOUT_MS (10 * 60 * 1000)

/* The exit statuses that mean "never"; all others, EX_TEMPFAIL first, may be better next time. */
static const int final_statuses[] = {EX_DATAERR, EX_NOUSER, EX_NOHOST, EX_UNAVAILABLE, EX_NOPERM};

struct words {
	const char **v;
	size_t n, cap;
};

static void cleanup_words_release(struct words *words)
{
	free(words->v);
}

static void word_add(struct words *words, const char *word)
{
	ALLOC_GROW(words->v, words->n, words->cap);
	words->v[words->n++] = word;
}

/* A nameless file with this content, read position at its start. */
static int memory_file(const struct buf *content, int *ret_fd, struct err *err)
{
	cleanup(close) int fd = memfd_create("mail", MFD_CLOEXEC);
	size_t done = 0;

	if (fd < 0)
		return err_sys(err, errno, "cannot make a file in memory");
	while (content && done < content->len) {
		ssize_t n = write(fd, content->data + done, content->len - done);

		if (n < 0 && errno != EINTR)
			return err_sys(err, errno, "cannot write to a file in memory");
		done += n > 0 ? (size_t)n : 0;
	}
	if (lseek(fd, 0, SEEK_SET) < 0)
		return err_sys(err, errno, "cannot rewind a file in memory");
	*ret_fd = steal_fd(&fd);
	return 0;
}

/* Copy the end of what the command said to our log, and keep its last line for the error text. */
static void read_words(int fd, char last[static 300])
{
	off_t size = lseek(fd, 0, SEEK_END);
	char text[4096], *line;
	ssize_t n;

	n = pread(fd, text, sizeof(text) - 1, size < 4095 ? 0 : size - 4095);
	text[n > 0 ? n : 0] = '\0';
	while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == ' '))
		text[--n] = '\0';
	if (text[0])
		fprintf(stderr, "%s\n", text);
	line = strrchr(text, '\n');
	snprintf(last, 300, "%.299s", line ? line + 1 : text);
}

static int judge(const char *name, int status, const char *last, struct err *err)
{
	cleanup(free) char *how = NULL;
	bool final = false;

	if (status == 0)
		return 0;
	how = child_status_text(status);
	for (size_t i = 0; i < sizeof(final_statuses) / sizeof(final_statuses[0]); i++)
		final |= WIFEXITED(status) && WEXITSTATUS(status) == final_statuses[i];
	return err_set(err, final ? MAIL_REFUSED : EAGAIN, "%s %s the message: %s%s%s", name,
		final ? "refused" : "did not take", how, *last ? ": " : "", last);
}

/* -i: a line with a single dot is not the end. --: an address is never an option. */
static void add_recipients(struct words *argv, const struct mail_rcpts *rcpts)
{
	word_add(argv, "-i");
	word_add(argv, "--");
	for (size_t i = 0; i < rcpts->n; i++)
		if (rcpts->v[i].state == MAIL_LEFT)
			word_add(argv, rcpts->v[i].addr);
}

int sendmail_send(const char *command, struct mail_rcpts *rcpts, const struct buf *text,
	int64_t timeout_ms, struct err *err)
{
	cleanup(words_release) struct words argv = {NULL, 0, 0};
	cleanup(free) char *copy = xstrdup(command);
	cleanup(close) int in = -1, out = -1;
	char *word, *rest = copy, last[300];
	bool from_header = false;
	int r, status = 0;
	pid_t pid;

	while ((word = strsep(&rest, " \t")) != NULL) {
		if (*word)
			word_add(&argv, word);
		from_header |= strcmp(word, "-t") == 0;
	}
	if (argv.n == 0)
		return err_set(err, EINVAL, "the sendmail command is empty");
	if (!from_header)
		add_recipients(&argv, rcpts);
	word_add(&argv, NULL);
	r = memory_file(text, &in, err);
	if (r == 0)
		r = memory_file(NULL, &out, err);
	if (r == 0)
		r = child_start(&(struct child_spec){argv.v, NULL, NULL, in, out, out}, &pid, err);
	if (r < 0)
		return r;
	r = child_wait(pid, (int)(timeout_ms > 0 ? timeout_ms : TIMEOUT_MS), &status, err);
	read_words(out, last);
	r = r < 0 ? err_wrap(err, "%s", argv.v[0]) : judge(argv.v[0], status, last, err);
	for (size_t i = 0; i < rcpts->n && r == 0; i++)
		if (rcpts->v[i].state == MAIL_LEFT)
			rcpts->v[i].state = MAIL_TAKEN;
	return r;
}
