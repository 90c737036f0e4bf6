/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What the kernel side is told of languages' runtimes: where each keeps its frames in one process. Part of abi.h, under
 * the same rules.
 */
#ifndef STAKEOUT_RUNTIME_ABI_H
#define STAKEOUT_RUNTIME_ABI_H

enum so_runtime_kind {
	SO_RUNTIME_JVM = 1,
	SO_RUNTIME_CPYTHON = 2,
	SO_RUNTIME_V8 = 4,
	SO_RUNTIME_RUBY = 8,
	SO_RUNTIME_PHP = 16,
};

/* A heap of code of HotSpot. */
struct so_code_heap {
	u64 begin;
	u64 bytes;		/* reserved */
	u64 segments;		/* address of the segment map */
	u32 segment_shift;
	u32 unused;
};

/*
 * Of one process with a JVM: where its code lies, and where in its structures stands what a walk needs. Offsets are
 * bytes from the structure's begin, slots are words from the frame pointer.
 */
struct so_jvm {
	u64 interpreter_begin;
	u64 interpreter_bytes;
	struct so_code_heap heaps[SO_JVM_HEAPS];
	/* HeapBlock, CodeBlob and nmethod. */
	u16 block_header_bytes;
	u16 frame_size;		/* in words, of four bytes */
	u16 frame_complete;
	u16 code_begin;
	u16 compile_id;
	u16 method;
	u16 deopt_handler;
	u16 orig_pc;
	/* Method and ConstMethod: bytecodes begin behind the latter. */
	u16 const_method;
	u16 const_method_bytes;
	u16 code_size;
	u16 name;
	/* ConstMethod to ConstantPool to InstanceKlass to the Symbol of its name. */
	u16 pool;
	u16 pool_holder;
	u16 pool_bytes;
	u16 class_name;
	u16 heap_count;
	u8 frame_complete_bytes;
	u8 code_begin_bytes;	/* 8: an address; less: an offset from the blob */
	u8 deopt_handler_bytes;	/* 8: an address; 4: an offset from the blob; 0: unknown */
	u8 symbol_length;	/* of two bytes, within the first word */
	u8 symbol_body;
	u8 unused;
	s32 slot_method;
	s32 slot_bcp;
	s32 slot_sender_sp;
};

/* Of CPython. */
enum so_python_limits {
	/* Ranges of the interpreter loop's code: the function, and its part for what is rare. */
	SO_PYTHON_LOOPS = 2,
	/* Threads, and interpreters, that are looked at for the one that runs. */
	SO_PYTHON_THREADS = 256,
	/* Frames of the first call that are looked through for its end. */
	SO_PYTHON_AHEAD = 64,
	/* Words of a thread's state, of a frame (an object until 3.10) and of a code object that are read. */
	SO_PYTHON_THREAD_WORDS = 24,
	SO_PYTHON_OBJECT_WORDS = 14,
	SO_PYTHON_FRAME_WORDS = 10,
	SO_PYTHON_CODE_WORDS = 20,
	/* A thread's state may have an entry, or a frame without code, in itself, which are outermost. */
	SO_PYTHON_THREAD_BYTES = 4096,
};

enum so_python_form {
	/* 3.8 to 3.10: frames are objects, one for each call of the loop. */
	SO_PYTHON_OBJECTS = 0,
	/* 3.11: the frame with a mark is the last one of its call, which has an entry on the native stack. */
	SO_PYTHON_ENTRIES = 1,
	/* 3.12 and later: a frame without code, on the native stack, is behind the last one of a call. */
	SO_PYTHON_SHIMS = 2,
};

/* Of one process with CPython. Offsets are bytes from the structure's begin. */
struct so_cpython {
	u64 runtime;		/* address of _PyRuntime */
	u64 code_type;		/* address of PyCode_Type */
	u64 loop_begin[SO_PYTHON_LOOPS];
	u64 loop_bytes[SO_PYTHON_LOOPS];
	/* _PyRuntimeState, PyInterpreterState. */
	u32 interpreters_head;
	u32 interpreter_next;
	u32 threads_head;
	/* Where the thread stands that ran last: in the runtime, or in the interpreter. A guess, which is checked. */
	u32 last_thread;
	u8 is_last_in_runtime;
	u8 form;		/* enum so_python_form */
	/* PyThreadState: `thread_frame` leads to the frame, or where there are entries, to the innermost one. */
	u16 thread_next;
	u16 thread_id;
	u16 thread_frame;
	/* _PyCFrame; without one, entry_frame is all ones. */
	u16 entry_frame;
	u16 entry_previous;
	/* _PyInterpreterFrame or PyFrameObject. `frame_mark` is its owner or, where there are entries, is_entry. */
	u16 frame_previous;
	u16 frame_code;
	u16 frame_instruction;
	u16 frame_mark;
	/* PyCodeObject: what stands for its size is a number, or until 3.10 the pointer to its bytecodes. */
	u16 code_size;
	u16 code_name;
	u16 code_qualname;	/* that of the name where there is none */
	u16 code_filename;
	u16 code_first_line;
	u16 code_begin;
	u16 object_type;	/* of any object; with the interpreter's lock it is 8, without it 24 */
	/*
	 * Without the interpreter's lock, since 3.14: the number of the copy of the instructions that a frame runs, and
	 * what leads to a code object's copies, or 0.
	 */
	u16 frame_copy;
	u16 code_copies;
	u8 instruction_shift;	/* of the number of the last instruction, until 3.10 */
	u8 prologue_bytes;	/* of the loop's code, in which an entry joins the chain and gets its frame */
};

/* Of CRuby. */
enum so_ruby_limits {
	/* Threads that are looked at for the one that runs. */
	SO_RUBY_THREADS = 256,
	/* Blocks within each other that are looked through for their method. */
	SO_RUBY_BLOCKS = 12,
	/* Words of the body of a sequence of instructions that are read. */
	SO_RUBY_BODY_WORDS = 16,
	/* Words of compiled code's frame. */
	SO_RUBY_FRAME_WORDS = 24,
};

/* Of one process with CRuby. Offsets are bytes from the structure's begin. */
struct so_ruby {
	/* The interpreter's loop, and what calls it: each the function, and its part for what is rare. */
	u64 loop_begin[2];
	u64 loop_bytes[2];
	u64 exec_begin[2];
	u64 exec_bytes[2];	/* 0: unknown */
	/* Code of the file that has the interpreter. */
	u64 code_begin;
	u64 code_bytes;
	/* What leads to the running thread's execution context: an address, or an offset in the thread's own storage. */
	u64 current;
	u64 threads;		/* the head of a list of threads */
	u16 is_current_local;
	u16 context_thread;	/* rb_execution_context_t */
	/* rb_thread_t: without a structure of its own for the native thread, that offset is all ones. */
	u16 thread_context;
	u16 thread_native;
	u16 thread_id;		/* in whichever of both has it */
	u16 frame_bytes;	/* rb_control_frame_t */
	u16 unused[2];
};

/* Of PHP. */
enum so_php_limits {
	/* Ranges of the interpreter loop's code (the function, and its part for what is rare) and of code that is made. */
	SO_PHP_LOOPS = 2,
	SO_PHP_MADE = 2,
	/* Functions that C calls PHP by: a callback, and where a generator goes on. */
	SO_PHP_CALLERS = 2,
	/* Words of a frame, of a function's begin, and of what a function of PHP code has behind that. */
	SO_PHP_FRAME_WORDS = 7,
	SO_PHP_FUNCTION_WORDS = 3,
	SO_PHP_CODE_WORDS = 24,
};

/*
 * Of one process with PHP. Offsets are bytes from the structure's begin. In builds with threads the four addresses
 * below count from where the thread's own globals are.
 */
struct so_php {
	u64 local;		/* what leads to them: an offset in the thread's own storage */
	u64 current;		/* address of the pointer to the innermost frame */
	u64 fiber;		/* address of the pointer to the fiber that runs; 0 without fibers */
	u64 exception_code;	/* the instructions that stand for the present one while an exception is handled */
	u64 exception_at;	/* address of the pointer to the one that threw it */
	u64 loop_begin[SO_PHP_LOOPS];
	u64 loop_bytes[SO_PHP_LOOPS];
	u64 made_begin[SO_PHP_MADE];
	u64 made_bytes[SO_PHP_MADE];
	u64 caller_begin[SO_PHP_CALLERS];
	u64 caller_bytes[SO_PHP_CALLERS];
	u64 loop_inside;	/* a place of the loop where its frame is whole */
	/* zend_op_array */
	u16 code;		/* address of its instructions */
	u16 code_count;
	u16 file;
	u16 lines;		/* its first and its last one, four bytes each */
	/* zend_fiber_context */
	u16 fiber_stack;
	u16 fiber_caller;
	u32 is_local;		/* a build with threads */
};

/* Of V8. */
enum so_v8_limits {
	/* Ranges that are set aside for code: one for each thread that runs JavaScript. */
	SO_V8_RANGES = 8,
};

/* Of one process with V8. Offsets count from the object's begin, of which addresses have a tag in their lowest bit. */
struct so_v8 {
	u64 made_begin[SO_V8_RANGES];
	u64 made_bytes[SO_V8_RANGES];	/* 0: none */
	/* JSFunction: kinds of objects that are functions, and where what they share is. */
	u16 first_function_type;
	u16 last_function_type;
	u16 function_shared;
	/* SharedFunctionInfo: bytecodes or what was made of them, name, script, what is known of its text. */
	u16 shared_data;
	u16 shared_name;
	u16 shared_script;
	u16 shared_length;
	u16 shared_literal;
	u16 shared_unique;	/* 0 without one */
	u16 script_id;		/* Script, where functions have no number among all; else 0 */
	/* BytecodeArray and Code: kinds of objects; where bytecodes begin, and where code has those that it was made of. */
	u16 bytecode_type;
	u16 bytecode_begin;
	u16 code_type;
	u16 code_bytecode;
	u16 frame_stub;		/* what says of a frame that it is of V8's own code */
	u16 is_late;		/* objects may have been moved since the stack was copied */
	u16 shared_bytes;	/* how long a SharedFunctionInfo is at least: what lies behind it may not be there */
	u16 unused[3];
};

/* A process may have several. */
struct so_runtime {
	u32 kinds;		/* of enum so_runtime_kind */
	u32 unused;
	struct so_jvm jvm;
	struct so_cpython cpython;
	struct so_ruby ruby;
	struct so_php php;
	struct so_v8 v8;
};

#endif
