#include "daemon/rpc.h"

#include <errno.h>
#include <string.h>

#include "daemon/control.h"
#include "base/banned.h"

/* The blanks of JSON (RFC 8259, 2). */
#define BLANKS " \t\r\n"

int rpc_blank(const char *line, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!line[i] || !strchr(BLANKS, line[i]))
			return 0;
	return 1;
}

/* The first byte that is not blank, or 0. */
static char first_byte(const char *line, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!line[i] || !strchr(BLANKS, line[i]))
			return line[i];
	return 0;
}

/* Past a string's closing quote, or len. i is behind the opening one. */
static size_t skip_string(const char *line, size_t len, size_t i)
{
	for (; i < len; i++) {
		if (line[i] == '\\')
			i++;
		else if (line[i] == '"')
			return i + 1;
	}
	return len;
}

/*
 * How deep and how many values, told from the punctuation before anything is allocated: parsed, an
 * empty object is a hundred times its two bytes.
 */
static const char *check_shape(const char *line, size_t len)
{
	size_t depth = 0, values = 0, i = 0;

	while (i < len) {
		char c = line[i++];

		if (c == '"') {
			i = skip_string(line, len, i);
		} else if (c == '{' || c == '[') {
			depth++;
			values++;
		} else if ((c == '}' || c == ']') && depth > 0) {
			depth--;
		} else if (c == ',') {
			values++;
		}
		if (depth > RPC_DEPTH_MAX)
			return "the request is nested too deeply";
		if (values > RPC_VALUES_MAX)
			return "the request has too many values";
	}
	return NULL;
}

static int valid_id(const json_t *id)
{
	return json_is_string(id) || json_is_number(id) || json_is_null(id);
}

/* What makes a parsed value no request, or 0 and the request's parts. *ret_text says it in words.
 */
static int take_parts(json_t *root, struct rpc_request *ret, const char **ret_text)
{
	const char *version = json_string_value(json_object_get(root, "jsonrpc"));

	*ret_text = NULL;
	ret->id = json_object_get(root, "id");
	ret->method = json_string_value(json_object_get(root, "method"));
	ret->params = json_object_get(root, "params");
	if (!json_is_object(root))
		*ret_text = "a request is a JSON object";
	else if (ret->id && !valid_id(ret->id))
		*ret_text = "\"id\" must be a string, a number or null";
	else if (!version || strcmp(version, "2.0") != 0)
		*ret_text = "\"jsonrpc\" must be \"2.0\"";
	else if (!ret->method)
		*ret_text = "\"method\" must be a string";
	if (*ret_text)
		return CONTROL_INVALID_REQUEST;
	if (!ret->params || json_is_object(ret->params))
		return 0;
	*ret_text = "\"params\" must be an object: parameters go by name";
	return CONTROL_INVALID_PARAMS;
}

json_t *rpc_parse(const char *line, size_t len, struct rpc_request *ret)
{
	cleanup(json_decref) json_t *root = NULL;
	struct rpc_request request = {0};
	struct err err = {0};
	const char *text;
	int code;

	if (first_byte(line, len) == '[')
		return rpc_error(NULL, CONTROL_INVALID_REQUEST,
			"batches are not supported: send one request a line");
	text = check_shape(line, len);
	if (text)
		return rpc_error(NULL, CONTROL_INVALID_REQUEST, text);
	if (json_parse(line, len, &root, &err) < 0)
		return rpc_error(NULL, CONTROL_PARSE, err.msg);
	code = take_parts(root, &request, &text);
	if (code)
		return rpc_error(valid_id(request.id) ? request.id : NULL, code, text);
	request.root = steal(&root);
	*ret = request;
	return NULL;
}

void rpc_release(struct rpc_request *request)
{
	json_decref(request->root);
	*request = (struct rpc_request){0};
}

/* Is a name in the list? Its end in the list, for the question mark. */
static const char *find_name(const char *list, const char *name)
{
	size_t len = strlen(name);

	while (*list) {
		size_t n = strcspn(list, "?, ");

		if (n == len && memcmp(list, name, len) == 0)
			return list + n;
		list += n;
		list += strspn(list, "?, ");
	}
	return NULL;
}

/* The names that must be given. */
static int check_required(const char *list, const json_t *params, struct err *err)
{
	while (*list) {
		size_t n = strcspn(list, "?, ");

		if (list[n] != '?' && !json_object_getn(params, list, n))
			return err_set(
				err, EINVAL, "the parameter \"%.*s\" is missing", (int)n, list);
		list += n;
		list += strspn(list, "?, ");
	}
	return 0;
}

int rpc_check(const char *list, const json_t *params, struct err *err)
{
	const char *name;
	json_t *value;

	if (!list)
		list = "";
	json_object_foreach ((json_t *)params, name, value) {
		if (find_name(list, name))
			continue;
		if (!*list)
			return err_set(err, EINVAL,
				"unknown parameter \"%.100s\" (the method takes none)", name);
		return err_set(err, EINVAL, "unknown parameter \"%.100s\" (known: %s)", name, list);
	}
	return check_required(list, params, err);
}

static json_t *message(void)
{
	json_t *msg = json_object();

	json_set_str(msg, "jsonrpc", "2.0");
	return msg;
}

static json_t *reply_to(json_t *id)
{
	json_t *msg = message();

	json_object_set_new(msg, "id", id ? json_incref(id) : json_null());
	return msg;
}

json_t *rpc_result(json_t *id, json_t *result)
{
	json_t *msg = reply_to(id);

	json_object_set_new(msg, "result", result ? result : json_null());
	return msg;
}

json_t *rpc_error(json_t *id, int code, const char *text)
{
	json_t *msg = reply_to(id), *error = json_object();

	json_set_int(error, "code", code);
	json_set_str(error, "message", text);
	json_object_set_new(msg, "error", error);
	return msg;
}

json_t *rpc_notification(const char *method, json_t *params)
{
	json_t *msg = message();

	json_set_str(msg, "method", method);
	if (params)
		json_object_set_new(msg, "params", params);
	return msg;
}
