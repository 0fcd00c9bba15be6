#include "daemon/step.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "bisect/pick.h"
#include "bisect/range.h"
#include "daemon/commit_json.h"
#include "base/banned.h"

struct search {
	struct repo *repo;
	const char **good; /* borrowed from the request */
	size_t ngood;
	const char *bad;
	struct range range;
	unsigned char *marks;
};

static void search_release(struct search *search)
{
	repo_free(search->repo);
	free(search->good);
	range_release(&search->range);
	free(search->marks);
}

static void cleanup_search_release(struct search *search)
{
	search_release(search);
}

static int read_request(const json_t *request, struct search *search, struct err *err)
{
	json_t *good, *item;
	const char *path;
	size_t i;
	int r = json_get_str(request, "repo", &path, err);

	if (r == 0)
		r = json_get_str(request, "bad", &search->bad, err);
	if (r == 0)
		r = json_get_arr(request, "good", &good, err);
	if (r < 0)
		return r;
	search->good = xcalloc(json_array_size(good) + 1, sizeof(*search->good));
	json_array_foreach (good, i, item) {
		if (!json_is_string(item))
			return err_set(err, EBADMSG, "\"good\" must be a list of ids");
		search->good[search->ngood++] = json_string_value(item);
	}
	r = repo_open(path, &search->repo, err);
	if (r < 0)
		return r;
	return range_load(
		search->repo, search->good, search->ngood, search->bad, &search->range, err);
}

/* The job's record says two things that cannot both be true. */
static int contradiction(struct search *search, const char *good, const char *bad, struct err *err)
{
	cleanup(free) char *good_label = repo_label(search->repo, good);
	cleanup(free) char *bad_label = repo_label(search->repo, bad);

	if (strcmp(good, bad) == 0)
		return err_set(err, EINVAL,
			"the verdicts contradict each other: %s is both good and bad", good_label);
	return err_set(err, EINVAL,
		"the verdicts contradict each other: %s is good but contains %s, which is bad",
		good_label, bad_label);
}

/* A commit that is no candidate, but was called bad: good commits must not contain it. */
static int check_outsider(struct search *search, const char *id, struct err *err)
{
	for (size_t i = 0; i < search->ngood; i++) {
		int r = range_contains(search->repo, id, search->good[i], err);

		if (r > 0)
			return contradiction(search, search->good[i], id, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Other verdicts on commits outside the range change nothing in it. */
static int mark(struct search *search, const json_t *verdicts, struct err *err)
{
	static const struct {
		const char *verdict;
		enum pick_mark_kind mark;
	} kinds[] = {
		{"good", PICK_GOOD},
		{"bad", PICK_BAD},
		{"skip", PICK_SKIP},
		{"unsure", PICK_SKIP},
	};
	const char *id;
	json_t *value;
	int r = 0;

	search->marks = xcalloc((size_t)search->range.graph.n + 1, 1);
	json_object_foreach ((json_t *)verdicts, id, value) {
		const char *verdict = json_is_string(value) ? json_string_value(value) : "";
		uint32_t at = range_find(&search->range, id);
		size_t k = 0;

		while (k < 4 && strcmp(kinds[k].verdict, verdict) != 0)
			k++;
		if (k == 4)
			return err_set(err, EBADMSG, "%s: \"%s\" is no verdict", id, verdict);
		if (at != RANGE_NONE)
			search->marks[at] = (unsigned char)kinds[k].mark;
		else if (kinds[k].mark == PICK_BAD)
			r = check_outsider(search, id, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* The bad end is bad by definition, even where its own boots could not tell. */
static int mark_bad_end(struct search *search, struct err *err)
{
	uint32_t at = range_find(&search->range, search->bad);

	if (at == RANGE_NONE)
		return check_outsider(search, search->bad, err);
	if (search->marks[at] == PICK_GOOD)
		return contradiction(search, search->bad, search->bad, err);
	search->marks[at] = PICK_BAD;
	return 0;
}

static int add_commit(
	struct search *search, uint32_t at, enum commit_parts parts, json_t **ret, struct err *err)
{
	char id[REPO_ID_SIZE];

	range_id(&search->range, at, id);
	return commit_json(search->repo, id, parts, ret, err);
}

static int add_set(struct search *search, const struct pick *pick, json_t *result, struct err *err)
{
	json_t *set = json_array();

	json_object_set_new(result, "set", set);
	for (uint32_t i = 0; i < pick->left; i++) {
		json_t *commit;
		int r = add_commit(search, pick->set[i], COMMIT_SHORT, &commit, err);

		if (r < 0)
			return r;
		json_array_append_new(set, commit);
	}
	return 0;
}

static int answer(struct search *search, const struct pick *pick, json_t *result, struct err *err)
{
	int found = pick->answer == PICK_CULPRIT;
	json_t *commit;
	int r;

	json_set_int(result, "left", pick->left);
	json_set_int(result, "steps", pick->steps);
	if (pick->answer == PICK_SET)
		return add_set(search, pick, result, err);
	r = add_commit(search, pick->next, found ? COMMIT_FULL : COMMIT_SHORT, &commit, err);
	if (r < 0)
		return r;
	json_object_set_new(result, found ? "culprit" : "next", commit);
	return 0;
}

static int refuse_pick(struct search *search, const struct pick *pick, struct err *err)
{
	char good[REPO_ID_SIZE], bad[REPO_ID_SIZE];

	if (pick->answer == PICK_EMPTY) {
		err_set(err, EINVAL,
			"the verdicts leave no commit that all bad ones contain and no good one "
			"does: more than one commit is at fault, or a verdict is wrong");
	} else {
		range_id(&search->range, pick->good, good);
		range_id(&search->range, pick->bad, bad);
		contradiction(search, good, bad, err);
	}
	return step_refuse(err);
}

int step_pick(const json_t *request, struct err *err)
{
	cleanup(search_release) struct search search = {.range = {.graph = GRAPH_INIT}};
	cleanup(pick_release) struct pick pick_result = {0};
	cleanup(json_decref) json_t *result = json_object();
	int r = read_request(request, &search, err);

	if (r < 0)
		return r;
	r = mark(&search, json_object_get(request, "verdicts"), err);
	if (r == 0)
		r = mark_bad_end(&search, err);
	if (r == -EINVAL)
		return step_refuse(err);
	if (r < 0)
		return r;
	pick(&search.range.graph, search.marks, &pick_result);
	if (pick_result.answer == PICK_CONFLICT || pick_result.answer == PICK_EMPTY)
		return refuse_pick(&search, &pick_result, err);
	r = answer(&search, &pick_result, result, err);
	if (r < 0)
		return r;
	step_result(steal(&result));
	return 0;
}
