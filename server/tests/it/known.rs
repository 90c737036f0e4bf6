//! Dictionary rows that the store has, or is about to have, are not made again.

use crate::store::{DAY_NS, number, quiet, rows_of, rows_without, store_batch};
use crate::support::{Sender, now_ns};
use stakeout_server::store::{Ack, BatchId, Rows, Store, StoreError, Table};

/// Without the dictionary rows that the store knows.
fn new_rows_of(store: &Store, sender: &mut Sender, number: i64, until_ns: i64) -> (Rows, BatchId) {
    let epoch = store.known_epoch();
    let (mut rows, id) = rows_without(sender, number, until_ns, &|table, day, ids| {
        store.known_rows(table, day, ids)
    });
    rows.relies_on = Some(epoch);
    (rows, id)
}

#[tokio::test(flavor = "multi_thread")]
async fn dictionary_rows_are_written_once_a_day_and_read_once() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(quiet(dir.path())).await.unwrap();
    let mut sender = Sender::new("node-a", 30);
    for batch in 1..=3 {
        let (rows, id) = rows_of(&mut sender, batch, now_ns());
        store_batch(&store, rows, Some(id)).await.unwrap();
    }
    let snapshot = store.snapshot();
    assert_eq!(
        snapshot.files(Table::Stacks).iter().map(|file| file.rows).sum::<u64>(),
        6
    );
    store.close().await;
    drop(store);
    // A new process does not know what is on the disk: it writes again, and readers see each id once all the same.
    let store = Store::open(quiet(dir.path())).await.unwrap();
    let (rows, id) = rows_of(&mut sender, 4, now_ns());
    store_batch(&store, rows, Some(id)).await.unwrap();
    let snapshot = store.snapshot();
    assert_eq!(
        snapshot.files(Table::Stacks).iter().map(|file| file.rows).sum::<u64>(),
        12
    );
    assert_eq!(number(&snapshot, "SELECT count(*) FROM stacks").await, 6);
    assert_eq!(
        number(&snapshot, "SELECT count(DISTINCT stack_id) FROM stacks").await,
        6
    );
    store.close().await;
}

/// Rows that a batch brings: samples, series, stacks, frames, processes.
fn brought(rows: &Rows) -> [usize; 5] {
    let samples = rows.samples.iter().map(|samples| samples.num_rows()).sum();
    let of = |table: Table| rows.tables[table.index()].iter().map(|batch| batch.num_rows()).sum();
    [
        samples,
        of(Table::Series),
        of(Table::Stacks),
        of(Table::Frames),
        of(Table::Processes),
    ]
}

/// Samples whose series, process, stack and frames are all there.
const WHOLE_SAMPLES: &str = "SELECT count(*) FROM samples JOIN series USING (series_id) JOIN processes USING (process_id) \
     JOIN stacks USING (stack_id) WHERE array_length(frames) = 3 AND frames[1] IN (SELECT frame_id FROM frames) \
     AND frames[2] IN (SELECT frame_id FROM frames) AND frames[3] IN (SELECT frame_id FROM frames)";

#[tokio::test(flavor = "multi_thread")]
async fn what_the_store_knows_is_not_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(quiet(dir.path())).await.unwrap();
    let noon = now_ns() / DAY_NS * DAY_NS + DAY_NS / 2;
    // main, work-0 to work-2 and vfs_read.
    let mut sender = Sender::new("node-a", 3);
    let (rows, id) = new_rows_of(&store, &mut sender, 1, noon);
    assert_eq!(brought(&rows), [3, 3, 3, 5, 3]);
    store_batch(&store, rows, Some(id)).await.unwrap();
    // Two functions more, three stacks, since one of the first batch was cut: only what is new is made.
    sender.samples = 30;
    let (rows, id) = new_rows_of(&store, &mut sender, 2, noon + 1_000_000_000);
    assert_eq!(brought(&rows), [30, 0, 3, 2, 0]);
    let pending = store.admit(rows, Some(id)).unwrap();
    // What waits for its commit is known too, and a repeat is one though nothing but its samples is given.
    for (number, ack) in [(3, Ack::Stored), (2, Ack::Duplicate)] {
        let until_ns = noon + (number - 1) * 1_000_000_000;
        let (rows, id) = new_rows_of(&store, &mut sender, number, until_ns);
        assert_eq!(brought(&rows), [30, 0, 0, 0, 0]);
        assert_eq!(store_batch(&store, rows, Some(id)).await.unwrap(), ack);
    }
    assert_eq!(store.acknowledge(pending).await.unwrap(), Ack::Stored);
    assert_eq!(number(&store.snapshot(), WHOLE_SAMPLES).await, 63);
    // Of another day everything is given again.
    let (rows, id) = new_rows_of(&store, &mut sender, 4, noon - DAY_NS);
    assert_eq!(brought(&rows), [30, 3, 6, 7, 3]);
    store_batch(&store, rows, Some(id)).await.unwrap();
    assert_eq!(number(&store.snapshot(), WHOLE_SAMPLES).await, 93);
    let snapshot = store.snapshot();
    let stacks: u64 = snapshot.files(Table::Stacks).iter().map(|file| file.rows).sum();
    assert_eq!(stacks, 12);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_a_failed_commit_are_not_relied_on() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(quiet(dir.path())).await.unwrap();
    let noon = now_ns() / DAY_NS * DAY_NS + DAY_NS / 2;
    let mut sender = Sender::new("node-a", 30);
    let (rows, id) = new_rows_of(&store, &mut sender, 1, noon);
    let first = store.admit(rows, Some(id)).unwrap();
    let (early, early_id) = new_rows_of(&store, &mut sender, 2, noon + 1);
    let (late, late_id) = new_rows_of(&store, &mut sender, 3, noon + 2);
    assert_eq!((brought(&early), brought(&late)), ([30, 0, 0, 0, 0], [30, 0, 0, 0, 0]));
    let second = store.admit(early, Some(early_id)).unwrap();
    let version = dir.path().join("samples/_delta_log").join(format!("{:020}.json", 1));
    std::fs::create_dir(&version).unwrap();
    store.flush().await.unwrap_err();
    std::fs::remove_dir(&version).unwrap();
    // What was admitted before goes with it, what comes after is refused.
    store.acknowledge(first).await.unwrap_err();
    store.acknowledge(second).await.unwrap_err();
    let refused = store.admit(late, Some(late_id)).unwrap_err();
    assert!(matches!(refused, StoreError::Forgotten), "{refused}");
    for number in 1..=3 {
        let (rows, id) = new_rows_of(&store, &mut sender, number, noon + number);
        let dictionaries = if number == 1 {
            [30, 3, 6, 7, 3]
        } else {
            [30, 0, 0, 0, 0]
        };
        assert_eq!(brought(&rows), dictionaries, "number {number}");
        assert_eq!(store_batch(&store, rows, Some(id)).await.unwrap(), Ack::Stored);
    }
    assert_eq!(number(&store.snapshot(), WHOLE_SAMPLES).await, 90);
    store.close().await;
}
