//! Who ended the waits of a selection, as a tree.
//!
//! In: a question about waits, and how the tree is looked at. Out: the stacks of those who ended them, weighed by the
//! time of the waits that they ended, and one frame for the time of the waits of which nobody is known: together they
//! are all that is selected. A wait may be told of several times, while it lasts and at its end: all of it was ended by
//! the one.

use crate::column::coded::{CodedColumn, Column, Projection};
use crate::hash::MixState;
use crate::query::ask::question::Question;
use crate::query::ask::time::Window;
use crate::query::count::scan::{Accumulator, Rows};
use crate::query::count::stack_counts::StackCounts;
use crate::query::limits::error::QueryError;
use crate::query::limits::parallel::blocking;
use crate::query::plan::columns::{LENGTHS, PERIODS, TIMES, codes};
use crate::query::plan::days::Days;
use crate::query::plan::resolution::TimeResolution;
use crate::query::plan::scope::scope;
use crate::query::plan::steps::Steps;
use crate::query::tree::nodes::{Frame, Kind};
use crate::query::views::by_label::scan_only;
use crate::query::views::engine::Engine;
use crate::query::views::flamegraph::{Ended, Flamegraph, Side, View, grouping, tree_of};
use crate::query::views::grouping::Grouping;
use crate::query::views::matching::matching_stacks;
use crate::query::views::selected::count_selected;
use crate::query::views::selected::senders::observe;
use crate::query::views::waits::of_series::ASLEEP;
use crate::query::views::waits::other_waits::{OtherWaits, Selected, other_waits, where_others_are};
use crate::query::views::waits::wakers::{are_near, of_wakers};
use crate::store::Snapshot;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// Most samples of waits that are looked at.
const MOST_TOLD: usize = 2_000_000;
/// Stands for the stack of whoever is not known: ids are hashes of content.
const NOBODY: i64 = i64::MIN;
/// Its only frame.
const NOBODY_FRAME: &str = "[no waker known]";
/// Stands for the thread of samples that do not say theirs.
const NO_THREAD: u32 = u32::MAX;

/// A sample of a selected wait. In their order they stand by thread, and by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Told {
    thread: u32,
    ts_ns: i64,
    /// How long the wait was by then; none where that is not said.
    wait_ns: Option<i64>,
    /// The time that it stands for.
    value_ns: i64,
}

/// Selected samples as they are met.
#[derive(Debug)]
struct Collected {
    /// Node and id of each thread.
    threads: Vec<(Arc<str>, i64)>,
    index: HashMap<(Arc<str>, i64), u32>,
    told: Vec<Told>,
    most: usize,
}

impl Collected {
    fn new(most: usize) -> Collected {
        Collected {
            threads: Vec::new(),
            index: HashMap::new(),
            told: Vec::new(),
            most,
        }
    }

    fn thread(&mut self, thread: (Arc<str>, i64)) -> u32 {
        let next = self.threads.len() as u32;
        let index = *self.index.entry(thread.clone()).or_insert(next);
        if index == next {
            self.threads.push(thread);
        }
        index
    }

    fn take(&mut self, told: Told) -> Result<(), QueryError> {
        if self.told.len() >= self.most {
            return Err(QueryError::too_large(
                format!(
                    "more than {} samples of waits are selected to find who ended them",
                    self.most
                ),
                "ask for a shorter window or a narrower selector",
            ));
        }
        self.told.push(told);
        Ok(())
    }
}

impl Accumulator for Collected {
    fn columns(&self) -> Vec<Projection> {
        vec![codes("node"), codes("tid"), LENGTHS, PERIODS, TIMES]
    }

    fn when(&self) -> TimeResolution {
        TimeResolution::Exact
    }

    fn add(&mut self, rows: &Rows) -> Result<(), QueryError> {
        let [node, tid, wait, value] = [rows.codes(0)?, rows.codes(1)?, rows.codes(2)?, rows.codes(3)?];
        let mut known: HashMap<(u32, u32), u32, MixState> = HashMap::default();
        for (row, ts_ns) in rows.numbers(4)?.iter().enumerate() {
            let number = |codes: &CodedColumn| codes.number(codes.codes.at(row) as usize);
            let (of_node, of_tid) = (node.codes.at(row), tid.codes.at(row));
            let thread = match (number(tid), known.get(&(of_node, of_tid)).copied()) {
                (None, _) => NO_THREAD,
                (Some(_), Some(thread)) => thread,
                (Some(tid), None) => {
                    let thread = self.thread((node.text(of_node as usize).into(), tid));
                    known.insert((of_node, of_tid), thread);
                    thread
                }
            };
            self.take(Told {
                thread,
                ts_ns: *ts_ns,
                wait_ns: number(wait),
                value_ns: number(value).unwrap_or_default(),
            })?;
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        let each = size_of::<((Arc<str>, i64), u32)>() + size_of::<(Arc<str>, i64)>() + 1;
        self.told.capacity() * size_of::<Told>() + self.index.capacity() * each
    }

    fn merge(&mut self, other: Self) -> Result<(), QueryError> {
        let threads: Vec<u32> = (other.threads.into_iter()).map(|thread| self.thread(thread)).collect();
        for told in other.told {
            let thread = threads.get(told.thread as usize).copied().unwrap_or(NO_THREAD);
            self.take(Told { thread, ..told })?;
        }
        Ok(())
    }
}

/// Where the samples of each node's threads stand.
type Places = HashMap<Arc<str>, HashMap<i64, Range<usize>, MixState>>;

/// Selected samples by node and thread.
#[derive(Debug, Default)]
struct ByThread {
    told: Vec<Told>,
    places: Places,
}

impl ByThread {
    fn of(collected: Collected) -> ByThread {
        let Collected { threads, mut told, .. } = collected;
        told.sort_unstable();
        let (mut places, mut until) = (Places::new(), 0);
        for of_thread in told.chunk_by(|one, next| one.thread == next.thread) {
            let from = until;
            until += of_thread.len();
            if let Some((node, tid)) = threads.get(told[from].thread as usize) {
                places.entry(node.clone()).or_default().insert(*tid, from..until);
            }
        }
        ByThread { told, places }
    }

    /// The counts of all samples, each under the id of who ended its wait.
    fn counts(&self, endings: &Endings, nobody: i64, window: Window, limit: usize) -> Result<StackCounts, QueryError> {
        let ender = |place: usize| endings.of_told.get(&(place as u32)).map_or(nobody, |ending| ending.id);
        let stacks = CodedColumn::of_numbers((0..self.told.len()).map(|place| Some(ender(place))));
        let values = CodedColumn::of_numbers(self.told.iter().map(|told| Some(told.value_ns)));
        let mut counts = StackCounts::new(Steps::one(window), None, limit);
        counts.add(&Rows::new(vec![Column::Codes(stacks), Column::Codes(values)], None))?;
        Ok(counts)
    }
}

impl Selected for ByThread {
    type OfThread = Range<usize>;

    fn of_node(&self, node: &str) -> Option<&HashMap<i64, Range<usize>, MixState>> {
        self.places.get(node)
    }

    fn first_behind(&self, places: &Range<usize>, ts_ns: i64) -> Option<u32> {
        let told = &self.told[places.clone()];
        let first = told.partition_point(|one| one.ts_ns < ts_ns);
        let is_behind = told.get(first).is_some_and(|one| one.ts_ns > ts_ns);
        is_behind.then_some((places.start + first) as u32)
    }
}

/// Who was told to have ended the wait of a sample; of several the last in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Ending {
    /// The sample tells of the wait's end, rather than of what it was while it lasted.
    at_end: bool,
    ts_ns: i64,
    /// Of the waker's stack, or of its pair of group and stack.
    id: i64,
}

/// The places of a thread's samples that tell of the wait that was ended at a moment, after so long: those while it
/// lasted, and the next one, where a wait as long came to its end. With whether it is that one: it is where it is also
/// the thread's next one of all.
fn ended(told: &[Told], ts_ns: i64, wait_ns: i64) -> impl Iterator<Item = (usize, bool)> {
    let began_ns = ts_ns.saturating_sub(wait_ns);
    let next = told.partition_point(|one| one.ts_ns < ts_ns);
    let first = told[..next].partition_point(|one| one.ts_ns <= began_ns);
    let lasted = (first..next).filter(move |place| {
        let Told {
            ts_ns,
            wait_ns: by_then,
            ..
        } = told[*place];
        by_then.is_some_and(|by_then| are_near(ts_ns.saturating_sub(by_then), began_ns, wait_ns))
    });
    let is_end = |one: &&Told| one.wait_ns.is_some_and(|whole| are_near(whole, wait_ns, wait_ns));
    let end = told.get(next).filter(is_end).map(|_| next);
    lasted.map(|place| (place, false)).chain(end.map(|place| (place, true)))
}

/// Who ended each wait.
#[derive(Debug)]
struct Endings {
    waits: Arc<ByThread>,
    /// Those of the same threads that are not selected.
    others: Arc<OtherWaits>,
    grouping: Option<Grouping>,
    /// By the place of the sample.
    of_told: HashMap<u32, Ending, MixState>,
}

/// Columns before those of labels.
const OWN_COLUMNS: [Projection; 5] = [codes("stack_id"), codes("node"), codes("woken_tid"), LENGTHS, TIMES];

impl Endings {
    fn take(&mut self, place: u32, ending: Ending) {
        let known = self.of_told.entry(place).or_insert(ending);
        *known = ending.max(*known);
    }
}

impl Accumulator for Endings {
    fn columns(&self) -> Vec<Projection> {
        let of_labels = self.grouping.iter().flat_map(Grouping::columns);
        OWN_COLUMNS.into_iter().chain(of_labels).collect()
    }

    fn when(&self) -> TimeResolution {
        TimeResolution::Exact
    }

    fn add(&mut self, rows: &Rows) -> Result<(), QueryError> {
        let (waits, others) = (self.waits.clone(), self.others.clone());
        let [node, woken, wait] = [rows.codes(1)?, rows.codes(2)?, rows.codes(3)?];
        let of_nodes: Vec<_> = (0..node.distinct())
            .map(|code| waits.places.get(&*node.text(code)))
            .collect();
        let times = rows.numbers(4)?;
        let (mut keep, mut kept, mut found) = (vec![false; times.len()], 0, Vec::new());
        for (row, ts_ns) in times.iter().enumerate() {
            let number = |codes: &CodedColumn| codes.number(codes.codes.at(row) as usize);
            let of_node = of_nodes[node.codes.at(row) as usize];
            let of_thread = of_node.zip(number(woken)).and_then(|(threads, tid)| threads.get(&tid));
            let Some((places, wait_ns)) = of_thread.zip(number(wait)) else {
                continue;
            };
            let before = found.len();
            let of_wait = ended(&waits.told[places.clone()], *ts_ns, wait_ns)
                .map(|(at, at_end)| ((places.start + at) as u32, at_end))
                .filter(|(place, at_end)| !at_end || others.are_before(*place, *ts_ns));
            found.extend(of_wait.map(|(place, at_end)| (kept, place, at_end, *ts_ns)));
            keep[row] = found.len() > before;
            kept += usize::from(keep[row]);
        }
        if found.is_empty() {
            return Ok(());
        }
        // A pair that ended no wait must not count among those that are bounded.
        let rows = rows.only(&keep);
        let pairs = match &self.grouping {
            None => None,
            Some(grouping) => Some(grouping.paired(&rows, OWN_COLUMNS.len())?),
        };
        let ids = match &pairs {
            None => rows.codes(0)?,
            Some(pairs) => pairs,
        };
        for (row, place, at_end, ts_ns) in found {
            let id = ids.number(ids.codes.at(row) as usize).unwrap_or_default();
            self.take(place, Ending { at_end, ts_ns, id });
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.of_told.capacity() * (size_of::<(u32, Ending)>() + 1)
    }

    fn merge(&mut self, other: Self) -> Result<(), QueryError> {
        for (place, ending) in other.of_told {
            self.take(place, ending);
        }
        Ok(())
    }
}

/// Answers with the tree of who ended the selected waits; with a frame that is looked for, of the waits whose stack has
/// it. Whoever ended them need not be selected.
///
/// # Errors
/// As every query, and of another type than that of waits.
pub async fn woken_by(
    engine: &Engine,
    snapshot: &Snapshot,
    question: Question,
    mut view: View,
) -> Result<Flamegraph, QueryError> {
    if question.profile != ASLEEP {
        return Err(QueryError::bad_parameter(
            format!("`stacks=wakers` of the type `{}`", question.profile),
            format!("waits alone are ended by somebody: ask with `type={ASLEEP}`"),
        ));
    }
    let matched = match view.matching.take() {
        None => None,
        Some(wanted) => Some(matching_stacks(engine, snapshot, &question, wanted).await?),
    };
    let only = matched.as_ref().map(|matched| matched.stacks.clone());
    let selected = scope(snapshot, &question).await?;
    let (collected, held) = scan_only(snapshot, &question, &selected, only, || Collected::new(MOST_TOLD)).await?;
    let waits = Arc::new(blocking(move || ByThread::of(collected)).await?);

    let asked = of_wakers(snapshot, &question);
    let days = Days::of(asked.window);
    let grouping = grouping(engine, snapshot, &days, &view).await?;
    let wakers = scope(snapshot, &asked).await?;
    let last_ns = waits.told.iter().map(|told| told.ts_ns).max().unwrap_or_default();
    let span = (asked.window.from_ns, last_ns);
    let within = match &matched {
        None => where_others_are(&question, span),
        Some(_) => (span.0 < span.1).then_some(Window {
            from_ns: span.0,
            until_ns: span.1,
        }),
    };
    let (others, _of_others) = other_waits(snapshot, &asked, within, &waits).await?;
    let new = || Endings {
        waits: waits.clone(),
        others: others.clone(),
        grouping: grouping.clone(),
        of_told: HashMap::default(),
    };
    let kind = engine.kind(snapshot, &question).await?;
    let steps = Steps::one(question.window);
    let ((endings, _held), exposure) = tokio::try_join!(
        count_selected(snapshot, &asked, &wakers, new),
        observe(snapshot, &question, steps, kind.marked)
    )?;
    let nobody = match &grouping {
        None => NOBODY,
        Some(grouping) => grouping.without_values(NOBODY)?,
    };
    // A code of each sample's stack, and one of its value.
    held.resize(held.bytes() + waits.told.len() * 2 * size_of::<u32>())?;
    let (window, limit) = (question.window, engine.limits().stacks);
    let counts = blocking(move || waits.counts(&endings, nobody, window, limit)).await??;
    let counts = counts.weighed(&kind.unit);
    let unknown = counts
        .ids
        .iter()
        .position(|id| *id == nobody)
        .map_or(0, |at| counts.totals[at]);
    let ended = Ended {
        known: counts.samples - unknown,
        unknown,
    };
    let side = Side {
        question,
        exposure: exposure.with_samples(counts.periods.samples, steps),
        counts,
        _held: Arc::new(held),
    };
    let frame = Frame::new(Kind::Unknown, "", "", NOBODY_FRAME, None);
    let stand_in = Some((NOBODY, frame));
    let mut graph = tree_of(engine, snapshot, &days, side, grouping.as_ref(), view, stand_in).await?;
    graph.ended = Some(ended);
    Ok(graph)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn told(thread: u32, ts_ms: i64, wait_ms: i64) -> Told {
        Told {
            thread,
            ts_ns: ts_ms * MS,
            wait_ns: (wait_ms >= 0).then_some(wait_ms * MS),
            value_ns: MS,
        }
    }

    #[test]
    fn a_waking_ends_what_was_told_of_its_wait_and_nothing_else() {
        // Two waits, of which the second was told of twice while it lasted; the last one does not say how long it was.
        let all = [
            told(0, 100, 10),
            told(0, 500, 300),
            told(0, 700, 500),
            told(0, 905, 700),
            told(0, 950, -1),
        ];
        let found = |ts_ms: i64, wait_ms: i64| ended(&all, ts_ms * MS, wait_ms * MS).collect::<Vec<_>>();
        assert_eq!(found(99, 10), [(0, true)]);
        // It had a CPU 5 ms after it was woken.
        assert_eq!(found(900, 700), [(1, false), (2, false), (3, true)]);
        // Its end is not selected, or was not told.
        assert_eq!(found(720, 520), [(1, false), (2, false)]);
        // Another wait, one that began at another time, and one of unknown length.
        for (ts_ms, wait_ms) in [(906, 40), (720, 400), (951, 1)] {
            assert!(found(ts_ms, wait_ms).is_empty(), "{ts_ms} {wait_ms}");
        }
    }

    #[test]
    fn who_ended_a_wait_is_the_last_and_rather_one_at_its_end() {
        let new = || Endings {
            waits: Arc::default(),
            others: Arc::default(),
            grouping: None,
            of_told: HashMap::default(),
        };
        let ending = |at_end, ts_ns, id| Ending { at_end, ts_ns, id };
        let (mut one, mut other) = (new(), new());
        one.take(0, ending(true, 5, 1));
        one.take(0, ending(true, 3, 2));
        other.take(0, ending(false, 9, 3));
        other.take(1, ending(false, 1, 4));
        one.merge(other).unwrap();
        assert_eq!((one.of_told[&0].id, one.of_told[&1].id), (1, 4));
    }

    #[test]
    fn samples_of_several_scans_stand_by_thread_and_time() {
        let thread = |node: &str, tid: i64| (Arc::from(node), tid);
        let (mut one, mut other) = (Collected::new(9), Collected::new(9));
        let first = one.thread(thread("a", 7));
        one.take(told(first, 5, 1)).unwrap();
        one.take(told(NO_THREAD, 1, 1)).unwrap();
        let (second, again) = (other.thread(thread("b", 7)), other.thread(thread("a", 7)));
        other.take(told(second, 4, 1)).unwrap();
        other.take(told(again, 3, 1)).unwrap();
        one.merge(other).unwrap();
        let waits = ByThread::of(one);
        let times = |node: &str| -> Vec<i64> {
            let places = waits.places[node][&7].clone();
            waits.told[places].iter().map(|told| told.ts_ns / MS).collect()
        };
        assert_eq!((times("a"), times("b")), (vec![3, 5], vec![4]));
        assert_eq!((waits.told.len(), waits.places.len()), (4, 2));
    }

    #[test]
    fn more_samples_than_are_looked_at_are_too_many() {
        let mut collected = Collected::new(1);
        collected.take(told(0, 1, 1)).unwrap();
        let mut other = Collected::new(1);
        other.take(told(0, 2, 1)).unwrap();
        assert!(matches!(collected.merge(other), Err(QueryError::TooLarge { .. })));
    }
}
