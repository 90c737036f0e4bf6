//! `/metrics`: the counters of all rooms, as they are when they are asked for.

use super::door::crowd::gave_way;
use super::{ApiError, AppState};
use crate::durations::Durations;
use crate::store::{DamagedFile, NodeInfo, Quota, Stale, Store, Table, Traffic};
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};

/// An agent that sent within this time is in the metrics though its node has a newer one, milliseconds.
const REPORTING_MS: i64 = 3_600_000;

/// Most damaged files that the metrics name.
const MAX_DAMAGED: usize = 100;

pub(super) async fn metrics(State(state): State<AppState>) -> Result<Response, ApiError> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Collector(state)));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).map_err(ApiError::internal)?;
    let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, content_type)], text).into_response())
}

/// Reads the rooms' counters when it is asked.
#[derive(Debug)]
struct Collector(AppState);

impl prometheus_client::collector::Collector for Collector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let store = &self.0.store;
        let (ingest, stored) = (&self.0.ingest.counters, &store.counters);
        let counters: [(&str, &str, &AtomicU64); 17] = [
            (
                "stakeout_ingest_requests",
                "Requests with profiles that were received",
                &ingest.requests,
            ),
            (
                "stakeout_ingest_body_bytes",
                "Bytes of these requests as they came",
                &ingest.body_bytes,
            ),
            (
                "stakeout_ingest_plain_bytes",
                "Bytes of these requests after decompression",
                &ingest.plain_bytes,
            ),
            (
                "stakeout_ingest_invalid_requests",
                "Requests that were refused for good",
                &ingest.requests_invalid,
            ),
            (
                "stakeout_ingest_busy_requests",
                "Requests that were asked to come again",
                &ingest.requests_busy,
            ),
            (
                "stakeout_ingest_rejected_samples",
                "Samples left out of requests that were taken",
                &ingest.samples_rejected,
            ),
            (
                "stakeout_store_samples",
                "Samples that were stored",
                &stored.samples_stored,
            ),
            (
                "stakeout_store_batches",
                "Batches that were stored",
                &stored.batches_stored,
            ),
            (
                "stakeout_store_duplicate_batches",
                "Batches that had been stored before",
                &stored.batches_duplicate,
            ),
            (
                "stakeout_store_conflicting_batches",
                "Batches left out because their number had been stored with other samples: something on the way splits them",
                &stored.batches_conflicting,
            ),
            ("stakeout_store_commits", "Group commits", &stored.commits),
            (
                "stakeout_store_failed_commits",
                "Group commits that failed",
                &stored.commits_failed,
            ),
            (
                "stakeout_store_commit_conflicts",
                "Entries that other servers put where one of this server's was to be",
                &stored.conflicts,
            ),
            (
                "stakeout_store_followed_entries",
                "Entries of tables' logs that other servers wrote and this one read",
                &stored.entries_read,
            ),
            (
                "stakeout_store_written_bytes",
                "Bytes of data files that were written",
                &stored.bytes_written,
            ),
            (
                "stakeout_store_compacted_files",
                "Data files that compaction replaced",
                &stored.files_compacted,
            ),
            (
                "stakeout_store_expired_files",
                "Data files that were older than the retention",
                &stored.files_expired,
            ),
        ];
        for (name, help, value) in counters {
            let counter = ConstCounter::new(value.load(Ordering::Relaxed));
            counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)?;
        }
        self.doors(&mut encoder)?;
        let snapshot = store.snapshot();
        let files: usize = Table::ALL.iter().map(|table| snapshot.files(*table).len()).sum();
        let bytes: u64 = Table::ALL
            .iter()
            .flat_map(|table| snapshot.files(*table))
            .map(|file| file.size_bytes)
            .sum();
        let gauges: [(&str, &str, u64); 6] = [
            (
                "stakeout_query_memory_bytes",
                "Memory that queries take, with their answers until they are sent and what is kept for the next ones",
                snapshot.memory_pool().reserved() as u64,
            ),
            ("stakeout_store_files", "Data files of all tables", files as u64),
            ("stakeout_store_bytes", "Bytes of all data files", bytes),
            (
                "stakeout_store_pending_bytes",
                "Memory of rows that wait for their commit",
                store.pending_bytes(),
            ),
            (
                "stakeout_store_disk_full",
                "1 while ingest is stopped for want of space",
                u64::from(store.is_disk_full()),
            ),
            (
                "stakeout_agents",
                "Agent instances that are known",
                store.nodes().len() as u64,
            ),
        ];
        for (name, help, value) in gauges {
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        free_space(store, &mut encoder)?;
        quotas(&self.0, &mut encoder)?;
        tables(store, &mut encoder)?;
        if let Some(traffic) = store.traffic() {
            bucket(&traffic, &mut encoder)?;
        }
        damaged(&store.damaged_files(), &mut encoder)?;
        agents(&reporting(store.nodes()), &mut encoder)
    }
}

impl Collector {
    /// What is built, how long it takes, and what was kept out.
    fn doors(&self, encoder: &mut DescriptorEncoder<'_>) -> std::fmt::Result {
        let mut family = encoder.encode_descriptor(
            "stakeout_build_info",
            "1, with the server's version",
            None,
            MetricType::Gauge,
        )?;
        let version = [("version", env!("CARGO_PKG_VERSION"))];
        ConstGauge::new(1_u64).encode(family.encode_family(&version)?)?;
        let times = &self.0.times;
        let doors = [("open", &times.open), ("ingest", &times.ingest), ("view", &times.view)];
        Durations::encode_by(
            "stakeout_http_request_seconds",
            "Time until the answer to a request began, by whose token its path takes",
            "door",
            &doors,
            encoder,
        )?;
        let commits = &self.0.store.counters.commit_seconds;
        commits.encode("stakeout_store_commit_seconds", "Time that group commits took", encoder)?;
        self.among_others(encoder)?;
        self.spread(encoder)?;
        for (name, help, count) in [
            (
                "stakeout_panics",
                "Requests that ended in a panic of the server's",
                crate::panics::seen(),
            ),
            (
                "stakeout_http_evicted_connections",
                "Connections of strangers that ended since others came",
                gave_way(),
            ),
        ] {
            let counter = ConstCounter::new(count);
            counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)?;
        }
        Ok(())
    }

    /// What was counted by several servers.
    fn spread(&self, encoder: &mut DescriptorEncoder<'_>) -> std::fmt::Result {
        let spread = &self.0.spread.counters;
        let counters = [
            (
                "stakeout_query_spread_counts",
                "Counts of samples that were spread over several servers",
                &spread.spread,
            ),
            (
                "stakeout_query_shares",
                "Shares of counts that were asked of other servers",
                &spread.shares,
            ),
            (
                "stakeout_query_share_rows",
                "Rows of the row groups of these shares",
                &spread.rows,
            ),
            (
                "stakeout_query_share_retries",
                "Times that a share was asked again, since a server failed or was slow",
                &spread.retries,
            ),
            (
                "stakeout_query_shares_taken_back",
                "Shares that this server counted itself, since others did not",
                &spread.taken_back,
            ),
            (
                "stakeout_query_share_sent_bytes",
                "Bytes of shares that were sent, as often as they were asked",
                &spread.sent_bytes,
            ),
            (
                "stakeout_query_share_received_bytes",
                "Bytes of partial counts that came from other servers",
                &spread.received_bytes,
            ),
            (
                "stakeout_query_shares_counted",
                "Shares that this server counted for others",
                &spread.counted,
            ),
            (
                "stakeout_query_shares_refused",
                "Shares of others that this server refused, or could not count",
                &spread.refused,
            ),
        ];
        for (name, help, count) in counters {
            let counter = ConstCounter::new(count.load(Ordering::Relaxed));
            counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)?;
        }
        Ok(())
    }

    /// How this server gets on with others on the same data.
    fn among_others(&self, encoder: &mut DescriptorEncoder<'_>) -> std::fmt::Result {
        let store = &self.0.store;
        let fresh = store.freshness();
        store.counters.conflict_seconds.encode(
            "stakeout_store_conflict_seconds",
            "Time that commits were kept by those of other servers, of commits that met any",
            encoder,
        )?;
        let gauges = [
            (
                "stakeout_store_servers",
                "Servers on the same data that are alive, with this one",
                fresh.servers as f64,
            ),
            (
                "stakeout_store_commit_pause_seconds",
                "Time from one commit to the next, which is more with more servers",
                fresh.commit_pause.as_secs_f64(),
            ),
            (
                "stakeout_store_behind_seconds",
                "Time since this server knew all that others had committed",
                fresh.behind.as_secs_f64(),
            ),
            (
                "stakeout_store_maintains",
                "1 while this server does the maintenance",
                f64::from(u8::from(store.maintains())),
            ),
        ];
        for (name, help, value) in gauges {
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        Ok(())
    }
}

/// Free space for the data, where it is known.
fn free_space(store: &Store, encoder: &mut DescriptorEncoder<'_>) -> std::fmt::Result {
    let Some((free_bytes, min_free_bytes)) = store.free_bytes() else {
        return Ok(());
    };
    let gauges = [
        ("stakeout_store_free_bytes", "Free space of the data's disk", free_bytes),
        (
            "stakeout_store_min_free_bytes",
            "Free space below which nothing is taken in",
            min_free_bytes,
        ),
    ];
    for (name, help, value) in gauges {
        let gauge = ConstGauge::new(value);
        gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
    }
    Ok(())
}

/// What may come by each token in a day, what came today, and what was refused; nothing where no token has a quota.
fn quotas(state: &AppState, encoder: &mut DescriptorEncoder<'_>) -> std::fmt::Result {
    let quotas = state.ingest_tokens.quotas();
    if quotas.is_empty() {
        return Ok(());
    }
    let used: Vec<_> = quotas.iter().map(|quota| state.store.quota_used(&quota.name)).collect();
    type Value = fn(&Quota, (u64, u64, u64)) -> Option<u64>;
    let families: [(&str, &str, MetricType, Value); 5] = [
        (
            "stakeout_quota_used_bytes",
            "Bytes of requests, decompressed, that were taken today (UTC) by the tokens of a name",
            MetricType::Gauge,
            |_, (bytes, ..)| Some(bytes),
        ),
        (
            "stakeout_quota_limit_bytes",
            "Bytes that may be taken in a day",
            MetricType::Gauge,
            |quota, _| quota.bytes_per_day,
        ),
        (
            "stakeout_quota_used_series",
            "Different series that were taken today (UTC), where they have a quota",
            MetricType::Gauge,
            |quota, (_, series, _)| quota.series_per_day.map(|_| series),
        ),
        (
            "stakeout_quota_limit_series",
            "Different series that may be taken in a day",
            MetricType::Gauge,
            |quota, _| quota.series_per_day,
        ),
        (
            "stakeout_quota_refused_batches",
            "Batches that were refused for a quota, each time that they came",
            MetricType::Counter,
            |_, (.., refused)| Some(refused),
        ),
    ];
    for (name, help, kind, value) in families {
        let of_all = quotas.iter().zip(&used);
        let values = of_all.filter_map(|(quota, used)| Some((quota.name.as_str(), value(quota, *used)?)));
        let values: Vec<(&str, u64)> = values.collect();
        if values.is_empty() {
            continue;
        }
        let is_counter = matches!(kind, MetricType::Counter);
        let mut family = encoder.encode_descriptor(name, help, None, kind)?;
        for (token, value) in values {
            let label = [("token", token)];
            let metric = family.encode_family(&label)?;
            if is_counter {
                ConstCounter::new(value).encode(metric)?;
            } else {
                ConstGauge::new(value).encode(metric)?;
            }
        }
    }
    Ok(())
}

/// Files and bytes of each table: live ones, and those that are on the disk still though the table has them no more.
fn tables(store: &Store, encoder: &mut DescriptorEncoder<'_>) -> std::fmt::Result {
    let snapshot = store.snapshot();
    let live = Table::ALL.into_iter().map(|table| {
        let files = snapshot.files(table);
        (
            table,
            "live",
            files.len(),
            files.iter().map(|file| file.size_bytes).sum(),
        )
    });
    let stale = store.stale_files();
    let stale = stale.iter().map(|(table, stale, files, bytes)| {
        let state = match stale {
            Stale::Replaced => "replaced",
            Stale::Expired => "expired",
        };
        (*table, state, *files, *bytes)
    });
    let rows: Vec<(Table, &str, usize, u64)> = live.chain(stale).collect();
    type Value = fn(usize, u64) -> u64;
    let families: [(&str, &str, Value); 2] = [
        (
            "stakeout_store_table_files",
            "Data files by table and state; replaced and expired ones are deleted minutes later",
            |files, _| files as u64,
        ),
        ("stakeout_store_table_bytes", "Bytes of these files", |_, bytes| bytes),
    ];
    for (name, help, value) in families {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (table, state, files, bytes) in &rows {
            let gauge = ConstGauge::new(value(*files, *bytes));
            gauge.encode(family.encode_family(&[("table", table.name()), ("state", state)])?)?;
        }
    }
    Ok(())
}

/// What was asked of the bucket, and what of it is kept.
fn bucket(traffic: &Traffic, encoder: &mut DescriptorEncoder<'_>) -> std::fmt::Result {
    let mut family = encoder.encode_descriptor(
        "stakeout_bucket_requests",
        "Requests to the bucket by operation and outcome; one that is tried again counts again",
        None,
        MetricType::Counter,
    )?;
    for (operation, outcome, count) in traffic.requests() {
        let labels = [("operation", operation), ("outcome", outcome)];
        ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
    }
    Durations::encode_by(
        "stakeout_bucket_request_seconds",
        "Time until the bucket's answer began, by operation",
        "operation",
        &traffic.seconds(),
        encoder,
    )?;
    for (name, help, count) in [
        (
            "stakeout_bucket_sent_bytes",
            "Bytes of bodies that were sent to the bucket",
            &traffic.sent_bytes,
        ),
        (
            "stakeout_bucket_received_bytes",
            "Bytes of bodies that came from the bucket",
            &traffic.received_bytes,
        ),
        (
            "stakeout_bucket_page_hits",
            "Pages of data files that were read from memory",
            &traffic.page_hits,
        ),
        (
            "stakeout_bucket_page_misses",
            "Pages of data files that were fetched from the bucket",
            &traffic.page_misses,
        ),
        (
            "stakeout_bucket_resumed_lists",
            "Lists of the bucket that broke off and were asked again",
            &traffic.resumed_lists,
        ),
    ] {
        let counter = ConstCounter::new(count.load(Ordering::Relaxed));
        counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)?;
    }
    let gauge = ConstGauge::new(traffic.page_bytes.load(Ordering::Relaxed));
    let help = "Memory of the pages that are kept";
    let metric = encoder.encode_descriptor("stakeout_bucket_page_bytes", help, None, gauge.metric_type())?;
    gauge.encode(metric)
}

/// How many files are damaged, and the first of them by name.
fn damaged(files: &[DamagedFile], encoder: &mut DescriptorEncoder<'_>) -> std::fmt::Result {
    let rows: u64 = files.iter().map(|file| file.rows).sum();
    let counts = [
        (
            "stakeout_store_damaged_files",
            "Data files that are not what was written: queries leave them out",
            files.len() as u64,
        ),
        ("stakeout_store_damaged_rows", "Rows of the damaged data files", rows),
    ];
    for (name, help, count) in counts {
        let gauge = ConstGauge::new(count);
        gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
    }
    if files.is_empty() {
        return Ok(());
    }
    let help = "1 for each damaged file, the first of them by path";
    let mut family = encoder.encode_descriptor("stakeout_store_damaged_file", help, None, MetricType::Gauge)?;
    for file in files.iter().take(MAX_DAMAGED) {
        let labels = [("file", file.file.as_str()), ("fault", file.fault.as_str())];
        ConstGauge::new(1_u64).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

/// The newest instance of each node, and those of the last hour: a restarted agent's old instance may still deliver.
fn reporting(newest_first: Vec<NodeInfo>) -> Vec<NodeInfo> {
    let since_ns = (chrono::Utc::now().timestamp_millis() - REPORTING_MS) * 1_000_000;
    let mut nodes = HashSet::new();
    newest_first
        .into_iter()
        .filter(|agent| nodes.insert(agent.last.node.clone()) || agent.last.until_ns >= since_ns)
        .collect()
}

/// What each agent took, what of it is stored, what it lost, and which of its limits it reached.
fn agents(agents: &[NodeInfo], encoder: &mut DescriptorEncoder<'_>) -> std::fmt::Result {
    type Counts = fn(&NodeInfo) -> Vec<(&str, i64)>;
    let families: [(&str, &str, Option<&str>, Counts); 4] = [
        (
            "stakeout_agent_taken_samples",
            "Samples that an agent took; those that are stored and those that it lost make the same sum",
            None,
            |agent| agent.last.samples_taken.map(|n| ("", n)).into_iter().collect(),
        ),
        (
            "stakeout_agent_stored_samples",
            "Samples of an agent that are stored",
            None,
            |agent| vec![("", agent.samples_stored)],
        ),
        (
            "stakeout_agent_lost_samples",
            "Samples that an agent took and could not deliver",
            Some("cause"),
            |agent| named(&agent.last.lost),
        ),
        (
            "stakeout_agent_limits_reached",
            "How often an agent reached a limit and did something less well, without losing a sample",
            Some("limit"),
            |agent| named(&agent.last.limits),
        ),
    ];
    for (name, help, key, counts) in families {
        if agents.iter().all(|agent| counts(agent).is_empty()) {
            continue;
        }
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for agent in agents {
            let own = [("node", agent.last.node.as_str()), ("instance", &agent.last.instance)];
            for (value, count) in counts(agent) {
                let labels: Vec<(&str, &str)> = own.into_iter().chain(key.map(|key| (key, value))).collect();
                let counter = ConstCounter::new(u64::try_from(count).unwrap_or_default());
                counter.encode(family.encode_family(&labels)?)?;
            }
        }
    }
    Ok(())
}

fn named(counts: &BTreeMap<String, i64>) -> Vec<(&str, i64)> {
    counts.iter().map(|(name, count)| (name.as_str(), *count)).collect()
}
