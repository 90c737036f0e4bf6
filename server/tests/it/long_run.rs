//! What a server has on its disk after a long time: days of ingest within seconds, by a clock that the test sets.

use crate::store::{quiet, rows_of, store_batch};
use crate::support::{Sender, now_ns};
use stakeout_server::store::{Ack, Clock, DataFile, Reading, Store, StoreConfig, Table, hour};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::time::Duration;

const HOUR_NS: i64 = 3_600_000_000_000;
const DAY_NS: i64 = 24 * HOUR_NS;
/// Entries of a log that stay.
const LOG_COMMITS: u64 = 40;

/// A clock that a test sets: what has passed, and by how much it is wrong.
#[derive(Clone, Default)]
struct Hands {
    start_ns: i64,
    passed_ns: Arc<AtomicI64>,
    wrong_ns: Arc<AtomicI64>,
}

impl Hands {
    fn at(start_ns: i64) -> Self {
        Self {
            start_ns,
            ..Self::default()
        }
    }

    /// The true time.
    fn now_ns(&self) -> i64 {
        self.start_ns + self.passed_ns.load(SeqCst)
    }

    fn pass(&self, ns: i64) {
        self.passed_ns.fetch_add(ns, SeqCst);
    }

    fn clock(&self) -> Arc<Clock> {
        let hands = self.clone();
        Arc::new(Clock::new(move || Reading {
            wall_ns: hands.now_ns() + hands.wrong_ns.load(SeqCst),
            steady: Duration::from_nanos(hands.passed_ns.load(SeqCst) as u64),
        }))
    }
}

/// Files and bytes by table and kind.
type DiskUsage = BTreeMap<String, (u64, u64)>;

fn disk_usage(data: &Path) -> DiskUsage {
    fn add(disk_usage: &mut DiskUsage, name: &str, dir: &Path) {
        for entry in std::fs::read_dir(dir).into_iter().flatten().map(|entry| entry.unwrap()) {
            if entry.file_type().unwrap().is_dir() {
                let inner = match entry.file_name().to_str() {
                    Some("_delta_log") => format!("{name} log"),
                    _ => name.to_owned(),
                };
                add(disk_usage, &inner, &entry.path());
            } else {
                // The store removes files while this counts them: one that is gone by now takes no room.
                let bytes = match entry.metadata() {
                    Ok(metadata) => metadata.len(),
                    Err(error) if error.kind() == ErrorKind::NotFound => continue,
                    Err(error) => panic!("{}: {error}", entry.path().display()),
                };
                let sum = disk_usage.entry(name.to_owned()).or_default();
                *sum = (sum.0 + 1, sum.1 + bytes);
            }
        }
    }
    let mut disk_usage = DiskUsage::new();
    for table in Table::ALL {
        add(&mut disk_usage, table.name(), &data.join(table.name()));
    }
    disk_usage
}

/// The most of each in these hours.
fn most(hours: &[DiskUsage]) -> DiskUsage {
    let mut most = DiskUsage::new();
    for (name, (files, bytes)) in hours.iter().flatten() {
        let sum = most.entry(name.clone()).or_default();
        *sum = (sum.0.max(*files), sum.1.max(*bytes));
    }
    most
}

/// As the defaults are, but for hours rather than days and months.
fn hours_long(dir: &Path, hands: &Hands) -> StoreConfig {
    let hours = |hours: u64| Duration::from_secs(hours * 3600);
    StoreConfig {
        retention_samples: hours(2),
        retention_minutes: hours(3),
        retention_hours: hours(4),
        vacuum_grace: Duration::ZERO,
        compact_files: 4,
        checkpoint_commits: 10,
        log_commits: LOG_COMMITS,
        clock: hands.clock(),
        ..quiet(dir)
    }
}

/// Three days, since dictionaries and accounts go by whole days: the third must not need more than the second.
/// `STAKEOUT_LONG_RUN_BATCHES`: how many come in an hour, for a longer run.
#[tokio::test(flavor = "multi_thread")]
async fn files_and_bytes_level_off() {
    let batches: i64 = std::env::var("STAKEOUT_LONG_RUN_BATCHES").map_or(4, |text| text.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    // What the library drops from checkpoints for its age, it drops by the machine's own clock: all this is older.
    let hands = Hands::at((now_ns() - 4 * DAY_NS) / DAY_NS * DAY_NS);
    let store = Store::open(hours_long(dir.path(), &hands)).await.unwrap();
    let mut sender = Sender::new("node-a", 60);
    let mut hours = Vec::new();
    for number in 1..=72 * batches {
        hands.pass(HOUR_NS / batches);
        let (rows, id) = rows_of(&mut sender, number, hands.now_ns());
        store_batch(&store, rows, Some(id)).await.unwrap();
        if number % (batches / 2).max(1) == 0 {
            store.maintain().await;
        }
        if number % batches == 0 {
            hours.push(disk_usage(dir.path()));
        }
    }
    store.close().await;
    let (second, third) = (most(&hours[24..48]), most(&hours[48..]));
    for (name, (files, bytes)) in &third {
        println!(
            "{name}: {files} files, {bytes} bytes; the day before {:?}",
            second.get(name)
        );
    }
    for (name, (files, bytes)) in third {
        // Dictionaries commit twice a day here: their logs have not come to the entries that are kept.
        if name.ends_with(" log") && files <= LOG_COMMITS {
            continue;
        }
        let (files_before, bytes_before) = second[&name];
        // A checkpoint more or less is a matter of which commit maintenance came after.
        let limits = (files_before + files_before / 8 + 2, bytes_before + bytes_before / 8);
        assert!(
            files <= limits.0 && bytes <= limits.1,
            "{name}: {files_before} files of {bytes_before} bytes became {files} of {bytes}"
        );
    }
}

/// Sends the batch of this number, which ends now, true time, or ended when it was sent first.
async fn sends(store: &Arc<Store>, hands: &Hands, sender: &mut Sender, ends_ns: &mut Vec<i64>, number: i64) -> Ack {
    let at = number as usize - 1;
    if at == ends_ns.len() {
        ends_ns.push(hands.now_ns());
    }
    let (rows, id) = rows_of(sender, number, ends_ns[at]);
    store_batch(store, rows, Some(id)).await.unwrap()
}

fn samples(store: &Store) -> u64 {
    let snapshot = store.snapshot();
    snapshot.files(Table::Samples).iter().map(|file| file.rows).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_jumps_removes_nothing_and_forgets_no_batch() {
    const YEAR_NS: i64 = 365 * DAY_NS;
    for wrong_ns in [YEAR_NS, -YEAR_NS] {
        let dir = tempfile::tempdir().unwrap();
        let hands = Hands::at(now_ns() - DAY_NS);
        let config = || StoreConfig {
            retention_samples: Duration::from_secs(72 * 3600),
            vacuum_grace: Duration::ZERO,
            checkpoint_commits: 1,
            log_commits: 1,
            clock: hands.clock(),
            ..quiet(dir.path())
        };
        let store = Store::open(config()).await.unwrap();
        let (mut sender, mut ends) = (Sender::new("node-a", 10), Vec::new());
        for number in 1..=3 {
            assert_eq!(sends(&store, &hands, &mut sender, &mut ends, number).await, Ack::Stored);
            hands.pass(HOUR_NS);
        }
        hands.wrong_ns.store(wrong_ns, SeqCst);
        store.maintain().await;
        assert_eq!(samples(&store), 30, "{wrong_ns}: nothing goes");
        let earliest_ns = store.earliest_ns(store.clock().proven_ns());
        assert!(
            earliest_ns < hands.now_ns() - 2 * DAY_NS,
            "{wrong_ns}: what comes is not too old"
        );
        assert!(store.clock().possible_ns() >= hands.now_ns(), "{wrong_ns}: nor too new");
        // What is sent meanwhile, a repeat among it, also by the next server, which starts with the wrong time.
        assert_eq!(sends(&store, &hands, &mut sender, &mut ends, 4).await, Ack::Stored);
        assert_eq!(sends(&store, &hands, &mut sender, &mut ends, 2).await, Ack::Duplicate);
        store.maintain().await;
        store.close().await;
        drop(store);
        let store = Store::open(config()).await.unwrap();
        store.maintain().await;
        assert_eq!(samples(&store), 40, "{wrong_ns}: nothing goes at the start");
        for number in 1..=4 {
            assert_eq!(
                sends(&store, &hands, &mut sender, &mut ends, number).await,
                Ack::Duplicate
            );
        }
        assert_eq!(sends(&store, &hands, &mut sender, &mut ends, 5).await, Ack::Stored);

        // It is put right: hours are merged and rolled up as ever, and retention goes on.
        hands.wrong_ns.store(0, SeqCst);
        hands.pass(2 * HOUR_NS);
        assert_eq!(sends(&store, &hands, &mut sender, &mut ends, 6).await, Ack::Stored);
        store.maintain().await;
        assert_eq!(samples(&store), 60);
        let (snapshot, running) = (store.snapshot(), hour(hands.now_ns()));
        let over = snapshot
            .files(Table::Samples)
            .iter()
            .filter(|file| file.partition < running);
        let is_rolled_up = |file: &Arc<DataFile>| snapshot.is_rolled_up(Table::SamplesHour, &file.partition);
        assert!(over.clone().count() > 0 && over.clone().all(is_rolled_up), "{wrong_ns}");
        hands.pass(3 * DAY_NS);
        assert_eq!(sends(&store, &hands, &mut sender, &mut ends, 7).await, Ack::Stored);
        store.maintain().await;
        assert_eq!(samples(&store), 20, "{wrong_ns}: what is older than three days goes");
        store.close().await;
    }
}
