#include "boot/vm.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/banned.h"

struct vm {
	virConnectPtr conn;
	virDomainPtr dom;
	virStreamPtr console;
	struct vm_events events;
	pthread_t reader;
	int reading, gone;
	int callback;
	sem_t released; /* libvirt will not call us back any more */
	atomic_int destroying;
};

static void *read_console(void *arg)
{
	struct vm *vm = arg;
	char chunk[16384];
	int n;

	while ((n = virStreamRecv(vm->console, chunk, sizeof(chunk))) > 0)
		vm->events.console(vm->events.arg, chunk, (size_t)n);
	return NULL;
}

static int on_lifecycle(virConnectPtr conn, virDomainPtr dom, int event, int detail, void *arg)
{
	struct vm *vm = arg;

	(void)conn;
	(void)dom;
	if (event != VIR_DOMAIN_EVENT_STOPPED || atomic_load(&vm->destroying))
		return 0;
	vm->events.ended(vm->events.arg,
		detail == VIR_DOMAIN_EVENT_STOPPED_SHUTDOWN ? VM_SHUT_DOWN : VM_LOST);
	return 0;
}

static void on_release(void *arg)
{
	sem_post(&((struct vm *)arg)->released);
}

static int create_error(struct err *err, const char *name)
{
	virErrorPtr e = virGetLastError();
	cleanup(free) char *what = xasprintf("cannot start the domain %s", name);
	int r = host_error(err, what);

	if (e && e->message && strstr(e->message, "host forwarding"))
		return err_set(err, EADDRINUSE, "%s: the port for ssh is taken", what);
	return r;
}

/* Watch its life cycle and read its console, before its first instruction runs. */
static int attach(struct vm *vm, const char *name, struct err *err)
{
	int r;

	vm->callback =
		virConnectDomainEventRegisterAny(vm->conn, vm->dom, VIR_DOMAIN_EVENT_ID_LIFECYCLE,
			VIR_DOMAIN_EVENT_CALLBACK(on_lifecycle), vm, on_release);
	if (vm->callback < 0)
		return create_error(err, name);
	vm->console = virStreamNew(vm->conn, 0);
	if (!vm->console || virDomainOpenConsole(vm->dom, NULL, vm->console, 0) < 0)
		return create_error(err, name);
	r = pthread_create(&vm->reader, NULL, read_console, vm);
	if (r)
		return err_sys(err, r, "cannot start a thread");
	vm->reading = 1;
	return 0;
}

int vm_create(struct host *host, const char *name, const char *xml, const struct vm_events *events,
	struct vm **ret, struct err *err)
{
	cleanup(vm_free) struct vm *vm = xcalloc(1, sizeof(*vm));
	unsigned flags = VIR_DOMAIN_START_PAUSED;
	int r;

	vm->conn = host_connection(host);
	vm->events = *events;
	vm->callback = -1;
	sem_init(&vm->released, 0, 0);
	if (!host_root(host))
		flags |= VIR_DOMAIN_START_AUTODESTROY;
	host_guard();
	vm->dom = virDomainCreateXML(vm->conn, xml, flags);
	host_unguard();
	if (!vm->dom)
		return create_error(err, name);
	host_guard();
	r = attach(vm, name, err);
	host_unguard();
	if (r < 0)
		return r;
	*ret = steal(&vm);
	return 0;
}

int vm_resume(struct vm *vm, struct err *err)
{
	int r;

	host_guard();
	r = virDomainResume(vm->dom);
	host_unguard();
	return r < 0 ? host_error(err, "cannot resume the domain") : 0;
}

int vm_destroy_domain(void *dom, struct err *err)
{
	virErrorPtr e;

	if (virDomainDestroy(dom) == 0)
		return 0;
	e = virGetLastError();
	if (e && (e->code == VIR_ERR_NO_DOMAIN || e->code == VIR_ERR_OPERATION_INVALID))
		return 0;
	return host_error(err, "cannot destroy the domain");
}

int vm_destroy(struct vm *vm, struct err *err)
{
	int r = 0;

	if (vm->gone)
		return 0;
	host_guard();
	atomic_store(&vm->destroying, 1);
	r = vm_destroy_domain(vm->dom, err);
	if (r == 0) {
		if (vm->reading)
			pthread_join(vm->reader, NULL);
		vm->gone = 1;
	}
	host_unguard();
	return r;
}

void vm_free(struct vm *vm)
{
	if (!vm)
		return;
	host_guard();
	/* A domain that cannot be destroyed is left to sweep, with what its threads still use. */
	if (vm->dom && vm_destroy(vm, NULL) < 0) {
		host_unguard();
		return;
	}
	if (vm->callback >= 0) {
		virConnectDomainEventDeregisterAny(vm->conn, vm->callback);
		while (sem_wait(&vm->released) < 0 && errno == EINTR)
			;
	}
	if (vm->console) {
		virStreamAbort(vm->console);
		virStreamFree(vm->console);
	}
	if (vm->dom)
		virDomainFree(vm->dom);
	host_unguard();
	sem_destroy(&vm->released);
	free(vm);
}

int vm_free_port(int *ret_port, struct err *err)
{
	cleanup(close) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in addr = {.sin_family = AF_INET};
	socklen_t len = sizeof(addr);

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ||
		getsockname(fd, (struct sockaddr *)&addr, &len) < 0)
		return err_sys(err, errno, "cannot find a free port of 127.0.0.1");
	*ret_port = ntohs(addr.sin_port);
	return 0;
}
