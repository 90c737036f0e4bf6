//! Computing on several threads what is the same in whatever order it is computed. For threads that may block.

/// Items below which another thread is not worth its start.
pub(super) const LEAST_ITEMS: usize = 16 * 1024;

/// The same for both sides of a difference, each on a thread of its own.
pub(super) fn both<T: Send>(of: impl Fn(usize) -> T + Sync) -> [T; 2] {
    std::thread::scope(|scope| {
        let second = scope.spawn(|| of(1));
        let first = of(0);
        [first, joined(second)]
    })
}

/// For each of so many items, in their order.
pub(super) fn each_of<T: Send>(count: usize, of: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    let threads = threads.min(count / LEAST_ITEMS);
    if threads < 2 {
        return (0..count).map(of).collect();
    }
    let part = |thread: usize| count * thread / threads..count * (thread + 1) / threads;
    std::thread::scope(|scope| {
        let of = &of;
        let parts: Vec<_> = (1..threads)
            .map(|thread| scope.spawn(move || part(thread).map(of).collect::<Vec<T>>()))
            .collect();
        let mut all = Vec::with_capacity(count);
        all.extend(part(0).map(of));
        for part in parts {
            all.extend(joined(part));
        }
        all
    })
}

/// What a thread returns; its panic is ours.
pub(super) fn joined<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_in_their_order_however_many_threads_there_are() {
        for count in [0, 1, LEAST_ITEMS, 2 * LEAST_ITEMS + 1, 10 * LEAST_ITEMS + 7] {
            let squares: Vec<usize> = (0..count).map(|item| item * item).collect();
            assert_eq!(each_of(count, |item| item * item), squares);
        }
        assert_eq!(both(|side| side + 1), [1, 2]);
    }
}
