#ifndef DAEMON_REQUEST_H
#define DAEMON_REQUEST_H

/*
 * The requests of the steps (daemon/step.h), put together from a job's view and the configuration.
 * Pure; the caller owns the object. Also the layout of the state folder: the path functions return
 * strings to free.
 */

#include "base/json.h"
#include "daemon/config.h"
#include "daemon/view.h"

json_t *request_accept(
	const struct config *config, const char *text, const char *where, const char *dir);
json_t *request_pick(const struct view *view);
/* log: the file for make's output. */
json_t *request_build(const struct config *config, const struct view *view,
	const struct view_commit *commit, int slot, const char *log);
/* boots: [{run, kernel, dir}], taken over. */
json_t *request_measure(
	const struct config *config, const struct view *view, json_t *boots, int slot);
json_t *request_sweep(const struct config *config, int slots);
/* stored: the mail's own part, from the database. */
json_t *request_mail(const struct config *config, const json_t *stored, const char *marker);

/* Longest time that the step may take, in ms, well above its own limits. */
int64_t request_build_deadline(const struct view *view);
int64_t request_measure_deadline(const struct view *view, size_t boots);

char *path_job(const struct config *config, int64_t job);
char *path_run(const struct config *config, int64_t job, int64_t run);

#endif
