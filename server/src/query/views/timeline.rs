//! Samples one by one, in the order of time; and what ran on a CPU shortly before samples with a given frame.

mod sent;

use crate::column::coded::{CodedColumn, Projection};
use crate::hash::MixState;
use crate::label::Label;
use crate::profile_type::WAITS;
use crate::query::ask::question::Question;
use crate::query::ask::selector::Selector;
use crate::query::ask::time::Window;
use crate::query::count::scan::{Accumulator, Rows};
use crate::query::count::stack_counts::StackCounts;
use crate::query::limits::error::QueryError;
use crate::query::limits::parallel::blocking;
use crate::query::plan::columns::{TIMES, codes};
use crate::query::plan::days::Days;
use crate::query::plan::resolution::TimeResolution;
use crate::query::plan::scope::scope;
use crate::query::plan::shares::counting::Counting;
use crate::query::plan::steps::Steps;
use crate::query::tree::frame::Stacks;
use crate::query::tree::nodes::{Shape, Tree};
use crate::query::tree::stack_cache::ONE_TREE;
use crate::query::views::by_label::values_by_id;
use crate::query::views::engine::Engine;
use crate::query::views::flamegraph::{Flamegraph, Side, View, build};
use crate::query::views::matching::{FrameMatch, has_match};
use crate::query::views::selected::count_selected;
use crate::query::views::selected::senders::observe;
use crate::query::views::selected::spread::count_spread;
use crate::query::views::waits::of_series::{ASLEEP, CLASS, STATE, of_series, of_type};
use crate::query::views::waits::wakers::{Ends, Waker, around_waits, wakers};
use crate::store::Snapshot;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

/// Most samples of an answer.
pub const MAX_SAMPLES: usize = 100_000;
/// Most samples that may be searched for.
const MAX_HITS: usize = 1_000_000;

/// What is the same for many samples.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lane {
    pub node: Arc<str>,
    /// None: the sender does not say.
    pub cpu: Option<i64>,
}

/// One sample.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimedSample {
    /// Nanoseconds since the Unix epoch.
    pub ts_ns: i64,
    /// Where it was taken.
    pub lane: Lane,
    /// Thread id; none where the sender does not say.
    pub tid: Option<i64>,
    /// Key of its stack in `stacks`.
    pub stack_id: i64,
    /// Key of its labels in `series`.
    pub series_id: i64,
    /// Key of its process in `processes`.
    pub process_id: i64,
    /// Name of the thread.
    pub thread: Arc<str>,
    /// `user` or `kernel`.
    pub mode: Arc<str>,
    /// Time that it stands for, in nanoseconds.
    pub value_ns: i64,
    /// Its type, as an index of those of the answer.
    pub profile: u8,
    /// How long the wait itself was; none where that is not said.
    pub wait_ns: Option<i64>,
}

/// Samples in the order of time.
#[derive(Debug)]
pub struct Timeline {
    /// The question that was answered.
    pub question: Question,
    /// The samples; all other columns are in the same order.
    pub moments: Vec<TimedSample>,
    /// Of each sample.
    pub services: Vec<Arc<str>>,
    /// Of each sample; empty: not known.
    pub tgids: Vec<Arc<str>>,
    /// Where waits are among the samples.
    pub waits: Option<Waits>,
    /// The tree of their stacks, and then of those who ended waits; a sample's stack is the path to its node.
    pub tree: Tree,
    /// No sample was left out: otherwise these are the earliest.
    pub complete: bool,
}

/// What tells samples of several types apart.
#[derive(Debug)]
pub struct Waits {
    /// The types that were looked for.
    pub profiles: Vec<String>,
    /// Of each sample what was waited for; empty where that is not said.
    pub classes: Vec<Arc<str>>,
    /// Of each sample how the wait began.
    pub states: Vec<Arc<str>>,
    /// Who ended them, where that was sampled.
    pub wakers: Vec<Waker>,
}

/// The earliest samples of a selection.
#[derive(Debug, Clone)]
pub(crate) struct Earliest {
    limit: usize,
    /// The type of what it takes.
    profile: u8,
    /// The latest on top.
    moments: BinaryHeap<TimedSample>,
    complete: bool,
}

/// The texts of a column's codes, each allocated once.
fn texts(codes: &CodedColumn) -> Vec<Arc<str>> {
    (0..codes.distinct()).map(|code| codes.text(code).into()).collect()
}

impl Earliest {
    /// Of at most so many, none of them yet.
    pub(crate) fn new(limit: usize, profile: u8) -> Earliest {
        Earliest {
            limit,
            profile,
            moments: BinaryHeap::new(),
            complete: true,
        }
    }

    fn take(&mut self, moment: TimedSample) {
        if self.moments.len() < self.limit {
            self.moments.push(moment);
            return;
        }
        self.complete = false;
        if self.moments.peek().is_some_and(|latest| moment < *latest) {
            self.moments.pop();
            self.moments.push(moment);
        }
    }
}

impl Accumulator for Earliest {
    fn columns(&self) -> Vec<Projection> {
        let names = [
            "node",
            "cpu",
            "tid",
            "stack_id",
            "series_id",
            "process_id",
            "thread",
            "mode",
            "value",
            "wait_ns",
        ];
        names.into_iter().map(codes).chain([TIMES]).collect()
    }

    fn when(&self) -> TimeResolution {
        TimeResolution::Exact
    }

    fn add(&mut self, rows: &Rows) -> Result<(), QueryError> {
        let column = |index| rows.codes(index);
        let [node, cpu, tid, stack, series] = [column(0)?, column(1)?, column(2)?, column(3)?, column(4)?];
        let [process, thread, mode, value, wait] = [column(5)?, column(6)?, column(7)?, column(8)?, column(9)?];
        let (nodes, threads, modes) = (texts(node), texts(thread), texts(mode));
        for (row, ts_ns) in rows.numbers(10)?.iter().enumerate() {
            // Of a long window nearly all samples are later than all that are kept.
            if self.moments.len() == self.limit && self.moments.peek().is_some_and(|latest| latest.ts_ns < *ts_ns) {
                self.complete = false;
                continue;
            }
            let number = |codes: &CodedColumn| codes.number(codes.codes.at(row) as usize);
            self.take(TimedSample {
                ts_ns: *ts_ns,
                lane: Lane {
                    node: nodes[node.codes.at(row) as usize].clone(),
                    cpu: number(cpu),
                },
                tid: number(tid),
                stack_id: number(stack).unwrap_or_default(),
                series_id: number(series).unwrap_or_default(),
                process_id: number(process).unwrap_or_default(),
                thread: threads[thread.codes.at(row) as usize].clone(),
                mode: modes[mode.codes.at(row) as usize].clone(),
                value_ns: number(value).unwrap_or_default(),
                profile: self.profile,
                wait_ns: number(wait),
            });
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.moments.capacity() * size_of::<TimedSample>()
    }

    fn merge(&mut self, other: Self) -> Result<(), QueryError> {
        self.complete &= other.complete;
        for moment in other.moments {
            self.take(moment);
        }
        Ok(())
    }
}

/// Answers with the first `limit` samples of the window, at most [`MAX_SAMPLES`]; with those of waits, where they are
/// wanted.
pub async fn timeline(
    engine: &Engine,
    snapshot: &Snapshot,
    question: Question,
    (limit, with_waits): (usize, bool),
) -> Result<Timeline, QueryError> {
    let limit = limit.clamp(1, MAX_SAMPLES);
    let days = Days::of(if with_waits {
        around_waits(question.window)
    } else {
        question.window
    });
    let mut asked = vec![question.clone()];
    if with_waits {
        let others = WAITS.into_iter().filter(|profile| *profile != question.profile);
        asked.extend(others.map(|profile| of_type(&question, profile)));
    }
    let new = |profile| Earliest::new(limit, profile);
    let (mut earliest, mut held) = (new(0), Vec::new());
    for (profile, of_type) in (0..).zip(&asked) {
        let selected = scope(snapshot, of_type).await?;
        let (counting, new) = (Counting::Earliest { limit, profile }, || new(profile));
        let (found, of_found) = count_spread(&engine.spread, snapshot, of_type, &selected, counting, new).await?;
        earliest.merge(found)?;
        held.push(of_found);
    }
    let complete = earliest.complete;
    let moments = earliest.moments.into_sorted_vec();
    let wakers = match asked.iter().position(|asked| asked.profile == ASLEEP) {
        Some(asleep) if with_waits => wakers(snapshot, &question, ends(&moments, asleep)).await?,
        _ => Vec::new(),
    };
    let mut ids: Vec<i64> = moments.iter().map(|moment| moment.stack_id).collect();
    ids.extend(wakers.iter().map(|waker| waker.stack_id));
    let leaves = engine
        .dictionary(&question)
        .leaves(snapshot, &days, &ids, ONE_TREE)
        .await?;
    let (services, tgids) = tokio::try_join!(
        values_by_id(snapshot, &days, Label::Service),
        values_by_id(snapshot, &days, Label::Tgid)
    )?;
    let unknown: Arc<str> = "".into();
    let of = |names: &HashMap<i64, Arc<str>, MixState>, id: i64| names.get(&id).unwrap_or(&unknown).clone();
    let waits = match with_waits {
        false => None,
        true => {
            let (classes, states) =
                tokio::try_join!(of_series(snapshot, &days, CLASS), of_series(snapshot, &days, STATE))?;
            Some(Waits {
                profiles: asked.into_iter().map(|question| question.profile).collect(),
                classes: moments.iter().map(|moment| of(&classes, moment.series_id)).collect(),
                states: moments.iter().map(|moment| of(&states, moment.series_id)).collect(),
                wakers,
            })
        }
    };
    Ok(Timeline {
        services: moments.iter().map(|moment| of(&services, moment.series_id)).collect(),
        tgids: moments.iter().map(|moment| of(&tgids, moment.process_id)).collect(),
        tree: leaves.tree(&Shape::default(), true),
        waits,
        question,
        moments,
        complete,
    })
}

/// Waits of threads that slept, by the place of their type among those that were asked for.
fn ends(moments: &[TimedSample], asleep: usize) -> Ends {
    let mut ends = Ends::default();
    for (sample, moment) in (0..).zip(moments) {
        if usize::from(moment.profile) == asleep
            && let Some(tid) = moment.tid
        {
            ends.add((&moment.lane.node, tid), moment.ts_ns, moment.wait_ns, sample);
        }
    }
    ends
}

/// Where and when samples of each stack were taken.
#[derive(Debug, Default)]
struct LaneHits {
    lanes: Vec<Lane>,
    index: HashMap<Lane, u32>,
    /// Time, lane and stack.
    hits: Vec<(i64, u32, i64)>,
}

impl LaneHits {
    fn lane(&mut self, lane: Lane) -> u32 {
        let next = self.lanes.len() as u32;
        let index = *self.index.entry(lane.clone()).or_insert(next);
        if index == next {
            self.lanes.push(lane);
        }
        index
    }

    fn take(&mut self, hits: impl Iterator<Item = (i64, u32, i64)>) -> Result<(), QueryError> {
        for hit in hits {
            if self.hits.len() == MAX_HITS {
                return Err(QueryError::too_large(
                    format!("more than {MAX_HITS} samples are selected to look before"),
                    "ask for a shorter window or a narrower selector",
                ));
            }
            self.hits.push(hit);
        }
        Ok(())
    }
}

/// Lanes of the pairs of codes that rows have.
#[derive(Debug, Default)]
struct LaneOfCodes(HashMap<(u32, u32), u32, MixState>);

impl LaneOfCodes {
    fn of(&mut self, node: &CodedColumn, cpu: &CodedColumn, row: usize, mut lane: impl FnMut(Lane) -> u32) -> u32 {
        let (node_code, cpu_code) = (node.codes.at(row), cpu.codes.at(row));
        *self.0.entry((node_code, cpu_code)).or_insert_with(|| {
            lane(Lane {
                node: node.text(node_code as usize).into(),
                cpu: cpu.number(cpu_code as usize),
            })
        })
    }
}

impl Accumulator for LaneHits {
    fn columns(&self) -> Vec<Projection> {
        vec![codes("node"), codes("cpu"), codes("stack_id"), TIMES]
    }

    fn when(&self) -> TimeResolution {
        TimeResolution::Exact
    }

    fn add(&mut self, rows: &Rows) -> Result<(), QueryError> {
        let (node, cpu, stack) = (rows.codes(0)?, rows.codes(1)?, rows.codes(2)?);
        let mut known = LaneOfCodes::default();
        let mut hits = Vec::with_capacity(node.codes.len());
        for (row, ts_ns) in rows.numbers(3)?.iter().enumerate() {
            let lane = known.of(node, cpu, row, |lane| self.lane(lane));
            hits.push((
                *ts_ns,
                lane,
                stack.number(stack.codes.at(row) as usize).unwrap_or_default(),
            ));
        }
        self.take(hits.into_iter())
    }

    fn bytes(&self) -> usize {
        self.hits.capacity() * size_of::<(i64, u32, i64)>()
    }

    fn merge(&mut self, other: Self) -> Result<(), QueryError> {
        let lanes: Vec<u32> = other.lanes.into_iter().map(|lane| self.lane(lane)).collect();
        self.take(
            other
                .hits
                .into_iter()
                .map(|(ts_ns, lane, id)| (ts_ns, lanes[lane as usize], id)),
        )
    }
}

/// Times by lane, each in order.
type TimesByLane = HashMap<Lane, Vec<i64>>;

/// Samples on a lane shortly before one of its moments, by stack.
#[derive(Debug)]
struct Before {
    counts: StackCounts,
    moments: Arc<TimesByLane>,
    before_ns: i64,
}

impl Before {
    fn is_before(&self, lane: &[i64], ts_ns: i64) -> bool {
        let next = lane.partition_point(|moment| *moment <= ts_ns);
        lane.get(next).is_some_and(|moment| moment - ts_ns <= self.before_ns)
    }
}

impl Accumulator for Before {
    fn columns(&self) -> Vec<Projection> {
        let mut columns = self.counts.columns();
        columns.extend([codes("node"), codes("cpu"), TIMES]);
        columns
    }

    fn when(&self) -> TimeResolution {
        TimeResolution::Exact
    }

    fn add(&mut self, rows: &Rows) -> Result<(), QueryError> {
        let at = self.counts.columns().len();
        let (node, cpu, times) = (rows.codes(at)?, rows.codes(at + 1)?, rows.numbers(at + 2)?);
        let (mut lanes, mut known) = (Vec::new(), LaneOfCodes::default());
        let moments = self.moments.clone();
        let mut keep = Vec::with_capacity(times.len());
        for (row, ts_ns) in times.iter().enumerate() {
            let lane = known.of(node, cpu, row, |lane| {
                lanes.push(moments.get(&lane).map_or(&[][..], Vec::as_slice));
                lanes.len() as u32 - 1
            });
            keep.push(self.is_before(lanes[lane as usize], *ts_ns));
        }
        self.counts.add(&rows.only(&keep))
    }

    fn bytes(&self) -> usize {
        self.counts.bytes()
    }

    fn merge(&mut self, other: Self) -> Result<(), QueryError> {
        self.counts.merge(other.counts)
    }
}

/// The tree of what ran on the same CPU up to `before_ns` before each selected sample whose stack has a matching
/// frame: samples of everything there, each counted once.
pub async fn before(
    engine: &Engine,
    snapshot: &Snapshot,
    question: Question,
    wanted: &FrameMatch,
    before_ns: i64,
    view: View,
) -> Result<Flamegraph, QueryError> {
    let days = Days::of(question.window);
    let selected = scope(snapshot, &question).await?;
    let (lane_hits, _held) = count_selected(snapshot, &question, &selected, LaneHits::default).await?;
    let mut ids: Vec<i64> = lane_hits.hits.iter().map(|(_, _, id)| *id).collect();
    ids.sort_unstable();
    ids.dedup();
    let leaves = engine
        .dictionary(&question)
        .leaves(snapshot, &days, &ids, ONE_TREE)
        .await?;
    let wanted = wanted.clone();
    let moments = blocking(move || {
        let is_hit = has_match(&leaves, &wanted);
        let mut moments = TimesByLane::new();
        for (ts_ns, lane, id) in &lane_hits.hits {
            if ids.binary_search(id).is_ok_and(|at| is_hit[at]) {
                let lane = &lane_hits.lanes[*lane as usize];
                moments.entry(lane.clone()).or_default().push(*ts_ns);
            }
        }
        for times in moments.values_mut() {
            times.sort_unstable();
        }
        Arc::new(moments)
    })
    .await?;
    let around = Question {
        profile: question.profile.clone(),
        selector: Selector::default(),
        window: Window {
            from_ns: question.window.from_ns.saturating_sub(before_ns).max(0),
            until_ns: question.window.until_ns,
        },
        except: None,
        unit: question.unit.clone(),
        runtime_frames: question.runtime_frames,
        values: question.values,
        lengths: question.lengths,
    };
    let (steps, limit) = (Steps::one(around.window), engine.limits().stacks);
    let everything = scope(snapshot, &around).await?;
    let kind = engine.kind(snapshot, &question).await?;
    let new = || Before {
        counts: StackCounts::new(steps, None, limit),
        moments: moments.clone(),
        before_ns,
    };
    let ((found, held), exposure) = tokio::try_join!(
        count_selected(snapshot, &around, &everything, new),
        observe(snapshot, &question, Steps::one(question.window), kind.marked)
    )?;
    let counts = found.counts.weighed(&kind.unit);
    let exposure = exposure.with_samples(counts.periods.samples, Steps::one(question.window));
    let days = Days::of(around.window);
    let leaves = engine
        .dictionary(&question)
        .leaves(snapshot, &days, &counts.ids, ONE_TREE)
        .await?;
    let side = Side {
        question,
        counts,
        exposure,
        _held: Arc::new(held),
    };
    blocking(move || build(&side, &leaves, Stacks::default(), view)).await?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(ts_ns: i64) -> TimedSample {
        TimedSample {
            ts_ns,
            lane: Lane {
                node: "n".into(),
                cpu: Some(0),
            },
            tid: None,
            stack_id: 1,
            series_id: 1,
            process_id: 1,
            thread: "t".into(),
            mode: "user".into(),
            value_ns: 50,
            profile: 0,
            wait_ns: None,
        }
    }

    fn earliest(limit: usize, times: &[i64]) -> Earliest {
        let mut earliest = Earliest::new(limit, 0);
        for ts_ns in times {
            earliest.take(moment(*ts_ns));
        }
        earliest
    }

    #[test]
    fn the_earliest_stay_in_whatever_order_they_come() {
        let times = |earliest: Earliest| -> Vec<i64> {
            earliest
                .moments
                .into_sorted_vec()
                .iter()
                .map(|moment| moment.ts_ns)
                .collect()
        };
        let mut a = earliest(3, &[9, 2, 7, 5, 1]);
        assert!(!a.complete);
        a.merge(earliest(3, &[3, 8])).unwrap();
        assert_eq!(times(a), [1, 2, 3]);
        let all = earliest(3, &[2, 1, 3]);
        assert!(all.complete);
        assert_eq!(times(all), [1, 2, 3]);
    }

    #[test]
    fn before_means_before_and_not_at_or_after() {
        let before = Before {
            counts: StackCounts::new(
                Steps::one(Window {
                    from_ns: 0,
                    until_ns: 100,
                }),
                None,
                1,
            ),
            moments: Arc::default(),
            before_ns: 10,
        };
        let lane = [20, 50];
        let told: Vec<i64> = (0..60).filter(|ts_ns| before.is_before(&lane, *ts_ns)).collect();
        let expected: Vec<i64> = (10..20).chain(40..50).collect();
        assert_eq!(told, expected);
    }
}
