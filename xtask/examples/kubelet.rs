//! The program that `cargo xtask demo` profiles: it plays a node agent whose housekeeping walks a folder every second.
//!
//! In: the folder to walk as the only argument. It runs until its standard input ends. What it does costs the same
//! from second to second; only the walk, and the clearing away of what the walk found, depend on how large the folder
//! is. It is compiled with frame pointers and without inlining where a frame shall be seen.

use std::env;
use std::hint::black_box;
use std::io::Read;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// How often each of the steady threads has something to do.
const TICK: Duration = Duration::from_millis(40);

fn main() {
    let Some(root) = env::args().nth(1) else {
        eprintln!("usage: kubelet FOLDER");
        std::process::exit(2);
    };
    let rounds_per_ms = calibrate();
    let (found, to_clear) = sync_channel(4);
    spawn("syncloop", move || every(TICK, || sync_loop::sync_pods(rounds_per_ms)));
    spawn("status-manager", move || {
        every(TICK, || status::report(rounds_per_ms / 2))
    });
    spawn("http-server", move || every(TICK, || metrics::serve(rounds_per_ms / 2)));
    spawn("housekeeping", move || housekeeping(&root, &found));
    spawn("gc", move || to_clear.into_iter().for_each(gc::collect));
    // Until the command that started this program closes the pipe or ends.
    let _ = std::io::stdin().read_to_end(&mut vec![]);
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) {
    if let Err(error) = thread::Builder::new().name(name.to_owned()).spawn(work) {
        eprintln!("can't start the thread {name}: {error}");
        std::process::exit(1);
    }
}

/// Calls `work` at fixed times. What was missed is not made up for.
#[inline(never)]
fn every(interval: Duration, mut work: impl FnMut()) {
    let mut next = Instant::now();
    loop {
        work();
        next = (next + interval).max(Instant::now());
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
}

/// Rounds of `mix` that take a millisecond on this machine.
fn calibrate() -> u64 {
    let begin = Instant::now();
    let rounds = 5_000_000;
    black_box(mix(1, rounds));
    let took_ns = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX).max(1);
    rounds * 1_000_000 / took_ns
}

/// Arithmetic that takes time in proportion to `rounds`.
#[inline(never)]
fn mix(seed: u64, rounds: u64) -> u64 {
    (0..rounds).fold(seed, |state, round| {
        (state ^ round).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23)
    })
}

mod sync_loop {
    #[inline(never)]
    pub(super) fn sync_pods(rounds: u64) {
        compute_pod_actions(rounds * 2 / 3);
        probe_containers(rounds / 3);
        std::hint::black_box(());
    }

    #[inline(never)]
    fn compute_pod_actions(rounds: u64) {
        std::hint::black_box(super::mix(2, rounds));
    }

    #[inline(never)]
    fn probe_containers(rounds: u64) {
        std::hint::black_box(super::mix(3, rounds));
    }
}

mod status {
    #[inline(never)]
    pub(super) fn report(rounds: u64) {
        encode_status(rounds);
        std::hint::black_box(());
    }

    #[inline(never)]
    fn encode_status(rounds: u64) {
        std::hint::black_box(super::mix(5, rounds));
    }
}

mod metrics {
    #[inline(never)]
    pub(super) fn serve(rounds: u64) {
        encode_metrics(rounds);
        std::hint::black_box(());
    }

    #[inline(never)]
    fn encode_metrics(rounds: u64) {
        std::hint::black_box(super::mix(7, rounds));
    }
}

/// Walks the folder every second and hands what it found to the `gc` thread.
#[inline(never)]
fn housekeeping(root: &str, found: &SyncSender<Vec<tree::Entry>>) {
    every(Duration::from_secs(1), || {
        let mut entries = vec![];
        tree::walk(root.to_owned(), &mut entries);
        // The other side only ends with the program.
        let _ = found.send(entries);
    });
}

mod tree {
    use std::fs;

    /// What the walk notes of each file: short-lived, and many of them in a large folder.
    #[derive(Debug)]
    pub(super) struct Entry {
        pub(super) path: String,
        pub(super) bytes: u64,
    }

    /// Goes down into every folder, one call a level.
    #[inline(never)]
    pub(super) fn walk(folder: String, entries: &mut Vec<Entry>) {
        let Ok(children) = fs::read_dir(&folder) else { return };
        for child in children.flatten() {
            let path = child.path().to_string_lossy().into_owned();
            let Some((is_dir, bytes)) = look_at(&path) else {
                continue;
            };
            entries.push(Entry {
                path: path.clone(),
                bytes,
            });
            if is_dir {
                walk(path, entries);
            }
        }
        std::hint::black_box(&folder);
    }

    /// One look at a file's metadata, without following links.
    #[inline(never)]
    fn look_at(path: &str) -> Option<(bool, u64)> {
        let metadata = fs::symlink_metadata(path).ok()?;
        std::hint::black_box(Some((metadata.is_dir(), metadata.len())))
    }
}

mod gc {
    use super::tree::Entry;

    #[inline(never)]
    pub(super) fn collect(entries: Vec<Entry>) {
        let live = mark(&entries);
        sweep(entries);
        std::hint::black_box(live);
    }

    /// Touches every byte, as a collector does that looks for references.
    #[inline(never)]
    fn mark(entries: &[Entry]) -> u64 {
        let touch = |state: u64, byte: u8| (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        entries
            .iter()
            .fold(0, |state, entry| entry.path.bytes().fold(state ^ entry.bytes, touch))
    }

    #[inline(never)]
    fn sweep(entries: Vec<Entry>) {
        for entry in entries {
            std::hint::black_box(&entry);
            drop(entry);
        }
    }
}
