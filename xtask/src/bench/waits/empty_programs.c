// BPF programs that do nothing, where the agent's see threads wait: what the kernel's statistics count of them is the
// statistics' own time. Prints a line when they run, and ends with its input.
#define _GNU_SOURCE
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int bpf(int command, union bpf_attr *attributes)
{
	return (int)syscall(SYS_bpf, command, attributes, sizeof(*attributes));
}

static int load(void)
{
	// r0 = 0; exit
	static const struct bpf_insn nothing[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attributes;

	memset(&attributes, 0, sizeof(attributes));
	attributes.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT;
	attributes.insns = (uintptr_t)nothing;
	attributes.insn_cnt = sizeof(nothing) / sizeof(nothing[0]);
	attributes.license = (uintptr_t) "GPL";
	return bpf(BPF_PROG_LOAD, &attributes);
}

int main(void)
{
	static const char *tracepoints[] = { "sched_switch", "sched_waking", "sched_wakeup" };
	char end;

	for (unsigned i = 0; i < sizeof(tracepoints) / sizeof(tracepoints[0]); i++) {
		union bpf_attr attributes;
		int program = load();

		memset(&attributes, 0, sizeof(attributes));
		attributes.raw_tracepoint.name = (uintptr_t)tracepoints[i];
		attributes.raw_tracepoint.prog_fd = program;
		if (program < 0 || bpf(BPF_RAW_TRACEPOINT_OPEN, &attributes) < 0) {
			perror(tracepoints[i]);
			return 1;
		}
	}
	puts("ready");
	fflush(stdout);
	return read(0, &end, 1) != 0;
}
