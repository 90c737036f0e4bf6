//! The JSON answers of what threads do with their time.
//!
//! In: waits for a CPU, and threads' time by what it went to. Out: JSON, in which lengths have their unit in the
//! field's name.

mod run_queue;
mod thread_time;

pub use run_queue::run_queues;
pub use thread_time::thread_time;
