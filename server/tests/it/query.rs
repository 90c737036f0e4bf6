//! What was ingested equals what is queried, in every format, on the real application and store.

use crate::wire::{Batch, PERIOD_NS, Sample, request};
use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use serde_json::{Value, json};
use stakeout_server::api::{AppState, app};
use stakeout_server::store::{Store, StoreConfig};
use std::collections::BTreeMap;
use std::io::Write;
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
        let dir = tempfile::tempdir().unwrap();
        // Rows stay pending until a test commits them.
        let config = StoreConfig {
            commit_interval: Duration::from_secs(3_600),
            ..StoreConfig::new(dir.path())
        };
        let store = Store::open(config).await.unwrap();
        Server {
            app: app(AppState::new(store.clone())),
            store,
            _dir: dir,
        }
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
        let rows = self.pending().await;
        let request = Request::post("/v1development/profiles")
            .header("content-type", "application/x-protobuf")
            .body(Body::from(request(batch)))
            .unwrap();
        let app = self.app.clone();
        tokio::spawn(async move {
            app.oneshot(request)
                .await
                .map(|response| assert_eq!(response.status(), StatusCode::OK))
        });
        let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
        while self.pending().await < rows + batch.samples.len() {
            assert!(tokio::time::Instant::now() < deadline, "the batch is not visible");
            tokio::task::yield_now().await;
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
    stack
        .replace("k:", "")
        .replace("one 5", "one_5")
        .replace('?', "app+0x1f20")
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
    let server = Server::start().await;
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

type Accept = fn(&str, &Sample) -> bool;

#[tokio::test(flavor = "multi_thread")]
async fn what_was_ingested_is_what_is_queried() {
    let from = recent();
    let (server, all) = filled(from).await;
    let cases: [(&str, Accept); 12] = [
        ("{}", |_, _| true),
        ("{service=\"kubelet\"}", |_, s| s.service == "kubelet"),
        ("{service!=\"kubelet\",node=\"a\"}", |node, s| {
            s.service != "kubelet" && node == "a"
        }),
        ("{service=~\"k.*|db\"}", |_, s| s.service != "nginx"),
        ("{node!~\"a\"}", |node, _| node != "a"),
        ("{thread=\"gc\"}", |_, s| s.thread == "gc"),
        ("{tid=\"10070\",cpu=\"1\"}", |_, s| s.tid == 10_070 && s.cpu == 1),
        ("{tgid=~\"100[25]\"}", |_, s| s.tgid == 1_002 || s.tgid == 1_005),
        ("{mode=\"kernel\"}", |_, s| {
            s.stack.rsplit(';').next().unwrap().starts_with("k:")
        }),
        ("{mode=\"user\",thread!=\"main\"}", |_, s| {
            !s.stack.rsplit(';').next().unwrap().starts_with("k:") && s.thread != "main"
        }),
        ("{pod=\"\"}", |_, _| true),
        ("{service=\"nothing\"}", |_, _| false),
    ];
    for committed in [false, true] {
        if committed {
            server.store.flush().await.unwrap();
        }
        for (query, accept) in cases {
            for (since, until) in [(0, 120), (10, 75), (59, 61)] {
                let (begin, end) = (from + since * S, from + until * S);
                let truth = collapsed_truth(
                    all.iter()
                        .filter(|(n, s)| accept(n, s) && s.ts_ns >= begin && s.ts_ns < end)
                        .map(|(_, s)| s),
                );
                let window = [
                    ("query", query),
                    ("from", &ms(begin)),
                    ("until", &ms(end)),
                    ("format", "collapsed"),
                ];
                let answer = collapsed_answer(&server.text("flamegraph", &window).await);
                assert_eq!(answer, truth, "{query} {since} to {until}, committed: {committed}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_across_midnight_finds_both_days() {
    let server = Server::start().await;
    let midnight = recent() / (86_400 * S) * 86_400 * S;
    let mut random = Random(0x5eed);
    let taken = samples(&mut random, midnight - 30 * S, 60, 300);
    let instance = "00000000-0000-4000-8000-00000000000a";
    let (from_ns, until_ns) = (midnight - 30 * S, midnight + 30 * S);
    server
        .ingest(&Batch {
            node: "a",
            instance,
            number: 1,
            from_ns,
            until_ns,
            samples: taken.clone(),
        })
        .await;
    server.store.flush().await.unwrap();
    for (begin, end) in [(from_ns, until_ns), (from_ns, midnight), (midnight, until_ns)] {
        let window = [
            ("from", &*ms(begin)),
            ("until", &*ms(end)),
            ("query", "{service=~\".+\",tgid=~\".+\"}"),
        ];
        let truth = collapsed_truth(taken.iter().filter(|s| s.ts_ns >= begin && s.ts_ns < end));
        let answer = server
            .text("flamegraph", &[&window[..], &[("format", "collapsed")]].concat())
            .await;
        assert_eq!(collapsed_answer(&answer), truth);
        let graph = server.json("flamegraph", &window).await;
        let seconds = (end - begin) as f64 / S as f64;
        assert_eq!(
            graph["exposure"]["observed_seconds"], seconds,
            "the batch of the day before covers this one too"
        );
    }
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

/// The same from the samples themselves.
fn path_truth(samples: &[&Sample]) -> BTreeMap<String, (u64, u64)> {
    let mut truth: BTreeMap<String, (u64, u64)> = BTreeMap::from([(String::new(), (0, 0))]);
    for sample in samples {
        let mut path = String::new();
        truth.get_mut("").unwrap().0 += 1;
        for frame in frames(sample.stack) {
            path = format!("{path};{frame}");
            truth.entry(path.clone()).or_default().0 += 1;
        }
        truth.entry(path).or_default().1 += 1;
    }
    truth
}

fn frames(stack: &str) -> Vec<String> {
    stack
        .split(';')
        .map(|f| f.trim_start_matches("k:").replace('?', "app+0x1f20"))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tree_is_exact_and_so_are_its_views() {
    let from = recent();
    let (server, all) = filled(from).await;
    let (begin, end) = (ms(from), ms(from + 120 * S));
    let window = [("from", begin.as_str()), ("until", end.as_str())];
    let with = |more: &[(&'static str, &'static str)]| [&window[..], more].concat();
    let samples: Vec<&Sample> = all.iter().map(|(_, s)| s).collect();
    let answer = server
        .json("flamegraph", &with(&[("match", "^(walk|sys_read)$")]))
        .await;
    assert_eq!(paths(&answer, "total", "self"), path_truth(&samples));
    assert_eq!(answer["samples"], 1_600);
    assert_eq!(answer["period_ns"], PERIOD_NS);
    assert_eq!(answer["cpu_seconds"], 80.0);
    assert_eq!(answer["cores"].as_f64().unwrap(), 80.0 / 120.0);
    assert_eq!(answer["exposure"]["nodes"], 2);
    assert_eq!(answer["exposure"]["observed_cpu_seconds"], 480.0);
    assert_eq!(answer["exposure"]["gaps"], json!([]));
    assert_eq!(
        answer["quality"]["lost"]["ring_full"], 6,
        "three of each agent, cumulative over its batches"
    );
    let count = |test: &dyn Fn(&str) -> bool| samples.iter().filter(|s| test(s.stack)).count() as u64;
    assert_eq!(answer["quality"]["unnamed_samples"], count(&|s| s.contains('?')));
    let matched = count(&|s| s.contains("walk") || s.contains("sys_read"));
    assert_eq!(
        answer["match"]["samples"], matched,
        "a sample with three walks counts once"
    );

    let rooted = server
        .json(
            "flamegraph",
            &with(&[("root", "^walk$"), ("transform", "merge_recursion")]),
        )
        .await;
    let walks = (count(&|s| s.contains("walk;walk")), count(&|s| s == "main;walk;stat"));
    let expected = BTreeMap::from([
        (String::new(), (walks.0 + walks.1, 0)),
        (";walk".to_owned(), (walks.0 + walks.1, 0)),
        (";walk;stat".to_owned(), (walks.0 + walks.1, walks.0 + walks.1)),
    ]);
    assert_eq!(paths(&rooted, "total", "self"), expected);

    let trimmed = server.json("flamegraph", &with(&[("min_share", "0.2")])).await;
    let total: u64 = trimmed["nodes"]["self"]
        .as_array()
        .unwrap()
        .iter()
        .map(|v| v.as_u64().unwrap())
        .sum();
    assert_eq!(total, 1_600, "trimming loses no sample");
    assert!(trimmed["nodes"]["self"].as_array().unwrap().len() < answer["nodes"]["self"].as_array().unwrap().len());
    assert!(trimmed["strings"].to_string().contains("below the threshold"));
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_charts_and_labels_add_up() {
    let from = recent();
    let (server, all) = filled(from).await;
    let (begin, end) = (ms(from), ms(from + 180 * S));
    let window = [("from", begin.as_str()), ("until", end.as_str())];
    let with = |more: &[(&'static str, &'static str)]| [&window[..], more].concat();

    for (by, value_of) in [
        ("service", (|_, s| s.service.to_owned()) as fn(&str, &Sample) -> String),
        ("node", |node, _| node.to_owned()),
        ("thread", |_, s| s.thread.to_owned()),
        ("tid", |_, s| s.tid.to_string()),
        ("tgid", |_, s| s.tgid.to_string()),
        ("cpu", |_, s| s.cpu.to_string()),
        ("mode", |_, s| {
            if s.stack.rsplit(';').next().unwrap().starts_with("k:") {
                "kernel"
            } else {
                "user"
            }
            .to_owned()
        }),
    ] {
        let mut truth: BTreeMap<String, u64> = BTreeMap::new();
        for (node, sample) in &all {
            *truth.entry(value_of(node, sample)).or_default() += 1;
        }
        let series = server.json("series", &with(&[("by", by), ("step", "60s")])).await;
        let mut answer = BTreeMap::new();
        for line in series["series"].as_array().unwrap() {
            answer.insert(
                line["value"].as_str().unwrap().to_owned(),
                line["samples"].as_u64().unwrap(),
            );
            // Cores of each step times its observed seconds is the line's CPU time.
            let cores = line["cores"].as_array().unwrap();
            let cpu_s: f64 = cores.iter().filter_map(Value::as_f64).map(|cores| cores * 60.0).sum();
            assert!((cpu_s - line["cpu_seconds"].as_f64().unwrap()).abs() < 1e-6);
            assert!(cores[2].is_null(), "no agent covered the third minute");
        }
        assert_eq!(answer, truth, "series by {by}");
        assert_eq!(series["covered"], json!([1.0, 1.0, 0.0]));
        assert_eq!(series["capacity"], json!([4.0, 4.0, null]));
        let top = server.json("top", &with(&[("by", by)])).await;
        let rows = top["rows"].as_array().unwrap().iter();
        let answer: BTreeMap<_, _> = rows
            .map(|row| (row["name"].as_str().unwrap().to_owned(), row["total"].as_u64().unwrap()))
            .collect();
        assert_eq!(answer, truth, "top by {by}");
        let values = server.json(&format!("labels/{by}/values"), &window).await;
        assert_eq!(values["values"].as_array().unwrap().len(), truth.len(), "{values}");
    }
    let cut = server.json("series", &with(&[("by", "tid"), ("limit", "2")])).await;
    let sum: u64 = cut["series"]
        .as_array()
        .unwrap()
        .iter()
        .chain([&cut["other"]])
        .map(|l| l["samples"].as_u64().unwrap())
        .sum();
    assert_eq!(
        (sum, cut["other"]["series"].as_u64().unwrap()),
        (1_600, 7),
        "three services with three threads each"
    );

    let top = server.json("top", &with(&[("by", "function")])).await;
    let stat = top["rows"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["name"] == "walk")
        .unwrap();
    let walks = all.iter().filter(|(_, s)| s.stack.contains("walk")).count() as u64;
    assert_eq!(
        (stat["total"].as_u64().unwrap(), stat["self"].as_u64().unwrap()),
        (walks, 0),
        "recursion counts once"
    );
    let csv = server
        .text("top", &with(&[("by", "function"), ("format", "csv")]))
        .await;
    assert_eq!(csv.lines().count(), top["rows"].as_array().unwrap().len() + 1);
    assert!(csv.starts_with("name,module,kind,self,total"));
    assert_eq!(server.json("labels", &[]).await["labels"].as_array().unwrap().len(), 15);
}

/// Before: hot 600, cold 600, old 300. After: hot 600, cold 1,200, fresh 300 in the same time.
async fn jump(from: i64) -> Server {
    let server = Server::start().await;
    let sides = [
        (1, [("main;hot;work", 600), ("main;cold", 600), ("main;old", 300)]),
        (2, [("main;hot;work", 600), ("main;cold", 1_200), ("main;fresh", 300)]),
    ];
    for (number, stacks) in sides {
        let start = from + (number - 1) * 60 * S;
        let mut taken = Vec::new();
        for (stack, count) in stacks {
            taken.extend((0..count).map(|i| Sample {
                ts_ns: start + i * 60 * S / count,
                service: if stack == "main;cold" { "db" } else { "web" },
                tgid: 1,
                tid: 1,
                thread: "main",
                cpu: 0,
                stack,
            }));
        }
        let instance = "00000000-0000-4000-8000-00000000000a";
        let batch = Batch {
            node: "a",
            instance,
            number,
            from_ns: start,
            until_ns: start + 60 * S,
            samples: taken,
        };
        server.ingest(&batch).await;
    }
    server.store.flush().await.unwrap();
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn a_difference_has_both_sides_counts_and_marks_what_changed() {
    let from = recent();
    let server = jump(from).await;
    let times = [ms(from), ms(from + 60 * S), ms(from + 120 * S)];
    let parameters = [
        ("base_from", times[0].as_str()),
        ("base_until", &times[1]),
        ("from", &times[1]),
        ("until", &times[2]),
    ];
    let with = |more: &[(&'static str, &'static str)]| [&parameters[..], more].concat();
    let answer = server.json("diff", &parameters).await;
    let base = paths(&answer, "base_total", "base_self");
    let comparison = paths(&answer, "total", "self");
    assert_eq!((base[""].0, comparison[""].0), (1_500, 2_100));
    for (path, before, after, state) in [
        (";main", 1_500, 2_100, "grew"),
        (";main;hot;work", 600, 600, "same"),
        (";main;cold", 600, 1_200, "grew"),
        (";main;old", 300, 0, "gone"),
        (";main;fresh", 0, 300, "new"),
    ] {
        assert_eq!((base[path].0, comparison[path].0), (before, after), "{path}");
        let node = comparison_node(&answer, path);
        let column = |name: &str| answer["nodes"][name][node].as_f64().unwrap();
        let states = answer["states"].as_array().unwrap();
        assert_eq!(states[column("state") as usize], state, "{path}");
        let cores = |count: u64| count as f64 * 0.05 / 60.0;
        assert!((column("base_norm") - cores(before)).abs() < 1e-9 && (column("norm") - cores(after)).abs() < 1e-9);
        assert!((column("delta") - (column("norm") - column("base_norm"))).abs() < 1e-9);
        assert!(column("low") <= column("delta") && column("delta") <= column("high"));
        assert_eq!(column("strength") > 0.0, state != "same");
    }
    assert_eq!(
        (answer["normalize"].as_str(), answer["unit"].as_str()),
        (Some("rate"), Some("cores"))
    );

    let folded = server.text("diff", &with(&[("format", "collapsed")])).await;
    let mut lines: Vec<&str> = folded.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "main;cold 600 1200",
            "main;fresh 0 300",
            "main;hot;work 600 600",
            "main;old 300 0"
        ]
    );
    let mut drawn = Vec::new();
    let mut options = inferno::flamegraph::Options::default();
    inferno::flamegraph::from_lines(&mut options, folded.lines(), &mut drawn).unwrap();
    assert!(
        String::from_utf8(drawn).unwrap().contains("fresh"),
        "inferno reads the differential form"
    );

    let svg = server.text("diff", &with(&[("format", "svg")])).await;
    assert!(svg.contains("cold (app) | grew | before 600 samples, 0.5000 cores | after 1200 samples, 1.0000 cores"));
    assert!(svg.contains("old (app) | gone | before 300 samples"));

    let top = server.json("top", &with(&[("by", "function")])).await;
    for (name, state) in [("cold", "grew"), ("work", "same"), ("old", "gone"), ("fresh", "new")] {
        let row = top["rows"]
            .as_array()
            .unwrap()
            .iter()
            .find(|row| row["name"] == name)
            .unwrap();
        assert_eq!(row["state"], state, "{name}");
    }
    let services = server.json("top", &with(&[("by", "service")])).await;
    let state = |name: &str| {
        services["rows"]
            .as_array()
            .unwrap()
            .iter()
            .find(|r| r["name"] == name)
            .unwrap()["state"]
            .clone()
    };
    assert_eq!((state("db"), state("web")), (json!("grew"), json!("same")));

    let selectors = [
        ("query", "{service=\"db\"}"),
        ("base_query", "{service=\"web\"}"),
        ("from", &times[0]),
        ("until", &times[2]),
    ];
    assert_eq!(
        server.json("diff", &selectors).await["normalize"],
        "share",
        "two selectors are compared by shares"
    );
    let itself = [
        ("from", times[0].as_str()),
        ("until", &times[1]),
        ("base_from", &times[0]),
        ("base_until", &times[1]),
    ];
    for normalize in ["rate", "share", "absolute"] {
        let answer = server
            .json("diff", &[&itself[..], &[("normalize", normalize)]].concat())
            .await;
        assert_eq!(answer["significant"], 0, "nothing differs from itself ({normalize})");
    }
}

fn comparison_node(answer: &Value, wanted: &str) -> usize {
    let nodes = &answer["nodes"];
    let mut paths: Vec<String> = Vec::new();
    for node in 0..nodes["parent"].as_array().unwrap().len() {
        let name = answer["strings"][nodes["name"][node].as_u64().unwrap() as usize]
            .as_str()
            .unwrap();
        paths.push(match nodes["parent"][node].as_i64().unwrap() {
            -1 => String::new(),
            parent => format!("{};{name}", paths[parent as usize]),
        });
    }
    paths
        .iter()
        .position(|path| path == wanted)
        .unwrap_or_else(|| panic!("{wanted} is not in {paths:?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn exports_are_read_by_the_tools_that_they_are_for() {
    let from = recent();
    let (server, all) = filled(from).await;
    let (begin, end) = (ms(from), ms(from + 120 * S));
    let window = |format| [("from", begin.as_str()), ("until", end.as_str()), ("format", format)];

    let folded = server.text("flamegraph", &window("collapsed")).await;
    let mut drawn = Vec::new();
    inferno::flamegraph::from_lines(&mut Default::default(), folded.lines(), &mut drawn).unwrap();
    assert!(String::from_utf8(drawn).unwrap().contains("(1,600 samples, 100%)"));

    let (_, headers, svg) = server.get("flamegraph", &window("svg")).await;
    assert_eq!(headers["content-type"], "image/svg+xml");
    assert!(headers["content-disposition"].starts_with("attachment; filename=\"stakeout-flamegraph-cpu-2"));
    assert!(String::from_utf8(svg).unwrap().contains("all (1,600 samples, 100%)"));

    let scope: Value = server.json("flamegraph", &window("speedscope")).await;
    let profile = &scope["profiles"][0];
    let names = scope["shared"]["frames"].as_array().unwrap();
    let mut counted: BTreeMap<String, u64> = BTreeMap::new();
    let weights = profile["weights"].as_array().unwrap();
    for (sample, weight) in profile["samples"].as_array().unwrap().iter().zip(weights) {
        let path: Vec<&str> = sample
            .as_array()
            .unwrap()
            .iter()
            .map(|f| names[f.as_u64().unwrap() as usize]["name"].as_str().unwrap())
            .collect();
        counted.insert(
            path.join(";"),
            (weight.as_f64().unwrap() / PERIOD_NS as f64).round() as u64,
        );
    }
    let truth: BTreeMap<String, u64> = all.iter().fold(BTreeMap::new(), |mut truth, (_, sample)| {
        *truth.entry(frames(sample.stack).join(";")).or_default() += 1;
        truth
    });
    assert_eq!(counted, truth);
    assert_eq!(profile["endValue"].as_f64().unwrap(), 1_600.0 * PERIOD_NS as f64);

    let pprof = server.bytes("flamegraph", &window("pprof")).await;
    read_by_pprof(&pprof, &all);
}

/// `go tool pprof -top` is the judge where there is Go.
fn read_by_pprof(profile: &[u8], all: &[(&str, Sample)]) {
    let go = ["go", "/usr/local/go/bin/go"]
        .into_iter()
        .find(|go| Command::new(go).arg("version").output().is_ok());
    let Some(go) = go else {
        eprintln!("no go: `go tool pprof` has not read the export");
        return;
    };
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(profile).unwrap();
    let output = Command::new(go)
        .args(["tool", "pprof", "-top", "-sample_index=samples"])
        .arg(file.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let stat = all.iter().filter(|(_, s)| s.stack.ends_with("stat")).count();
    let line = text
        .lines()
        .find(|line| line.split_whitespace().last() == Some("stat"))
        .unwrap_or_else(|| panic!("{text}"));
    assert_eq!(
        line.split_whitespace().next(),
        Some(stat.to_string().as_str()),
        "{text}"
    );
    assert!(text.contains("of 1600 total"), "{text}");
}

/// Path, parameters, the error's code, and what its text has to say.
type Bad = (
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static str,
    &'static str,
);

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_is_explained() {
    let server = Server::start().await;
    let cases: [Bad; 22] = [
        (
            "flamegraph",
            &[("query", "{service=kubelet}")],
            "bad_query",
            "position 10: expected a value in quotes",
        ),
        (
            "flamegraph",
            &[("query", "{servcie=\"a\"}")],
            "bad_query",
            "labels are node, service",
        ),
        (
            "flamegraph",
            &[("query", "{node=~\"((a{100}){100}){100}\"}")],
            "bad_query",
            "regex too large",
        ),
        (
            "flamegraph",
            &[("query", "{node=~\"(\"}")],
            "bad_query",
            "unclosed group",
        ),
        (
            "flamegraph",
            &[("from", "now"), ("until", "now-1h")],
            "bad_time",
            "is after `until`",
        ),
        ("flamegraph", &[("from", "yesterday")], "bad_time", "`from` is no time"),
        (
            "flamegraph",
            &[("form", "svg")],
            "bad_parameter",
            "unknown parameter `form`",
        ),
        (
            "flamegraph",
            &[("format", "png")],
            "bad_parameter",
            "one of json, svg, collapsed, pprof, speedscope",
        ),
        (
            "flamegraph",
            &[("match", "(")],
            "bad_query",
            "the regular expression of `match`",
        ),
        (
            "flamegraph",
            &[("min_share", "2")],
            "bad_parameter",
            "a share from 0 to below 1",
        ),
        (
            "flamegraph",
            &[("min_share", "NaN")],
            "bad_parameter",
            "a share from 0 to below 1",
        ),
        ("flamegraph", &[("transform", "x")], "bad_parameter", "merge_recursion"),
        ("flamegraph", &[("type", "a;b")], "bad_parameter", "`type`"),
        (
            "flamegraph",
            &[("from", "now-1h"), ("from", "now-2h")],
            "bad_parameter",
            "repeated parameter `from`",
        ),
        ("series", &[("step", "1ms")], "bad_parameter", "at most 5000"),
        ("series", &[("step", "abc")], "bad_parameter", "`step` is no duration"),
        ("series", &[("by", "colour")], "bad_parameter", "one of node, service"),
        ("series", &[("limit", "0")], "bad_parameter", "a number from 1 to 10000"),
        ("top", &[("by", "colour")], "bad_parameter", "function, or one of"),
        ("diff", &[], "bad_parameter", "nothing to compare with"),
        (
            "diff",
            &[("base_from", "now"), ("base_until", "now-1h")],
            "bad_time",
            "`base_from`",
        ),
        (
            "diff",
            &[("base_from", "now-2h"), ("normalize", "x")],
            "bad_parameter",
            "rate, share, absolute",
        ),
    ];
    for (path, parameters, code, text) in cases {
        let (status, answer, message) = server.error(path, parameters).await;
        assert_eq!(
            (status, answer.as_str()),
            (400, code),
            "{path} {parameters:?}: {message}"
        );
        assert!(message.contains(text), "{path} {parameters:?}: {message}");
    }
    assert_eq!(server.error("labels/colour/values", &[]).await.0, 404);

    // A window without data is an answer, not an error.
    let empty = server.json("flamegraph", &[("match", "x")]).await;
    assert_eq!(
        (&empty["samples"], &empty["nodes"]["total"], &empty["match"]["share"]),
        (&json!(0), &json!([0]), &json!(0.0))
    );
    for format in ["svg", "collapsed", "pprof", "speedscope"] {
        server.bytes("flamegraph", &[("format", format)]).await;
    }
    for format in ["json", "svg", "collapsed"] {
        server
            .bytes(
                "diff",
                &[("base_from", "now-3h"), ("base_until", "now-2h"), ("format", format)],
            )
            .await;
    }
    server.json("series", &[]).await;
    server.json("top", &[]).await;
    server.json("top", &[("by", "pod"), ("base_from", "now-3h")]).await;
    server.json("labels/pod/values", &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sql_reads_and_never_writes() {
    let (server, all) = filled(recent()).await;
    let (status, body) = server
        .sql("SELECT service, count(*) AS n, sum(value) FROM samples GROUP BY service ORDER BY service")
        .await;
    assert_eq!(status, StatusCode::OK, "{}", String::from_utf8_lossy(&body));
    let answer: Value = serde_json::from_slice(&body).unwrap();
    let of = |service: &str| all.iter().filter(|(_, s)| s.service == service).count() as i64;
    let row = |service: &str| json!([service, of(service), of(service) * PERIOD_NS]);
    assert_eq!(answer["rows"], json!([row("db"), row("kubelet"), row("nginx")]));
    assert_eq!(answer["columns"][0], json!({"name": "service", "type": "string"}));
    assert_eq!(answer["complete"], true);

    let (_, body) = server.sql("SELECT stack_id, frames FROM stacks LIMIT 1").await;
    let answer: Value = serde_json::from_slice(&body).unwrap();
    assert!(
        answer["rows"][0][0].is_string() && answer["rows"][0][1].is_array(),
        "ids are exact: {answer}"
    );
    let (_, body) = server.sql("SELECT a.ts_ns FROM samples a, samples b").await;
    let answer: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(
        (answer["rows"].as_array().unwrap().len(), &answer["complete"]),
        (10_000, &json!(false))
    );
    let (status, _) = server.sql("EXPLAIN SELECT * FROM samples").await;
    assert_eq!(status, StatusCode::OK);

    for statement in [
        "DROP TABLE samples",
        "INSERT INTO samples SELECT * FROM samples",
        "COPY samples TO '/tmp/out.parquet'",
        "CREATE TABLE x AS SELECT 1",
        "CREATE EXTERNAL TABLE x STORED AS PARQUET LOCATION '/tmp'",
        "SET datafusion.execution.batch_size = 1",
        "EXPLAIN ANALYZE DELETE FROM samples",
        "SELECT * FROM '/etc/passwd'",
        "SELECT 1; SELECT 2",
        "SELEC 1",
        "SELECT nothing FROM samples",
        "",
    ] {
        let (status, body) = server.sql(statement).await;
        let (status, code, message) = error_of(status, &body);
        assert_eq!((status, code.as_str()), (400, "bad_query"), "{statement}: {message}");
    }
    let request = Request::post("/api/v1/sql").body(Body::from("no json")).unwrap();
    let (status, _, body) = server.send(request).await;
    assert_eq!(error_of(status, &body).1, "bad_parameter");
}
