//! Rows of `samples` as they come, from their request to their commit.
//!
//! In: what a request says of each sample, and once what many of them have in common. Out: the same for a file, or
//! columns as the table has them, for queries that ask meanwhile. Most rows are never asked for before they are in a
//! file, so that columns are made only then; a row takes a third of the memory that it would take as columns, and
//! more rows wait for one commit.

use crate::store::buffer::report::BatchRow;
use crate::store::table::partition::partition_of;
use arrow::array::{ArrayRef, DictionaryArray, Int32Array, Int64Array, RecordBatch, RecordBatchOptions, StringArray};
use arrow::datatypes::{Field, Int32Type, SchemaRef};
use arrow::error::ArrowError;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Samples of one hour, of one request.
#[derive(Debug, Clone)]
pub struct FreshSamples {
    /// The value of the partition column.
    pub(crate) hour: String,
    pub(crate) rows: Vec<FreshSample>,
    pub(crate) common: Arc<Common>,
    /// No others of this process have it.
    number: u64,
}

static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

/// One row. Indices are those of a [`Common`].
#[derive(Debug, Clone, Copy)]
pub struct FreshSample {
    /// Nanoseconds since the Unix epoch.
    pub ts_ns: i64,
    /// Of [`Common::add_amounts`].
    pub amount: u32,
    /// Of [`Common::add_origin`].
    pub origin: u32,
    /// Of [`Common::add_stacks`].
    pub stack: u32,
    /// [`NO_CPU`] where it is not known.
    pub cpu: i32,
    /// The profile type: of [`Common::add_type`].
    pub kind: u16,
    /// The leaf is a frame of the kernel.
    pub in_kernel: bool,
}

/// How much a sample tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Amount {
    /// In the unit of its type: what it stands for.
    pub value: i64,
    /// How long the wait itself was by then, in nanoseconds; [`NO_WAIT`] of what is none, and where that is not said.
    pub wait_ns: i64,
    /// Of who ended a wait, the id of the thread whose it was; [`NO_THREAD`] of all others.
    pub woken_tid: i64,
}

/// No wait is so long.
pub const NO_WAIT: i64 = -1;

/// No thread has this id.
pub const NO_THREAD: i64 = -1;

impl Amount {
    pub(crate) fn known_wait(self) -> Option<i64> {
        (self.wait_ns != NO_WAIT).then_some(self.wait_ns)
    }

    pub(crate) fn known_woken(self) -> Option<i64> {
        (self.woken_tid != NO_THREAD).then_some(self.woken_tid)
    }
}

/// No CPU has this number.
pub const NO_CPU: i32 = i32::MIN;

/// Profile types of a request: no more than a row can tell apart.
pub const MAX_TYPES: usize = u16::MAX as usize;

/// What rows of a request have in common, each once or a few times.
#[derive(Debug, Default)]
pub struct Common {
    /// All texts, one after another.
    texts: String,
    kinds: Vec<Text>,
    pub(crate) origins: Vec<FreshOrigin>,
    pub(crate) stacks: Vec<i64>,
    pub(crate) amounts: Vec<Amount>,
}

/// Where a text lies.
type Text = Range<u32>;

/// Where samples come from: what all samples of a thread have in common.
#[derive(Debug)]
pub(crate) struct FreshOrigin {
    node: Text,
    service: Text,
    thread: Text,
    pub(crate) series_id: i64,
    pub(crate) process_id: i64,
    pub(crate) tid: Option<i64>,
}

impl Common {
    /// The index of a profile type, of which there are at most [`MAX_TYPES`].
    pub fn add_type(&mut self, kind: &str) -> u16 {
        let kind = self.add_text(kind);
        self.kinds.push(kind);
        (self.kinds.len() - 1) as u16
    }

    /// Stacks by their ids; their indices are one after another.
    pub fn add_stacks(&mut self, ids: impl ExactSizeIterator<Item = i64>) {
        self.stacks.reserve_exact(ids.len());
        self.stacks.extend(ids);
    }

    /// What samples tell of; their indices are one after another.
    pub fn add_amounts(&mut self, amounts: &[Amount]) {
        self.amounts.reserve_exact(amounts.len());
        self.amounts.extend_from_slice(amounts);
    }

    /// The index of what all samples of a thread have in common.
    pub fn add_origin(
        &mut self,
        [node, service, thread]: [&str; 3],
        series_id: i64,
        process_id: i64,
        tid: Option<i64>,
    ) -> u32 {
        let [node, service, thread] = [node, service, thread].map(|text| self.add_text(text));
        self.origins.push(FreshOrigin {
            node,
            service,
            thread,
            series_id,
            process_id,
            tid,
        });
        self.origins.len() as u32 - 1
    }

    fn add_text(&mut self, text: &str) -> Text {
        let begin = self.texts.len() as u32;
        self.texts.push_str(text);
        begin..self.texts.len() as u32
    }

    fn text(&self, text: &Text) -> &str {
        &self.texts[text.start as usize..text.end as usize]
    }

    pub(crate) fn kind(&self, kind: u16) -> &str {
        self.text(&self.kinds[usize::from(kind)])
    }

    /// How many types there are.
    pub(crate) fn kinds(&self) -> usize {
        self.kinds.len()
    }

    pub(crate) fn node(&self, origin: &FreshOrigin) -> &str {
        self.text(&origin.node)
    }

    pub(crate) fn service(&self, origin: &FreshOrigin) -> &str {
        self.text(&origin.service)
    }

    pub(crate) fn thread(&self, origin: &FreshOrigin) -> &str {
        self.text(&origin.thread)
    }

    fn bytes(&self) -> usize {
        self.texts.capacity()
            + self.kinds.capacity() * size_of::<Text>()
            + self.origins.capacity() * size_of::<FreshOrigin>()
            + self.stacks.capacity() * size_of::<i64>()
            + self.amounts.capacity() * size_of::<Amount>()
    }
}

impl FreshSample {
    pub(crate) fn known_cpu(&self) -> Option<i32> {
        (self.cpu != NO_CPU).then_some(self.cpu)
    }

    pub(crate) fn mode(&self) -> &'static str {
        if self.in_kernel { "kernel" } else { "user" }
    }
}

impl FreshSamples {
    /// Rows of this hour, each of which has indices of `common`.
    pub fn new(hour: String, rows: Vec<FreshSample>, common: Arc<Common>) -> Self {
        Self {
            hour,
            rows,
            common,
            number: NEXT_NUMBER.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// How many there are.
    pub fn num_rows(&self) -> usize {
        self.rows.len()
    }

    /// Which ones they are: no others of this process have this number.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Whether any was taken from then on and before that.
    pub fn any_within(&self, from_ns: i64, until_ns: i64) -> bool {
        self.rows.iter().any(|row| (from_ns..until_ns).contains(&row.ts_ns))
    }

    /// How many stacks they have in common with others of their request.
    pub(crate) fn stacks(&self) -> usize {
        self.common.stacks.len()
    }

    /// Memory that they take; what they share with another hour's counts for both.
    pub(crate) fn bytes(&self) -> usize {
        self.rows.capacity() * size_of::<FreshSample>() + self.common.bytes() + size_of::<Self>()
    }

    /// The time and the stack's id of each.
    pub(crate) fn times_and_stacks(&self) -> impl Iterator<Item = (i64, i64)> {
        let rows = self.rows.iter();
        rows.map(|row| (row.ts_ns, self.common.stacks[row.stack as usize]))
    }

    /// The ids of the series that have rows here.
    pub(crate) fn series(&self) -> impl Iterator<Item = i64> {
        let mut has_rows = vec![false; self.common.origins.len()];
        for row in &self.rows {
            has_rows[row.origin as usize] = true;
        }
        let origins = self.common.origins.iter().zip(has_rows);
        origins.filter_map(|(origin, has_rows)| has_rows.then_some(origin.series_id))
    }

    fn amount(&self, row: &FreshSample) -> Amount {
        self.common.amounts[row.amount as usize]
    }

    fn origin(&self, row: &FreshSample) -> &FreshOrigin {
        &self.common.origins[row.origin as usize]
    }

    /// A column as the table's schema has it; none of another name.
    fn column(&self, name: &str) -> Option<Result<ArrayRef, ArrowError>> {
        let rows = || self.rows.iter();
        let common = &self.common;
        Some(match name {
            "ts_ns" => numbers(rows().map(|row| row.ts_ns)),
            "type" => texts(rows().map(|row| common.kind(row.kind))),
            "node" => texts(rows().map(|row| common.node(self.origin(row)))),
            "service" => texts(rows().map(|row| common.service(self.origin(row)))),
            "series_id" => numbers(rows().map(|row| self.origin(row).series_id)),
            "process_id" => numbers(rows().map(|row| self.origin(row).process_id)),
            "thread" => texts(rows().map(|row| common.thread(self.origin(row)))),
            "tid" => Ok(Arc::new(rows().map(|row| self.origin(row).tid).collect::<Int64Array>())),
            "cpu" => Ok(Arc::new(rows().map(FreshSample::known_cpu).collect::<Int32Array>())),
            "mode" => texts(rows().map(FreshSample::mode)),
            "stack_id" => numbers(self.times_and_stacks().map(|(_, stack_id)| stack_id)),
            "value" => numbers(rows().map(|row| self.amount(row).value)),
            "wait_ns" => Ok(Arc::new(
                rows().map(|row| self.amount(row).known_wait()).collect::<Int64Array>(),
            )),
            "woken_tid" => Ok(Arc::new(
                rows().map(|row| self.amount(row).known_woken()).collect::<Int64Array>(),
            )),
            "hour" => texts(rows().map(|_| self.hour.as_str())),
            _ => return None,
        })
    }
}

fn numbers(rows: impl Iterator<Item = i64>) -> Result<ArrayRef, ArrowError> {
    Ok(Arc::new(Int64Array::from_iter_values(rows)))
}

/// A column of texts of which few are distinct.
fn texts<'t>(rows: impl Iterator<Item = &'t str>) -> Result<ArrayRef, ArrowError> {
    let mut codes: HashMap<&str, i32, foldhash::fast::RandomState> = HashMap::default();
    let mut distinct: Vec<&str> = Vec::new();
    let (mut keys, mut last) = (Vec::new(), None);
    for text in rows {
        let key = match last {
            // Mostly the very text of the row before, which need not even be looked at.
            Some((before, key)) if std::ptr::eq::<str>(before, text) => key,
            _ => *codes.entry(text).or_insert_with(|| {
                distinct.push(text);
                distinct.len() as i32 - 1
            }),
        };
        last = Some((text, key));
        keys.push(key);
    }
    let values = Arc::new(StringArray::from(distinct));
    Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(keys.into(), values)?))
}

/// Rows of one partition of a table that wait for their commit.
#[derive(Debug, Clone)]
pub enum Pending {
    /// Of `samples`.
    Samples(Arc<FreshSamples>),
    /// Of `batches`, one.
    Report(Arc<BatchRow>),
    /// Of another table, in its whole schema.
    Rows(RecordBatch),
}

impl Pending {
    /// How many rows there are.
    pub fn num_rows(&self) -> usize {
        match self {
            Self::Samples(samples) => samples.num_rows(),
            Self::Report(_) => 1,
            Self::Rows(rows) => rows.num_rows(),
        }
    }

    /// Those of samples.
    pub(crate) fn samples(all: Vec<Self>) -> Vec<Arc<FreshSamples>> {
        let samples = all.into_iter().filter_map(|pending| match pending {
            Self::Samples(rows) => Some(rows),
            _ => None,
        });
        samples.collect()
    }

    /// Whether they are samples that have one of these numbers.
    pub(crate) fn is_one_of(&self, numbers: &HashSet<u64>) -> bool {
        matches!(self, Self::Samples(samples) if numbers.contains(&samples.number()))
    }

    /// Those of other tables, in the whole schema.
    pub(crate) fn batches(all: Vec<Self>) -> Result<Vec<RecordBatch>, ArrowError> {
        let (mut batches, mut reports) = (Vec::new(), Vec::new());
        for pending in all {
            match pending {
                Self::Rows(rows) => batches.push(rows),
                Self::Report(report) => reports.push(report),
                Self::Samples(_) => {}
            }
        }
        if !reports.is_empty() {
            batches.push(BatchRow::to_record_batch(&reports)?);
        }
        Ok(batches)
    }

    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Samples(samples) => samples.bytes(),
            Self::Report(report) => report.bytes(),
            Self::Rows(rows) => rows.get_array_memory_size(),
        }
    }

    /// The partition of all of them; none where there are none.
    pub fn partition(&self) -> Option<String> {
        match self {
            Self::Samples(samples) => (samples.num_rows() > 0).then(|| samples.hour.clone()),
            Self::Report(report) => Some(report.day()),
            Self::Rows(rows) => partition_of(rows).map(str::to_owned),
        }
    }

    /// A column as the table's schema has it; none of another name.
    pub(crate) fn column(&self, name: &str) -> Option<Result<ArrayRef, ArrowError>> {
        match self {
            Self::Samples(samples) => samples.column(name),
            Self::Report(report) => match BatchRow::to_record_batch(std::slice::from_ref(report)) {
                Ok(row) => row.column_by_name(name).cloned().map(Ok),
                Err(error) => Some(Err(error)),
            },
            Self::Rows(rows) => rows.column_by_name(name).cloned().map(Ok),
        }
    }

    /// The columns of this schema, which are some of the table's.
    pub(crate) fn columns(&self, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
        if let Self::Report(report) = self {
            let whole = BatchRow::to_record_batch(std::slice::from_ref(report))?;
            return Self::Rows(whole).columns(schema);
        }
        let column = |field: &Arc<Field>| {
            let missing = || ArrowError::SchemaError(format!("no column {}", field.name()));
            self.column(field.name()).ok_or_else(missing)?
        };
        let columns = schema.fields().iter().map(column);
        let rows = RecordBatchOptions::new().with_row_count(Some(self.num_rows()));
        RecordBatch::try_new_with_options(schema.clone(), columns.collect::<Result<_, _>>()?, &rows)
    }
}

#[cfg(test)]
impl FreshSamples {
    /// The rows of a batch that has the table's whole schema, all of one hour.
    pub(crate) fn of_batch(batch: &RecordBatch) -> Self {
        use arrow::array::{Array, AsArray};
        use arrow::datatypes::Int64Type;
        let text = |name: &str, row: usize| -> &str {
            let column = batch.column_by_name(name).unwrap().as_dictionary::<Int32Type>();
            column.values().as_string::<i32>().value(column.key(row).unwrap())
        };
        let numbers = |name: &str| batch.column_by_name(name).unwrap().as_primitive::<Int64Type>();
        let cpus = batch.column_by_name("cpu").unwrap().as_primitive::<Int32Type>();
        let (mut common, mut kinds) = (Common::default(), HashMap::new());
        let rows = (0..batch.num_rows()).map(|row| {
            let number = |name| numbers(name).value(row);
            let some_number = |name| numbers(name).is_valid(row).then(|| number(name));
            let kind = text("type", row);
            FreshSample {
                ts_ns: number("ts_ns"),
                amount: row as u32,
                origin: common.add_origin(
                    ["node", "service", "thread"].map(|name| text(name, row)),
                    number("series_id"),
                    number("process_id"),
                    some_number("tid"),
                ),
                stack: row as u32,
                cpu: if cpus.is_valid(row) { cpus.value(row) } else { NO_CPU },
                kind: *kinds.entry(kind).or_insert_with(|| common.add_type(kind)),
                in_kernel: text("mode", row) == "kernel",
            }
        });
        let rows = rows.collect();
        common.add_stacks(numbers("stack_id").values().iter().copied());
        let waits = numbers("wait_ns").iter().zip(numbers("woken_tid"));
        let amounts = numbers("value").values().iter().zip(waits);
        let amounts = amounts.map(|(value, (wait, woken))| Amount {
            value: *value,
            wait_ns: wait.unwrap_or(NO_WAIT),
            woken_tid: woken.unwrap_or(NO_THREAD),
        });
        let amounts: Vec<_> = amounts.collect();
        common.add_amounts(&amounts);
        Self::new(
            partition_of(batch).unwrap_or_default().to_owned(),
            rows,
            Arc::new(common),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Table;

    #[test]
    fn columns_are_those_of_the_rows() {
        let names =
            |texts: [&str; 4]| -> ArrayRef { Arc::new(texts.into_iter().collect::<DictionaryArray<Int32Type>>()) };
        let numbers = |numbers: [i64; 4]| -> ArrayRef { Arc::new(Int64Array::from(numbers.to_vec())) };
        let columns = vec![
            numbers([5, 3, -1, i64::MAX]),
            names(["cpu", "cpu", "off_cpu", "cpu"]),
            names(["a", "b", "a", ""]),
            names(["s", "s", "", "t"]),
            numbers([1, 1, i64::MIN, 2]),
            numbers([0, 7, 7, 7]),
            names(["x", "", "x", "Ω"]),
            Arc::new(Int64Array::from(vec![Some(1), None, Some(-1), Some(i64::MAX)])),
            Arc::new(Int32Array::from(vec![Some(0), None, Some(-1), Some(i32::MAX)])),
            names(["user", "kernel", "kernel", "user"]),
            numbers([9, 9, 0, -9]),
            numbers([50, 50, 1, 0]),
            Arc::new(Int64Array::from(vec![None, None, Some(7), Some(0)])),
            Arc::new(Int64Array::from(vec![None, Some(9), Some(0), None])),
            names(["1970-01-01T00"; 4]),
        ];
        let batch = RecordBatch::try_new(Table::Samples.schema(), columns).unwrap();
        let rows = Pending::Samples(Arc::new(FreshSamples::of_batch(&batch)));
        assert_eq!(
            (rows.num_rows(), rows.partition().as_deref()),
            (4, Some("1970-01-01T00"))
        );
        assert_eq!(rows.columns(&batch.schema()).unwrap(), batch);
        let some = Arc::new(batch.schema().project(&[8, 1]).unwrap());
        assert_eq!(rows.columns(&some).unwrap(), batch.project(&[8, 1]).unwrap());
        let none = Arc::new(batch.schema().project(&[]).unwrap());
        assert_eq!(rows.columns(&none).unwrap().num_rows(), 4);
        assert!(rows.column("frames").is_none());
    }
}
