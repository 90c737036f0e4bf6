//! What was observed: the intervals that agents covered, from `batches`.
//!
//! Rates are CPU seconds per observed second, summed over nodes. Observed is what at least one agent covered: a node
//! counts with what was seen of it, so that the mean of a chart's steps is the rate of its window, and nodes that
//! come and go are not taken for ever present. (The mean of the nodes' covered times was wrong there: two nodes one
//! after the other, each with two busy cores, came out as four, and a node whose agent was away raised the rates of
//! all others.) Where the newest batches of some agents are still on their way, observed is the part of that time
//! that has come: otherwise every chart would fall towards the present. Where samples of a sender that keeps no
//! account are among the selected, all of the window is taken as observed, whatever others tell of themselves: who
//! sends without an account was there all the time. What is idle, and how many CPUs there are, is still said of the
//! accounts' own time. A window with neither is not observed.

use crate::clock::DAY_NS;
use crate::label::Label;
use crate::query::ask::question::Question;
use crate::query::ask::selector::Matcher;
use crate::query::ask::time::Window;
use crate::query::count::intervals::{Interval, Intervals, LEAST_GAP_NS, Lost};
use crate::query::count::senders::Senders;
use crate::query::count::ticks::Ticks;
use crate::query::limits::error::QueryError;
use crate::query::limits::reservation::Reservation;
use crate::query::plan::days::Days;
use crate::query::plan::small_tables::collect_rows;
use crate::query::plan::steps::Steps;
use crate::store::{Snapshot, Table};
use arrow::array::{Array, AsArray, PrimitiveArray};
use arrow::datatypes::Int64Type;
use datafusion::prelude::{Expr, col, lit};
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// Batches that ended so long before the window still tell what had been lost before it began.
pub(crate) const LOOK_BACK_NS: i64 = 600 * 1_000_000_000;
/// A node whose newest batch ended at most so long before the newest of all nodes is late, and not gone: six usual
/// intervals.
pub(crate) const LATE_NS: i64 = 30 * 1_000_000_000;
/// Accounts that are read together, about: of a week of a hundred nodes there are six times as many.
const ROWS_AT_ONCE: u64 = 2_000_000;
/// Most gaps that are listed.
const MAX_GAPS: usize = 1_000;

/// What batches say again and again, each once: an hour of a hundred nodes are tens of thousands of rows.
#[derive(Default)]
struct Said {
    texts: HashSet<Arc<str>, foldhash::fast::RandomState>,
    /// The last row's losses, as text and as they are read.
    lost: (String, Lost),
}

impl Said {
    fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return known.clone();
        }
        let new: Arc<str> = text.into();
        self.texts.insert(new.clone());
        new
    }

    fn lost(&mut self, json: &str) -> Lost {
        if self.lost.0 != json {
            self.lost = (
                json.to_owned(),
                Arc::new(serde_json::from_str(json).unwrap_or_default()),
            );
        }
        self.lost.1.clone()
    }
}

/// The order of names, which mostly are the very same.
fn by_name(a: &Arc<str>, b: &Arc<str>) -> Ordering {
    if Arc::ptr_eq(a, b) { Ordering::Equal } else { a.cmp(b) }
}

/// What was observed in a window.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedTime {
    /// Seconds of each step that a sender of selected samples was there, as far as is known: rates are by it.
    pub observed_s: Vec<f64>,
    /// Of each step those that at least one node covered by its account, without what is still on its way.
    pub accounted_s: Vec<f64>,
    /// Covered seconds of each step, a mean over the nodes.
    pub by_node_s: Vec<f64>,
    /// CPU seconds that were observed in each step, over all nodes.
    pub cpu_s: Vec<f64>,
    /// Idle CPU seconds in each step, over all nodes.
    pub idle_s: Vec<f64>,
    /// CPU seconds of which no tick tells what ran, over all nodes.
    pub missed_s: f64,
    /// Seconds in which waits were observed, over all nodes whose agents say so.
    pub waits_s: f64,
    /// Of how many seconds that is.
    pub waits_of_s: f64,
    /// Nodes that were covered at all; 0 when nobody accounts for the window.
    pub nodes: usize,
    /// Start and end of each time that no node covered, nanoseconds since the Unix epoch.
    pub gaps: Vec<(i64, i64)>,
    /// Samples lost in the window, by cause; also those of the time that is left out.
    pub lost: BTreeMap<String, i64>,
    /// Time of the window that is left out: not observed, and no gap.
    pub except: Option<Window>,
    /// Samples of senders without an account are among the selected.
    pub other_senders: bool,
    /// The sum of the values that came without time stamps and were spread over a duration.
    pub spread_value: i64,
}

impl ObservedTime {
    /// Observed seconds of the window.
    pub fn total_s(&self) -> f64 {
        self.observed_s.iter().sum()
    }

    /// Share of the observed time in which a node was covered, a mean over the nodes; `None` where nobody accounts
    /// for it.
    pub fn node_share(&self) -> Option<f64> {
        let observed: f64 = self.accounted_s.iter().sum();
        let by_node: f64 = self.by_node_s.iter().sum();
        (self.nodes > 0 && observed > 0.0).then(|| (by_node / observed).min(1.0))
    }

    /// What to think of so many samples that no agent accounts for: whoever sent them was there all the time.
    #[must_use]
    pub fn with_samples(mut self, samples: u64, steps: Steps) -> ObservedTime {
        if self.nodes == 0 && samples > 0 {
            self.observe_all(steps);
        }
        self
    }

    /// What to think of samples whose senders do not tell everything.
    #[must_use]
    pub(crate) fn with_senders(mut self, senders: Senders, steps: Steps) -> ObservedTime {
        self.spread_value = senders.spread;
        if senders.unaccounted {
            self.other_senders = true;
            self.observe_all(steps);
        }
        self
    }

    /// Somebody was there all the time.
    fn observe_all(&mut self, steps: Steps) {
        for (step, observed) in self.observed_s.iter_mut().enumerate() {
            let kept = parts(self.except, steps.bounds(step));
            *observed = kept.into_iter().map(|(start, end)| (end - start) as f64 / 1e9).sum();
        }
        if self.nodes == 0 {
            self.by_node_s.clone_from(&self.observed_s);
        }
        self.gaps.clear();
    }

    /// What each step is expected to have of the samples, without any change.
    pub(crate) fn expected_s(&self) -> &[f64] {
        if self.other_senders {
            &self.observed_s
        } else {
            &self.by_node_s
        }
    }

    /// CPU seconds that were observed, over all nodes.
    pub fn total_cpu_s(&self) -> f64 {
        self.cpu_s.iter().sum()
    }

    /// Share of the observed CPU time that was idle.
    pub fn idle_share(&self) -> Option<f64> {
        let cpu = self.total_cpu_s();
        (cpu > 0.0).then(|| (self.idle_s.iter().sum::<f64>() / cpu).min(1.0))
    }

    /// Share of the observed CPU time of which no tick came.
    pub fn missed_share(&self) -> Option<f64> {
        let cpu = self.total_cpu_s();
        (cpu > 0.0).then(|| (self.missed_s / cpu).clamp(0.0, 1.0))
    }

    /// Share of the time in which waits were observed; `None` where no agent says.
    pub fn waits_share(&self) -> Option<f64> {
        (self.waits_of_s > 0.0).then(|| (self.waits_s / self.waits_of_s).clamp(0.0, 1.0))
    }
}

/// What accounts say of several questions' windows. They are read once: both sides of a difference often have the same
/// files.
pub(crate) async fn observe_each<const N: usize>(
    snapshot: &Snapshot,
    questions: [(&Question, Steps); N],
) -> Result<[ObservedTime; N], QueryError> {
    let mut watched = questions.map(|(question, steps)| Watched::new(snapshot, question, steps));
    let days = questions.map(|(question, ..)| Days::of(question.window).widened(DAY_NS));
    let any = |filters: Vec<Expr>| filters.into_iter().reduce(Expr::or).unwrap_or(lit(false));
    let of_windows = any(watched.iter().map(Watched::filter).collect());
    let of_days = any(days.iter().map(Days::filter).collect());
    let mut said = Said::default();
    let has = |day: &str| days.iter().any(|days| days.has(day));
    for range in snapshot.days_of_rows(Table::Batches, ROWS_AT_ONCE, has) {
        let of_range = col("day").gt_eq(lit(range.start)).and(col("day").lt(lit(range.end)));
        let filter = of_days.clone().and(of_range).and(of_windows.clone());
        read_intervals(snapshot, filter, &mut said, &mut watched).await?;
    }
    let mut exposures = Vec::with_capacity(N);
    for (watched, (question, steps)) in watched.into_iter().zip(questions) {
        exposures.push(summarize(watched.intervals.finish()?, steps, question.except));
    }
    exposures
        .try_into()
        .map_err(|_| QueryError::internal("sum up what was observed", "one is missing"))
}

/// What is wanted of the accounts.
struct Watched<'q> {
    /// Conditions on the node.
    nodes: Vec<&'q Matcher>,
    /// Batches that end after this and begin before that.
    after_ns: i64,
    before_ns: i64,
    intervals: Intervals,
}

impl<'q> Watched<'q> {
    fn new(snapshot: &Snapshot, question: &'q Question, steps: Steps) -> Self {
        let Window { from_ns, until_ns } = question.window;
        let matchers = question.selector.matchers().iter();
        Watched {
            nodes: matchers.filter(|matcher| matcher.label() == Label::Node).collect(),
            after_ns: from_ns.saturating_sub(LOOK_BACK_NS),
            before_ns: until_ns.saturating_add(LATE_NS),
            intervals: Intervals::new(
                steps,
                question.except,
                Reservation::new(snapshot, "what agents observed"),
            ),
        }
    }

    fn filter(&self) -> Expr {
        let (until, from) = (col("until_ns"), col("from_ns"));
        until.gt(lit(self.after_ns)).and(from.lt(lit(self.before_ns)))
    }

    fn wants(&self, node: &str, from_ns: i64, until_ns: i64) -> bool {
        until_ns > self.after_ns && from_ns < self.before_ns && self.nodes.iter().all(|matcher| matcher.accepts(node))
    }
}

/// Reads the accounts of batches.
async fn read_intervals(
    snapshot: &Snapshot,
    filter: Expr,
    said: &mut Said,
    watched: &mut [Watched<'_>],
) -> Result<(), QueryError> {
    let columns = [
        "node",
        "instance",
        "number",
        "from_ns",
        "until_ns",
        "period_ns",
        "cpus",
        "ticks",
        "idle_ticks",
        "lost",
        "missed_ticks",
        "waits_observed_ns",
    ];
    collect_rows(snapshot, "batches", filter, &columns, |batch| {
        let text = |column: usize, row: usize| batch.column(column).as_string::<i32>().value(row);
        let number = |column: usize| batch.column(column).as_primitive::<Int64Type>();
        for row in 0..batch.num_rows() {
            let (from_ns, until_ns) = (number(3).value(row), number(4).value(row));
            let mut of = watched.iter_mut();
            let Some(first) = of.find(|watched| watched.wants(text(0, row), from_ns, until_ns)) else {
                continue;
            };
            let known = |column: &PrimitiveArray<Int64Type>| (!column.is_null(row)).then(|| column.value(row));
            let cpus = known(number(6)).unwrap_or(0).clamp(0, 1 << 20);
            let (ticks, idle, missed) = (known(number(7)), known(number(8)), known(number(10)));
            let period_ns = number(5).value(row);
            let (number_of, lost) = (number(2).value(row), said.lost(text(9, row)));
            let interval = Interval {
                node: said.text(text(0, row)),
                instance: said.text(text(1, row)),
                numbers: (number_of, number_of),
                from_ns,
                until_ns,
                cpus,
                ticks: ticks.zip(idle).and_then(|(ticks, idle)| {
                    let length_ns = until_ns.saturating_sub(from_ns);
                    let ticks = Ticks::new(ticks, idle, missed, cpus, length_ns, period_ns)?;
                    Some(ticks.of(length_ns))
                }),
                waits_ns: known(number(11)).map(|ns| ns.min(until_ns.saturating_sub(from_ns)).max(0)),
                lost: (lost.clone(), lost),
            };
            for other in of.filter(|watched| watched.wants(text(0, row), from_ns, until_ns)) {
                other.intervals.add(interval.clone());
            }
            first.intervals.add(interval);
        }
    })
    .await
}

/// What is left of a span without the time that is left out.
fn parts(except: Option<Window>, span: (i64, i64)) -> Vec<(i64, i64)> {
    except.map_or_else(|| vec![span], |except| except.around(span).collect())
}

/// Calls `add` with each step that a span of the window lies in, and the seconds of it there that count.
fn each_step(steps: Steps, except: Option<Window>, (from, until): (i64, i64), mut add: impl FnMut(usize, f64)) {
    if from >= until {
        return;
    }
    for step in steps.index(from)..=steps.index(until - 1) {
        let (start, end) = steps.bounds(step);
        let kept = parts(except, (from.max(start), until.min(end)));
        add(
            step,
            kept.into_iter().map(|(from, until)| (until - from) as f64 / 1e9).sum(),
        );
    }
}

/// Pure part of [`observe`]. The intervals are of the window and of some time around it.
pub(crate) fn summarize(mut intervals: Vec<Interval>, steps: Steps, except: Option<Window>) -> ObservedTime {
    let window = steps.window;
    let lost = lost_within(&intervals, window);
    let awaited = awaited(&intervals, window);
    intervals.retain(|interval| interval.until_ns > window.from_ns && interval.from_ns < window.until_ns);
    let times = |interval: &Interval| (interval.from_ns, interval.until_ns);
    intervals.sort_by(|a, b| by_name(&a.node, &b.node).then_with(|| times(a).cmp(&times(b))));
    let mut exposure = ObservedTime {
        observed_s: vec![0.0; steps.count],
        accounted_s: Vec::new(),
        by_node_s: vec![0.0; steps.count],
        cpu_s: vec![0.0; steps.count],
        idle_s: vec![0.0; steps.count],
        missed_s: 0.0,
        waits_s: 0.0,
        waits_of_s: 0.0,
        nodes: 0,
        gaps: Vec::new(),
        lost,
        except,
        other_senders: false,
        spread_value: 0,
    };
    let mut node: Option<(&Arc<str>, i64)> = None;
    let mut covered: Vec<(i64, i64)> = Vec::new();
    for interval in &intervals {
        // Two instances of one node may overlap at a restart: no time is counted twice.
        let behind = match node {
            Some((name, until)) if by_name(name, &interval.node).is_eq() => until,
            _ => {
                exposure.nodes += 1;
                window.from_ns
            }
        };
        let from = interval.from_ns.max(behind);
        let until = interval.until_ns.min(window.until_ns);
        node = Some((&interval.node, behind.max(until)));
        if from >= until {
            continue;
        }
        covered.push((from, until));
        each_step(steps, except, (from, until), |step, seconds| {
            exposure.by_node_s[step] += seconds;
            let cpu_s = seconds * interval.cpus as f64;
            exposure.cpu_s[step] += cpu_s;
            if let Some(ticks) = interval.ticks {
                let Ticks { idle, missed } = ticks.shares(interval.until_ns.saturating_sub(interval.from_ns));
                exposure.idle_s[step] += cpu_s * idle;
                exposure.missed_s += cpu_s * missed;
            }
            if let Some(waits_ns) = interval.waits_ns {
                let length_ns = interval.until_ns.saturating_sub(interval.from_ns);
                exposure.waits_s += seconds * waits_ns as f64 / length_ns as f64;
                exposure.waits_of_s += seconds;
            }
        });
    }
    let mut awaited_s = vec![0.0; steps.count];
    for span in awaited {
        each_step(steps, except, span, |step, seconds| awaited_s[step] += seconds);
    }
    for span in joined(covered.clone()) {
        each_step(steps, except, span, |step, seconds| {
            exposure.observed_s[step] += seconds
        });
    }
    for (step, observed) in exposure.observed_s.iter_mut().enumerate() {
        let seen = exposure.by_node_s[step];
        if awaited_s[step] > 0.0 && seen > 0.0 {
            *observed *= seen / (seen + awaited_s[step]);
        }
    }
    exposure.accounted_s.clone_from(&exposure.observed_s);
    covered.extend(except.map(|except| (except.from_ns, except.until_ns)));
    exposure.gaps = gaps(covered, window);
    for seconds in &mut exposure.by_node_s {
        *seconds /= exposure.nodes.max(1) as f64;
    }
    exposure
}

/// For each node that is late, the time of the window that is still on its way.
fn awaited(intervals: &[Interval], window: Window) -> Vec<(i64, i64)> {
    let mut ends: BTreeMap<&str, i64> = BTreeMap::new();
    for interval in intervals {
        let end = ends.entry(&interval.node).or_insert(i64::MIN);
        *end = (*end).max(interval.until_ns);
    }
    let Some(newest) = ends.values().copied().max() else {
        return Vec::new();
    };
    let late = |end: &&i64| **end >= newest - LATE_NS;
    let span = |end: &i64| ((*end).max(window.from_ns), newest.min(window.until_ns));
    ends.values().filter(late).map(span).collect()
}

/// The same time as spans that neither touch nor overlap, in order.
fn joined(mut spans: Vec<(i64, i64)>) -> Vec<(i64, i64)> {
    spans.sort_unstable();
    let mut joined: Vec<(i64, i64)> = Vec::new();
    for (from, until) in spans {
        match joined.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(until),
            _ => joined.push((from, until)),
        }
    }
    joined
}

/// What no interval covers.
fn gaps(covered: Vec<(i64, i64)>, window: Window) -> Vec<(i64, i64)> {
    let mut gaps = Vec::new();
    let mut behind = window.from_ns;
    for (from, until) in joined(covered).into_iter().chain([(window.until_ns, window.until_ns)]) {
        if from - behind >= LEAST_GAP_NS && gaps.len() < MAX_GAPS {
            gaps.push((behind, from));
        }
        behind = behind.max(until);
    }
    gaps
}

/// Causes of loss that an answer names, about; what is more is `other`.
const MOST_CAUSES: usize = 256;

/// Counters at the end of the window minus counters at its start, summed over instances. An instance whose first
/// batch lies in the window started from zero; of one that is not known from its start, losses count from its first
/// known batch.
fn lost_within(intervals: &[Interval], window: Window) -> BTreeMap<String, i64> {
    let mut instances: HashMap<&str, Vec<&Interval>, foldhash::fast::RandomState> = HashMap::default();
    for interval in intervals {
        instances.entry(&interval.instance).or_default().push(interval);
    }
    let mut lost = BTreeMap::new();
    for batches in instances.values_mut() {
        batches.sort_by_key(|batches| batches.numbers);
        let within = |batches: &&&Interval| batches.until_ns > window.from_ns && batches.from_ns < window.until_ns;
        let (Some(first), Some(last)) = (batches.iter().find(within), batches.iter().rfind(within)) else {
            continue;
        };
        let first_number = first.numbers.0;
        let before = batches
            .iter()
            .rfind(|batches| batches.numbers.1 < first_number && batches.until_ns <= window.from_ns);
        for (cause, count) in last.lost.1.iter() {
            let start = match before {
                Some(before) => before.lost.1.get(cause).copied().unwrap_or(0),
                None if first_number == 1 => 0,
                None => first.lost.0.get(cause).copied().unwrap_or(0),
            };
            // Of many instances each may have its own.
            let is_named = lost.len() < MOST_CAUSES || lost.contains_key(cause);
            let cause = if is_named { cause.as_str() } else { "other" };
            *lost.entry(cause.to_owned()).or_insert(0) += count.saturating_sub(start).max(0);
        }
    }
    lost
}

#[cfg(test)]
#[path = "observed_time_tests.rs"]
mod tests;
