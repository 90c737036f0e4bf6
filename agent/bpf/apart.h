/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What a walk does again and again, as functions that the verifier looks at once. Included by the sampler, behind
 * unwind.h and what that wants.
 */
#ifndef STAKEOUT_APART_H
#define STAKEOUT_APART_H

/*
 * One step, verified once, apart from the loop that calls it: the verifier would otherwise walk through the searches
 * again for every frame (kernels before 5.17 have no bpf_loop). Its state is in the scratch of this CPU.
 */
APART int step_user(u32 unused)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct so_scratch *record = bpf_map_lookup_elem(&scratch, &cpu);

	return record ? so_step_once(&record->walk) : SO_STEP_BROKEN;
}

APART int rule_user(u64 rule)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct so_scratch *record = bpf_map_lookup_elem(&scratch, &cpu);

	return record ? so_step_by_once(&record->walk, rule) : SO_STEP_BROKEN;
}

APART int runtime_user(u32 unused)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct so_scratch *record = bpf_map_lookup_elem(&scratch, &cpu);

	return record ? so_runtime_step_once(&record->walk, record->scan.words) : SO_STEP_BROKEN;
}

APART int python_seek_user(u32 unused)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct so_scratch *record = bpf_map_lookup_elem(&scratch, &cpu);
	const struct so_cpython *py = record ? so_cpython_of(&record->walk) : NULL;

	return py ? so_python_seek_once(&record->walk, py, record->scan.words) : 2;
}

APART int ruby_seek_user(u32 unused)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct so_scratch *record = bpf_map_lookup_elem(&scratch, &cpu);
	const struct so_ruby *ruby = record ? so_ruby_of(&record->walk) : NULL;

	return ruby ? so_ruby_seek_once(&record->walk, ruby, record->scan.words) : 2;
}

APART int v8_share_user(u64 function)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct so_scratch *record = bpf_map_lookup_elem(&scratch, &cpu);
	const struct so_v8 *v8 = record ? so_v8_of(&record->walk) : NULL;

	return v8 ? so_v8_share_once(&record->walk, v8, record->scan.words, function) : 0;
}

APART int v8_state_user(u64 top)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct so_scratch *record = bpf_map_lookup_elem(&scratch, &cpu);

	return record ? (int)so_v8_state_once(&record->walk, top) : SO_V8_WHOLE;
}

APART int chain_call_user(u32 innermost)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct so_scratch *record = bpf_map_lookup_elem(&scratch, &cpu);

	return record ? so_chain_call_once(&record->walk, record->scan.words, innermost) : 0;
}

APART int chain_frame_user(u32 unused)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct so_scratch *record = bpf_map_lookup_elem(&scratch, &cpu);

	return record ? so_chain_frame_once(&record->walk, record->scan.words) : SO_CHAIN_DONE;
}

APART int look_user(u64 pc)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct so_scratch *record = bpf_map_lookup_elem(&scratch, &cpu);

	return record ? so_look_once(&record->walk, &record->scan, pc) : SO_FOUND_NO_MAPPING;
}

APART int try_user(u64 at, u64 word)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct so_scratch *record = bpf_map_lookup_elem(&scratch, &cpu);

	return record ? so_try_once(&record->walk, &record->scan, at, word) : 0;
}

APART int scan_user(u64 address)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct so_scratch *record = bpf_map_lookup_elem(&scratch, &cpu);

	return record ? so_scan_once(&record->walk, &record->scan, address) : 2;
}

APART int recover_user(u32 step)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct so_scratch *record = bpf_map_lookup_elem(&scratch, &cpu);

	return record ? so_recover_once(&record->walk, &record->scan, step) : SO_STEP_BROKEN;
}

#endif
