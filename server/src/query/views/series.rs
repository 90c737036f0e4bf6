//! Cores over time by a label; of types that are no time, their unit by the second.

use crate::label::Label;
use crate::query::ask::question::Question;
use crate::query::ask::time::Window;
use crate::query::ask::unit::Unit;
use crate::query::count::group_counts::Group;
use crate::query::count::observed_time::ObservedTime;
use crate::query::limits::error::QueryError;
use crate::query::plan::steps::Steps;
use crate::query::views::by_label::{Charted, Extra, busier, charted};
use crate::query::views::engine::Engine;
use crate::query::views::matching::{FrameMatch, matching_stacks};
use crate::query::views::selected::senders::observe;
use crate::store::Snapshot;
use std::sync::Arc;

/// Steps that an answer has when the question names none.
const USUAL_STEPS: i64 = 200;
/// Most steps of an answer.
pub const MAX_STEPS: usize = 5_000;
const S: i64 = 1_000_000_000;
/// Steps that people read well, in seconds.
const ROUND_S: [i64; 16] = [
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 21_600, 86_400,
];

/// One line of the chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The label's value; empty for samples without one.
    pub value: Arc<str>,
    /// CPU seconds, or what is no time in its unit, per observed second in each step, summed over nodes; `None` where
    /// nobody covered the step.
    pub rates: Vec<Option<f64>>,
    /// Its samples, of the whole window.
    pub samples: u64,
    /// Nanoseconds, or the type's unit.
    pub total: i64,
}

/// The chart.
#[derive(Debug)]
pub struct Series {
    /// The question that was answered.
    pub question: Question,
    /// The label whose values the lines are.
    pub by: Label,
    /// The steps of each line.
    pub steps: Steps,
    /// The unit of the values.
    pub unit: Unit,
    /// Samples of senders that keep no account of what they observe are among these.
    pub other_senders: bool,
    /// Observed share of each step.
    pub covered: Vec<f64>,
    /// Covered share of each step, a mean over nodes.
    pub covered_by_node: Vec<f64>,
    /// Idle CPUs, summed over nodes.
    pub idle: Vec<Option<f64>>,
    /// Observed CPUs, summed over nodes.
    pub capacity: Vec<Option<f64>>,
    /// By CPU time, most first.
    pub lines: Vec<Line>,
    /// How many lines the limit cut off, and their sum.
    pub other: Option<(usize, Line)>,
}

/// The step that makes a chart of about 200 points, in nanoseconds.
pub fn usual_step(window: Window) -> i64 {
    let exact = window.length_ns() / USUAL_STEPS;
    ROUND_S
        .into_iter()
        .map(|s| s * S)
        .find(|step| *step >= exact)
        .unwrap_or_else(|| (exact / (86_400 * S) + 1) * 86_400 * S)
}

/// How a chart is drawn.
#[derive(Debug)]
pub struct Chart {
    /// The label whose values the lines are.
    pub by: Label,
    /// Into which the window is cut.
    pub steps: Steps,
    /// Most lines.
    pub limit: usize,
    /// Only samples whose stack has such a frame.
    pub matching: Option<FrameMatch>,
}

/// Answers with a line for each of the label's `limit` busiest values.
pub async fn series(
    engine: &Engine,
    snapshot: &Snapshot,
    question: Question,
    chart: Chart,
) -> Result<Series, QueryError> {
    let matched = match chart.matching {
        Some(wanted) => Some(matching_stacks(engine, snapshot, &question, wanted).await?),
        None => None,
    };
    let (by, steps) = (chart.by, chart.steps);
    let kind = engine.kind(snapshot, &question).await?;
    let extra = Extra {
        only: matched.as_ref().map(|matched| matched.stacks.clone()),
        quality: false,
    };
    let labels = [by];
    let (mut all, exposure) = tokio::try_join!(
        charted(engine, snapshot, &question, &labels, (steps, chart.limit), extra),
        observe(snapshot, &question, steps, kind.marked),
    )?;
    // What was watched does not depend on the function.
    let counted = all.swap_remove(0);
    let samples = matched.map_or(counted.whole.periods.samples, |matched| matched.samples);
    let exposure = exposure.with_samples(samples, steps);
    Ok(chart_of(
        question,
        (by, steps, chart.limit),
        counted,
        &exposure,
        kind.unit,
    ))
}

/// A line for each of the busiest groups, of what was observed with their samples.
pub(crate) fn chart_of(
    question: Question,
    (by, steps, limit): (Label, Steps, usize),
    counted: Charted,
    exposure: &ObservedTime,
    unit: Unit,
) -> Series {
    let (of_steps, not_apart) = counted.busiest.unwrap_or((counted.whole, 0));
    let (mut groups, others) = (of_steps.groups, of_steps.others);
    groups.sort_by(busier);
    let rest = groups.split_off(limit.min(groups.len()));
    let share = |seconds: &[f64]| -> Vec<f64> {
        let of_step = |(step, seconds): (usize, &f64)| {
            let (from, until) = steps.bounds(step);
            (seconds / ((until - from) as f64 / 1e9)).min(1.0)
        };
        seconds.iter().enumerate().map(of_step).collect()
    };
    // A tick more than fits is the phase of the timers.
    let idle_s: Vec<f64> = (exposure.idle_s.iter().zip(&exposure.cpu_s))
        .map(|(idle, cpu)| idle.min(*cpu))
        .collect();
    let per_second = |values: &[f64]| -> Vec<Option<f64>> {
        let rate = |(value, observed): (&f64, &f64)| (*observed > 0.0 && exposure.nodes > 0).then(|| value / observed);
        values.iter().zip(&exposure.accounted_s).map(rate).collect()
    };
    let rate_of = |name, group: &Group| line(name, group, exposure, &unit);
    let other = (!rest.is_empty() || others.is_some()).then(|| {
        let mut sum = others.unwrap_or_else(|| Group {
            steps_ns: vec![0; steps.count],
            ..Group::default()
        });
        for (_, group) in &rest {
            sum.samples += group.samples;
            sum.value_ns = sum.value_ns.saturating_add(group.value_ns);
            sum.steps_ns
                .iter_mut()
                .zip(&group.steps_ns)
                .for_each(|(s, v)| *s = s.saturating_add(*v));
        }
        (rest.len() + not_apart, rate_of("".into(), &sum))
    });
    Series {
        by,
        steps,
        other_senders: exposure.other_senders,
        covered: share(&exposure.observed_s),
        covered_by_node: share(&exposure.by_node_s),
        idle: per_second(&idle_s),
        capacity: per_second(&exposure.cpu_s),
        lines: groups.into_iter().map(|(name, group)| rate_of(name, &group)).collect(),
        other,
        question,
        unit,
    }
}

fn line(value: Arc<str>, group: &Group, exposure: &ObservedTime, unit: &Unit) -> Line {
    let one = if unit.is_time() { 1e9 } else { 1.0 };
    let rate = |(sum, observed): (&i64, &f64)| (*observed > 0.0).then(|| *sum as f64 / one / observed);
    Line {
        value,
        rates: group.steps_ns.iter().zip(&exposure.observed_s).map(rate).collect(),
        samples: group.samples,
        total: group.value_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_step_is_round_and_gives_about_two_hundred_points() {
        for (length_s, step_s) in [
            (60, 1),
            (200, 1),
            (3_600, 30),
            (86_400, 600),
            (7 * 86_400, 3_600),
            (400 * 86_400, 172_800 + 86_400),
        ] {
            let window = Window {
                from_ns: 0,
                until_ns: length_s * S,
            };
            assert!(usual_step(window) <= step_s * S, "{length_s}");
            let count = Steps::of(window, usual_step(window)).count;
            assert!(count <= 200 && (count >= 60 || length_s <= 60), "{length_s}: {count}");
        }
    }
}
