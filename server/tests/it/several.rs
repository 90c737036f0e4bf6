//! Several servers on one data root: each sample is stored once, and every server's answers have it, whichever server
//! was told of it, whoever committed first, and whoever does the maintenance. A copy made meanwhile is of one moment.

use crate::store::{DAY_NS, number, quiet, rows_of, store_batch};
use crate::support::{Sender, eventually, now_ns};
use stakeout_server::store::keep::{self, Tell};
use stakeout_server::store::{Ack, Snapshot, Store, StoreConfig, Table};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::time::Duration;
use tokio::runtime::Handle;

fn shared(dir: &Path) -> StoreConfig {
    StoreConfig {
        is_shared: true,
        // It looks when a test says so.
        look_interval: Duration::from_secs(3600),
        address: "here".to_owned(),
        settle: Duration::ZERO,
        ..quiet(dir)
    }
}

async fn open<const N: usize>(dir: &Path) -> [Arc<Store>; N] {
    let mut stores = Vec::new();
    for _ in 0..N {
        stores.push(Store::open(shared(dir)).await.unwrap());
    }
    stores.try_into().unwrap()
}

/// What a server answers once it has looked, of committed and pending rows.
async fn samples(store: &Arc<Store>) -> i64 {
    store.look().await.unwrap();
    number(&store.snapshot(), "SELECT count(*) FROM samples").await
}

/// What is true of every server, and of one that is started now, and of one that has the directory for itself.
async fn all_have<const N: usize>(stores: [Arc<Store>; N], dir: &Path, expected: i64) {
    for store in &stores {
        assert_eq!(samples(store).await, expected);
        let accounts = number(&store.snapshot(), "SELECT sum(samples) FROM batches").await;
        assert_eq!(accounts, expected);
        let told: i64 = store.nodes().iter().map(|node| node.samples_stored).sum();
        assert_eq!(told, expected);
    }
    let another = Store::open(shared(dir)).await.unwrap();
    assert_eq!(samples(&another).await, expected);
    another.close().await;
    drop(another);
    for store in stores {
        store.close().await;
    }
    let alone = Store::open(quiet(dir)).await.unwrap();
    assert_eq!(
        number(&alone.snapshot(), "SELECT count(*) FROM samples").await,
        expected
    );
    alone.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_is_sent_to_three_servers_at_once_is_stored_once() {
    let dir = tempfile::tempdir().unwrap();
    let [a, b, c] = open(dir.path()).await;
    let mut senders = [Sender::new("node-a", 10), Sender::new("node-b", 10)];
    let until = now_ns();
    for round in 1..=10 {
        for sender in &mut senders {
            let (rows, id) = rows_of(sender, round, until);
            let (one, other, third) = tokio::join!(
                store_batch(&a, rows.clone(), Some(id.clone())),
                store_batch(&b, rows.clone(), Some(id.clone())),
                store_batch(&c, rows, Some(id))
            );
            for ack in [one, other, third] {
                assert_ne!(ack.unwrap(), Ack::Conflict);
            }
        }
        // No row is seen twice while one server's commit meets another's pending rows.
        for store in [&a, &b, &c] {
            assert_eq!(samples(store).await, round * 20);
        }
    }
    let stored: u64 = [&a, &b, &c]
        .map(|store| store.counters.batches_stored.load(Relaxed))
        .iter()
        .sum();
    assert_eq!(stored, 20);
    all_have([a, b, c], dir.path(), 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_of_one_instance_may_overtake_one_another_on_two_servers() {
    let dir = tempfile::tempdir().unwrap();
    let [a, b] = open(dir.path()).await;
    let mut sender = Sender::new("node-a", 10);
    let batches: Vec<_> = (1..=8).map(|number| rows_of(&mut sender, number, now_ns())).collect();
    let send = async |store: &Arc<Store>, number: usize| {
        let (rows, id) = batches[number - 1].clone();
        store_batch(store, rows, Some(id)).await.unwrap()
    };
    // The eighth is on its way to one while the seventh waits at the other, which has not looked since.
    for (store, number) in [(&a, 1), (&b, 3), (&a, 8), (&b, 7), (&b, 2), (&a, 6), (&b, 4), (&a, 5)] {
        assert_eq!(send(store, number).await, Ack::Stored, "number {number}");
    }
    for number in 1..=8 {
        for store in [&a, &b] {
            store.look().await.unwrap();
            assert_eq!(send(store, number).await, Ack::Duplicate, "number {number}");
        }
    }
    all_have([a, b], dir.path(), 80).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_senders_on_three_servers_lose_and_double_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let stores: [Arc<Store>; 3] = open(dir.path()).await;
    let tasks = (0..6).map(|task| {
        let stores = stores.clone();
        tokio::spawn(async move {
            let mut sender = Sender::new(&format!("node-{task}"), 10);
            for number in 1..=12_usize {
                let (rows, id) = rows_of(&mut sender, number as i64, now_ns());
                let to = [(task + number) % 3, (task + 2 * number) % 3];
                let (one, other) = tokio::join!(
                    store_batch(&stores[to[0]], rows.clone(), Some(id.clone())),
                    store_batch(&stores[to[1]], rows, Some(id))
                );
                one.and(other).unwrap();
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    all_have(stores, dir.path(), 6 * 12 * 10).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_that_maintain_at_once_do_no_harm() {
    let dir = tempfile::tempdir().unwrap();
    let [a, b] = open(dir.path()).await;
    let mut sender = Sender::new("node-a", 10);
    // An hour that is over, so that it is rolled up, and the one that is running.
    let times = [now_ns() - DAY_NS, now_ns()];
    for number in 1..=40 {
        let (rows, id) = rows_of(&mut sender, number, times[(number % 2) as usize]);
        let store = if number % 3 == 0 { &a } else { &b };
        store_batch(store, rows, Some(id)).await.unwrap();
    }
    for _ in 0..3 {
        tokio::join!(a.maintain(), b.maintain());
        for store in [&a, &b] {
            assert_eq!(samples(store).await, 400);
            for rollup in Table::ROLLUPS {
                let files = store.snapshot().files(rollup).to_vec();
                let mut partitions: Vec<_> = files.iter().map(|file| file.partition.clone()).collect();
                partitions.dedup();
                assert_eq!(partitions.len(), files.len(), "an hour has one file of a roll-up here");
            }
        }
    }
    let files = |store: &Store| store.snapshot().files(Table::Samples).len();
    assert_eq!(files(&a), files(&b));
    assert!(files(&a) < 40, "{} files", files(&a));
    assert!(a.damaged_files().is_empty() && b.damaged_files().is_empty());
    all_have([a, b], dir.path(), 400).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_removes_for_its_age_is_gone_for_all_and_takes_in_no_more() {
    let dir = tempfile::tempdir().unwrap();
    let [a, b] = open(dir.path()).await;
    let mut sender = Sender::new("node-a", 10);
    let now = now_ns();
    for (number, age_days) in [(1, 40), (2, 0)] {
        let (rows, id) = rows_of(&mut sender, number, now - age_days * DAY_NS);
        store_batch(&a, rows, Some(id)).await.unwrap();
    }
    assert_eq!(samples(&b).await, 20);
    a.maintain().await;
    for store in [&a, &b] {
        assert_eq!(samples(store).await, 10);
        assert!(store.earliest_ns(now_ns()) > now_ns() - 31 * DAY_NS);
    }
    // Late samples of that hour are refused by the server that did not remove it.
    let (rows, id) = rows_of(&mut sender, 3, now - 40 * DAY_NS);
    store_batch(&b, rows, Some(id)).await.unwrap_err();
    for store in [a, b] {
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_hour_that_one_removes_for_its_age_has_its_roll_up_for_all_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let follows = StoreConfig {
        look_interval: Duration::from_millis(20),
        ..shared(dir.path())
    };
    let [a] = open(dir.path()).await;
    let b = Store::open(follows).await.unwrap();
    let mut sender = Sender::new("node-a", 10);
    for (number, age_days) in [(1, 40), (2, 0)] {
        let (rows, id) = rows_of(&mut sender, number, now_ns() - age_days * DAY_NS);
        store_batch(&a, rows, Some(id)).await.unwrap();
    }
    assert_eq!(samples(&b).await, 20);
    let maintaining = tokio::spawn({
        let a = a.clone();
        async move { a.maintain().await }
    });
    eventually("the other server knows that the samples are gone", async || {
        // Both of one moment.
        let snapshot = b.snapshot();
        let is_gone = snapshot.files(Table::Samples).len() == 1;
        assert!(!is_gone || !snapshot.files(Table::SamplesHour).is_empty());
        is_gone
    })
    .await;
    maintaining.await.unwrap();
    for store in [a, b] {
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_replaced_and_deleted_is_no_damage_and_what_is_lost_is() {
    let dir = tempfile::tempdir().unwrap();
    let config = || StoreConfig {
        compact_files: 4,
        vacuum_grace: Duration::ZERO,
        ..shared(dir.path())
    };
    let [a, b] = [Store::open(config()).await, Store::open(config()).await].map(Result::unwrap);
    let mut sender = Sender::new("node-a", 10);
    let until = now_ns();
    let mut send = async |number: i64| {
        let (rows, id) = rows_of(&mut sender, number, until);
        store_batch(&a, rows, Some(id)).await.unwrap();
    };
    // Fewer files than are rewritten.
    for number in 1..=3 {
        send(number).await;
    }
    assert_eq!(samples(&b).await, 30);
    let old = b.snapshot();
    let behind = Store::open(config()).await.unwrap();
    for number in 4..=8 {
        send(number).await;
    }
    let count = "SELECT count(*) FROM samples";
    let paths = |snapshot: &Snapshot, table: Table| -> BTreeSet<PathBuf> {
        let (files, folder) = (snapshot.files(table).iter(), dir.path().join(table.name()));
        files.map(|file| folder.join(&file.path)).collect()
    };
    let are_replaced = async |paths: &BTreeSet<PathBuf>| {
        eventually("what was replaced is deleted", async || {
            // Each deletes what it has replaced itself.
            a.maintain().await;
            b.maintain().await;
            paths.iter().any(|path| !path.exists())
        })
        .await;
    };
    are_replaced(&paths(&old, Table::Samples)).await;
    // A question that began before is refused in words, and nothing is left out of it.
    let asked = old.session().sql(count).await.unwrap().collect().await;
    let refused = asked.unwrap_err().to_string();
    assert!(refused.contains("another server has replaced it"), "{refused}");
    assert!(old.left_out().is_empty());
    // Who misses a file looks at the log: after that all is there.
    drop(behind.snapshot().session().sql(count).await.unwrap().collect().await);
    assert_eq!(number(&behind.snapshot(), count).await, 80);
    // Of what came and went meanwhile this one reads in the log alone.
    let (before, mut came) = (paths(&a.snapshot(), Table::Batches), BTreeSet::new());
    for number in 9..=16 {
        send(number).await;
        came.extend(paths(&a.snapshot(), Table::Batches));
    }
    came.retain(|path| !before.contains(path));
    are_replaced(&came).await;
    // It may lack the reports of agents in such files; it goes on after that.
    drop(behind.look().await);
    assert_eq!(samples(&behind).await, 160);
    for store in [&a, &b, &behind] {
        assert_eq!(store.damaged_files(), []);
    }
    // A file that the table has and that is not there is lost.
    let lost = behind.snapshot().files(Table::Samples)[0].clone();
    std::fs::remove_file(dir.path().join("samples").join(&lost.path)).unwrap();
    let snapshot = behind.snapshot();
    assert_eq!(number(&snapshot, count).await, 160 - lost.rows as i64);
    let file = format!("samples/{}", lost.path);
    assert_eq!(snapshot.left_out(), std::slice::from_ref(&file));
    let listed = behind.damaged_files();
    assert_eq!(
        (listed.len(), &listed[0].file, listed[0].fault.as_str()),
        (1, &file, "it is missing")
    );
    for store in [a, b, behind] {
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_no_log_names_go_when_they_are_older_than_any_commit() {
    let dir = tempfile::tempdir().unwrap();
    let config = StoreConfig {
        vacuum_grace: Duration::ZERO,
        ..shared(dir.path())
    };
    let store = Store::open(config).await.unwrap();
    let (rows, id) = rows_of(&mut Sender::new("node-a", 10), 1, now_ns());
    store_batch(&store, rows, Some(id)).await.unwrap();
    let folder = dir.path().join("samples/hour=2026-11-21T08");
    std::fs::create_dir_all(&folder).unwrap();
    let [old, fresh] = ["old.parquet", "fresh.parquet"].map(|name| folder.join(name));
    for path in [&old, &fresh] {
        std::fs::write(path, b"x").unwrap();
    }
    let long_ago = std::time::SystemTime::now() - Duration::from_secs(3 * 3600);
    let file = std::fs::File::options().write(true).open(&old).unwrap();
    file.set_modified(long_ago).unwrap();
    store.maintain().await;
    assert!(!old.exists(), "older than any commit takes");
    assert!(fresh.exists(), "another server may be about to commit it");
    assert_eq!(samples(&store).await, 10);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_follow_each_other_by_themselves_and_know_of_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let config = || StoreConfig {
        look_interval: Duration::from_millis(20),
        ..shared(dir.path())
    };
    let a = Store::open(config()).await.unwrap();
    let b = Store::open(config()).await.unwrap();
    let refused = Store::open(quiet(dir.path())).await.unwrap_err().to_string();
    assert!(refused.contains("is in use"), "{refused}");
    let (rows, id) = rows_of(&mut Sender::new("node-a", 10), 1, now_ns());
    store_batch(&a, rows, Some(id)).await.unwrap();
    eventually("the other server has the samples", async || {
        number(&b.snapshot(), "SELECT count(*) FROM samples").await == 10 && b.nodes().len() == 1
    })
    .await;
    eventually("both know of each other", async || {
        [&a, &b].iter().all(|store| store.freshness().servers == 2)
    })
    .await;
    assert_eq!(b.servers().len(), 2);
    eventually("one of them does the maintenance", async || {
        a.maintains() != b.maintains()
    })
    .await;
    for store in [a, b] {
        store.close().await;
    }
}

fn silent() -> Tell {
    Arc::new(|_: &str| {})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_servers_share_is_copied_and_checked_while_they_commit() {
    let dir = tempfile::tempdir().unwrap();
    let [data, copied] = ["data", "copied"].map(|name| dir.path().join(name));
    let stores: [Arc<Store>; 2] = open(&data).await;
    // Each batch is a commit of its own, and every check reads them all: a slow machine would never be done otherwise.
    let (stop, allowed) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicI64::new(0)));
    let tasks = (0..3_usize).map(|task| {
        let (stores, stop, allowed) = (stores.clone(), stop.clone(), allowed.clone());
        tokio::spawn(async move {
            let mut sender = Sender::new(&format!("node-{task}"), 10);
            let mut number = 0;
            while !stop.load(Relaxed) {
                if number < allowed.load(Relaxed) {
                    number += 1;
                    let (rows, id) = rows_of(&mut sender, number, now_ns());
                    let store = &stores[(task + number as usize) % 2];
                    store_batch(store, rows, Some(id)).await.unwrap();
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            number
        })
    });
    let tasks: Vec<_> = tasks.collect();
    let mut before = 0;
    for _ in 0..4 {
        allowed.fetch_add(40, Relaxed);
        eventually("more is stored", async || samples(&stores[0]).await >= before + 60).await;
        let stored = |store: &Arc<Store>| store.counters.samples_stored.load(Relaxed);
        let acknowledged: u64 = stores.iter().map(stored).sum();
        let copy = keep::copy(&data, &copied, false, silent()).await.unwrap();
        assert!(copy.faults.is_empty() && copy.samples >= acknowledged, "{copy:?}");
        // Every stored batch is told of, each sample is of one, and refers to what is there.
        let checked = keep::check(&copied, None, silent()).await.unwrap();
        assert!(checked.faults.is_empty() && checked.more_faults == 0, "{checked:?}");
        assert_eq!(
            (checked.samples, checked.told, checked.told_rows),
            (copy.samples, copy.samples, copy.samples)
        );
        // Also of what is written meanwhile.
        let checked = keep::check(&data, None, silent()).await.unwrap();
        assert!(
            checked.faults.is_empty() && checked.samples >= copy.samples,
            "{checked:?}"
        );
        before = copy.samples as i64;
    }
    stop.store(true, Relaxed);
    let mut sent = 0;
    for task in tasks {
        sent += 10 * task.await.unwrap();
    }
    all_have(stores, &data, sent).await;
    let copy = keep::copy(&data, &copied, true, silent()).await.unwrap();
    assert_eq!(copy.samples as i64, sent);
    let store = Store::open(quiet(&copied)).await.unwrap();
    let each_once = "SELECT count(DISTINCT concat(node, ts_ns, '/', tid)) FROM samples";
    assert_eq!(number(&store.snapshot(), each_once).await, sent);
    let accounts = number(&store.snapshot(), "SELECT sum(samples) FROM batches").await;
    assert_eq!(accounts, sent);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_replaced_and_deleted_while_a_store_is_checked_is_no_fault() {
    let dir = tempfile::tempdir().unwrap();
    let config = || StoreConfig {
        compact_files: 4,
        settle: Duration::from_secs(3600),
        vacuum_grace: Duration::ZERO,
        ..shared(dir.path())
    };
    let [a, b] = [Store::open(config()).await, Store::open(config()).await].map(Result::unwrap);
    let (mut sender, until) = (Sender::new("node-a", 10), now_ns());
    // Each writes what samples refer to. Two files of that are merged, two of samples are not.
    for (number, store) in [(1, &a), (2, &b)] {
        let (rows, id) = rows_of(&mut sender, number, until);
        store_batch(store, rows, Some(id)).await.unwrap();
    }
    let (is_done, maintains) = (AtomicBool::new(false), a.clone());
    let tell: Tell = Arc::new(move |line: &str| {
        // All bytes were compared by now, and no row was read.
        if line.starts_with("rows of ") && !is_done.swap(true, Relaxed) {
            let rounds = async {
                // What the first one replaces the second one deletes.
                maintains.maintain().await;
                maintains.maintain().await;
            };
            tokio::task::block_in_place(|| Handle::current().block_on(rounds));
        }
    });
    let checked = keep::check(dir.path(), None, tell).await.unwrap();
    assert!(checked.faults.is_empty() && checked.more_faults == 0, "{checked:?}");
    let is_told = |note: &String| note.contains("were replaced while the check ran");
    assert!(checked.notes.iter().any(is_told), "{checked:?}");
    assert!(checked.rows >= 20, "samples were read: {checked:?}");
    for store in [a, b] {
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_has_its_place_alone_and_servers_share_it_once_it_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let [data, copied, kept, taken] = ["data", "copied", "kept", "taken"].map(|name| dir.path().join(name));
    let [store] = open(&data).await;
    let (rows, id) = rows_of(&mut Sender::new("node-a", 10), 1, now_ns());
    store_batch(&store, rows, Some(id)).await.unwrap();
    let [serves] = open(&taken).await;
    let refused = keep::copy(&data, &taken, false, silent())
        .await
        .unwrap_err()
        .to_string();
    assert!(refused.contains("a stakeout-server has it"), "{refused}");
    serves.close().await;

    keep::copy(&data, &copied, false, silent()).await.unwrap();
    let mark = copied.join("copy.json");
    let whole = std::fs::read_to_string(&mark).unwrap();
    std::fs::write(&mark, whole.replace("whole", "unfinished")).unwrap();
    let refused = Store::open(shared(&copied)).await.unwrap_err().to_string();
    assert!(refused.contains("not finished"), "{refused}");
    std::fs::write(&mark, whole).unwrap();
    let both: [Arc<Store>; 2] = open(&copied).await;
    all_have(both, &copied, 10).await;
    let refused = keep::copy(&data, &copied, false, silent())
        .await
        .unwrap_err()
        .to_string();
    assert!(refused.contains("a server has been started on it"), "{refused}");

    keep::backup(&data, &kept, 2, false, silent()).await.unwrap();
    let refused = Store::open(shared(&kept)).await.unwrap_err().to_string();
    assert!(refused.contains("holds backups"), "{refused}");
    store.close().await;
}
