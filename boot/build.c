#include "boot/build.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/child.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "boot/buildlog.h"
#include "boot/buildslot.h"
#include "base/banned.h"

#define LOG_PART_MAX (32 << 20) /* two attempts make 64 MiB */
#define TEXT_MAX (16 << 20)	/* a .config is about 150 kB */
#define MAKE_ARGS_MAX 16
#define ENV_MAX 20

/* One attempt under way. */
struct attempt {
	const struct build_spec *spec;
	struct caplog *log;
	int64_t deadline;
	char *cc; /* CC= of make */
	char *env[ENV_MAX + 1];
	int configured; /* this far it went */
	char *target;	/* the object file that failed, NULL = unknown */
};

static void set_env(struct attempt *at, const char *name, const char *value)
{
	size_t n = 0;

	while (at->env[n])
		n++;
	if (value && n < ENV_MAX)
		at->env[n] = xasprintf("%s=%s", name, value);
}

/* The whole environment: nothing of the caller's that could get into an image. */
static void attempt_init(struct attempt *at, const struct build_spec *spec, struct caplog *log)
{
	static const char *const fixed[][2] = {
		{"LC_ALL", "C"},
		{"TZ", "UTC"},
		{"HOME", "/tmp"},
		{"KBUILD_BUILD_TIMESTAMP", "Thu Jan 1 00:00:00 UTC 1970"},
		{"KBUILD_BUILD_USER", "kbisectd"},
		{"KBUILD_BUILD_HOST", "kbisectd"},
		{"KBUILD_BUILD_VERSION", "1"},
		{"SOURCE_DATE_EPOCH", "0"},
	};
	const char *path = getenv("PATH");
	int ccache = spec->box.ccache && *spec->box.ccache;

	*at = (struct attempt){.spec = spec, .log = log};
	at->deadline = clock_mono_ms() + spec->timeout_ms;
	at->cc = xasprintf("%s%s", ccache ? "ccache " : "", spec->box.cc);
	set_env(at, "PATH", path ? path : "/usr/local/bin:/usr/bin:/bin");
	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
		set_env(at, fixed[i][0], fixed[i][1]);
	if (ccache) {
		cleanup(free) char *dir = sandbox_path(&spec->box, "ccache");

		set_env(at, "CCACHE_DIR", dir);
		/*
		 * The host's own settings stay out. Its depend_mode would be fatal: it skips the
		 * preprocessor, and with it the check for .incbin, by which piggy.S takes in the
		 * kernel proper: two kernels of one compressed size would be one image.
		 */
		set_env(at, "CCACHE_CONFIGPATH", "/dev/null");
	}
}

static void cleanup_attempt(struct attempt *at)
{
	free(at->cc);
	free(at->target);
	for (size_t i = 0; at->env[i]; i++)
		free(at->env[i]);
}

/* Run make for a target with O=dir. 1 = it worked, 0 = it failed, the log says why. */
static int make(struct attempt *at, const char *dir, const char *target, struct err *err)
{
	cleanup(free) char *src = sandbox_path(&at->spec->box, "src");
	cleanup(free) char *out = sandbox_path(&at->spec->box, dir);
	cleanup(free) char *o = xasprintf("O=%s", out);
	cleanup(free) char *j = xasprintf("-j%d", at->spec->jobs > 0 ? at->spec->jobs : 1);
	cleanup(free) char *cc = xasprintf("CC=%s", at->cc);
	cleanup(free) char *hostcc = xasprintf("HOSTCC=%s", at->cc);
	const char *argv[MAKE_ARGS_MAX] = {
		"make", "-C", src, o, j, cc, hostcc, "LOCALVERSION=", target, NULL};
	int status, r;

	caplog_addf(at->log, "$ make %s\n", target);
	r = sandbox_run(&at->spec->box, argv, (const char *const *)at->env, at->deadline, at->log,
		&status, err);
	return r < 0 ? r : status == 0;
}

/* The first line that a program prints about itself. */
static int probe(const char *program, const char *purpose, char **ret, struct err *err)
{
	const char *argv[] = {program, "--version", NULL};
	cleanup(buf_release) struct buf out = BUF_INIT;

	if (child_output(argv, 10000, 4096, &out, NULL) < 0)
		return err_set(err, ENOENT,
			"%s %s is not installed on the build host, or does not run: install it, or "
			"name "
			"another in the job's cc",
			purpose, program);
	*ret = xstrndup(buf_str(&out), strcspn(buf_str(&out), "\n"));
	return 0;
}

int build_tools_probe(const char *cc, struct build_tools *ret, struct err *err)
{
	struct build_tools tools = {NULL, NULL};
	cleanup(free) char *ignored = NULL;
	int r = probe(cc, "the compiler", &tools.cc, err);

	if (r == 0)
		r = probe("ld", "the linker", &tools.ld, err);
	if (r == 0)
		r = probe("make", "the program", &ignored, err);
	if (r < 0)
		build_tools_release(&tools);
	else
		*ret = tools;
	return r;
}

void build_tools_hash(const struct build_tools *tools, struct hash *hash)
{
	hash_part_str(hash, BUILD_RECIPE_VERSION);
	hash_part_str(hash, tools->cc);
	hash_part_str(hash, tools->ld);
}

void build_tools_release(struct build_tools *tools)
{
	free(steal(&tools->cc));
	free(steal(&tools->ld));
}

/* Write a file only when that changes it, since make looks at its time. */
static int update_file(const char *path, const char *text, struct err *err)
{
	cleanup(buf_release) struct buf old = BUF_INIT;

	if (file_read(path, TEXT_MAX, &old, NULL) == 0 && !strcmp(buf_str(&old), text))
		return 0;
	return file_write(path, text, strlen(text), 0644, err);
}

/* What the configuration of this candidate is a function of. */
static void config_key(const struct build_spec *spec, char ret[static HASH_HEX_SIZE])
{
	struct hash *hash = hash_new();

	hash_part_str(hash, spec->config_inputs);
	kconfig_hash(&spec->recipe, hash);
	build_tools_hash(spec->tools, hash);
	hash_part_str(hash, spec->box.cc);
	hash_final(hash, ret);
}

/* The base's own .config in slot/conf. As make(). */
static int make_base(struct attempt *at, const char *path, struct err *err)
{
	const struct kconfig_recipe *recipe = &at->spec->recipe;

	if (recipe->base == KCONFIG_FILE) {
		int r = file_write(path, recipe->file.text, strlen(recipe->file.text), 0644, err);

		return r < 0 ? r : 1;
	}
	return make(
		at, "conf", recipe->base == KCONFIG_TINY ? "tinyconfig" : recipe->file.name, err);
}

/* Make slot/conf/.config from the recipe. As make(). */
static int make_config(struct attempt *at, const char *path, struct err *err)
{
	cleanup(buf_release) struct buf text = BUF_INIT;
	int r = make_base(at, path, err);

	if (r <= 0)
		return r;
	r = file_read(path, TEXT_MAX, &text, err);
	if (r < 0)
		return r;
	kconfig_additions(&at->spec->recipe, &text);
	r = file_write(path, text.data, text.len, 0644, err);
	return r < 0 ? r : make(at, "conf", "olddefconfig", err);
}

/*
 * Bring slot/obj/.config up to date; the outcome of an earlier candidate serves when nothing that
 * it depends on has changed. As make().
 */
static int configure(struct attempt *at, struct buf *ret, struct err *err)
{
	cleanup(free) char *conf = xasprintf("%s/conf/.config", at->spec->box.slot);
	cleanup(free) char *key_path = xasprintf("%s/conf/key", at->spec->box.slot);
	cleanup(free) char *obj = xasprintf("%s/obj/.config", at->spec->box.slot);
	cleanup(buf_release) struct buf old_key = BUF_INIT;
	char key[HASH_HEX_SIZE];
	int r;

	config_key(at->spec, key);
	if (file_read(key_path, sizeof(key), &old_key, NULL) < 0 ||
		strcmp(buf_str(&old_key), key)) {
		unlink(key_path);
		r = make_config(at, conf, err);
		if (r > 0 && file_write(key_path, key, strlen(key), 0644, err) < 0)
			r = -err->code;
		if (r <= 0)
			return r;
	}
	r = file_read(conf, TEXT_MAX, ret, err);
	if (r == 0)
		r = update_file(obj, buf_str(ret), err);
	return r < 0 ? r : 1;
}

/* Set the outcome's end and text. Returns 0, so that callers can end with it. */
static int finish(struct build_result *ret, enum build_end end, char *text)
{
	free(ret->text);
	ret->end = end;
	ret->text = text;
	return 0;
}

/* The log of a failed make, judged: the host's fault, the job's, or the candidate's. */
static int judge(struct attempt *at, struct build_result *ret, struct err *err)
{
	cleanup(buf_release) struct buf log = BUF_INIT;
	cleanup(free) char *src = sandbox_path(&at->spec->box, "src");
	cleanup(free) char *prefix = xasprintf("%s/", src);
	cleanup(free) char *line = NULL;
	enum build_fault fault;
	int r = caplog_part(at->log, &log, err);

	if (r < 0)
		return r;
	line = buildlog_error(buf_str(&log), log.len, prefix, &fault);
	free(at->target);
	at->target = buildlog_target(buf_str(&log), log.len);
	if (fault == BUILD_FAULT_DISK)
		return err_set(err, ENOSPC, "the disk of the build is full: %s", line);
	if (fault == BUILD_FAULT_KILLED)
		return err_set(err, ENOMEM, "the build got no memory: %s", line);
	if (fault == BUILD_FAULT_TOOL)
		return err_set(err, ENOENT, "the build host lacks a program: %s", line);
	if (at->spec->strict && line && strstr(line, "Can't find default configuration"))
		return finish(ret, BUILD_REFUSED,
			xasprintf("config = %s: this kernel has no configuration of that name",
				at->spec->recipe.file.name));
	return finish(ret, BUILD_FAILED,
		line ? steal(&line) : xstrdup("make failed without an error message"));
}

/* Configure, and check what came of it. As make(), where 0 = *ret is the end. */
static int try_config(struct attempt *at, struct build_result *ret, struct err *err)
{
	cleanup(buf_release) struct buf config = BUF_INIT, lost = BUF_INIT;
	struct err refused;
	int r = configure(at, &config, err);

	if (r == 0)
		return judge(at, ret, err);
	if (r < 0)
		return r;
	at->configured = 1;
	r = kconfig_check(&at->spec->recipe, buf_str(&config), &lost, &refused);
	caplog_add(at->log, buf_str(&lost), lost.len);
	if (r == 0 || !at->spec->strict)
		return 1;
	r = caplog_part(at->log, NULL, err);
	return r < 0 ? r : finish(ret, BUILD_REFUSED, xstrdup(refused.msg));
}

/* Configure and make one target. */
static int try_once(
	struct attempt *at, const char *target, struct build_result *ret, struct err *err)
{
	int r = try_config(at, ret, err);

	if (r == 0)
		return 0;
	if (r > 0) {
		r = make(at, "obj", target, err);
		if (r == 0)
			return judge(at, ret, err);
	}
	if (r < 0 && r != -ETIMEDOUT)
		return r;
	if (caplog_part(at->log, NULL, err) < 0)
		return -err->code;
	if (r > 0)
		return finish(ret, BUILD_OK, NULL);
	return finish(ret, BUILD_FAILED,
		xasprintf("the build took more than %lld min",
			(long long)(at->spec->timeout_ms + 59999) / 60000));
}

/* Does what failed fail in the same words here too? Returns 1 when it does. */
static int fails_alone(struct attempt *at, const struct build_result *first, struct err *err)
{
	cleanup(build_result_release) struct build_result alone = {.end = BUILD_FAILED};
	cleanup(free) char *target = steal(&at->target);
	int r;

	if (!target)
		return 0;
	r = try_once(at, target, &alone, err);
	return r < 0 ? r : alone.end == BUILD_FAILED && !strcmp(alone.text, first->text);
}

/* A failure in a used slot/obj: does it fail in a clean one too? See the header. */
static int try_clean(struct attempt *at, struct build_result *ret, struct err *err)
{
	const char *slot = at->spec->box.slot;
	cleanup(free) char *key = xasprintf("%s/conf/key", slot);
	struct err ignored;
	int r = buildslot_set_aside(slot, err);

	if (r < 0)
		return r;
	if (!at->configured)
		unlink(key);
	caplog_addf(at->log, "kbisectd: failed; once more in a clean folder\n");
	r = fails_alone(at, ret, err);
	if (r == 0)
		r = try_once(at, "bzImage", ret, err);
	if (r == 0 && ret->end == BUILD_OK)
		return buildslot_drop_aside(slot, err);
	if (buildslot_put_back(slot, r < 0 ? &ignored : err) < 0 && r >= 0)
		return -err->code;
	return r < 0 ? r : 0;
}

/* The folders that a sandbox needs; returns whether slot/obj is a new one. */
static int make_folders(const struct sandbox *box, struct err *err)
{
	static const char *const names[] = {"conf", "obj"};
	cleanup(free) char *made = file_join(box->slot, "obj/Makefile");
	int r = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && r == 0; i++) {
		cleanup(free) char *dir = file_join(box->slot, names[i]);

		r = file_mkdir(dir, 0755, err);
	}
	if (r == 0 && box->ccache && *box->ccache)
		r = file_mkdir(box->ccache, 0755, err);
	return r < 0 ? r : access(made, F_OK) < 0;
}

int build_kernel(const struct build_spec *spec, struct build_result *ret, struct err *err)
{
	cleanup(caplog_close) struct caplog *log = NULL;
	cleanup(attempt) struct attempt at = {.spec = spec};
	cleanup(build_result_release) struct build_result result = {.end = BUILD_FAILED};
	int64_t start = clock_mono_ms();
	int clean, r;

	r = caplog_open(spec->log, LOG_PART_MAX, &log, err);
	if (r == 0)
		r = sandbox_check(&spec->box, err);
	if (r == -ENOSYS)
		r = finish(&result, BUILD_REFUSED, xstrdup(err->msg));
	else if (r == 0) {
		clean = r = make_folders(&spec->box, err);
		attempt_init(&at, spec, log);
		if (r >= 0)
			r = buildslot_begin(spec->box.slot, err);
		if (r == 0)
			r = try_once(&at, "bzImage", &result, err);
		if (r == 0 && result.end == BUILD_FAILED && !clean && clock_mono_ms() < at.deadline)
			r = try_clean(&at, &result, err);
		/* At the time limit the compilers were killed as they stood. */
		if (r == 0 && clock_mono_ms() < at.deadline)
			r = buildslot_end(spec->box.slot, err);
	}
	if (r < 0)
		return r;
	result.image = xasprintf("%s/obj/arch/x86/boot/bzImage", spec->box.slot);
	result.config = xasprintf("%s/obj/.config", spec->box.slot);
	result.ms = clock_mono_ms() - start;
	*ret = result;
	result = (struct build_result){.end = BUILD_FAILED};
	return 0;
}

void build_result_release(struct build_result *result)
{
	free(steal(&result->text));
	free(steal(&result->image));
	free(steal(&result->config));
}
