//! Who ended waits that are told one by one.
//!
//! In: a question, and samples of waits. Out: of each wait the sample of the type `wake_up` that tells who ended it,
//! where there is one. An agent samples who ends a wait where it samples the wait, and each stands for itself: the one
//! at the moment of waking, with the id of the thread that was woken, the other where that thread had a CPU again. So
//! of a thread the first wait that is told at a waking or after it is the one that was ended, if it was as long. Waits
//! that the question leaves out are told too: the first of the samples may be one of those.

use crate::column::coded::{CodedColumn, Projection};
use crate::hash::MixState;
use crate::label::Label;
use crate::query::ask::question::{Question, ValueRange};
use crate::query::ask::time::Window;
use crate::query::count::scan::{Accumulator, Rows};
use crate::query::limits::error::QueryError;
use crate::query::plan::columns::{TIMES, codes};
use crate::query::plan::days::Days;
use crate::query::plan::resolution::TimeResolution;
use crate::query::plan::scope::scope;
use crate::query::views::by_label::values_by_id;
use crate::query::views::selected::count_selected;
use crate::query::views::waits::of_series::of_type;
use crate::query::views::waits::other_waits::{Selected, other_waits, where_others_are};
use crate::store::{Snapshot, Table, hour};
use std::collections::HashMap;
use std::sync::Arc;

/// The profile type of who ended waits.
const WOKE: &str = "wake_up";
/// How long before the window a thread may have been woken that had a CPU again in it.
const BEFORE_NS: i64 = 1_000_000_000;
/// Two lengths of one wait are so near to each other: they have three digits, and end at two tracepoints.
const APART_NS: u64 = 2_000_000;
const APART_SHARE: u64 = 50;

/// Who ended a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waker {
    /// Which sample the wait is.
    pub sample: u32,
    /// Its service.
    pub service: Arc<str>,
    /// Name of its process.
    pub process: Arc<str>,
    /// Name of its thread.
    pub thread: Arc<str>,
    /// Thread id; none where the sender does not say.
    pub tid: Option<i64>,
    /// Key of its stack in `stacks`.
    pub stack_id: i64,
}

/// The sample of a wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct End {
    ts_ns: i64,
    /// How long the wait was; none where that is not said.
    wait_ns: Option<i64>,
    sample: u32,
}

/// Waits by node and thread.
#[derive(Debug, Default)]
pub(crate) struct Ends(HashMap<Arc<str>, HashMap<i64, Vec<End>, MixState>>);

impl Ends {
    /// Adds a sample; those of a thread come in the order of time.
    pub(crate) fn add(&mut self, (node, tid): (&Arc<str>, i64), ts_ns: i64, wait_ns: Option<i64>, sample: u32) {
        let of_node = self.0.entry(node.clone()).or_default();
        of_node.entry(tid).or_default().push(End { ts_ns, wait_ns, sample });
    }
}

impl Selected for Ends {
    type OfThread = Vec<End>;

    fn of_node(&self, node: &str) -> Option<&HashMap<i64, Vec<End>, MixState>> {
        self.0.get(node)
    }

    fn first_behind(&self, ends: &Vec<End>, ts_ns: i64) -> Option<u32> {
        let first = ends.get(ends.partition_point(|end| end.ts_ns < ts_ns))?;
        (first.ts_ns > ts_ns).then_some(first.sample)
    }
}

/// Whether two numbers about a wait of some length may be the same.
pub(super) fn are_near(one: i64, other: i64, wait_ns: i64) -> bool {
    one.abs_diff(other) <= APART_NS + wait_ns.unsigned_abs() / APART_SHARE
}

/// Which of a thread's waits was ended at a moment, after so long, if none of the others was told in between.
fn ended(ends: &[End], ts_ns: i64, wait_ns: i64) -> Option<u32> {
    let next = ends.get(ends.partition_point(|end| end.ts_ns < ts_ns))?;
    are_near(next.wait_ns?, wait_ns, wait_ns).then_some(next.sample)
}

/// The part of the time in which who ended waits of a window is told.
pub(crate) fn around_waits(window: Window) -> Window {
    Window {
        from_ns: window.from_ns.saturating_sub(BEFORE_NS).max(0),
        ..window
    }
}

/// The same, or the window itself where no samples are left of the hour before it: its roll-ups do not tell, and nobody
/// asked for that hour.
fn around_kept(snapshot: &Snapshot, window: Window) -> Window {
    let wider = around_waits(window);
    let before = hour(wider.from_ns);
    let mut files = snapshot.files(Table::Samples).iter();
    let is_kept = before == hour(window.from_ns)
        || files.any(|file| file.partition == before)
        || snapshot.pending_hours().contains(&before);
    if is_kept { wider } else { window }
}

/// What is asked about those who ended waits of a question: whoever it was need not be selected, and a wait that lasted
/// is longer at its end than when it was told of.
pub(super) fn of_wakers(snapshot: &Snapshot, question: &Question) -> Question {
    Question {
        selector: question.selector.on(Label::Node),
        window: around_kept(snapshot, question.window),
        except: None,
        values: ValueRange::default(),
        lengths: ValueRange::default(),
        ..of_type(question, WOKE)
    }
}

/// A sample of who ended a wait, by its time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct WakeUp {
    ts_ns: i64,
    stack_id: i64,
    series_id: i64,
    tid: Option<i64>,
    thread: Arc<str>,
}

/// The last one that may have ended each wait: it did where no other wait of its thread was told since then.
#[derive(Debug)]
struct WakeUps {
    ends: Arc<Ends>,
    of_sample: HashMap<u32, WakeUp, MixState>,
}

impl WakeUps {
    fn take(&mut self, sample: u32, wake_up: WakeUp) {
        let known = self.of_sample.entry(sample).or_insert_with(|| wake_up.clone());
        if *known < wake_up {
            *known = wake_up;
        }
    }

    /// From the first of them to the last wait that they may have ended.
    fn span(&self) -> (i64, i64) {
        let woken = self.of_sample.values().map(|wake_up| wake_up.ts_ns);
        let ends = self.ends.0.values().flat_map(HashMap::values).flatten();
        let ended = ends.filter(|end| self.of_sample.contains_key(&end.sample));
        let (first, last) = (woken.min(), ended.map(|end| end.ts_ns).max());
        (first.unwrap_or_default(), last.unwrap_or_default())
    }
}

impl Accumulator for WakeUps {
    fn columns(&self) -> Vec<Projection> {
        let names = ["node", "woken_tid", "wait_ns", "stack_id", "series_id", "tid", "thread"];
        names.into_iter().map(codes).chain([TIMES]).collect()
    }

    fn when(&self) -> TimeResolution {
        TimeResolution::Exact
    }

    fn add(&mut self, rows: &Rows) -> Result<(), QueryError> {
        let column = |index| rows.codes(index);
        let [node, woken, wait, stack] = [column(0)?, column(1)?, column(2)?, column(3)?];
        let [series, tid, thread] = [column(4)?, column(5)?, column(6)?];
        let ends = self.ends.clone();
        let of_nodes: Vec<_> = (0..node.distinct()).map(|code| ends.0.get(&*node.text(code))).collect();
        let threads: Vec<Arc<str>> = (0..thread.distinct()).map(|code| thread.text(code).into()).collect();
        for (row, ts_ns) in rows.numbers(7)?.iter().enumerate() {
            let number = |codes: &CodedColumn| codes.number(codes.codes.at(row) as usize);
            let of_node = of_nodes[node.codes.at(row) as usize];
            let of_thread = of_node.zip(number(woken)).and_then(|(threads, tid)| threads.get(&tid));
            let found = of_thread
                .zip(number(wait))
                .and_then(|(ends, wait_ns)| ended(ends, *ts_ns, wait_ns));
            let Some(sample) = found else { continue };
            let wake_up = WakeUp {
                ts_ns: *ts_ns,
                stack_id: number(stack).unwrap_or_default(),
                series_id: number(series).unwrap_or_default(),
                tid: number(tid),
                thread: threads[thread.codes.at(row) as usize].clone(),
            };
            self.take(sample, wake_up);
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.of_sample.capacity() * size_of::<(u32, WakeUp)>()
    }

    fn merge(&mut self, other: Self) -> Result<(), QueryError> {
        for (sample, wake_up) in other.of_sample {
            self.take(sample, wake_up);
        }
        Ok(())
    }
}

/// Who ended these waits of the question, in the order of their samples. Whoever it was need not be selected.
pub(crate) async fn wakers(snapshot: &Snapshot, question: &Question, ends: Ends) -> Result<Vec<Waker>, QueryError> {
    if ends.0.is_empty() {
        return Ok(Vec::new());
    }
    let asked = of_wakers(snapshot, question);
    let selected = scope(snapshot, &asked).await?;
    let ends = Arc::new(ends);
    let new = || WakeUps {
        ends: ends.clone(),
        of_sample: HashMap::default(),
    };
    let (mut found, _held) = count_selected(snapshot, &asked, &selected, new).await?;
    if found.of_sample.is_empty() {
        return Ok(Vec::new());
    }
    // Where another wait was told since the last of them, it was so since those before it.
    let within = where_others_are(question, found.span());
    let (others, _of_others) = other_waits(snapshot, &asked, within, &ends).await?;
    let is_next = |sample: &u32, wake_up: &mut WakeUp| others.are_before(*sample, wake_up.ts_ns);
    found.of_sample.retain(is_next);
    if found.of_sample.is_empty() {
        return Ok(Vec::new());
    }
    let days = Days::of(asked.window);
    let (services, processes) = tokio::try_join!(
        values_by_id(snapshot, &days, Label::Service),
        values_by_id(snapshot, &days, Label::Process)
    )?;
    let text = |names: &HashMap<i64, Arc<str>, MixState>, id: i64| names.get(&id).cloned().unwrap_or_default();
    let mut wakers: Vec<Waker> = (found.of_sample.into_iter())
        .map(|(sample, wake_up)| Waker {
            sample,
            service: text(&services, wake_up.series_id),
            process: text(&processes, wake_up.series_id),
            thread: wake_up.thread,
            tid: wake_up.tid,
            stack_id: wake_up.stack_id,
        })
        .collect();
    wakers.sort_unstable_by_key(|waker| waker.sample);
    Ok(wakers)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn a_waking_ends_the_next_wait_of_its_thread_that_was_as_long() {
        let end = |sample: u32, ts_ms: i64, wait_ms: i64| End {
            ts_ns: ts_ms * MS,
            wait_ns: (wait_ms >= 0).then_some(wait_ms * MS),
            sample,
        };
        // The second is told while it lasts, the third is its end; of the last it is not said how long it was.
        let ends = [end(0, 100, 10), end(1, 500, 300), end(2, 900, 690), end(3, 1000, -1)];
        let found = |ts_ms: i64, wait_ms: i64| ended(&ends, ts_ms * MS, wait_ms * MS);
        assert_eq!((found(99, 10), found(100, 11)), (Some(0), Some(0)));
        // It had a CPU 15 ms after it was woken.
        assert_eq!((found(885, 690), found(885, 700)), (Some(2), Some(2)));
        // Nobody ended what went on, and a wait of another length is another one.
        assert_eq!((found(101, 10), found(885, 400)), (None, None));
        assert_eq!((found(950, 40), found(1001, 40)), (None, None));
    }

    #[test]
    fn of_several_the_last_ended_it() {
        let wake_up = |ts_ns| WakeUp {
            ts_ns,
            stack_id: 1,
            series_id: 1,
            tid: None,
            thread: "t".into(),
        };
        let new = || WakeUps {
            ends: Arc::default(),
            of_sample: HashMap::default(),
        };
        let (mut one, mut other) = (new(), new());
        one.take(0, wake_up(5));
        one.take(0, wake_up(3));
        other.take(0, wake_up(4));
        other.take(1, wake_up(1));
        one.merge(other).unwrap();
        assert_eq!((one.of_sample[&0].ts_ns, one.of_sample[&1].ts_ns), (5, 1));
        // Others matter from the first one on, up to the last of these waits.
        let mut ends = Ends::default();
        let node: Arc<str> = "a".into();
        for (tid, ts_ns, sample) in [(7, 6, 0), (7, 90, 2), (8, 20, 1)] {
            ends.add((&node, tid), ts_ns, None, sample);
        }
        one.ends = Arc::new(ends);
        assert_eq!(one.span(), (1, 20));
    }
}
