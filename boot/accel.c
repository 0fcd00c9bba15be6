#include "boot/accel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/banned.h"

#define KVM_DEVICE "/dev/kvm"
#define PROVEN "a guest was seen to boot under it"
#define HOPELESS "no guest boots under KVM here"

const char *accel_name(enum domain_accel accel)
{
	return accel == DOMAIN_KVM ? "kvm" : "tcg";
}

const char *accel_timing_name(enum domain_timing timing)
{
	return timing == DOMAIN_VIRTUAL ? "virtual" : "wall";
}

/* The QEMU that libvirt would take: the first on PATH. Free it; NULL = none. */
static char *find_qemu(void)
{
	const char *path = getenv("PATH");

	while (path && *path) {
		const char *colon = strchrnul(path, ':');
		cleanup(free) char *file =
			xasprintf("%.*s/qemu-system-x86_64", (int)(colon - path), path);

		if (access(file, X_OK) == 0)
			return steal(&file);
		path = *colon ? colon + 1 : colon;
	}
	return NULL;
}

/* What the answer depends on; it changes when any of it does. */
static void situation(const struct accel_spec *spec, char ret_hex[static HASH_HEX_SIZE])
{
	cleanup(buf_release) struct buf boot_id = BUF_INIT;
	cleanup(free) char *qemu = find_qemu();
	struct hash *hash = hash_new();
	struct stat st;

	if (file_read("/proc/sys/kernel/random/boot_id", 64, &boot_id, NULL) == 0)
		hash_part_str(hash, buf_str(&boot_id));
	hash_part_str(hash, spec->uri);
	if (qemu && stat(qemu, &st) == 0) {
		hash_part_str(hash, qemu);
		hash_part(hash, &st.st_mtim, sizeof(st.st_mtim));
	}
	if (stat(KVM_DEVICE, &st) == 0) {
		hash_part(hash, &st.st_rdev, sizeof(st.st_rdev));
		hash_part(hash, &st.st_ctim, sizeof(st.st_ctim));
	}
	hash_final(hash, ret_hex);
}

static char *answer_path(const struct accel_spec *spec)
{
	return file_join(spec->dir, "accel.json");
}

/* 1 or 0 = what was found out before; -1 = nothing, or about another situation. */
static int recall(const struct accel_spec *spec)
{
	cleanup(free) char *path = answer_path(spec);
	cleanup(buf_release) struct buf text = BUF_INIT;
	cleanup(json_decref) json_t *obj = NULL;
	char now[HASH_HEX_SIZE];

	if (file_read(path, 4096, &text, NULL) < 0 ||
		json_parse(buf_str(&text), text.len, &obj, NULL) < 0)
		return -1;
	situation(spec, now);
	if (strcmp(json_opt_str(obj, "situation", ""), now) != 0)
		return -1;
	return json_opt_bool(obj, "kvm", -1);
}

static int remember(const struct accel_spec *spec, int kvm, struct err *err)
{
	cleanup(free) char *path = answer_path(spec);
	cleanup(json_decref) json_t *obj = json_object();
	cleanup(free) char *line = NULL;
	char now[HASH_HEX_SIZE];

	situation(spec, now);
	json_set_str(obj, "situation", now);
	json_set_bool(obj, "kvm", kvm);
	line = json_line(obj);
	return file_write(path, line, strlen(line), 0644, err);
}

/* Is KVM out of the question? Says why. */
static int kvm_absent(const struct accel_spec *spec, char *why, size_t size)
{
	int fd;

	if (!spec->local)
		return 0;
	fd = open(KVM_DEVICE, O_RDWR | O_CLOEXEC);
	if (fd >= 0) {
		close(fd);
		return 0;
	}
	snprintf(why, size, "cannot open %s: %s", KVM_DEVICE, strerror(errno));
	return 1;
}

/* accel = auto: look, remember, or try. */
static int find_out(const struct accel_spec *spec, struct accel *ret, struct err *err)
{
	struct err why = {0};
	int usable;

	ret->accel = DOMAIN_TCG;
	if (kvm_absent(spec, ret->why, sizeof(ret->why)))
		return 0;
	usable = recall(spec);
	if (usable < 0) {
		usable = spec->probe(spec->arg, &why);
		if (usable < 0)
			return err ? (*err = why, usable) : usable;
		ret->unproven = !usable;
		/* A failure is kept by accel_confirm, when the kernel is known to be good. */
		if (usable && remember(spec, 1, err) < 0)
			return err_wrap(err, "KVM works");
	}
	if (usable) {
		ret->accel = DOMAIN_KVM;
		snprintf(ret->why, sizeof(ret->why), PROVEN);
	} else if (ret->unproven) {
		snprintf(ret->why, sizeof(ret->why), "KVM does not work here: %.200s", why.msg);
	} else {
		snprintf(ret->why, sizeof(ret->why), HOPELESS);
	}
	return 0;
}

int accel_choose(const struct accel_spec *spec, struct accel *ret, struct err *err)
{
	struct accel a = {0};
	int r;

	if (spec->wish == ACCEL_KVM && spec->timing == ACCEL_TIMING_VIRTUAL)
		return err_set(err, EINVAL,
			"timing = virtual counts instructions, which KVM cannot: accel = kvm "
			"excludes it");
	if (spec->wish == ACCEL_KVM) {
		a.accel = DOMAIN_KVM;
		if (kvm_absent(spec, a.why, sizeof(a.why)))
			return err_set(err, EINVAL, "accel = kvm: %s", a.why);
		snprintf(a.why, sizeof(a.why), "the job asks for it");
	} else if (spec->wish == ACCEL_TCG) {
		snprintf(a.why, sizeof(a.why), "the job asks for it");
	} else if (spec->timing == ACCEL_TIMING_VIRTUAL) {
		snprintf(a.why, sizeof(a.why), "virtual time needs it");
	} else {
		r = find_out(spec, &a, err);
		if (r < 0)
			return r;
	}
	a.timing = spec->timing == ACCEL_TIMING_VIRTUAL ||
				   (spec->timing == ACCEL_TIMING_AUTO && a.accel == DOMAIN_TCG)
			   ? DOMAIN_VIRTUAL
			   : DOMAIN_WALL;
	*ret = a;
	return 0;
}

int accel_confirm(const struct accel_spec *spec, struct accel *accel, struct err *err)
{
	if (!accel->unproven)
		return 0;
	accel->unproven = 0;
	return remember(spec, 0, err);
}
