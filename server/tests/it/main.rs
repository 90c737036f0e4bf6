//! Integration tests: the real store in temporary folders, the real application on loopback, the real binary.
//! One test binary, because linking the query engine takes long.
#![allow(clippy::unwrap_used, reason = "tests")]

mod binary;
mod bucket;
mod bursts;
mod damage;
mod doors;
mod examples;
mod foreign;
mod ingest;
mod keep;
mod known;
mod long_run;
mod older_tables;
mod packaging;
mod pprof;
mod query;
mod quotas;
mod rollups;
mod run_queue;
mod settings;
mod several;
mod spread;
mod store;
mod support;
mod wire;
