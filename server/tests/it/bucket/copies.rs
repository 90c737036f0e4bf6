//! Stores that go between folders and a bucket by the real binary: over a bad network, cut off and begun again, and
//! while a server has the bucket.

use super::gateway::{Gateway, environment, root};
use super::proxy::{Fault, Proxy, Rule};
use crate::keep::{SAMPLES, Said, Sending, batches_of_one_moment, command, lie_between, run_beside, run_in};
use crate::store::{quiet, rows_of, store_batch};
use crate::support::{Sender, Server, now_ns};
use stakeout_server::store::Store;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

const BATCHES: i64 = 12;
/// Of a command that meets faults.
const TRIES: u32 = 6;

const FAULTS: [Rule; 5] = [
    Rule {
        per_mille: 40,
        fault: Fault::Delay(Duration::from_millis(60)),
    },
    Rule {
        per_mille: 15,
        fault: Fault::SlowDown,
    },
    Rule {
        per_mille: 10,
        fault: Fault::Cut,
    },
    Rule {
        per_mille: 10,
        fault: Fault::LoseAnswer,
    },
    Rule {
        per_mille: 10,
        fault: Fault::HalveAnswer,
    },
];

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Batches of one instance, each in files of its own. Gives what is there by instance.
async fn filled(dir: &Path) -> BTreeMap<String, i64> {
    let store = Store::open(quiet(dir)).await.unwrap();
    let mut sender = Sender::new("node-a", SAMPLES as usize);
    for number in 1..=BATCHES {
        let (rows, id) = rows_of(&mut sender, number, now_ns());
        store_batch(&store, rows, Some(id)).await.unwrap();
    }
    store.close().await;
    BTreeMap::from([(sender.instance, BATCHES)])
}

/// What a fault ends is begun again, as a person does.
async fn until_well(arguments: &[&str], address: &str) -> Said {
    let mut said = run_beside(arguments, &environment(address)).await;
    for _ in 1..TRIES {
        if said.code == Some(0) {
            break;
        }
        println!("{said:?}");
        said = run_beside(arguments, &environment(address)).await;
    }
    said.well()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_goes_to_a_bucket_on_to_another_and_back_over_a_bad_network() {
    let Some(gateway) = Gateway::start() else { return };
    let proxy = Proxy::to(gateway.address(), 3, &FAULTS);
    let dir = tempfile::tempdir().unwrap();
    let [data, back] = ["data", "back"].map(|name| dir.path().join(name));
    let expected = filled(&data).await;
    let (first, second) = (root("moved/first"), root("moved/second"));
    let mut all = Vec::new();
    for (from, to) in [
        (text(&data), first.as_str()),
        (first.as_str(), second.as_str()),
        (second.as_str(), text(&back)),
    ] {
        let said = until_well(&["copy", from, to], proxy.address()).await;
        assert_eq!(said.figure(" samples;"), BATCHES * SAMPLES);
        all.push(said.figure(" files copied") + said.figure(" there already"));
        let checked = run_beside(&["check", to], &environment(gateway.address())).await.well();
        assert!(checked.out.contains(" 0 faults"), "{checked:?}");
    }
    assert!(all[0] > BATCHES && all.iter().all(|files| *files == all[0]), "{all:?}");
    assert!(!proxy.take_counts().faults.is_empty(), "a request met a fault");
    let again = run_beside(&["copy", text(&data), &first], &environment(gateway.address()))
        .await
        .well();
    assert_eq!(
        (again.figure(" files copied"), again.figure(" there already")),
        (0, all[0])
    );
    assert_eq!(batches_of_one_moment(&back).await, expected);
    // The bucket is a store that a server has.
    let mut server = Server::start_in(Path::new(&second), &[], &environment(gateway.address())).unwrap();
    assert!(server.stop());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_to_a_bucket_that_is_killed_goes_on() {
    let Some(gateway) = Gateway::start() else { return };
    let slow = Rule {
        per_mille: 1000,
        fault: Fault::Delay(Duration::from_millis(40)),
    };
    let proxy = Proxy::to(gateway.address(), 5, &[slow]);
    let dir = tempfile::tempdir().unwrap();
    let [data, back] = ["data", "back"].map(|name| dir.path().join(name));
    let expected = filled(&data).await;
    let to = root("cut");
    let arguments = ["copy", text(&data), to.as_str()];
    let mut child = command(&arguments, &environment(proxy.address()))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Until some files are there: each put is a request.
    let mut puts = 0;
    let start = std::time::Instant::now();
    while puts < 12 {
        assert!(start.elapsed() < Duration::from_secs(60), "nothing is put");
        std::thread::sleep(Duration::from_millis(5));
        puts += proxy.take_counts().requests.get("put").copied().unwrap_or_default();
    }
    child.kill().unwrap();
    assert!(!child.wait().unwrap().success(), "it was not over yet");
    let refused = Server::start_in(Path::new(&to), &[], &environment(gateway.address()));
    assert!(refused.is_err_and(|said| said.contains("not finished")));
    let said = run_beside(&arguments, &environment(gateway.address())).await.well();
    assert!(
        said.figure(" there already") > 0 && said.figure(" files copied") > 0,
        "{said:?}"
    );
    run_in(&["check", &to], &environment(gateway.address())).well();
    run_in(&["copy", &to, text(&back)], &environment(gateway.address())).well();
    assert_eq!(batches_of_one_moment(&back).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_that_a_server_has_is_backed_up_and_restored() {
    let Some(gateway) = Gateway::start() else { return };
    let environment = environment(gateway.address());
    let dir = tempfile::tempdir().unwrap();
    let [kept, restored] = ["kept", "restored"].map(|name| dir.path().join(name));
    let (live, far) = (root("live"), root("kept far"));
    let mut server = Server::start_in(Path::new(&live), &[], &environment).unwrap();
    let sending = Sending::to(&server.address);
    sending.until(3).await;
    let before = sending.acknowledged();
    for to in [text(&kept), &far] {
        run_beside(&["backup", &live, to], &environment).await.well();
        run_beside(&["check", to], &environment).await.well();
    }
    let after = sending.end().await;
    assert!(server.stop());
    run_beside(&["restore", &far, text(&restored)], &environment)
        .await
        .well();
    lie_between(&before, &batches_of_one_moment(&restored).await, &after);
    std::fs::remove_dir_all(&restored).unwrap();
    run_beside(&["restore", text(&kept), text(&restored)], &environment)
        .await
        .well();
    lie_between(&before, &batches_of_one_moment(&restored).await, &after);
}
