//! The naming thread: intervals in, batches out.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;

use super::clock::Span;
use super::gather::Interval;
use super::intervals::Behind;
use super::locate::LocatedStack;
use super::roots::{End, Roots, is_start, mark};
use crate::frames::{CodeLocation, Frame, Frames, SourceId, Stack};
use crate::hash::FastMap;
use crate::kernel::WalkEnd;
use crate::process::{Program, Source};
use crate::ship::{Batch, Process, Report, Sample};
use crate::symbolize::{Frugality, Namer, NamerStats};

/// An interval that has ended, with the account of it.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) interval: Interval,
    pub(super) frugality: Frugality,
    pub(super) span: Span,
    pub(super) frequency_hz: u32,
    pub(super) period_ns: u64,
    pub(super) report: Report,
}

/// What this thread is given.
#[derive(Debug)]
pub(super) enum Work {
    Interval(Box<Finished>),
    /// Files were given up: what is held beside them is to be closed, too.
    GivenUp,
}

/// However naming ends, nobody waits for it any more: who sends then is told.
struct Ending<'a>(&'a Behind);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.waiting.store(0, Ordering::Release);
        self.0.unnamed.store(0, Ordering::Release);
    }
}

/// Names interval after interval until the sender is gone, to whom `behind` says how far it is. Returns batches, samples in them, and what
/// the namer did.
pub(super) fn run(
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
        frugality,
        span,
        frequency_hz,
        period_ns,
        mut report,
    } = finished;
    // Each place once, and which of them each stack has, one after the other.
    let mut place_index: FastMap<CodeLocation, u32> = FastMap::default();
    let mut places: Vec<CodeLocation> = Vec::new();
    let mut stack_places: Vec<u32> = Vec::new();
    let mut sources: FastMap<SourceId, Source> = FastMap::default();
    for stack in &interval.stacks {
        stack_places.extend(stack.kernel.iter().chain(&stack.user).map(|place| {
            *place_index.entry(*place).or_insert_with(|| {
                places.push(*place);
                (places.len() - 1) as u32
            })
        }));
        for (id, source) in &stack.sources {
            sources.entry(*id).or_insert_with(|| source.clone());
        }
    }
    drop(place_index);
    namer.set_frugality(frugality);
    namer.begin(span.begin_mono_ns());
    let named = namer.name(&places, &sources, crate::sys::monotonic_ns());

    let NamerStats {
        symbols_left_out,
        lines_left_out,
        perf_maps_searched,
        perf_maps_left_out,
        places_given_up,
        ..
    } = namer.stats();
    let left_out = [
        ("symbols_left_out", symbols_left_out),
        ("lines_left_out", lines_left_out),
        ("perf_maps_searched", perf_maps_searched),
        ("perf_maps_left_out", perf_maps_left_out),
        ("places_given_up", places_given_up),
    ];
    report
        .limits
        .extend(left_out.into_iter().filter(|(_, count)| *count > 0));

    let mut dictionary = Dictionary::of(&named);
    drop(named);
    let mut rest = stack_places.as_slice();
    let stacks = interval.stacks.iter().map(|stack| {
        let (places, further) = rest.split_at(stack.kernel.len() + stack.user.len());
        rest = further;
        dictionary.stack(stack, places)
    });
    let (mut stacks, ends): (Vec<Stack>, Vec<End>) = stacks.unzip();
    let processes: Vec<Process> = interval.programs.iter().map(|program| process(program)).collect();
    let samples = interval.samples.into_iter().map(|sample| Sample {
        ts_unix_ns: span.unix_ns(sample.time_ns),
        cpu: sample.cpu,
        tid: sample.tid,
        thread: sample.thread,
        process: sample.program,
        stack: sample.stack,
    });
    let mut samples: Vec<Sample> = samples.collect();
    roots.complete(&mut samples, &processes, &mut stacks, &ends, &mut dictionary.frames);
    Batch {
        from_unix_ns: span.begin_unix_ns(),
        until_unix_ns: span.until_unix_ns(),
        period_ns,
        frequency_hz,
        report,
        frames: dictionary.frames,
        stacks,
        processes,
        samples,
    }
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

/// The frames of one batch, each once.
struct Dictionary {
    frames: Vec<Frame>,
    /// Of all places one after the other, indices of their frames.
    of_places: Vec<u32>,
    /// Where in that each place ends, and the next one begins.
    ends: Vec<u32>,
    /// Frames that stand for as many that were left out.
    gaps: FastMap<u32, u32>,
}

impl Dictionary {
    /// The namer gives equal frames as one allocation.
    fn of(places: &[Frames]) -> Self {
        let mut index: FastMap<*const Frame, u32> = FastMap::default();
        let (mut frames, mut of_places) = (Vec::new(), Vec::new());
        let mut ends = Vec::with_capacity(places.len());
        for place in places {
            of_places.extend(place.iter().map(|frame| {
                *index.entry(Arc::as_ptr(frame)).or_insert_with(|| {
                    frames.push((**frame).clone());
                    (frames.len() - 1) as u32
                })
            }));
            ends.push(of_places.len() as u32);
        }
        Self {
            frames,
            of_places,
            ends,
            gaps: FastMap::default(),
        }
    }

    /// A stack by the numbers of its places, and how it ends.
    fn stack(&mut self, stack: &LocatedStack, places: &[u32]) -> (Stack, End) {
        let mut frames = Vec::with_capacity(places.len() + 1);
        let kernel = stack.kernel.len();
        let marks = [
            stack.kernel_cut.then_some((kernel, 0)),
            stack.gap.map(|gap| (kernel + gap.at, gap.frames)),
        ];
        let mut rest = places;
        for (at, count) in marks.into_iter().flatten() {
            let (before, behind) = rest.split_at(at - (places.len() - rest.len()));
            self.extend(&mut frames, before);
            frames.push(self.gap(count));
            rest = behind;
        }
        self.extend(&mut frames, rest);
        let end = match stack.walk_end {
            WalkEnd::None => End::None,
            WalkEnd::Root => End::Root,
            WalkEnd::Cut => End::Cut { is_marked: true },
            WalkEnd::Broken if self.ends_at_a_root(&frames) => End::Root,
            WalkEnd::Broken => End::Cut { is_marked: false },
        };
        let stack = Stack {
            truncated: stack.kernel_cut || stack.gap.is_some() || matches!(end, End::Cut { .. }),
            frames,
        };
        (stack, end)
    }

    fn extend(&self, frames: &mut Vec<u32>, places: &[u32]) {
        for place in places {
            let place = *place as usize;
            let begin = place.checked_sub(1).map_or(0, |before| self.ends[before]);
            frames.extend_from_slice(&self.of_places[begin as usize..self.ends[place] as usize]);
        }
    }

    /// The frame that stands for at least so many that were left out; 0 where nobody knows how many.
    fn gap(&mut self, count: u32) -> u32 {
        *self.gaps.entry(count).or_insert_with(|| {
            let count = if count == 0 { String::new() } else { format!("{count} ") };
            self.frames.push(mark(format!("[… {count}frames]")));
            (self.frames.len() - 1) as u32
        })
    }

    /// A C library without frame pointers breaks the chain just above `main`: what called it is then the last frame, and
    /// above that there is nothing that anybody misses.
    fn ends_at_a_root(&self, frames: &[u32]) -> bool {
        let function = |from_end: usize| {
            let index = frames.len().checked_sub(from_end)?;
            self.frames[frames[index] as usize].function.as_deref()
        };
        function(1).is_some_and(is_start) || function(2) == Some("main")
    }
}
