//! Tables as older servers wrote them: they are opened, asked, and merged with what comes now.

use crate::store::{copy_dir, number, quiet, rows_of, store_batch};
use crate::support::{Sender, eventually};
use stakeout_server::store::{Store, StoreConfig, Table};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A folder with a copy of a table of `tests/data`, and how a store is opened there: nothing is too old to stay.
fn left_by_an_older_server(data: &str, table: Table) -> (tempfile::TempDir, StoreConfig) {
    const LONG: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
    let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(data);
    let dir = tempfile::tempdir().unwrap();
    copy_dir(&old, &dir.path().join(table.name()));
    let config = StoreConfig {
        retention_samples: LONG,
        retention_hours: LONG,
        ..quiet(dir.path())
    };
    (dir, config)
}

/// The store once the table's old and new files have become one.
async fn merged(config: StoreConfig, table: Table) -> Arc<Store> {
    let eager = StoreConfig {
        maintenance_interval: Duration::from_millis(50),
        compact_files: 2,
        ..config
    };
    let store = Store::open(eager).await.unwrap();
    eventually("old and new files are one", async || {
        store.snapshot().files(table).len() == 1
    })
    .await;
    store
}

/// `tests/data/batches-without-limits`: the table `batches` with two batches of 30 samples, as a server wrote it
/// before the column `limits` was.
#[tokio::test(flavor = "multi_thread")]
async fn a_table_of_an_older_server_gets_the_new_columns() {
    let (_dir, config) = left_by_an_older_server("batches-without-limits", Table::Batches);
    let store = Store::open(config.clone()).await.unwrap();
    let known = store.nodes().remove(0);
    assert_eq!((known.samples_stored, known.last.number), (60, 2));
    assert!(known.last.limits.is_empty());
    let mut sender = Sender::new("node-b", 10);
    let (rows, id) = rows_of(&mut sender, 1, known.last.until_ns + 1_000_000_000);
    store_batch(&store, rows, Some(id)).await.unwrap();
    let told = "SELECT count(*) FROM batches WHERE limits = '{\"tables_late\":2}'";
    let silent = "SELECT count(*) FROM batches WHERE limits IS NULL AND waits_observed_ns IS NULL AND samples = 30";
    let rows = async |store: &Store| {
        (
            number(&store.snapshot(), told).await,
            number(&store.snapshot(), silent).await,
        )
    };
    assert_eq!(rows(&store).await, (1, 2));
    store.close().await;
    drop(store);
    // Opened again, it is as any other table, and old and new files become one.
    let store = merged(config, Table::Batches).await;
    assert_eq!(rows(&store).await, (1, 2));
    assert_eq!(store.nodes().len(), 2);
    store.close().await;
}

/// `tests/data/samples-without-wait_ns`: the table `samples` with 20 samples of `cpu` and ten of `off_cpu`, as a server
/// wrote it before it kept how long waits were.
#[tokio::test(flavor = "multi_thread")]
async fn samples_of_an_older_server_are_read_and_merged_with_newer_ones() {
    let (_dir, config) = left_by_an_older_server("samples-without-wait_ns", Table::Samples);
    let store = Store::open(config.clone()).await.unwrap();
    let first = "SELECT min(ts_ns) FROM samples";
    let from_ns = number(&store.snapshot(), first).await;
    // As many as are there: files of about the same size are merged.
    let mut sender = Sender::new("node-b", 30);
    let (rows, id) = rows_of(&mut sender, 1, from_ns + 1_000_000_000);
    let new: i64 = rows.samples.iter().map(|rows| rows.num_rows() as i64).sum();
    store_batch(&store, rows, Some(id)).await.unwrap();
    let told = async |store: &Store| {
        let silent = "SELECT count(*) FROM samples WHERE wait_ns IS NULL AND woken_tid IS NULL";
        let waited = "SELECT sum(value) FROM samples WHERE type = 'off_cpu'";
        (
            number(&store.snapshot(), silent).await,
            number(&store.snapshot(), waited).await,
        )
    };
    assert_eq!(told(&store).await, (30 + new, 55 * 50_000_000));
    store.close().await;
    drop(store);
    let store = merged(config, Table::Samples).await;
    assert_eq!(told(&store).await, (30 + new, 55 * 50_000_000));
    store.close().await;
}

/// `tests/data/samples_hour-with-nodes`: the roll-up by hour of 120 samples of two nodes, as a server wrote it when
/// roll-ups had a column `node`, which no row might lack.
#[tokio::test(flavor = "multi_thread")]
async fn a_roll_up_of_an_older_server_may_lack_its_old_column() {
    let (dir, config) = left_by_an_older_server("samples_hour-with-nodes", Table::SamplesHour);
    let table = dir.path().join(Table::SamplesHour.name());
    // Once it is changed, it stays as it is.
    for _ in 0..2 {
        let store = Store::open(config.clone()).await.unwrap();
        let counted = "SELECT sum(count) FROM samples_hour WHERE service = 'service-1'";
        assert_eq!(number(&store.snapshot(), counted).await, 31);
        store.close().await;
        drop(store);
        let url = url::Url::from_directory_path(table.canonicalize().unwrap()).unwrap();
        let delta = deltalake_core::open_table(url).await.unwrap();
        assert_eq!(delta.version(), Some(2));
        let schema = delta.snapshot().unwrap().schema();
        let nullable = schema.fields().filter(|field| field.is_nullable());
        assert_eq!(
            nullable.map(|field| field.name().as_str()).collect::<Vec<_>>(),
            ["node"]
        );
    }
}
