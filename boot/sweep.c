#include "boot/sweep.h"

#include <dirent.h>
#include <errno.h>
#include <libvirt/libvirt.h>
#include <libxml/parser.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/json.h"
#include "boot/domain.h"
#include "boot/host.h"
#include "boot/vm.h"
#include "base/banned.h"

#define KILL_WAIT_MS 5000
#define CLAIM_WAIT_MS 10000
#define CLAIM_PAUSE_MS 50

DEFINE_CLEANUP(xmlFreeDoc, xmlDocPtr);

static char *marker_path(const char *dir)
{
	return file_join(dir, "busy");
}

int sweep_claim(const char *dir, int *ret_fd, struct err *err)
{
	cleanup(free) char *path = file_join(dir, "lock");
	int r = file_mkdir(dir, 0755, err);

	if (r < 0)
		return r;
	for (int waited = 0; (r = file_lock(path, 0, ret_fd, err)) == -EWOULDBLOCK;
		waited += CLAIM_PAUSE_MS) {
		if (waited >= CLAIM_WAIT_MS)
			return err_set(err, EBUSY, "another process works in %s", dir);
		poll(NULL, 0, CLAIM_PAUSE_MS);
	}
	return r;
}

int sweep_mark(const char *dir, const char *uri, struct err *err)
{
	cleanup(free) char *path = marker_path(dir);
	cleanup(json_decref) json_t *obj = json_object();
	cleanup(free) char *line = NULL;

	json_set_str(obj, "uri", uri ? uri : "");
	line = json_line(obj);
	return file_write(path, line, strlen(line), 0644, err);
}

void sweep_unmark(const char *dir)
{
	cleanup(free) char *path = marker_path(dir);

	unlink(path);
}

/* Is this domain one of the slot's? On a shared hypervisor, others have domains, too. */
static int is_ours(virDomainPtr dom, const char *dir)
{
	cleanup(free) char *meta =
		virDomainGetMetadata(dom, VIR_DOMAIN_METADATA_ELEMENT, DOMAIN_METADATA_URI, 0);
	cleanup(xmlFreeDoc) xmlDocPtr doc = NULL;
	xmlChar *owner;
	int same;

	if (!meta)
		return 0;
	doc = xmlReadMemory(
		meta, (int)strlen(meta), NULL, NULL, XML_PARSE_NONET | XML_PARSE_NOERROR);
	owner = doc ? xmlNodeGetContent(xmlDocGetRootElement(doc)) : NULL;
	same = owner && strcmp((const char *)owner, dir) == 0;
	xmlFree(owner);
	return same;
}

static int sweep_domains(struct host *host, const char *dir, int *ret_n, struct err *err)
{
	virDomainPtr *doms = NULL;
	int n, r = 0;

	host_guard();
	n = virConnectListAllDomains(host_connection(host), &doms, VIR_CONNECT_LIST_DOMAINS_ACTIVE);
	if (n < 0)
		r = host_error(err, "cannot list the domains");
	for (int i = 0; i < n; i++) {
		if (is_ours(doms[i], dir)) {
			struct err why;
			int ended = vm_destroy_domain(doms[i], &why);

			if (ended == 0)
				++*ret_n;
			else if (r == 0)
				r = err_set(err, -ended, "%s", why.msg);
		}
		virDomainFree(doms[i]);
	}
	host_unguard();
	free(doms);
	return r;
}

/* Is this process a QEMU whose state is below root? Process numbers are used again. */
static int is_qemu_of(pid_t pid, const char *root)
{
	cleanup(free) char *path = xasprintf("/proc/%d/cmdline", (int)pid);
	cleanup(free) char *state = xasprintf("%s/lib/qemu/domain-", root);
	cleanup(buf_release) struct buf line = BUF_INIT;

	if (file_read(path, 1 << 17, &line, NULL) < 0 || !line.len)
		return 0;
	return strstr(line.data, "qemu") && memmem(line.data, line.len, state, strlen(state));
}

static int end_qemu(pid_t pid, const char *root)
{
	if (!is_qemu_of(pid, root) || kill(pid, SIGKILL) < 0)
		return 0;
	for (int waited = 0; waited < KILL_WAIT_MS && is_qemu_of(pid, root); waited += 20)
		poll(NULL, 0, 20);
	return 1;
}

/* The last resort: by the pid files that libvirt wrote, without libvirt. */
static void end_strays(const char *root, int *ret_n)
{
	cleanup(free) char *run = file_join(root, "run/qemu");
	cleanup(closedir) DIR *d = opendir(run);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		cleanup(free) char *path = file_join(run, e->d_name);
		cleanup(buf_release) struct buf text = BUF_INIT;
		const char *dot = strrchr(e->d_name, '.');

		if (!dot || strcmp(dot, ".pid") != 0 || strcmp(e->d_name, "driver.pid") == 0)
			continue;
		if (file_read(path, 64, &text, NULL) == 0)
			*ret_n += end_qemu((pid_t)strtol(buf_str(&text), NULL, 10), root);
		unlink(path);
	}
}

static int sweep_marked(const char *dir, const char *uri, int *ret_n, struct err *err)
{
	cleanup(host_close) struct host *host = NULL;
	int embedded = !*uri;
	int r = host_open(uri, dir, &host, err);

	if (r == 0)
		r = sweep_domains(host, dir, ret_n, err);
	if (embedded) {
		cleanup(free) char *root = host_root_of(dir);
		cleanup(free) char *run = file_join(root, "run");
		cleanup(free) char *lib = file_join(root, "lib");

		end_strays(root, ret_n);
		/* A driver that does not start: its states and sockets go, what it probed stays. */
		if (!host) {
			file_remove(run, NULL);
			file_remove(lib, NULL);
			r = 0;
		}
	}
	return r;
}

int sweep_slot(const char *dir, int *ret_n, struct err *err)
{
	cleanup(free) char *path = marker_path(dir);
	cleanup(buf_release) struct buf text = BUF_INIT;
	cleanup(json_decref) json_t *obj = NULL;
	const char *uri = "";
	int r;

	r = file_read(path, 1 << 16, &text, err);
	if (r == -ENOENT)
		return 0;
	/* A marker that a full disk left empty still marks. */
	if (r == 0 && json_parse(buf_str(&text), text.len, &obj, NULL) == 0)
		uri = json_opt_str(obj, "uri", "");
	r = sweep_marked(dir, uri, ret_n, err);
	if (r == 0)
		sweep_unmark(dir);
	return r < 0 ? err_wrap(err, "%s", dir) : 0;
}
