/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What the kernel side and the Rust side share: records of the ring buffers, counters, limits. Rust sees these types
 * through the generated skeletons. Only fixed-width fields, no implicit padding.
 */
#ifndef STAKEOUT_ABI_H
#define STAKEOUT_ABI_H

#define SO_INLINE static inline __attribute__((always_inline))

/* What so_read_code of recover.h says where no code can be read at all, and so_read_memory of runtime.h. */
#define SO_NO_CODE 2

enum so_limits {
	/* perf's own default limit (kernel.perf_event_max_stack); bpf_get_stack gives no more. */
	SO_MAX_KERNEL_FRAMES = 127,
	/*
	 * Of a user stack so many frames travel: all, or where there are more, the first ones from the leaf on and
	 * the last ones up to the root. A walk goes on beyond that, so that its root is known, up to the higher
	 * limit.
	 */
	SO_MAX_USER_FRAMES = 1024,
	SO_LEAF_FRAMES = 768,
	SO_ROOT_FRAMES = 256,
	SO_MAX_WALKED_FRAMES = 8192,
	SO_COMM_LENGTH = 16,
	/* Tables lie in slabs of 1 MiB. A place in them is one number: slab << SO_SLAB_BITS | word in the slab. */
	SO_SLAB_BITS = 18,
	SO_SLAB_WORDS = 1 << 18,
	SO_MAX_SLABS = 64,
	SO_MAX_RULES = 32768,
	SO_CACHE_BITS = 15,
	SO_CACHE_SLOTS = 1 << 15,
	SO_MAX_MAPPINGS = 4096,
	SO_MAX_PROCESSES = 8192,
	SO_MAPPING_WORDS = 8,
	SO_REGISTERS = 16,
	SO_RBX = 3,
	SO_R13 = 13,
	SO_SAVED_WORDS = 8,
	/* Processes with a language's runtime that are walked by it. */
	SO_MAX_RUNTIMES = 512,
	/* Of HotSpot: heaps of code, bytes of a code blob's begin that are read, steps back to it, words of a frame. */
	SO_JVM_HEAPS = 4,
	SO_JVM_BLOB_WORDS = 16,
	SO_JVM_SEGMENT_STEPS = 24,
	SO_JVM_FRAME_WORDS = 16,
	SO_JVM_CONST_METHOD_WORDS = 8,
	SO_JVM_PUSHED_WORDS = 3,
	/* Frames of one call of an interpreter's loop; those beyond come with the next call. */
	SO_MAX_CALL_FRAMES = 512,
	/*
	 * Of a stack that is searched for a return address: words at a time, pieces in all, where a table is
	 * wrong, and above a root.
	 */
	SO_SCAN_WORDS = 32,
	SO_SCAN_PIECES = 32,
	SO_NEAR_PIECES = 2,
	SO_ROOT_PIECES = 8,
	/* Words in one walk. */
	SO_MAX_SCANNED_WORDS = 4096,
	/* The last words that may be frame pointers, and how far up they may lead. */
	SO_SEEN_WORDS = 4,
	SO_SEEN_BYTES = 1 << 20,
	/* Of the stack, where the walk must be ended in user space. */
	SO_MAX_STACK_BYTES = 32768,
	SO_STACK_PIECE_BYTES = 4096,
	/*
	 * What lies below the stack pointer is copied too: functions keep data there without a frame, and unwinding
	 * information refers to registers that were just popped.
	 */
	SO_RED_ZONE_BYTES = 128,
	/* Threads whose waits are observed at a time. */
	SO_MAX_THREADS = 65536,
	/* Waits that have ended, and wait for their thread's user stack. */
	SO_MAX_PENDING = 256,
	/*
	 * Programs, each on each CPU, whose waits for a CPU are counted; of them those that are counted by CPU, where
	 * there are more than that; how finely; and how many of a thread are held before that.
	 */
	SO_MAX_QUEUES = 8192,
	SO_MAX_QUEUES_OF_CPUS = 4096,
	SO_QUEUE_BUCKETS = 128,
	SO_HELD_WAITS = 24,
	/* Processes that one closer look is at, where it is not at all of them; and names or ids of threads. */
	SO_MAX_BURST_MEMBERS = 1024,
	SO_MAX_BURST_THREADS = 64,
};

/* How the walk of the user stack ended. */
enum so_walk_end {
	/* There is no user stack: a kernel thread, an idle CPU, a process that is exiting. */
	SO_WALK_NONE = 0,
	/* The outermost frame was reached. */
	SO_WALK_ROOT = 1,
	/* More than SO_MAX_WALKED_FRAMES frames. */
	SO_WALK_CUT = 2,
	/* It led nowhere: wrong unwinding information, or memory that is paged out. */
	SO_WALK_BROKEN = 3,
	/* The tables of the last frame's code are not there yet. so_resume and a copy of the stack follow the frames. */
	SO_WALK_NO_TABLE = 4,
	/* The thread sleeps: a struct so_walk at the first frame follows, and user space reads the stack itself. */
	SO_WALK_ASLEEP = 5,
};

/*
 * A rule says where the caller's registers are: bits 0 to 3 enum so_cfa, 4 and 5 enum so_fp, 6 and 7 enum so_ra, 8 to
 * 31 offset of the canonical frame address in bytes, 32 to 47 offset of the saved frame pointer in units of 8 bytes,
 * 48 to 63 aux; all three are signed.
 */
enum so_cfa {
	SO_CFA_UNKNOWN = 0,	/* nobody says: the frame pointer is tried */
	SO_CFA_SP = 1,
	SO_CFA_FP = 2,
	SO_CFA_REGISTER = 3,	/* register aux (DWARF's number) + offset, at the innermost frame */
	SO_CFA_SP_DEREF = 4,	/* *(sp + aux) + offset */
	SO_CFA_FP_DEREF = 5,	/* *(fp + aux) + offset */
	SO_CFA_PLT = 6,		/* sp + offset, and 8 more from byte aux of each 16 on */
	SO_CFA_SIGNAL = 7,	/* the kernel's signal frame is at the stack pointer */
	SO_CFA_END = 8,		/* nothing called this */
	SO_CFA_FP_CHAIN = 9,	/* the frame pointer, which may lead to another stack */
};
enum so_fp {
	SO_FP_SAME = 0,
	SO_FP_AT_CFA = 1,
	SO_FP_AT_FP = 2,
	SO_FP_UNDEFINED = 3,
};
enum so_ra {
	SO_RA_BELOW_CFA = 0,	/* *(cfa - 8) */
	SO_RA_AT_CFA = 1,	/* *(cfa + 8 * aux) */
	SO_RA_IN_REGISTER = 2,	/* the link register */
	SO_RA_AND_RBX = 3,	/* *(cfa - 8), and the caller's rbx is at *(cfa + 8 * aux) */
};
#define SO_RULE_UNKNOWN 0ULL
/* The same, of code that lies in a file which has a table. */
#define SO_RULE_UNKNOWN_OF_FILE (1ULL << 8)

/*
 * What is in slabs, all in words of 4 bytes, the lower half of 8 bytes first:
 *   mapping: begin (2), end (2), address of chunk 0 (2), place of the directory, state; ascending, within one slab
 *   directory: for each chunk of 64 KiB, in 8 bytes that are read and written at once, the place of its first row, and
 *   their number or SO_CHUNK_PENDING; at an even word, within one slab
 *   row: offset in the chunk << 16 | number of the rule; ascending, the first at 0; a chunk's rows within one slab
 */
enum so_table_state {
	SO_TABLE_PENDING = 0,
	SO_TABLE_NONE = 1,	/* there is none and will be none */
	SO_TABLE_CHUNKS = 2,	/* plus the number of chunks */
};

/* Instead of a number of rows: they are made when somebody needs them. */
#define SO_CHUNK_PENDING 0xffffffffU

struct so_slab {
	union {
		u32 words[SO_SLAB_WORDS];
		u64 pairs[SO_SLAB_WORDS / 2];
	};
};

/* Keyed by tgid. The rest tells whether it is still the same program. */
struct so_process {
	u64 start_ticks;	/* of USER_HZ since boot, as in /proc/PID/stat */
	u32 exec_id;
	u32 address_space;	/* another number whenever a mapping or a table changes */
	u32 mappings;		/* place of the first */
	u32 mapping_count;
	u32 runtime;		/* one more than the number of its entry in `runtimes`; 0 without one */
	u32 unused;
	u64 unmapped_ns;	/* written by the walk: when it last asked user space about an address without mapping */
};

#include "runtime_abi.h"

/* One cache line holds four. Empty slots are zero, which no tag and rule give. */
struct so_cached {
	u64 tag_and_rule;	/* xor of both */
	u64 rule;
};

/* The state of a walk between two frames. */
struct so_walk {
	u64 pc;
	u64 sp;
	u64 fp;
	u64 lr;			/* arm64 */
	u64 registers[SO_REGISTERS];	/* of the interrupted code, by DWARF's numbers; rbx is followed further */
	u64 saved[SO_SAVED_WORDS];	/* the words below the canonical frame address */
	u64 address_space;
	u32 mappings;
	u32 mapping_count;
	u32 innermost;		/* pc is where code was interrupted, not a return address */
	u32 has_registers;	/* all of them, or where code was not interrupted, rbx */
	u32 guessed;		/* pc was found by the frame pointer of code that nobody describes, or by search */
	u32 scan_left;		/* words that may still be searched */
	u32 doubtful;		/* since the last search no table has led on */
	u32 of_file;		/* the present frame's code lies in a file with a table, which does not tell of it */
	/* Of the frame whose step led here; and the address that is taken though no call stands before it. */
	u64 before_pc;
	u64 before_sp;
	u64 before_fp;
	u64 trusted;
	/*
	 * Of the frame that was stepped from, where a runtime tells what it is: the two words that stand for it in the
	 * sample.
	 */
	u64 runtime_frame;
	u64 runtime_detail;
	u64 tls_base;		/* of the thread's own storage */
	/*
	 * Of an interpreter's own chain of frames: the next one, or 0, and what else is known of its call; whose chain it is,
	 * once it has begun (enum so_runtime_kind).
	 */
	u64 chain_frame;
	u64 chain_entry;
	u32 chain;
	u16 chain_called;	/* before the chain began, C code was met that calls the interpreter */
	u8 chain_given;		/* this call has got its frames already */
	u8 chain_compiled;	/* the frame that was stepped from is code that this interpreter made */
	/* Of PHP: the function of the frame before, its hash, its instructions and their bytes; the fiber that is walked. */
	u64 php_function;
	u64 php_hash;
	u64 php_code;
	u64 php_code_bytes;
	u64 php_fiber;
	/* The rule of the loop, for made code that runs in its frame; where its table is missing, what it is needed for. */
	u64 php_rule;
	u64 php_wanted;
	/*
	 * Of V8: the function of the frame before, what it shares and a hash of that; maps that objects were seen to have.
	 */
	u64 v8_function;
	u64 v8_shared;
	u64 v8_hash;
	u64 v8_function_map;
	u64 v8_bytecode_map;
	u32 runtime;		/* as in so_process */
	u16 is_folded;		/* the frame before the one that was stepped from is a part of it */
	u16 v8_before;		/* what that was: enum so_v8_before */
};

/* A search of the stack. */
struct so_scan {
	u64 rule;		/* of what so_look looked at last */
	u64 code_begin;
	u64 code_bytes;
	u64 seen[SO_SEEN_WORDS];
	u32 seen_count;
	u32 only_sure;		/* without a table that leads on, nothing is taken */
	u64 words[SO_SCAN_WORDS];
};

enum so_step {
	SO_STEP_FRAME = 0,
	SO_STEP_ROOT = 1,
	SO_STEP_BROKEN = 2,
	SO_STEP_NO_TABLE = 3,
	/* The present frame is in no executable mapping: no frame, or the mapping is newer than what is known. */
	SO_STEP_NO_MAPPING = 4,
	/* The present frame is code with a table, and no call stands before it. */
	SO_STEP_ASTRAY = 5,
	/* The walk stands at another frame instead of its last one. */
	SO_STEP_INSTEAD = 6,
	/*
	 * The frame pointer of code that nobody describes leads to zero: at the root, or since it keeps something
	 * else there.
	 */
	SO_STEP_PERHAPS_ROOT = 7,
	/* Made code runs in the frame of its interpreter's loop, whose rule holds. */
	SO_STEP_AS_LOOP = 8,
};

/* In user addresses of a sample: the frame was interrupted there (by a signal), it is no return address. */
#define SO_EXACT_ADDRESS (1ULL << 63)
/*
 * In words of user frames, bits 60 to 62: what the lower 60 bits are. A frame of a runtime takes two words, of which
 * the second one is its detail.
 */
#define SO_FRAME_SHIFT 60
enum so_frame_word {
	SO_FRAME_ADDRESS = 0,
	/* Address in compiled code of a JVM; the detail is the compilation's number. */
	SO_FRAME_JVM_COMPILED = 1,
	/*
	 * Address of an interpreted method of a JVM; the detail is the offset of the bytecode (16 bits, all ones: unknown) and
	 * above them a hash of what the method's constant part begins with.
	 */
	SO_FRAME_JVM_INTERPRETED = 2,
	/*
	 * A code object of CPython; the detail is the offset of the instruction in code units (20 bits, all ones: none), and
	 * above them a hash of what the object begins with.
	 */
	SO_FRAME_PYTHON = 3,
	/*
	 * A frame of V8: in 47 bits the place, above that 10 bits of hashes, and above that what the place is. The detail is
	 * the address without the lowest three bits (44 bits; 0: unknown) of what the function shares with others of the
	 * same text, and above that 16 bits more of the hash of what stays the same there. A place is: 0, the offset of a
	 * bytecode; 1, an address in code that V8 made, the bytes at which, or before which, have six of the 10 bits; 2, such
	 * an address where the frame says what it is, which stands in place of the detail's address; 3, the same as 1, looked
	 * at later, so that the code has to be the function's.
	 */
	SO_FRAME_V8 = 4,
	/*
	 * A frame of CRuby: the address of its sequence of instructions without the lowest three bits (44 bits; 0: a
	 * method in C), and above that the instruction's number (all ones: none). The detail is the method entry's
	 * address in the same way, 0 without one, and above that a hash of what both begin with.
	 */
	SO_FRAME_RUBY = 5,
	/*
	 * A function of PHP; the detail is the number of the instruction (20 bits, all ones: none), one bit that says
	 * whether the program began with it, and above them a hash of what it is called.
	 */
	SO_FRAME_PHP = 6,
	SO_FRAME_DETAIL = 7,
};
#define SO_FRAME_WORD(kind, value) ((u64)(kind) << SO_FRAME_SHIFT | ((value) & ((1ULL << SO_FRAME_SHIFT) - 1)))

enum so_sample_flags {
	/* The CPU ran user code when the timer fired. */
	SO_SAMPLE_IN_USER = 1,
	SO_SAMPLE_KERNEL_THREAD = 2,
	/* The kernel stack has SO_MAX_KERNEL_FRAMES frames and may be longer. */
	SO_SAMPLE_KERNEL_CUT = 4,
};

/*
 * One sample: this header, then kernel_frames and user_frames addresses of 8 bytes, both leaf first; of more than
 * SO_MAX_USER_FRAMES the first SO_LEAF_FRAMES, and the last SO_ROOT_FRAMES as a ring: frame n at place n %
 * SO_ROOT_FRAMES, counted from the first one behind those of the leaf. With SO_WALK_NO_TABLE then a struct so_walk,
 * which stands at the last frame, and stack_bytes of the stack from SO_RED_ZONE_BYTES below its stack pointer on.
 */
struct so_sample {
	u64 time_ns;		/* CLOCK_MONOTONIC */
	u64 start_boottime_ns;	/* start of the process, CLOCK_BOOTTIME */
	u64 cgroup_id;
	u32 tgid;
	u32 tid;
	u32 cpu;
	u32 exec_id;		/* the kernel's own count of execs that led to this program */
	u16 kernel_frames;
	u16 user_frames;	/* that were walked */
	u8 walk_end;		/* enum so_walk_end */
	u8 flags;		/* enum so_sample_flags */
	u16 stack_bytes;
	u8 comm[SO_COMM_LENGTH];
	u64 image;		/* the program that was executed: where its stack began, which is random */
	u32 proc_tgid;		/* the process in the agent's /proc; 0 where it is not seen there */
	u32 period_ns;		/* what it stands for where that is a burst's period; else 0 */
};

/*
 * Each field is written by set_task of stack.h or by the sampler, and by set_thread of waits.bpf.c: one that is not has
 * what the record before had there. Who adds one changes the size here when both write it.
 */
_Static_assert(sizeof(struct so_sample) == 80, "see above: a field more is written in two programs");

/*
 * A closer look at a CPU. Within its time the ticks of the CPU's burst timer are samples, each of this period, and
 * those of its usual timer are none: of the same threads, so that no time is told twice.
 */
struct so_burst {
	u64 from_ns;		/* CLOCK_MONOTONIC */
	u64 until_ns;
	u32 period_ns;
	u32 of_members;		/* of the processes in burst_members alone; else of all */
	/* Of their threads: enum so_burst_choice, by what is in burst_names and in burst_tids. */
	u32 of_names;
	u32 of_tids;
};

enum so_burst_choice {
	SO_BURST_ALL = 0,
	SO_BURST_LISTED = 1,
	SO_BURST_OTHERS = 2,
};

/* How a wait began, beside the kernel's own bits of a task's state. */
enum so_wait_state {
	/* The thread could have gone on: another one was preferred. */
	SO_WAIT_PREEMPTED = 0,
	SO_WAIT_STATE_BITS = 0xffff,
	/* The thread is new. */
	SO_WAIT_NEW = 0x10000,
	/* It waited already when observation began. */
	SO_WAIT_UNKNOWN = 0x20000,
	/* Of a record: it is of who ended the wait, or of what an interrupt found running that did. */
	SO_WAIT_ENDED = 0x40000,
};

/* A thread that was woken: the same as in struct so_sample. */
struct so_woken {
	u64 start_boottime_ns;
	u64 cgroup_id;
	u64 image;
	u32 tgid;
	u32 tid;
	u32 exec_id;
	u32 proc_tgid;
	u32 flags;
	u32 unused;
	u8 comm[SO_COMM_LENGTH];
};

/*
 * Stands before a struct so_sample that tells of a wait. The first two are points that the thread's clock passed before
 * and after it was woken, times its period; one of them is not 0.
 */
struct so_waited {
	u64 off_cpu_ns;
	u64 run_queue_ns;
	/* How long the whole wait was when it was counted, as far as it was observed: until it was woken, and from then on. */
	u64 asleep_ns;
	u64 queued_ns;
	u64 run_count;		/* how often the thread had been given a CPU, of one that sleeps; 0: the kernel does not count */
	u32 state;		/* enum so_wait_state */
	u32 unused;
	/* Who was woken, where the record is of who woke it. */
	struct so_woken woken;
};

/* Whose waits for which CPU; of nobody, all that found no room of their own. */
struct so_queue_key {
	u64 start_boottime_ns;
	u64 cgroup_id;
	u32 tgid;
	u32 exec_id;
	u32 cpu;		/* one more than its number; 0: of several, since SO_MAX_QUEUES_OF_CPUS are told apart */
	u32 unused;
};

/*
 * Waits for a CPU that have ended, cumulative but for the longest. Their lengths in units of 1,024 ns have a bucket
 * each up to 3, and from there on four between each power of two and the next; the last one has all that are longer.
 */
struct so_queue_lengths {
	u64 total_ns;
	u64 longest_ns;		/* of the interval */
	u64 interval;
	u32 buckets[SO_QUEUE_BUCKETS];
};

/* Of a program, behind a lock of four bytes and four that are not used. */
struct so_queue {
	struct so_queue_lengths lengths;
	/* Who it is, as in struct so_sample. */
	u64 image;
	u32 proc_tgid;
	u32 flags;
	u8 comm[SO_COMM_LENGTH];
};

/* Per CPU, cumulative since load. */
struct so_wait_counters {
	u64 switches;
	u64 run_ns;		/* of the switches and wake-ups: of those without a stack from every 64th */
	u64 with_stack;		/* those that had one */
	/* Samples in records: one for each time of a struct so_waited that is not 0; and those that the ring did not take. */
	u64 taken;
	u64 lost_ring_full;
	/* Of samples, those whose user stack was another one, or could not be asked for. */
	u64 stacks_moved;
	u64 stacks_refused;
	/* Threads that were not observed, since SO_MAX_THREADS were; once for each attempt. */
	u64 threads_left_out;
	/* Waits for a CPU that were counted as nobody's, since SO_MAX_QUEUES programs have room. */
	u64 queues_left_out;
	/* And those that were counted as their program's on any CPU, since SO_MAX_QUEUES_OF_CPUS are told apart. */
	u64 queues_without_cpu;
	/* Wake-ups whose thread's stack was not taken, since another one was just being walked on that CPU. */
	u64 wakers_left_out;
	/* Threads that slept through a whole interval, of all visits. */
	u64 sleepers;
	u64 sleepers_told;
	/* No count: the thread that this CPU has now, where it comes back from a wait whose user stack is asked for. */
	u64 coming;
};

/*
 * Per CPU, cumulative since load. ticks are those of the usual timer; ticks + burst_taken = idle_ticks +
 * left_to_burst + taken; taken = records in the ring + lost_ring_full.
 */
struct so_counters {
	u64 ticks;
	u64 idle_ticks;
	u64 left_to_burst;	/* of threads that the burst's timer tells of */
	u64 taken;
	u64 burst_taken;	/* of them, those of the burst's timer */
	u64 lost_ring_full;
	u64 run_ns;
	/* Walks that were handed to user space with a copy of the stack, and those beyond the limit for that. */
	u64 stacks_copied;
	u64 stacks_not_copied;
	/* Frames of user stacks. */
	u64 frames;
};

enum so_event_kind {
	SO_EVENT_EXEC = 1,
	SO_EVENT_FORK = 2,
	SO_EVENT_EXIT = 3,
	/* A control group was made (of version 2). */
	SO_EVENT_GROUP = 4,
	/* A process, or one of its threads, was moved to another control group of version 1. */
	SO_EVENT_MOVE = 5,
};

/*
 * A process began, became another program, ended, or was moved; or a control group was made. text_bytes of text
 * follow. Of an exec: the executable's own name, a zero byte, and the path under which it was executed; of a group:
 * its path.
 */
struct so_event {
	u64 time_ns;			/* CLOCK_MONOTONIC */
	u64 start_boottime_ns;
	u64 parent_start_boottime_ns;	/* fork only */
	u64 image;			/* as in so_sample */
	u64 cgroup_id;			/* of a group its own */
	u32 kind;			/* enum so_event_kind */
	u32 tgid;
	u32 parent_tgid;		/* fork only */
	u32 exec_id;
	u32 proc_tgid;			/* as in so_sample */
	u32 text_bytes;
};

/* An event with its text. A piece of text is cut before SO_TEXT_BYTES. */
#define SO_TEXT_BYTES 256
struct so_told {
	struct so_event event;
	u8 text[3 * SO_TEXT_BYTES];
};

/* Per CPU, cumulative since load. */
struct so_event_counters {
	u64 events;
	u64 lost_ring_full;
	u64 run_ns;
};

#endif
