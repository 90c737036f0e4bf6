//! Rows of `samples` in memory: times, and codes of everything that comes again.
//!
//! In: batches that wait for their commit, or columns of files. Out: the same rows, and the order in which they stand in a file. A row is
//! five numbers, whatever it says: what it has in common with others is in a [`Book`], each once. So rows are compared, sorted and
//! written without a look at their texts and ids.

use super::columns::{Values, run_length};
use super::fresh::FreshSamples;
use super::ids::IdMap;
use crate::hash::MixState;
use std::collections::HashMap;
use std::hash::Hash;
use std::ops::{Index, Range};
use std::sync::Arc;

/// Combinations of a file's codes that have a place in an array; where there are more, each row's is looked up.
const MAX_COMBINED: usize = 64 * 1024;

/// Names, each once, by code.
#[derive(Debug, Default)]
pub(super) struct Names {
    codes: HashMap<Arc<str>, u32, foldhash::fast::RandomState>,
    texts: Vec<Arc<str>>,
}

impl Names {
    pub(super) fn code(&mut self, text: &str) -> u32 {
        if let Some(code) = self.codes.get(text) {
            return *code;
        }
        let code = self.texts.len() as u32;
        let text: Arc<str> = text.into();
        self.texts.push(text.clone());
        self.codes.insert(text, code);
        code
    }

    pub(super) fn text(&self, code: u32) -> &str {
        &self.texts[code as usize]
    }

    pub(super) fn len(&self) -> usize {
        self.texts.len()
    }
}

/// Values, each once, by code.
#[derive(Debug)]
pub(super) struct Interned<T> {
    codes: HashMap<T, u32, MixState>,
    values: Vec<T>,
}

impl<T> Default for Interned<T> {
    fn default() -> Self {
        Self {
            codes: HashMap::default(),
            values: Vec::new(),
        }
    }
}

impl<T: Copy + Eq + Hash> Interned<T> {
    pub(super) fn code(&mut self, value: T) -> u32 {
        let next = self.values.len() as u32;
        let code = *self.codes.entry(value).or_insert(next);
        if code == next {
            self.values.push(value);
        }
        code
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }
}

/// Ids, each once, by code: as [`Interned`], for many.
#[derive(Debug, Default)]
pub(super) struct InternedIds {
    codes: IdMap<u32>,
    ids: Vec<i64>,
}

impl InternedIds {
    #[inline]
    pub(super) fn code(&mut self, id: i64) -> u32 {
        let next = self.ids.len() as u32;
        let code = self.codes.get_or_insert(id, next);
        if code == next {
            self.ids.push(id);
        }
        code
    }

    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }
}

impl Index<u32> for InternedIds {
    type Output = i64;

    fn index(&self, code: u32) -> &i64 {
        &self.ids[code as usize]
    }
}

impl<T> Index<u32> for Interned<T> {
    type Output = T;

    fn index(&self, code: u32) -> &T {
        &self.values[code as usize]
    }
}

/// By which rows follow each other in a file, before thread and time. Names by their codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Series {
    pub(super) kind: u32,
    pub(super) service: u32,
    pub(super) id: i64,
}

/// Where a sample comes from: what all samples of a thread have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Origin {
    /// By its code.
    pub(super) series: u32,
    pub(super) node: u32,
    pub(super) thread: u32,
    pub(super) process_id: i64,
    pub(super) tid: Option<i64>,
}

/// What else a sample says beside its time and stack: few are distinct.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Manner {
    pub(super) mode: u32,
    pub(super) cpu: Option<i64>,
    pub(super) value: i64,
}

/// What the codes of rows stand for.
#[derive(Debug, Default)]
pub(super) struct Book {
    pub(super) names: Names,
    pub(super) series: Interned<Series>,
    pub(super) origins: Interned<Origin>,
    pub(super) stacks: InternedIds,
    pub(super) manners: Interned<Manner>,
}

impl Book {
    pub(super) fn series_of(&self, origin: u32) -> Series {
        self.series[self.origins[origin].series]
    }

    /// By which series follow each other in a file.
    pub(super) fn order(&self, series: Series) -> (&str, &str, i64) {
        (self.names.text(series.kind), self.names.text(series.service), series.id)
    }

    /// Entries without names, of which there are few.
    pub(super) fn len(&self) -> usize {
        self.series.len() + self.origins.len() + self.stacks.len() + self.manners.len()
    }

    /// Leaves names only, and returns what the other codes stood for.
    pub(super) fn begin_anew(&mut self) -> Self {
        let names = std::mem::take(&mut self.names);
        let old = std::mem::take(self);
        self.names = names;
        old
    }
}

/// Rows of `samples` by codes of a [`Book`].
#[derive(Debug, Default)]
pub(super) struct Samples {
    pub(super) ts_ns: Vec<i64>,
    pub(super) origins: Vec<u32>,
    pub(super) stacks: Vec<u32>,
    pub(super) manners: Vec<u32>,
}

impl Samples {
    pub(super) fn len(&self) -> usize {
        self.ts_ns.len()
    }

    /// Leaves no row; the memory is kept for the next.
    pub(super) fn clear(&mut self) {
        self.ts_ns.clear();
        self.origins.clear();
        self.stacks.clear();
        self.manners.clear();
    }

    pub(super) fn extend(&mut self, from: &Self, range: Range<usize>) {
        self.ts_ns.extend_from_slice(&from.ts_ns[range.clone()]);
        self.origins.extend_from_slice(&from.origins[range.clone()]);
        self.stacks.extend_from_slice(&from.stacks[range.clone()]);
        self.manners.extend_from_slice(&from.manners[range]);
    }

    /// Gives rows that have codes of another book, with the same names, codes of this one.
    pub(super) fn renew(&mut self, old: &Book, book: &mut Book) {
        for origin in &mut self.origins {
            let mut known = old.origins[*origin];
            known.series = book.series.code(old.series[known.series]);
            *origin = book.origins.code(known);
        }
        for stack in &mut self.stacks {
            *stack = book.stacks.code(old.stacks[*stack]);
        }
        for manner in &mut self.manners {
            *manner = book.manners.code(old.manners[*manner]);
        }
    }

    /// Makes room for so many more.
    pub(super) fn reserve(&mut self, rows: usize) {
        self.ts_ns.reserve_exact(rows);
        self.origins.reserve_exact(rows);
        self.stacks.reserve_exact(rows);
        self.manners.reserve_exact(rows);
    }

    /// Adds rows as they came.
    pub(super) fn add(&mut self, fresh: &FreshSamples, book: &mut Book, recent: &mut Recent) {
        let common = &fresh.common;
        let stacks: Vec<u32> = common.stacks.iter().map(|id| book.stacks.code(*id)).collect();
        let names: Vec<[u32; 3]> = common
            .origins
            .iter()
            .map(|origin| {
                let texts = [common.node(origin), common.service(origin), common.thread(origin)];
                texts.map(|text| book.names.code(text))
            })
            .collect();
        let kinds: Vec<u32> = (0..common.kinds())
            .map(|kind| book.names.code(common.kind(kind as u16)))
            .collect();
        let modes = ["user", "kernel"].map(|mode| book.names.code(mode));
        // The code of each origin with the profile type of the last row that had it.
        let mut origins: Vec<Option<(u16, u32)>> = vec![None; common.origins.len()];
        for row in &fresh.rows {
            let known = &mut origins[row.origin as usize];
            let origin = match *known {
                Some((kind, code)) if kind == row.kind => code,
                _ => {
                    let origin = &common.origins[row.origin as usize];
                    let [node, service, thread] = names[row.origin as usize];
                    let series = book.series.code(Series {
                        kind: kinds[usize::from(row.kind)],
                        service,
                        id: origin.series_id,
                    });
                    let code = book.origins.code(Origin {
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
            let manner = Manner {
                mode: modes[usize::from(row.in_kernel)],
                cpu: row.known_cpu().map(i64::from),
                value: row.value,
            };
            let place = i64::from(row.cpu) << 8 ^ i64::from(manner.mode);
            self.manners
                .push(recent.manners.code(place, manner, || book.manners.code(manner)));
            self.stacks.push(stacks[row.stack as usize]);
            self.ts_ns.push(row.ts_ns);
        }
    }

    /// Rows of one series in the order in which they stand in a file: by thread and time, else as they lie.
    pub(super) fn order(&self, range: Range<usize>, book: &Book, to: &mut Vec<u32>) {
        let tid = |origin: u32| book.origins[origin].tid;
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
            self.by_time(&mut to[from..]);
        }
    }

    /// Sorts rows by time; equal ones stay as they are.
    fn by_time(&self, rows: &mut [u32]) {
        let time = |row: &u32| self.ts_ns[*row as usize];
        // What came in the order of time mostly is, but where one commit ends and the next begins.
        if merge_neighbours(rows, time) {
            return;
        }
        let mut timed: Vec<(i64, u32)> = rows.iter().map(|row| (time(row), *row)).collect();
        // A stable sort finds the runs that are sorted already.
        timed.sort_by_key(|(ts_ns, _)| *ts_ns);
        for (row, (_, sorted)) in rows.iter_mut().zip(timed) {
            *row = sorted;
        }
    }

    /// All rows in the order in which they stand in a file.
    pub(super) fn sorted(&self, book: &Book) -> Vec<u32> {
        let ranks = ranks(book);
        // Counts of each rank, then where the rows of each begin.
        let mut begins = vec![0_u32; ranks.len() + 1];
        for origin in &self.origins {
            begins[ranks[*origin as usize] as usize + 1] += 1;
        }
        for rank in 1..begins.len() {
            begins[rank] += begins[rank - 1];
        }
        let (mut order, mut next) = (vec![0_u32; self.len()], begins.clone());
        for (row, origin) in self.origins.iter().enumerate() {
            let place = &mut next[ranks[*origin as usize] as usize];
            order[*place as usize] = row as u32;
            *place += 1;
        }
        for rank in begins.windows(2) {
            self.by_time(&mut order[rank[0] as usize..rank[1] as usize]);
        }
        order
    }
}

/// Sorts rows of which each stretch that is in order belongs behind the one before but for a few; equal ones stay as they are. False where that
/// would take longer than sorting them: then they are in some order.
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
fn ranks(book: &Book) -> Vec<u32> {
    let mut series: Vec<u32> = (0..book.series.len() as u32).collect();
    series.sort_unstable_by(|a, b| book.order(book.series[*a]).cmp(&book.order(book.series[*b])));
    let mut place = vec![0; series.len()];
    for (at, code) in series.iter().enumerate() {
        place[*code as usize] = at;
    }
    let key = |code: u32| (place[book.origins[code].series as usize], book.origins[code].tid);
    let mut origins: Vec<u32> = (0..book.origins.len() as u32).collect();
    origins.sort_unstable_by_key(|code| key(*code));
    let (mut ranks, mut rank) = (vec![0; origins.len()], 0);
    for (at, code) in origins.iter().enumerate() {
        rank += u32::from(at > 0 && key(origins[at - 1]) != key(*code));
        ranks[*code as usize] = rank;
    }
    ranks
}

/// What came lately, with its code in a [`Book`]: rows of one batch have few CPUs. Of no use when the book is begun anew.
#[derive(Debug, Default)]
pub(super) struct Recent {
    manners: Places<Manner>,
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

/// What the codes of a file's row group are in a [`Book`].
#[derive(Debug, Default)]
pub(super) struct Translation {
    names: [Vec<u32>; 5],
    stacks: Vec<u32>,
    /// The code of each combination of mode, CPU and value; none where there are too many.
    manners: Vec<Option<u32>>,
}

/// Columns of a row group as they are read: codes and what they stand for.
pub(super) struct CodedColumns<'c> {
    pub(super) ts_ns: &'c [i64],
    /// Type, service, node, thread, mode.
    pub(super) names: [(&'c [u32], &'c Values); 5],
    /// Series, process, thread, CPU, value, stack.
    pub(super) numbers: [(&'c [u32], &'c Values); 6],
}

/// A number that no row may lack is not there.
#[derive(Debug)]
pub(super) struct Lacking(pub(super) &'static str);

impl Translation {
    pub(super) fn new(columns: &CodedColumns<'_>, book: &mut Book) -> Self {
        let names = columns.names.map(|(_, values)| {
            let texts: &[String] = match values {
                Values::Texts(texts) => texts,
                Values::Numbers(_) => &[],
            };
            // What is absent is the empty text.
            let all = texts.iter().map(String::as_str).chain([""]);
            all.map(|text| book.names.code(text)).collect()
        });
        let [.., cpus, values, stacks] = columns.numbers.map(|(_, values)| values);
        let combined = columns.names[4].1.distinct() * cpus.distinct() * values.distinct();
        Self {
            names,
            stacks: match stacks {
                Values::Numbers(ids) => ids.iter().map(|id| book.stacks.code(*id)).collect(),
                Values::Texts(_) => Vec::new(),
            },
            manners: vec![None; if combined <= MAX_COMBINED { combined } else { 0 }],
        }
    }

    /// The same for a book that has taken the place of another, with the same names.
    pub(super) fn renew(&mut self, old: &Book, book: &mut Book) {
        for stack in &mut self.stacks {
            *stack = book.stacks.code(old.stacks[*stack]);
        }
        self.manners.fill(None);
    }

    /// Adds the rows of the columns.
    pub(super) fn add(&mut self, columns: &CodedColumns<'_>, book: &mut Book, to: &mut Samples) -> Result<(), Lacking> {
        to.ts_ns.extend_from_slice(columns.ts_ns);
        self.origins(columns, book, to)?;
        let [.., cpus, values, stacks] = columns.numbers;
        let modes = columns.names[4];
        for code in stacks.0 {
            let stack = self.stacks.get(*code as usize);
            to.stacks.push(*stack.ok_or(Lacking("stack_id"))?);
        }
        let (cpu_count, value_count) = (cpus.1.distinct(), values.1.distinct());
        for row in 0..columns.ts_ns.len() {
            let [mode, cpu, value] = [modes.0[row], cpus.0[row], values.0[row]].map(|code| code as usize);
            let known = self.manners.get_mut((mode * cpu_count + cpu) * value_count + value);
            if let Some(Some(code)) = known {
                to.manners.push(*code);
                continue;
            }
            let code = book.manners.code(Manner {
                mode: self.names[4][mode],
                cpu: cpus.1.number(cpu),
                value: values.1.number(value).ok_or(Lacking("value"))?,
            });
            if let Some(known) = known {
                *known = Some(code);
            }
            to.manners.push(code);
        }
        Ok(())
    }

    /// Rows of one thread mostly follow each other: it is looked up once a run.
    fn origins(&self, columns: &CodedColumns<'_>, book: &mut Book, to: &mut Samples) -> Result<(), Lacking> {
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
            let series = book.series.code(Series {
                kind: self.names[0][kinds[at] as usize],
                service: self.names[1][services[at] as usize],
                id: number(series).ok_or(Lacking("series_id"))?,
            });
            let origin = book.origins.code(Origin {
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
            // Stretches of up to sixty rows, each of which begins up to so long before the end of the last; times come more than once.
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
            assert!(!merged || rows == expected, "{overlap}");
            // Whether it was merged or sorted then.
            let mut rows: Vec<u32> = (0..expected.len() as u32).collect();
            samples.by_time(&mut rows);
            assert_eq!(rows, expected, "{overlap}");
        }
        merge_neighbours(&mut [], |_| 0);
    }
}
