//! The JSON answers of what threads do with their time.

mod run_queue;
mod thread_time;

pub use run_queue::run_queues;
pub use thread_time::thread_time;
