//! What was ingested equals what is queried, in every format, on the real application and store.

mod accounting;
mod compression;
mod difference;
mod exports;
mod facets;
mod foreign;
mod grouped;
mod limits;
mod moments;
mod notes;
mod openapi;
mod refusals;
mod rolled;
mod senders;
mod spread;
mod sql;
mod tags;
mod units;
mod views;
mod waits;
mod wakers;
mod windows;
mod words;

use crate::wire::{Batch, PERIOD_NS, Sample, request};
use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use serde_json::{Value, json};
use stakeout_server::api::{AppState, app};
use stakeout_server::store::{Store, StoreConfig, StoreError};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tower::ServiceExt;

const S: i64 = 1_000_000_000;
const STACKS: [&str; 8] = [
    "main;hot;work",
    "main;hot;work;k:sys_read;k:copy",
    "main;cold",
    "main;walk;walk;walk;stat",
    "main;walk;stat",
    "main;?",
    "k:kthread;k:flush",
    "main;push one 5",
];

struct Server {
    app: Router,
    store: Arc<Store>,
    _dir: tempfile::TempDir,
}

impl Server {
    async fn start() -> Server {
        Self::start_with(|config| config).await
    }

    async fn start_with(change: impl FnOnce(StoreConfig) -> StoreConfig) -> Server {
        let dir = tempfile::tempdir().unwrap();
        // Rows stay pending until a test commits them.
        let config = change(StoreConfig {
            commit_interval: Duration::from_secs(3_600),
            ..StoreConfig::new(dir.path())
        });
        Server::open(dir, config).await
    }

    /// Waits for whoever still has the store open, such as a round of maintenance.
    async fn open(dir: tempfile::TempDir, config: StoreConfig) -> Server {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
        let store = loop {
            match Store::open(config.clone()).await {
                Err(StoreError::Locked { .. }) if tokio::time::Instant::now() < deadline => {
                    tokio::task::yield_now().await;
                }
                opened => break opened.unwrap(),
            }
        };
        Server {
            app: app(AppState::new(store.clone())),
            store,
            _dir: dir,
        }
    }

    /// Where its data is.
    fn store_dir(&self) -> &Path {
        self._dir.path()
    }

    /// The same data with another server, after this one has closed it.
    async fn reopened(self, config: impl FnOnce(&Path) -> StoreConfig) -> Server {
        self.store.close().await;
        let Server { app, store, _dir: dir } = self;
        drop((app, store));
        let config = config(dir.path());
        Server::open(dir, config).await
    }

    async fn send(&self, request: Request<Body>) -> (StatusCode, BTreeMap<String, String>, Vec<u8>) {
        let response = self.app.clone().oneshot(request).await.unwrap();
        let status = response.status();
        let headers = response
            .headers()
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap_or_default().to_owned()))
            .collect();
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, headers, body.to_vec())
    }

    async fn get(&self, path: &str, parameters: &[(&str, &str)]) -> (StatusCode, BTreeMap<String, String>, Vec<u8>) {
        let query = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(parameters)
            .finish();
        self.send(
            Request::get(format!("/api/v1/{path}?{query}"))
                .body(Body::empty())
                .unwrap(),
        )
        .await
    }

    async fn bytes(&self, path: &str, parameters: &[(&str, &str)]) -> Vec<u8> {
        let (status, _, body) = self.get(path, parameters).await;
        assert_eq!(
            status,
            StatusCode::OK,
            "{path} {parameters:?}: {}",
            String::from_utf8_lossy(&body)
        );
        body
    }

    async fn json(&self, path: &str, parameters: &[(&str, &str)]) -> Value {
        serde_json::from_slice(&self.bytes(path, parameters).await).unwrap()
    }

    async fn text(&self, path: &str, parameters: &[(&str, &str)]) -> String {
        String::from_utf8(self.bytes(path, parameters).await).unwrap()
    }

    /// The error's code and everything that it says.
    async fn error(&self, path: &str, parameters: &[(&str, &str)]) -> (u16, String, String) {
        let (status, _, body) = self.get(path, parameters).await;
        error_of(status, &body)
    }

    async fn sql(&self, query: &str) -> (StatusCode, Vec<u8>) {
        let body = json!({"query": query}).to_string();
        let request = Request::post("/api/v1/sql")
            .header("content-type", "application/json")
            .body(Body::from(body));
        let (status, _, body) = self.send(request.unwrap()).await;
        (status, body)
    }

    /// Hands a batch in; it is acknowledged when a test commits.
    async fn ingest(&self, batch: &Batch<'_>) {
        self.ingest_bytes(request(batch), batch.samples.len()).await;
    }

    /// The same of a request that becomes so many rows or more.
    async fn ingest_bytes(&self, request: Vec<u8>, least: usize) {
        let protobuf = "application/x-protobuf";
        self.ingest_as("/v1development/profiles", protobuf, request, least)
            .await;
    }

    /// The same of what is sent to this path, as content of this type.
    async fn ingest_as(&self, path: &str, content_type: &str, body: Vec<u8>, least: usize) {
        let rows = self.pending().await;
        let request = Request::post(path)
            .header("content-type", content_type)
            .body(Body::from(body))
            .unwrap();
        let app = self.app.clone();
        tokio::spawn(async move {
            app.oneshot(request)
                .await
                .map(|response| assert_eq!(response.status(), StatusCode::OK))
        });
        let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
        while self.pending().await < rows + least {
            assert!(tokio::time::Instant::now() < deadline, "the batch is not visible");
            // Meanwhile the CPU is for who makes it visible.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    async fn pending(&self) -> usize {
        use stakeout_server::store::Table;
        self.store
            .snapshot()
            .pending(Table::Samples)
            .iter()
            .map(|rows| rows.num_rows())
            .sum()
    }
}

fn error_of(status: StatusCode, body: &[u8]) -> (u16, String, String) {
    let answer: Value = serde_json::from_slice(body).unwrap();
    let error = &answer["error"];
    let text = |name: &str| error[name].as_str().unwrap().to_owned();
    assert!(!text("hint").is_empty(), "{answer}");
    (
        status.as_u16(),
        text("code"),
        format!("{} | {}", text("message"), text("hint")),
    )
}

#[derive(Debug)]
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// The start of a minute, some minutes ago, in nanoseconds.
fn recent() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64;
    (now / 60 - 30) * 60 * S
}

/// The same, or a little before it, so that so many seconds from there on are of one day.
fn recent_of_one_day(seconds: i64) -> i64 {
    let (from, day) = (recent(), 86_400 * S);
    match from / day == (from + seconds * S) / day {
        true => from,
        false => from - (seconds / 60 + 1) * 60 * S,
    }
}

/// Samples in `[from, from + seconds)`.
fn samples(random: &mut Random, from_ns: i64, seconds: i64, count: usize) -> Vec<Sample> {
    (0..count)
        .map(|_| {
            let service = ["kubelet", "nginx", "db"][random.below(3) as usize];
            let thread = random.below(3) as i64;
            let tgid = 1_000 + service.len() as i64;
            Sample {
                ts_ns: from_ns + random.below((seconds * S) as u64) as i64,
                service,
                tgid,
                tid: tgid * 10 + thread,
                thread: ["main", "worker", "gc"][thread as usize],
                cpu: random.below(2) as i64,
                stack: STACKS[random.below(8) as usize],
            }
        })
        .collect()
}

/// As it stands in collapsed text.
fn shown(stack: &str) -> String {
    stack.replace("k:", "").replace("one 5", "one_5").replace('?', "[app]")
}

fn collapsed_truth<'a>(samples: impl Iterator<Item = &'a Sample>) -> BTreeMap<String, u64> {
    let mut truth = BTreeMap::new();
    for sample in samples {
        *truth.entry(shown(sample.stack)).or_insert(0) += 1;
    }
    truth
}

fn collapsed_answer(text: &str) -> BTreeMap<String, u64> {
    text.lines()
        .map(|line| {
            let (stack, count) = line.rsplit_once(' ').unwrap();
            (stack.to_owned(), count.parse().unwrap())
        })
        .collect()
}

fn ms(ns: i64) -> String {
    (ns / 1_000_000).to_string()
}

/// Two nodes, two batches each, one of every two still pending; returns every sample with its node.
async fn filled(from: i64) -> (Server, Vec<(&'static str, Sample)>) {
    filled_with(from, |config| config).await
}

async fn filled_with(
    from: i64,
    change: impl FnOnce(StoreConfig) -> StoreConfig,
) -> (Server, Vec<(&'static str, Sample)>) {
    let server = Server::start_with(change).await;
    let mut random = Random(0x5eed);
    let mut all = Vec::new();
    for number in 1..=2 {
        for (node, instance) in [
            ("a", "00000000-0000-4000-8000-00000000000a"),
            ("b", "00000000-0000-4000-8000-00000000000b"),
        ] {
            let start = from + (number - 1) * 60 * S;
            let taken = samples(&mut random, start, 60, 400);
            let batch = Batch {
                node,
                instance,
                number,
                from_ns: start,
                until_ns: start + 60 * S,
                period_ns: PERIOD_NS,
                missed_ticks: 0,
                samples: taken.clone(),
            };
            server.ingest(&batch).await;
            all.extend(taken.into_iter().map(|sample| (node, sample)));
        }
        if number == 1 {
            server.store.flush().await.unwrap();
        }
    }
    assert!(server.pending().await > 0, "some rows are committed, some are pending");
    (server, all)
}

/// Every node as its path with (total, self), from the columns.
fn paths(answer: &Value, total: &str, own: &str) -> BTreeMap<String, (u64, u64)> {
    let nodes = &answer["nodes"];
    let column = |name: &str| nodes[name].as_array().unwrap_or_else(|| panic!("column {name}"));
    let mut paths: Vec<String> = Vec::new();
    let mut result = BTreeMap::new();
    for node in 0..column("parent").len() {
        let name = answer["strings"][column("name")[node].as_u64().unwrap() as usize]
            .as_str()
            .unwrap();
        let path = match column("parent")[node].as_i64().unwrap() {
            -1 => String::new(),
            parent => format!("{};{name}", paths[parent as usize]),
        };
        result.insert(
            path.clone(),
            (
                column(total)[node].as_u64().unwrap(),
                column(own)[node].as_u64().unwrap(),
            ),
        );
        paths.push(path);
    }
    result
}

fn frames(stack: &str) -> Vec<String> {
    stack
        .split(';')
        .map(|f| f.trim_start_matches("k:").replace('?', "[app]"))
        .collect()
}
