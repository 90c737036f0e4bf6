//! Tests of commits whose end is not known: the call failed, but the log may have the entry.

use super::log::location::Over;
use super::log::shared_log::Appended;
use super::log::table_log::Change;
use super::{Ack, BatchId, FreshSamples, Rows, Store, StoreConfig, StoreError, Table, hour};
use arrow::array::{ArrayRef, AsArray, DictionaryArray, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Int64Type};
use async_trait::async_trait;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions,
    PutOptions, PutPayload, PutResult, Result,
};
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

/// A store that fails as it is told to.
#[derive(Debug)]
struct Faulty {
    inner: Arc<dyn ObjectStore>,
    faults: &'static Faults,
}

/// How many of the next calls fail.
#[derive(Debug)]
struct Faults {
    /// Creating an entry of the log: before it is written, or after.
    before: AtomicI64,
    after: AtomicI64,
    /// Reading an entry of the log.
    reads: AtomicI64,
}

impl Faults {
    const fn none() -> Self {
        Self {
            before: AtomicI64::new(0),
            after: AtomicI64::new(0),
            reads: AtomicI64::new(0),
        }
    }
}

fn fails(count: &AtomicI64, path: &Path) -> Result<()> {
    if path.extension() != Some("json") || count.load(SeqCst) <= 0 {
        return Ok(());
    }
    count.fetch_sub(1, SeqCst);
    Err(object_store::Error::Generic {
        store: "faulty",
        source: format!("no answer about {path}").into(),
    })
}

impl std::fmt::Display for Faulty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Faulty({})", self.inner)
    }
}

#[async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        fails(&self.faults.before, location)?;
        let written = self.inner.put_opts(location, payload, opts).await?;
        fails(&self.faults.after, location)?;
        Ok(written)
    }

    async fn put_multipart_opts(&self, location: &Path, opts: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        fails(&self.faults.reads, location)?;
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

fn quiet(dir: &std::path::Path) -> StoreConfig {
    StoreConfig {
        commit_interval: Duration::from_secs(3600),
        maintenance_interval: Duration::from_secs(3600),
        min_free_bytes: 0,
        // The samples are of 2001.
        retention_samples: Duration::from_secs(100 * 365 * 24 * 3600),
        ..StoreConfig::new(dir)
    }
}

const SAMPLES: usize = 10;

/// Samples without dictionary rows, of a batch with this number.
fn batch(number: i64) -> (Rows, BatchId) {
    let ts_ns = 1_000_000_000_000_000_000 + number;
    let schema = Table::Samples.schema();
    let columns = schema.fields().iter().map(|field| -> ArrayRef {
        match field.data_type() {
            DataType::Int64 => Arc::new(Int64Array::from(vec![ts_ns; SAMPLES])),
            DataType::Int32 => Arc::new(Int32Array::from(vec![1; SAMPLES])),
            _ => {
                let text = if field.name() == "hour" {
                    hour(ts_ns)
                } else {
                    "x".to_owned()
                };
                let keys = Int32Array::from(vec![0; SAMPLES]);
                Arc::new(DictionaryArray::new(keys, Arc::new(StringArray::from(vec![text]))))
            }
        }
    });
    let samples = RecordBatch::try_new(schema.clone(), columns.collect()).unwrap();
    let mut rows = Rows::default();
    rows.samples.push(FreshSamples::of_batch(&samples));
    let instance = "2f3c5c0e-95a5-4a5f-8a1e-0c6a4f1f7f10".to_owned();
    (rows, BatchId { instance, number })
}

/// Appends and commits.
async fn store_batch(store: &Arc<Store>, number: i64) -> std::result::Result<Ack, StoreError> {
    let (rows, id) = batch(number);
    let appended = tokio::spawn({
        let store = store.clone();
        async move { store.append(rows, Some(id)).await }
    });
    while !appended.is_finished() {
        store.flush().await.ok();
        tokio::task::yield_now().await;
    }
    appended.await.unwrap()
}

/// Samples by a query, which reads every file that the table names.
async fn samples(store: &Store) -> i64 {
    let session = store.snapshot().session();
    let query = session.sql("SELECT count(ts_ns + tid) FROM samples").await.unwrap();
    let rows = query.collect().await.unwrap();
    rows[0].column(0).as_primitive::<Int64Type>().value(0)
}

/// After all, and again from the disk: batches 1 to `batches` are stored, each once, and a repeat is known.
async fn holds_once(store: Arc<Store>, dir: &std::path::Path, batches: i64) {
    assert_eq!(samples(&store).await, batches * SAMPLES as i64);
    store.close().await;
    drop(store);
    let store = Store::open(quiet(dir)).await.unwrap();
    for number in 1..=batches {
        assert_eq!(
            store_batch(&store, number).await.unwrap(),
            Ack::Duplicate,
            "number {number}"
        );
    }
    assert_eq!(samples(&store).await, batches * SAMPLES as i64);
    store.close().await;
}

macro_rules! faulty {
    ($faults:ident, $over:ident) => {
        static $faults: Faults = Faults::none();
        let $over: Over = |table, inner| match table {
            Table::Samples => Arc::new(Faulty {
                inner,
                faults: &$faults,
            }),
            _ => inner,
        };
    };
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_that_was_written_though_the_call_failed_counts() {
    faulty!(FAULTS, over);
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_over(quiet(dir.path()), over).await.unwrap();
    FAULTS.after.store(1, SeqCst);
    // Whatever the first answer is: a sender repeats until it is acknowledged.
    while store_batch(&store, 1).await.is_err() {}
    assert_eq!(FAULTS.after.load(SeqCst), 0, "the fault was not met");
    assert_eq!(store_batch(&store, 1).await.unwrap(), Ack::Duplicate);
    assert_eq!(store_batch(&store, 2).await.unwrap(), Ack::Stored);
    holds_once(store, dir.path(), 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_that_was_not_written_does_not_count() {
    faulty!(FAULTS, over);
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_over(quiet(dir.path()), over).await.unwrap();
    FAULTS.before.store(1, SeqCst);
    store_batch(&store, 1).await.unwrap_err();
    assert_eq!(samples(&store).await, 0);
    assert_eq!(store_batch(&store, 1).await.unwrap(), Ack::Stored);
    holds_once(store, dir.path(), 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_answered_while_the_end_of_a_commit_is_not_known() {
    faulty!(FAULTS, over);
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_over(quiet(dir.path()), over).await.unwrap();
    FAULTS.after.store(1, SeqCst);
    FAULTS.reads.store(2, SeqCst);
    // The first and a repeat: neither is refused, and neither is stored a second time.
    let (first, repeat) = tokio::join!(store_batch(&store, 1), store_batch(&store, 1));
    let mut acks = [first.unwrap(), repeat.unwrap()];
    acks.sort_by_key(|ack| *ack == Ack::Duplicate);
    assert_eq!(acks, [Ack::Stored, Ack::Duplicate]);
    assert_eq!(FAULTS.reads.load(SeqCst), 0, "the fault was not met");
    holds_once(store, dir.path(), 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_in_doubt_leaves_the_truth_on_the_disk() {
    faulty!(FAULTS, over);
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_over(quiet(dir.path()), over).await.unwrap();
    FAULTS.after.store(1, SeqCst);
    FAULTS.reads.store(i64::MAX, SeqCst);
    let (answer, ()) = tokio::join!(store_batch(&store, 1), async {
        while FAULTS.after.load(SeqCst) > 0 {
            tokio::task::yield_now().await;
        }
        store.close().await;
    });
    answer.unwrap_err();
    drop(store);
    let store = Store::open(quiet(dir.path())).await.unwrap();
    assert_eq!(store_batch(&store, 1).await.unwrap(), Ack::Duplicate);
    holds_once(store, dir.path(), 1).await;
}

/// As [`quiet`], beside other servers.
fn shared(dir: &std::path::Path) -> StoreConfig {
    StoreConfig {
        is_shared: true,
        look_interval: Duration::from_secs(3600),
        ..quiet(dir)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn beside_others_an_entry_whose_answer_was_lost_counts_once() {
    faulty!(FAULTS, over);
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_over(shared(dir.path()), over).await.unwrap();
    FAULTS.after.store(1, SeqCst);
    FAULTS.reads.store(2, SeqCst);
    assert_eq!(store_batch(&store, 1).await.unwrap(), Ack::Stored);
    assert_eq!(FAULTS.after.load(SeqCst), 0, "the fault was not met");
    assert_eq!(store_batch(&store, 1).await.unwrap(), Ack::Duplicate);
    holds_once(store, dir.path(), 1).await;
}

/// A request that failed may be carried out later: it is not given up for another one before something has its place.
#[tokio::test(flavor = "multi_thread")]
async fn beside_others_a_put_whose_end_is_not_known_is_repeated() {
    faulty!(FAULTS, over);
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_over(shared(dir.path()), over).await.unwrap();
    FAULTS.before.store(3, SeqCst);
    assert_eq!(store_batch(&store, 1).await.unwrap(), Ack::Stored);
    assert_eq!(FAULTS.before.load(SeqCst), 0, "the fault was not met");
    holds_once(store, dir.path(), 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_second_leaves_out_what_the_first_has_stored() {
    let dir = tempfile::tempdir().unwrap();
    let first = Store::open(shared(dir.path())).await.unwrap();
    let second = Store::open(shared(dir.path())).await.unwrap();
    // Both have it before either commits; the second has one more.
    let mut waiting = Vec::new();
    for (store, number) in [(&first, 1), (&second, 1), (&second, 2)] {
        let (rows, id) = batch(number);
        waiting.push((store.clone(), store.admit(rows, Some(id)).unwrap()));
    }
    first.flush().await.unwrap();
    assert_eq!(samples(&second).await, 2 * SAMPLES as i64);
    second.look().await.unwrap();
    // The first one's rows have come, and its own of the same batch are gone in the same step.
    assert_eq!(samples(&second).await, 2 * SAMPLES as i64);
    second.flush().await.unwrap();
    for (store, ticket) in waiting {
        assert_eq!(store.acknowledge(ticket).await.unwrap(), Ack::Stored);
    }
    assert_eq!(second.counters.batches_stored.load(SeqCst), 1);
    first.look().await.unwrap();
    assert_eq!(samples(&first).await, 2 * SAMPLES as i64);
    first.close().await;
    drop(first);
    holds_once(second, dir.path(), 2).await;
}

/// A server that ends between its files and its entry leaves nothing that others see, and no batch that counts.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_ends_before_its_entry_has_stored_nothing() {
    faulty!(FAULTS, over);
    let dir = tempfile::tempdir().unwrap();
    let ends = Store::open_over(shared(dir.path()), over).await.unwrap();
    let other = Store::open(shared(dir.path())).await.unwrap();
    FAULTS.before.store(i64::MAX, SeqCst);
    let (rows, id) = batch(1);
    let ticket = ends.admit(rows, Some(id)).unwrap();
    let flush = tokio::spawn({
        let ends = ends.clone();
        async move { ends.flush().await }
    });
    while FAULTS.before.load(SeqCst) == i64::MAX {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    other.look().await.unwrap();
    assert_eq!(samples(&other).await, 0);
    // The sender hears nothing, and sends it to the other.
    assert_eq!(store_batch(&other, 1).await.unwrap(), Ack::Stored);
    // What the first tries still meets that, whenever it comes through.
    FAULTS.before.store(0, SeqCst);
    flush.await.unwrap().unwrap();
    assert_eq!(ends.acknowledge(ticket).await.unwrap(), Ack::Stored);
    assert_eq!(samples(&ends).await, SAMPLES as i64);
    ends.close().await;
    drop(ends);
    other.look().await.unwrap();
    holds_once(other, dir.path(), 1).await;
}

/// A server that was stopped for hours lacks more than is read at a time.
#[tokio::test(flavor = "multi_thread")]
async fn one_look_sees_all_however_much_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let first = Store::open(shared(dir.path())).await.unwrap();
    let second = Store::open(shared(dir.path())).await.unwrap();
    {
        let mut log = first.logs[Table::Samples.index()].lock().await;
        for _ in 0..1_001 {
            let nothing = Change {
                add: Vec::new(),
                remove: &[],
                txns: &[],
                data_change: false,
            };
            assert_eq!(log.append(nothing).await.unwrap(), Appended::Written);
        }
    }
    assert_eq!(store_batch(&first, 1).await.unwrap(), Ack::Stored);
    second.look().await.unwrap();
    assert_eq!(samples(&second).await, SAMPLES as i64);
    first.close().await;
    second.close().await;
}
