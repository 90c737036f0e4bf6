//! Rows of `samples` in memory: times, and codes of everything that comes again.
//!
//! In: batches that wait for their commit, or columns of files. Out: the same rows, and the order in which they stand
//! in a file. A row is five numbers, whatever it says: what it has in common with others is in an [`Interner`], each
//! once. So rows are compared, sorted and written without a look at their texts and ids.

use crate::column::coded::Values;
use crate::column::runs::{begins, run_length};
use crate::store::buffer::arriving::{Amount, FreshSamples, NO_THREAD, NO_WAIT};
use crate::store::buffer::interner::{Interner, SampleAttributes, Series, ThreadKey};
use std::ops::Range;

/// Combinations of a file's codes that have a place in an array; where there are more, each row's is looked up.
const MAX_COMBINED: usize = 64 * 1024;

/// Rows of `samples` by codes of an [`Interner`].
#[derive(Debug, Clone, Default)]
pub(crate) struct Samples {
    pub(crate) ts_ns: Vec<i64>,
    pub(crate) origins: Vec<u32>,
    pub(crate) stacks: Vec<u32>,
    pub(crate) attribute_sets: Vec<u32>,
}

impl Samples {
    pub(crate) fn len(&self) -> usize {
        self.ts_ns.len()
    }

    /// Leaves no row; the memory is kept for the next.
    pub(crate) fn clear(&mut self) {
        self.ts_ns.clear();
        self.origins.clear();
        self.stacks.clear();
        self.attribute_sets.clear();
    }

    /// Removes so many; the memory is kept for the next.
    pub(crate) fn remove_first(&mut self, rows: usize) {
        self.ts_ns.drain(..rows);
        for column in [&mut self.origins, &mut self.stacks, &mut self.attribute_sets] {
            column.drain(..rows);
        }
    }

    pub(crate) fn extend(&mut self, from: &Self, range: Range<usize>) {
        self.ts_ns.extend_from_slice(&from.ts_ns[range.clone()]);
        self.origins.extend_from_slice(&from.origins[range.clone()]);
        self.stacks.extend_from_slice(&from.stacks[range.clone()]);
        self.attribute_sets.extend_from_slice(&from.attribute_sets[range]);
    }

    /// Gives rows that have codes of another interner, with the same names, codes of this one.
    pub(crate) fn renew(&mut self, old: &Interner, interner: &mut Interner) {
        for origin in &mut self.origins {
            let mut known = old.origins[*origin];
            known.series = interner.series.code(old.series[known.series]);
            *origin = interner.origins.code(known);
        }
        for stack in &mut self.stacks {
            *stack = interner.stacks.code(old.stacks[*stack]);
        }
        for attribute_set in &mut self.attribute_sets {
            *attribute_set = interner.attribute_sets.code(old.attribute_sets[*attribute_set]);
        }
    }

    /// Makes room for so many more.
    pub(crate) fn reserve(&mut self, rows: usize) {
        self.ts_ns.reserve_exact(rows);
        self.origins.reserve_exact(rows);
        self.stacks.reserve_exact(rows);
        self.attribute_sets.reserve_exact(rows);
    }

    /// Adds rows as they came.
    pub(crate) fn add(&mut self, fresh: &FreshSamples, interner: &mut Interner, recent: &mut Recent) {
        let common = &fresh.common;
        let stacks: Vec<u32> = common.stacks.iter().map(|id| interner.stacks.code(*id)).collect();
        let names: Vec<[u32; 3]> = common
            .origins
            .iter()
            .map(|origin| {
                let texts = [common.node(origin), common.service(origin), common.thread(origin)];
                texts.map(|text| interner.names.code(text))
            })
            .collect();
        let kinds: Vec<u32> = (0..common.kinds())
            .map(|kind| interner.names.code(common.kind(kind as u16)))
            .collect();
        let modes = ["user", "kernel"].map(|mode| interner.names.code(mode));
        // The code of each origin with the profile type of the last row that had it.
        let mut origins: Vec<Option<(u16, u32)>> = vec![None; common.origins.len()];
        for row in &fresh.rows {
            let known = &mut origins[row.origin as usize];
            let origin = match *known {
                Some((kind, code)) if kind == row.kind => code,
                _ => {
                    let origin = &common.origins[row.origin as usize];
                    let [node, service, thread] = names[row.origin as usize];
                    let series = interner.series.code(Series {
                        kind: kinds[usize::from(row.kind)],
                        service,
                        id: origin.series_id,
                    });
                    let code = interner.origins.code(ThreadKey {
                        series,
                        node,
                        thread,
                        process_id: origin.process_id,
                        tid: origin.tid,
                    });
                    *known = Some((row.kind, code));
                    code
                }
            };
            self.origins.push(origin);
            let attribute_set = SampleAttributes {
                mode: modes[usize::from(row.in_kernel)],
                cpu: row.known_cpu().map(i64::from),
                amount: common.amounts[row.amount as usize],
            };
            let place = i64::from(row.cpu) << 8 ^ i64::from(attribute_set.mode);
            self.attribute_sets.push(
                recent
                    .attribute_sets
                    .code(place, attribute_set, || interner.attribute_sets.code(attribute_set)),
            );
            self.stacks.push(stacks[row.stack as usize]);
            self.ts_ns.push(row.ts_ns);
        }
    }

    /// Puts rows of one series in the order in which they stand in a file: by thread and time, else as they lie.
    /// Called while they are all that is near: of many series at once each column of each row would come from far
    /// away.
    pub(crate) fn order(&mut self, range: Range<usize>, interner: &Interner, scratch: &mut Scratch) {
        scratch.order.clear();
        self.ordered(range.clone(), interner, scratch);
        let order = &scratch.order[..];
        if order.is_sorted() {
            return;
        }
        scratch.times.clear();
        scratch.times.extend(order.iter().map(|row| self.ts_ns[*row as usize]));
        self.ts_ns[range.clone()].copy_from_slice(&scratch.times);
        for column in [&mut self.origins, &mut self.stacks, &mut self.attribute_sets] {
            scratch.codes.clear();
            scratch.codes.extend(order.iter().map(|row| column[*row as usize]));
            column[range.clone()].copy_from_slice(&scratch.codes);
        }
    }

    /// The rows of one series in that order.
    fn ordered(&self, range: Range<usize>, interner: &Interner, scratch: &mut Scratch) {
        let to = &mut scratch.order;
        let tid = |origin: u32| interner.origins[origin].tid;
        let mut threads: Vec<(Option<i64>, Range<usize>)> = Vec::new();
        let mut row = range.start;
        while row < range.end {
            let (begin, origin) = (row, self.origins[row]);
            row += self.origins[row..range.end]
                .iter()
                .take_while(|code| **code == origin)
                .count();
            match threads.last_mut() {
                Some((last, rows)) if *last == tid(origin) => rows.end = row,
                _ => threads.push((tid(origin), begin..row)),
            }
        }
        threads.sort_by_key(|(tid, _)| *tid);
        for same in threads.chunk_by(|(a, _), (b, _)| a == b) {
            let from = to.len();
            to.extend(same.iter().flat_map(|(_, rows)| rows.start as u32..rows.end as u32));
            self.by_time(&mut to[from..], &mut scratch.by_time);
        }
    }

    /// Sorts rows by time; equal ones stay as they are.
    fn by_time(&self, rows: &mut [u32], by_time: &mut ByTime) {
        let time = |row: &u32| self.ts_ns[*row as usize];
        // What came in the order of time mostly is, but where one commit ends and the next begins.
        if merge_neighbours(rows, time) {
            return;
        }
        if by_time.sort(rows.iter().map(time)) {
            let sorted: Vec<u32> = by_time.order().map(|place| rows[place]).collect();
            rows.copy_from_slice(&sorted);
        } else {
            rows.sort_by_key(time);
        }
    }

    /// Puts all rows in the order in which they stand in a file: by series and thread, then by time; equal ones stay
    /// as they are. A row is moved to its thread's place once, as a whole, and sorted where it lies then: rows that
    /// come are scattered over all threads, and to fetch each column of each from where it came costs more than all
    /// the rest.
    pub(crate) fn sort(&mut self, interner: &Interner) {
        let ranks = ranks(interner);
        let rank = |origin: u32| ranks[origin as usize];
        // Where the rows of each rank begin; then, when they are there, where they end.
        let mut next = begins(self.origins.iter().map(|origin| rank(*origin)), ranks.len());
        let mut rows = vec![Row::default(); self.len()];
        for row in 0..self.len() {
            let place = &mut next[rank(self.origins[row]) as usize];
            rows[*place as usize] = Row {
                ts_ns: self.ts_ns[row],
                origin: self.origins[row],
                stack: self.stacks[row],
                attribute_set: self.attribute_sets[row],
            };
            *place += 1;
        }
        self.clear();
        let (mut rest, mut begin, mut by_time) = (&mut rows[..], 0, ByTime::default());
        for end in next {
            let (of_rank, behind) = std::mem::take(&mut rest).split_at_mut((end - begin) as usize);
            (rest, begin) = (behind, end);
            if by_time.sort(of_rank.iter().map(|row| row.ts_ns)) {
                self.push(by_time.order().map(|place| &of_rank[place]));
            } else {
                of_rank.sort_by_key(|row| row.ts_ns);
                self.push(of_rank.iter());
            }
        }
    }

    fn push<'r>(&mut self, rows: impl Iterator<Item = &'r Row> + Clone) {
        self.ts_ns.extend(rows.clone().map(|row| row.ts_ns));
        self.origins.extend(rows.clone().map(|row| row.origin));
        self.stacks.extend(rows.clone().map(|row| row.stack));
        self.attribute_sets.extend(rows.map(|row| row.attribute_set));
    }
}

/// What [`Samples::order`] needs for a while.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    order: Vec<u32>,
    by_time: ByTime,
    times: Vec<i64>,
    codes: Vec<u32>,
}

/// Puts times in order by numbers that hold a time and its place: half as long as rows, and nothing else is moved.
#[derive(Debug, Default)]
struct ByTime {
    keys: Vec<u64>,
    place_bits: u32,
}

/// Fewer times are sorted sooner where they lie.
const LEAST_KEYS: usize = 64;

impl ByTime {
    /// False where they are few, or too far apart for their places to fit beside them.
    fn sort(&mut self, times: impl ExactSizeIterator<Item = i64> + Clone) -> bool {
        let bounds = times.clone().min().zip(times.clone().max());
        let Some((least, most)) = bounds.filter(|_| times.len() >= LEAST_KEYS) else {
            return false;
        };
        self.place_bits = usize::BITS - times.len().leading_zeros();
        let above = |ts_ns: i64| ts_ns.wrapping_sub(least) as u64;
        if above(most).leading_zeros() < self.place_bits {
            return false;
        }
        self.keys.clear();
        let keys = times.enumerate();
        self.keys
            .extend(keys.map(|(place, ts_ns)| above(ts_ns) << self.place_bits | place as u64));
        // A stable sort, although no two are equal: it finds the runs that are sorted already.
        self.keys.sort();
        true
    }

    /// The places of the times in their order.
    fn order(&self) -> impl Iterator<Item = usize> + Clone {
        let mask = (1 << self.place_bits) - 1;
        self.keys.iter().map(move |key| (key & mask) as usize)
    }
}

/// A row by itself.
#[derive(Debug, Clone, Copy, Default)]
struct Row {
    ts_ns: i64,
    origin: u32,
    stack: u32,
    attribute_set: u32,
}

/// Sorts rows of which each stretch that is in order belongs behind the one before but for a few; equal ones stay as
/// they are. False where that would take longer than sorting them: then they are in some order.
fn merge_neighbours(rows: &mut [u32], time: impl Fn(&u32) -> i64) -> bool {
    let (mut room, mut aside) = (2 * rows.len(), Vec::new());
    let mut at = 1;
    while at < rows.len() {
        if time(&rows[at - 1]) <= time(&rows[at]) {
            at += 1;
            continue;
        }
        let end = at
            + 1
            + rows[at..]
                .windows(2)
                .take_while(|pair| time(&pair[0]) <= time(&pair[1]))
                .count();
        let from = rows[..at].partition_point(|row| time(row) <= time(&rows[at]));
        // What is behind the last of those before stays where it is.
        let until = at + rows[at..end].partition_point(|row| time(row) < time(&rows[at - 1]));
        match room.checked_sub(until - from) {
            Some(left) => room = left,
            None => return false,
        }
        aside.clear();
        aside.extend_from_slice(&rows[from..at]);
        let (mut next, mut left) = (at, aside.iter().peekable());
        for place in from..until {
            match left.peek() {
                Some(row) if next == until || time(row) <= time(&rows[next]) => {
                    rows[place] = **row;
                    left.next();
                }
                _ => {
                    rows[place] = rows[next];
                    next += 1;
                }
            }
        }
        at = end;
    }
    true
}

/// Of each origin its place in the order of files; the same where series and thread are.
fn ranks(interner: &Interner) -> Vec<u32> {
    let mut series: Vec<u32> = (0..interner.series.len() as u32).collect();
    series.sort_unstable_by(|a, b| {
        interner
            .order(interner.series[*a])
            .cmp(&interner.order(interner.series[*b]))
    });
    let mut place = vec![0; series.len()];
    for (at, code) in series.iter().enumerate() {
        place[*code as usize] = at;
    }
    let key = |code: u32| {
        (
            place[interner.origins[code].series as usize],
            interner.origins[code].tid,
        )
    };
    let mut origins: Vec<u32> = (0..interner.origins.len() as u32).collect();
    origins.sort_unstable_by_key(|code| key(*code));
    let (mut ranks, mut rank) = (vec![0; origins.len()], 0);
    for (at, code) in origins.iter().enumerate() {
        rank += u32::from(at > 0 && key(origins[at - 1]) != key(*code));
        ranks[*code as usize] = rank;
    }
    ranks
}

/// What came lately, with its code in an [`Interner`]: rows of one batch have few CPUs. Of no use when the interner is
/// begun anew.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    attribute_sets: Places<SampleAttributes>,
}

/// Values with their codes, each in a place that another with the same place takes from it.
#[derive(Debug)]
struct Places<T>(Vec<Option<(T, u32)>>);

const PLACE_BITS: u32 = 10;

impl<T: Copy> Default for Places<T> {
    fn default() -> Self {
        Self(vec![None; 1 << PLACE_BITS])
    }
}

impl<T: Copy + Eq> Places<T> {
    /// The code of a value; `code` looks it up where it is not the last in its place.
    #[inline]
    fn code(&mut self, place: i64, value: T, code: impl FnOnce() -> u32) -> u32 {
        let place = (place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - PLACE_BITS);
        match &mut self.0[place as usize] {
            Some((known, code)) if *known == value => *code,
            place => {
                let code = code();
                *place = Some((value, code));
                code
            }
        }
    }
}

/// What the codes of a file's row group are in an [`Interner`].
#[derive(Debug, Default)]
pub(crate) struct Translation {
    names: [Vec<u32>; 5],
    stacks: Vec<u32>,
    /// The code of each combination of mode, CPU and value, of rows that are no waits; none where there are too many.
    attribute_sets: Vec<Option<u32>>,
}

/// Columns of a row group as they are read: codes and what they stand for.
pub(crate) struct CodedColumns<'c> {
    pub(crate) ts_ns: &'c [i64],
    /// Type, service, node, thread, mode.
    pub(crate) names: [(&'c [u32], &'c Values); 5],
    /// Series, process, thread, CPU, value, length of the wait, thread that was woken, stack.
    pub(crate) numbers: [(&'c [u32], &'c Values); 8],
}

/// A number that no row may lack is not there.
#[derive(Debug)]
pub(crate) struct Lacking(pub(crate) &'static str);

impl Translation {
    pub(crate) fn new(columns: &CodedColumns<'_>, interner: &mut Interner) -> Self {
        let names = columns.names.map(|(_, values)| {
            let texts: &[String] = match values {
                Values::Texts(texts) => texts,
                Values::Numbers(_) => &[],
            };
            // What is absent is the empty text.
            let all = texts.iter().map(String::as_str).chain([""]);
            all.map(|text| interner.names.code(text)).collect()
        });
        let [.., cpus, values, _, _, stacks] = columns.numbers.map(|(_, values)| values);
        let combined = columns.names[4].1.distinct() * cpus.distinct() * values.distinct();
        Self {
            names,
            stacks: match stacks {
                Values::Numbers(ids) => ids.iter().map(|id| interner.stacks.code(*id)).collect(),
                Values::Texts(_) => Vec::new(),
            },
            attribute_sets: vec![None; if combined <= MAX_COMBINED { combined } else { 0 }],
        }
    }

    /// The same for an interner that has taken the place of another, with the same names.
    pub(crate) fn renew(&mut self, old: &Interner, interner: &mut Interner) {
        for stack in &mut self.stacks {
            *stack = interner.stacks.code(old.stacks[*stack]);
        }
        self.attribute_sets.fill(None);
    }

    /// Adds the rows of the columns.
    pub(crate) fn add(
        &mut self,
        columns: &CodedColumns<'_>,
        interner: &mut Interner,
        to: &mut Samples,
    ) -> Result<(), Lacking> {
        to.ts_ns.extend_from_slice(columns.ts_ns);
        self.origins(columns, interner, to)?;
        let [.., cpus, values, waits, wokens, stacks] = columns.numbers;
        let modes = columns.names[4];
        for code in stacks.0 {
            let stack = self.stacks.get(*code as usize);
            to.stacks.push(*stack.ok_or(Lacking("stack_id"))?);
        }
        let (cpu_count, value_count) = (cpus.1.distinct(), values.1.distinct());
        for row in 0..columns.ts_ns.len() {
            let [mode, cpu, value] = [modes.0[row], cpus.0[row], values.0[row]].map(|code| code as usize);
            let wait = waits.1.number(waits.0[row] as usize);
            let woken = wokens.1.number(wokens.0[row] as usize);
            let known = match (wait, woken) {
                (None, None) => self
                    .attribute_sets
                    .get_mut((mode * cpu_count + cpu) * value_count + value),
                _ => None,
            };
            if let Some(Some(code)) = known {
                to.attribute_sets.push(*code);
                continue;
            }
            let code = interner.attribute_sets.code(SampleAttributes {
                mode: self.names[4][mode],
                cpu: cpus.1.number(cpu),
                amount: Amount {
                    value: values.1.number(value).ok_or(Lacking("value"))?,
                    wait_ns: wait.unwrap_or(NO_WAIT),
                    woken_tid: woken.unwrap_or(NO_THREAD),
                },
            });
            if let Some(known) = known {
                *known = Some(code);
            }
            to.attribute_sets.push(code);
        }
        Ok(())
    }

    /// Rows of one thread mostly follow each other: it is looked up once a run.
    fn origins(&self, columns: &CodedColumns<'_>, interner: &mut Interner, to: &mut Samples) -> Result<(), Lacking> {
        let [kinds, services, nodes, threads, _] = columns.names.map(|(codes, _)| codes);
        let [series, processes, tids, ..] = columns.numbers;
        let all = [kinds, services, nodes, threads, series.0, processes.0, tids.0];
        let (mut at, rows) = (0, columns.ts_ns.len());
        while at < rows {
            let end = all.iter().fold(rows, |end, codes| {
                let first = codes[at];
                at + run_length(&codes[at..end], |code| code == first)
            });
            let number = |(codes, values): (&[u32], &Values)| values.number(codes[at] as usize);
            let series = interner.series.code(Series {
                kind: self.names[0][kinds[at] as usize],
                service: self.names[1][services[at] as usize],
                id: number(series).ok_or(Lacking("series_id"))?,
            });
            let origin = interner.origins.code(ThreadKey {
                series,
                node: self.names[2][nodes[at] as usize],
                thread: self.names[3][threads[at] as usize],
                process_id: number(processes).ok_or(Lacking("process_id"))?,
                tid: number(tids),
            });
            to.origins.resize(to.origins.len() + end - at, origin);
            at = end;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_that_overlap_a_little_are_merged_and_others_left_to_a_sort() {
        let mut state = 7_u64;
        let mut below = |end: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % end
        };
        for overlap in [0, 1, 3, 40, 5000] {
            // Stretches of up to sixty rows, each of which begins up to so long before the end of the last; times
            // come more than once.
            let (mut times, mut begin): (Vec<i64>, i64) = (Vec::new(), 0);
            for _ in 0..200 {
                let mut stretch: Vec<i64> = (0..below(60)).map(|_| begin + below(50) as i64).collect();
                stretch.sort_unstable();
                times.extend(&stretch);
                begin += 50 - below(overlap + 1) as i64;
            }
            let mut rows: Vec<u32> = (0..times.len() as u32).collect();
            let mut expected = rows.clone();
            expected.sort_by_key(|row| times[*row as usize]);
            let merged = merge_neighbours(&mut rows, |row| times[*row as usize]);
            assert!(overlap == 40 || merged == (overlap < 5000), "{overlap}");
            let samples = Samples {
                ts_ns: times,
                ..Samples::default()
            };
            let mut by_time = ByTime::default();
            assert!(!merged || rows == expected, "{overlap}");
            // Whether it was merged or sorted then.
            let mut rows: Vec<u32> = (0..expected.len() as u32).collect();
            samples.by_time(&mut rows, &mut by_time);
            assert_eq!(rows, expected, "{overlap}");
        }
        merge_neighbours(&mut [], |_| 0);
    }

    #[test]
    fn times_are_put_in_order_beside_their_places_where_both_fit() {
        let mut by_time = ByTime::default();
        let few: Vec<i64> = (0..LEAST_KEYS as i64 - 1).collect();
        assert!(!by_time.sort(few.iter().copied()));
        for (apart, fits) in [
            (0, true),
            (7, true),
            (1 << 40, true),
            (1 << 50, false),
            (i64::MAX / 500, false),
        ] {
            // Each time comes three times.
            let times: Vec<i64> = (0..900_i64).map(|row| row * 7 % 300 * apart - apart).collect();
            assert_eq!(by_time.sort(times.iter().copied()), fits, "{apart}");
            if fits {
                let mut expected: Vec<usize> = (0..times.len()).collect();
                expected.sort_by_key(|row| times[*row]);
                assert_eq!(by_time.order().collect::<Vec<_>>(), expected, "{apart}");
            }
        }
    }
}
