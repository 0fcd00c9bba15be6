/* A main for a fuzz target that replays the files named on the command line. */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/banned.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		struct buf text = BUF_INIT;
		struct err err;
		uint8_t *exact;

		if (file_read(argv[i], 1 << 26, &text, &err) < 0) {
			fprintf(stderr, "%s\n", err.msg);
			return 1;
		}
		/* Without buf's terminating zero, so that reading beyond the end is caught. */
		exact = malloc(text.len ? text.len : 1);
		if (!exact)
			abort();
		memcpy(exact, buf_str(&text), text.len);
		LLVMFuzzerTestOneInput(exact, text.len);
		free(exact);
		buf_release(&text);
	}
	printf("%d inputs\n", argc - 1);
	return argc > 1 ? 0 : 1;
}
