//! What OpenTelemetry's profiler and Collector really sent, against what it says by another decoder:
//! `tests/data/opentelemetry`.

use crate::ingest::{App, grpc};
use crate::support::{Answer, get, now_ns, post, send};
use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::io::Write;

const PROFILER: &[u8] = include_bytes!("../../data/opentelemetry/profiler.binpb");
const COLLECTOR: &[u8] = include_bytes!("../../data/opentelemetry/collector.binpb");
const COLLECTOR_JSON: &str = include_str!("../../data/opentelemetry/collector.json");
const TRUTH: &str = include_str!("../../data/opentelemetry/truth.tsv");

/// A sample: nanoseconds after the first time, executable, process id, thread, thread id, CPU, value, frames leaf
/// first.
type Sample = (i64, String, i64, String, i64, i64, i64, Vec<Frame>);

/// Kind, module, build id, function, file, line, offset.
type Frame = (String, String, String, String, String, i64, Option<i64>);

fn int(text: &str) -> i64 {
    text.parse().unwrap()
}

/// The fields of the lines that begin so.
fn lines(kind: &str) -> impl Iterator<Item = Vec<&'static str>> {
    let fields = TRUTH.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    fields
        .filter(move |fields| fields[0] == kind)
        .map(|fields| fields[1..].to_vec())
}

fn times() -> (i64, i64) {
    let times = lines("times").next().unwrap();
    (int(times[0]), int(times[1]))
}

fn truth() -> Vec<Sample> {
    let frames: Vec<Frame> = lines("frame")
        .map(|frame| {
            let kind = match frame[1] {
                "go" => "native",
                kind => kind,
            };
            let [module, build, function, file] = [2, 3, 4, 5].map(|at| frame[at].to_owned());
            let line = frame[6].parse().unwrap_or(0);
            (
                kind.to_owned(),
                module,
                build,
                function,
                file,
                line,
                frame[7].parse().ok(),
            )
        })
        .collect();
    let profiles: HashMap<_, _> = lines("profile").map(|profile| (profile[0], profile)).collect();
    let mut samples: Vec<_> = lines("sample")
        .map(|sample| {
            let profile = &profiles[sample[1]];
            assert_eq!(profile[3..7], ["samples", "count", "cpu", "nanoseconds"]);
            let of_stack = sample[5]
                .split(' ')
                .map(|frame| frames[frame.parse::<usize>().unwrap()].clone());
            (
                int(sample[0]),
                profile[2].to_owned(),
                int(sample[1]),
                sample[2].to_owned(),
                int(sample[3]),
                int(sample[4]),
                int(profile[7]),
                of_stack.collect(),
            )
        })
        .collect();
    samples.sort();
    samples
}

/// The request as if it was recorded a minute ago. Times are the only numbers of eight bytes in it that are near to
/// its times.
fn recent(request: &[u8]) -> (Vec<u8>, i64) {
    let (first, last) = times();
    let begin_ns = now_ns() - 60_000_000_000;
    let mut moved = request.to_vec();
    let mut at = 0;
    while let Some(bytes) = request.get(at..at + 8) {
        let time = i64::from_le_bytes(bytes.try_into().unwrap());
        if (first..=last).contains(&time) {
            moved[at..at + 8].copy_from_slice(&(time - first + begin_ns).to_le_bytes());
            at += 7;
        }
        at += 1;
    }
    (moved, begin_ns)
}

/// The same of JSON, where times are texts of digits.
fn recent_json(request: &str) -> (String, i64) {
    let (first, last) = times();
    let begin_ns = now_ns() - 60_000_000_000;
    let moved = request.split('"').map(|text| match text.parse::<i64>() {
        Ok(time) if (first..=last).contains(&time) => (time - first + begin_ns).to_string(),
        _ => text.to_owned(),
    });
    (moved.collect::<Vec<_>>().join("\""), begin_ns)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

pub(super) async fn rows(app: &App, statement: &str) -> Vec<Value> {
    let body = json!({"query": statement}).to_string();
    let request = Request::post("/api/v1/sql")
        .header("host", &app.address)
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body)))
        .unwrap();
    let answer = send(&app.address, request).await.unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["rows"].as_array().unwrap().clone()
}

/// What the tables have.
async fn stored(app: &App, begin_ns: i64) -> Vec<Sample> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let number = |value: &Value| value.as_i64().unwrap();
    let of_frames = "SELECT frame_id, kind, module, build_id, function, file, line, \"offset\", inlined FROM frames";
    let frames: HashMap<i64, Frame> = rows(app, of_frames)
        .await
        .iter()
        .map(|row| {
            let [kind, module, build, function, file] = [1, 2, 3, 4, 5].map(|at| text(&row[at]));
            assert_eq!(row[8], false);
            let line = row[6].as_i64().unwrap_or(0);
            (
                number(&row[0]),
                (kind, module, build, function, file, line, row[7].as_i64()),
            )
        })
        .collect();
    let stacks: HashMap<i64, Vec<Frame>> = rows(app, "SELECT stack_id, frames, truncated FROM stacks")
        .await
        .iter()
        .map(|row| {
            assert_eq!(row[2], false);
            let of_stack = row[1].as_array().unwrap().iter();
            (
                number(&row[0]),
                of_stack.map(|id| frames[&number(id)].clone()).collect(),
            )
        })
        .collect();
    let of_samples = "SELECT s.ts_ns, p.executable, p.tgid, s.thread, s.tid, s.cpu, s.value, s.stack_id, s.mode, s.type \
                      FROM samples s JOIN processes p ON s.process_id = p.process_id";
    let mut samples: Vec<_> = rows(app, of_samples)
        .await
        .iter()
        .map(|row| {
            let stack = stacks[&number(&row[7])].clone();
            let mode = if stack[0].0 == "kernel" { "kernel" } else { "user" };
            assert_eq!((text(&row[8]), text(&row[9])), (mode.to_owned(), "cpu".to_owned()));
            (
                number(&row[0]) - begin_ns,
                text(&row[1]),
                number(&row[2]),
                text(&row[3]),
                number(&row[4]),
                number(&row[5]),
                number(&row[6]),
                stack,
            )
        })
        .collect();
    samples.sort();
    samples
}

async fn ask(app: &App, path: &str) -> Value {
    let answer: Answer = get(&app.address, path).await;
    answer.json()
}

/// `node`: what the nodes page must have.
async fn is_as_recorded(app: &App, begin_ns: i64, node: &str, how: &str) {
    let truth = truth();
    assert_eq!(truth.len(), 50);
    let stored = stored(app, begin_ns).await;
    assert_eq!(stored.len(), truth.len(), "{how}");
    for (stored, truth) in stored.iter().zip(&truth) {
        assert_eq!(stored, truth, "{how}");
    }
    let nodes = ask(app, "/api/v1/nodes").await;
    let listed = nodes["nodes"].as_array().unwrap();
    assert_eq!(listed.len(), 1, "{how}: {nodes}");
    assert_eq!(
        [&listed[0]["node"], &listed[0]["samples_stored"], &listed[0]["refusals"]],
        [&json!(node), &json!(50), &json!([])],
        "{how}"
    );
    let flame = ask(app, "/api/v1/flamegraph?from=now-5m").await;
    let named = truth
        .iter()
        .filter(|sample| sample.7.iter().all(|frame| !frame.3.is_empty()))
        .count();
    let quality = &flame["quality"];
    assert_eq!(
        [
            &flame["samples"],
            &flame["unit"],
            &flame["period_ns"],
            &flame["cpu_seconds"]
        ],
        [&json!(50), &json!("samples"), &json!(50_000_000), &json!(2.5)],
        "{how}"
    );
    assert_eq!(
        [
            &quality["complete_samples"],
            &quality["unnamed_samples"],
            &quality["truncated_samples"],
            &quality["spread_samples"],
        ],
        [&json!(named), &json!(50 - named), &json!(0), &json!(0)],
        "{how}"
    );
    let mut of_threads: BTreeMap<&str, usize> = BTreeMap::new();
    truth
        .iter()
        .for_each(|sample| *of_threads.entry(&sample.3).or_default() += 1);
    for (thread, count) in of_threads {
        let flame = ask(
            app,
            &format!("/api/v1/flamegraph?from=now-5m&query=%7Bthread%3D%22{thread}%22%7D"),
        )
        .await;
        assert_eq!(flame["samples"], json!(count), "{how}: {thread}");
    }
    for (label, values) in [
        ("node", vec![node]),
        // It names no service: they are their programs'.
        ("service", vec!["busy", "gobusy", "python3.11"]),
        ("process", vec!["busy", "gobusy", "python3.11"]),
    ] {
        let told = ask(app, &format!("/api/v1/labels/{label}/values?from=now-5m")).await;
        assert_eq!(told["values"], json!(values), "{how}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_profiler_sends_is_stored_as_it_is() {
    let app = App::start().await;
    let (request, begin_ns) = recent(PROFILER);
    let (status, body) = grpc(&app.address, &[("grpc-encoding", "gzip")], &gzip(&request)).await;
    assert_eq!((status.as_str(), body.len()), ("0", 5), "no partial success");
    // It does not say where it runs.
    is_as_recorded(&app, begin_ns, "unknown", "the profiler over gRPC").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_collector_sends_on_is_stored_as_it_was() {
    let version = ("otlp-profiles-development-version", "1");
    let (request, begin_ns) = recent(COLLECTOR);
    let app = App::start().await;
    let (status, body) = grpc(&app.address, &[("grpc-encoding", "gzip"), version], &gzip(&request)).await;
    assert_eq!((status.as_str(), body.len()), ("0", 5), "no partial success");
    is_as_recorded(&app, begin_ns, "node-a", "a Collector over gRPC").await;

    let app = App::start().await;
    let headers = [("content-encoding", "gzip"), version];
    let answer = post(&app.address, gzip(&request), &headers).await.unwrap();
    assert_eq!((answer.status.as_u16(), answer.body.len()), (200, 0), "{answer:?}");
    is_as_recorded(&app, begin_ns, "node-a", "a Collector over HTTP").await;

    let (request, begin_ns) = recent_json(COLLECTOR_JSON);
    let app = App::start().await;
    let headers = [
        ("content-type", "application/json"),
        ("content-encoding", "gzip"),
        version,
    ];
    let answer = post(&app.address, gzip(request.as_bytes()), &headers).await.unwrap();
    assert_eq!(
        (answer.status.as_u16(), answer.body.as_ref()),
        (200, &b"{}"[..]),
        "{answer:?}"
    );
    is_as_recorded(&app, begin_ns, "node-a", "a Collector in JSON").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_version_of_the_schema_is_refused_in_words() {
    let app = App::start().await;
    let (request, _) = recent(COLLECTOR);
    let name = "otlp-profiles-development-version";
    let twice = [(name, "1"), (name, "1")];
    for headers in [
        &[(name, "2")][..],
        &[(name, "")],
        &[(name, "01")],
        &[(name, "1,1")],
        &twice,
    ] {
        let answer = post(&app.address, request.clone(), headers).await.unwrap();
        let (code, said) = answer.refusal();
        assert_eq!(
            (answer.status.as_u16(), code.as_str()),
            (400, "bad_profile"),
            "{headers:?}"
        );
        assert!(said.contains(name) && said.contains("only version 1 is read"), "{said}");
        let invalid_argument = "3";
        assert_eq!(
            grpc(&app.address, headers, &request).await.0,
            invalid_argument,
            "{headers:?}"
        );
    }
    assert_eq!(app.stored(), 0);
    let refusals = &ask(&app, "/api/v1/nodes").await["nodes"][0]["refusals"][0];
    assert_eq!(
        [&refusals["reason"], &refusals["count"]],
        [&json!("bad_profile"), &json!(10)]
    );
}
