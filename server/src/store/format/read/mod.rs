//! Files to columns: what counting and merging need of a Parquet file, and no more.
//!
//! In: a file's description, ranges of its bytes, names of columns. Out: each column as a code a row with the value
//! of each code, or as plain numbers; an error that names the file where it is malformed.

pub(crate) mod column_chunk;
pub(crate) mod decode;
pub(crate) mod footers;
pub(crate) mod groups;
pub(crate) mod object;
pub(crate) mod page_stream;
pub(crate) mod rows;
pub(crate) mod unzip;
