// Loads a BPF program under a name, prints where its code is, runs it for some milliseconds, and unloads it by
// ending. All programs of this file have code of the same length. Usage: NAME PROGRAM_NAME NUMBER MILLISECONDS. Ends
// with 77 where it may not.
#define _GNU_SOURCE
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STEPS 3000

static struct bpf_insn code[STEPS + 2];

static long bpf(int command, union bpf_attr *attributes)
{
	return syscall(__NR_bpf, command, attributes, sizeof(*attributes));
}

static int load(const char *name, int number)
{
	union bpf_attr attributes = {
		.prog_type = BPF_PROG_TYPE_SOCKET_FILTER,
		.insns = (unsigned long)code,
		.insn_cnt = STEPS + 2,
		.license = (unsigned long)"GPL",
	};

	code[0] = (struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = number };
	for (int i = 1; i <= STEPS; i++)
		code[i] = (struct bpf_insn){ .code = BPF_ALU64 | (i & 1 ? BPF_MUL : BPF_ADD) | BPF_K, .imm = number };
	code[STEPS + 1] = (struct bpf_insn){ .code = BPF_JMP | BPF_EXIT };
	strncpy(attributes.prog_name, name, sizeof(attributes.prog_name) - 1);
	return bpf(BPF_PROG_LOAD, &attributes);
}

static unsigned long address_of(int program)
{
	unsigned long address = 0;
	struct bpf_prog_info info = { .jited_ksyms = (unsigned long)&address, .nr_jited_ksyms = 1 };
	union bpf_attr attributes = { .info = { .bpf_fd = program, .info_len = sizeof(info), .info = (unsigned long)&info } };

	return bpf(BPF_OBJ_GET_INFO_BY_FD, &attributes) ? 0 : address;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	static char packet[64];
	int program = argc < 4 ? -1 : load(argv[1], atoi(argv[2]));
	union bpf_attr run = {
		.test = { .prog_fd = program, .data_in = (unsigned long)packet, .data_size_in = sizeof(packet), .repeat = 2000 },
	};
	double end = now() + (argc < 4 ? 0 : atof(argv[3]) / 1000);

	if (program < 0 || !address_of(program))
		return 77;
	printf("%lx\n", address_of(program));
	fflush(stdout);
	while (now() < end)
		if (bpf(BPF_PROG_TEST_RUN, &run))
			return 77;
	return 0;
}
