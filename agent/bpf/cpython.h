/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Python frames of a thread that CPython's interpreter runs. Included by runtime.h, under its rules; who includes that
 * defines before, beside the others (runtime_abi.h has its limits, and what it is told of a process):
 *
 *   so_python_seek(walk, py, words)   so_python_seek_once, perhaps as a function of its own
 *
 * The interpreter keeps its own chain of frames. The walk of the native stack goes on as ever; where a native frame is
 * one of the interpreter's loop, the Python frames that this call of it runs are taken from the chain: one of them
 * until 3.10, then as many as were called by Python code alone. Since 3.11 something of each call lies in its native
 * frame and says which Python frames are its own.
 */
#ifndef STAKEOUT_CPYTHON_H
#define STAKEOUT_CPYTHON_H

#define SO_PYTHON_NO_ENTRY 0xffff
/* Instead of a frame: chain_entry says how far below its native frame's end the next entry lies. */
#define SO_PYTHON_PENDING 2
/* PyASCIIObject, from its type on: its hash, which is all ones where it was not asked for. */
#define SO_PYTHON_TEXT_HASH 16
/* Instead of the offset of an instruction. */
#define SO_PYTHON_NO_INSTRUCTION 0xfffffU
/* The first frame that lies on the native stack alone: FRAME_OWNED_BY_CSTACK, since 3.14 FRAME_OWNED_BY_INTERPRETER. */
#define SO_PYTHON_OWNER_SHIM 3

SO_INLINE int so_is_python_loop(const struct so_cpython *py, u64 pc)
{
	return pc - py->loop_begin[0] < py->loop_bytes[0] || pc - py->loop_begin[1] < py->loop_bytes[1];
}

SO_INLINE u64 so_python_word(u64 address)
{
	u64 word = 0;

	return so_is_user_address(address) && !so_read_memory(&word, sizeof(word), address) ? word : 0;
}

/* Reads a frame; its mark is zero but at the end of a call's frames. */
SO_INLINE int so_read_python_frame(const struct so_cpython *py, u64 *words, u64 frame, u32 *mark)
{
	int failed;

	if (!so_is_user_address(frame) || frame & 7)
		return 1;
	/* Behind a frame of the later forms may be nothing. */
	if (py->form == SO_PYTHON_OBJECTS)
		failed = so_read_memory(words, SO_PYTHON_OBJECT_WORDS * sizeof(u64), frame);
	else
		failed = so_read_memory(words, SO_PYTHON_FRAME_WORDS * sizeof(u64), frame);
	if (failed)
		return 1;
	*mark = 0;
	if (py->form == SO_PYTHON_ENTRIES)
		*mark = so_field(words, py->frame_mark, 1, SO_SCAN_WORDS) != 0;
	else if (py->form == SO_PYTHON_SHIMS)
		*mark = so_field(words, py->frame_mark, 1, SO_SCAN_WORDS) >= SO_PYTHON_OWNER_SHIM;
	return 0;
}

/* Where a search for a thread stands, behind the words that it reads. */
#define SO_PYTHON_AT_INTERPRETER 30
#define SO_PYTHON_AT_THREAD 31

/*
 * Looks at one thread's state, and goes on to the next one. 1: it is the sampled thread's, and what it leads to, a
 * frame or an entry, is chain_frame of the walk. 2: there are no more.
 */
SO_INLINE int so_python_seek_once(struct so_walk *walk, const struct so_cpython *py, u64 *words)
{
	u64 state = words[SO_PYTHON_AT_THREAD], frame;
	u32 mark = 0;

	if (!state) {
		u64 interpreter = so_python_word(words[SO_PYTHON_AT_INTERPRETER] + py->interpreter_next);

		words[SO_PYTHON_AT_INTERPRETER] = interpreter;
		words[SO_PYTHON_AT_THREAD] = so_python_word(interpreter + py->threads_head);
		return interpreter ? 0 : 2;
	}
	words[SO_PYTHON_AT_THREAD] = 0;
	if (!so_is_user_address(state) || state & 7 ||
	    so_read_memory(words, SO_PYTHON_THREAD_WORDS * sizeof(u64), state))
		return 0;
	words[SO_PYTHON_AT_THREAD] = so_field(words, py->thread_next, 8, SO_SCAN_WORDS);
	if (so_field(words, py->thread_id, 8, SO_SCAN_WORDS) != walk->tls_base)
		return 0;
	frame = so_field(words, py->thread_frame, 8, SO_SCAN_WORDS);
	/* A thread of several interpreters has several states. One runs, the others lead to what is in them. */
	if (frame - state < SO_PYTHON_THREAD_BYTES) {
		if (py->entry_frame != SO_PYTHON_NO_ENTRY)
			return 0;
		if (py->form == SO_PYTHON_SHIMS && (so_read_python_frame(py, words, frame, &mark) || mark))
			return 0;
	}
	walk->chain_frame = frame;
	return frame != 0;
}

/*
 * Finds the sampled thread's frame or entry. The thread's number is pthread_self(), which is the base of its own
 * storage. Threads and interpreters come newest first.
 */
SO_INLINE int so_python_find(struct so_walk *walk, const struct so_cpython *py, u64 *words)
{
	u64 interpreter = so_python_word(py->runtime + py->interpreters_head);
	u64 last = py->is_last_in_runtime ? py->runtime : interpreter;
	int found;
	u32 i;

	if (!walk->tls_base || !interpreter)
		return 0;
	/* It runs at present, unless it does without the interpreter's lock. */
	words[SO_PYTHON_AT_THREAD] = so_python_word(last + py->last_thread);
	if (words[SO_PYTHON_AT_THREAD] && so_python_seek(walk, py, words) == 1)
		return 1;
	words[SO_PYTHON_AT_INTERPRETER] = interpreter;
	words[SO_PYTHON_AT_THREAD] = so_python_word(interpreter + py->threads_head);
	for (i = 0; i < SO_PYTHON_THREADS; i++) {
		found = so_python_seek(walk, py, words);
		if (found)
			return found == 1;
	}
	return 0;
}

/*
 * Until 3.10: does this native frame, which was interrupted, have a Python frame that is not in the chain, since the
 * call has not begun or is over? It is in a register then, and the chain's frame is its caller.
 */
SO_INLINE int so_is_python_unlinked(const struct so_walk *walk, const struct so_cpython *py, u64 *words)
{
	u64 type = so_python_word(walk->chain_frame + 8), value;
	u32 i;

	for (i = 0; i < SO_REGISTERS; i++) {
		value = walk->registers[i];
		if (so_is_user_address(value) && !(value & 7) && (value < walk->before_sp || value >= walk->sp) &&
		    !so_read_memory(words, SO_PYTHON_OBJECT_WORDS * sizeof(u64), value) && words[1] == type &&
		    so_field(words, py->frame_previous, 8, SO_SCAN_WORDS) == walk->chain_frame)
			return 1;
	}
	return 0;
}

/* A frame that code can be read of, or one without code. */
SO_INLINE int so_is_python_frame(const struct so_cpython *py, u64 *words, u64 frame)
{
	u64 code;
	u32 mark = 0;

	if (so_read_python_frame(py, words, frame, &mark))
		return 0;
	code = so_field(words, py->frame_code, 8, SO_SCAN_WORDS) & ~7ULL;
	return (mark && py->form == SO_PYTHON_SHIMS) || so_python_word(code + 8) == py->code_type;
}

/*
 * At the first native frame of the interpreter's loop, after the step from it: before_sp and sp of the walk are its
 * limits, `innermost` says that it was interrupted there. Finds the thread's innermost Python frame. SO_CHAIN_DONE
 * says that this native frame has none: the call has not begun, or is over.
 */
SO_INLINE enum so_chain_step so_python_begin(struct so_walk *walk, const struct so_cpython *py, u64 *words,
					      int innermost)
{
	u64 frame;
	u32 i, mark = 0;

	walk->chain_frame = 0;
	walk->chain_entry = 0;
	if (!so_python_find(walk, py, words))
		return SO_CHAIN_DONE;
	frame = walk->chain_frame;
	if (py->entry_frame != SO_PYTHON_NO_ENTRY) {
		walk->chain_entry = frame;
		frame = so_python_word(frame + py->entry_frame);
		/*
		 * It is in the chain before it has its frame and the entry before it: until then anything stands there,
		 * or what stood there last. The next entry lies in its native frame where this one lies in this.
		 */
		if (innermost && walk->chain_entry < walk->sp &&
		    (walk->before_pc - py->loop_begin[0] < py->prologue_bytes ||
		     !so_is_python_frame(py, words, frame))) {
			walk->chain_entry = walk->sp - walk->chain_entry;
			walk->chain_frame = SO_PYTHON_PENDING;
			return SO_CHAIN_DONE;
		}
	}
	walk->chain_frame = frame;
	if (!innermost)
		return SO_CHAIN_FRAME;
	if (py->form == SO_PYTHON_OBJECTS)
		return walk->has_registers && so_is_python_unlinked(walk, py, words) ? SO_CHAIN_DONE : SO_CHAIN_FRAME;
	/* The end of the call's frames lies in its native frame. */
	for (i = 0; py->form == SO_PYTHON_SHIMS && i < SO_PYTHON_AHEAD; i++) {
		if (so_read_python_frame(py, words, frame, &mark))
			break;
		if (mark)
			return frame < walk->sp ? SO_CHAIN_FRAME : SO_CHAIN_DONE;
		frame = so_field(words, py->frame_previous, 8, SO_SCAN_WORDS);
	}
	return SO_CHAIN_FRAME;
}

/*
 * The hash that a text has in itself, which goes by its characters. Where there is none yet, as in a qualified name
 * that nobody has looked up, it is where the text lies.
 */
SO_INLINE u64 so_python_text(const struct so_cpython *py, u64 text)
{
	u64 hash = so_python_word(text + py->object_type + SO_PYTHON_TEXT_HASH);

	return hash && hash != ~0ULL ? hash : text;
}

/*
 * What tells a code object from another one that takes its place: 40 bits. Its names count by what they say: what is
 * dropped and made anew has all of its parts where the one before had them.
 */
SO_INLINE u64 so_python_hash(const struct so_cpython *py, const u64 *words)
{
	const u64 mix = 0x9e3779b97f4a7c15ULL;
	u64 name = so_field(words, py->code_name, 8, SO_SCAN_WORDS);
	u64 qualname = so_field(words, py->code_qualname, 8, SO_SCAN_WORDS);
	u64 hash = so_field(words, py->code_first_line, 4, SO_SCAN_WORDS) * mix;

	hash = (hash ^ so_python_text(py, name)) * mix;
	if (qualname != name)
		hash = (hash ^ hash >> 32 ^ so_python_text(py, qualname)) * mix;
	hash = (hash ^ hash >> 32 ^ so_field(words, py->code_filename, 8, SO_SCAN_WORDS)) * mix;
	hash = (hash ^ hash >> 32 ^ so_field(words, py->code_size, 8, SO_SCAN_WORDS)) * mix;
	return hash >> 24;
}

/*
 * Where the instructions begin that a frame runs: in the code object or, without the interpreter's lock, in a copy that
 * its thread has for itself. The copies stand behind their number; the first one is the code object's own.
 */
SO_INLINE u64 so_python_code_begin(const struct so_cpython *py, u64 code, u64 copy)
{
	u64 begin = 0;

	if (py->code_copies && copy)
		begin = so_python_word(so_python_word(code + py->code_copies) + sizeof(u64) + copy * sizeof(u64));
	return begin ? begin : code + py->code_begin;
}

/*
 * The next Python frame of the native frame that was stepped from, whose limits are before_sp and sp of the walk. To be
 * asked until it says SO_CHAIN_DONE. `detail` is the offset of the instruction in code units (20 bits), and above it
 * the hash of the code object.
 */
SO_INLINE enum so_chain_step so_python_next(struct so_walk *walk, const struct so_cpython *py, u64 *words, u64 *word,
					     u64 *detail)
{
	u64 frame = walk->chain_frame, code, at, instruction;
	u32 mark = 0;

	if (!frame)
		return SO_CHAIN_DONE;
	if (frame == SO_PYTHON_PENDING) {
		walk->chain_entry = walk->sp - walk->chain_entry;
		frame = so_python_word(walk->chain_entry + py->entry_frame);
	}
	if (py->form == SO_PYTHON_OBJECTS && frame & 1) {
		/* The one that belongs to this native frame was given. */
		walk->chain_frame = frame - 1;
		return SO_CHAIN_DONE;
	}
	if (py->form == SO_PYTHON_ENTRIES && walk->chain_entry >= walk->sp)
		return SO_CHAIN_DONE;
	walk->chain_frame = 0;
	if (so_read_python_frame(py, words, frame, &mark))
		return SO_CHAIN_BROKEN;
	if (mark && py->form == SO_PYTHON_SHIMS) {
		/* Of a call whose native frame comes later: it has got its frames. */
		if (frame >= walk->sp) {
			walk->chain_frame = frame;
			return SO_CHAIN_DONE;
		}
		walk->chain_frame = so_field(words, py->frame_previous, 8, SO_SCAN_WORDS);
		/* Else of a call whose native frame was not known as one. */
		return frame >= walk->before_sp ? SO_CHAIN_DONE : SO_CHAIN_HIDDEN;
	}
	frame = so_field(words, py->frame_previous, 8, SO_SCAN_WORDS);
	/* The lowest bits may be a tag of the reference. */
	code = so_field(words, py->frame_code, 8, SO_SCAN_WORDS) & ~7ULL;
	at = so_field(words, py->frame_instruction, 8, SO_SCAN_WORDS);
	/* Kept where the frame's second word will be, since on the BPF stack there is no room. */
	*detail = so_field(words, py->frame_copy, 4, SO_SCAN_WORDS);
	if (!so_is_user_address(code) || so_read_memory(words, SO_PYTHON_CODE_WORDS * sizeof(u64), code) ||
	    so_field(words, py->object_type, 8, SO_SCAN_WORDS) != py->code_type)
		return SO_CHAIN_BROKEN;
	if (py->form == SO_PYTHON_OBJECTS)
		instruction = at & 0x80000000U ? SO_PYTHON_NO_INSTRUCTION : (u32)at >> (py->instruction_shift & 1);
	else
		instruction = (at - so_python_code_begin(py, code, *detail)) >> 1;
	if (instruction > SO_PYTHON_NO_INSTRUCTION)
		instruction = SO_PYTHON_NO_INSTRUCTION;
	*word = SO_FRAME_WORD(SO_FRAME_PYTHON, code);
	*detail = instruction | so_python_hash(py, words) << 20;
	/* Until 3.10 this says that the native frame has got its one; later, that the chain broke off. */
	if (py->form == SO_PYTHON_OBJECTS ? frame != 0 : !frame && !mark)
		frame |= 1;
	if (mark)
		walk->chain_entry = so_python_word(walk->chain_entry + py->entry_previous);
	walk->chain_frame = frame;
	/* What calls __init__ for a new object is the interpreter's own code, whose file is named like its function. */
	if (so_field(words, py->code_filename, 8, SO_SCAN_WORDS) == so_field(words, py->code_name, 8, SO_SCAN_WORDS) &&
	    so_field(words, py->code_first_line, 4, SO_SCAN_WORDS) == 0)
		return SO_CHAIN_HIDDEN;
	return SO_CHAIN_FRAME;
}

#endif
