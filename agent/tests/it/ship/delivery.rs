//! Everything arrives once, across failures, crashes and restarts.

use super::*;

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
    let (refusing, state) = (Peer::start(&[]), TempDir::new().unwrap());
    refusing.otherwise(Step::Status(503));
    let mut ids = vec![];
    let mut all = BTreeSet::new();
    for _ in 0..3 {
        let mut agent = Agent::start(config(&refusing.url(), state.path()));
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
    // Another one: a stopped agent's request may still lie before the first, and be answered only now.
    let peer = Peer::start(&[]);
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
