// SPDX-License-Identifier: MIT OR GPL-2.0-only
// run [-b BYTES] [-m MESSAGES] [-r] PROGRAM...: the program, in a cgroup of its own, with override.bpf.c. -r: directions return from TCP.
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const COUNTS[] = { "sockets", "directions carried", "switched", "without a peer", "messages", "over TCP" };
static char group[200];

static void fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	if (*group)
		rmdir(group);
	exit(1);
}

static void into_group(void)
{
	char procs[220];
	snprintf(procs, sizeof procs, "%s/cgroup.procs", group);
	FILE *file = fopen(procs, "w");
	if (!file || fprintf(file, "0") < 0 || fclose(file))
		fail(procs);
}

int main(int count, char **words)
{
	// The program's constants, as they lie in .rodata.
	struct { unsigned bytes, messages, returns; } set = { 65536, 256, 0 };
	for (int option; (option = getopt(count, words, "+b:m:r")) > 0;) {
		if (option == 'b')
			set.bytes = strtoul(optarg, 0, 0);
		else if (option == 'm')
			set.messages = strtoul(optarg, 0, 0);
		else
			set.returns = 1;
	}
	const char *hybrid = "/sys/fs/cgroup/unified", *root = access(hybrid, F_OK) ? "/sys/fs/cgroup" : hybrid;
	snprintf(group, sizeof group, "%s/override-%d", root, getpid());
	if (mkdir(group, 0755))
		fail(group);
	int at = open(group, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct bpf_object *object = bpf_object__open_file("override.bpf.o", 0);
	if (!object)
		fail("override.bpf.o");
	size_t size;
	struct bpf_map *constants = bpf_object__find_map_by_name(object, ".rodata");
	memcpy(bpf_map__initial_value(constants, &size), &set, sizeof set);
	if (bpf_object__load(object))
		fail("load");
	int sockets = bpf_object__find_map_fd_by_name(object, "sockets");
	if (!bpf_program__attach_sockmap(bpf_object__find_program_by_name(object, "redirect"), sockets) ||
	    !bpf_program__attach_cgroup(bpf_object__find_program_by_name(object, "established"), at))
		fail("attach");
	pid_t child = fork();
	if (!child) {
		into_group();
		execvp(words[optind], words + optind);
		fail(words[optind]);
	}
	int status;
	waitpid(child, &status, 0);
	int counts = bpf_object__find_map_fd_by_name(object, "counts");
	for (unsigned at = 0; at < sizeof COUNTS / sizeof *COUNTS; at++) {
		unsigned long long value = 0;
		bpf_map_lookup_elem(counts, &at, &value);
		fprintf(stderr, "%s %llu%s", COUNTS[at], value, at < 5 ? ", " : "\n");
	}
	for (int tries = 0; rmdir(group) && tries < 50; tries++)
		usleep(20000);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
