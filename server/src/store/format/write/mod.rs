//! Rows to the bytes of a file.
//!
//! In: sorted rows, as codes or record batches. Out: the bytes of a Parquet file, and its description.

pub(crate) mod bits;
pub(crate) mod code_order;
pub(crate) mod column_writer;
pub(crate) mod page_plan;
pub(crate) mod pages;
pub(crate) mod row_group;
pub(crate) mod rows_file;
