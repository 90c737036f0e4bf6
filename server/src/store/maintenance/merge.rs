//! Merges sorted files of one hour of `samples` into sorted rows, in bounded memory.
//!
//! In: files. Out: rows of one series after another, in the order (type, service, series). Columns are taken from the
//! files as the codes that stand there, and only what the codes stand for is looked up. Of a file that is not sorted
//! a series comes more than once, which costs space only.

use crate::column::coded::{Form, Projection};
use crate::store::buffer::coded_rows::{CodedColumns, Lacking, Samples, Translation};
use crate::store::buffer::interner::Interner;
use crate::store::format::read::page_stream::FileStream;
use crate::store::format::read::unzip::Unzip;
use crate::store::root::reader::RangeReader;
use crate::store::table::error::StoreError;
use crate::store::table::schema::Table;

/// Entries of an interner beyond those of the open files, after which it is begun anew: some 100 MB.
const MAX_NEW_ENTRIES: usize = 2_000_000;

/// What is read, in the order of [`CodedColumns`].
const COLUMNS: [Projection; 14] = [
    wanted("ts_ns", Form::Numbers),
    wanted("type", Form::Codes),
    wanted("service", Form::Codes),
    wanted("node", Form::Codes),
    wanted("thread", Form::Codes),
    wanted("mode", Form::Codes),
    wanted("series_id", Form::Codes),
    wanted("process_id", Form::Codes),
    wanted("tid", Form::Codes),
    wanted("cpu", Form::Codes),
    wanted("value", Form::Codes),
    wanted("wait_ns", Form::Codes),
    wanted("woken_tid", Form::Codes),
    wanted("stack_id", Form::Codes),
];

/// The place of `stack_id` there.
const STACKS: usize = 13;

const fn wanted(name: &'static str, form: Form) -> Projection {
    Projection { name, form }
}

struct Source {
    /// What a person calls the file.
    name: String,
    stream: FileStream,
    translation: Translation,
    /// What was read last, and how much of it is taken.
    rows: Samples,
    at: usize,
}

impl Source {
    fn open(reader: &dyn RangeReader, path: &str) -> Result<Self, StoreError> {
        let name = reader.name_of(path);
        let stream = FileStream::open(reader, path, &COLUMNS).map_err(|cause| damaged(&name, cause))?;
        Ok(Self {
            name,
            stream,
            translation: Translation::default(),
            rows: Samples::default(),
            at: 0,
        })
    }

    /// The code of the next row's series.
    fn head(&self, interner: &Interner) -> Option<u32> {
        let origin = self.rows.origins.get(self.at)?;
        Some(interner.origins[*origin].series)
    }

    /// Reads on when all rows are taken.
    fn fill(&mut self, unzip: &mut Unzip, interner: &mut Interner) -> Result<(), StoreError> {
        if self.at < self.rows.len() {
            return Ok(());
        }
        self.rows.clear();
        self.at = 0;
        let piece = self.stream.next(unzip).map_err(|cause| damaged(&self.name, cause))?;
        let Some(piece) = piece else { return Ok(()) };
        let codes = |column: usize| self.stream.codes(column);
        let columns = CodedColumns {
            ts_ns: self.stream.numbers(0),
            names: [1, 2, 3, 4, 5].map(codes),
            numbers: [6, 7, 8, 9, 10, 11, 12, STACKS].map(codes),
        };
        if piece.is_new {
            self.translation = Translation::new(&columns, interner);
        }
        let added = self.translation.add(&columns, interner, &mut self.rows);
        added.map_err(|Lacking(column)| damaged(&self.name, format!("a row lacks its {column}")))?;
        if piece.is_new {
            self.stream.forget(STACKS);
        }
        Ok(())
    }

    /// Moves the rows of this series that are in memory.
    fn take_run(&mut self, series: u32, interner: &Interner, to: &mut Samples) {
        let (start, mut known) = (self.at, None);
        while let Some(origin) = self.rows.origins.get(self.at) {
            if known != Some(*origin) {
                if interner.origins[*origin].series != series {
                    break;
                }
                known = Some(*origin);
            }
            self.at += 1;
        }
        to.extend(&self.rows, start..self.at);
    }
}

fn damaged(name: &str, cause: impl std::fmt::Display) -> StoreError {
    StoreError::Table {
        table: Table::Samples.name(),
        what: "read a file",
        cause: format!("{name}: {cause}"),
    }
}

/// Takes the merged rows.
pub(crate) trait Sink {
    /// Where the rows of the next series go, behind those that are there.
    fn rows(&mut self) -> &mut Samples;

    /// The rows since the last call are of one series. Called before the end of a series that is very large, too.
    fn end_series(&mut self, interner: &Interner) -> Result<(), StoreError>;

    /// Makes something of all rows that there are, and keeps no code: the interner is begun anew.
    fn flush(&mut self, interner: &Interner) -> Result<(), StoreError>;
}

/// Merges files, of which these are the paths below the data root; at the end nothing waits in the sink. A series of
/// more than `most_rows` is handed over in pieces.
pub(crate) fn merge(
    reader: &dyn RangeReader,
    files: &[String],
    most_rows: usize,
    sink: &mut impl Sink,
) -> Result<(), StoreError> {
    merge_with(reader, files, most_rows, MAX_NEW_ENTRIES, sink)
}

fn merge_with(
    reader: &dyn RangeReader,
    files: &[String],
    most_rows: usize,
    most_new_entries: usize,
    sink: &mut impl Sink,
) -> Result<(), StoreError> {
    let (mut interner, mut unzip) = (
        Interner::default(),
        Unzip::new().map_err(StoreError::table(Table::Samples, "merge files"))?,
    );
    let mut sources = Vec::with_capacity(files.len());
    for path in files {
        let mut source = Source::open(reader, path)?;
        source.fill(&mut unzip, &mut interner)?;
        sources.push(source);
    }
    let mut most_entries = interner.len() + most_new_entries;
    loop {
        let heads = sources.iter().filter_map(|source| source.head(&interner));
        let order = |series: &u32| interner.order(interner.series[*series]);
        let Some(series) = heads.min_by(|a, b| order(a).cmp(&order(b))) else {
            return sink.flush(&interner);
        };
        let mut start = sink.rows().len();
        for source in &mut sources {
            while source.head(&interner) == Some(series) {
                source.take_run(series, &interner, sink.rows());
                source.fill(&mut unzip, &mut interner)?;
                if sink.rows().len() >= start + most_rows {
                    sink.end_series(&interner)?;
                    start = sink.rows().len();
                }
            }
        }
        if sink.rows().len() > start {
            sink.end_series(&interner)?;
        }
        if interner.len() > most_entries {
            sink.flush(&interner)?;
            let old = interner.begin_anew();
            for source in &mut sources {
                source.translation.renew(&old, &mut interner);
                source.rows.renew(&old, &mut interner);
            }
            most_entries = interner.len() + most_new_entries;
        }
    }
}

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;
