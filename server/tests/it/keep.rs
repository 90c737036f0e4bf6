//! Stores that are copied, backed up, restored and checked by the real binary, in folders: sums are those of one
//! moment while samples arrive, whatever is cut off goes on, and what is harmed is named.

use crate::store::{number, quiet, rows_of, store_batch};
use crate::support::{Sender, Server, get, now_ns, post_batch, send};
use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use stakeout_server::store::{Store, Table};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinHandle;

pub(crate) const SAMPLES: i64 = 30;
const SENDERS: usize = 3;
const DAY_NS: i64 = 86_400_000_000_000;

/// What a command said, and how it ended.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    /// The number before a word of the line of figures.
    pub(crate) fn figure(&self, word: &str) -> i64 {
        let (before, _) = self
            .out
            .split_once(word)
            .unwrap_or_else(|| panic!("no {word:?}: {self:?}"));
        let number = before.split_whitespace().next_back().unwrap();
        number
            .parse()
            .unwrap_or_else(|_| panic!("no number before {word:?}: {self:?}"))
    }

    /// The same command, which must have ended well.
    pub(crate) fn well(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }
}

pub(crate) fn command(arguments: &[&str], environment: &[(&str, String)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stakeout-server"));
    command
        .args(arguments)
        .envs(environment.iter().map(|(name, value)| (name, value)));
    command
}

pub(crate) fn run_in(arguments: &[&str], environment: &[(&str, String)]) -> Said {
    let output = command(arguments, environment).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Said {
        code: output.status.code(),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

fn run(arguments: &[&str]) -> Said {
    run_in(arguments, &[])
}

/// The same while this thread serves other tasks.
pub(crate) async fn run_beside(arguments: &[&str], environment: &[(&str, String)]) -> Said {
    let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    let environment: Vec<(String, String)> = environment
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()))
        .collect();
    let running = tokio::task::spawn_blocking(move || {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let environment: Vec<_> = environment
            .iter()
            .map(|(name, value)| (name.as_str(), value.clone()))
            .collect();
        run_in(&arguments, &environment)
    });
    running.await.unwrap()
}

/// Senders that go on until they are stopped, and what was acknowledged of each, by instance.
pub(crate) struct Sending {
    stop: Arc<AtomicBool>,
    acknowledged: Arc<Mutex<BTreeMap<String, i64>>>,
    tasks: Vec<JoinHandle<()>>,
}

impl Sending {
    pub(crate) fn to(address: &str) -> Self {
        let (stop, acknowledged) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let task = |index| {
            let sends = sends(index, address.to_owned(), Arc::clone(&stop), Arc::clone(&acknowledged));
            tokio::spawn(sends)
        };
        let tasks = (0..SENDERS).map(task).collect();
        Self {
            stop,
            acknowledged,
            tasks,
        }
    }

    /// Highest numbers by instance, as they are now.
    pub(crate) fn acknowledged(&self) -> BTreeMap<String, i64> {
        self.acknowledged.lock().unwrap().clone()
    }

    /// Waits until each sender has so many.
    pub(crate) async fn until(&self, each: i64) {
        crate::support::eventually("batches are acknowledged", async || {
            let numbers = self.acknowledged();
            numbers.len() == SENDERS && numbers.values().all(|number| *number >= each)
        })
        .await;
    }

    pub(crate) async fn end(self) -> BTreeMap<String, i64> {
        self.stop.store(true, Relaxed);
        for task in self.tasks {
            task.await.unwrap();
        }
        let acknowledged = self.acknowledged.lock().unwrap();
        acknowledged.clone()
    }
}

async fn sends(index: usize, address: String, stop: Arc<AtomicBool>, acknowledged: Arc<Mutex<BTreeMap<String, i64>>>) {
    let mut sender = Sender::new(&format!("node-{index}"), SAMPLES as usize);
    let mut number = 0;
    while !stop.load(Relaxed) {
        number += 1;
        let batch = sender.batch(number, now_ns());
        loop {
            match post_batch(&address, &sender, number, &batch).await {
                Ok(answer) if answer.status == 200 => break,
                Ok(answer) => assert!(answer.status.is_server_error(), "{answer:?}"),
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
        acknowledged.lock().unwrap().insert(sender.instance.clone(), number);
    }
}

/// A store in a folder, opened by itself: its samples are those of the ledger, each there once, none refers to what is
/// not there, and of each instance all batches up to one are there, which is given.
pub(crate) async fn batches_of_one_moment(dir: &Path) -> BTreeMap<String, i64> {
    let store = Store::open(quiet(dir)).await.unwrap();
    let snapshot = store.snapshot();
    let rows = number(&snapshot, "SELECT count(*) FROM samples").await;
    for query in [
        "SELECT count(DISTINCT concat(node, ts_ns, '/', tid)) FROM samples",
        "SELECT coalesce(sum(samples), 0) FROM batches",
        "SELECT count(*) FROM samples s JOIN stacks t ON s.stack_id = t.stack_id",
        "SELECT count(*) FROM samples s JOIN series t ON s.series_id = t.series_id",
        "SELECT count(*) FROM samples s JOIN processes t ON s.process_id = t.process_id",
    ] {
        assert_eq!(number(&snapshot, query).await, rows, "{query}");
    }
    let lacking = "SELECT count(*) FROM (SELECT unnest(frames) AS frame_id FROM stacks) s \
                   LEFT JOIN frames f ON s.frame_id = f.frame_id WHERE f.frame_id IS NULL";
    assert_eq!(number(&snapshot, lacking).await, 0, "frames");
    let nodes = store.nodes();
    let highest: BTreeMap<String, i64> = nodes
        .iter()
        .map(|node| {
            assert_eq!(node.samples_stored, node.last.number * SAMPLES, "{node:?}");
            (node.last.instance.clone(), node.last.number)
        })
        .collect();
    assert_eq!(highest.values().sum::<i64>() * SAMPLES, rows);
    store.close().await;
    highest
}

/// Of each instance at least what was acknowledged before, and no more than was sent in all.
pub(crate) fn lie_between(
    before: &BTreeMap<String, i64>,
    found: &BTreeMap<String, i64>,
    after: &BTreeMap<String, i64>,
) {
    for (instance, number) in before {
        assert!(
            found.get(instance).is_some_and(|found| found >= number),
            "{before:?} {found:?}"
        );
    }
    for (instance, number) in found {
        assert!(
            after.get(instance).is_some_and(|after| after >= number),
            "{found:?} {after:?}"
        );
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_is_copied_while_samples_arrive_and_the_copy_is_of_one_moment() {
    let dir = tempfile::tempdir().unwrap();
    let [data, copy] = ["data", "copy"].map(|name| dir.path().join(name));
    let mut server = Server::start(&data, &[]);
    let sending = Sending::to(&server.address);
    for round in 1..=4 {
        sending.until(round * 3).await;
        let before = sending.acknowledged();
        let said = run_beside(&["copy", text(&data), text(&copy)], &[]).await.well();
        let highest_sum: i64 = before.values().sum();
        assert!(said.figure(" samples;") >= highest_sum * SAMPLES, "{said:?}");
        assert!(round == 1 || said.figure(" there already") > 0, "{said:?}");
        let checked = run_beside(&["check", text(&copy)], &[]).await.well();
        let samples = said.figure(" samples;");
        let of_ledger = format!("have {samples} of them, their batches tell of {samples};");
        assert!(checked.out.contains(&of_ledger), "{checked:?}");
        // Also of what is written meanwhile.
        run_beside(&["check", text(&data)], &[]).await.well();
    }
    let before = sending.acknowledged();
    run_beside(&["copy", text(&data), text(&copy)], &[]).await.well();
    let after = sending.end().await;
    let found = batches_of_one_moment(&copy).await;
    lie_between(&before, &found, &after);
    // It has been opened: it may hold what nobody else has.
    let said = run(&["copy", text(&data), text(&copy)]);
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("a server has been started on it"), "{said:?}");
    assert!(server.stop());
    assert_eq!(batches_of_one_moment(&data).await, after);
}

/// Four batches: two of yesterday, two of now.
async fn two_days(dir: &Path) {
    let store = Store::open(quiet(dir)).await.unwrap();
    let mut sender = Sender::new("node-a", SAMPLES as usize);
    for (batch, until_ns) in (1..).zip([now_ns() - DAY_NS, now_ns() - DAY_NS, now_ns(), now_ns()]) {
        let (rows, id) = rows_of(&mut sender, batch, until_ns);
        store_batch(&store, rows, Some(id)).await.unwrap();
    }
    store.close().await;
}

/// All files below a folder that end so.
fn files(dir: &Path, end: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if text(&path).ends_with(end) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn data_files(dir: &Path) -> Vec<PathBuf> {
    let mut files = files(dir, ".parquet");
    files.retain(|path| !text(path).contains("_delta_log"));
    files
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_is_killed_again_and_again_goes_on_and_is_no_store_until_it_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let [data, copy] = ["data", "copy"].map(|name| dir.path().join(name));
    two_days(&data).await;
    let all = data_files(&data).len() as i64;
    let arguments = ["copy", text(&data), text(&copy)];
    let mut was_unfinished = false;
    for step in 1..=20 {
        let mut child = command(&arguments, &[])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Not a wait for anything: the kill shall fall at different points.
        std::thread::sleep(Duration::from_millis(step * 8));
        child.kill().unwrap();
        child.wait().unwrap();
        let mark = std::fs::read_to_string(copy.join("copy.json")).unwrap_or_default();
        if mark.contains("unfinished") {
            let started = Server::start_in(&copy, &[], &[]);
            assert!(
                started.is_err_and(|said| said.contains("not finished")),
                "after step {step}"
            );
            if !was_unfinished {
                assert_eq!(run(&["check", text(&copy)]).code, Some(1));
            }
            was_unfinished = true;
        }
    }
    let said = run(&arguments).well();
    assert_eq!(
        said.figure(" files copied") + said.figure(" there already"),
        all,
        "{said:?}"
    );
    run(&["check", text(&copy)]).well();

    // By hand, as it would be after a kill that fell just there.
    let files = data_files(&copy);
    std::fs::remove_file(&files[0]).unwrap();
    let mark = std::fs::read_to_string(copy.join("copy.json")).unwrap();
    std::fs::write(copy.join("copy.json"), mark.replace("whole", "unfinished")).unwrap();
    std::fs::write(files[1].with_file_name("part-nobody-names.zstd.parquet"), "x").unwrap();
    let said = run(&arguments).well();
    assert_eq!(
        (said.figure(" files copied"), said.figure(" there already")),
        (1, all - 1)
    );
    assert_eq!(said.figure(" removed;"), 1);
    assert_eq!(data_files(&copy), files);

    // What is harmed there, as long as before, is seen where it is read.
    let mut content = std::fs::read(&files[0]).unwrap();
    content[10] ^= 1;
    std::fs::write(&files[0], content).unwrap();
    assert_eq!(run(&arguments).well().figure(" files copied"), 0);
    let compared = [&arguments[..], &["--compare"]].concat();
    assert_eq!(run(&compared).well().figure(" files copied"), 1);
    run(&["check", text(&copy)]).well();
    assert_eq!(
        batches_of_one_moment(&copy).await.into_values().collect::<Vec<_>>(),
        [4]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn check_names_each_file_that_is_flipped_cut_or_gone() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    two_days(&data).await;
    let checked = run(&["check", text(&data)]).well();
    assert!(
        checked
            .out
            .contains("have 120 of them, their batches tell of 120; 0 faults"),
        "{checked:?}"
    );
    assert_eq!(
        (checked.figure(" samples;"), checked.figure(" files")),
        (120, data_files(&data).len() as i64)
    );
    let harmed = |path: &Path, content: Option<Vec<u8>>, words: &str| {
        let kept = std::fs::read(path).unwrap();
        match content {
            Some(content) => std::fs::write(path, content).unwrap(),
            None => std::fs::remove_file(path).unwrap(),
        }
        let said = run(&["check", text(&data)]);
        std::fs::write(path, kept).unwrap();
        assert_eq!(said.code, Some(1), "{}: {said:?}", path.display());
        let canonical = data.canonicalize().unwrap().join(path.strip_prefix(&data).unwrap());
        let line = said
            .err
            .lines()
            .find(|line| line.starts_with(&format!("fault: {}: ", canonical.display())));
        assert!(
            line.is_some_and(|line| line.contains(words)),
            "{}, {words:?}: {said:?}",
            path.display()
        );
        said
    };
    for table in Table::ALL {
        let Some(path) = data_files(&data.join(table.name())).pop() else {
            continue;
        };
        let content = std::fs::read(&path).unwrap();
        let mut flipped = content.clone();
        flipped[content.len() / 2] ^= 0x10;
        harmed(&path, Some(flipped), "its content is not what was written");
        let half = content[..content.len() / 2].to_vec();
        harmed(&path, Some(half), &format!("bytes, {} were written", content.len()));
        let said = harmed(&path, None, "it is missing");
        if table == Table::Stacks {
            let lacking = "are in no row of stacks of";
            assert!(
                said.err
                    .contains(&format!("{} of its values of stack_id {lacking}", SAMPLES)),
                "{said:?}"
            );
        }
    }
    let mut entries = files(&data.join("samples/_delta_log"), ".json");
    let last = entries.pop().unwrap();
    let mut flipped = std::fs::read(&last).unwrap();
    let at = flipped.len() / 2;
    flipped[at] ^= 0x04;
    harmed(&last, Some(flipped), "its content is not what was written");
    run(&["check", text(&data)]).well();

    // A whole dictionary that is not there: rows refer to it all the same.
    std::fs::rename(data.join("stacks"), dir.path().join("stacks")).unwrap();
    let said = run(&["check", text(&data)]);
    assert_eq!(said.code, Some(1));
    let lacking = format!("{SAMPLES} of its values of stack_id are in no row of stacks of");
    assert_eq!(said.err.matches(&lacking).count(), 4, "in each of four files: {said:?}");
    assert!(said.err.contains("in row 0"), "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_harmed_in_the_source_is_copied_as_it_is_and_told() {
    let dir = tempfile::tempdir().unwrap();
    let [data, copy] = ["data", "copy"].map(|name| dir.path().join(name));
    two_days(&data).await;
    let files = data_files(&data.join("samples"));
    let mut flipped = std::fs::read(&files[0]).unwrap();
    flipped[20] ^= 1;
    std::fs::write(&files[0], &flipped).unwrap();
    std::fs::remove_file(&files[1]).unwrap();
    let said = run(&["copy", text(&data), text(&copy)]);
    assert_eq!(said.code, Some(1), "{said:?}");
    let names = |file: &Path, words: &str| {
        let name = file.file_name().unwrap().to_str().unwrap();
        said.err
            .lines()
            .any(|line| line.starts_with("fault: ") && line.contains(name) && line.contains(words))
    };
    assert!(
        names(&files[0], "copied as it is") && names(&files[1], "it is missing"),
        "{said:?}"
    );
    assert_eq!(
        std::fs::read(copy.join(files[0].strip_prefix(&data).unwrap())).unwrap(),
        flipped
    );
    // A server starts on it, and leaves both out.
    let store = Store::open(quiet(&copy)).await.unwrap();
    assert_eq!(
        number(&store.snapshot(), "SELECT count(*) FROM samples").await,
        2 * SAMPLES
    );
    store.close().await;
}

/// Names of the backups that are in a place, the oldest first.
fn backups(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir.join("backups")).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn backups_of_a_running_server_share_files_and_each_is_restored_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let [data, kept, old, new] = ["data", "kept", "old", "new"].map(|name| dir.path().join(name));
    let mut server = Server::start(&data, &[]);
    let sending = Sending::to(&server.address);
    let mut moments = Vec::new();
    for round in 1..=2 {
        sending.until(round * 4).await;
        let before = sending.acknowledged();
        let said = run_beside(&["backup", text(&data), text(&kept)], &[]).await.well();
        moments.push((before, said.figure(" samples;"), sending.acknowledged()));
        assert_eq!(said.figure(" there already") > 0, round == 2, "{said:?}");
        run_beside(&["check", text(&kept)], &[]).await.well();
    }
    let after = sending.end().await;
    assert!(server.stop());
    let names = backups(&kept);
    assert_eq!(names.len(), 2);
    // One of them was cut off: it counts for nothing, and the next one takes its place.
    std::fs::create_dir_all(kept.join("backups/20000101T000000.000Z/samples/_delta_log")).unwrap();

    let started = Server::start_in(&kept, &[], &[]);
    assert!(started.is_err_and(|said| said.contains("holds backups")));
    let said = run(&["copy", text(&kept), text(&new)]);
    assert!(said.code == Some(1) && said.err.contains("holds backups"), "{said:?}");
    let said = run(&["restore", text(&kept), text(&new), "--backup", "none"]);
    assert!(said.code == Some(1) && said.err.contains(&names[0]), "{said:?}");
    let said = run(&["restore", text(&data), text(&new)]);
    assert!(
        said.code == Some(1) && said.err.contains("holds no backups"),
        "{said:?}"
    );

    run(&["restore", text(&kept), text(&old), "--backup", &names[0]]).well();
    run(&["restore", text(&kept), text(&new)]).well();
    for (place, (before, samples, later)) in [&old, &new].into_iter().zip(&moments) {
        run(&["check", text(place)]).well();
        let found = batches_of_one_moment(place).await;
        assert_eq!(found.values().sum::<i64>() * SAMPLES, *samples);
        // What was on its way when the command ended is acknowledged a little later.
        let later = later.iter().map(|(instance, number)| (instance.clone(), number + 1));
        lie_between(before, &found, &later.collect());
        lie_between(&found, &found, &after);
    }
    // The server goes on with it: what it has is known, what it lacks is taken.
    let mut restored = Server::start(&old, &[]);
    let body = serde_json::json!({ "query": "SELECT count(*) FROM samples" }).to_string();
    let request = Request::post("/api/v1/sql")
        .header("host", restored.address.as_str())
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body)))
        .unwrap();
    let answer = send(&restored.address, request).await.unwrap();
    assert_eq!(answer.json()["rows"], serde_json::json!([[moments[0].1]]));
    let nodes = get(&restored.address, "/api/v1/nodes").await.json();
    let stored = nodes["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| node["samples_stored"].as_i64().unwrap());
    assert_eq!(stored.sum::<i64>(), moments[0].1);
    assert!(restored.stop());

    let files = data_files(&kept).len();
    let said = run(&["backup", text(&data), text(&kept), "--keep", "1"]).well();
    let left = backups(&kept);
    assert!(left.len() == 1 && left[0] > names[1], "{left:?}");
    let removed = said.figure(" removed;");
    assert_eq!(
        data_files(&kept).len() as i64,
        files as i64 + said.figure(" files copied") - removed
    );
    run(&["check", text(&kept)]).well();
    // Of what was copied somebody may have taken a file away.
    let gone = data_files(&kept).pop().unwrap();
    std::fs::remove_file(&gone).unwrap();
    let said = run(&["check", text(&kept)]);
    assert!(
        said.code == Some(1) && said.err.contains(gone.file_name().unwrap().to_str().unwrap()),
        "{said:?}"
    );
    // The next backup brings it again.
    run(&["backup", text(&data), text(&kept)]).well();
    run(&["check", text(&kept)]).well();
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_written_over_and_places_that_cannot_be_used_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let [data, other, empty] = ["data", "other", "empty"].map(|name| dir.path().join(name));
    two_days(&data).await;
    two_days(&other).await;
    let content = || data_files(&other).len();
    let before = content();
    for (arguments, words) in [
        (["copy", text(&data), text(&other)], "has other data"),
        (["backup", text(&data), text(&other)], "has other data"),
        (["copy", text(&empty), text(&other)], "empty"),
        (["copy", text(&data), text(&data)], "has other data"),
        (["copy", text(&data), "ftp://somewhere/x"], "no such place"),
    ] {
        let said = run(&arguments);
        assert_eq!(said.code, Some(1), "{arguments:?}: {said:?}");
        assert!(said.err.contains(words), "{arguments:?}: {said:?}");
        assert_eq!(said.err.trim().lines().count(), 1, "{said:?}");
    }
    assert!(!empty.exists(), "a source is not made");
    assert_eq!(content(), before);
    let server = Server::start(&other, &[]);
    let said = run(&["copy", text(&data), text(&other)]);
    assert!(
        said.code == Some(1) && said.err.contains("a stakeout-server has it"),
        "{said:?}"
    );
    drop(server);
    // A copy of one store is no place for another's.
    let copy = dir.path().join("copy");
    run(&["copy", text(&data), text(&copy)]).well();
    let said = run(&["copy", text(&other), text(&copy)]);
    assert!(said.code == Some(1) && said.err.contains("another store"), "{said:?}");
    let newer = r#"{"version":9,"product":"9.0.0"}"#;
    std::fs::write(data.join("format.json"), newer).unwrap();
    let said = run(&["copy", text(&data), text(&empty)]);
    assert!(said.code == Some(1) && said.err.contains("format 9"), "{said:?}");
}
