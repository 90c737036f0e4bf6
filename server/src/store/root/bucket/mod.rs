//! The data root in a bucket of an object store.
//!
//! In: a URL, paths below it, bytes. Out: what every root gives. One server at a time writes, by a lease.

mod bucket_reader;
mod bucket_root;
mod guarded;
mod io_threads;
mod lease;
mod place;

pub(crate) use bucket_root::BucketRoot;
