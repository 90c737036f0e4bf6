//! What was observed: the intervals that agents covered, from `batches`.
//!
//! Rates are CPU seconds per observed second, summed over nodes. Observed is what at least one agent covered: a node counts with what was
//! seen of it, so that the mean of a chart's steps is the rate of its window, and nodes that come and go are not taken for ever present.
//! (The mean of the nodes' covered times was wrong there: two nodes one after the other, each with two busy cores, came out as four, and a
//! node whose agent was away raised the rates of all others.) Where the newest batches of some agents are still on their way, observed is the
//! part of that time that has come: otherwise every chart would fall towards the present. A window with samples for which no agent accounts
//! (other senders do not) is taken as observed throughout; one with neither as not observed.

use super::account::Account;
use super::error::QueryError;
use super::intervals::{Interval, Intervals, LEAST_GAP_NS, Lost};
use super::select::{Days, Question, collect_rows};
use super::selector::{Label, Matcher};
use super::steps::Steps;
use super::ticks::Ticks;
use super::time::Window;
use crate::store::{Snapshot, Table};
use arrow::array::{Array, AsArray, PrimitiveArray};
use arrow::datatypes::Int64Type;
use datafusion::prelude::{Expr, col, lit};
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// Batches that ended so long before the window still tell what had been lost before it began.
const LOOK_BACK_NS: i64 = 600 * 1_000_000_000;
/// A node whose newest batch ended at most so long before the newest of all nodes is late, and not gone: six usual intervals.
const LATE_NS: i64 = 30 * 1_000_000_000;
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
pub struct Exposure {
    /// Seconds of each step that at least one node covered, without what is still on its way.
    pub observed_s: Vec<f64>,
    /// Covered seconds of each step, a mean over the nodes.
    pub by_node_s: Vec<f64>,
    /// CPU seconds that were observed in each step, over all nodes.
    pub cpu_s: Vec<f64>,
    /// Idle CPU seconds in each step, over all nodes.
    pub idle_s: Vec<f64>,
    /// CPU seconds of which no tick tells what ran, over all nodes.
    pub missed_s: f64,
    /// Nodes that were covered at all; 0 when nobody accounts for the window.
    pub nodes: usize,
    /// Start and end of each time that no node covered, nanoseconds since the Unix epoch.
    pub gaps: Vec<(i64, i64)>,
    /// Samples lost in the window, by cause; also those of the time that is left out.
    pub lost: BTreeMap<String, i64>,
    /// Time of the window that is left out: not observed, and no gap.
    pub except: Option<Window>,
}

impl Exposure {
    /// Observed seconds of the window.
    pub fn total_s(&self) -> f64 {
        self.observed_s.iter().sum()
    }

    /// Share of the observed time in which a node was covered, a mean over the nodes; `None` where nobody accounts for it.
    pub fn node_share(&self) -> Option<f64> {
        let observed = self.total_s();
        let by_node: f64 = self.by_node_s.iter().sum();
        (self.nodes > 0 && observed > 0.0).then(|| (by_node / observed).min(1.0))
    }

    /// What to think of so many samples that no agent accounts for: whoever sent them was there all the time.
    #[must_use]
    pub fn with_samples(mut self, samples: u64, steps: Steps) -> Exposure {
        if self.nodes == 0 && samples > 0 {
            for (step, observed) in self.observed_s.iter_mut().enumerate() {
                let kept = parts(self.except, steps.bounds(step));
                *observed = kept.into_iter().map(|(start, end)| (end - start) as f64 / 1e9).sum();
            }
            self.by_node_s.clone_from(&self.observed_s);
            self.gaps.clear();
        }
        self
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
}

/// Reads what the selected nodes' agents covered.
pub(super) async fn observe(snapshot: &Snapshot, question: &Question, steps: Steps) -> Result<Exposure, QueryError> {
    let [exposure] = observe_each(snapshot, [(question, steps)]).await?;
    Ok(exposure)
}

/// The same of several questions, whose accounts are read once: both sides of a difference often have the same files.
pub(super) async fn observe_each<const N: usize>(
    snapshot: &Snapshot,
    questions: [(&Question, Steps); N],
) -> Result<[Exposure; N], QueryError> {
    let mut watched = questions.map(|(question, steps)| Watched::new(snapshot, question, steps));
    let days = questions.map(|(question, _)| Days::of(question.window).widened(86_400_000_000_000));
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
            intervals: Intervals::new(steps, question.except, Account::new(snapshot, "what agents observed")),
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
                    Ticks::new(ticks, idle, missed, cpus, until_ns.saturating_sub(from_ns), period_ns)
                }),
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
pub(super) fn summarize(mut intervals: Vec<Interval>, steps: Steps, except: Option<Window>) -> Exposure {
    let window = steps.window;
    let lost = lost_within(&intervals, window);
    let awaited = awaited(&intervals, window);
    intervals.retain(|interval| interval.until_ns > window.from_ns && interval.from_ns < window.until_ns);
    let times = |interval: &Interval| (interval.from_ns, interval.until_ns);
    intervals.sort_by(|a, b| by_name(&a.node, &b.node).then_with(|| times(a).cmp(&times(b))));
    let mut exposure = Exposure {
        observed_s: vec![0.0; steps.count],
        by_node_s: vec![0.0; steps.count],
        cpu_s: vec![0.0; steps.count],
        idle_s: vec![0.0; steps.count],
        missed_s: 0.0,
        nodes: 0,
        gaps: Vec::new(),
        lost,
        except,
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
            if let Some(Ticks { idle, missed }) = interval.ticks {
                exposure.idle_s[step] += cpu_s * idle;
                exposure.missed_s += cpu_s * missed;
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

/// Counters at the end of the window minus counters at its start, summed over instances. An instance whose first batch lies in
/// the window started from zero; of one that is not known from its start, losses count from its first known batch.
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
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    fn interval(node: &str, number: i64, from_s: i64, until_s: i64, lost: i64) -> Interval {
        let lost = Arc::new(BTreeMap::from([("ring_full".to_owned(), lost)]));
        Interval {
            node: node.into(),
            instance: format!("i-{node}").into(),
            numbers: (number, number),
            from_ns: from_s * S,
            until_ns: until_s * S,
            cpus: 2,
            ticks: Some(Ticks {
                idle: 0.25,
                missed: 0.5,
            }),
            lost: (lost.clone(), lost),
        }
    }

    fn steps(from_s: i64, until_s: i64, step_s: i64) -> Steps {
        Steps::of(
            Window {
                from_ns: from_s * S,
                until_ns: until_s * S,
            },
            step_s * S,
        )
    }

    #[test]
    fn coverage_is_cut_to_the_window_and_observed_where_any_node_was_covered() {
        let intervals = vec![
            interval("a", 1, 0, 10, 0),
            interval("a", 2, 10, 20, 0),
            interval("b", 1, 15, 60, 0),
        ];
        let exposure = summarize(intervals, steps(5, 25, 10), None);
        assert_eq!(exposure.nodes, 2);
        // a covers 5 to 20, b 15 to 25: of the steps 5-15 and 15-25.
        assert_eq!(exposure.observed_s, [10.0, 10.0]);
        assert_eq!(exposure.by_node_s, [5.0, 7.5]);
        assert_eq!(exposure.node_share(), Some(0.625));
        assert_eq!(exposure.cpu_s, [20.0, 30.0]);
        assert_eq!(
            (exposure.idle_share(), exposure.missed_share()),
            (Some(0.25), Some(0.5))
        );
        assert!(exposure.gaps.is_empty());
    }

    /// What a chart of a long range says of a window, and what the window's own answer says.
    #[test]
    fn a_chart_and_its_windows_observe_the_same_where_agents_cover_differently() {
        // Each agent covers a half of the range; b's goes on behind it.
        let intervals = || {
            let a = (0..6).map(|i| interval("a", i + 1, i * 10, i * 10 + 10, 0));
            a.chain((6..30).map(|i| interval("b", i - 5, i * 10, i * 10 + 10, 0)))
        };
        let chart = summarize(intervals().collect(), steps(0, 120, 10), None);
        assert_eq!((chart.nodes, &chart.observed_s), (2, &vec![10.0; 12]));
        for (from, until, nodes) in [(0, 60, 1), (60, 120, 1), (30, 90, 2)] {
            let window = summarize(intervals().collect(), steps(from, until, until - from), None);
            let of_chart: f64 = chart.observed_s[from as usize / 10..until as usize / 10].iter().sum();
            assert_eq!((window.nodes, window.total_s()), (nodes, of_chart), "{from} to {until}");
        }
    }

    #[test]
    fn what_is_still_on_its_way_is_not_observed_and_what_is_gone_is_not_awaited() {
        let late = vec![interval("a", 1, 0, 20, 0), interval("b", 1, 0, 15, 0)];
        // From 10 to 20 there are 15 of 20 seconds of both nodes.
        assert_eq!(summarize(late, steps(0, 20, 10), None).observed_s, [10.0, 7.5]);
        let gone = vec![interval("a", 1, 0, 60, 0), interval("b", 1, 0, 15, 0)];
        assert_eq!(summarize(gone, steps(0, 20, 10), None).observed_s, [10.0, 10.0]);
    }

    #[test]
    fn overlapping_instances_of_a_node_count_once_and_gaps_are_listed() {
        let mut second = interval("a", 1, 8, 12, 0);
        second.instance = "other".into();
        let exposure = summarize(
            vec![interval("a", 7, 0, 10, 0), second, interval("a", 9, 14, 16, 0)],
            steps(0, 20, 20),
            None,
        );
        assert_eq!(exposure.total_s(), 14.0);
        assert_eq!(exposure.gaps, [(12 * S, 14 * S), (16 * S, 20 * S)]);
    }

    #[test]
    fn without_any_account_only_samples_show_that_somebody_was_there() {
        let steps = steps(0, 25, 10);
        let nobody = summarize(Vec::new(), steps, None);
        assert_eq!((nobody.nodes, nobody.total_s()), (0, 0.0));
        assert_eq!((nobody.idle_share(), nobody.missed_share()), (None, None));
        assert_eq!(nobody.clone().with_samples(0, steps).total_s(), 0.0);
        assert_eq!(nobody.with_samples(1, steps).observed_s, [10.0, 10.0, 5.0]);
        let known = summarize(vec![interval("a", 1, 0, 10, 0)], steps, None);
        assert_eq!(known.clone().with_samples(1, steps), known);
    }

    #[test]
    fn what_is_left_out_is_neither_observed_nor_a_gap() {
        let except = Some(Window {
            from_ns: 8 * S,
            until_ns: 12 * S,
        });
        let steps = steps(0, 20, 10);
        let known = summarize(vec![interval("a", 1, 0, 16, 0)], steps, except);
        assert_eq!(known.observed_s, [8.0, 4.0]);
        assert_eq!(known.cpu_s, [16.0, 8.0]);
        assert_eq!(known.gaps, [(16 * S, 20 * S)]);
        let nobody = summarize(Vec::new(), steps, except).with_samples(1, steps);
        assert_eq!((nobody.observed_s, nobody.gaps.len()), (vec![8.0, 8.0], 0));
    }

    #[test]
    fn losses_are_those_of_the_window() {
        let known = vec![
            interval("a", 4, 0, 10, 100),
            interval("a", 5, 10, 20, 103),
            interval("a", 6, 20, 30, 110),
        ];
        assert_eq!(summarize(known, steps(10, 30, 20), None).lost["ring_full"], 10);
        assert_eq!(
            summarize(vec![interval("a", 1, 0, 10, 3)], steps(0, 30, 30), None).lost["ring_full"],
            3
        );
        assert_eq!(
            summarize(vec![interval("a", 5, 0, 10, 3)], steps(0, 30, 30), None).lost["ring_full"],
            0
        );
    }
}
