//! The JSON answer of waits for a CPU.

use crate::query::{QueueLine, RunQueues};
use crate::render::error::RenderError;
use crate::render::json::{NS_PER_MS, write};
use crate::render::writer::Writer;
use crate::run_queue::WaitLengths;
use serde::Serialize;

const MEDIAN: f64 = 0.5;
const MOST_OF_THEM: f64 = 0.99;

#[derive(Serialize)]
struct Answer<'a> {
    query: String,
    from: i64,
    until: i64,
    step_ms: i64,
    by: &'a str,
    times: Vec<i64>,
    batches: u64,
    all: OfLine<'a>,
    lines: Vec<OfLine<'a>>,
    others: usize,
}

#[derive(Serialize)]
struct OfLine<'a> {
    value: &'a str,
    waits: u64,
    total_ns: u64,
    p50_ns: Option<u64>,
    p99_ns: Option<u64>,
    longest_ns: u64,
    ticks: Option<u64>,
    idle_ticks: Option<u64>,
    steps: OfSteps,
}

#[derive(Serialize)]
struct OfSteps {
    waits: Vec<u64>,
    total_ns: Vec<u64>,
    p50_ns: Vec<Option<u64>>,
    p99_ns: Vec<Option<u64>>,
    longest_ns: Vec<u64>,
}

impl<'a> OfLine<'a> {
    fn of(line: &'a QueueLine) -> Self {
        let steps = &line.steps;
        // Agents before they told, and programs, have none.
        let of_ticks = |ticks: u64| (line.whole.ticks > 0).then_some(ticks);
        Self {
            value: &line.value,
            waits: line.whole.count(),
            total_ns: line.whole.total_ns,
            p50_ns: line.whole.percentile_ns(MEDIAN),
            p99_ns: line.whole.percentile_ns(MOST_OF_THEM),
            longest_ns: line.whole.longest_ns,
            ticks: of_ticks(line.whole.ticks),
            idle_ticks: of_ticks(line.whole.idle_ticks),
            steps: OfSteps {
                waits: steps.iter().map(WaitLengths::count).collect(),
                total_ns: steps.iter().map(|step| step.total_ns).collect(),
                p50_ns: steps.iter().map(|step| step.percentile_ns(MEDIAN)).collect(),
                p99_ns: steps.iter().map(|step| step.percentile_ns(MOST_OF_THEM)).collect(),
                longest_ns: steps.iter().map(|step| step.longest_ns).collect(),
            },
        }
    }
}

/// Waits for a CPU over time, by a label.
pub fn run_queues(queues: &RunQueues, to: &mut Writer) -> Result<(), RenderError> {
    let steps = queues.steps;
    let answer = Answer {
        query: queues.selector.to_string(),
        from: steps.window.from_ms(),
        until: steps.window.until_ms(),
        step_ms: steps.step_ns / NS_PER_MS,
        by: queues.by.name(),
        times: (0..steps.count)
            .map(|step| steps.bounds(step).0.div_euclid(NS_PER_MS))
            .collect(),
        batches: queues.batches,
        all: OfLine::of(&queues.all),
        lines: queues.lines.iter().map(OfLine::of).collect(),
        others: queues.others,
    };
    write(to, &answer)
}
