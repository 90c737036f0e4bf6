//! Health, agents, and the servers on the same data.

use super::metrics::metrics;
use super::{ApiError, AppState, error::Code};
use crate::ingest::Sender;
use crate::query::Ticks;
use crate::store::Store;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::routing::get;
use axum::{Json, Router};
use std::collections::BTreeMap;
use std::time::Duration;

/// An agent that has not sent for this many of its intervals is late.
const LATE_INTERVALS: i64 = 6;

/// And at least for this long, milliseconds.
const LATE_MS: i64 = 30_000;

/// A sender that does not say how often it sends is late after this.
const FOREIGN_LATE_MS: i64 = 120_000;

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .route("/api/v1/nodes", get(nodes))
        .route("/api/v1/info", get(info))
        .route("/api/v1/servers", get(servers))
}

async fn ready(State(state): State<AppState>) -> Result<&'static str, ApiError> {
    if state.store.is_disk_full() {
        return Err(ApiError::new(Code::DiskFull, "the disk of the data directory is full")
            .hint("queries work; ingest goes on as soon as there is space"));
    }
    if !state.store.is_writable().await {
        return Err(ApiError::new(Code::DiskFull, "the data directory cannot be written to")
            .status(StatusCode::SERVICE_UNAVAILABLE)
            .hint("queries work; ingest goes on as soon as it can be; the server's log has the cause"));
    }
    Ok("ready\n")
}

async fn info(State(state): State<AppState>, uri: Uri, headers: HeaderMap) -> Json<serde_json::Value> {
    let url = state.base_url(&uri, &headers).unwrap_or_default();
    Json(serde_json::json!({
        "version": env!("CARGO_PKG_VERSION"),
        "build_profile": env!("STAKEOUT_BUILD_PROFILE"),
        "install_command": format!("curl -fsSL {url}/install.sh | sudo sh"),
        "agent_download": state.agents.any(),
        "freshness": freshness(&state.store),
    }))
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn freshness(store: &Store) -> serde_json::Value {
    let fresh = store.freshness();
    serde_json::json!({
        "servers": fresh.servers,
        "commit_ms": milliseconds(fresh.commit_pause),
        "behind_ms": milliseconds(fresh.behind),
    })
}

async fn servers(State(state): State<AppState>) -> Json<serde_json::Value> {
    let servers = state.store.servers().into_iter().map(|server| {
        serde_json::json!({
            "id": server.id,
            "address": server.address,
            "exchange": server.exchange,
            "version": server.version,
            "format": server.format,
            "started": server.started_ms,
            "heard_ms": milliseconds(server.heard),
            "alive": server.is_alive,
            "own": server.is_own,
        })
    });
    let servers: Vec<_> = servers.collect();
    Json(serde_json::json!({ "servers": servers, "maintains": state.store.maintains() }))
}

async fn nodes(State(state): State<AppState>) -> Json<serde_json::Value> {
    let now_ms = chrono::Utc::now().timestamp_millis();
    let mut senders = state.ingest.senders.list();
    let burst_limits = if state.has_bursts() {
        state.burst_agents.limits()
    } else {
        BTreeMap::new()
    };
    let agents: Vec<_> = state
        .store
        .nodes()
        .into_iter()
        .map(|node| {
            let last = &node.last;
            let sender = senders.get(&last.node);
            let last_seen = last.until_ns / 1_000_000;
            let interval_ms = (last.until_ns - last.from_ns) / 1_000_000;
            let ticks = last.ticks.zip(last.idle_ticks).and_then(|(ticks, idle)| {
                let time_ns = last.until_ns.saturating_sub(last.from_ns);
                Ticks::new(
                    ticks,
                    idle,
                    last.missed_ticks,
                    last.cpus.unwrap_or(0),
                    time_ns,
                    last.period_ns,
                )
            });
            serde_json::json!({
                "node": last.node,
                "instance": last.instance,
                "agent_version": last.agent_version,
                "kernel": last.kernel,
                "arch": last.arch,
                "last_seen": last_seen,
                "frequency_hz": last.frequency_hz,
                "cpus": last.cpus,
                "cpus_offline": last.cpus_offline,
                "samples_taken": last.samples_taken,
                "samples_lost": last.lost,
                "limits": last.limits,
                "samples_stored": node.samples_stored,
                "idle_share": ticks.map(|ticks| ticks.idle.clamp(0.0, 1.0)),
                "missed_share": ticks.map(|ticks| ticks.missed.clamp(0.0, 1.0)),
                "cpu_seconds": last.cpu_seconds,
                "bpf_seconds": last.bpf_seconds,
                "agent_cores": node.cores,
                "rss_bytes": last.rss_bytes,
                "bpf_map_bytes": last.bpf_map_bytes,
                "late": now_ms - last_seen > LATE_MS.max(LATE_INTERVALS * interval_ms),
                "burst_limit_hz": burst_limits.get(&last.instance).copied().unwrap_or(0),
                "has_account": true,
                "refusals": sender.map(refusals).unwrap_or_default(),
                "label_limits": sender.map(|sender| &sender.label_limits),
            })
        })
        .collect();
    let mut nodes = agents;
    for node in &nodes {
        senders.remove(node["node"].as_str().unwrap_or_default());
    }
    // Who sends without an account, since the start; and who was refused without having said who it is.
    nodes.extend(senders.iter().map(|(node, sender)| {
        let last_seen = sender.last_ns / 1_000_000;
        serde_json::json!({
            "node": node,
            "instance": "",
            "agent_version": "",
            "kernel": "",
            "arch": "",
            "last_seen": last_seen,
            "agent_cores": null,
            "idle_share": null,
            "samples_lost": {},
            "limits": {},
            "samples_stored": sender.samples,
            "late": now_ms - last_seen > FOREIGN_LATE_MS,
            "has_account": false,
            "refusals": refusals(sender),
            "label_limits": sender.label_limits,
        })
    }));
    Json(serde_json::json!({ "nodes": nodes }))
}

/// What a sender was refused, by reason.
fn refusals(sender: &Sender) -> serde_json::Value {
    let each = sender.refusals.iter().map(|(reason, refusal)| {
        serde_json::json!({
            "reason": reason,
            "count": refusal.count,
            "last": refusal.last_ns / 1_000_000,
            "message": refusal.message,
        })
    });
    each.collect()
}
