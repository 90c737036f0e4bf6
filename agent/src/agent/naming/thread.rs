//! The naming thread: intervals in, batches out.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;

use super::frame_table::FrameTable;
use super::intervals::Behind;
use super::roots::{End, Roots};
use super::trampolines;
use super::wakers;
use super::work::{Finished, Work};
use crate::frames::{CodeLocation, Frame, FrameKind, Frames, SampleKind, SourceId, Stack, WaitClass};
use crate::hash::FastMap;
use crate::process::{Program, Source};
use crate::ship::{Batch, Process, Sample, Woken};
use crate::symbolize::{Namer, NamerStats};

/// However naming ends, nobody waits for it any more: who sends then is told.
struct Ending<'a>(&'a Behind);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.waiting.store(0, Ordering::Release);
        self.0.unnamed.store(0, Ordering::Release);
    }
}

/// Names interval after interval until the sender is gone, to whom `behind` says how far it is. Returns batches,
/// samples in them, and what the namer did.
pub(in crate::agent) fn name_intervals(
    mut namer: Namer,
    work: &Receiver<Work>,
    behind: &Behind,
    mut sink: impl FnMut(Batch),
) -> (u64, u64, NamerStats) {
    let _ending = Ending(behind);
    namer.prepare(crate::sys::monotonic_ns());
    let (mut batches, mut samples) = (0, 0);
    let mut roots = Roots::default();
    for work in work {
        let Work::Interval(interval) = work else {
            namer.forget_given_up(crate::sys::monotonic_ns());
            continue;
        };
        behind.waiting.fetch_sub(1, Ordering::Release);
        let batch = build(&mut namer, &mut roots, *interval);
        behind.unnamed.fetch_sub(1, Ordering::Release);
        batches += 1;
        samples += batch.samples.len() as u64;
        sink(batch);
    }
    (batches, samples, namer.stats())
}

fn build(namer: &mut Namer, roots: &mut Roots, finished: Finished) -> Batch {
    let Finished {
        interval,
        degradation,
        span,
        frequency_hz,
        period_ns,
        mut report,
        run_queues,
        wait_factor,
        is_around_schedule,
    } = finished;
    // Each location once, and which of them each stack has, one after the other. Frames of a runtime, which have their
    // names already, are counted on from the end.
    let mut location_index: FastMap<CodeLocation, u32> = FastMap::default();
    let mut locations: Vec<CodeLocation> = Vec::new();
    let mut runtime_index: FastMap<*const Arc<Frame>, u32> = FastMap::default();
    let mut of_runtimes: Vec<Frames> = Vec::new();
    let mut stack_locations: Vec<u32> = Vec::new();
    let mut sources: FastMap<SourceId, Source> = FastMap::default();
    for stack in &interval.stacks {
        let mut runtime = stack.runtime.iter();
        stack_locations.extend(stack.kernel.iter().chain(&stack.user).map(|location| {
            if location.source == SourceId::RUNTIME
                && let Some((_, frames)) = runtime.next()
            {
                return u32::MAX
                    - *runtime_index.entry(frames.as_ptr()).or_insert_with(|| {
                        of_runtimes.push(Arc::clone(frames));
                        (of_runtimes.len() - 1) as u32
                    });
            }
            *location_index.entry(*location).or_insert_with(|| {
                locations.push(*location);
                (locations.len() - 1) as u32
            })
        }));
        for (id, source) in &stack.sources {
            sources.entry(*id).or_insert_with(|| source.clone());
        }
    }
    drop((location_index, runtime_index));
    namer.set_degradation(degradation);
    namer.begin(span.begin_mono_ns());
    let mut named = namer.name(&locations, &sources, crate::sys::monotonic_ns());
    for location in stack_locations
        .iter_mut()
        .filter(|location| **location >= named.len() as u32)
    {
        *location = named.len() as u32 + (u32::MAX - *location);
    }
    named.append(&mut of_runtimes);

    let NamerStats {
        symbols_left_out,
        lines_left_out,
        perf_maps_searched,
        perf_maps_left_out,
        locations_given_up,
        ..
    } = namer.stats();
    let left_out = [
        ("symbols_left_out", symbols_left_out),
        ("lines_left_out", lines_left_out),
        ("perf_maps_searched", perf_maps_searched),
        ("perf_maps_left_out", perf_maps_left_out),
        ("places_given_up", locations_given_up),
    ];
    report.limits.extend(
        left_out
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .map(|(name, count)| (name.into(), count)),
    );

    let mut frame_table = FrameTable::of(&named);
    drop(named);
    let mut rest = stack_locations.as_slice();
    let stacks = interval.stacks.iter().map(|stack| {
        let (locations, further) = rest.split_at(stack.kernel.len() + stack.user.len());
        rest = further;
        frame_table.stack(stack, locations)
    });
    let (mut stacks, ends): (Vec<Stack>, Vec<End>) = stacks.unzip();
    if is_around_schedule {
        let waits = |kind| matches!(kind, SampleKind::OffCpu(_) | SampleKind::RunQueue(_));
        let of_waits = interval.samples.iter().filter(|sample| waits(sample.kind));
        let mut waiting: Vec<u32> = of_waits.map(|sample| sample.stack).collect();
        waiting.sort_unstable();
        waiting.dedup();
        trampolines::take_out(waiting, &mut stacks, &frame_table.frames);
    }
    let mut processes: Vec<Process> = interval.programs.iter().map(|program| process(program)).collect();
    let mut classes: FastMap<u32, WaitClass> = FastMap::default();
    let mut class_of = |stack: u32| {
        *classes
            .entry(stack)
            .or_insert_with(|| wait_class(&stacks[stack as usize], &frame_table.frames))
    };
    let samples = interval.samples.into_iter().map(|sample| Sample {
        kind: sample.kind,
        // Of a thread that ran it is a burst's period.
        value_ns: match sample.kind {
            SampleKind::Cpu => sample.value_ns,
            _ => times(sample.value_ns, wait_factor),
        },
        wait_ns: sample.wait_ns,
        wait_class: matches!(sample.kind, SampleKind::OffCpu(_)).then(|| class_of(sample.stack)),
        ts_unix_ns: span.unix_ns(sample.time_ns),
        cpu: sample.cpu,
        tid: sample.tid,
        thread: sample.thread,
        process: sample.program,
        stack: sample.stack,
        woken: sample.woken.map(|woken| Woken {
            process: woken.program,
            tid: woken.tid,
            thread: woken.thread,
        }),
    });
    let mut samples: Vec<Sample> = samples.collect();
    roots.complete(&mut samples, &processes, &mut stacks, &ends, &mut frame_table.frames);
    wakers::settle(&mut samples, &mut stacks, &mut processes, &frame_table.frames);
    Batch {
        from_unix_ns: span.begin_unix_ns(),
        until_unix_ns: span.until_unix_ns(),
        period_ns,
        frequency_hz,
        report,
        frames: frame_table.frames,
        stacks,
        processes,
        samples,
        run_queues,
    }
}

/// Exact where the factor is 1.
fn times(value: u64, factor: f64) -> u64 {
    (value as f64 * factor).round() as u64
}

fn wait_class(stack: &Stack, frames: &[Frame]) -> WaitClass {
    let frames = stack.frames.iter().map(|index| &frames[*index as usize]);
    let kernel = frames.take_while(|frame| frame.kind == FrameKind::Kernel);
    WaitClass::of(kernel.filter_map(|frame| frame.function.as_deref()))
}

fn process(program: &Program) -> Process {
    Process {
        tgid: program.key.tgid,
        start_ticks: program.key.start_ticks,
        exec_count: program.key.exec_id,
        executable: Arc::clone(&program.executable),
        executable_path: Arc::clone(&program.executable_path),
        command_line: Arc::clone(&program.command_line),
        build_id: program.build_id.clone(),
        metadata: Arc::clone(&program.metadata),
    }
}
