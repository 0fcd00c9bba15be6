/* The console scanner: any bytes, in chunks whose sizes the first byte decides. */
#include <stdint.h>
#include <stdlib.h>

#include "boot/console.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup(console_free) struct console *c = console_new();
	cleanup(buf_release) struct buf clean = BUF_INIT, tail = BUF_INIT;
	size_t chunk = size ? data[0] % 64 + 1 : 1;

	for (size_t i = 1; i < size; i += chunk)
		console_feed(
			c, (const char *)data + i, size - i < chunk ? size - i : chunk, &clean);
	console_finish(c);
	console_tail(c, &tail);
	for (size_t i = 0; i < clean.len; i++)
		if (clean.data[i] == '\x1b' || clean.data[i] == '\0')
			abort();
	return 0;
}
