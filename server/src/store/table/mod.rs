//! The tables: their columns and partitions, what a committed file is, and which files a table has.
//!
//! In: names, partitions, descriptions of files. Out: lists of files, errors, what is corrupt. Opens no Parquet.

pub(crate) mod data_file;
pub(crate) mod error;
pub(crate) mod file_list;
pub(crate) mod format_version;
pub(crate) mod integrity;
pub(crate) mod orphans;
pub(crate) mod partition;
pub(crate) mod schema;
pub(crate) mod transaction;
