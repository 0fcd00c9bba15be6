#include "daemon/commit_json.h"

#include "base/banned.h"

static json_t *short_form(const struct commit *commit)
{
	json_t *json = json_object();

	json_set_str(json, "id", commit->id);
	json_set_str(json, "label", commit->label);
	json_set_str(json, "subject", commit->subject);
	return json;
}

static int add_parents(
	struct repo *repo, const struct commit *commit, json_t *json, struct err *err)
{
	json_t *parents = json_array();

	json_object_set_new(json, "parents", parents);
	for (size_t i = 0; i < commit->nparents; i++) {
		cleanup(commit_release) struct commit parent = {0};
		int r = commit_read(repo, commit->parents[i], COMMIT_SHORT, &parent, err);

		if (r < 0)
			return r;
		json_array_append_new(parents, short_form(&parent));
	}
	return 0;
}

int commit_json(
	struct repo *repo, const char *id, enum commit_parts parts, json_t **ret, struct err *err)
{
	cleanup(commit_release) struct commit commit = {0};
	cleanup(json_decref) json_t *json = NULL;
	int r = commit_read(repo, id, parts, &commit, err);

	if (r < 0)
		return r;
	json = short_form(&commit);
	if (parts == COMMIT_FULL) {
		json_set_str(json, "body", commit.body);
		json_set_str(json, "author", commit.author);
		json_set_int(json, "date", commit.date);
		json_set_str(json, "diffstat", commit.diffstat);
		r = add_parents(repo, &commit, json, err);
		if (r < 0)
			return r;
	}
	*ret = steal(&json);
	return 0;
}
