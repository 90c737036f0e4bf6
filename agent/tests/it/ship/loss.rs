//! What is dropped, refused or damaged is counted, and the server is told.

use super::*;

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
