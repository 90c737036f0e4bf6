//! The store by itself: what goes in is there once, before and after commits, compaction, retention and reopening.

use crate::support::{Sender, now_ns};
use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use prost::Message;
use stakeout_server::ingest::{IsKnown, Senders, TimeWindow, convert, read};
use stakeout_server::store::{Ack, BatchId, Rows, Snapshot, Store, StoreConfig, StoreError, Table};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

pub(crate) const DAY_NS: i64 = 86_400_000_000_000;

/// Commits and maintains only when a test says so.
pub(crate) fn quiet(dir: &Path) -> StoreConfig {
    StoreConfig {
        commit_interval: Duration::from_secs(3600),
        maintenance_interval: Duration::from_secs(3600),
        min_free_bytes: 0,
        ..StoreConfig::new(dir)
    }
}

pub(crate) fn rows_of(sender: &mut Sender, number: i64, until_ns: i64) -> (Rows, BatchId) {
    rows_without(sender, number, until_ns, &|_, _, ids| vec![false; ids.len()])
}

pub(crate) fn rows_without(sender: &mut Sender, number: i64, until_ns: i64, is_known: IsKnown<'_>) -> (Rows, BatchId) {
    let window = TimeWindow {
        earliest_ns: 0,
        latest_ns: i64::MAX,
        now_ns: until_ns,
    };
    let wire = sender.batch(number, until_ns).encode_to_vec();
    let request = read(&wire, 1 << 24).unwrap();
    let converted = convert(&request, None, window, is_known, &Senders::default()).unwrap();
    assert_eq!(converted.message, "");
    let [part] = <[_; 1]>::try_from(converted.parts).unwrap();
    (part.rows, part.id.unwrap())
}

/// Appends and commits.
pub(crate) async fn store_batch(store: &Arc<Store>, rows: Rows, id: Option<BatchId>) -> Result<Ack, StoreError> {
    let appended = tokio::spawn({
        let store = store.clone();
        async move { store.append(rows, id).await }
    });
    while !appended.is_finished() {
        store.flush().await.ok();
        tokio::task::yield_now().await;
    }
    appended.await.unwrap()
}

pub(crate) async fn number(snapshot: &Snapshot, query: &str) -> i64 {
    let batches = snapshot.session().sql(query).await.unwrap().collect().await.unwrap();
    batches[0].column(0).as_primitive::<Int64Type>().value(0)
}

/// Samples in files and pending.
fn counts(snapshot: &Snapshot) -> (u64, usize) {
    let files = snapshot.files(Table::Samples).iter().map(|file| file.rows).sum();
    (
        files,
        snapshot
            .pending(Table::Samples)
            .iter()
            .map(|batch| batch.num_rows())
            .sum(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_visible_before_their_commit_and_once_after_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(quiet(dir.path())).await.unwrap();
    let mut sender = Sender::new("node-a", 30);
    let (rows, id) = rows_of(&mut sender, 1, now_ns());
    let append = tokio::spawn({
        let store = store.clone();
        async move { store.append(rows, Some(id)).await }
    });
    crate::support::eventually("the rows are pending", async || counts(&store.snapshot()) == (0, 30)).await;
    let before = store.snapshot();
    store.flush().await.unwrap();
    assert_eq!(append.await.unwrap().unwrap(), Ack::Stored);
    let after = store.snapshot();
    assert_eq!(counts(&after), (30, 0));
    for snapshot in [&before, &after] {
        assert_eq!(number(snapshot, "SELECT count(*) FROM samples").await, 30);
        assert_eq!(
            number(snapshot, "SELECT count(*) FROM samples WHERE service = 'service-1'").await,
            10
        );
        assert_eq!(
            number(snapshot, "SELECT count(*) FROM samples WHERE mode = 'kernel'").await,
            30
        );
        assert_eq!(
            number(snapshot, "SELECT sum(value) FROM samples").await,
            30 * crate::support::PERIOD_NS
        );
        assert_eq!(number(snapshot, "SELECT count(*) FROM series").await, 3);
        // Five stacks; samples 0, 10 and 20 are cut, all with work-0.
        assert_eq!(number(snapshot, "SELECT count(*) FROM stacks").await, 6);
        assert_eq!(number(snapshot, "SELECT count(*) FROM frames").await, 7);
        assert_eq!(number(snapshot, "SELECT count(*) FROM processes").await, 3);
        assert_eq!(number(snapshot, "SELECT sum(samples) FROM batches").await, 30);
        let joined = "SELECT count(*) FROM samples s JOIN stacks t ON s.stack_id = t.stack_id WHERE t.truncated";
        assert_eq!(number(snapshot, joined).await, 3);
    }
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_is_acknowledged_and_not_stored_even_after_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let mut sender = Sender::new("node-a", 10);
    let until = now_ns();
    let store = Store::open(quiet(dir.path())).await.unwrap();
    let (rows, id) = rows_of(&mut sender, 1, until);
    // The first and a repeat while it is pending.
    let both = [rows.clone(), rows.clone()].map(|rows| {
        let (store, id) = (store.clone(), id.clone());
        tokio::spawn(async move { store.append(rows, Some(id)).await })
    });
    crate::support::eventually("one of them is pending", async || counts(&store.snapshot()).1 > 0).await;
    let mut acks = Vec::new();
    for append in both {
        while !append.is_finished() {
            store.flush().await.unwrap();
            tokio::task::yield_now().await;
        }
        acks.push(append.await.unwrap().unwrap());
    }
    acks.sort_by_key(|ack| *ack == Ack::Duplicate);
    assert_eq!(acks, [Ack::Stored, Ack::Duplicate]);
    assert_eq!(
        store.append(rows.clone(), Some(id.clone())).await.unwrap(),
        Ack::Duplicate
    );
    // Numbers may be skipped, and what was skipped may still come.
    let (third, third_id) = rows_of(&mut sender, 3, until);
    let (second, second_id) = rows_of(&mut sender, 2, until);
    assert_eq!(
        store_batch(&store, third, Some(third_id.clone())).await.unwrap(),
        Ack::Stored
    );
    store.close().await;
    drop(store);
    let store = Store::open(quiet(dir.path())).await.unwrap();
    assert_eq!(store.append(rows, Some(id)).await.unwrap(), Ack::Duplicate);
    assert_eq!(
        store_batch(&store, second, Some(second_id.clone())).await.unwrap(),
        Ack::Stored
    );
    assert_eq!(counts(&store.snapshot()), (30, 0));
    let nodes = store.nodes();
    assert_eq!(nodes.len(), 1);
    assert_eq!((nodes[0].samples_stored, nodes[0].last.number), (30, 3));
    assert_eq!(nodes[0].last.lost["ring_full"], 3);
    store.close().await;
}

/// Tables of several versions of the server stand side by side: ids must not change.
#[test]
fn ids_are_hashes_of_what_they_stand_for() {
    let (rows, _) = rows_of(&mut Sender::new("node-a", 6), 1, 1_800_000_000_000_000_000);
    let ids = |table: Table| {
        let batch = &rows.tables[table.index()][0];
        batch.column(0).as_primitive::<Int64Type>().values().to_vec()
    };
    assert_eq!(
        ids(Table::Series),
        [
            1_732_294_953_112_524_651,
            -3_576_711_805_793_787_211,
            -2_517_401_679_237_308_296
        ]
    );
    assert_eq!(
        ids(Table::Processes),
        [
            -9_126_930_636_513_297_547,
            4_490_189_966_032_485_506,
            1_006_912_219_159_189_775
        ]
    );
    assert_eq!(
        ids(Table::Stacks),
        [
            7_341_129_037_778_982_691,
            -8_359_324_298_675_538_837,
            2_171_197_454_417_436_199,
            7_110_338_026_923_686_209,
            -1_660_435_464_637_001_385,
            6_471_623_301_615_216_860
        ]
    );
    assert_eq!(
        ids(Table::Frames),
        [
            -2_572_032_222_944_331_406,
            836_169_088_256_617_597,
            1_401_858_683_435_709_404,
            1_507_835_848_816_484_718,
            2_317_850_484_753_023_213,
            -6_728_224_167_925_687_551,
            -2_555_881_290_229_002_698
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn compaction_keeps_every_sample_and_one_row_an_id() {
    let dir = tempfile::tempdir().unwrap();
    let config = StoreConfig {
        maintenance_interval: Duration::from_millis(50),
        vacuum_grace: Duration::ZERO,
        compact_files: 4,
        checkpoint_commits: 3,
        ..quiet(dir.path())
    };
    let store = Store::open(config.clone()).await.unwrap();
    let mut sender = Sender::new("node-a", 50);
    let until = now_ns();
    let mut before = None;
    for batch in 1..=8 {
        let (rows, id) = rows_of(&mut sender, batch, until + batch);
        store_batch(&store, rows, Some(id)).await.unwrap();
        before.get_or_insert_with(|| store.snapshot());
    }
    crate::support::eventually("files are compacted", async || {
        store.snapshot().files(Table::Samples).len() < 5
    })
    .await;
    let sums = "SELECT sum(CAST(ts_ns - stack_id % 1000 + tid * 7 AS BIGINT)) FROM samples";
    let snapshot = store.snapshot();
    assert_eq!(counts(&snapshot), (400, 0));
    let sum = number(&snapshot, sums).await;
    let mut expected = 0;
    let fresh = tempfile::tempdir().unwrap();
    let plain = Store::open(quiet(fresh.path())).await.unwrap();
    let mut again = sender.clone();
    for batch in 1..=8 {
        let (rows, id) = rows_of(&mut again, batch, until + batch);
        store_batch(&plain, rows, Some(id)).await.unwrap();
        expected = number(&plain.snapshot(), sums).await;
    }
    assert_eq!(sum, expected);
    // What was replaced goes from the disk, and nothing else does.
    let on_disk = || {
        let mut count = 0;
        for partition in std::fs::read_dir(dir.path().join("samples")).unwrap().flatten() {
            if partition.file_name().to_string_lossy().starts_with("hour=") {
                // The folder of an hour that is empty by now goes too.
                count += std::fs::read_dir(partition.path()).map_or(0, Iterator::count);
            }
        }
        count
    };
    crate::support::eventually("replaced files are deleted", async || {
        on_disk() == store.snapshot().files(Table::Samples).len()
    })
    .await;
    let checkpointed = || dir.path().join("samples/_delta_log/_last_checkpoint").is_file();
    crate::support::eventually("a checkpoint is written", async || checkpointed()).await;
    store.close().await;
    plain.close().await;
    drop(store);
    let store = Store::open(quiet(dir.path())).await.unwrap();
    assert_eq!(counts(&store.snapshot()), (400, 0));
    assert_eq!(number(&store.snapshot(), sums).await, expected);
    let (rows, id) = rows_of(&mut sender, 8, until);
    assert_eq!(store.append(rows, Some(id)).await.unwrap(), Ack::Duplicate);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_days_are_merged_as_far_as_their_memory_goes() {
    let mut seen = Vec::new();
    for merge_bytes in [1, 10 << 10, 1 << 30] {
        let dir = tempfile::tempdir().unwrap();
        let config = StoreConfig {
            merge_bytes,
            compact_files: 4,
            ..quiet(dir.path())
        };
        let store = Store::open(config).await.unwrap();
        let mut sender = Sender::new("node-a", 5);
        for batch in 1..=8 {
            let (rows, id) = rows_of(&mut sender, batch, now_ns());
            store_batch(&store, rows, Some(id)).await.unwrap();
        }
        // It ends, and what is too large is not tried again and again.
        for _ in 0..2 {
            store.maintain().await;
        }
        let snapshot = store.snapshot();
        let accounts = "SELECT CAST(sum(number) AS BIGINT) FROM batches";
        assert_eq!(number(&snapshot, accounts).await, (1..=8).sum::<i64>());
        let rewritten = store.counters.files_compacted.load(Relaxed);
        seen.push((snapshot.files(Table::Batches).len(), rewritten));
        store.close().await;
    }
    // None, a few at a time, all at once; beside the eight of samples.
    let [none, few, all] = seen[..] else { unreachable!() };
    assert_eq!((none, all), ((8, 8), (1, 16)));
    assert!(few.0 == 1 && few.1 > 16, "{few:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_older_than_the_retention_goes_by_whole_hours() {
    let dir = tempfile::tempdir().unwrap();
    let hour = 3_600_000_000_000;
    let store = Store::open(quiet(dir.path())).await.unwrap();
    let mut sender = Sender::new("node-a", 10);
    for (number, age_hours) in [(1, 100), (2, 50), (3, 0)] {
        let (rows, id) = rows_of(&mut sender, number, now_ns() - age_hours * hour);
        store_batch(&store, rows, Some(id)).await.unwrap();
    }
    store.close().await;
    drop(store);
    let config = StoreConfig {
        retention_samples: Duration::from_secs(72 * 3600),
        retention_minutes: Duration::from_secs(72 * 3600),
        retention_hours: Duration::from_secs(72 * 3600),
        maintenance_interval: Duration::from_millis(50),
        ..quiet(dir.path())
    };
    let store = Store::open(config).await.unwrap();
    crate::support::eventually("the oldest hour is gone", async || counts(&store.snapshot()).0 == 20).await;
    assert_eq!(number(&store.snapshot(), "SELECT count(*) FROM samples").await, 20);
    // Two days are left, each with its own dictionary rows; those of the oldest go after its samples.
    crate::support::eventually("the oldest day is gone", async || {
        store.snapshot().files(Table::Stacks).len() == 2
    })
    .await;
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_belongs_to_one_server_and_a_broken_commit_leaves_no_rows() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(quiet(dir.path())).await.unwrap();
    let second = Store::open(quiet(dir.path())).await.unwrap_err();
    assert!(matches!(second, StoreError::Locked { .. }), "{second}");
    let mut sender = Sender::new("node-a", 10);
    let (rows, id) = rows_of(&mut sender, 1, now_ns());
    // A folder in the way of the next version: the commit cannot be written.
    let version = dir.path().join("samples/_delta_log").join(format!("{:020}.json", 1));
    std::fs::create_dir(&version).unwrap();
    store_batch(&store, rows.clone(), Some(id.clone())).await.unwrap_err();
    assert_eq!(counts(&store.snapshot()), (0, 0));
    std::fs::remove_dir(&version).unwrap();
    store.close().await;
    drop(store);
    let store = Store::open(quiet(dir.path())).await.unwrap();
    assert_eq!(store_batch(&store, rows, Some(id)).await.unwrap(), Ack::Stored);
    assert_eq!(counts(&store.snapshot()), (10, 0));
    assert_eq!(number(&store.snapshot(), "SELECT count(*) FROM batches").await, 1);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_stops_ingest_and_not_queries_and_passes() {
    let dir = tempfile::tempdir().unwrap();
    let mount = dir.path().join("small");
    std::fs::create_dir(&mount).unwrap();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=2m", "tmpfs"])
        .arg(&mount)
        .output()
        .is_ok_and(|output| output.status.success());
    if !mounted {
        eprintln!("skipped: mounting a small tmpfs needs root");
        return;
    }
    let _unmount = Unmount(mount.clone());
    let config = StoreConfig {
        commit_interval: Duration::from_millis(20),
        ..quiet(&mount)
    };
    let store = Store::open(config).await.unwrap();
    let mut sender = Sender::new("node-a", 100);
    let (rows, id) = rows_of(&mut sender, 1, now_ns());
    assert_eq!(store.append(rows, Some(id)).await.unwrap(), Ack::Stored);
    // Fill the disk to the last byte.
    let ballast = mount.join("ballast");
    let mut size = 2 << 20;
    let mut file = std::fs::File::create(&ballast).unwrap();
    while size > 0 {
        if std::io::Write::write_all(&mut file, &vec![1; size]).is_err() {
            size /= 2;
        }
    }
    let (rows, id) = rows_of(&mut sender, 2, now_ns());
    let refused = store.append(rows.clone(), Some(id.clone())).await.unwrap_err();
    assert!(matches!(refused, StoreError::DiskFull { .. }), "{refused}");
    assert_eq!(number(&store.snapshot(), "SELECT count(*) FROM samples").await, 100);
    // Removed and closed: an open file keeps its space.
    drop(file);
    std::fs::remove_file(&ballast).unwrap();
    crate::support::eventually("ingest goes on", async || {
        matches!(
            store.append(rows.clone(), Some(id.clone())).await,
            Ok(Ack::Stored | Ack::Duplicate)
        )
    })
    .await;
    assert_eq!(number(&store.snapshot(), "SELECT count(*) FROM samples").await, 200);
    store.close().await;
}

struct Unmount(std::path::PathBuf);

impl Drop for Unmount {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn any_delta_reader_sees_the_tables() {
    let dir = tempfile::tempdir().unwrap();
    let config = StoreConfig {
        maintenance_interval: Duration::from_millis(50),
        settle: Duration::ZERO,
        ..quiet(dir.path())
    };
    let store = Store::open(config).await.unwrap();
    let mut sender = Sender::new("node-a", 20);
    let (rows, id) = rows_of(&mut sender, 1, now_ns() - DAY_NS);
    store_batch(&store, rows, Some(id)).await.unwrap();
    crate::support::eventually("the hour is rolled up", async || {
        !store.snapshot().files(Table::SamplesHour).is_empty()
    })
    .await;
    store.close().await;
    for table in Table::ALL {
        let url = url::Url::from_directory_path(dir.path().join(table.name()).canonicalize().unwrap()).unwrap();
        let delta = deltalake_core::open_table(url).await.unwrap();
        let state = delta.snapshot().unwrap();
        let rows: usize = state.log_data().iter().filter_map(|file| file.num_records()).sum();
        assert!(rows > 0, "{table:?}");
        let names: Vec<_> = state.schema().fields().map(|field| field.name().clone()).collect();
        let expected: Vec<_> = table
            .schema()
            .fields()
            .iter()
            .map(|field| field.name().clone())
            .collect();
        assert_eq!(names, expected);
    }
}

pub(crate) fn copy_dir(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_dir(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ranges_of_days_have_each_account_once() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(quiet(dir.path())).await.unwrap();
    let mut sender = Sender::new("node-a", 5);
    for number in 1..=4 {
        let (rows, id) = rows_of(&mut sender, number, now_ns() - (4 - number) * DAY_NS);
        store_batch(&store, rows, Some(id)).await.unwrap();
    }
    // Of one that waits for its commit, the day has no file.
    let (rows, id) = rows_of(&mut sender, 5, now_ns() - 9 * DAY_NS);
    let waiting = store.admit(rows, Some(id)).unwrap();
    let snapshot = store.snapshot();
    for (most_rows, ranges) in [(1, 4), (2, 2), (4, 1)] {
        let found = snapshot.days_of_rows(Table::Batches, most_rows, |_| true);
        assert_eq!(found.len(), ranges, "{found:?}");
        let mut rows = 0;
        for days in found {
            let (first, behind) = (days.start, days.end);
            let query = format!("SELECT count(*) FROM batches WHERE day >= '{first}' AND day < '{behind}'");
            rows += number(&snapshot, &query).await;
        }
        assert_eq!(rows, 5);
    }
    store.close().await;
    store.acknowledge(waiting).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_without_a_format_opens_and_one_of_a_newer_format_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(quiet(dir.path())).await.unwrap();
    let (rows, id) = rows_of(&mut Sender::new("node-a", 5), 1, now_ns());
    store_batch(&store, rows, Some(id)).await.unwrap();
    store.close().await;
    drop(store);
    let format = dir.path().join("format.json");
    std::fs::remove_file(&format).unwrap();
    let store = Store::open(quiet(dir.path())).await.unwrap();
    assert_eq!(number(&store.snapshot(), "SELECT count(*) FROM batches").await, 1);
    store.close().await;
    drop(store);
    assert!(format.exists());
    std::fs::write(&format, r#"{"version":2,"product":"9.1.0"}"#).unwrap();
    let refused = Store::open(quiet(dir.path())).await.unwrap_err();
    assert!(matches!(refused, StoreError::Format { .. }), "{refused}");
    assert!(refused.to_string().contains("9.1.0"), "{refused}");
}
