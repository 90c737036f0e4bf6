//! What may come by a token in a day, on the real binary: counted once, refused in words, across restarts.

use crate::pprof::pprof;
use crate::support::{Answer, Sender, Server, eventually, get, now_ns, post, send};
use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use prost::Message;
use std::path::Path;

const TOKEN: (&str, &str) = ("authorization", "Bearer send-it");

fn write(file: &Path, quota: &str) {
    std::fs::write(file, format!("# senders\nsend-it name=team-a {quota}\nfree\n")).unwrap();
}

fn start(dir: &Path, file: &Path) -> Server {
    Server::start(&dir.join("data"), &["--ingest-token-file", file.to_str().unwrap()])
}

/// A batch and how it is sent: by whose token, and as which.
async fn ship(address: &str, sender: &Sender, number: i64, body: &[u8], token: (&str, &str)) -> Answer {
    let number = number.to_string();
    let headers = [
        token,
        ("stakeout-instance", sender.instance.as_str()),
        ("stakeout-batch", number.as_str()),
    ];
    post(address, body.to_vec(), &headers).await.unwrap()
}

async fn metric(address: &str, name: &str) -> Option<u64> {
    let text = String::from_utf8(get(address, "/metrics").await.body.to_vec()).unwrap();
    let begin = format!("{name}{{token=\"team-a\"}} ");
    let value = text.lines().find_map(|line| line.strip_prefix(begin.as_str()))?;
    Some(value.parse::<f64>().unwrap() as u64)
}

async fn refusal_at(address: &str, node: &str) -> serde_json::Value {
    let nodes = get(address, "/api/v1/nodes").await.json();
    let nodes = nodes["nodes"].as_array().unwrap().clone();
    let of_node = nodes.into_iter().find(|one| one["node"] == node).unwrap();
    of_node["refusals"][0].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quota_of_bytes_counts_what_is_stored_once_and_holds_over_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("tokens");
    let mut sender = Sender::new("node-a", 20);
    let batches: Vec<Vec<u8>> = (1..=3)
        .map(|number| sender.batch(number, now_ns()).encode_to_vec())
        .collect();
    let limit = batches[0].len() + batches[1].len() + batches[2].len() / 2;
    write(&file, &format!("bytes-per-day={limit}"));
    let mut server = start(dir.path(), &file);
    let address = server.address.clone();
    let used = (batches[0].len() + batches[1].len()) as u64;
    for number in [1, 2, 1] {
        let answer = ship(&address, &sender, number, &batches[number as usize - 1], TOKEN).await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    let answer = ship(&address, &sender, 3, &batches[2], TOKEN).await;
    assert_eq!(answer.status, 429, "{answer:?}");
    let after: u64 = answer.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=300).contains(&after), "{after}");
    let (code, message) = answer.refusal();
    assert_eq!(code, "quota_exceeded");
    for part in ["team-a", &used.to_string(), &limit.to_string(), "T00:00:00Z"] {
        assert!(message.contains(part), "no {part}: {message}");
    }
    assert_eq!(metric(&address, "stakeout_quota_used_bytes").await, Some(used));
    assert_eq!(metric(&address, "stakeout_quota_limit_bytes").await, Some(limit as u64));
    assert_eq!(metric(&address, "stakeout_quota_refused_batches_total").await, Some(1));
    assert_eq!(
        metric(&address, "stakeout_quota_used_series").await,
        None,
        "they have no quota"
    );
    let refusal = refusal_at(&address, "node-a").await;
    assert_eq!(refusal["reason"], "quota_exceeded");
    assert!(refusal["message"].as_str().unwrap().contains("team-a"), "{refusal}");
    // A token without a quota takes what comes.
    let mut other = Sender::new("node-b", 20);
    let batch = other.batch(1, now_ns()).encode_to_vec();
    let free = ("authorization", "Bearer free");
    assert_eq!(ship(&address, &other, 1, &batch, free).await.status, 200);
    // No second day's quota by a restart.
    assert!(server.stop());
    let server = start(dir.path(), &file);
    let address = server.address.clone();
    assert_eq!(metric(&address, "stakeout_quota_used_bytes").await, Some(used));
    assert_eq!(ship(&address, &sender, 3, &batches[2], TOKEN).await.status, 429);
    // Raised while it runs, it counts at once: nothing of the day is lost.
    write(&file, "bytes-per-day=1GiB");
    server.hang_up();
    eventually("the batch is taken", async || {
        ship(&address, &sender, 3, &batches[2], TOKEN).await.status == 200
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quota_of_series_counts_each_series_once_by_whatever_way_it_comes() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("tokens");
    write(&file, "series-per-day=1000");
    let server = start(dir.path(), &file);
    let address = server.address.clone();
    let mut sender = Sender::new("node-a", 20);
    for number in 1..=2 {
        let batch = sender.batch(number, now_ns()).encode_to_vec();
        assert_eq!(ship(&address, &sender, number, &batch, TOKEN).await.status, 200);
    }
    let used = metric(&address, "stakeout_quota_used_series").await.unwrap();
    assert!(used > 0);
    let batch = sender.batch(3, now_ns()).encode_to_vec();
    assert_eq!(ship(&address, &sender, 3, &batch, TOKEN).await.status, 200);
    assert_eq!(
        metric(&address, "stakeout_quota_used_series").await,
        Some(used),
        "the same series"
    );
    write(&file, &format!("series-per-day={used}"));
    server.hang_up();
    eventually("the quota is lower", async || {
        metric(&address, "stakeout_quota_limit_series").await == Some(used)
    })
    .await;
    // The same series go on, and no other is let in: neither of an agent nor of a client of Pyroscope.
    let batch = sender.batch(4, now_ns()).encode_to_vec();
    assert_eq!(ship(&address, &sender, 4, &batch, TOKEN).await.status, 200);
    let mut other = Sender::new("node-b", 1);
    let batch = other.batch(1, now_ns()).encode_to_vec();
    let answer = ship(&address, &other, 1, &batch, TOKEN).await;
    assert_eq!(answer.status, 429, "{answer:?}");
    assert!(answer.refusal().1.contains("series"), "{answer:?}");
    let seconds = now_ns() / 1_000_000_000;
    let path = format!("/ingest?name=shop&from={}&until={seconds}", seconds - 10);
    let request = Request::post(path)
        .header("host", &address)
        .header(TOKEN.0, TOKEN.1)
        .body(Full::<Bytes>::from(pprof(&[("main", "main;work", 7)], 10_000_000)))
        .unwrap();
    let answer = send(&address, request).await.unwrap();
    assert_eq!(
        (answer.status.as_u16(), answer.error_code().as_str()),
        (429, "quota_exceeded"),
        "{answer:?}"
    );
    assert_eq!(metric(&address, "stakeout_quota_refused_batches_total").await, Some(2));
}
