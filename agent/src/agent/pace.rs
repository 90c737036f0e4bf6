//! Spreads the work that a start and new programs bring, so that it takes no CPU for itself all at once.
//!
//! Tables and names of files that were never met are the agent's dearest work, and all of it comes in the first seconds. What it
//! is needed for can wait: stacks as copies, places in their interval.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::kernel;

/// What tables and names together may take of one CPU, where `--cpu-limit` does not allow them more. Where it allows less, as on
/// two CPUs, stacks would wait longer than their copies are kept.
const LEAST_SHARE: f64 = 0.1;
/// A pause ends the allowance of so much time behind: a single small file never waits.
const SAVED_NS: u64 = 500_000_000;

/// When what was done is paid for, at a share of one CPU.
#[derive(Debug)]
struct Account {
    share: f64,
    paid_ns: u64,
}

impl Account {
    /// Until when to pause after work that took `used_ns` of CPU time and ended now.
    fn after(&mut self, now_ns: u64, used_ns: u64) -> u64 {
        let begin_ns = self.paid_ns.max(now_ns.saturating_sub(SAVED_NS));
        self.paid_ns = begin_ns + (used_ns as f64 / self.share) as u64;
        self.paid_ns
    }
}

/// The share that several threads keep to together.
#[derive(Debug)]
pub(super) struct Pace {
    /// None after the end, when nothing is to wait any more.
    account: Mutex<Option<Account>>,
    ended: Condvar,
}

impl Pace {
    pub(super) fn new(cpu_limit: f64, cpus: usize) -> Arc<Self> {
        let account = Account {
            share: (cpu_limit * cpus as f64).max(LEAST_SHARE),
            paid_ns: 0,
        };
        Arc::new(Self {
            account: Mutex::new(Some(account)),
            ended: Condvar::new(),
        })
    }

    /// Ends all pauses.
    pub(super) fn end(&self) {
        *self.account.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.ended.notify_all();
    }

    fn pause_after(&self, used_ns: u64) {
        let mut account = self.account.lock().unwrap_or_else(PoisonError::into_inner);
        let now_ns = kernel::monotonic_ns();
        let Some(until_ns) = account.as_mut().map(|account| account.after(now_ns, used_ns)) else {
            return;
        };
        let pause = Duration::from_nanos(until_ns.saturating_sub(now_ns));
        // Who panicked elsewhere left an account that is as good as before.
        drop(
            self.ended
                .wait_timeout_while(account, pause, |account| account.is_some()),
        );
    }
}

/// One thread's part in it.
#[derive(Debug)]
pub(super) struct Worker {
    pace: Arc<Pace>,
    used_ns: u64,
}

impl Worker {
    /// On the thread itself.
    pub(super) fn new(pace: Arc<Pace>) -> Self {
        Self {
            pace,
            used_ns: kernel::thread_cpu_ns(),
        }
    }

    /// Pauses as long as what the thread did since the last pause asks for.
    pub(super) fn pause(&mut self) {
        let used_ns = kernel::thread_cpu_ns();
        self.pace.pause_after(used_ns - self.used_ns);
        self.used_ns = used_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    /// CPU time that goes into so many seconds, where there is always work, in pieces.
    fn used_in(seconds: u64, share: f64, piece_ns: u64) -> u64 {
        let (mut account, begin_ns) = (Account { share, paid_ns: 0 }, 100 * SECOND_NS);
        let (mut now_ns, mut used_ns) = (begin_ns, 0);
        while now_ns < begin_ns + seconds * SECOND_NS {
            now_ns += piece_ns;
            used_ns += piece_ns;
            now_ns = now_ns.max(account.after(now_ns, piece_ns));
        }
        used_ns
    }

    #[test]
    fn work_without_end_takes_its_share_and_what_was_saved() {
        let [first, ten] = [1, 10].map(|seconds| used_in(seconds, 0.1, 2_000_000));
        assert!((150_000_000..156_000_000).contains(&first), "{first}");
        assert!((1_050_000_000..1_056_000_000).contains(&ten), "{ten}");
    }

    #[test]
    fn large_pieces_are_paid_for_afterwards() {
        let used = used_in(10, 0.1, 300_000_000);
        assert!((900_000_000..1_400_000_000).contains(&used), "{used}");
    }

    #[test]
    fn a_whole_cpu_and_more_never_pauses() {
        let mut account = Account { share: 2.0, paid_ns: 0 };
        assert!((1..1000).all(|second| account.after(second * SECOND_NS, SECOND_NS) <= second * SECOND_NS));
    }

    #[test]
    fn the_end_ends_pauses() {
        let pace = Pace::new(0.01, 2);
        std::thread::scope(|scope| {
            // Ten thousand seconds at a tenth of a CPU.
            scope.spawn(|| pace.pause_after(1_000 * SECOND_NS));
            pace.end();
        });
        pace.pause_after(1_000 * SECOND_NS);
    }
}
