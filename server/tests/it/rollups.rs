//! Roll-ups say what the samples say, whatever comes late and whenever the server stops; and what there is no room
//! for goes.

use crate::store::{number, quiet, rows_of, store_batch};
use crate::support::{Sender, eventually, now_ns};
use stakeout_server::store::{Clock, Reading, Snapshot, Store, StoreConfig, StoreError, Table, hour};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::time::Duration;

const MINUTE_NS: i64 = 60_000_000_000;
const HOUR_NS: i64 = 60 * MINUTE_NS;

/// Maintains at once, and takes an hour that is over for settled.
fn eager(dir: &Path) -> StoreConfig {
    StoreConfig {
        maintenance_interval: Duration::from_millis(50),
        settle: Duration::ZERO,
        ..quiet(dir)
    }
}

/// The begin of the hour that was so many hours ago.
fn hour_ago(hours: i64) -> i64 {
    (now_ns() / HOUR_NS - hours) * HOUR_NS
}

fn are_rolled_up(snapshot: &Snapshot) -> bool {
    snapshot.files(Table::Samples).iter().all(|file| {
        Table::ROLLUPS
            .iter()
            .all(|rollup| snapshot.is_rolled_up(*rollup, &file.partition))
    })
}

/// Rows in which a roll-up and the samples differ, counted by all that both have.
async fn differences(snapshot: &Snapshot, rollup: Table, step_ns: i64) -> i64 {
    let stacks = if rollup == Table::SamplesTenSeconds {
        ""
    } else {
        "stack_id, "
    };
    let own = format!("type, service, series_id, mode, {stacks}value, hour");
    let same = format!("node, {own}");
    let raw = format!(
        "SELECT at, {same}, count(*) AS count FROM (SELECT ts_ns - ts_ns % {step_ns} AS at, CAST(node AS VARCHAR) AS node, {own} FROM samples) \
         GROUP BY at, {same}"
    );
    // A roll-up's nodes are those of its series.
    let rolled = format!(
        "SELECT ts_ns AS at, {same}, sum(count) AS count FROM {} JOIN (SELECT series_id AS id, node FROM series) ON series_id = id \
         GROUP BY ts_ns, {same}",
        rollup.name()
    );
    let more = |a: &str, b: &str| format!("SELECT count(*) FROM ({a} EXCEPT {b})");
    number(snapshot, &more(&raw, &rolled)).await + number(snapshot, &more(&rolled, &raw)).await
}

async fn assert_exact(snapshot: &Snapshot, samples: i64) {
    assert_eq!(number(snapshot, "SELECT count(*) FROM samples").await, samples);
    for (rollup, step_ns) in [
        (Table::SamplesMinute, MINUTE_NS),
        (Table::SamplesHour, HOUR_NS),
        (Table::SamplesTenSeconds, MINUTE_NS / 6),
    ] {
        let sum = format!("SELECT CAST(sum(count) AS BIGINT) FROM {}", rollup.name());
        assert_eq!(number(snapshot, &sum).await, samples, "{rollup:?}");
        assert_eq!(differences(snapshot, rollup, step_ns).await, 0, "{rollup:?}");
    }
}

/// Appends batches that end at these times.
async fn append(store: &Arc<Store>, sender: &mut Sender, next: &mut i64, ends_ns: impl IntoIterator<Item = i64>) {
    for until_ns in ends_ns {
        let (rows, id) = rows_of(sender, *next, until_ns);
        store_batch(store, rows, Some(id)).await.unwrap();
        *next += 1;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollup_counts_every_sample_once_also_late_ones_and_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(eager(dir.path())).await.unwrap();
    let mut sender = Sender::new("node-a", 90);
    let (first, second, mut next) = (hour_ago(4), hour_ago(3), 1);
    // Ends that cut minutes and the hour.
    let ends = [
        first + 7 * MINUTE_NS + 30_000_000,
        first + 8 * MINUTE_NS,
        second + 20_000_000,
        second + 59 * MINUTE_NS,
    ];
    append(&store, &mut sender, &mut next, ends).await;
    eventually("both hours are rolled up", async || are_rolled_up(&store.snapshot())).await;
    assert_exact(&store.snapshot(), 360).await;

    append(
        &store,
        &mut sender,
        &mut next,
        [first + 7 * MINUTE_NS + 50_000_000, first + 40 * MINUTE_NS],
    )
    .await;
    eventually("the late samples are rolled up", async || {
        are_rolled_up(&store.snapshot())
    })
    .await;
    assert_exact(&store.snapshot(), 540).await;
    // The hour is one file again, of whole rows in order.
    let files = store.snapshot().files(Table::Samples).len();
    assert!(files <= 3, "{files} files of three hours");
    store.close().await;
    drop(store);

    // The server stops between the samples and their roll-up.
    let store = Store::open(quiet(dir.path())).await.unwrap();
    assert!(are_rolled_up(&store.snapshot()));
    append(&store, &mut sender, &mut next, [second + 30 * MINUTE_NS]).await;
    assert!(!store.snapshot().is_rolled_up(Table::SamplesHour, &hour(second)));
    assert!(store.snapshot().is_rolled_up(Table::SamplesHour, &hour(first)));
    store.close().await;
    drop(store);
    let store = Store::open(eager(dir.path())).await.unwrap();
    eventually("what came before the restart is rolled up", async || {
        are_rolled_up(&store.snapshot())
    })
    .await;
    assert_exact(&store.snapshot(), 630).await;
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_oldest_hours_go_when_there_are_too_many_bytes_and_their_rollups_stay() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(eager(dir.path())).await.unwrap();
    let (mut sender, mut next) = (Sender::new("node-a", 200), 1);
    let ends = (1..=5).rev().map(|hours| hour_ago(hours) + 30 * MINUTE_NS);
    append(&store, &mut sender, &mut next, ends).await;
    eventually("all is rolled up", async || are_rolled_up(&store.snapshot())).await;
    store.close().await;
    drop(store);
    // As it is while nothing is merged; the next server looks at the bytes before it merges anything.
    let store = Store::open(quiet(dir.path())).await.unwrap();
    let snapshot = store.snapshot();
    let of_samples: Vec<u64> = snapshot
        .files(Table::Samples)
        .iter()
        .map(|file| file.size_bytes)
        .collect();
    assert_eq!(of_samples.len(), 5);
    let all: u64 = Table::ALL
        .iter()
        .flat_map(|table| snapshot.files(*table))
        .map(|file| file.size_bytes)
        .sum();
    store.close().await;
    drop(store);

    // One byte less than with one hour's samples gone: a second hour has to go.
    let config = StoreConfig {
        retention_bytes: Some(all - of_samples[0] - 1),
        ..eager(dir.path())
    };
    let store = Store::open(config).await.unwrap();
    eventually("two hours of samples are gone", async || {
        store.snapshot().files(Table::Samples).len() == 3
    })
    .await;
    let snapshot = store.snapshot();
    for rollup in Table::ROLLUPS.map(Table::name) {
        let sum = format!("SELECT CAST(sum(count) AS BIGINT) FROM {rollup}");
        assert_eq!(number(&snapshot, &sum).await, 1000, "{rollup}");
    }
    assert!(snapshot.is_rolled_up(Table::SamplesHour, &hour(hour_ago(5))));
    // What still comes of these hours would be a roll-up of its own: it is not taken in, also after a restart.
    assert_eq!(store.earliest_ns(now_ns()), hour_ago(3));
    store.close().await;
    drop(store);
    let store = Store::open(quiet(dir.path())).await.unwrap();
    assert_eq!(store.earliest_ns(now_ns()), hour_ago(3));
    assert_eq!(store.snapshot().files(Table::Samples).len(), 3);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_hour_that_goes_for_want_of_space_is_rolled_up_before_it_goes() {
    let mut sender = Sender::new("node-a", 8_000);
    // Four batches of each of two hours.
    let ends = [3, 3, 3, 3, 2, 2, 2, 2].map(|hours| hour_ago(hours) + 30 * MINUTE_NS);
    let bytes = |snapshot: &Snapshot, tables: &[Table]| -> u64 {
        let files = tables.iter().flat_map(|table| snapshot.files(*table));
        files.map(|file| file.size_bytes).sum()
    };
    let settled = tempfile::tempdir().unwrap();
    let store = Store::open(eager(settled.path())).await.unwrap();
    append(&store, &mut Sender::new("node-b", 8_000), &mut 1, ends).await;
    eventually("all is rolled up", async || are_rolled_up(&store.snapshot())).await;
    let of_rollups = bytes(&store.snapshot(), &Table::ROLLUPS);
    let of_hour = bytes(&store.snapshot(), &[Table::Samples]) / 2;
    store.close().await;
    assert!(of_rollups < of_hour, "{of_rollups} {of_hour}");

    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(quiet(dir.path())).await.unwrap();
    append(&store, &mut sender, &mut 1, ends).await;
    let fresh = bytes(&store.snapshot(), &Table::ALL) - bytes(&store.snapshot(), &[Table::Samples]) / 2;
    store.close().await;
    drop(store);

    // Too little for the older hour, also when it is rolled up; enough without it.
    let config = StoreConfig {
        retention_bytes: Some(fresh + of_rollups + (of_hour - of_rollups) / 2),
        settle: Duration::from_secs(3600),
        ..quiet(dir.path())
    };
    let store = Store::open(config).await.unwrap();
    assert!(!are_rolled_up(&store.snapshot()), "they are not settled");
    // Taken in, and not yet committed when maintenance comes.
    let (rows, id) = rows_of(&mut Sender::new("node-c", 8_000), 1, ends[0]);
    let ticket = store.admit(rows, Some(id)).unwrap();
    store.maintain().await;
    let snapshot = store.snapshot();
    assert!(snapshot.pending(Table::Samples).is_empty(), "nothing waits");
    store.acknowledge(ticket).await.unwrap();
    let files = snapshot.files(Table::Samples);
    let newer = hour(hour_ago(2));
    assert!(
        files.iter().all(|file| file.partition == newer),
        "the older one is gone"
    );
    assert_eq!(files.iter().map(|file| file.rows).sum::<u64>(), 32_000);
    for rollup in Table::ROLLUPS {
        let sum = format!(
            "SELECT CAST(sum(count) AS BIGINT) FROM {} WHERE hour = '{}'",
            rollup.name(),
            hour(hour_ago(3))
        );
        assert_eq!(number(&snapshot, &sum).await, 40_000, "{rollup:?}");
    }
    // What was decoded before and is admitted now is to be sent again, and is left out then.
    let (rows, id) = rows_of(&mut sender, 9, ends[0]);
    let error = store.admit(rows, Some(id)).unwrap_err();
    assert!(matches!(error, StoreError::HourGone), "{error}");
    let (rows, id) = rows_of(&mut sender, 9, ends[7]);
    store_batch(&store, rows, Some(id)).await.unwrap();
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_hour_that_goes_by_age_is_rolled_up_before_and_does_not_come_again() {
    let dir = tempfile::tempdir().unwrap();
    let (passed_ns, set_ns) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicI64::new(0)));
    let (passed, set, start_ns) = (passed_ns.clone(), set_ns.clone(), now_ns());
    let clock = Clock::new(move || Reading {
        wall_ns: start_ns + passed.load(SeqCst) + set.load(SeqCst),
        steady: Duration::from_nanos(passed.load(SeqCst) as u64),
    });
    let config = StoreConfig {
        retention_samples: Duration::from_secs(72 * 3600),
        settle: Duration::from_secs(1000 * 3600),
        clock: Arc::new(clock),
        ..quiet(dir.path())
    };
    let store = Store::open(config).await.unwrap();
    let mut sender = Sender::new("node-a", 1000);
    let end_ns = hour_ago(50) + 30 * MINUTE_NS;
    let (rows, id) = rows_of(&mut sender, 1, end_ns);
    store_batch(&store, rows, Some(id)).await.unwrap();
    store.maintain().await;
    assert!(!are_rolled_up(&store.snapshot()), "it is not settled");

    passed_ns.store(24 * HOUR_NS, SeqCst);
    let (rows, id) = rows_of(&mut sender, 2, end_ns);
    // Taken in, and not yet committed when maintenance comes.
    let ticket = store.admit(rows, Some(id)).unwrap();
    store.maintain().await;
    store.acknowledge(ticket).await.unwrap();
    let snapshot = store.snapshot();
    assert_eq!(snapshot.files(Table::Samples).len(), 0);
    let counted =
        async |snapshot: &Snapshot| number(snapshot, "SELECT CAST(sum(count) AS BIGINT) FROM samples_hour").await;
    assert_eq!(counted(&snapshot).await, 2000);

    // By the clock it would be young enough again, and its roll-up be made of what comes alone.
    set_ns.store(-10 * HOUR_NS, SeqCst);
    let (rows, id) = rows_of(&mut sender, 3, end_ns);
    let error = store.admit(rows, Some(id)).unwrap_err();
    assert!(matches!(error, StoreError::HourGone), "{error}");
    store.maintain().await;
    assert_eq!(counted(&store.snapshot()).await, 2000);
    store.close().await;
}
