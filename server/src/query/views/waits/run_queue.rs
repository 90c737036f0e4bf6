//! How long threads waited for a CPU, by a label: number, percentiles and the longest of each step.
//!
//! Agents count every such wait by its length. This reads their counts, which come with the accounts of batches.
//! A batch counts in the step in which the middle of its interval lies. Each wait is there as its CPU's, beside what
//! that CPU's timer counted, and as its program's on that CPU: a question has one of the two.

use crate::clock::DAY_NS;
use crate::label::Label;
use crate::label::attribute::all_in;
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
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rows that are read at a time.
const ROWS_AT_ONCE: u64 = 100_000;

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

/// What all waits of a batch have in common.
struct OfBatch<'b> {
    node: &'b str,
    cluster: &'b str,
    /// By the names of their attributes; none where no question is of them.
    labels: BTreeMap<Cow<'b, str>, Cow<'b, str>>,
}

impl OfBatch<'_> {
    /// The label's value of waits in it; empty where it is absent.
    fn label<'a>(&'a self, label: Label, queue: &'a RunQueue<'_>) -> Cow<'a, str> {
        match label {
            Label::Node => Cow::Borrowed(self.node),
            Label::Cluster => Cow::Borrowed(self.cluster),
            Label::Cpu => {
                let cpu = queue.cpu().or(queue.on_cpu());
                cpu.map_or(Cow::Borrowed(""), |cpu| Cow::Owned(cpu.to_string()))
            }
            // What is said of the program counts, as with samples.
            Label::Attribute(name) => {
                let own = queue.attributes().get(name.as_str()).map(String::as_str);
                let told = own.or_else(|| self.labels.get(name.as_str()).map(|value| &**value));
                if let Some(value) = told {
                    return Cow::Borrowed(value);
                }
                // Others stand in for that of a version alone.
                if name.short().is_none() {
                    return Cow::Borrowed("");
                }
                let of_all = self.labels.iter().map(|(name, value)| (&**name, &**value));
                let own = queue.attributes().iter().map(|(name, value)| (&**name, &**value));
                let mut labels: BTreeMap<Cow<'a, str>, Cow<'a, str>> = BTreeMap::new();
                for (name, value) in of_all.chain(own) {
                    labels.insert(Cow::Borrowed(name), Cow::Borrowed(value));
                }
                name.value_of(labels)
            }
            other => Cow::Borrowed(queue.label(other)),
        }
    }
}

/// Labels of batches as a whole, of which nodes have the same.
const OF_BATCHES: [Label; 2] = [Label::Node, Label::Cluster];

/// Attributes that a sample of a wait has, and that waits are not counted by.
const OF_SAMPLES: [&str; 2] = ["wait.", "woken."];

fn is_counted_by(label: Label) -> bool {
    match label {
        Label::Attribute(name) => !OF_SAMPLES.iter().any(|begin| name.as_str().starts_with(begin)),
        label => OF_BATCHES.contains(&label) || label == Label::Cpu || LABELS.contains(&label),
    }
}

/// Which waits are selected, and by what they are told apart.
struct Selected<'q> {
    by: Label,
    /// They are read as those of CPUs, else as those of programs on CPUs.
    of_cpus: bool,
    /// How idle the CPUs were is told beside waits of programs.
    with_ticks: bool,
    /// Conditions on labels of batches as a whole.
    of_batches: Vec<&'q Matcher>,
    others: Vec<&'q Matcher>,
}

impl<'q> Selected<'q> {
    fn new(selector: &'q Selector, by: Label) -> Result<Self, QueryError> {
        let (of_batches, others): (Vec<_>, Vec<_>) = selector
            .matchers()
            .iter()
            .partition(|matcher| OF_BATCHES.contains(&matcher.label()));
        let labels = || others.iter().map(|matcher| matcher.label()).chain([by]);
        if let Some(label) = labels().find(|label| !is_counted_by(*label)) {
            let fixed = OF_BATCHES.iter().chain([&Label::Cpu]).chain(&LABELS);
            let names: Vec<&str> = fixed.map(Label::name).collect();
            return Err(QueryError::bad_query(
                format!("waits for a CPU are not counted by `{}`", label.name()),
                format!(
                    "they are by {}, and by attributes such as service.version; the profile type run_queue has all \
                     labels, by samples",
                    names.join(", ")
                ),
            ));
        }
        let is_of_cpus = |label: &Label| OF_BATCHES.contains(label) || *label == Label::Cpu;
        let of_cpus = labels().all(|label| is_of_cpus(&label));
        // What a CPU did is the same whoever waited for it. An attribute may be the program's alone.
        let has_attributes = labels().any(is_attribute);
        Ok(Self {
            by,
            of_cpus,
            with_ticks: !of_cpus && !has_attributes && is_of_cpus(&by),
            of_batches,
            others,
        })
    }

    fn wants_labels(&self) -> bool {
        is_attribute(self.by) || self.others.iter().any(|matcher| is_attribute(matcher.label()))
    }

    fn wants(&self, batch: (&str, &str)) -> bool {
        let value = |label: Label| if label == Label::Node { batch.0 } else { batch.1 };
        self.of_batches
            .iter()
            .all(|matcher| matcher.accepts(value(matcher.label())))
    }

    /// The value of the label by which they are told apart; none where they are not selected.
    fn value<'a>(&self, batch: &'a OfBatch<'_>, queue: &'a RunQueue<'_>) -> Option<Cow<'a, str>> {
        if queue.cpu().is_some() != self.of_cpus {
            return None;
        }
        let accepts = |matcher: &&Matcher| matcher.accepts(&batch.label(matcher.label(), queue));
        self.others.iter().all(accepts).then(|| batch.label(self.by, queue))
    }

    /// The same of what a CPU's timer counted, where it is told beside waits of programs.
    fn value_of_ticks<'a>(&self, batch: &'a OfBatch<'_>, queue: &'a RunQueue<'_>) -> Option<Cow<'a, str>> {
        if !self.with_ticks || queue.cpu().is_none() {
            return None;
        }
        let mut of_cpus = self.others.iter().filter(|matcher| matcher.label() == Label::Cpu);
        let accepts = |matcher: &&Matcher| matcher.accepts(&batch.label(Label::Cpu, queue));
        of_cpus.all(accepts).then(|| batch.label(self.by, queue))
    }
}

fn is_attribute(label: Label) -> bool {
    matches!(label, Label::Attribute(_))
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
    // Of each node: its CPUs are not those of others that have the same number, or are of the same cluster.
    let mut ticks: BTreeMap<Arc<str>, BTreeMap<Arc<str>, CpuTicks>> = BTreeMap::new();
    let mut batches = 0;
    // Twice: which values are wanted is known only when all was read, and all of them in steps may be too many.
    each_batch(snapshot, steps.window, &selected, |_, batch, queues| {
        batches += 1;
        let mut of_node = selected.with_ticks.then(|| of_value(&mut ticks, batch.node));
        for queue in queues {
            if let Some(value) = selected.value(batch, queue) {
                of_value(&mut whole, &value).add(queue);
                if let Some(of_node) = of_node.as_deref_mut() {
                    of_value(of_node, &value).were_waited_for = true;
                }
            }
            if let Some(of_node) = of_node.as_deref_mut()
                && let Some(value) = selected.value_of_ticks(batch, queue)
            {
                of_value(of_node, &value).counted.add_ticks_of(queue);
            }
        }
        let of_nodes = ticks.values().flatten();
        let bytes = whole.iter().map(|(value, sum)| value.len() + sum.bytes());
        let bytes = bytes.chain(of_nodes.map(|(value, ticks)| value.len() + ticks.counted.bytes()));
        match batches % 256 {
            0 => held.resize(bytes.sum()),
            _ => Ok(()),
        }
    })
    .await?;
    for (value, of_node) in ticks.values().flatten().filter(|(_, of_node)| of_node.were_waited_for) {
        if let Some(sum) = whole.get_mut(value) {
            sum.add_all(&of_node.counted);
        }
    }
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
    each_batch(snapshot, steps.window, &selected, |middle_ns, batch, queues| {
        read += 1;
        let step = steps.index(middle_ns);
        for queue in queues {
            if let Some(value) = selected.value(batch, queue) {
                all.steps[step].add(queue);
                if let Some(place) = places.get(&*value) {
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

/// What a node's CPUs counted of one value of the label.
#[derive(Debug, Default)]
struct CpuTicks {
    /// By a selected wait: idle CPUs of which nobody waited say nothing of it.
    were_waited_for: bool,
    counted: WaitLengths,
}

fn of_value<'s, T: Default>(all: &'s mut BTreeMap<Arc<str>, T>, value: &str) -> &'s mut T {
    // Mostly it is there, and needs no text of its own.
    let value = match all.get_key_value(value) {
        Some((known, _)) => Arc::clone(known),
        None => value.into(),
    };
    all.entry(value).or_default()
}

fn line(value: Arc<str>, steps: Steps) -> QueueLine {
    QueueLine {
        value,
        steps: vec![WaitLengths::default(); steps.count],
        whole: WaitLengths::default(),
    }
}

/// Hands over what was counted in each batch of the window: the middle of its interval, its labels, the counts.
async fn each_batch(
    snapshot: &Snapshot,
    window: Window,
    selected: &Selected<'_>,
    mut take: impl FnMut(i64, &OfBatch<'_>, &[RunQueue<'_>]) -> Result<(), QueryError>,
) -> Result<(), QueryError> {
    let days = Days::of(window).widened(DAY_NS);
    let is_within = col("until_ns")
        .gt(lit(window.from_ns))
        .and(col("from_ns").lt(lit(window.until_ns)));
    let of_node = |matcher: &&&Matcher| matcher.label() == Label::Node;
    let nodes = selected.of_batches.iter().filter(of_node);
    let nodes = nodes.filter_map(|matcher| matcher.equal_to());
    let of_nodes = nodes
        .map(|node| col("node").eq(lit(node)))
        .reduce(Expr::and)
        .unwrap_or(lit(true));
    let columns = ["node", "from_ns", "until_ns", "run_queues", "cluster", "labels"];
    let wants_labels = selected.wants_labels();
    let mut failed = None;
    for range in snapshot.days_of_rows(Table::Batches, ROWS_AT_ONCE, |day| days.has(day)) {
        let of_range = col("day").gt_eq(lit(range.start)).and(col("day").lt(lit(range.end)));
        let filter = days.filter().and(of_range).and(is_within.clone()).and(of_nodes.clone());
        collect_rows(snapshot, "batches", filter, &columns, |batch| {
            let column = |at: usize| batch.column(at).as_string::<i32>();
            let (nodes, texts) = (column(0), column(3));
            // Absent where an older server wrote the row.
            let text = |at: usize, row: usize| {
                let texts = column(at);
                if texts.is_null(row) { "" } else { texts.value(row) }
            };
            let time = |column: usize, row: usize| batch.column(column).as_primitive::<Int64Type>().value(row);
            for row in 0..batch.num_rows() {
                if failed.is_some() || texts.is_null(row) || texts.value(row).is_empty() {
                    continue;
                }
                let (from_ns, until_ns) = (time(1, row), time(2, row));
                let middle_ns = from_ns + until_ns.saturating_sub(from_ns) / 2;
                let is_within = (window.from_ns..window.until_ns).contains(&middle_ns);
                let (node, cluster) = (nodes.value(row), text(4, row));
                if is_within
                    && selected.wants((node, cluster))
                    && let Some(queues) = RunQueue::parse(texts.value(row))
                {
                    let labels = if wants_labels {
                        all_in(text(5, row))
                    } else {
                        BTreeMap::new()
                    };
                    let of_batch = OfBatch { node, cluster, labels };
                    failed = take(middle_ns, &of_batch, &queues).err();
                }
            }
        })
        .await?;
    }
    failed.map_or(Ok(()), Err)
}
