//! Several real servers on one bucket, behind a bad network, killed again and again: a batch of which each try goes to
//! another server is stored once, and every server says so.

use super::gateway::{Gateway, environment, root};
use super::killed::{EACH_ONCE, FAULTS, SENDERS, acknowledged, ledger, sends, sql, start};
use super::proxy::Proxy;
use crate::keep::run_in;
use crate::support::{Server, eventually};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const SERVERS: usize = 3;
const ROUNDS: usize = 12;

#[tokio::test(flavor = "multi_thread")]
async fn killed_behind_a_bad_network_several_servers_have_every_acknowledged_sample_once() {
    let Some(gateway) = Gateway::start() else { return };
    let proxy = Proxy::to(gateway.address(), 11, &FAULTS);
    let place = root("fleet/shared");
    let begin = || start(&place, &["--shared"], proxy.address());
    let mut servers: Vec<Server> = (0..SERVERS).map(|_| begin()).collect();
    let addresses: Vec<String> = servers.iter().map(|server| server.address.clone()).collect();
    let addresses = Arc::new(Mutex::new(addresses));
    let stop = Arc::new(AtomicBool::new(false));
    let sending: Vec<_> = (0..SENDERS)
        .map(|index| tokio::spawn(sends(index, addresses.clone(), stop.clone())))
        .collect();
    for round in 0..ROUNDS {
        // Not a wait for anything: the kill shall fall at different points of a commit.
        tokio::time::sleep(Duration::from_millis(700 + round as u64 * 83)).await;
        let server = &mut servers[round % SERVERS];
        server.kill();
        *server = begin();
        addresses.lock().unwrap()[round % SERVERS].clone_from(&server.address);
    }
    stop.store(true, Relaxed);
    let mut sent = Vec::new();
    for sending in sending {
        sent.push(sending.await.unwrap());
    }
    proxy.set(&[]);
    let (by_instance, all) = acknowledged(&sent);
    for server in &servers {
        let address = server.address.as_str();
        eventually("every server has what any of them acknowledged", async || {
            sql(address, EACH_ONCE).await == all
        })
        .await;
    }
    for server in &mut servers {
        assert!(server.stop(), "SIGTERM ends a server well");
    }
    // And so has one that is started now.
    let server = start(&place, &["--shared"], gateway.address());
    assert_eq!(sql(&server.address, EACH_ONCE).await, all);
    assert_eq!(ledger(&server.address).await, by_instance);
}

#[test]
fn a_server_without_the_flag_is_refused_while_others_share_a_bucket_and_the_other_way_round() {
    let Some(gateway) = Gateway::start() else { return };
    let environment = environment(gateway.address());
    let begin = |flags: &[&str]| Server::start_in(Path::new(&root("x")), flags, &environment);
    let mut alone = begin(&[]).unwrap();
    let refused = begin(&["--shared"]).unwrap_err();
    assert!(refused.contains("in use by another stakeout-server"), "{refused}");
    assert!(alone.stop(), "it releases the lease");
    let mut shared = [begin(&["--shared"]).unwrap(), begin(&["--shared"]).unwrap()];
    let refused = begin(&[]).unwrap_err();
    assert!(refused.contains("in use by another stakeout-server"), "{refused}");
    // Whoever only reads takes no lease; whoever copies there has to have the bucket alone.
    let (place, dir) = (root("x"), tempfile::tempdir().unwrap());
    let copied = dir.path().join("copied").display().to_string();
    run_in(&["check", &place], &environment).well();
    run_in(&["copy", &place, &copied], &environment).well();
    let refused = run_in(&["copy", &copied, &place], &environment);
    assert!(
        refused.code == Some(1) && refused.err.contains("a stakeout-server has it"),
        "{refused:?}"
    );
    for server in &mut shared {
        assert!(server.stop());
    }
}
