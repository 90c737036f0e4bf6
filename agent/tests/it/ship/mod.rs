//! From `submit` to a server that fails in every way: each sample arrives once or is counted as lost, never both, never
//! neither.

mod delivery;
mod loss;
mod trouble;

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use stakeout_agent::frames::{SampleKind, Stack};
use stakeout_agent::ship::{
    Batch, Identity, Process, Report, Retry, RunQueues, Sample, ShipConfig, ShipError, ShipStats, Shipper, Submitted,
    Token,
};
use tempfile::TempDir;

use crate::peer::{Peer, Step};

const LONG: Duration = Duration::from_secs(60);

/// An agent that counts: every sample has a time stamp of its own, `taken` grows with each.
struct Agent {
    shipper: Shipper,
    taken: u64,
    submitted: BTreeSet<u64>,
}

fn config(server: &str, state: &Path) -> ShipConfig {
    ShipConfig {
        server: server.into(),
        token: None,
        ca_file: None,
        state_dir: state.into(),
        spool_limit_bytes: 64 << 20,
        request_timeout: LONG,
        retry: Retry {
            first: Duration::from_millis(1),
            longest: Duration::from_millis(4),
        },
        identity: Identity {
            node: "node".into(),
            agent_version: "0.1.0".into(),
            ..Identity::default()
        },
    }
}

impl Agent {
    fn start(config: ShipConfig) -> Self {
        Self {
            shipper: Shipper::start(config).unwrap(),
            taken: 0,
            submitted: BTreeSet::new(),
        }
    }

    fn instance(&self) -> String {
        self.shipper.instance().to_string()
    }

    fn submit(&mut self, samples: u64) {
        let from = self.taken;
        self.taken += samples;
        // Unlike an earlier agent's of the same test.
        let salt = u64::from(self.shipper.instance().as_fields().0) << 24;
        let sample = |n| Sample {
            woken: None,
            kind: SampleKind::Cpu,
            value_ns: 0,
            wait_ns: 0,
            wait_class: None,
            ts_unix_ns: salt + n,
            cpu: 0,
            tid: 7,
            thread: "t".into(),
            process: 0,
            stack: 0,
        };
        let batch = Batch {
            from_unix_ns: from,
            until_unix_ns: self.taken,
            period_ns: 50_000_000,
            frequency_hz: 20,
            report: Report {
                cpus: 1,
                ticks: samples,
                samples_taken: self.taken,
                ..Report::default()
            },
            frames: vec![],
            stacks: vec![Stack {
                frames: vec![],
                truncated: false,
            }],
            processes: vec![Process {
                tgid: 7,
                executable: Arc::from("x"),
                ..Process::default()
            }],
            samples: (from..self.taken).map(sample).collect(),
            run_queues: RunQueues::default(),
        };
        self.submitted.extend((from..self.taken).map(|n| salt + n));
        let _ = self.shipper.submit(batch);
    }

    fn stop(self) -> ShipStats {
        self.stop_within(LONG)
    }

    fn stop_within(self, deadline: Duration) -> ShipStats {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(self.shipper.shutdown(deadline))
    }
}

fn sum(lost: &BTreeMap<&'static str, u64>) -> u64 {
    lost.values().sum()
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return vec![];
    };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn spool_files(state: &Path) -> Vec<PathBuf> {
    files(&state.join("spool")).iter().flat_map(|dir| files(dir)).collect()
}

/// What `kill -9` leaves: the folder as it is now.
fn crashed(state: &Path) -> TempDir {
    let copy = TempDir::new().unwrap();
    for dir in files(&state.join("spool")) {
        let to = copy.path().join("spool").join(dir.file_name().unwrap());
        std::fs::create_dir_all(&to).unwrap();
        for file in files(&dir) {
            std::fs::copy(&file, to.join(file.file_name().unwrap())).unwrap();
        }
    }
    copy
}
