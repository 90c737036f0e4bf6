//! What is in a bucket is what the tables name, and a commit takes few requests.

use super::gateway::{Gateway, bucket, in_a_process, root, told_root};
use super::proxy::Proxy;
use crate::store::{number, quiet, rows_of, store_batch};
use crate::support::{Sender, now_ns};
use futures::TryStreamExt as _;
use object_store::ObjectStore as _;
use object_store::path::Path as ObjectPath;
use stakeout_server::store::{Snapshot, Store, StoreConfig, Table};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

const HOUR_NS: i64 = 3_600_000_000_000;
const SAMPLES: usize = 30;

/// In the process that was told of the bucket; the address of its endpoint.
fn endpoint() -> String {
    let endpoint = std::env::var("AWS_ENDPOINT").unwrap();
    endpoint.strip_prefix("http://").unwrap().to_owned()
}

/// As it is told to be, in the root that this process was told of.
fn config() -> StoreConfig {
    StoreConfig {
        settle: Duration::ZERO,
        compact_files: 4,
        vacuum_grace: Duration::ZERO,
        ..quiet(Path::new(&told_root()))
    }
}

/// Data files that the tables name, as their objects are named below the root.
fn named(snapshot: &Snapshot) -> BTreeSet<String> {
    let tables = Table::ALL.into_iter();
    let files = tables.flat_map(|table| {
        let files = snapshot.files(table).iter();
        files.map(move |file| format!("{}/{}", table.name(), file.path))
    });
    files.collect()
}

/// Data files that are in the bucket below the root.
async fn found() -> BTreeSet<String> {
    let root = url::Url::parse(&told_root()).unwrap();
    let prefix = ObjectPath::from_url_path(root.path()).unwrap();
    let objects: Vec<_> = bucket(&endpoint()).list(Some(&prefix)).try_collect().await.unwrap();
    let below = objects.iter().map(|meta| {
        let parts = meta.location.prefix_match(&prefix).unwrap();
        parts.collect::<ObjectPath>().to_string()
    });
    let data = below.filter(|path| Path::new(path).extension().is_some_and(|is| is == "parquet"));
    data.filter(|path| !path.contains("/_delta_log/")).collect()
}

#[test]
fn compaction_and_retention_leave_no_orphan_in_a_bucket() {
    let Some(gateway) = Gateway::start() else { return };
    let (module, root) = (module_path!(), root("files"));
    in_a_process(module, "of_this_bucket_every_object_is_named", gateway.address(), &root);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "begun by compaction_and_retention_leave_no_orphan_in_a_bucket"]
async fn of_this_bucket_every_object_is_named() {
    let store = Store::open(config()).await.unwrap();
    let mut sender = Sender::new("node-a", SAMPLES);
    let hour_ns = now_ns() / HOUR_NS * HOUR_NS;
    // Eight in an hour that is over, which becomes one file and is rolled up, and eight in one that is too old soon.
    for number in 1..=16 {
        let begin_ns = hour_ns - if number <= 8 { 6 * HOUR_NS } else { 2 * HOUR_NS };
        let (rows, id) = rows_of(&mut sender, number, begin_ns + number * 60_000_000_000);
        store_batch(&store, rows, Some(id)).await.unwrap();
    }
    let before = named(&store.snapshot());
    assert_eq!(found().await, before);
    // What one round replaces the next one removes.
    for _ in 0..4 {
        store.maintain().await;
    }
    let snapshot = store.snapshot();
    let after = named(&snapshot);
    assert!(snapshot.files(Table::Samples).len() < 8, "compacted: {after:?}");
    assert!(!snapshot.files(Table::SamplesHour).is_empty(), "{after:?}");
    assert_eq!(found().await, after, "compaction leaves what the tables name");
    assert_eq!(
        number(&snapshot, "SELECT count(*) FROM samples").await,
        16 * SAMPLES as i64
    );
    store.close().await;
    drop((snapshot, store));

    let store = Store::open(StoreConfig {
        retention_samples: Duration::from_secs(4 * 3600),
        ..config()
    });
    let store = store.await.unwrap();
    for _ in 0..4 {
        store.maintain().await;
    }
    let snapshot = store.snapshot();
    assert_eq!(
        number(&snapshot, "SELECT count(*) FROM samples").await,
        8 * SAMPLES as i64
    );
    assert_eq!(found().await, named(&snapshot), "retention leaves what the tables name");
    store.close().await;
}

/// Commits of the second run beyond those of the first.
const MORE: u64 = 30;
/// Most requests of a commit that meets known stacks: it writes a file and a log's entry of `samples` and of `batches`,
/// and the library looks at the log before each. To be lowered when one is saved.
const MOST_REQUESTS: u64 = 6;

#[test]
fn a_commit_takes_few_requests() {
    let Some(gateway) = Gateway::start() else { return };
    let proxy = Proxy::to(gateway.address(), 1, &[]);
    let mut work = Vec::new();
    for name in ["these_are_few_commits", "these_are_more_commits"] {
        in_a_process(module_path!(), name, proxy.address(), &root(name));
        let counts = proxy.take_counts();
        println!("{name}: {counts:?}");
        work.push(counts.work());
    }
    // What a start and an end take is in both.
    let more = work[1].saturating_sub(work[0]);
    println!("{} requests a commit", more as f64 / MORE as f64);
    assert!(
        more >= 2 * MORE,
        "a commit puts a file and a log's entry at least: {work:?}"
    );
    assert!(more <= MOST_REQUESTS * MORE, "{work:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "begun by a_commit_takes_few_requests"]
async fn these_are_few_commits() {
    commits(5).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "begun by a_commit_takes_few_requests"]
async fn these_are_more_commits() {
    commits(5 + MORE as i64).await;
}

/// With the same stacks in each.
async fn commits(count: i64) {
    let store = Store::open(quiet(Path::new(&told_root()))).await.unwrap();
    let mut sender = Sender::new("node-a", SAMPLES);
    for number in 1..=count {
        let (rows, id) = rows_of(&mut sender, number, now_ns());
        store_batch(&store, rows, Some(id)).await.unwrap();
    }
    assert_eq!(
        number(&store.snapshot(), "SELECT count(*) FROM samples").await,
        count * SAMPLES as i64
    );
    store.close().await;
}
