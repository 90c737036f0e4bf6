//! Gathers rows of all tables and makes record batches of them, one per partition.

use crate::hash::MixState;
use crate::ingest::error::IngestError;
use crate::ingest::rows::frames::{Dictionary, Frame, Stack};
use crate::ingest::rows::types::{SenderKind, TypeRow};
use crate::ingest::wire::allocation::AllocationBudget;
use crate::label::SERIES_LABELS;
use crate::store::{Amount, Common, FreshSample, FreshSamples, HOUR_NS, MAX_TYPES, NO_CPU, Rows, Table, day, hour};
use arrow::array::{
    ArrayRef, BooleanArray, BooleanBuilder, DictionaryArray, Int32Array, Int64Array, Int64Builder, ListBuilder,
    RecordBatch, StringArray, StringBuilder,
};
use arrow::datatypes::{DataType, Field};
use arrow::error::ArrowError;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

const DAY_NS: i64 = 24 * HOUR_NS;

/// What is gathered of one day's series and processes for one origin, and for one stack: ids, and the ids that were
/// seen.
const ORIGIN_BYTES: usize = 16 * size_of::<i64>() + size_of::<Labels<'_>>() + size_of::<ProcessRow<'_>>();

const STACK_BYTES: usize = 3 * size_of::<i64>() + size_of::<Stack>();

/// Text and lists of frames of a request's dictionary rows: a small request can name one long string, or stack, many
/// times.
const MAX_TEXT_BYTES: usize = 256 << 20;

/// Says of each id whether the store has a dictionary table's row of that day already.
pub type IsKnown<'k> = &'k dyn Fn(Table, &str, &[i64]) -> Vec<bool>;

/// One row of `samples`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SampleRow<'a> {
    pub(crate) ts_ns: i64,
    pub(crate) kind: &'a str,
    /// Which of the request's.
    pub(crate) origin: u32,
    pub(crate) cpu: Option<i32>,
    pub(crate) amount: Amount,
}

/// Where samples come from: what all samples of a thread have in common.
#[derive(Debug)]
pub(crate) struct Origin<'a> {
    pub(crate) labels: Labels<'a>,
    /// Other attributes, as JSON; empty where there are none.
    pub(crate) others: String,
    pub(crate) series_id: i64,
    pub(crate) process_id: i64,
    pub(crate) process: ProcessRow<'a>,
    pub(crate) sender: SenderKind,
    pub(crate) thread: &'a str,
    pub(crate) tid: Option<i64>,
    /// Its stacks are cut.
    pub(crate) truncated: bool,
}

/// The labels of a series, in the order of its columns.
pub(crate) type Labels<'a> = [&'a str; SERIES_LABELS.len()];

/// One row of `processes`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProcessRow<'a> {
    pub(crate) node: &'a str,
    pub(crate) tgid: Option<i64>,
    pub(crate) start_ticks: Option<i64>,
    pub(crate) exec_count: Option<i64>,
    pub(crate) executable: &'a str,
    pub(crate) command_line: &'a str,
    pub(crate) build_id: &'a str,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct RowBuilder<'a> {
    hours: Spans<Vec<FreshSample>>,
    days: Spans<Day>,
    /// Profile types, each once, and where the last one stands.
    kinds: Vec<&'a str>,
    kind: u16,
    types: HashSet<TypeRow<'a>>,
    /// The hour of the last sample, which mostly is the next one's, nanoseconds.
    hour: Range<i64>,
    samples: i64,
    /// So many, about, are still to come.
    expected: usize,
}

/// Rows for which room is made before they come.
const MAX_EXPECTED: usize = 4096;

impl<'a> RowBuilder<'a> {
    /// Samples so far.
    pub(crate) fn samples(&self) -> i64 {
        self.samples
    }

    /// Adds a sample with what it refers to, if there is room.
    pub(crate) fn add(
        &mut self,
        row: &SampleRow<'a>,
        stack: &Stack,
        budget: &mut AllocationBudget,
    ) -> Result<(), IngestError> {
        self.samples += 1;
        if !self.hour.contains(&row.ts_ns) {
            self.turn_to(row.ts_ns);
        }
        // Mostly the very text of the row before, which need not even be looked at.
        let last = self.kinds.get(usize::from(self.kind));
        if !last.is_some_and(|last| std::ptr::eq(*last, row.kind)) {
            self.kind = self.new_kind(row.kind)?;
        }
        let day = self.days.last();
        let mut of_amount = 0;
        if day.amounts.last() != Some(&row.amount) {
            day.amounts.push(row.amount);
            // Gathered, where it grows by doubling, and in what waits for its commit.
            of_amount = 4 * size_of::<Amount>();
        }
        let (origin, of_origin) = day.origins.add(row.origin as usize, row.origin, ORIGIN_BYTES);
        let (at, of_stack) = day.stacks.add(stack.index(), *stack, STACK_BYTES);
        self.hours.last().push(FreshSample {
            ts_ns: row.ts_ns,
            amount: (day.amounts.len() - 1) as u32,
            origin,
            stack: at,
            cpu: row.cpu.unwrap_or(NO_CPU),
            kind: self.kind,
            in_kernel: stack.in_kernel,
        });
        // Like every vector's, entries count twice, since it grows by doubling.
        budget.take(2 * size_of::<FreshSample>() + of_amount + of_origin + of_stack)?;
        Ok(())
    }

    /// Says of which type and sender samples of a profile are.
    pub(crate) fn add_type(&mut self, row: TypeRow<'a>, budget: &mut AllocationBudget) -> Result<(), IngestError> {
        if self.types.insert(row) {
            // Gathered, and as columns.
            budget.take(4 * size_of::<TypeRow<'_>>() + row.kind.len() + row.unit.len())?;
        }
        Ok(())
    }

    fn new_kind(&mut self, kind: &'a str) -> Result<u16, IngestError> {
        let known = self.kinds.iter().position(|known| *known == kind);
        let at = known.unwrap_or(self.kinds.len());
        if at == self.kinds.len() {
            self.kinds.push(kind);
        }
        match u16::try_from(at) {
            Ok(at) if usize::from(at) < MAX_TYPES => Ok(at),
            _ => Err(IngestError::Invalid(format!(
                "the request has more than {MAX_TYPES} profile types"
            ))),
        }
    }

    /// What is there now, for [`RowBuilder::undo`].
    pub(crate) fn mark(&self) -> Mark {
        Mark {
            samples: self.samples,
            hours: self
                .hours
                .spans
                .iter()
                .map(|(hour, rows)| (*hour, rows.len()))
                .collect(),
            days: self.days.spans.iter().map(|(day, _)| *day).collect(),
        }
    }

    /// Takes the samples away that came since, which refer to something broken. What they refer to that is whole may
    /// stay.
    pub(crate) fn undo(&mut self, mark: Mark) {
        self.samples = mark.samples;
        self.hour = 0..0;
        let before = |hour: i64| {
            mark.hours
                .iter()
                .find(|(own, _)| *own == hour)
                .map_or(0, |(_, rows)| *rows)
        };
        self.hours.spans.retain_mut(|(hour, rows)| {
            rows.truncate(before(*hour));
            !rows.is_empty()
        });
        self.days.spans.retain(|(day, _)| mark.days.contains(day));
    }

    /// Says that so many samples are about to be added, and some more: most stand for one row, a few for several.
    pub(crate) fn expect(&mut self, samples: usize) {
        self.expected = samples.min(MAX_EXPECTED) / 4 * 5;
    }

    /// Makes this time's hour and day those to which is added.
    fn turn_to(&mut self, ts_ns: i64) {
        let hour = ts_ns.div_euclid(HOUR_NS);
        self.hour = hour * HOUR_NS..(hour * HOUR_NS).saturating_add(HOUR_NS);
        self.days.turn_to(ts_ns.div_euclid(DAY_NS));
        self.hours.turn_to(hour);
        let expected = std::mem::take(&mut self.expected);
        self.hours.last().reserve(expected);
        self.days.last().stacks.reserve(expected);
    }

    /// All rows that the store lacks, as it takes them.
    pub(crate) fn finish(
        self,
        dictionary: &Dictionary<'a>,
        origins: &[Origin<'a>],
        is_known: IsKnown<'_>,
    ) -> Result<Rows, IngestError> {
        let mut finish = Finish {
            rows: Rows::default(),
            is_known,
            text_left: MAX_TEXT_BYTES,
        };
        let mut hours = self.hours.spans.into_iter().peekable();
        for (index, gathered) in self.days.spans {
            let name = day(index * DAY_NS);
            let origins = || gathered.origins.entries.iter().map(|origin| &origins[*origin as usize]);
            finish.types(&self.types, &name)?;
            finish.series(origins().map(|origin| (origin.series_id, origin)), &name)?;
            finish.processes(origins().map(|origin| (origin.process_id, &origin.process)), &name)?;
            finish.stacks(&gathered.stacks.entries, dictionary, &name)?;
            let common = Arc::new(finish.common(&self.kinds, origins(), &gathered)?);
            while let Some((hour_index, mut rows)) =
                hours.next_if(|(hour, _)| hour.div_euclid(DAY_NS / HOUR_NS) <= index)
            {
                // They wait for their commit in this.
                rows.shrink_to(rows.len() / 4 * 5);
                let rows = FreshSamples::new(hour(hour_index * HOUR_NS), rows, common.clone());
                finish.rows.samples.push(rows);
            }
        }
        Ok(finish.rows)
    }
}

/// See [`RowBuilder::mark`].
#[derive(Debug)]
pub(crate) struct Mark {
    samples: i64,
    /// Of each hour its rows.
    hours: Vec<(i64, usize)>,
    days: Vec<i64>,
}

/// Something for each hour, or day, that a sample fell in, in their order.
#[derive(Debug, Default)]
struct Spans<T> {
    spans: Vec<(i64, T)>,
    /// The one that was turned to last.
    last: usize,
}

impl<T: Default> Spans<T> {
    fn turn_to(&mut self, index: i64) {
        self.last = match self.spans.binary_search_by_key(&index, |(own, _)| *own) {
            Ok(at) => at,
            Err(at) => {
                self.spans.insert(at, (index, T::default()));
                at
            }
        };
    }

    /// What [`Spans::turn_to`] made the last one.
    fn last(&mut self) -> &mut T {
        &mut self.spans[self.last].1
    }
}

/// What the samples of one day refer to.
#[derive(Debug, Default)]
struct Day {
    origins: Marked<u32>,
    stacks: Marked<Stack>,
    /// What they tell: mostly the same as the one before, but for waits.
    amounts: Vec<Amount>,
}

/// Entries of a table, each once.
#[derive(Debug)]
struct Marked<T> {
    /// Of each entry of the table its place among those that are there, [`NOT_THERE`] where it is not.
    places: Vec<u32>,
    entries: Vec<T>,
}

const NOT_THERE: u32 = u32::MAX;

impl<T> Default for Marked<T> {
    fn default() -> Self {
        Self {
            places: Vec::new(),
            entries: Vec::new(),
        }
    }
}

impl<T> Marked<T> {
    /// Makes room for so many entries, of a table that may have twice as many.
    fn reserve(&mut self, entries: usize) {
        self.places.reserve(2 * entries);
        self.entries.reserve(entries);
    }

    /// Returns its place, and the bytes that it takes; `index` is the entry's in its table, `bytes` what its rows take.
    #[inline]
    fn add(&mut self, index: usize, entry: T, bytes: usize) -> (u32, usize) {
        let before = self.places.len();
        if before <= index {
            self.places.resize(index + 1, NOT_THERE);
        }
        let place = &mut self.places[index];
        if *place != NOT_THERE {
            return (*place, 0);
        }
        *place = self.entries.len() as u32;
        self.entries.push(entry);
        // Both grow by doubling.
        let marks = (self.places.len() - before) * size_of::<u32>();
        (self.entries.len() as u32 - 1, 2 * (marks + size_of::<T>() + bytes))
    }
}

/// Entries by id, each once.
#[derive(Debug)]
struct Gathered<T> {
    seen: HashSet<i64, MixState>,
    ids: Vec<i64>,
    entries: Vec<T>,
}

impl<T> Default for Gathered<T> {
    fn default() -> Self {
        Self {
            seen: HashSet::default(),
            ids: Vec::new(),
            entries: Vec::new(),
        }
    }
}

impl<T> Gathered<T> {
    fn add(&mut self, id: i64, entry: T) {
        if self.ids.last() != Some(&id) && self.seen.insert(id) {
            self.ids.push(id);
            self.entries.push(entry);
        }
    }

    /// Those that are not known of so many, which may come more than once. Mostly none is new: what is known is not
    /// even gathered, and no column made.
    fn unknown(table: Table, day: &str, is_known: IsKnown<'_>, all: impl Iterator<Item = (i64, T)> + Clone) -> Self {
        let ids: Vec<i64> = all.clone().map(|(id, _)| id).collect();
        let known = is_known(table, day, &ids);
        let mut new = Self::default();
        for ((id, entry), _) in all.zip(known).filter(|(_, known)| !known) {
            new.add(id, entry);
        }
        new
    }
}

/// Makes record batches.
struct Finish<'k> {
    rows: Rows,
    is_known: IsKnown<'k>,
    text_left: usize,
}

impl Finish<'_> {
    fn take_text(&mut self, bytes: usize) -> Result<(), IngestError> {
        self.text_left = self.text_left.checked_sub(bytes).ok_or(IngestError::TooLarge {
            what: "the text of the request's rows",
            limit_bytes: MAX_TEXT_BYTES,
        })?;
        Ok(())
    }

    fn put(
        &mut self,
        table: Table,
        columns: Result<Vec<ArrayRef>, ArrowError>,
        partition: &str,
    ) -> Result<(), IngestError> {
        let batch = columns.and_then(|mut columns| {
            let length = columns.first().map_or(0, |column| column.len());
            columns.push(constant(partition, length)?);
            RecordBatch::try_new(table.schema(), columns)
        });
        let batch = batch.map_err(|error| IngestError::Invalid(error.to_string()))?;
        self.rows.tables[table.index()].push(batch);
        Ok(())
    }

    /// A column of texts.
    fn texts<'t>(&mut self, texts: impl Iterator<Item = &'t str> + Clone) -> Result<ArrayRef, IngestError> {
        let bytes = texts.clone().map(str::len).sum();
        self.take_text(bytes)?;
        let mut column = StringBuilder::with_capacity(texts.size_hint().0, bytes);
        for text in texts {
            column.append_value(text);
        }
        Ok(Arc::new(column.finish()))
    }

    /// What the samples of a day have in common, in the order of their indices.
    fn common<'e>(
        &mut self,
        kinds: &[&str],
        origins: impl Iterator<Item = &'e Origin<'e>> + Clone,
        day: &Day,
    ) -> Result<Common, IngestError> {
        let texts = |origin: &Origin<'e>| [origin.labels[0], origin.labels[1], origin.thread];
        let bytes = origins.clone().flat_map(texts).chain(kinds.iter().copied());
        self.take_text(bytes.map(str::len).sum())?;
        let mut common = Common::default();
        for kind in kinds {
            common.add_type(kind);
        }
        for origin in origins {
            common.add_origin(texts(origin), origin.series_id, origin.process_id, origin.tid);
        }
        common.add_stacks(day.stacks.entries.iter().map(|stack| stack.id));
        common.add_amounts(&day.amounts);
        Ok(common)
    }

    fn series<'e>(
        &mut self,
        series: impl Iterator<Item = (i64, &'e Origin<'e>)> + Clone,
        day: &str,
    ) -> Result<(), IngestError> {
        let new = Gathered::unknown(Table::Series, day, self.is_known, series);
        let Gathered {
            ids, entries: origins, ..
        } = new;
        if ids.is_empty() {
            return Ok(());
        }
        let mut columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(ids))];
        for label in 0..SERIES_LABELS.len() {
            columns.push(self.texts(origins.iter().map(|origin| origin.labels[label]))?);
        }
        for flag in [
            |sender: SenderKind| sender.accounted,
            |sender: SenderKind| sender.spread,
        ] {
            let flags = origins.iter().map(|origin| Some(flag(origin.sender)));
            columns.push(Arc::new(flags.collect::<BooleanArray>()));
        }
        columns.push(self.texts(origins.iter().map(|origin| origin.others.as_str()))?);
        self.put(Table::Series, Ok(columns), day)
    }

    fn types(&mut self, types: &HashSet<TypeRow<'_>>, day: &str) -> Result<(), IngestError> {
        let types = types.iter().map(|row| (row.id(), row));
        let new = Gathered::unknown(Table::Types, day, self.is_known, types);
        let Gathered { ids, entries: rows, .. } = new;
        if ids.is_empty() {
            return Ok(());
        }
        let flags = |flag: fn(&TypeRow<'_>) -> bool| -> ArrayRef {
            Arc::new(rows.iter().map(|row| Some(flag(row))).collect::<BooleanArray>())
        };
        let columns = vec![
            Arc::new(Int64Array::from(ids)) as ArrayRef,
            self.texts(rows.iter().map(|row| row.kind))?,
            self.texts(rows.iter().map(|row| row.unit))?,
            flags(|row| row.sender.accounted),
            flags(|row| row.sender.spread),
        ];
        self.put(Table::Types, Ok(columns), day)
    }

    fn processes<'e>(
        &mut self,
        processes: impl Iterator<Item = (i64, &'e ProcessRow<'e>)> + Clone,
        day: &str,
    ) -> Result<(), IngestError> {
        let new = Gathered::unknown(Table::Processes, day, self.is_known, processes);
        let Gathered { ids, entries: rows, .. } = new;
        if ids.is_empty() {
            return Ok(());
        }
        let numbers = |number: fn(&ProcessRow<'_>) -> Option<i64>| -> ArrayRef {
            Arc::new(rows.iter().map(|row| number(row)).collect::<Int64Array>())
        };
        let columns = vec![
            Arc::new(Int64Array::from(ids)) as ArrayRef,
            self.texts(rows.iter().map(|row| row.node))?,
            numbers(|row| row.tgid),
            numbers(|row| row.start_ticks),
            numbers(|row| row.exec_count),
            self.texts(rows.iter().map(|row| row.executable))?,
            self.texts(rows.iter().map(|row| row.command_line))?,
            self.texts(rows.iter().map(|row| row.build_id))?,
        ];
        self.put(Table::Processes, Ok(columns), day)
    }

    /// Stacks, and the frames of those that are new.
    fn stacks(&mut self, stacks: &[Stack], dictionary: &Dictionary<'_>, day: &str) -> Result<(), IngestError> {
        // The same stack may stand in the table more than once.
        let stacks = stacks.iter().map(|stack| (stack.id, stack));
        let new = Gathered::unknown(Table::Stacks, day, self.is_known, stacks);
        let Gathered {
            ids, entries: stacks, ..
        } = new;
        if ids.is_empty() {
            return Ok(());
        }
        let element = Field::new("element", DataType::Int64, false);
        let frames = stacks
            .iter()
            .map(|stack| dictionary.frames(stack).count())
            .sum::<usize>();
        self.take_text(frames * size_of::<i64>())?;
        let frames_of = Int64Builder::with_capacity(frames);
        let mut frames_of = ListBuilder::with_capacity(frames_of, stacks.len()).with_field(element);
        let mut truncated = BooleanBuilder::with_capacity(stacks.len());
        let mut frames: Gathered<u32> = Gathered::default();
        for stack in stacks {
            for (id, frame) in dictionary.frames(stack) {
                frames_of.values().append_value(id);
                frames.add(id, frame);
            }
            frames_of.append(true);
            truncated.append_value(stack.truncated);
        }
        let columns = vec![
            Arc::new(Int64Array::from(ids)) as ArrayRef,
            Arc::new(frames_of.finish()),
            Arc::new(truncated.finish()),
        ];
        self.put(Table::Stacks, Ok(columns), day)?;

        let frames = frames.ids.iter().copied().zip(frames.entries);
        let new = Gathered::unknown(Table::Frames, day, self.is_known, frames);
        let Gathered { ids, entries, .. } = new;
        if ids.is_empty() {
            return Ok(());
        }
        let frames = entries.iter().map(|frame| dictionary.frame(*frame));
        let frames: Vec<Frame<'_>> = frames.collect::<Result<_, _>>()?;
        let columns = vec![
            Arc::new(Int64Array::from(ids)) as ArrayRef,
            self.texts(frames.iter().map(|frame| frame.kind))?,
            self.texts(frames.iter().map(|frame| frame.module))?,
            self.texts(frames.iter().map(|frame| frame.build_id))?,
            self.texts(frames.iter().map(|frame| frame.function))?,
            self.texts(frames.iter().map(|frame| frame.file))?,
            Arc::new(frames.iter().map(|frame| Some(frame.line)).collect::<Int64Array>()),
            Arc::new(frames.iter().map(|frame| Some(frame.inlined)).collect::<BooleanArray>()),
            Arc::new(frames.iter().map(|frame| frame.offset).collect::<Int64Array>()),
            Arc::new(frames.iter().map(|frame| frame.start_line).collect::<Int64Array>()),
        ];
        self.put(Table::Frames, Ok(columns), day)
    }
}

/// A column that says the same in every row.
fn constant(value: &str, rows: usize) -> Result<ArrayRef, ArrowError> {
    let keys = Int32Array::from_value(0, rows);
    Ok(Arc::new(DictionaryArray::try_new(
        keys,
        Arc::new(StringArray::from(vec![value])),
    )?))
}
