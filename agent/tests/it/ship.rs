//! From `submit` to a server that fails in every way: each sample arrives once or is counted as lost, never both, never neither.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use stakeout_agent::ship::{
    Batch, Identity, Process, Report, Retry, Sample, ShipConfig, ShipError, ShipStats, Shipper, Stack, Submitted, Token,
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

#[test]
fn batches_arrive_once_and_in_order() {
    let (peer, state) = (Peer::start(&[]), TempDir::new().unwrap());
    let mut agent = Agent::start(ShipConfig {
        token: Some(Token::new("s3cret")),
        ..config(&peer.url(), state.path())
    });
    let instance = agent.instance();
    for samples in 1..=5 {
        agent.submit(samples);
        peer.wait("the batch", |log| log.stored.len() as u64 == samples);
    }
    let submitted: Vec<u64> = agent.submitted.iter().copied().collect();
    let stats = agent.stop();
    peer.log(|log| {
        assert_eq!(log.numbers(&instance), [1, 2, 3, 4, 5]);
        assert_eq!(log.samples(), submitted);
        let first = &log.attempts[0];
        assert_eq!(first.path, "/v1development/profiles");
        assert_eq!(first.headers["content-type"], "application/x-protobuf");
        assert_eq!(first.headers["content-encoding"], "zstd");
        assert_eq!(first.headers["authorization"], "Bearer s3cret");
        assert_eq!(first.report["stakeout.batch"], 1);
    });
    assert_eq!((stats.acknowledged_samples, stats.acknowledged_batches), (15, 5));
    assert_eq!(
        (stats.spooled_batches, stats.spooled_bytes, stats.failed_attempts),
        (0, 0, 0)
    );
    assert!(stats.lost.is_empty() && stats.trouble.is_none());
    assert_eq!(spool_files(state.path()), Vec::<PathBuf>::new());
    assert_eq!(files(&state.path().join("spool")), Vec::<PathBuf>::new());
}

#[test]
fn after_any_failures_what_is_stored_is_what_was_submitted_less_what_was_counted() {
    use Step::{Accept, AcceptAndHangUp, HangUp, Later, Status, Welcome};
    let steps = [
        Accept,
        AcceptAndHangUp,
        HangUp,
        Later(0),
        Welcome,
        Status(400),
        Status(401),
        Status(404),
        Status(413),
        Status(429),
        Status(500),
        Status(302),
    ];
    for seed in 0..40_u64 {
        let mut random = seed;
        let script: Vec<Step> = (0..50)
            .map(|_| {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                steps[(random >> 33) as usize % steps.len()]
            })
            .collect();
        let (peer, state) = (Peer::start(&script), TempDir::new().unwrap());
        let mut agent = Agent::start(config(&peer.url(), state.path()));
        for samples in 1..=25 {
            agent.submit(samples);
        }
        let (submitted, taken) = (agent.submitted.clone(), agent.taken);
        let stats = agent.stop();
        peer.log(|log| {
            let stored = log.samples();
            let unique: BTreeSet<u64> = stored.iter().copied().collect();
            assert_eq!(unique.len(), stored.len(), "seed {seed}: nothing twice");
            assert!(unique.is_subset(&submitted), "seed {seed}");
            let lost = sum(&stats.lost);
            assert_eq!(stored.len() as u64 + lost, taken, "seed {seed}: {script:?}");
            assert_eq!(stats.acknowledged_samples, stored.len() as u64, "seed {seed}");
            // The server's own account agrees, unless the script refused the very batch that was to complete it.
            let refused = files(&state.path().join("quarantine"));
            let untold = refused.iter().any(|file| file.to_string_lossy().contains("-0-"));
            if let Some(last) = log.newest()
                && !untold
            {
                assert_eq!(last.lost(), lost, "seed {seed}: {script:?}");
                assert_eq!(last.report["stakeout.samples_taken"].cast_unsigned(), taken);
            }
        });
        assert_eq!(spool_files(state.path()), Vec::<PathBuf>::new(), "seed {seed}");
    }
}

#[test]
fn a_crash_at_any_time_loses_and_repeats_nothing() {
    let (peer, state) = (Peer::start(&[Step::AcceptAndHangUp]), TempDir::new().unwrap());
    peer.otherwise(Step::HangUp);
    let mut agent = Agent::start(config(&peer.url(), state.path()));
    let old = agent.instance();
    for _ in 0..4 {
        agent.submit(10);
    }
    // The first batch is stored, but the agent does not know; the others wait.
    peer.wait("a second attempt", |log| log.attempts.len() >= 2);
    let spooled = || spool_files(state.path()).len() == 4;
    while !spooled() {
        let attempts = peer.log(|log| log.attempts.len());
        peer.wait("another attempt", |log| log.attempts.len() > attempts);
    }
    let after_crash = crashed(state.path());
    let submitted = agent.submitted.clone();
    agent.stop_within(Duration::ZERO);

    peer.otherwise(Step::Accept);
    let mut restarted = Agent::start(config(&peer.url(), after_crash.path()));
    let new = restarted.instance();
    restarted.submit(5);
    let all: Vec<u64> = submitted.union(&restarted.submitted).copied().collect();
    let stats = restarted.stop();
    peer.log(|log| {
        assert_eq!(log.samples(), all);
        assert_eq!(log.numbers(&old), [1, 2, 3, 4]);
        assert_eq!(log.numbers(&new), [1]);
    });
    assert_eq!(
        (stats.acknowledged_samples, stats.earlier_acknowledged_samples),
        (5, 40)
    );
    assert_eq!(files(&after_crash.path().join("spool")), Vec::<PathBuf>::new());
}

#[test]
fn what_a_stopped_agent_could_not_send_is_sent_by_the_next_under_the_old_id() {
    let (peer, state) = (Peer::start(&[]), TempDir::new().unwrap());
    peer.otherwise(Step::Status(503));
    let mut ids = vec![];
    let mut all = BTreeSet::new();
    for _ in 0..3 {
        let mut agent = Agent::start(config(&peer.url(), state.path()));
        agent.submit(3);
        agent.submit(4);
        ids.push(agent.instance());
        all.extend(agent.submitted.clone());
        let stats = agent.stop_within(Duration::ZERO);
        assert_eq!(stats.spooled_batches, 2 * ids.len() as u64);
        assert!(
            stats
                .trouble
                .is_none_or(|t| t.contains("503") && t.contains("scripted"))
        );
    }
    peer.otherwise(Step::Accept);
    let agent = Agent::start(config(&peer.url(), state.path()));
    let stats = agent.stop();
    assert_eq!(
        (stats.earlier_acknowledged_batches, stats.earlier_acknowledged_samples),
        (6, 21)
    );
    peer.log(|log| {
        assert_eq!(log.samples(), all.into_iter().collect::<Vec<_>>());
        let order: Vec<&str> = log.stored.iter().map(|seen| seen.instance.as_str()).collect();
        assert_eq!(order, [&ids[0], &ids[0], &ids[1], &ids[1], &ids[2], &ids[2]]);
        assert!(ids.iter().all(|id| log.numbers(id) == [1, 2]));
    });
    assert_eq!(files(&state.path().join("spool")), Vec::<PathBuf>::new());
}

#[test]
fn a_backlog_is_sent_several_batches_at_a_time_within_what_the_server_remembers() {
    let (peer, state) = (Peer::start(&[Step::Accept, Step::Stall]), TempDir::new().unwrap());
    let mut agent = Agent::start(config(&peer.url(), state.path()));
    let instance = agent.instance();
    for number in 1..=120 {
        agent.submit(2);
        // One after the other, so that nothing is lost on the way to the spool.
        peer.wait_for("the batch to be spooled", || {
            let stats = agent.shipper.stats();
            stats.spooled_batches + stats.acknowledged_batches >= number
        });
    }
    let submitted: Vec<u64> = agent.submitted.iter().copied().collect();
    // The answer to the second request is held up: the others overtake it, but not too far.
    peer.wait("the others", |log| {
        log.attempts
            .get(1)
            .is_some_and(|held| log.stored.len() as u64 == held.number + 47)
    });
    peer.log(|log| {
        let held = log.attempts[1].number;
        assert_eq!(log.numbers(&instance), (1..=held + 47).collect::<Vec<_>>());
    });
    peer.release();
    let stats = agent.stop();
    assert_eq!((stats.acknowledged_batches, stats.acknowledged_samples), (120, 240));
    peer.log(|log| assert_eq!(log.samples(), submitted));
}

#[test]
fn a_full_spool_drops_its_oldest_and_tells_the_server() {
    let (peer, state) = (Peer::start(&[]), TempDir::new().unwrap());
    peer.otherwise(Step::Status(503));
    let limit = 4000;
    let mut agent = Agent::start(ShipConfig {
        spool_limit_bytes: limit,
        ..config(&peer.url(), state.path())
    });
    let instance = agent.instance();
    for _ in 0..20 {
        agent.submit(100);
        let attempts = peer.log(|log| log.attempts.len());
        peer.wait("an attempt", |log| log.attempts.len() > attempts + 1);
    }
    let bytes: u64 = spool_files(state.path())
        .iter()
        .map(|file| file.metadata().unwrap().len())
        .sum();
    assert!(bytes <= limit + 1000, "{bytes}: the limit and a closing batch");
    let taken = agent.taken;
    peer.otherwise(Step::Accept);
    let stats = agent.stop();
    assert!(stats.lost["spool_dropped"] > 0);
    assert_eq!(stats.lost["spool_dropped"] % 100, 0);
    peer.log(|log| {
        let numbers = log.numbers(&instance);
        assert!(numbers.len() < 20);
        assert_eq!(numbers[0], 1, "what may have reached the server stays");
        assert!(numbers.contains(&20), "the newest stays");
        let stored = log.samples().len() as u64;
        assert_eq!(stored + stats.lost["spool_dropped"], taken);
        assert_eq!(log.newest().unwrap().lost(), taken - stored);
    });
}

#[test]
fn drops_from_an_earlier_run_are_told_under_its_id() {
    let (peer, state) = (Peer::start(&[]), TempDir::new().unwrap());
    peer.otherwise(Step::HangUp);
    let mut agent = Agent::start(config(&peer.url(), state.path()));
    let old = agent.instance();
    for number in 1..=24 {
        agent.submit(100);
        peer.wait("an attempt", |log| log.attempts.len() >= number);
    }
    agent.stop_within(Duration::ZERO);
    let bytes: u64 = spool_files(state.path())
        .iter()
        .map(|file| file.metadata().unwrap().len())
        .sum();

    peer.otherwise(Step::Accept);
    let agent = Agent::start(ShipConfig {
        spool_limit_bytes: bytes / 2,
        ..config(&peer.url(), state.path())
    });
    let stats = agent.stop();
    let lost = stats.earlier_lost["spool_dropped"];
    assert!(lost >= 1000, "{lost}");
    assert!(stats.lost.is_empty());
    peer.log(|log| {
        assert_eq!(log.samples().len() as u64 + lost, 2400);
        let last = log.newest().unwrap();
        assert_eq!((&last.instance, last.number, last.lost()), (&old, 25, lost));
        assert_eq!(last.report["stakeout.samples_taken"], 2400);
        assert_eq!(
            last.report["stakeout.from_unix_nano"],
            last.report["stakeout.until_unix_nano"]
        );
    });
}

#[test]
fn refused_batches_are_kept_apart_and_counted() {
    let (peer, state) = (
        Peer::start(&[Step::Accept, Step::Status(400), Step::Status(413)]),
        TempDir::new().unwrap(),
    );
    let mut agent = Agent::start(config(&peer.url(), state.path()));
    let instance = agent.instance();
    for (attempts, samples) in [(1, 1), (2, 20), (3, 300), (4, 4000)] {
        agent.submit(samples);
        peer.wait("the attempt", |log| log.attempts.len() == attempts);
    }
    let stats = agent.stop();
    assert_eq!(stats.lost, BTreeMap::from([("server_refused", 320)]));
    assert_eq!(stats.acknowledged_samples, 4001);
    let kept = files(&state.path().join("quarantine"));
    let names: Vec<&str> = kept
        .iter()
        .map(|path| path.file_name().unwrap().to_str().unwrap())
        .collect();
    let expected = [
        format!("{instance}-000000000002-20-400.batch"),
        format!("{instance}-000000000003-300-413.batch"),
    ];
    assert_eq!(names, expected);
    peer.log(|log| assert_eq!(log.newest().unwrap().lost(), 320));
}

#[test]
fn samples_that_the_server_leaves_out_are_counted() {
    let (peer, state) = (Peer::start(&[Step::AcceptWithout(3)]), TempDir::new().unwrap());
    let mut agent = Agent::start(config(&peer.url(), state.path()));
    agent.submit(10);
    let stats = agent.stop();
    assert_eq!(stats.lost, BTreeMap::from([("server_refused", 3)]));
    assert_eq!(stats.acknowledged_samples, 7);
    peer.log(|log| {
        assert_eq!(log.samples().len(), 7);
        assert_eq!(log.newest().unwrap().lost(), 3);
    });
}

#[test]
fn damaged_files_are_set_aside_and_their_samples_counted() {
    let (peer, state) = (Peer::start(&[]), TempDir::new().unwrap());
    peer.otherwise(Step::HangUp);
    let mut agent = Agent::start(config(&peer.url(), state.path()));
    let old = agent.instance();
    for samples in [1, 20, 300, 4000] {
        agent.submit(samples);
    }
    agent.stop_within(Duration::ZERO);
    let batches = spool_files(state.path());
    assert_eq!(batches.len(), 4);
    let cut = std::fs::read(&batches[1]).unwrap();
    std::fs::write(&batches[1], &cut[..cut.len() / 2]).unwrap();
    let mut changed = std::fs::read(&batches[2]).unwrap();
    *changed.last_mut().unwrap() ^= 1;
    std::fs::write(&batches[2], changed).unwrap();
    std::fs::write(batches[0].with_extension("part"), "half a batch").unwrap();
    std::fs::write(state.path().join("spool/stray"), "not ours").unwrap();

    peer.otherwise(Step::Accept);
    let stats = Agent::start(config(&peer.url(), state.path())).stop();
    assert_eq!(stats.earlier_lost, BTreeMap::from([("spool_damaged", 320)]));
    assert_eq!(stats.earlier_acknowledged_samples, 4001);
    assert_eq!(files(&state.path().join("quarantine")).len(), 2);
    peer.log(|log| {
        assert_eq!(log.numbers(&old), [1, 4, 5]);
        assert_eq!(log.newest().unwrap().lost(), 320);
    });
    assert_eq!(files(&state.path().join("spool")), [state.path().join("spool/stray")]);
}

#[test]
fn a_disk_that_refuses_writes_costs_nothing_while_the_server_answers() {
    let (peer, state) = (Peer::start(&[]), TempDir::new().unwrap());
    let mut agent = Agent::start(config(&peer.url(), state.path()));
    std::fs::remove_dir_all(state.path().join("spool")).unwrap();
    for _ in 0..3 {
        agent.submit(50);
    }
    let submitted: Vec<u64> = agent.submitted.iter().copied().collect();
    let stats = agent.stop();
    assert_eq!(stats.acknowledged_samples, 150);
    assert!(stats.lost.is_empty());
    peer.log(|log| assert_eq!(log.samples(), submitted));
}

#[test]
fn a_wrong_url_is_named_and_nothing_is_lost() {
    for (step, hint) in [
        (Step::Status(404), "404"),
        (Step::Welcome, "200"),
        (Step::Status(301), "301"),
    ] {
        let (peer, state) = (Peer::start(&[]), TempDir::new().unwrap());
        peer.otherwise(step);
        let mut agent = Agent::start(config(&format!("{}/wrong", peer.url()), state.path()));
        agent.submit(10);
        peer.wait("two attempts", |log| log.attempts.len() >= 2);
        let trouble = agent.shipper.stats().trouble.unwrap();
        assert!(trouble.contains(&peer.url()) && trouble.contains(hint), "{trouble}");
        assert!(trouble.contains("check the server URL"), "{trouble}");
        peer.otherwise(Step::Accept);
        let stats = agent.stop();
        assert_eq!((stats.acknowledged_samples, stats.trouble), (10, None));
        peer.log(|log| assert_eq!(log.attempts[0].path, "/wrong/v1development/profiles"));
    }
}

#[test]
fn a_wrong_token_is_said_and_tried_again() {
    let (peer, state) = (Peer::start(&[]), TempDir::new().unwrap());
    peer.otherwise(Step::Status(401));
    let mut agent = Agent::start(config(&peer.url(), state.path()));
    agent.submit(10);
    peer.wait("two attempts", |log| log.attempts.len() >= 2);
    let trouble = agent.shipper.stats().trouble.unwrap();
    assert!(trouble.contains("401") && trouble.contains("token"), "{trouble}");
    peer.otherwise(Step::Accept);
    assert_eq!(agent.stop().acknowledged_samples, 10);
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let (peer, state) = (Peer::start(&[]), TempDir::new().unwrap());
    // Bound and not listening: connections are refused for as long as the test holds it.
    let nobody = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut agent = Agent::start(config(&format!("http://{nobody}"), state.path()));
    let old = agent.instance();
    agent.submit(10);
    let stats = agent.stop_within(Duration::from_millis(300));
    let trouble = stats.trouble.unwrap();
    assert!(
        trouble.contains(&nobody.to_string()) && trouble.contains("refused"),
        "{trouble}"
    );
    assert_eq!(stats.spooled_batches, 1);
    Agent::start(config(&peer.url(), state.path())).stop();
    peer.log(|log| assert_eq!(log.numbers(&old), [1]));
}

#[test]
fn an_answer_that_does_not_come_is_given_up() {
    let (peer, state) = (Peer::start(&[Step::Silence]), TempDir::new().unwrap());
    let mut agent = Agent::start(ShipConfig {
        request_timeout: Duration::from_millis(200),
        ..config(&peer.url(), state.path())
    });
    agent.submit(10);
    let stats = agent.stop();
    assert_eq!((stats.acknowledged_samples, stats.failed_attempts), (10, 1));
}

#[test]
fn the_server_sets_the_pace() {
    let (peer, state) = (Peer::start(&[Step::Later(600)]), TempDir::new().unwrap());
    let mut agent = Agent::start(config(&peer.url(), state.path()));
    agent.submit(10);
    peer.wait("the first attempt", |log| log.attempts.len() == 1);
    // The end does not wait for ten minutes, but tries once more.
    assert_eq!(agent.stop().acknowledged_samples, 10);
    peer.log(|log| assert_eq!(log.attempts.len(), 2));
}

#[test]
fn a_caller_that_is_too_fast_is_never_held_up() {
    let (peer, state) = (Peer::start(&[]), TempDir::new().unwrap());
    let mut agent = Agent::start(config(&peer.url(), state.path()));
    for _ in 0..400 {
        agent.submit(100);
    }
    let taken = agent.taken;
    let stats = agent.stop();
    assert!(stats.lost["ship_queue_full"] > 0);
    assert_eq!(stats.acknowledged_samples + stats.lost["ship_queue_full"], taken);
    peer.log(|log| {
        let last = log.newest().unwrap();
        assert_eq!(last.lost(), stats.lost["ship_queue_full"]);
        assert_eq!(log.samples().len() as u64, stats.acknowledged_samples);
    });
}

#[test]
fn spooled_batches_are_for_their_owner_only() {
    let (peer, state) = (Peer::start(&[]), TempDir::new().unwrap());
    let agent = Agent::start(config(&peer.url(), state.path()));
    let mode = std::fs::metadata(state.path().join("spool"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700, "batches hold command lines");
    agent.stop();
}

#[test]
fn one_state_folder_serves_one_agent() {
    let (peer, state) = (Peer::start(&[]), TempDir::new().unwrap());
    let first = Shipper::start(config(&peer.url(), state.path())).unwrap();
    let second = Shipper::start(config(&peer.url(), state.path()));
    assert!(matches!(second, Err(ShipError::Busy { .. })));
    drop(first);
}

#[test]
fn what_cannot_work_is_refused_at_the_start() {
    let state = TempDir::new().unwrap();
    let start = |change: fn(&mut ShipConfig, &Path)| {
        let mut config = config("http://127.0.0.1:1", state.path());
        change(&mut config, state.path());
        Shipper::start(config).unwrap_err().to_string()
    };
    let error = start(|config, _| config.server = "127.0.0.1:7373".into());
    assert!(
        error.contains("127.0.0.1:7373") && error.contains("http://HOST:PORT"),
        "{error}"
    );
    let error = start(|config, _| config.token = Some(Token::new("a\nb")));
    assert!(error.contains("token") && !error.contains("a\nb"), "{error}");
    let error = start(|config, dir| config.ca_file = Some(dir.join("none.pem")));
    assert!(error.contains("none.pem"), "{error}");
    let error = start(|config, dir| {
        std::fs::write(dir.join("empty.pem"), "").unwrap();
        config.ca_file = Some(dir.join("empty.pem"));
    });
    assert!(error.contains("no certificate"), "{error}");
    let error = start(|config, dir| {
        std::fs::write(dir.join("file"), "").unwrap();
        config.state_dir = dir.join("file");
    });
    assert!(error.contains("file") && error.contains("--state-dir"), "{error}");
}

#[test]
fn what_is_submitted_after_the_end_is_counted() {
    let (peer, state) = (Peer::start(&[]), TempDir::new().unwrap());
    let agent = Agent::start(config(&peer.url(), state.path()));
    // An empty batch is a report like any other.
    assert_eq!(agent.shipper.submit(Batch::default()), Submitted::Queued);
    assert_eq!(agent.stop().acknowledged_batches, 1);
}
