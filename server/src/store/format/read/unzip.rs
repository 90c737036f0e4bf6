//! Pages of columns in plain: decompressed one after another by one decompressor, into the same memory.

use crate::column::malformed::MalformedFile;
use parquet::basic::{Compression, Encoding};
use parquet::column::page::Page;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::ChunkReader;
use parquet::file::serialized_reader::SerializedPageReader;
use std::sync::Arc;

/// No page is larger: a dictionary has at most a row group's texts.
const MAX_PAGE_BYTES: u64 = 1 << 30;

/// Pages as they lie: the library would make a decompressor for each column of each row group.
pub(crate) fn as_they_lie<R: ChunkReader>(
    reader: R,
    meta: &ColumnChunkMetaData,
    rows: usize,
) -> Result<SerializedPageReader<R>, ParquetError> {
    let raw = meta.clone().into_builder().set_compression(Compression::UNCOMPRESSED);
    SerializedPageReader::new(Arc::new(reader), &raw.build()?, rows, None)
}

/// A page that can be read.
pub(crate) enum Plain<'p> {
    Dictionary(&'p [u8]),
    Data {
        encoding: Encoding,
        rows: u32,
        /// Of them without a value.
        absent: u32,
        /// Which rows have one.
        levels: &'p [u8],
        values: &'p [u8],
    },
}

/// Decompresses pages.
pub(crate) struct Unzip {
    zstd: zstd::bulk::Decompressor<'static>,
    plain: Vec<u8>,
}

impl Unzip {
    pub(crate) fn new() -> Result<Unzip, MalformedFile> {
        let zstd = zstd::bulk::Decompressor::new();
        Ok(Unzip {
            zstd: zstd.map_err(|error| MalformedFile::new(error.to_string()))?,
            plain: Vec::new(),
        })
    }

    /// A page of a column that is so compressed; nothing for one that is written in another way than our own.
    pub(crate) fn open<'p>(
        &'p mut self,
        page: &'p Page,
        compression: Compression,
    ) -> Result<Option<Plain<'p>>, MalformedFile> {
        let is_zstd = match compression {
            Compression::ZSTD(_) => true,
            Compression::UNCOMPRESSED => false,
            _ => return Ok(None),
        };
        Ok(match page {
            Page::DictionaryPage { buf, .. } => self.plain(buf, is_zstd)?.map(Plain::Dictionary),
            Page::DataPageV2 {
                buf,
                num_values,
                encoding,
                num_nulls,
                def_levels_byte_len,
                rep_levels_byte_len: 0,
                is_compressed,
                ..
            } => {
                let levels = *def_levels_byte_len as usize;
                let (levels, values) = buf
                    .split_at_checked(levels)
                    .ok_or_else(|| MalformedFile::new("a page is shorter than its levels"))?;
                let values = self.plain(values, is_zstd && *is_compressed)?;
                values.map(|values| Plain::Data {
                    encoding: *encoding,
                    rows: *num_values,
                    absent: *num_nulls,
                    levels,
                    values,
                })
            }
            _ => None,
        })
    }

    /// Nothing for what does not say how large it is, as compressors that write a stream leave it.
    fn plain<'p>(&'p mut self, bytes: &'p [u8], is_zstd: bool) -> Result<Option<&'p [u8]>, MalformedFile> {
        if !is_zstd || bytes.is_empty() {
            return Ok(Some(bytes));
        }
        let size = zstd::zstd_safe::get_frame_content_size(bytes);
        let Some(size) = size.map_err(|_| MalformedFile::new("a page is not compressed as its column says"))? else {
            return Ok(None);
        };
        if size > MAX_PAGE_BYTES {
            return Err(MalformedFile::new("a page is too large"));
        }
        self.plain.clear();
        self.plain.reserve(size as usize);
        let unpacked = self.zstd.decompress_to_buffer(bytes, &mut self.plain);
        unpacked.map_err(|error| MalformedFile::new(error.to_string()))?;
        Ok(Some(&self.plain))
    }
}
