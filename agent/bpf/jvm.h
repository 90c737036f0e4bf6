/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * One step of the walk from a frame of Java code, as HotSpot lays it out. Included by runtime.h, under its rules.
 *
 * Compiled code and stubs lie in code blobs: a heap's segment map leads from an address to the blob's header, which
 * says how large the frame is. A frame of the interpreter has fixed slots below its frame pointer.
 */
#ifndef STAKEOUT_JVM_H
#define STAKEOUT_JVM_H

/* What a code blob's begin says. */
struct so_blob {
	u64 address;
	u64 code_begin;
	u64 frame_bytes;
	u64 frame_complete;	/* address from which on the frame is there */
};

/* A field of at most eight bytes of what was read. */
SO_INLINE u64 so_field(const u64 *words, u32 offset, u32 bytes, u32 count)
{
	u32 word = offset / 8 & (count - 1), shift = offset % 8 * 8;
	u64 value = words[word] >> shift;

	return bytes >= 8 ? value : value & ((1ULL << bytes * 8) - 1);
}

/* Finds the blob that an address lies in: 0 where there is none. */
SO_INLINE int so_find_blob(const struct so_jvm *jvm, u64 *words, u64 pc, struct so_blob *blob)
{
	u64 segment = 0, segments = 0, begin = 0;
	u32 i, shift = 0;
	u8 back = 0;

	for (i = 0; i < SO_JVM_HEAPS; i++) {
		if (i < jvm->heap_count && pc - jvm->heaps[i].begin < jvm->heaps[i].bytes) {
			begin = jvm->heaps[i].begin;
			segments = jvm->heaps[i].segments;
			shift = jvm->heaps[i].segment_shift & 31;
			segment = (pc - begin) >> shift;
		}
	}
	if (segments == 0)
		return 0;
	/* Each byte of the map says how many segments before it the block begins, or as many as fit; 0 is its begin. */
	for (i = 0; i < SO_JVM_SEGMENT_STEPS; i++) {
		if (so_read_memory(&back, sizeof(back), segments + segment) || back == 0xff || back > segment)
			return 0;
		if (back == 0)
			break;
		segment -= back;
	}
	if (back != 0)
		return 0;
	blob->address = begin + (segment << shift) + jvm->block_header_bytes;
	if (so_read_memory(words, SO_JVM_BLOB_WORDS * sizeof(u64), blob->address))
		return 0;
	blob->code_begin = so_field(words, jvm->code_begin, jvm->code_begin_bytes, SO_JVM_BLOB_WORDS);
	if (jvm->code_begin_bytes < 8)
		blob->code_begin += blob->address;
	blob->frame_bytes = so_field(words, jvm->frame_size, 4, SO_JVM_BLOB_WORDS) * 8;
	blob->frame_complete = so_field(words, jvm->frame_complete, jvm->frame_complete_bytes, SO_JVM_BLOB_WORDS);
	/* Some blobs have no place from which on there is a frame: a negative number. */
	if (blob->frame_complete >> (jvm->frame_complete_bytes * 8 - 1) & 1)
		blob->frame_complete = 0;
	blob->frame_complete += blob->code_begin;
	return 1;
}

/*
 * How many bytes lie between the stack pointer and the return address, where code was interrupted: its frame may be
 * being made, or given up. `whole` is what a complete frame has. Below the return address stands the caller's frame
 * pointer, unless it is still in its register.
 */
SO_INLINE u64 so_interrupted_bytes(const struct so_walk *walk, const struct so_blob *blob, u64 whole, int *has_fp)
{
	u64 code = 0, before = 0;
	u32 b0, b1, b2;

	if (so_read_code(&code, sizeof(code), walk->pc) || so_read_code(&before, sizeof(before), walk->pc - sizeof(before)))
		return whole;
	b0 = code & 0xff;
	b1 = code >> 8 & 0xff;
	b2 = code >> 16 & 0xff;
	/* ret; pop rbp before it. */
	if (b0 == 0xc3)
		return 0;
	if (b0 == 0x5d)
		return 8;
	if (walk->pc >= blob->frame_complete) {
		/* Between pop rbp and ret is the poll for a safepoint: cmp rsp, [r15 + x] and ja; test [x], eax. */
		if (b0 == 0x49 && b1 == 0x3b && b2 == 0xa7)
			return 0;
		if (b0 == 0x0f && b1 == 0x87 && (before >> 8 & 0xffffff) == 0xa73b49)
			return 0;
		if (before >> 56 == 0x5d && (b0 == 0x85 || (b0 == 0x4d && b1 == 0x8b) || (b0 == 0xc5 && b1 == 0xf8)))
			return 0;
		/* The page's address was loaded into r10 right behind pop rbp. */
		if (b0 == 0x41 && b1 == 0x85 && b2 == 0x02 &&
		    ((before & 0xff) == 0x5d || (before >> 32 & 0xff) == 0x5d))
			return 0;
		return whole;
	}
	/* push rbp; a write far below the stack pointer, which touches its pages. */
	if (b0 == 0x55 || (b0 == 0x89 && b1 == 0x84 && b2 == 0x24))
		return 0;
	/* sub rsp, behind push rbp or before it; mov rbp, rsp. */
	if (b0 == 0x48 && (b1 == 0x81 || b1 == 0x83) && b2 == 0xec)
		return before >> 56 == 0x55 ? 8 : 0;
	if (b0 == 0x48 && b1 == 0x8b && b2 == 0xec)
		return 8;
	/* mov [rsp + x], rbp, behind sub rsp. */
	if (b0 == 0x48 && b1 == 0x89 && (b2 == 0x6c || b2 == 0xac)) {
		*has_fp = 0;
		return whole;
	}
	/* A look whether the method may be entered at present: cmp [r15 + x], and jne. */
	if ((b0 == 0x41 && b1 == 0x81) || (b0 == 0x0f && b1 == 0x85 && (before & 0xffff) == 0x8141))
		return whole;
	/* It has not begun: the receiver's class is looked at. */
	return 0;
}

/*
 * The end of a class' name, with its length. A class that is unloaded leaves all of its structures to the next one,
 * which may be its very like but for the name. 0 where it cannot be read.
 */
SO_INLINE u64 so_class_name(const struct so_jvm *jvm, u64 pool)
{
	u64 holder = 0, symbol = 0, head = 0, end = 0, at;
	u32 length, bytes;

	if (!so_is_user_address(pool) || so_read_memory(&holder, sizeof(holder), pool + jvm->pool_holder) ||
	    !so_is_user_address(holder) || so_read_memory(&symbol, sizeof(symbol), holder + jvm->class_name) ||
	    !so_is_user_address(symbol) || so_read_memory(&head, sizeof(head), symbol))
		return 0;
	length = head >> jvm->symbol_length * 8 & 0xffff;
	at = symbol + jvm->symbol_body;
	bytes = length < sizeof(end) ? length : sizeof(end);
	if (so_read_memory(&end, sizeof(end), at + length - bytes))
		return 0;
	if (bytes < sizeof(end))
		end &= (1ULL << bytes * 8) - 1;
	return end ^ (u64)length << 40;
}

/*
 * How a method's name begins, with its length. Of a class that is unloaded the texts of names are freed too, and others
 * take their place while the method seems to be there. 0 where it cannot be read.
 */
SO_INLINE u64 so_method_name(const struct so_jvm *jvm, const u64 *known, u64 pool)
{
	u64 symbol = 0, text[2] = {}, name;
	u32 length, body = jvm->symbol_body * 8 & 63;

	if (!so_is_user_address(pool) ||
	    so_read_memory(&symbol, sizeof(symbol),
			   pool + jvm->pool_bytes + so_field(known, jvm->name, 2, SO_JVM_CONST_METHOD_WORDS) * 8) ||
	    !so_is_user_address(symbol) || so_read_memory(text, sizeof(text), symbol))
		return 0;
	length = text[0] >> (jvm->symbol_length * 8 & 63) & 0xffff;
	name = body ? text[0] >> body | text[1] << (64 - body) : text[1];
	if (length < sizeof(name))
		name &= (1ULL << length * 8) - 1;
	return name ^ (u64)length << 40;
}

/* A frame of the interpreter. */
SO_INLINE enum so_step so_step_interpreted(struct so_walk *walk, const struct so_jvm *jvm, u64 *words)
{
	/* From the frame pointer down: the last two words are the caller's frame pointer and the return address. */
	u64 method, constants = 0, bcp, sp, hash, offset, pool, *known = words + SO_JVM_FRAME_WORDS;
	const u32 base = SO_JVM_FRAME_WORDS - 2;

	if (walk->fp & 7 || walk->fp < walk->sp ||
	    so_read_user(words, SO_JVM_FRAME_WORDS * sizeof(u64), walk->fp - base * sizeof(u64)))
		return SO_STEP_BROKEN;
	method = words[(base + jvm->slot_method) & (SO_JVM_FRAME_WORDS - 1)];
	bcp = words[(base + jvm->slot_bcp) & (SO_JVM_FRAME_WORDS - 1)];
	sp = words[(base + jvm->slot_sender_sp) & (SO_JVM_FRAME_WORDS - 1)];
	if (walk->innermost && walk->has_registers) {
		/* The frame is being made: below the stack pointer stands what another one has left. */
		if ((s64)(walk->sp - walk->fp) > jvm->slot_method * 8)
			method = walk->registers[SO_RBX];
		if ((s64)(walk->sp - walk->fp) > jvm->slot_sender_sp * 8)
			sp = walk->registers[SO_R13];
		if ((s64)(walk->sp - walk->fp) > jvm->slot_bcp * 8)
			bcp = 0;
	}
	if (so_is_user_address(method) && !(method & 7) &&
	    !so_read_memory(&constants, sizeof(constants), method + jvm->const_method) && so_is_user_address(constants) &&
	    !so_read_memory(known, SO_JVM_CONST_METHOD_WORDS * sizeof(u64), constants)) {
		u64 begin = constants + jvm->const_method_bytes;
		u64 size = so_field(known, jvm->code_size, 2, SO_JVM_CONST_METHOD_WORDS);

		/* While it runs, the interpreter has it in a register. */
		if (walk->innermost && walk->has_registers && walk->registers[SO_R13] - begin < size)
			bcp = walk->registers[SO_R13];
		offset = bcp - begin < size ? bcp - begin : 0xffff;
		/*
		 * Of what stays as it is: where its constants are, the sizes and names beside the bytecodes' length, and the
		 * names of its class and itself.
		 */
		pool = so_field(known, jvm->pool, 8, SO_JVM_CONST_METHOD_WORDS);
		hash = (constants ^ pool) * 0x9e3779b97f4a7c15ULL;
		hash = (hash ^ known[jvm->code_size / 8 & (SO_JVM_CONST_METHOD_WORDS - 1)]) * 0x9e3779b97f4a7c15ULL;
		hash = (hash ^ hash >> 32 ^ so_class_name(jvm, pool)) * 0x9e3779b97f4a7c15ULL;
		hash = (hash ^ hash >> 32 ^ so_method_name(jvm, known, pool)) * 0x9e3779b97f4a7c15ULL;
		walk->runtime_frame = SO_FRAME_WORD(SO_FRAME_JVM_INTERPRETED, method);
		walk->runtime_detail = (offset & 0xffff) | (hash >> 32) << 16;
	}
	if (!so_is_user_address(words[base + 1]))
		return SO_STEP_BROKEN;
	/* The caller may have been given room for locals there: its own stack pointer stands in the frame. */
	walk->sp = sp > walk->fp && sp - walk->fp < SO_SEEN_BYTES ? sp : walk->fp + 16;
	walk->pc = words[base + 1];
	walk->fp = words[base];
	return SO_STEP_FRAME;
}

/*
 * What tells the method of compiled code from what may take its place: code that is gone for good goes on leading to
 * where its method lay. 0 where it has none.
 */
SO_INLINE u32 so_method_mark(const struct so_jvm *jvm, u64 blob, u64 *known)
{
	u64 method = 0, constants = 0, hash;

	if (so_read_memory(&method, sizeof(method), blob + jvm->method) || !so_is_user_address(method) || method & 7 ||
	    so_read_memory(&constants, sizeof(constants), method + jvm->const_method) || !so_is_user_address(constants) ||
	    so_read_memory(known, SO_JVM_CONST_METHOD_WORDS * sizeof(u64), constants))
		return 0;
	hash = constants * 0x9e3779b97f4a7c15ULL ^ known[jvm->code_size / 8 & (SO_JVM_CONST_METHOD_WORDS - 1)];
	hash *= 0x9e3779b97f4a7c15ULL;
	hash ^= hash >> 32 ^ so_method_name(jvm, known, so_field(known, jvm->pool, 8, SO_JVM_CONST_METHOD_WORDS));
	/* A detail has 60 bits. */
	return hash * 0x9e3779b97f4a7c15ULL >> 36;
}

/* A frame of compiled code, or of a stub. */
SO_INLINE enum so_step so_step_blob(struct so_walk *walk, const struct so_jvm *jvm, const struct so_blob *blob,
				    u64 *words)
{
	u64 above[2] = {}, gap, pc = walk->pc, handler = 0;
	u32 compile_id = 0, i;
	int has_fp = 1;

	so_read_memory(&compile_id, sizeof(compile_id), blob->address + jvm->compile_id);
	if (jvm->deopt_handler_bytes && !walk->innermost) {
		/* Code that is no longer valid returns to its handler: where it would have returned to stands in its frame. */
		u32 orig = 0;

		so_read_memory(&handler, jvm->deopt_handler_bytes == 8 ? 8 : 4, blob->address + jvm->deopt_handler);
		if (jvm->deopt_handler_bytes < 8)
			handler += blob->address;
		if (handler == pc && !so_read_memory(&orig, sizeof(orig), blob->address + jvm->orig_pc) &&
		    orig < blob->frame_bytes && so_read_user(&pc, sizeof(pc), walk->sp + orig))
			pc = walk->pc;
	}
	walk->runtime_frame = SO_FRAME_WORD(SO_FRAME_JVM_COMPILED, pc) | (walk->innermost ? SO_EXACT_ADDRESS : 0);
	walk->runtime_detail = compile_id | (u64)so_method_mark(jvm, blob->address, words) << 32;
	if (blob->frame_bytes == 0 || blob->frame_bytes > SO_SEEN_BYTES) {
		/* A stub: it has a frame pointer, or nothing at all. */
		if (walk->innermost && !so_read_user(above, sizeof(u64), walk->sp) && so_is_user_address(above[0]) &&
		    so_is_behind_call(above[0]) == SO_CALL_YES) {
			walk->sp += 8;
			walk->pc = above[0];
			return SO_STEP_FRAME;
		}
		return so_step_frame_pointer(walk, 0);
	}
	gap = blob->frame_bytes - 8;
	if (walk->innermost)
		gap = so_interrupted_bytes(walk, blob, gap, &has_fp);
	if (walk->innermost && gap == blob->frame_bytes - 8) {
		/* Code that moves words in memory, and some that the compiler knows by heart, pushes words for a moment. */
		for (i = 0; i < SO_JVM_PUSHED_WORDS; i++) {
			if (!so_read_user(above, sizeof(u64), walk->sp + gap + i * sizeof(u64)) &&
			    so_is_user_address(above[0]) && so_is_behind_call(above[0]) == SO_CALL_YES) {
				gap += i * sizeof(u64);
				break;
			}
		}
	}
	if (so_read_user(above, gap ? sizeof(above) : sizeof(u64), walk->sp + (gap ? gap - 8 : 0)))
		return SO_STEP_BROKEN;
	/* Below the return address stands the caller's frame pointer, once it was pushed. */
	pc = gap ? above[1] : above[0];
	if (!so_is_user_address(pc))
		return SO_STEP_BROKEN;
	if (gap && has_fp)
		walk->fp = above[0];
	walk->sp += gap + 8;
	walk->pc = pc;
	return SO_STEP_FRAME;
}

SO_INLINE enum so_step so_step_jvm(struct so_walk *walk, const struct so_jvm *jvm, u64 *words)
{
	struct so_blob blob = {};

	if (walk->pc - jvm->interpreter_begin < jvm->interpreter_bytes)
		return so_step_interpreted(walk, jvm, words);
	if (!so_find_blob(jvm, words, walk->innermost ? walk->pc : walk->pc - 1, &blob))
		return so_step_frame_pointer(walk, 0);
	return so_step_blob(walk, jvm, &blob, words);
}

#endif
