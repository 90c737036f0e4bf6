//! Computing on several threads what is the same in whatever order it is computed. For threads that may block.

use crate::query::limits::error::QueryError;
use std::ops::Range;

/// Items below which another thread is not worth its start.
pub(crate) const LEAST_ITEMS: usize = 16 * 1024;

/// The same for both sides of a difference, each on a thread of its own.
pub(crate) fn both<T: Send>(of: impl Fn(usize) -> T + Sync) -> [T; 2] {
    std::thread::scope(|scope| {
        let second = scope.spawn(|| of(1));
        let first = of(0);
        [first, joined(second)]
    })
}

/// For each of so many items, in their order.
pub(crate) fn each_of<T: Send + Clone + Default>(count: usize, of: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let mut all = vec![T::default(); count];
    let mut rest = &mut all[..];
    let parts = ranges(count).into_iter().map(|range| {
        let (part, behind) = std::mem::take(&mut rest).split_at_mut(range.len());
        rest = behind;
        (range, part)
    });
    at_once(parts.collect(), |(range, part): (Range<usize>, &mut [T])| {
        for (to, item) in part.iter_mut().zip(range) {
            *to = of(item);
        }
    });
    all
}

/// For each of some stretches that so many items are cut into, in their order.
pub(crate) fn each_part<T: Send>(count: usize, of: impl Fn(Range<usize>) -> T + Sync) -> Vec<T> {
    at_once(ranges(count), of)
}

/// As many stretches of so many items as threads are worth their start.
fn ranges(count: usize) -> Vec<Range<usize>> {
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    let threads = threads.min(count / LEAST_ITEMS).max(1);
    let end = |thread: usize| count * thread / threads;
    (0..threads).map(|thread| end(thread)..end(thread + 1)).collect()
}

/// The first on this thread, each other one on a thread of its own.
fn at_once<A: Send, T: Send>(parts: Vec<A>, of: impl Fn(A) -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let (of, mut parts) = (&of, parts.into_iter());
        let first = parts.next();
        let others: Vec<_> = parts.map(|part| scope.spawn(move || of(part))).collect();
        let mut all: Vec<T> = first.map(of).into_iter().collect();
        all.extend(others.into_iter().map(joined));
        all
    })
}

/// What a thread returns; its panic is ours.
pub(crate) fn joined<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Runs what only computes apart from the threads that serve requests.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, QueryError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| QueryError::internal("compute the answer", error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_in_their_order_however_many_threads_there_are() {
        for count in [0, 1, LEAST_ITEMS, 2 * LEAST_ITEMS + 1, 10 * LEAST_ITEMS + 7] {
            let squares: Vec<usize> = (0..count).map(|item| item * item).collect();
            assert_eq!(each_of(count, |item| item * item), squares);
            let parts = each_part(count, |range| range.map(|item| item * item).collect::<Vec<_>>());
            assert_eq!(parts.concat(), squares);
        }
        assert_eq!(both(|side| side + 1), [1, 2]);
    }
}
