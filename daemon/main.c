/* kbisectd(8): options, wiring, signals, and the end. */
#include <errno.h>
#include <event2/event.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/sd.h"
#include "daemon/log.h"
#include "daemon/server.h"
#include "base/banned.h"

#define SLOTS 1
#define STOP_LIMIT_S 30 /* steps that have not ended by then are killed with the daemon */

static const char usage[] =
	"usage: kbisectd [-c FILE]           run the daemon (in the foreground)\n"
	"       kbisectd [-c FILE] --check   check the configuration and print it\n"
	"       kbisectd --step NAME         run one step by hand: request on standard input\n"
	"       kbisectd --version | --help\n"
	"\n"
	"  -c, --config FILE  configuration; default " KBISECTD_SYSCONFDIR "/kbisectd.conf\n"
	"\n"
	"See kbisectd(8) and kbisectd.conf(5). People talk to it with kbctl(1).\n";

static void on_news(void *arg, const struct db_event *event)
{
	struct server *server = arg;
	cleanup(db_job_release) struct db_job job = {0};

	followers_event(server->followers, event);
	if (strcmp(event->kind, "state") != 0)
		return;
	if (db_job_get(server->db, event->job, &job, NULL) < 0 || !job.ended)
		return;
	followers_end(server->followers, &job);
	mailer_kick(server->mailer);
}

static void on_progress(void *arg, int64_t job, const char *text)
{
	struct server *server = arg;

	followers_progress(server->followers, job, text);
}

static struct control_limits limits_of(const struct config *config)
{
	return (struct control_limits){
		.line_max = (size_t)config->line,
		.queue_max = (size_t)config->queue,
		.connections_max = (int)config->connections,
	};
}

/* Keys that only a restart can change keep their value. */
static const char *needs_restart(const struct config *old, const struct config *new)
{
	if (strcmp(old->state_dir, new->state_dir) != 0)
		return "state-dir";
	if (strcmp(old->socket, new->socket) != 0)
		return "socket";
	return NULL;
}

static void reload(struct server *server)
{
	cleanup(config_free) struct config *config = NULL;
	struct control_limits limits;
	const char *key;
	struct err err;

	sd_notify_send("RELOADING=1");
	if (config_load(server->config_path, &config, &err) < 0) {
		log_line(LOG_ERR, "reload: nothing changed: %s", err.msg);
	} else if ((key = needs_restart(server->config, config))) {
		log_line(LOG_ERR, "reload: nothing changed: %s: %s needs a restart",
			server->config_path, key);
	} else {
		struct config *old = server->config;

		server->config = steal(&config);
		limits = limits_of(server->config);
		control_configure(
			server->control, server->config->group, server->config->admins, &limits);
		config_free(old);
		mailer_kick(server->mailer);
		log_line(LOG_NOTICE, "reload: %s", server->config_path);
	}
	sd_notify_send("READY=1");
}

static void on_hup(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	reload(arg);
}

static void on_drained(void *arg)
{
	struct server *server = arg;

	if (--server->draining == 0)
		event_base_loopexit(server->base, NULL);
}

static void on_term(evutil_socket_t fd, short what, void *arg)
{
	struct server *server = arg;
	struct timeval limit = {STOP_LIMIT_S, 0};

	(void)fd, (void)what;
	if (server->draining)
		return;
	log_line(LOG_NOTICE, "stopping");
	sd_notify_send("STOPPING=1");
	server->draining = 2;
	event_base_loopexit(server->base, &limit);
	mailer_drain(server->mailer, on_drained, server);
	queue_drain(server->queue, on_drained, server);
}

/* The step program, unless the configuration names another: beside this one. Free it. */
static char *step_path(void)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	return n > 0 ? xasprintf("%.*s-step", (int)n, path) : xstrdup("kbisectd-step");
}

static int step_exec(const char *name)
{
	cleanup(free) char *path = step_path();
	const char *argv[] = {path, "--step", name, NULL};

	execvp(path, (char *const *)argv);
	fprintf(stderr, "kbisectd: cannot run %s: %s\n", path, strerror(errno));
	return EXIT_FAILURE;
}

static int open_state(struct server *server, int *ret_lock, struct err *err)
{
	cleanup(free) char *lock = xasprintf("%s/lock", server->config->state_dir);
	cleanup(free) char *file = xasprintf("%s/kbisectd.db", server->config->state_dir);
	cleanup(free) char *accept = xasprintf("%s/accept", server->config->state_dir);
	int r;

	r = file_mkdir(server->config->state_dir, 0750, err);
	if (r == 0)
		r = file_lock(lock, 0, ret_lock, err);
	if (r == -EWOULDBLOCK)
		return err_set(err, EBUSY,
			"another kbisectd runs on the state folder %s; stop it or give state-dir "
			"another value",
			server->config->state_dir);
	if (r == 0)
		r = file_remove(accept, err);
	if (r == 0)
		r = db_open(file, &server->db, err);
	return r;
}

static int open_control(struct server *server, struct err *err)
{
	struct control_spec spec = {
		.base = server->base,
		.path = server->config->socket,
		.group = server->config->group,
		.admins = server->config->admins,
		.limits = limits_of(server->config),
		.methods = methods,
		.arg = server,
	};

	spec.fd = sd_listen_socket(err);
	if (spec.fd < -1)
		return spec.fd;
	return control_new(&spec, &server->control, err);
}

/* Build everything that hangs together; on failure the caller's server_close takes it down. */
static int server_open(struct server *server, int *ret_lock, struct err *err)
{
	struct queue_spec spec = {0};
	int r;

	r = open_state(server, ret_lock, err);
	if (r < 0)
		return r;
	server->base = event_base_new();
	server->started = clock_wall_ms();
	server->slots = SLOTS;
	server->followers = followers_new();
	server->recorder = recorder_new(server->db, on_news, server);
	spec.base = server->base;
	spec.db = server->db;
	spec.recorder = server->recorder;
	spec.config = &server->config;
	spec.program = server->program;
	spec.slots = server->slots;
	spec.progress = on_progress;
	spec.arg = server;
	server->queue = queue_new(&spec);
	server->mailer = mailer_new(&spec);
	r = open_control(server, err);
	return r < 0 ? r : queue_start(server->queue, err);
}

static void server_close(struct server *server)
{
	control_free(server->control);
	queue_free(server->queue);
	mailer_free(server->mailer);
	followers_free(server->followers);
	recorder_free(server->recorder);
	if (server->base)
		event_base_free(server->base);
	db_close(server->db);
	config_free(server->config);
}

static void serve(struct server *server)
{
	struct event *hup = evsignal_new(server->base, SIGHUP, on_hup, server);
	struct event *term = evsignal_new(server->base, SIGTERM, on_term, server);
	struct event *intr = evsignal_new(server->base, SIGINT, on_term, server);

	event_add(hup, NULL);
	event_add(term, NULL);
	event_add(intr, NULL);
	log_line(LOG_NOTICE, "ready: version %s, state in %s, socket %s", KBISECTD_VERSION,
		server->config->state_dir, server->config->socket);
	sd_notify_send("READY=1");
	mailer_kick(server->mailer);
	event_base_dispatch(server->base);
	event_free(hup);
	event_free(term);
	event_free(intr);
}

static int daemon_main(const char *config_path)
{
	struct server server = {.config_path = config_path};
	cleanup(free) char *steps = step_path();
	cleanup(close) int lock = -1;
	struct err err = {0};
	int r;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	r = config_load(config_path, &server.config, &err);
	if (r == 0) {
		server.program = server.config->step_program ? server.config->step_program : steps;
		r = server_open(&server, &lock, &err);
	}
	if (r == 0)
		serve(&server);
	else
		log_line(LOG_ERR, "%s", err.msg);
	server_close(&server);
	return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int check_main(const char *config_path)
{
	cleanup(config_free) struct config *config = NULL;
	cleanup(buf_release) struct buf text = BUF_INIT;
	struct err err;

	if (config_load(config_path, &config, &err) < 0) {
		fprintf(stderr, "kbisectd: %s\n", err.msg);
		return EXIT_FAILURE;
	}
	conf_print(config_keys, config, &text);
	fputs(buf_str(&text), stdout);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"config", required_argument, NULL, 'c'},
		{"check", no_argument, NULL, 'k'},
		{"step", required_argument, NULL, 's'},
		{"version", no_argument, NULL, 'V'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	const char *config_path = KBISECTD_SYSCONFDIR "/kbisectd.conf", *step = NULL;
	int check = 0, c;

	while ((c = getopt_long(argc, argv, "c:h", options, NULL)) != -1) {
		switch (c) {
		case 'c':
			config_path = optarg;
			break;
		case 'k':
			check = 1;
			break;
		case 's':
			step = optarg;
			break;
		case 'V':
			puts("kbisectd " KBISECTD_VERSION);
			return EXIT_SUCCESS;
		case 'h':
			fputs(usage, stdout);
			return EXIT_SUCCESS;
		default:
			fputs(usage, stderr);
			return 2;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "kbisectd: unexpected argument \"%s\"\n%s", argv[optind], usage);
		return 2;
	}
	if (step)
		return step_exec(step);
	return check ? check_main(config_path) : daemon_main(config_path);
}
