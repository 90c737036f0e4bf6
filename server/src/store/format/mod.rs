//! The bytes of a table's files.
//!
//! In: rows, or a file. Out: a Parquet file and what it says of itself, or its columns as codes. Knows no log.

pub(crate) mod provenance;
pub(crate) mod read;
pub(crate) mod write;
