//! The data root on a bucket of a real S3 server that is not ours: exactly once over kill -9 and a bad network, no
//! orphan after compaction and retention, few requests a commit, refusals in words; exactly once of several servers,
//! too. `gateway` starts the server, `proxy` is the bad network; the root's own contract is held by tests in its room,
//! with the same two.

mod copies;
mod files;
mod gateway;
mod killed;
mod proxy;
mod refusals;
mod shared;
