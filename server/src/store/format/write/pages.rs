//! The pages of one column of a row group as they are written one after another, and what is to be said of them
//! behind them.

use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::errors::ParquetError;
use parquet::file::metadata::OffsetIndexBuilder;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};

/// The pages of a column.
pub(crate) struct Chunk<'s> {
    pages: SerializedPageWriter<'s, Vec<u8>>,
    /// Where its data pages are: a reader that wants a few rows opens no others.
    offsets: OffsetIndexBuilder,
    /// Bytes so far, with the pages' headers.
    pub(crate) compressed: i64,
    plain: i64,
}

/// What is to be said of a column's pages when all are written.
pub(crate) struct Built {
    pub(crate) offsets: OffsetIndexBuilder,
    pub(crate) compressed: i64,
    pub(crate) plain: i64,
}

impl<'s> Chunk<'s> {
    pub(crate) fn new(sink: &'s mut TrackedWrite<Vec<u8>>) -> Self {
        Chunk {
            pages: SerializedPageWriter::new(sink),
            offsets: OffsetIndexBuilder::new(),
            compressed: 0,
            plain: 0,
        }
    }

    pub(crate) fn finish(self) -> Built {
        Built {
            offsets: self.offsets,
            compressed: self.compressed,
            plain: self.plain,
        }
    }

    pub(crate) fn add(&mut self, page: Page, plain_bytes: usize) -> Result<(), ParquetError> {
        let (is_data, rows) = (page.is_data_page(), page.num_values());
        let spec = self.pages.write_page(CompressedPage::new(page, plain_bytes))?;
        if is_data {
            let size = i32::try_from(spec.compressed_size)?;
            self.offsets.append_offset_and_size(self.compressed, size);
            self.offsets.append_row_count(i64::from(rows));
        }
        self.compressed += spec.compressed_size as i64;
        self.plain += spec.uncompressed_size as i64;
        Ok(())
    }
}
