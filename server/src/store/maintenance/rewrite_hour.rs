//! One rewrite of an hour of samples: merged rows to encoded files, and to roll-ups where the hour is over.

use crate::store::buffer::coded_rows::{Samples, Scratch};
use crate::store::buffer::interner::Interner;
use crate::store::format::provenance::Provenance;
use crate::store::format::write::row_group::CodedFile;
use crate::store::format::write::rows_file::{Encoded, PART, ROW_GROUP_ROWS, WriteProfile};
use crate::store::maintenance::merge::{Sink, merge};
use crate::store::maintenance::plan::{MAX_ROWS, Rewrite, SETTLED};
use crate::store::maintenance::rollup::{LEAST_OF_SERVICE, Rollups};
use crate::store::root::reader::RangeReader;
use crate::store::table::data_file::DataFile;
use crate::store::table::error::StoreError;
use crate::store::table::file_list;
use crate::store::table::schema::Table;
use std::sync::Arc;
use tokio::sync::mpsc::Sender;

/// Rows of a row group that are all of one service: each row group holds the ids of its stacks again.
const MOST_OF_SERVICE: usize = 2 * ROW_GROUP_ROWS;

/// The work of one job.
pub(crate) struct Hour {
    partition: String,
    whole: bool,
    /// Rows that are to be one row group, and how many of them are in the order in which they will stand there.
    rows: Samples,
    ordered: usize,
    scratch: Scratch,
    /// The services of the first and the last of them, by their names' codes.
    services: [Option<u32>; 2],
    merged: u64,
    /// Rows of the files that have not been written yet.
    left: usize,
    /// None: the files are as they should be, only the roll-ups are wanted.
    file: Option<Option<CodedFile>>,
    /// The files that the roll-ups are made of.
    sources: Vec<Arc<DataFile>>,
    rollups: Option<Rollups>,
    /// What the files of samples say of themselves.
    provenance: Provenance,
    /// Which of them are to be written.
    wanted: [bool; Table::ROLLUPS.len()],
    to: Sender<(Table, Encoded)>,
}

impl Hour {
    /// Files are handed to `to` as soon as they are whole.
    pub(crate) fn new(job: &Rewrite, to: Sender<(Table, Encoded)>) -> Self {
        let rewrite = !job.whole
            || !job
                .files
                .iter()
                .all(|file| crate::store::maintenance::plan::is_settled(file));
        Self {
            partition: job.partition.clone(),
            whole: job.whole,
            rows: Samples::default(),
            ordered: 0,
            scratch: Scratch::default(),
            services: [None; 2],
            merged: 0,
            left: job.files.iter().map(|file| file.rows).sum::<u64>() as usize,
            file: rewrite.then_some(None),
            sources: if rewrite { Vec::new() } else { job.files.clone() },
            rollups: job.whole.then(Rollups::new),
            provenance: Provenance::of_rewrite(&job.files),
            wanted: job.rollups,
            to,
        }
    }

    /// Whether the samples are written anew.
    pub(crate) fn rewrites(&self) -> bool {
        self.file.is_some()
    }

    /// Does it, of files that have these paths below the data root. CPU-bound: call it on a blocking thread. Returns
    /// the number of rows that were read.
    pub(crate) fn merge(mut self, reader: &dyn RangeReader, files: &[String]) -> Result<u64, StoreError> {
        self.provenance.inherit(reader, files)?;
        merge(reader, files, ROW_GROUP_ROWS, &mut self)?;
        self.finish_file()?;
        if let Some(rollups) = self.rollups.take() {
            let name = file_list::rollup_file_name(&self.sources);
            let made = rollups.finish(&self.partition, &name)?;
            let made = Table::ROLLUPS.into_iter().zip(made).zip(self.wanted);
            for ((table, encoded), wanted) in made {
                if let Some(encoded) = encoded.filter(|_| wanted) {
                    self.hand_over(table, encoded)?;
                }
            }
        }
        Ok(self.merged)
    }

    /// Makes a row group of the rows.
    fn write_group(&mut self, interner: &Interner) -> Result<(), StoreError> {
        if let Some(file) = &mut self.file
            && self.ordered > 0
        {
            let file = match file {
                Some(file) => file,
                None => {
                    // Part of an hour is written again when that is over.
                    let profile = if self.whole {
                        WriteProfile::Compact
                    } else {
                        WriteProfile::Fresh
                    };
                    let most = MAX_ROWS as usize + MOST_OF_SERVICE;
                    let rows = if self.whole { self.left.min(most) } else { self.left };
                    let bytes = rows * profile.sample_bytes();
                    file.insert(CodedFile::new(Table::Samples, profile, &self.provenance, bytes)?)
                }
            };
            file.write_samples(&self.rows, 0..self.ordered, interner)?;
            self.left = self.left.saturating_sub(self.ordered);
        }
        self.rows.remove_first(self.ordered);
        self.ordered = 0;
        // A part is one file, however large: only files of whole hours may overlap with none.
        match &self.file {
            Some(Some(file)) if self.whole && file.rows() >= MAX_ROWS => self.finish_file(),
            _ => Ok(()),
        }
    }

    fn finish_file(&mut self) -> Result<(), StoreError> {
        let Some(file) = self.file.as_mut().and_then(Option::take) else {
            return Ok(());
        };
        let encoded = file.finish(&self.partition, if self.whole { SETTLED } else { PART })?;
        self.sources.push(Arc::new(encoded.file.clone()));
        self.hand_over(Table::Samples, encoded)
    }

    fn hand_over(&self, table: Table, encoded: Encoded) -> Result<(), StoreError> {
        // Nobody takes it only when another file could not be written, which has its own error.
        self.to
            .blocking_send((table, encoded))
            .map_err(|_| StoreError::Stopping)
    }
}

impl Sink for Hour {
    fn rows(&mut self) -> &mut Samples {
        &mut self.rows
    }

    fn end_series(&mut self, interner: &Interner) -> Result<(), StoreError> {
        let mut series = self.ordered..self.rows.len();
        self.merged += series.len() as u64;
        if let Some(rollups) = &mut self.rollups {
            rollups.add(&self.rows, series.clone(), interner)?;
        }
        if self.file.is_none() {
            self.rows.clear();
            return Ok(());
        }
        let service = self
            .rows
            .origins
            .get(series.start)
            .map(|origin| interner.series_of(*origin).service);
        if self.ordered >= LEAST_OF_SERVICE && service != self.services[1] {
            self.write_group(interner)?;
            series = 0..self.rows.len();
        }
        if self.ordered == 0 {
            self.services[0] = service;
        }
        self.services[1] = service;
        self.ordered = series.end;
        self.rows.order(series, interner, &mut self.scratch);
        let is_of_one = self.services[0] == service;
        if self.ordered >= if is_of_one { MOST_OF_SERVICE } else { ROW_GROUP_ROWS } {
            self.write_group(interner)?;
        }
        Ok(())
    }

    fn flush(&mut self, interner: &Interner) -> Result<(), StoreError> {
        self.write_group(interner)?;
        match &mut self.rollups {
            Some(rollups) => rollups.flush(interner),
            None => Ok(()),
        }
    }
}
