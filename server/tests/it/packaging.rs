//! What is shipped beside the server for Prometheus and Grafana asks for metrics that a server has.

use crate::support::{Sender, Server, get, now_ns, post};
use prost::Message;
use std::collections::BTreeSet;

const RULES: &str = include_str!("../../packaging/prometheus-rules.yml");
const DASHBOARD: &str = include_str!("../../packaging/grafana-dashboard.json");
const DOCUMENT: &str = include_str!("../../docs/metrics.md");

/// The metrics that a text names.
fn named(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("stakeout_")).collect()
}

/// As documents have it: without the end that a histogram's parts have.
fn family(metric: &str) -> &str {
    let ends = ["_bucket", "_sum", "_count"];
    ends.iter().find_map(|end| metric.strip_suffix(end)).unwrap_or(metric)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_metric_of_the_alerts_and_the_dashboard_is_served_and_documented() {
    let dir = tempfile::tempdir().unwrap();
    let tokens = dir.path().join("tokens");
    std::fs::write(&tokens, "send-it name=a bytes-per-day=1GiB series-per-day=1000\n").unwrap();
    let server = Server::start(
        &dir.path().join("data"),
        &["--ingest-token-file", tokens.to_str().unwrap()],
    );
    let mut sender = Sender::new("node-a", 5);
    let batch = sender.batch(1, now_ns()).encode_to_vec();
    let headers = [
        ("authorization", "Bearer send-it"),
        ("stakeout-instance", sender.instance.as_str()),
        ("stakeout-batch", "1"),
    ];
    assert_eq!(post(&server.address, batch, &headers).await.unwrap().status, 200);
    let served = get(&server.address, "/metrics").await;
    let served = String::from_utf8(served.body.to_vec()).unwrap();
    let samples = served.lines().filter(|line| !line.starts_with('#'));
    let samples: BTreeSet<&str> = samples.filter_map(|line| line.split(['{', ' ']).next()).collect();
    let documented = named(DOCUMENT);
    for (of, text) in [("alerts", RULES), ("dashboard", DASHBOARD)] {
        let metrics = named(text);
        assert!(metrics.len() > 15, "{of}: {metrics:?}");
        for metric in metrics {
            assert!(samples.contains(metric), "{of}: {metric} is not served");
            assert!(
                documented.contains(family(metric)),
                "{of}: {metric} is not in docs/metrics.md"
            );
        }
    }
}

#[test]
fn the_dashboard_is_whole() {
    let dashboard: serde_json::Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<i64> = panels.iter().map(|panel| panel["id"].as_i64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len());
    for panel in panels.iter().filter(|panel| panel["type"] != "row") {
        let targets = panel["targets"].as_array().unwrap();
        assert!(!targets.is_empty() && panel["description"].is_string(), "{panel}");
        for target in targets {
            let expression = target["expr"].as_str().unwrap();
            assert!(!named(expression).is_empty(), "{panel}");
            let opened = expression.matches(['(', '{', '[']).count();
            assert_eq!(opened, expression.matches([')', '}', ']']).count(), "{expression}");
        }
    }
}
