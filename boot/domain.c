#include "boot/domain.h"

#include <errno.h>
#include <libxml/xmlwriter.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/banned.h"

DEFINE_CLEANUP(xmlFreeTextWriter, xmlTextWriterPtr);
DEFINE_CLEANUP(xmlBufferFree, xmlBufferPtr);

#define QEMU_URI "http://libvirt.org/schemas/domain/qemu/1.0"

/* The writer with its first failure; the functions below do nothing after one. */
struct xml {
	xmlTextWriterPtr w;
	int failed;
};

static void start(struct xml *x, const char *name)
{
	x->failed |= xmlTextWriterStartElement(x->w, BAD_CAST name) < 0;
}

/* The writer escapes what has a meaning in XML, but passes on what XML cannot hold at all. */
static void check(struct xml *x, const char *value)
{
	x->failed |= !xmlCheckUTF8(BAD_CAST value);
	for (; *value; value++)
		x->failed |= (unsigned char)*value < ' ' && *value != '\t';
}

static void attr(struct xml *x, const char *name, const char *value)
{
	check(x, value);
	x->failed |= xmlTextWriterWriteAttribute(x->w, BAD_CAST name, BAD_CAST value) < 0;
}

static void text(struct xml *x, const char *value)
{
	check(x, value);
	x->failed |= xmlTextWriterWriteString(x->w, BAD_CAST value) < 0;
}

static void end(struct xml *x)
{
	x->failed |= xmlTextWriterEndElement(x->w) < 0;
}

static void leaf(struct xml *x, const char *name, const char *value)
{
	start(x, name);
	text(x, value);
	end(x);
}

/* An element whose one attribute is all there is to it. */
static void mark(struct xml *x, const char *name, const char *key, const char *value)
{
	start(x, name);
	attr(x, key, value);
	end(x);
}

static void number(struct xml *x, const char *name, const char *unit, int64_t value)
{
	cleanup(free) char *s = xasprintf("%lld", (long long)value);

	start(x, name);
	if (unit)
		attr(x, "unit", unit);
	text(x, s);
	end(x);
}

static void write_metadata(struct xml *x, const struct domain_spec *spec)
{
	start(x, "metadata");
	start(x, "kbisectd:slot");
	attr(x, "xmlns:kbisectd", DOMAIN_METADATA_URI);
	text(x, spec->owner);
	end(x);
	end(x);
}

static void write_os(struct xml *x, const struct domain_spec *spec)
{
	/*
	 * panic=-1: reset at once, so that a panic ends the domain instead of idling it.
	 * no_timer_check: on a busy host the emulated timer fails the kernel's check of it, which
	 * is a panic that is not the candidate's.
	 * idle=poll: with sleep=off the virtual clock of an idle guest leaps from timer to timer,
	 * thousands of seconds in one of the host's, and its sshd times our session out.
	 */
	cleanup(free) char *cmdline = xasprintf("console=ttyS0 panic=-1 no_timer_check%s%s%s",
		spec->timing == DOMAIN_VIRTUAL ? " idle=poll" : "", spec->cmdline ? " " : "",
		spec->cmdline ? spec->cmdline : "");

	start(x, "os");
	start(x, "type");
	attr(x, "arch", "x86_64");
	attr(x, "machine", "pc");
	text(x, "hvm");
	end(x);
	leaf(x, "kernel", spec->kernel);
	leaf(x, "initrd", spec->initrd);
	leaf(x, "cmdline", cmdline);
	end(x);
}

static void write_cpu(struct xml *x, const struct domain_spec *spec)
{
	start(x, "features");
	start(x, "acpi");
	end(x);
	end(x);
	if (spec->accel == DOMAIN_KVM)
		mark(x, "cpu", "mode", "host-passthrough");
	leaf(x, "on_poweroff", "destroy");
	leaf(x, "on_reboot", "destroy");
	leaf(x, "on_crash", "destroy");
}

static void write_devices(struct xml *x)
{
	start(x, "devices");
	start(x, "controller");
	attr(x, "type", "usb");
	attr(x, "model", "none");
	end(x);
	start(x, "serial");
	attr(x, "type", "pty");
	mark(x, "target", "port", "0");
	end(x);
	start(x, "console");
	attr(x, "type", "pty");
	start(x, "target");
	attr(x, "type", "serial");
	attr(x, "port", "0");
	end(x);
	end(x);
	mark(x, "memballoon", "model", "none");
	start(x, "rng");
	attr(x, "model", "virtio");
	start(x, "backend");
	attr(x, "model", "random");
	text(x, "/dev/urandom");
	end(x);
	end(x);
	end(x);
}

static void qemu_arg(struct xml *x, const char *value)
{
	mark(x, "qemu:arg", "value", value);
}

/* What libvirt's XML has no word for. */
static void write_qemu(struct xml *x, const struct domain_spec *spec)
{
	cleanup(free) char *net = xasprintf(
		"user,id=kbisectd,restrict=on,hostfwd=tcp:127.0.0.1:%d-:22", spec->ssh_port);

	start(x, "qemu:commandline");
	qemu_arg(x, "-netdev");
	qemu_arg(x, net);
	qemu_arg(x, "-device");
	qemu_arg(x, "virtio-net-pci,netdev=kbisectd,romfile=,addr=0x10");
	if (spec->timing == DOMAIN_VIRTUAL) {
		qemu_arg(x, "-icount");
		qemu_arg(x, "shift=3,sleep=off");
	}
	end(x);
	/*
	 * Without this capability libvirt asks for all CPU flags in one request; with it there is
	 * one for each of some 450 flags, which takes up to a second of every start.
	 */
	start(x, "qemu:capabilities");
	mark(x, "qemu:del", "capability", "cpu-unavailable-features");
	end(x);
}

int domain_xml(const struct domain_spec *spec, char **ret, struct err *err)
{
	cleanup(xmlBufferFree) xmlBufferPtr out = xmlBufferCreate();
	cleanup(xmlFreeTextWriter) xmlTextWriterPtr w = out ? xmlNewTextWriterMemory(out, 0) : NULL;
	struct xml x = {w, 0};

	if (!w)
		abort();
	xmlTextWriterSetIndent(w, 1);
	xmlTextWriterSetIndentString(w, BAD_CAST "  ");
	start(&x, "domain");
	attr(&x, "type", spec->accel == DOMAIN_KVM ? "kvm" : "qemu");
	attr(&x, "xmlns:qemu", QEMU_URI);
	leaf(&x, "name", spec->name);
	write_metadata(&x, spec);
	number(&x, "memory", "b", spec->memory);
	number(&x, "vcpu", NULL, spec->timing == DOMAIN_VIRTUAL ? 1 : spec->cpus);
	write_os(&x, spec);
	write_cpu(&x, spec);
	write_devices(&x);
	write_qemu(&x, spec);
	end(&x);
	x.failed |= xmlTextWriterFlush(w) < 0;
	if (x.failed)
		return err_set(err, EINVAL,
			"the domain's XML cannot hold a name, a path or the kernel's command "
			"line: control characters, or not UTF-8");
	*ret = xstrdup((const char *)xmlBufferContent(out));
	return 0;
}
