#include "daemon/config.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/banned.h"

#define AT(field) offsetof(struct config, field)
#define TLS_CHOICES "auto|none|starttls|implicit"

const struct conf_key config_keys[] = {
	{"daemon", "state-dir", CONF_PATH, AT(state_dir), KBISECTD_STATEDIR, NULL, NULL, NULL,
		"folder of the database, build trees, kernels and logs"},
	{"daemon", "socket", CONF_PATH, AT(socket), "/run/kbisectd/kbisectd.sock", NULL, NULL, NULL,
		"the control socket; unused when systemd passes one"},
	{"daemon", "group", CONF_STRING, AT(group), NULL, NULL, NULL, NULL,
		"group whose members may submit jobs and read"},
	{"daemon", "admins", CONF_STRING, AT(admins), NULL, NULL, NULL, NULL,
		"users who may change the jobs of others, separated by spaces"},
	{"daemon", "host", CONF_STRING, AT(host), NULL, NULL, NULL, NULL,
		"name of this machine in logs and mails; default: its host name"},
	{"daemon", "benchmarks", CONF_PATH, AT(benchmarks), KBISECTD_SYSCONFDIR "/benchmarks.d",
		NULL, NULL, NULL, "folder of the benchmark files"},
	{"daemon", "data-dir", CONF_PATH, AT(data_dir), KBISECTD_DATADIR, NULL, NULL, NULL,
		"folder of the guest's recipe and the kernel configuration fragments"},
	{"daemon", "step-program", CONF_PATH, AT(step_program), NULL, NULL, NULL, NULL,
		"program that is run for each step; default: kbisectd-step beside kbisectd"},
	{"limits", "connections", CONF_INT, AT(connections), "64", "1", "10000", NULL,
		"clients at once on the control socket"},
	{"limits", "line", CONF_SIZE, AT(line), "1M", "4K", "64M", NULL,
		"longest request on the control socket"},
	{"limits", "queue", CONF_SIZE, AT(queue), "4M", "64K", "1G", NULL,
		"unread output after which a client is dropped"},
	{"limits", "infra-tries", CONF_INT, AT(infra_tries), "5", "1", "100", NULL,
		"infrastructure failures in a row after which a job fails"},
	{"limits", "retry-delay", CONF_DURATION, AT(retry_delay), "2s", "0", "1h", NULL,
		"wait after the first infrastructure failure; doubled after each further one"},
	{"build", "jobs", CONF_INT, AT(build_jobs), "0", "0", "4096", NULL,
		"make -j; 0 = one for each CPU"},
	{"build", "store-size", CONF_SIZE, AT(store_size), "20G", "64M", NULL, NULL,
		"disk space for built kernels; the least recently used go first"},
	{"build", "ccache", CONF_BOOL, AT(ccache), "yes", NULL, NULL, NULL,
		"use ccache when it is installed"},
	{"build", "sandbox", CONF_BOOL, AT(sandbox), "yes", NULL, NULL, NULL,
		"build inside bubblewrap: no network, only the build's folders writable"},
	{"boot", "uri", CONF_STRING, AT(uri), NULL, NULL, NULL, NULL,
		"libvirt connection; default: the embedded QEMU driver, no libvirtd needed"},
	{"mail", "from", CONF_STRING, AT(from), NULL, NULL, NULL, NULL,
		"sender of the verdicts; default: kbisectd at this host"},
	{"mail", "smtp", CONF_STRING, AT(smtp), NULL, NULL, NULL, NULL,
		"mail server, such as smtp://mail.example.org:587"},
	{"mail", "user", CONF_STRING, AT(user), NULL, NULL, NULL, NULL,
		"login name at the mail server"},
	{"mail", "password-file", CONF_PATH, AT(password_file), NULL, NULL, NULL, NULL,
		"file whose first line is the password"},
	{"mail", "tls", CONF_ENUM, AT(tls), "auto", NULL, NULL, TLS_CHOICES,
		"encryption: when offered, never, STARTTLS or nothing, from the first byte"},
	{"mail", "ca-file", CONF_PATH, AT(ca_file), NULL, NULL, NULL, NULL,
		"certificates to trust; default: the system's"},
	{"mail", "sendmail", CONF_STRING, AT(sendmail), NULL, NULL, NULL, NULL,
		"command that takes a message on standard input, in place of smtp"},
	{"mail", "retry", CONF_DURATION, AT(mail_retry), "5m", "1s", "1d", NULL,
		"wait before a mail that could not be handed over is tried again"},
	CONF_END,
};

const char *config_tls_name(int tls)
{
	static const char *const names[] = {"auto", "none", "starttls", "implicit"};

	return names[tls];
}

int config_load(const char *path, struct config **ret, struct err *err)
{
	cleanup(config_free) struct config *config = xcalloc(1, sizeof(*config));
	int r;

	r = conf_load(path, NULL, config_keys, config, err);
	if (r < 0)
		return r;
	if (config->smtp && config->sendmail)
		return err_set(err, EINVAL, "%s: both smtp and sendmail are given; keep one", path);
	if (config->user && !config->password_file)
		return err_set(err, EINVAL, "%s: user is given but password-file is not", path);
	if (!config->host) {
		char name[256] = "localhost";

		gethostname(name, sizeof(name) - 1);
		config->host = xstrdup(name);
	}
	*ret = steal(&config);
	return 0;
}

void config_free(struct config *config)
{
	if (!config)
		return;
	conf_release(config_keys, config);
	free(config);
}
