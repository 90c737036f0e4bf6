//! Reads that another process can hold up, on a thread that may be left behind.
//!
//! A command line lies in the process's own memory, and memory may be a file whose server does not answer; so may a
//! program's file, or the folder of its perf map. Who reads such things on a thread of its own loses one thread, and
//! goes on.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Reads take micro- to milliseconds; on a machine with a load of twenty the thread may have to wait for its turn.
const DEADLINE: Duration = Duration::from_millis(1500);
/// For owners of whom a thread is stuck already.
const SHORT_DEADLINE: Duration = Duration::from_millis(150);
/// Threads that may be stuck in what is one owner's; in all, for who has one already; and for everybody.
const STUCK_PER_OWNER: u32 = 4;
const STUCK: u32 = 32;
const STUCK_AT_MOST: u32 = 64;
const STACK_BYTES: usize = 256 * 1024;

/// Who is to blame where a read does not end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    /// The user whose process it is.
    User(u32),
    /// The filesystem whose server does not answer, by its device.
    Device(u64),
}

/// How many threads are stuck in what is whose.
static LEFT_BEHIND: Mutex<Option<HashMap<Owner, u32>>> = Mutex::new(None);
static ABANDONED: AtomicU64 = AtomicU64::new(0);
static REFUSED: AtomicU64 = AtomicU64::new(0);

/// Reads that were given up since they took too long, and those that were not begun, since too many of the same owner's
/// are stuck.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct StuckReads {
    /// Reads that took too long.
    pub(crate) abandoned: u64,
    /// Reads that were not begun.
    pub(crate) refused: u64,
}

pub(crate) fn stuck_reads() -> StuckReads {
    StuckReads {
        abandoned: ABANDONED.load(Ordering::Relaxed),
        refused: REFUSED.load(Ordering::Relaxed),
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How long a read of that owner's may take; none where it may not be begun.
fn admitted(owner: Owner) -> Option<Duration> {
    let left = locked(&LEFT_BEHIND);
    let Some(left) = left.as_ref().filter(|left| !left.is_empty()) else {
        return Some(DEADLINE);
    };
    let own = left.get(&owner).copied().unwrap_or(0);
    let all: u32 = left.values().sum();
    if own >= STUCK_PER_OWNER || all >= STUCK_AT_MOST || (own > 0 && all >= STUCK) {
        return None;
    }
    Some(if own == 0 { DEADLINE } else { SHORT_DEADLINE })
}

/// How a read goes on, for who waits and who reads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Running,
    Done,
    LeftBehind,
}

/// Ends with its read, however that ends.
struct Reading {
    owner: Owner,
    progress: Arc<Mutex<Progress>>,
}

impl Drop for Reading {
    fn drop(&mut self) {
        let mut progress = locked(&self.progress);
        if *progress == Progress::LeftBehind
            && let Some(left) = locked(&LEFT_BEHIND).as_mut()
            && let Some(count) = left.get_mut(&self.owner)
        {
            *count -= 1;
            if *count == 0 {
                left.remove(&self.owner);
            }
        }
        *progress = Progress::Done;
    }
}

type Job = Box<dyn FnOnce() + Send>;

thread_local! {
    /// Of each thread that reads, the one that does it, once there is one.
    static HELPER: RefCell<Option<SyncSender<Job>>> = const { RefCell::new(None) };
}

fn start_helper() -> Option<SyncSender<Job>> {
    let (jobs, todo): (_, Receiver<Job>) = sync_channel(1);
    let thread = std::thread::Builder::new()
        .name("stakeout-read".into())
        .stack_size(STACK_BYTES);
    thread
        .spawn(move || todo.into_iter().for_each(|job| job()))
        .inspect_err(|error| tracing::warn!(%error, "no thread to read with"))
        .ok()?;
    Some(jobs)
}

/// Does what may never end, for what is somebody's. None where it did not end in time, or may not be tried.
pub(crate) fn guarded<T: Send + 'static>(owner: Owner, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let Some(deadline) = admitted(owner) else {
        REFUSED.fetch_add(1, Ordering::Relaxed);
        return None;
    };
    let progress = Arc::new(Mutex::new(Progress::Running));
    let reading = Reading {
        owner,
        progress: Arc::clone(&progress),
    };
    let (done, result) = sync_channel(1);
    let job: Job = Box::new(move || {
        let _reading = reading;
        // Who has given up does not want it.
        let _ = done.send(work());
    });
    let helper = HELPER.take().or_else(start_helper)?;
    helper.send(job).ok()?;
    if let Ok(value) = result.recv_timeout(deadline) {
        HELPER.set(Some(helper));
        return Some(value);
    }
    let mut progress = locked(&progress);
    if *progress == Progress::Done {
        // It came in the last moment, or the thread is no more.
        return result.try_recv().ok();
    }
    *progress = Progress::LeftBehind;
    *locked(&LEFT_BEHIND)
        .get_or_insert_with(HashMap::new)
        .entry(owner)
        .or_default() += 1;
    ABANDONED.fetch_add(1, Ordering::Relaxed);
    tracing::debug!(
        ?owner,
        "a read of another process's files does not end: it is left behind"
    );
    None
}

/// The same for what is a process's own.
pub(crate) fn guarded_for<T: Send + 'static>(tgid: u32, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let owner = super::path_state(&format!("/proc/{tgid}")).ok()?.owner;
    guarded(Owner::User(owner), work)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    /// Owners that no other test has.
    const OWNER: Owner = Owner::Device(u64::MAX);
    const OTHER: Owner = Owner::User(4_000_000_002);

    #[test]
    fn what_never_ends_costs_a_bounded_number_of_threads_and_only_its_owner() {
        let before = stuck_reads();
        let (end, wait) = sync_channel::<()>(0);
        let wait = Arc::new(Mutex::new(wait));
        for _ in 0..STUCK_PER_OWNER {
            let wait = Arc::clone(&wait);
            let never = guarded(OWNER, move || {
                let _ = locked(&wait).recv();
            });
            assert_eq!(never, None);
        }
        let begun = Instant::now();
        assert_eq!(guarded(OWNER, || 1), None, "not even begun");
        assert!(begun.elapsed() < SHORT_DEADLINE);
        assert_eq!(guarded(OTHER, || 2), Some(2));
        let after = stuck_reads();
        assert_eq!(after.abandoned - before.abandoned, u64::from(STUCK_PER_OWNER));
        assert!(after.refused > before.refused);
        drop(end);
        let deadline = Instant::now() + Duration::from_secs(10);
        while guarded(OWNER, || 3) != Some(3) {
            assert!(Instant::now() < deadline, "what has ended is no longer counted");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_read_that_panics_is_none() {
        assert_eq!(guarded(OTHER, || -> u32 { panic!("on purpose") }), None);
        assert_eq!(guarded(OTHER, || 4), Some(4));
    }
}
