/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * One step of the walk from a frame of V8: code that it made while the program runs, and its own code that lies in the
 * program's file without a table. Included by runtime.h, under its rules; who includes that defines before, beside the
 * others (runtime_abi.h has its limits, and what it is told of a process):
 *
 *   so_v8_share(walk, v8, words, function)   so_v8_share_once and so_v8_state_once, each perhaps a function of its own
 *   so_v8_state(walk, top)
 *
 * All of V8's frames are chained by frame pointers. Below the frame pointer stands a context, and below that the
 * function, or instead of the context a number that says what else the frame is. What the interpreter runs has its
 * bytecodes and the place in them below that. Objects move while the program runs: what a frame tells of is read at
 * once down to what stays where it is, and a hash of that is put beside it.
 */
#ifndef STAKEOUT_V8_H
#define STAKEOUT_V8_H

/* What a frame's word is of, in bits 57 to 59; below it 10 bits of hashes, and the place in 47 bits. */
#define SO_V8_INTERPRETED 0ULL
#define SO_V8_MADE 1ULL
#define SO_V8_MARKED 2ULL
#define SO_V8_MADE_LATE 3ULL
#define SO_V8_KIND_SHIFT 57
#define SO_V8_PLACE_BITS 47
#define SO_V8_PLACE ((1ULL << SO_V8_PLACE_BITS) - 1)
/* In the detail: an address without its lowest three bits, and above that 16 bits of the hash. */
#define SO_V8_OBJECT_BITS 44
/* A frame, in words from 40 bytes below the frame pointer. */
#define SO_V8_AT_OFFSET 0
#define SO_V8_AT_BYTECODE 1
#define SO_V8_AT_FUNCTION 3
#define SO_V8_AT_CONTEXT 4
#define SO_V8_AT_FP 5
#define SO_V8_AT_RETURN 6
#define SO_V8_FRAME_WORDS 7
#define SO_V8_BELOW_BYTES 40
/* Where the function, and what it shares with all that are made by the same text, are read to, in words. */
#define SO_V8_FUNCTION_AT 8
#define SO_V8_FUNCTION_WORDS 5
#define SO_V8_SHARED_AT 16
#define SO_V8_SHARED_WORDS 10
/* Map: what kind of object. */
#define SO_V8_MAP_TYPE 12
/* The longest bytecode. */
#define SO_V8_MAX_OFFSET (1U << 28)
/* DWARF's numbers: where a function is called with its object, and what the interpreter has in registers. */
#define SO_V8_RDI 5
#define SO_V8_R9 9
#define SO_V8_R12 12

/* Objects have a tag in the lowest bits, numbers have none. */
SO_INLINE int so_is_v8_object(u64 word)
{
	return (word & 3) == 1 && so_is_user_address(word) && word <= SO_V8_PLACE;
}

SO_INLINE u64 so_v8_mix(u64 hash, u64 word)
{
	return (hash ^ hash >> 29 ^ word) * 0x9e3779b97f4a7c15ULL;
}

/* What kind an object with this map is; 0 where that can't be read. */
SO_INLINE u32 so_v8_type(u64 map)
{
	u16 type = 0;

	/* While objects are moved, the address of where it is now stands in the place of its map. */
	if (!(map & 3) && so_is_user_address(map) && so_read_memory(&map, sizeof(map), map))
		return 0;
	if (!so_is_v8_object(map) || so_read_memory(&type, sizeof(type), map - 1 + SO_V8_MAP_TYPE))
		return 0;
	return type;
}

SO_INLINE u32 so_v8_type_of(u64 object)
{
	u64 map = 0;

	return so_is_v8_object(object) && !so_read_memory(&map, sizeof(map), object - 1) ? so_v8_type(map) : 0;
}

/* Does the interpreter run a frame? Code made of bytecodes one by one keeps an object where that has the place. */
SO_INLINE int so_is_v8_interpreted(struct so_walk *walk, const struct so_v8 *v8, const u64 *words)
{
	u64 offset = words[SO_V8_AT_OFFSET], bytecode = words[SO_V8_AT_BYTECODE], map = 0;

	if ((u32)offset || offset >> 32 >= SO_V8_MAX_OFFSET || !so_is_v8_object(bytecode) ||
	    !so_is_v8_object(words[SO_V8_AT_CONTEXT]) || so_read_memory(&map, sizeof(map), bytecode - 1))
		return 0;
	if (map != walk->v8_bytecode_map) {
		if (so_v8_type(map) != v8->bytecode_type)
			return 0;
		walk->v8_bytecode_map = map;
	}
	return 1;
}

/*
 * Where what a function shares lies is walk->v8_shared then, 0 where it is no function, and walk->v8_hash is of what
 * stays as it is. Remembered, since recursion meets the same one again.
 */
SO_INLINE int so_v8_share_once(struct so_walk *walk, const struct so_v8 *v8, u64 *words, u64 function)
{
	u64 *shared = words + SO_V8_SHARED_AT, map, address, script, id = 0, hash = 0;
	u32 bytes = v8->shared_bytes;

	if (function && function == walk->v8_function)
		return 0;
	walk->v8_function = function;
	walk->v8_shared = 0;
	if (!so_is_v8_object(function) ||
	    so_read_memory(words + SO_V8_FUNCTION_AT, SO_V8_FUNCTION_WORDS * sizeof(u64), function - 1))
		return 0;
	map = words[SO_V8_FUNCTION_AT];
	if (map != walk->v8_function_map) {
		u32 type = so_v8_type(map);

		if (type < v8->first_function_type || type > v8->last_function_type)
			return 0;
		walk->v8_function_map = map;
	}
	address = so_field(words + SO_V8_FUNCTION_AT, v8->function_shared, 8, 8);
	/* No further: it may be the last object of its page, and nobody has written to the next one yet. */
	if (bytes > SO_V8_SHARED_WORDS * sizeof(u64))
		bytes = SO_V8_SHARED_WORDS * sizeof(u64);
	if (!so_is_v8_object(address) || so_read_memory(shared, bytes, address - 1))
		return 0;
	hash = so_v8_mix(hash, so_field(shared, v8->shared_name, 8, 16));
	hash = so_v8_mix(hash, so_field(shared, v8->shared_script, 8, 16));
	/* Parameters, and how far behind its name the function begins. */
	hash = so_v8_mix(hash, so_field(shared, v8->shared_length, 8, 16) & 0xffffffffffffULL);
	hash = so_v8_mix(hash, so_field(shared, v8->shared_literal, 4, 16));
	if (v8->shared_unique)
		hash = so_v8_mix(hash, so_field(shared, v8->shared_unique, 4, 16));
	/* What is made of the same text again lies where the one before lay, with all that belongs to it. */
	script = so_field(shared, v8->shared_script, 8, 16);
	if (v8->script_id && so_is_v8_object(script)) {
		if (so_read_memory(&id, sizeof(id), script - 1 + v8->script_id))
			id = 0;
		hash = so_v8_mix(hash, id);
	}
	walk->v8_hash = hash;
	walk->v8_shared = address - 1;
	return 0;
}

/*
 * Whether a function's bytecodes are those of its frame: where a frame is looked at later, something else may have
 * taken the function's place.
 */
SO_INLINE int so_v8_has_bytecode(const struct so_v8 *v8, const u64 *words, u64 bytecode)
{
	u64 data = so_field(words + SO_V8_SHARED_AT, v8->shared_data, 8, 16), of_code = 0;

	if (data == bytecode)
		return 1;
	return so_v8_type_of(data) == v8->code_type &&
	       !so_read_memory(&of_code, sizeof(of_code), data - 1 + v8->code_bytecode) && of_code == bytecode;
}

SO_INLINE void so_v8_put(struct so_walk *walk, u64 kind, u64 place, u64 object, u64 hash, u64 more)
{
	walk->runtime_frame = SO_FRAME_WORD(SO_FRAME_V8, kind << SO_V8_KIND_SHIFT | (place & SO_V8_PLACE) |
								 (more & 0x3ff) << SO_V8_PLACE_BITS);
	walk->runtime_detail = (object & SO_V8_PLACE) >> 3 | hash >> 48 << SO_V8_OBJECT_BITS;
	if (walk->innermost && kind != SO_V8_INTERPRETED)
		walk->runtime_frame |= SO_EXACT_ADDRESS;
}

/*
 * Code that V8 made; the bytes at, or before, the place tell it from other code that takes its place, in six bits of
 * their own: of code that is gone the function may still be known.
 */
SO_INLINE void so_v8_put_made(struct so_walk *walk, u64 kind, u64 shared)
{
	u64 code = 0, hash = shared ? walk->v8_hash : 0;

	if (so_read_memory(&code, sizeof(code), walk->innermost ? walk->pc : walk->pc - sizeof(code)))
		code = 0;
	so_v8_put(walk, kind, walk->pc, shared, hash, hash >> 44 << 6 | so_v8_mix(0, code) >> 58);
}

/* What the frame before was: of V8's own code, with or without a frame of its own, as what runs a bytecode is. */
enum so_v8_before {
	SO_V8_OTHER,
	SO_V8_STUB,
	SO_V8_FRAMELESS,
};

/* Whether code that was interrupted has a frame of its own. */
enum so_v8_frame {
	SO_V8_WHOLE,
	/* The return address is at the stack pointer, or one word above: the frame is about to be made. */
	SO_V8_ENTERED,
	SO_V8_PUSHED,
	/* It has been given up: what it held is still below the stack pointer. */
	SO_V8_LEFT,
};

SO_INLINE enum so_v8_frame so_v8_state_once(const struct so_walk *walk, u64 top)
{
	u64 code = 0, before = 0;
	u32 b0, b1, b2, last;

	if (so_read_code(&code, sizeof(code), walk->pc) || so_read_code(&before, sizeof(before), walk->pc - sizeof(before)))
		return SO_V8_WHOLE;
	b0 = code & 0xff;
	b1 = code >> 8 & 0xff;
	b2 = code >> 16 & 0xff;
	last = before >> 56;
	/* mov rbp, rsp, behind push rbp. */
	if (last == 0x55 && b0 == 0x48 && ((b1 == 0x89 && b2 == 0xe5) || (b1 == 0x8b && b2 == 0xec)))
		return SO_V8_PUSHED;
	if (!so_is_user_address(top) || so_is_behind_call(top) != SO_CALL_YES)
		return SO_V8_WHOLE;
	/* ret; what stands behind pop rbp, or leave, where the stack pointer is at a return address. */
	if (b0 == 0xc3 || b0 == 0xc2 || last == 0x5d || last == 0xc9)
		return SO_V8_LEFT;
	if (walk->of_file)
		return SO_V8_ENTERED;
	/* push rbp; before that a look whether the code is still valid: mov rbx, [rcx - x]; test [rbx + x]; jne. */
	if (b0 == 0x55 && b1 == 0x48)
		return SO_V8_ENTERED;
	if (b0 == 0x48 && b1 == 0x8b && b2 == 0x59 && (code >> 32 & 0xffff) == 0x43f6)
		return SO_V8_ENTERED;
	if (b0 == 0xf6 && b1 == 0x43 && (code >> 32 & 0xffff) == 0x850f)
		return SO_V8_ENTERED;
	if (b0 == 0x0f && b1 == 0x85 && code >> 48 == 0x4855)
		return SO_V8_ENTERED;
	return SO_V8_WHOLE;
}

SO_INLINE int so_read_v8_frame(u64 *words, u64 fp)
{
	return fp & 7 || so_read_user(words, SO_V8_FRAME_WORDS * sizeof(u64), fp - SO_V8_BELOW_BYTES);
}

/* How far the interpreter has got in a frame. */
SO_INLINE u64 so_v8_offset(const struct so_walk *walk, const struct so_v8 *v8, const u64 *words, int is_running)
{
	u64 offset = words[SO_V8_AT_OFFSET] >> 32, begin = v8->bytecode_begin - 1;

	/* While it runs a bytecode, it has both in registers. */
	if (is_running && walk->has_registers && walk->registers[SO_V8_R12] == words[SO_V8_AT_BYTECODE] &&
	    walk->registers[SO_V8_R9] - begin < SO_V8_MAX_OFFSET)
		offset = walk->registers[SO_V8_R9];
	return offset - begin;
}

SO_INLINE enum so_step so_step_v8(struct so_walk *walk, const struct so_v8 *v8, u64 *words)
{
	u64 fp = walk->fp, sp, top = 0, marker, function, shared = 0;
	u32 of_file = walk->of_file, innermost = walk->innermost, before = walk->v8_before;
	int is_interpreted;
	enum so_v8_frame state = SO_V8_WHOLE;

	walk->v8_before = SO_V8_OTHER;
	if (innermost && !so_read_user(&top, sizeof(top), walk->sp))
		state = so_v8_state(walk, top);
	if (fp < walk->sp || so_read_v8_frame(words, fp))
		return so_step_frame_pointer(walk, 0);
	/* Code that took the place of a bytecode's in the midst of it keeps the words of the interpreter's frame. */
	is_interpreted = of_file && state == SO_V8_WHOLE && so_is_v8_interpreted(walk, v8, words);
	marker = words[SO_V8_AT_CONTEXT];
	function = words[SO_V8_AT_FUNCTION];
	sp = fp + 2 * sizeof(u64);
	if (of_file && state != SO_V8_WHOLE)
		walk->v8_before = SO_V8_FRAMELESS;
	else if (of_file && marker == (u64)v8->frame_stub << 1)
		walk->v8_before = SO_V8_STUB;
	if (state != SO_V8_WHOLE) {
		/* The frame pointer is the caller's. */
		marker = 1;
		sp = walk->sp + sizeof(u64);
		function = walk->has_registers ? walk->registers[SO_V8_RDI] : 0;
		if (state == SO_V8_PUSHED && so_read_user(&top, sizeof(top), walk->sp + sizeof(u64)))
			return SO_STEP_BROKEN;
		if (state == SO_V8_PUSHED)
			sp += sizeof(u64);
		if (state == SO_V8_LEFT && so_read_user(&function, sizeof(function), walk->sp - 3 * sizeof(u64)))
			function = 0;
		words[SO_V8_AT_FP] = walk->fp;
		words[SO_V8_AT_RETURN] = top;
	}
	if (!so_is_user_address(words[SO_V8_AT_RETURN]))
		return so_step_frame_pointer(walk, 0);
	if (!of_file && !(marker & 1) && marker >> 1 <= 0xff) {
		so_v8_put(walk, SO_V8_MARKED, walk->pc, marker >> 1 << 3, 0, 0);
	} else if (is_interpreted || !of_file) {
		so_v8_share(walk, v8, words, function);
		shared = walk->v8_shared;
		/* What is looked at later may have been moved: its bytecodes have to agree. */
		if (is_interpreted && v8->is_late && shared) {
			walk->v8_function = 0;
			if (!so_v8_has_bytecode(v8, words, words[SO_V8_AT_BYTECODE]))
				shared = 0;
		}
		if (is_interpreted) {
			so_v8_put(walk, SO_V8_INTERPRETED,
				  so_v8_offset(walk, v8, words, innermost || before == SO_V8_FRAMELESS), shared,
				  shared ? walk->v8_hash : 0, shared ? walk->v8_hash >> 38 : 0);
			/* What runs a bytecode belongs to the frame of the interpreter. */
			walk->is_folded = before != SO_V8_OTHER;
		} else {
			so_v8_put_made(walk, v8->is_late ? SO_V8_MADE_LATE : SO_V8_MADE, shared);
		}
	}
	walk->sp = sp;
	walk->fp = words[SO_V8_AT_FP];
	walk->pc = words[SO_V8_AT_RETURN];
	return SO_STEP_FRAME;
}

/* Whether V8 may have made code at an address: pages that it has set aside for that become code one by one. */
SO_INLINE int so_is_v8_made(const struct so_walk *walk, const struct so_v8 *v8, u64 pc)
{
	u32 i;

	for (i = 0; i < SO_V8_RANGES; i++) {
		if (pc - v8->made_begin[i] < v8->made_bytes[i])
			return walk->innermost || so_is_behind_call(walk->pc) == SO_CALL_YES;
	}
	return 0;
}

#endif
