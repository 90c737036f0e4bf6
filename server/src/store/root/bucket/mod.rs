//! The data root in a bucket of an object store.
//!
//! In: a URL, paths below it, bytes. Out: what every root gives, each request counted. One server at a time writes, or
//! several that share the bucket, by a lease. Never keeps more in memory than it was told, and nothing of what may
//! change.

mod bucket_incoming;
mod bucket_reader;
mod bucket_root;
mod counted;
mod exchange;
mod guarded;
mod holder;
mod io_threads;
mod lease;
mod membership;
mod pages;
mod place;
mod words;

pub(crate) use bucket_root::BucketRoot;
