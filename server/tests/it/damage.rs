//! One byte flipped in each kind of file, files that are cut, empty or gone: each is found and named, the rest answers.

use crate::store::{copy_dir, number, quiet, rows_of, store_batch};
use crate::support::{Sender, now_ns};
use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use stakeout_server::api::{AppState, app};
use stakeout_server::store::{Ack, Store, StoreConfig, Table};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tower::ServiceExt;

const HOUR_NS: i64 = 3_600_000_000_000;
const DAY_NS: i64 = 24 * HOUR_NS;
/// Samples of each batch.
const SAMPLES: i64 = 30;

/// What happens to a file.
#[derive(Debug, Clone, Copy)]
enum Harm {
    /// One bit, at so many thousandths of the length.
    Flip(usize),
    /// One bit of the last bytes, from the end: the length of a Parquet footer, and the magic word.
    FlipLast(usize),
    Cut,
    Empty,
    Gone,
}

/// The magic word, the first page's header, pages, dictionaries, indices, the footer: from the front to the back of a
/// file.
const HARMS: [Harm; 14] = [
    Harm::Flip(0),
    Harm::Flip(8),
    Harm::Flip(20),
    Harm::Flip(100),
    Harm::Flip(300),
    Harm::Flip(500),
    Harm::Flip(700),
    Harm::Flip(850),
    Harm::Flip(950),
    Harm::FlipLast(6),
    Harm::FlipLast(1),
    Harm::Cut,
    Harm::Empty,
    Harm::Gone,
];

impl Harm {
    fn does(self, path: &Path) {
        let mut content = std::fs::read(path).unwrap();
        match self {
            Harm::Flip(thousandths) => {
                let at = content.len() * thousandths / 1000;
                content[at] ^= 0x10;
            }
            Harm::FlipLast(back) => {
                let at = content.len() - back;
                content[at] ^= 0x01;
            }
            Harm::Cut => content.truncate(content.len() / 2),
            Harm::Empty => content.clear(),
            Harm::Gone => return std::fs::remove_file(path).unwrap(),
        }
        std::fs::write(path, content).unwrap();
    }
}

/// Undoes all harm.
struct Kept {
    path: PathBuf,
    content: Vec<u8>,
}

impl Kept {
    fn of(path: PathBuf) -> Kept {
        let content = std::fs::read(&path).unwrap();
        Kept { path, content }
    }

    fn restore(&self) {
        std::fs::write(&self.path, &self.content).unwrap();
    }
}

const COLLAPSED: &str = "/api/v1/flamegraph?from=now-7d&until=now%2B1h&format=collapsed";

/// Two batches, of this hour and of the day before, each in files of its own. Returns the time of the newer.
async fn two_days(dir: &Path) -> i64 {
    let store = Store::open(quiet(dir)).await.unwrap();
    let mut sender = Sender::new("node-a", SAMPLES as usize);
    let now = now_ns();
    for (batch, until_ns) in [(1, now - DAY_NS), (2, now)] {
        let (rows, id) = rows_of(&mut sender, batch, until_ns);
        store_batch(&store, rows, Some(id)).await.unwrap();
    }
    store.close().await;
    now
}

fn newest_file(store: &Store, table: Table) -> String {
    let snapshot = store.snapshot();
    let newest = snapshot.files(table).last().unwrap();
    format!("{}/{}", table.name(), newest.path)
}

struct Answer {
    status: StatusCode,
    damaged: Option<String>,
    body: Vec<u8>,
}

async fn get(app: &Router, path: &str) -> Answer {
    let request = Request::get(path).body(Body::empty()).unwrap();
    let response = app.clone().oneshot(request).await.unwrap();
    let header = response.headers().get("stakeout-damaged-files");
    Answer {
        status: response.status(),
        damaged: header.map(|value| value.to_str().unwrap().to_owned()),
        body: axum::body::to_bytes(response.into_body(), usize::MAX)
            .await
            .unwrap()
            .to_vec(),
    }
}

async fn get_json(app: &Router, path: &str) -> (serde_json::Value, Option<String>) {
    let answer = get(app, path).await;
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    assert_eq!(answer.status, StatusCode::OK, "{path}: {text}");
    (serde_json::from_str(&text).unwrap(), answer.damaged)
}

/// Samples of a flamegraph of the two days, and the damaged files that the answer names.
async fn flamegraph(app: &Router, from: &str, until: &str) -> (i64, Vec<String>) {
    let (graph, header) = get_json(app, &format!("/api/v1/flamegraph?from={from}&until={until}")).await;
    let named: Vec<String> = graph["damaged_files"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|name| name.as_str().unwrap().to_owned())
        .collect();
    assert_eq!(header, (!named.is_empty()).then(|| named.len().to_string()));
    (graph["samples"].as_i64().unwrap(), named)
}

#[tokio::test(flavor = "multi_thread")]
async fn harm_to_a_data_file_is_named_and_the_rest_answers() {
    let dir = tempfile::tempdir().unwrap();
    two_days(dir.path()).await;
    // Nothing is rolled up yet.
    for table in Table::ALL.into_iter().filter(|table| !Table::ROLLUPS.contains(table)) {
        let store = Store::open(quiet(dir.path())).await.unwrap();
        let name = newest_file(&store, table);
        store.close().await;
        drop(store);
        let kept = Kept::of(dir.path().join(&name));
        for harm in HARMS {
            harm.does(&kept.path);
            let store = Store::open(quiet(dir.path())).await.unwrap();
            let app = app(AppState::new(store.clone()));
            let (samples, named) = flamegraph(&app, "now-7d", "now%2B1h").await;
            let (expected, drawn) = match table {
                Table::Samples => (SAMPLES, true),
                // Only selectors and SQL look at these.
                Table::Series | Table::Processes => (2 * SAMPLES, false),
                _ => (2 * SAMPLES, true),
            };
            assert_eq!(samples, expected, "{name} {harm:?}");
            assert_eq!(named.contains(&name), drawn, "{name} {harm:?}: {named:?}");
            let snapshot = store.snapshot();
            number(&snapshot, &format!("SELECT count(*) FROM {}", table.name())).await;
            assert_eq!(snapshot.left_out(), std::slice::from_ref(&name), "{harm:?}");
            let listed = store.damaged_files();
            assert_eq!(listed.len(), 1, "{harm:?}: {listed:?}");
            assert_eq!(listed[0].file, name);
            assert!(listed[0].rows > 0 && !listed[0].fault.is_empty());
            let metrics = String::from_utf8(get(&app, "/metrics").await.body).unwrap();
            assert!(metrics.contains("stakeout_store_damaged_files 1"), "{metrics}");
            assert!(metrics.contains(&format!("file=\"{name}\"")), "{metrics}");
            // A window without the file is as ever.
            let (samples, named) = flamegraph(&app, "now-30h", "now-20h").await;
            assert_eq!((samples, named.contains(&name)), (SAMPLES, false), "{name} {harm:?}");
            store.close().await;
            drop(store);
            kept.restore();
        }
    }
    let store = Store::open(quiet(dir.path())).await.unwrap();
    assert_eq!(
        number(&store.snapshot(), "SELECT count(*) FROM samples").await,
        2 * SAMPLES
    );
    assert_eq!(store.damaged_files(), []);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_answer_says_what_it_lacks() {
    let dir = tempfile::tempdir().unwrap();
    two_days(dir.path()).await;
    let store = Store::open(quiet(dir.path())).await.unwrap();
    let name = newest_file(&store, Table::Samples);
    let kept = Kept::of(dir.path().join(&name));
    let app = app(AppState::new(store.clone()));
    let window = "from=now-7d&until=now%2B1h";
    let before = "base_from=now-7d&base_until=now%2B1h";
    let json = [
        format!("series?{window}&by=service&step=1h"),
        format!("flamegraph?{window}"),
        format!("diff?{window}&{before}&normalize=share"),
        format!("top?{window}"),
        format!("top?{window}&by=thread&{before}&normalize=share"),
        format!("labels/thread/values?{window}"),
        format!("heatmap?{window}&step=1h"),
        format!("timeline?{window}"),
        format!("timeline?{window}&before=1s&match=."),
    ];
    let other = [
        format!("flamegraph?{window}&format=svg"),
        format!("flamegraph?{window}&format=collapsed"),
        format!("flamegraph?{window}&format=pprof"),
        format!("flamegraph?{window}&format=speedscope"),
        format!("diff?{window}&{before}&normalize=share&format=collapsed"),
        format!("top?{window}&format=csv"),
    ];
    for path in &json {
        let (answer, header) = get_json(&app, &format!("/api/v1/{path}")).await;
        assert!(answer["damaged_files"].is_null() && header.is_none(), "{path}");
    }
    // While the server runs.
    Harm::Flip(300).does(&kept.path);
    for path in &json {
        let (answer, header) = get_json(&app, &format!("/api/v1/{path}")).await;
        assert_eq!(answer["damaged_files"], serde_json::json!([name]), "{path}");
        assert_eq!(header.as_deref(), Some("1"), "{path}");
    }
    for path in &other {
        let answer = get(&app, &format!("/api/v1/{path}")).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}");
        assert_eq!(answer.damaged.as_deref(), Some("1"), "{path}");
    }
    let request = Request::post("/api/v1/sql").header("content-type", "application/json");
    let request = request.body(Body::from(r#"{"query":"SELECT count(*) FROM samples"}"#));
    let response = app.clone().oneshot(request.unwrap()).await.unwrap();
    let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
    let answer: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(
        (&answer["rows"], &answer["damaged_files"]),
        (&serde_json::json!([[30]]), &serde_json::json!([name]))
    );
    // As from a backup.
    kept.restore();
    assert_eq!(flamegraph(&app, "now-7d", "now%2B1h").await, (2 * SAMPLES, vec![]));
    assert_eq!(store.damaged_files(), []);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_could_not_be_read_are_lacking_each_time_and_there_once_they_can() {
    let dir = tempfile::tempdir().unwrap();
    two_days(dir.path()).await;
    let whole = {
        let store = Store::open(quiet(dir.path())).await.unwrap();
        let answer = get(&app(AppState::new(store.clone())), COLLAPSED).await;
        store.close().await;
        answer.body
    };
    let store = Store::open(quiet(dir.path())).await.unwrap();
    let names: Vec<_> = {
        let snapshot = store.snapshot();
        let files = snapshot.files(Table::Frames).iter();
        files.map(|file| file.path.clone()).collect()
    };
    let kept: Vec<_> = names
        .iter()
        .map(|name| Kept::of(dir.path().join("frames").join(name)))
        .collect();
    kept.iter().for_each(|kept| Harm::Flip(300).does(&kept.path));
    let app = app(AppState::new(store.clone()));
    for _ in 0..2 {
        let answer = get(&app, COLLAPSED).await;
        assert_eq!(answer.damaged.as_deref(), Some(&*names.len().to_string()));
        assert!(String::from_utf8(answer.body).unwrap().starts_with("[unknown];"));
    }
    kept.iter().for_each(Kept::restore);
    let answer = get(&app, COLLAPSED).await;
    assert_eq!((answer.damaged, answer.body), (None, whole));
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_file_is_not_rewritten_and_its_neighbours_are() {
    let dir = tempfile::tempdir().unwrap();
    let config = StoreConfig {
        maintenance_interval: std::time::Duration::from_millis(20),
        compact_files: 4,
        ..quiet(dir.path())
    };
    let until_ns = now_ns();
    let mut sender = Sender::new("node-a", SAMPLES as usize);
    let store = Store::open(quiet(dir.path())).await.unwrap();
    for batch in 1..=6 {
        let (rows, id) = rows_of(&mut sender, batch, until_ns);
        store_batch(&store, rows, Some(id)).await.unwrap();
    }
    let name = newest_file(&store, Table::Samples);
    store.close().await;
    drop(store);
    Harm::Flip(500).does(&dir.path().join(&name));
    let store: Arc<Store> = Store::open(config).await.unwrap();
    crate::support::eventually("the others are one file", async || {
        store.snapshot().files(Table::Samples).len() == 2
    })
    .await;
    // Maintenance alone has found it: nobody has asked.
    let listed: BTreeMap<String, u64> = store.damaged_files().into_iter().map(|f| (f.file, f.rows)).collect();
    assert_eq!(listed, BTreeMap::from([(name.clone(), SAMPLES as u64)]));
    let snapshot = store.snapshot();
    assert_eq!(number(&snapshot, "SELECT count(*) FROM samples").await, 5 * SAMPLES);
    assert_eq!(snapshot.left_out(), [name]);
    store.close().await;
}

/// Batches that a table's log has in entries of their own, with a checkpoint amid them.
const BATCHES: i64 = 6;

/// Commits `BATCHES` batches one after the other. After the fourth, the log has a checkpoint.
async fn with_checkpoint(dir: &Path, sender: &mut Sender, until_ns: i64) {
    let config = StoreConfig {
        maintenance_interval: std::time::Duration::from_millis(20),
        compact_files: 3,
        checkpoint_commits: 4,
        ..quiet(dir)
    };
    let store = Store::open(config).await.unwrap();
    let hint = dir.join("samples/_delta_log/_last_checkpoint");
    for batch in 1..=BATCHES - 2 {
        let (rows, id) = rows_of(sender, batch, until_ns);
        store_batch(&store, rows, Some(id)).await.unwrap();
    }
    crate::support::eventually("three files are one, and there is a checkpoint", async || {
        store.snapshot().files(Table::Samples).len() < 3 && hint.exists()
    })
    .await;
    store.close().await;
    drop(store);
    let store = Store::open(quiet(dir)).await.unwrap();
    for batch in BATCHES - 1..=BATCHES {
        let (rows, id) = rows_of(sender, batch, until_ns);
        store_batch(&store, rows, Some(id)).await.unwrap();
    }
    store.close().await;
}

/// The log's files, those before the newest checkpoint left out: they are not read.
fn log_files(dir: &Path) -> Vec<String> {
    let names = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<String> = names
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let newest = names
        .iter()
        .rfind(|name| name.ends_with(".checkpoint.parquet"))
        .cloned();
    names.retain(|name| {
        newest
            .as_ref()
            .is_none_or(|newest| name.starts_with('_') || name[..20] > newest[..20] || name == newest)
    });
    names
}

/// Opens a store whose log was harmed, and finds every sample once, repeats known, and the harm listed; then opens it
/// again.
async fn opens_whole(dir: &Path, sender: &mut Sender, until_ns: i64, harmed: &str, case: &str) {
    let store = Store::open(quiet(dir)).await.unwrap();
    let listed = store.damaged_files();
    let names: Vec<&str> = listed.iter().map(|file| file.file.as_str()).collect();
    assert_eq!(names, [harmed], "{case}");
    let snapshot = store.snapshot();
    let count = number(&snapshot, "SELECT count(*) FROM samples").await;
    assert_eq!(count, BATCHES * SAMPLES, "{case}");
    let joined = "SELECT count(*) FROM samples s JOIN stacks t ON s.stack_id = t.stack_id";
    assert_eq!(number(&snapshot, joined).await, BATCHES * SAMPLES, "{case}");
    for batch in 1..=BATCHES {
        let (rows, id) = rows_of(sender, batch, until_ns);
        let ack = store_batch(&store, rows, Some(id)).await.unwrap();
        assert_eq!(ack, Ack::Duplicate, "{case}, batch {batch}");
    }
    let (rows, id) = rows_of(sender, BATCHES + 1, until_ns);
    assert_eq!(
        store_batch(&store, rows, Some(id)).await.unwrap(),
        Ack::Stored,
        "{case}"
    );
    store.close().await;
    drop(store);
    let store = Store::open(quiet(dir)).await.unwrap();
    assert_eq!(store.damaged_files(), [], "{case}: again");
    let count = number(&store.snapshot(), "SELECT count(*) FROM samples").await;
    assert_eq!(count, (BATCHES + 1) * SAMPLES, "{case}: again");
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn harm_to_a_log_is_named_and_mended() {
    let (whole, until_ns) = (tempfile::tempdir().unwrap(), now_ns());
    let mut sender = Sender::new("node-a", SAMPLES as usize);
    with_checkpoint(whole.path(), &mut sender, until_ns).await;
    let harms = [
        Harm::Flip(10),
        Harm::Flip(400),
        Harm::FlipLast(3),
        Harm::Cut,
        Harm::Empty,
        Harm::Gone,
    ];
    let mut cases = 0;
    for table in [Table::Samples, Table::Stacks] {
        let log = format!("{}/_delta_log", table.name());
        let files = log_files(&whole.path().join(&log));
        let last = files.iter().rfind(|name| name.ends_with(".json")).cloned();
        for file in &files {
            for (at, harm) in harms.into_iter().enumerate() {
                // A table's last entry that is gone was never written, as far as anyone can tell; and what only helps
                // to read or to judge the others may be lacking.
                let may_lack = Some(file) == last.as_ref() || file.starts_with('_');
                // Of the second table every other case: they are the same code.
                if may_lack && matches!(harm, Harm::Gone) || table == Table::Stacks && at % 2 == 1 {
                    continue;
                }
                let dir = tempfile::tempdir().unwrap();
                copy_dir(whole.path(), dir.path());
                let name = format!("{log}/{file}");
                harm.does(&dir.path().join(&name));
                let case = format!("{name} {harm:?}");
                opens_whole(dir.path(), &mut sender.clone(), until_ns, &name, &case).await;
                cases += 1;
            }
        }
    }
    assert!(cases > 30, "only {cases} cases");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_of_which_nothing_is_left_is_made_from_the_files() {
    let (whole, until_ns) = (tempfile::tempdir().unwrap(), now_ns());
    let mut sender = Sender::new("node-a", SAMPLES as usize);
    with_checkpoint(whole.path(), &mut sender, until_ns).await;
    for table in [Table::Samples, Table::Frames] {
        let dir = tempfile::tempdir().unwrap();
        copy_dir(whole.path(), dir.path());
        std::fs::remove_dir_all(dir.path().join(table.name()).join("_delta_log")).unwrap();
        let store = Store::open(quiet(dir.path())).await.unwrap();
        let listed = store.damaged_files();
        assert_eq!(listed[0].file, format!("{}/_delta_log", table.name()));
        // Files that compaction had replaced lie there still: what replaced them says so.
        let count = number(&store.snapshot(), "SELECT count(*) FROM samples").await;
        assert_eq!(count, BATCHES * SAMPLES, "{}", table.name());
        assert_eq!(number(&store.snapshot(), "SELECT count(*) FROM frames").await, 7);
        // Also those of batches in files that compaction has made.
        for batch in 1..=BATCHES {
            let (rows, id) = rows_of(&mut sender, batch, until_ns);
            let ack = store_batch(&store, rows, Some(id)).await.unwrap();
            assert_eq!(ack, Ack::Duplicate, "{}, batch {batch}", table.name());
        }
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_taken_in_without_an_entry_is_committed_before_what_refers_to_it() {
    let (dir, until_ns) = (tempfile::tempdir().unwrap(), now_ns());
    let store = Store::open(quiet(dir.path())).await.unwrap();
    let (rows, id) = rows_of(&mut Sender::new("node-a", SAMPLES as usize), 1, until_ns);
    store_batch(&store, rows, Some(id)).await.unwrap();
    store.close().await;
    drop(store);
    let last_entry = |table: Table| -> PathBuf {
        let log = dir.path().join(table.name()).join("_delta_log");
        let last = log_files(&log).into_iter().rfind(|name| name.ends_with(".json"));
        log.join(last.unwrap())
    };
    let dictionaries = [
        Table::Types,
        Table::Series,
        Table::Processes,
        Table::Frames,
        Table::Stacks,
    ];
    let all = [&dictionaries[..], &[Table::Batches, Table::Samples]].concat();
    for table in &all {
        std::fs::remove_file(last_entry(*table)).unwrap();
    }
    let store = Store::open(quiet(dir.path())).await.unwrap();
    assert_eq!(number(&store.snapshot(), "SELECT count(*) FROM samples").await, SAMPLES);
    store.close().await;
    let written = |table: Table| std::fs::metadata(last_entry(table)).unwrap().modified().unwrap();
    assert!(written(Table::Frames) <= written(Table::Stacks));
    for table in all {
        assert!(written(table) <= written(Table::Samples), "{}", table.name());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_last_entry_that_is_gone_takes_no_acknowledged_sample_with_it() {
    let (whole, until_ns) = (tempfile::tempdir().unwrap(), now_ns());
    let mut sender = Sender::new("node-a", SAMPLES as usize);
    with_checkpoint(whole.path(), &mut sender, until_ns).await;
    for table in Table::ALL.into_iter().filter(|table| !Table::ROLLUPS.contains(table)) {
        let dir = tempfile::tempdir().unwrap();
        copy_dir(whole.path(), dir.path());
        let log = dir.path().join(table.name()).join("_delta_log");
        let last = log_files(&log).into_iter().rfind(|name| name.ends_with(".json"));
        // Of the dictionaries the checkpoint may be the last.
        let Some(last) = last else { continue };
        std::fs::remove_file(log.join(last)).unwrap();
        // Twice: what was found once is part of the table, and not found again.
        for _ in 0..2 {
            let store = Store::open(quiet(dir.path())).await.unwrap();
            let snapshot = store.snapshot();
            let joined = "SELECT count(*) FROM samples s JOIN stacks t ON s.stack_id = t.stack_id";
            assert_eq!(number(&snapshot, joined).await, BATCHES * SAMPLES, "{}", table.name());
            let batches = "SELECT count(*) FROM batches";
            assert_eq!(number(&snapshot, batches).await, BATCHES, "{}", table.name());
            for batch in 1..=BATCHES {
                let (rows, id) = rows_of(&mut sender, batch, until_ns);
                let ack = store_batch(&store, rows, Some(id)).await.unwrap();
                assert_eq!(ack, Ack::Duplicate, "{}, batch {batch}", table.name());
            }
            store.close().await;
        }
    }
}
