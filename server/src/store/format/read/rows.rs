//! Reads the rows of a data file back, as this version's table has them.

use crate::store::format::read::object::Pieces;
use crate::store::root::error::RootError;
use crate::store::root::reader::RangeReader;
use crate::store::table::error::StoreError;
use crate::store::table::schema::Table;
use arrow::array::{RecordBatch, new_null_array};
use arrow::datatypes::{Field, Schema};
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use std::sync::Arc;

/// What is read of a file for a page's header, at least.
const HEADER_BYTES: usize = 8 * 1024;

/// A file's rows in batches of the table's file schema. A column that the table has got since the file was written is
/// null.
pub(crate) struct FileRows {
    table: Table,
    /// What a person calls the file.
    name: String,
    reader: ParquetRecordBatchReader,
}

impl FileRows {
    /// `path` is the file's below the data root.
    pub(crate) fn open(
        reader: &dyn RangeReader,
        table: Table,
        path: &str,
        batch_rows: usize,
    ) -> Result<Self, StoreError> {
        let name = reader.name_of(path);
        let reader = rows(reader, table, path, batch_rows).map_err(|cause| damaged(table, &name, cause))?;
        Ok(Self { table, name, reader })
    }
}

impl Iterator for FileRows {
    type Item = Result<RecordBatch, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        let whole = self.table.file_schema();
        let batch = self.reader.next()?.and_then(|batch| {
            let column = |field: &Arc<Field>| match batch.column_by_name(field.name()) {
                Some(column) => column.clone(),
                None => new_null_array(field.data_type(), batch.num_rows()),
            };
            RecordBatch::try_new(whole.clone(), whole.fields().iter().map(column).collect())
        });
        Some(batch.map_err(|cause| damaged(self.table, &self.name, cause)))
    }
}

fn damaged(table: Table, name: &str, cause: impl std::fmt::Display) -> StoreError {
    StoreError::Table {
        table: table.name(),
        what: "read a file",
        cause: format!("{name}: {cause}"),
    }
}

fn rows(
    reader: &dyn RangeReader,
    table: Table,
    path: &str,
    batch_rows: usize,
) -> Result<ParquetRecordBatchReader, Box<dyn std::error::Error + Send + Sync>> {
    let file = Pieces::open(reader, path, HEADER_BYTES).map_err(RootError::into_cause)?;
    let found = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new())?;
    let whole = table.file_schema();
    let known = whole
        .fields()
        .iter()
        .filter(|field| found.schema().column_with_name(field.name()).is_some());
    let schema = Arc::new(Schema::new(known.cloned().collect::<Vec<_>>()));
    let metadata =
        ArrowReaderMetadata::try_new(found.metadata().clone(), ArrowReaderOptions::new().with_schema(schema))?;
    Ok(ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata)
        .with_batch_size(batch_rows)
        .build()?)
}
