//! A real server on a bucket, behind a bad network, killed again and again: every acknowledged sample is there once,
//! and the answers are those of a server on a local folder, to the byte.

use super::gateway::{Gateway, environment, root};
use super::proxy::{Fault, Proxy, Rule};
use crate::support::{Sender, Server, get, now_ns, post_batch, send};
use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(super) const SENDERS: usize = 3;
pub(super) const SAMPLES: usize = 20;
const ROUNDS: u64 = 20;
/// A start that a fault meets ends in words, and whoever watches over the server starts it again.
const STARTS: u32 = 6;
/// Between two batches of a sender; with the restarts' time this bounds how many there are.
const PAUSE: Duration = Duration::from_millis(50);

/// 50 of a thousand requests.
pub(super) const FAULTS: [Rule; 5] = [
    Rule {
        per_mille: 20,
        fault: Fault::Delay(Duration::from_millis(150)),
    },
    Rule {
        per_mille: 10,
        fault: Fault::SlowDown,
    },
    Rule {
        per_mille: 8,
        fault: Fault::Cut,
    },
    Rule {
        per_mille: 6,
        fault: Fault::LoseAnswer,
    },
    Rule {
        per_mille: 6,
        fault: Fault::HalveAnswer,
    },
];

/// What a sender was told that it is stored.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) sender: Sender,
    pub(super) batches: Vec<ExportProfilesServiceRequest>,
}

/// What is there of each sender, and each of it once: no two of a sender's samples have the same time and thread.
pub(super) const EACH_ONCE: &str = "SELECT count(*), count(DISTINCT concat(node, ts_ns, '/', tid)) FROM samples";

/// What there must be: samples by instance, and what `EACH_ONCE` answers.
pub(super) fn acknowledged(sent: &[Sent]) -> (BTreeMap<String, i64>, serde_json::Value) {
    let of = |sent: &Sent| (sent.sender.instance.clone(), (sent.batches.len() * SAMPLES) as i64);
    let by_instance: BTreeMap<String, i64> = sent.iter().map(of).collect();
    assert!(sent.iter().all(|sent| sent.batches.len() > 3), "{by_instance:?}");
    let all: i64 = by_instance.values().sum();
    (by_instance, serde_json::json!([[all, all]]))
}

pub(super) fn start(place: &str, flags: &[&str], address: &str) -> Server {
    let mut said = String::new();
    for _ in 0..STARTS {
        match Server::start_in(Path::new(place), flags, &environment(address)) {
            Ok(server) => return server,
            Err(error) => said = error,
        }
    }
    panic!("it did not start {STARTS} times; last:\n{said}");
}

/// As an agent does: each batch is repeated until it is acknowledged, the last one too. Of several servers each try
/// goes to another one.
pub(super) async fn sends(index: usize, to: Arc<Mutex<Vec<String>>>, stop: Arc<AtomicBool>) -> Sent {
    let mut sender = Sender::new(&format!("node-{index}"), SAMPLES);
    let mut batches = Vec::new();
    let mut tries = index;
    while !stop.load(Relaxed) {
        let number = batches.len() as i64 + 1;
        let batch = sender.batch(number, now_ns());
        loop {
            let addresses = to.lock().unwrap().clone();
            let address = &addresses[tries % addresses.len()];
            tries += 1;
            match post_batch(address, &sender, number, &batch).await {
                Ok(answer) if answer.status == 200 => break,
                Ok(answer) => assert!(answer.status.is_server_error(), "{answer:?}"),
                // The server was killed, and its next one is on another port.
                Err(_) => {}
            }
            tokio::time::sleep(PAUSE).await;
        }
        batches.push(batch);
        tokio::time::sleep(PAUSE).await;
    }
    Sent { sender, batches }
}

pub(super) async fn sql(address: &str, query: &str) -> serde_json::Value {
    let body = serde_json::json!({ "query": query }).to_string();
    let request = Request::post("/api/v1/sql")
        .header("host", address)
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body)))
        .unwrap();
    let answer = send(address, request).await.unwrap();
    assert_eq!(answer.status, 200, "{query}: {answer:?}");
    answer.json()["rows"].clone()
}

/// By instance: samples by the ledger.
pub(super) async fn ledger(address: &str) -> BTreeMap<String, i64> {
    let nodes = get(address, "/api/v1/nodes").await.json();
    let nodes = nodes["nodes"].as_array().unwrap();
    let row = |node: &serde_json::Value| {
        let instance = node["instance"].as_str().unwrap().to_owned();
        (instance, node["samples_stored"].as_i64().unwrap())
    };
    nodes.iter().map(row).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_behind_a_bad_network_every_acknowledged_sample_is_in_the_bucket_once() {
    let Some(gateway) = Gateway::start() else { return };
    let proxy = Proxy::to(gateway.address(), 7, &FAULTS);
    let place = root("fleet/one");
    let begin_ms = now_ns() / 1_000_000 - 60_000;
    let mut server = start(&place, &[], proxy.address());
    let address = Arc::new(Mutex::new(vec![server.address.clone()]));
    let stop = Arc::new(AtomicBool::new(false));
    let sending: Vec<_> = (0..SENDERS)
        .map(|index| tokio::spawn(sends(index, address.clone(), stop.clone())))
        .collect();
    for round in 0..ROUNDS {
        // Not a wait for anything: the kill shall fall at different points of a commit.
        tokio::time::sleep(Duration::from_millis(400 + round * 83)).await;
        server.kill();
        server = start(&place, &[], proxy.address());
        address.lock().unwrap()[0].clone_from(&server.address);
    }
    stop.store(true, Relaxed);
    let mut sent = Vec::new();
    for sending in sending {
        sent.push(sending.await.unwrap());
    }
    let counts = proxy.take_counts();
    println!("{counts:?}");
    for rule in FAULTS {
        let met = counts.faults.get(rule.fault.name());
        assert!(
            met.is_some_and(|met| *met > 0),
            "no request met {:?}: {counts:?}",
            rule.fault
        );
    }
    assert!(server.stop(), "SIGTERM ends the server well");

    // What is in the bucket, asked without faults.
    let server = start(&place, &[], gateway.address());
    let (by_instance, all) = acknowledged(&sent);
    assert_eq!(ledger(&server.address).await, by_instance);
    assert_eq!(sql(&server.address, EACH_ONCE).await, all);

    // A server on a local folder that got the same.
    let dir = tempfile::tempdir().unwrap();
    let local = Server::start(dir.path(), &[]);
    for Sent { sender, batches } in &sent {
        for (number, batch) in (1..).zip(batches) {
            let answer = post_batch(&local.address, sender, number, batch).await.unwrap();
            assert_eq!(answer.status, 200, "{answer:?}");
        }
    }
    let end_ms = now_ns() / 1_000_000 + 60_000;
    for path in [
        format!("/api/v1/flamegraph?from={begin_ms}&until={end_ms}&query=%7B%7D"),
        format!("/api/v1/flamegraph?from={begin_ms}&until={end_ms}&query=%7Bservice%3D%22service-1%22%7D"),
    ] {
        let [bucket, folder] = [get(&server.address, &path).await, get(&local.address, &path).await];
        assert_eq!(
            (bucket.status.as_u16(), folder.status.as_u16()),
            (200, 200),
            "{bucket:?}"
        );
        assert_eq!(bucket.body, folder.body, "{path}");
    }
}
