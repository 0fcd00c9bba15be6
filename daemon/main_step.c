/*
 * kbisectd-step: one step in a process of its own, `kbisectd-step --step NAME`. A program beside
 * kbisectd, since the steps need some sixty libraries (libvirt, libgit2, curl and theirs) that the
 * daemon, which runs for months, would otherwise keep in its memory.
 */
#include <stdio.h>
#include <string.h>

#include "daemon/step.h"
#include "base/banned.h"

int main(int argc, char **argv)
{
	if (argc != 3 || strcmp(argv[1], "--step") != 0) {
		fputs("usage: kbisectd --step NAME < REQUEST\n", stderr);
		return 2;
	}
	return step_main(argv[2]);
}
