#include "daemon/step.h"

#include <stdio.h>
#include <unistd.h>

#include "boot/buildslot.h"
#include "boot/store.h"
#include "boot/sweep.h"
#include "base/banned.h"

/* The first failure is the step's; the others are only logged, and the rest is swept all the same.
 */
struct sweep {
	int n;
	int r;
	struct err err;
};

static void note(struct sweep *s, int r, const struct err *err)
{
	if (r >= 0) {
		s->n += r;
		return;
	}
	fprintf(stderr, "sweep: %s\n", err->msg);
	if (s->r < 0)
		return;
	s->r = r;
	s->err = *err;
}

static void sweep_vm(struct sweep *s, const char *dir)
{
	cleanup(close) int claim = -1;
	struct err err;
	int n = 0, r;

	if (access(dir, F_OK) < 0)
		return;
	r = sweep_claim(dir, &claim, &err);
	if (r == 0)
		r = sweep_slot(dir, &n, &err);
	s->n += n;
	note(s, r, &err);
}

static void sweep_slot_of_builds(struct sweep *s, const char *dir)
{
	struct err err;

	note(s, buildslot_sweep(dir, &err), &err);
}

/* Call fn for each string of an array that may be missing. */
static void each(const json_t *request, const char *key, struct sweep *s,
	void (*fn)(struct sweep *, const char *))
{
	const json_t *item;
	size_t i;

	json_array_foreach (json_object_get(request, key), i, item)
		if (json_is_string(item))
			fn(s, json_string_value(item));
}

int step_sweep(const json_t *request, struct err *err)
{
	const char *store = json_opt_str(request, "store", NULL);
	struct sweep s = {0};
	struct err why;
	json_t *result;

	each(request, "vms", &s, sweep_vm);
	each(request, "slots", &s, sweep_slot_of_builds);
	if (store)
		note(&s, store_sweep(store, &why), &why);
	if (s.r < 0)
		return err_set(err, s.err.code, "%s", s.err.msg);
	result = json_object();
	json_set_int(result, "swept", s.n);
	step_result(result);
	return 0;
}
