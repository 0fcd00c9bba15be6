/* One line of the control socket: any bytes give a request or an error reply, and never both. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "daemon/rpc.h"
#include "base/banned.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What goes back over the socket must itself be one line of JSON. */
static void check_reply(json_t *reply)
{
	cleanup(json_decref) json_t *again = NULL;
	cleanup(free) char *line = json_line(reply);

	if (strchr(line, '\n') || json_parse(line, strlen(line), &again, NULL) < 0 ||
		!json_equal(reply, again))
		abort();
	json_decref(reply);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup(rpc_release) struct rpc_request request = {0};
	cleanup(free) char *line =
		xmalloc(size ? size : 1); /* exactly, so that a byte more is seen */
	struct err err;
	json_t *refusal;

	if (size)
		memcpy(line, data, size);
	if (rpc_blank(line, size))
		return 0;
	refusal = rpc_parse(line, size, &request);
	if (!refusal == !request.root)
		abort();
	if (refusal) {
		check_reply(refusal);
		return 0;
	}
	if (!request.method || (request.params && !json_is_object(request.params)))
		abort();
	if (rpc_check("job, why?, follow?", request.params, &err) < 0)
		check_reply(rpc_error(request.id, -32602, err.msg));
	else
		check_reply(rpc_result(request.id, json_incref(request.params)));
	return 0;
}
