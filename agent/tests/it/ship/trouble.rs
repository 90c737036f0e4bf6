//! A server or a state folder that does not work is named, and nobody waits for it.

use super::*;

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
