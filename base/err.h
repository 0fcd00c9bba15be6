#ifndef BASE_ERR_H
#define BASE_ERR_H

/*
 * An error: a code and one plain sentence, owned by the caller, usually on its stack.
 *
 * Every function that can fail returns 0 or -errno and takes a struct err last. The function that
 * meets the failure calls err_set; callers that know more call err_wrap, which puts their words in
 * front: "job 7: build v6.1: cannot write store/tmp.3: No space left on device". Floors below the
 * daemon never print. A NULL err is allowed where the caller only wants the code.
 */

#define ERR_MSG_MAX 1536

struct err {
	int code; /* positive errno, 0 = no error */
	char msg[ERR_MSG_MAX];
};

/* Record code and message; returns -code so that callers can write return err_set(...). */
int err_set(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Like err_set, with ": strerror(code)" appended. */
int err_sys(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Put context in front of the message; the code stays. Returns -code. */
int err_wrap(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
