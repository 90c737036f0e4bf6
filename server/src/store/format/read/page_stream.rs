//! A file of `samples` read from its begin to its end, some thousand rows at a time: what a merge of many files needs.
//!
//! In: a file, names of columns. Out: for one piece of rows after another each column as codes or numbers, and the
//! dictionaries of the row group that they are of. Many are open at a time: each holds a page of every column and the
//! dictionaries of a row group, no more, and all are decompressed by one decompressor.

use crate::column::coded::{CodedColumn, Column, Form, Projection, Values};
use crate::column::malformed::MalformedFile;
use crate::store::format::read::column_chunk::{Chunk, DictionaryPage, add_differences, read};
use crate::store::format::read::groups::index_of;
use crate::store::format::read::object::Pieces;
use crate::store::format::read::unzip::{Plain, Unzip, as_they_lie};
use crate::store::root::reader::RangeReader;
use crate::store::table::schema::Table;
use parquet::column::page::PageReader;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::reader::ChunkReader;
use parquet::file::serialized_reader::SerializedPageReader;
use std::sync::Arc;

/// Rows of a piece, at most.
const PIECE_ROWS: usize = 8 * 1024;

/// What is read of a file for a page's header: most have half as many bytes.
const HEADER_BYTES: usize = 128;

/// What of a column has been read and not been taken.
#[derive(Default)]
struct Pages {
    /// Of a column of codes, once it has come.
    dictionary: Option<DictionaryPage>,
    codes: Vec<u32>,
    numbers: Vec<i64>,
}

impl Pages {
    /// Has so many rows without a value: without a dictionary any code stands for that.
    fn be_absent(&mut self, rows: usize) {
        self.codes.resize(rows, 0);
    }
}

/// One column of a row group, of which a few pages are in memory.
struct OneColumn {
    form: Form,
    /// None of a column that the file lacks.
    source: Option<Source>,
    pages: Pages,
}

/// Where a column is read from.
struct Source {
    index: usize,
    meta: ColumnChunkMetaData,
    reader: SerializedPageReader<Pieces>,
}

impl OneColumn {
    fn open(file: &Pieces, footer: &ParquetMetaData, group: usize, wanted: Projection) -> Result<Self, MalformedFile> {
        let rows = footer.row_group(group);
        let source = |index: usize| {
            let meta = rows.column(index).clone();
            let reader = as_they_lie(file.clone(), &meta, rows.num_rows() as usize)?;
            Ok::<_, MalformedFile>(Source { index, meta, reader })
        };
        Ok(OneColumn {
            form: wanted.form,
            source: index_of(Table::Samples, rows, wanted.name)?.map(source).transpose()?,
            pages: Pages::default(),
        })
    }

    /// Reads on until there are so many rows. False: a page is written in another way.
    fn fill(&mut self, rows: usize, left: usize, unzip: &mut Unzip) -> Result<bool, MalformedFile> {
        while self.rows() < rows {
            let (have, Some(source)) = (self.rows(), &mut self.source) else {
                self.pages.be_absent(rows);
                break;
            };
            let Some(page) = source.reader.get_next_page()? else {
                return Err(MalformedFile::new(
                    "a column has fewer values than its row group has rows",
                ));
            };
            let Some(page) = unzip.open(&page, source.meta.compression())? else {
                return Ok(false);
            };
            let (left, meta) = (left - have, &source.meta);
            let Pages {
                dictionary,
                codes,
                numbers,
            } = &mut self.pages;
            let is_read = match (self.form, page, &*dictionary) {
                (Form::Codes, Plain::Dictionary(bytes), _) => {
                    *dictionary = DictionaryPage::of(bytes, meta)?;
                    dictionary.is_some()
                }
                (Form::Codes, page, Some(dictionary)) => dictionary.add_codes(page, meta, left, codes)?,
                (Form::Codes, _, None) => false,
                (Form::Numbers, page, _) => add_differences(page, meta, left, numbers)?,
            };
            if !is_read {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn rows(&self) -> usize {
        match self.form {
            Form::Codes => self.pages.codes.len(),
            Form::Numbers => self.pages.numbers.len(),
        }
    }

    fn drop_rows(&mut self, rows: usize) {
        match self.form {
            Form::Codes => drop(self.pages.codes.drain(..rows)),
            Form::Numbers => drop(self.pages.numbers.drain(..rows)),
        }
    }
}

/// See the module.
pub(crate) struct FileStream {
    file: Pieces,
    footer: Arc<ParquetMetaData>,
    wanted: &'static [Projection],
    /// The row group that comes next.
    next_group: usize,
    columns: Vec<OneColumn>,
    /// Rows of the group that are still to come, those of the piece included.
    left: usize,
    piece: usize,
}

/// Rows that have come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) rows: usize,
    /// The dictionaries are others than before.
    pub(crate) is_new: bool,
}

impl FileStream {
    /// `path` is the file's below the data root. An error does not name it.
    pub(crate) fn open(
        reader: &dyn RangeReader,
        path: &str,
        wanted: &'static [Projection],
    ) -> Result<FileStream, MalformedFile> {
        let file =
            Pieces::open(reader, path, HEADER_BYTES).map_err(|error| MalformedFile::new(error.cause().to_string()))?;
        let footer = ParquetMetaDataReader::new().parse_and_finish(&file)?;
        Ok(FileStream {
            file,
            footer: Arc::new(footer),
            wanted,
            next_group: 0,
            columns: Vec::new(),
            left: 0,
            piece: 0,
        })
    }

    /// Reads on; none at the end.
    pub(crate) fn next(&mut self, unzip: &mut Unzip) -> Result<Option<Piece>, MalformedFile> {
        for column in &mut self.columns {
            column.drop_rows(self.piece);
        }
        self.left -= self.piece;
        self.piece = 0;
        let mut is_new = false;
        while self.left == 0 {
            if self.next_group == self.footer.num_row_groups() {
                self.columns.clear();
                return Ok(None);
            }
            let open = |wanted: &Projection| OneColumn::open(&self.file, &self.footer, self.next_group, *wanted);
            self.columns = self.wanted.iter().map(open).collect::<Result<_, _>>()?;
            self.left = self.footer.row_group(self.next_group).num_rows() as usize;
            self.next_group += 1;
            is_new = true;
        }
        let rows = self.left.min(PIECE_ROWS);
        for column in &mut self.columns {
            if !column.fill(rows, self.left, unzip)? {
                self.read_whole(unzip)?;
                is_new = true;
                break;
            }
        }
        self.piece = rows;
        Ok(Some(Piece { rows, is_new }))
    }

    /// Reads the row group in one piece, whatever its encoding: files of others.
    fn read_whole(&mut self, unzip: &mut Unzip) -> Result<(), MalformedFile> {
        let group = self.next_group - 1;
        let rows = self.footer.row_group(group);
        let gone = rows.num_rows() as usize - self.left;
        for column in &mut self.columns {
            let Some(Source { index, .. }) = column.source else {
                column.pages.be_absent(self.left);
                continue;
            };
            let (start, length) = rows.column(index).byte_range();
            let chunk = Chunk {
                index,
                start,
                bytes: self.file.get_bytes(start, length as usize)?,
            };
            column.pages = match read(&chunk, &self.footer, group, rows, column.form, unzip)? {
                Column::Codes(CodedColumn { codes, values }) => Pages {
                    dictionary: Some(DictionaryPage::whole(values)),
                    codes: codes.into_words(),
                    numbers: Vec::new(),
                },
                Column::Numbers(numbers) => Pages {
                    numbers,
                    ..Pages::default()
                },
            };
            column.drop_rows(gone);
        }
        Ok(())
    }

    /// The codes of the piece's rows in a column that was asked for as codes, and what they stand for.
    pub(crate) fn codes(&self, column: usize) -> (&[u32], &Values) {
        static NONE: Values = Values::Numbers(Vec::new());
        let pages = &self.columns[column].pages;
        let values = pages.dictionary.as_ref().map(|dictionary| &dictionary.values);
        (&pages.codes[..self.piece], values.unwrap_or(&NONE))
    }

    /// What the codes of a column stand for will not be asked for again.
    pub(crate) fn forget(&mut self, column: usize) {
        if let Some(dictionary) = &mut self.columns[column].pages.dictionary {
            dictionary.values = Values::Numbers(Vec::new());
        }
    }

    /// The numbers of the piece's rows in a column that was asked for as numbers.
    pub(crate) fn numbers(&self, column: usize) -> &[i64] {
        &self.columns[column].pages.numbers[..self.piece]
    }
}
