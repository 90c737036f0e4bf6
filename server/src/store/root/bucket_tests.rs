//! That a bucket of a real S3 server keeps the contract of a root, and has one holder at a time.
//!
//! Each test begins another one in a process that is told of the bucket: see the integration tests' `gateway`.

use crate::store::root::bucket::BucketRoot;
use crate::store::root::contract::{Root, Stamp};
use crate::store::root::error::RootError;
use crate::store::root::{contract_tests, reader_tests};
use gateway::{Gateway, in_a_process, root, told_root};
use object_store::path::Path;
use object_store::{ObjectStoreExt as _, PutMode, PutOptions};
use proxy::{Fault, Proxy, Rule};
use std::time::{Duration, Instant};

#[allow(dead_code, reason = "the integration tests use all of it")]
#[path = "../../../tests/it/bucket/gateway.rs"]
mod gateway;
#[allow(dead_code, reason = "the integration tests use all of it")]
#[path = "../../../tests/it/bucket/proxy.rs"]
mod proxy;

fn opened() -> BucketRoot {
    BucketRoot::open(&url::Url::parse(&told_root()).unwrap()).unwrap()
}

#[test]
fn a_bucket_is_a_root() {
    let Some(gateway) = Gateway::start() else { return };
    in_a_process(module_path!(), "this_is_a_root", gateway.address(), &root("contract"));
    in_a_process(module_path!(), "this_is_a_root", gateway.address(), &root(""));
}

#[test]
fn a_bucket_that_is_slow_and_asks_for_fewer_requests_is_a_root() {
    let Some(gateway) = Gateway::start() else { return };
    let delay = Fault::Delay(Duration::from_millis(30));
    let rules = [(100, delay), (100, Fault::SlowDown)].map(|(per_mille, fault)| Rule { per_mille, fault });
    let proxy = Proxy::to(gateway.address(), 1, &rules);
    in_a_process(module_path!(), "this_is_a_root", proxy.address(), &root("contract"));
    let faults = proxy.take_counts().faults;
    assert!(faults.len() == 2, "both were met: {faults:?}");
}

#[test]
#[ignore = "begun by a_bucket_is_a_root and by a_bucket_that_is_slow_and_asks_for_fewer_requests_is_a_root"]
fn this_is_a_root() {
    let root = opened();
    let refused = root.create("early", "x".into()).unwrap_err();
    assert!(refused.to_string().contains("lease"), "without it: {refused}");
    let lock = root.lock().unwrap();
    contract_tests::keeps_the_contract(&root);
    root.create("a/b", reader_tests::CONTENT.into()).unwrap();
    reader_tests::keeps_the_contract(root.reader().as_ref());
    // The bucket itself also has the root of another test process.
    let names = root.names("", &|name| !["a", "c", "lease", "contract"].contains(&name));
    assert!(
        names.as_ref().is_ok_and(Vec::is_empty),
        "left of what was tried: {names:?}"
    );
    drop(lock);
    let refused = root.create("late", "x".into()).unwrap_err();
    assert!(refused.to_string().contains("lease"), "after its end: {refused}");
}

#[test]
fn objects_of_a_bucket_are_the_same_by_each_way() {
    let Some(gateway) = Gateway::start() else { return };
    let (module, root) = (module_path!(), root("fleet/of ours"));
    in_a_process(
        module,
        "these_objects_are_the_same_by_each_way",
        gateway.address(),
        &root,
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "begun by objects_of_a_bucket_are_the_same_by_each_way"]
async fn these_objects_are_the_same_by_each_way() {
    let root = std::sync::Arc::new(opened());
    let here = root.clone();
    let locked = tokio::task::spawn_blocking(move || {
        let lock = here.lock().unwrap();
        here.create("samples/day=1/part", "one".into()).unwrap();
        lock
    });
    let lock = locked.await.unwrap();
    contract_tests::objects_are_the_same_by_each_way(root.as_ref()).await;
    // As the log's entries are put.
    let (log, entry) = (root.table("samples").unwrap(), Path::from("day=1/part"));
    log.table.put(&entry, "two".into()).await.unwrap();
    let again = PutOptions::from(PutMode::Create);
    let refused = log.table.put_opts(&entry, "three".into(), again).await.unwrap_err();
    let exists = RootError::new("x", refused);
    assert!(matches!(exists, RootError::Exists(_)), "{exists:?}");
    tokio::task::spawn_blocking(move || drop(lock)).await.unwrap();
}

#[test]
fn one_server_has_a_bucket_and_the_next_gets_it_when_it_is_released() {
    let Some(gateway) = Gateway::start() else { return };
    in_a_process(module_path!(), "this_has_one_holder", gateway.address(), &root("held"));
}

#[test]
#[ignore = "begun by one_server_has_a_bucket_and_the_next_gets_it_when_it_is_released"]
fn this_has_one_holder() {
    let (first, second) = (opened(), opened());
    let lock = first.lock().unwrap();
    let refused = second.lock().unwrap_err();
    assert!(matches!(refused, RootError::Exists(_)), "{refused:?}");
    let refused = second.create("x", "second".into()).unwrap_err();
    assert!(refused.to_string().contains("lease"), "{refused}");
    first.create("x", "first".into()).unwrap();
    drop(lock);
    let start = Instant::now();
    let _lock = second.lock().unwrap();
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "a lease that was released is free at once"
    );
    second.replace("x", "second".into()).unwrap();
    let refused = first.replace("x", "first".into()).unwrap_err();
    assert!(refused.to_string().contains("lease"), "{refused}");
    assert_eq!(second.reader().whole("x").unwrap(), "second");
}

#[test]
fn a_lease_that_nobody_renews_is_taken_over() {
    let Some(gateway) = Gateway::start() else { return };
    in_a_process(module_path!(), "this_is_taken_over", gateway.address(), &root("left"));
}

#[test]
#[ignore = "begun by a_lease_that_nobody_renews_is_taken_over; waits until it is"]
fn this_is_taken_over() {
    let first = opened();
    let lock = first.lock().unwrap();
    // As by a server of another machine, which was cut off.
    first
        .replace("lease", "holder 0\nhost another\nboot 0\nrenewal 1\n".into())
        .unwrap();
    let second = opened();
    let taken = second.lock().unwrap();
    second.create("x", "second".into()).unwrap();
    let refused = first.create("y", "first".into()).unwrap_err();
    assert!(refused.to_string().contains("lease"), "{refused}");
    drop(lock);
    second.replace("x", "still".into()).unwrap();
    drop(taken);
}

#[test]
fn servers_share_a_bucket_and_one_without_the_flag_is_refused() {
    let Some(gateway) = Gateway::start() else { return };
    in_a_process(module_path!(), "these_share_it", gateway.address(), &root("shared"));
}

#[test]
#[ignore = "begun by servers_share_a_bucket_and_one_without_the_flag_is_refused; waits until they renew the lease"]
fn these_share_it() {
    let (one, other) = (opened().shared(), opened().shared());
    let joined = [one.join().unwrap(), other.join().unwrap()];
    contract_tests::keeps_the_contract(&one);
    one.replace_if("x", &Stamp::default(), "1".into()).unwrap();
    let stamp = one.stamp("x").unwrap();
    other.replace_if("x", &stamp, "2".into()).unwrap();
    let refused = one.replace_if("x", &stamp, "3".into()).unwrap_err();
    assert!(matches!(refused, RootError::Exists(_)), "{refused:?}");
    let refused = opened().lock().unwrap_err();
    assert!(matches!(refused, RootError::Exists(_)), "{refused:?}");
    other.create("y", "still".into()).unwrap();
    drop(joined);
    let refused = one.create("late", "x".into()).unwrap_err();
    assert!(refused.to_string().contains("lease"), "after its end: {refused}");
}

#[test]
fn a_store_that_knows_no_conditions_is_refused_in_words() {
    let Some(gateway) = Gateway::start() else { return };
    for (header, name) in [
        ("if-none-match", "this_does_not_know_if_none_match"),
        ("if-match", "this_does_not_know_if_match"),
    ] {
        let rule = Rule {
            per_mille: 1000,
            fault: Fault::IgnoreCondition(header),
        };
        let proxy = Proxy::to(gateway.address(), 1, &[rule]);
        in_a_process(module_path!(), name, proxy.address(), &root("old"));
    }
}

fn is_refused_for(header: &str) {
    let refused = opened().lock().unwrap_err();
    assert!(matches!(refused, RootError::Other(_)), "{refused:?}");
    let text = refused.to_string();
    assert!(
        text.contains("does not honour conditional puts") && text.contains(header),
        "{text}"
    );
}

#[test]
#[ignore = "begun by a_store_that_knows_no_conditions_is_refused_in_words"]
fn this_does_not_know_if_none_match() {
    is_refused_for("If-None-Match");
}

#[test]
#[ignore = "begun by a_store_that_knows_no_conditions_is_refused_in_words"]
fn this_does_not_know_if_match() {
    is_refused_for("If-Match");
}
