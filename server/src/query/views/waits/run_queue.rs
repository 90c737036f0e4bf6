//! How long threads waited for a CPU, by a label: number, percentiles and the longest of each step.
//!
//! Agents count every such wait by its length. This reads their counts, which come with the accounts of batches.
//! A batch counts in the step in which the middle of its interval lies.

use crate::label::Label;
use crate::query::ask::selector::{Matcher, Selector};
use crate::query::ask::time::Window;
use crate::query::limits::error::QueryError;
use crate::query::limits::reservation::Reservation;
use crate::query::plan::days::Days;
use crate::query::plan::small_tables::collect_rows;
use crate::query::plan::steps::Steps;
use crate::run_queue::{LABELS, RunQueue, WaitLengths};
use crate::store::{Snapshot, Table};
use arrow::array::{Array, AsArray};
use arrow::datatypes::Int64Type;
use datafusion::prelude::{Expr, col, lit};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rows that are read at a time.
const ROWS_AT_ONCE: u64 = 100_000;
const DAY_NS: i64 = 86_400_000_000_000;

/// Waits of one value of the label.
#[derive(Debug)]
pub struct QueueLine {
    /// The value; empty for waits without one.
    pub value: Arc<str>,
    /// Of each step.
    pub steps: Vec<WaitLengths>,
    /// Of the window.
    pub whole: WaitLengths,
}

/// The answer.
#[derive(Debug)]
pub struct RunQueues {
    /// Which waits.
    pub selector: Selector,
    /// The label whose values the lines are.
    pub by: Label,
    /// The steps of each line.
    pub steps: Steps,
    /// Everything that was selected; its value is empty.
    pub all: QueueLine,
    /// Those whose threads waited longest in sum, these first.
    pub lines: Vec<QueueLine>,
    /// How many values the limit cut off.
    pub others: usize,
    /// Batches whose agents counted.
    pub batches: u64,
}

/// Which waits are selected, and by what they are told apart.
struct Selected<'q> {
    by: Label,
    /// They are read as those of CPUs, else as those of programs.
    of_cpus: bool,
    nodes: Vec<&'q Matcher>,
    others: Vec<&'q Matcher>,
}

impl<'q> Selected<'q> {
    fn new(selector: &'q Selector, by: Label) -> Result<Self, QueryError> {
        let (nodes, others): (Vec<_>, Vec<_>) = selector
            .matchers()
            .iter()
            .partition(|matcher| matcher.label() == Label::Node);
        let labels = || others.iter().map(|matcher| matcher.label()).chain([by]);
        if let Some(label) =
            labels().find(|label| !LABELS.contains(label) && !matches!(label, Label::Node | Label::Cpu))
        {
            let names: Vec<&str> = [Label::Node, Label::Cpu]
                .iter()
                .chain(&LABELS)
                .map(Label::name)
                .collect();
            return Err(QueryError::bad_query(
                format!("waits for a CPU are not counted by `{}`", label.name()),
                format!("they are by {}", names.join(", ")),
            ));
        }
        let of_programs = labels().find(|label| LABELS.contains(label));
        let of_cpus = labels().any(|label| label == Label::Cpu);
        if let (Some(label), true) = (of_programs, of_cpus) {
            return Err(QueryError::bad_query(
                format!(
                    "waits for a CPU are counted by `cpu` or by `{}`, not by both at once",
                    label.name()
                ),
                "leave one of them out; the profile type run_queue has both, by samples",
            ));
        }
        Ok(Self {
            by,
            of_cpus: of_programs.is_none(),
            nodes,
            others,
        })
    }

    fn wants_node(&self, node: &str) -> bool {
        self.nodes.iter().all(|matcher| matcher.accepts(node))
    }

    /// The value of the label by which they are told apart; none where they are not selected.
    fn value<'a>(&self, node: &'a str, queue: &'a RunQueue<'_>, cpu: &'a mut String) -> Option<&'a str> {
        if queue.cpu().is_some() != self.of_cpus {
            return None;
        }
        if let Some(number) = queue.cpu() {
            *cpu = number.to_string();
        }
        let cpu: &'a str = cpu;
        let label = |label: Label| match label {
            Label::Node => node,
            Label::Cpu => cpu,
            other => queue.label(other),
        };
        let is_selected = self
            .others
            .iter()
            .all(|matcher| matcher.accepts(label(matcher.label())));
        is_selected.then(|| label(self.by))
    }
}

/// Answers with the `limit` values whose threads waited longest.
///
/// # Errors
/// As every query; a label by which waits are not counted is a bad query.
pub async fn run_queues(
    snapshot: &Snapshot,
    selector: Selector,
    (by, steps, limit): (Label, Steps, usize),
) -> Result<RunQueues, QueryError> {
    let selected = Selected::new(&selector, by)?;
    let held = Reservation::new(snapshot, "waits for a CPU");
    let mut whole: BTreeMap<Arc<str>, WaitLengths> = BTreeMap::new();
    let mut batches = 0;
    // Twice: which values are wanted is known only when all was read, and all of them in steps may be too many.
    each_batch(snapshot, steps.window, &selected, |_, node, queues| {
        batches += 1;
        let mut cpu = String::new();
        for queue in queues {
            if let Some(value) = selected.value(node, queue, &mut cpu) {
                if !whole.contains_key(value) {
                    whole.insert(value.into(), WaitLengths::default());
                }
                if let Some(sum) = whole.get_mut(value) {
                    sum.add(queue);
                }
            }
        }
        let bytes = whole.iter().map(|(value, sum)| value.len() + sum.bytes());
        match batches % 256 {
            0 => held.resize(bytes.sum()),
            _ => Ok(()),
        }
    })
    .await?;
    let mut order: Vec<(Arc<str>, WaitLengths)> = whole.into_iter().collect();
    order.sort_by(|a, b| b.1.total_ns.cmp(&a.1.total_ns).then_with(|| a.0.cmp(&b.0)));
    let others = order.len().saturating_sub(limit);
    let mut all = line("".into(), steps);
    for (_, sum) in &order {
        all.whole.add_all(sum);
    }
    order.truncate(limit);
    let places: BTreeMap<&str, usize> = order
        .iter()
        .enumerate()
        .map(|(at, (value, _))| (&**value, at))
        .collect();
    let mut lines: Vec<QueueLine> = order
        .iter()
        .map(|(value, sum)| QueueLine {
            whole: sum.clone(),
            ..line(Arc::clone(value), steps)
        })
        .collect();
    let mut read = 0_usize;
    each_batch(snapshot, steps.window, &selected, |middle_ns, node, queues| {
        read += 1;
        let step = steps.index(middle_ns);
        let mut cpu = String::new();
        for queue in queues {
            if let Some(value) = selected.value(node, queue, &mut cpu) {
                all.steps[step].add(queue);
                if let Some(place) = places.get(value) {
                    lines[*place].steps[step].add(queue);
                }
            }
        }
        let sums = lines.iter().flat_map(|line| &line.steps).chain(&all.steps);
        match read % 1024 {
            0 => held.resize(sums.map(WaitLengths::bytes).sum()),
            _ => Ok(()),
        }
    })
    .await?;
    drop(places);
    Ok(RunQueues {
        selector: selector.clone(),
        by,
        steps,
        all,
        lines,
        others,
        batches,
    })
}

fn line(value: Arc<str>, steps: Steps) -> QueueLine {
    QueueLine {
        value,
        steps: vec![WaitLengths::default(); steps.count],
        whole: WaitLengths::default(),
    }
}

/// Hands over what was counted in each batch of the window: the middle of its interval, its node, the counts.
async fn each_batch(
    snapshot: &Snapshot,
    window: Window,
    selected: &Selected<'_>,
    mut take: impl FnMut(i64, &str, &[RunQueue<'_>]) -> Result<(), QueryError>,
) -> Result<(), QueryError> {
    let days = Days::of(window).widened(DAY_NS);
    let is_within = col("until_ns")
        .gt(lit(window.from_ns))
        .and(col("from_ns").lt(lit(window.until_ns)));
    let nodes = selected.nodes.iter().filter_map(|matcher| matcher.equal_to());
    let of_nodes = nodes
        .map(|node| col("node").eq(lit(node)))
        .reduce(Expr::and)
        .unwrap_or(lit(true));
    let columns = ["node", "from_ns", "until_ns", "run_queues"];
    let mut failed = None;
    for range in snapshot.days_of_rows(Table::Batches, ROWS_AT_ONCE, |day| days.has(day)) {
        let of_range = col("day").gt_eq(lit(range.start)).and(col("day").lt(lit(range.end)));
        let filter = days.filter().and(of_range).and(is_within.clone()).and(of_nodes.clone());
        collect_rows(snapshot, "batches", filter, &columns, |batch| {
            let (nodes, texts) = (batch.column(0).as_string::<i32>(), batch.column(3).as_string::<i32>());
            let time = |column: usize, row: usize| batch.column(column).as_primitive::<Int64Type>().value(row);
            for row in 0..batch.num_rows() {
                if failed.is_some() || texts.is_null(row) || texts.value(row).is_empty() {
                    continue;
                }
                let (from_ns, until_ns) = (time(1, row), time(2, row));
                let middle_ns = from_ns + until_ns.saturating_sub(from_ns) / 2;
                let is_within = (window.from_ns..window.until_ns).contains(&middle_ns);
                if is_within
                    && selected.wants_node(nodes.value(row))
                    && let Some(queues) = RunQueue::parse(texts.value(row))
                {
                    failed = take(middle_ns, nodes.value(row), &queues).err();
                }
            }
        })
        .await?;
    }
    failed.map_or(Ok(()), Err)
}
