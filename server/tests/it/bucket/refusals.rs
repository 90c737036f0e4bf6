//! A bucket that cannot be had: the start is refused with one clear line, which holds no secret.

use super::gateway::{BUCKET, Gateway, environment, free_address, root};
use crate::support::Server;
use std::path::Path;
use std::process::Command;

fn refused(place: &str, environment: &[(&str, String)]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_stakeout-server"))
        .args(["--listen", "127.0.0.1:0", "--data", place])
        // What is tried again is told as a warning: the line that counts is the last one.
        .args(["--log", "error"])
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{place}: {text}");
    assert_eq!(text.trim().lines().count(), 1, "{text}");
    text
}

/// The environment with another value of one of its names.
fn with(address: &str, name: &str, value: &str) -> Vec<(&'static str, String)> {
    let mut pairs = environment(address);
    let pair = pairs.iter_mut().find(|(key, _)| *key == name).unwrap();
    value.clone_into(&mut pair.1);
    pairs
}

#[test]
fn wrong_credentials_are_told() {
    let Some(gateway) = Gateway::start() else { return };
    for name in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"] {
        let text = refused(&root("x"), &with(gateway.address(), name, "not-it"));
        assert!(text.contains("s3://") && text.contains("credentials"), "{name}: {text}");
        assert!(!text.contains("not-it") || name == "AWS_ACCESS_KEY_ID", "{text}");
    }
}

#[test]
fn a_missing_bucket_is_told() {
    let Some(gateway) = Gateway::start() else { return };
    let text = refused("s3://no-such-bucket/x", &environment(gateway.address()));
    assert!(
        text.contains("s3://no-such-bucket/x") && text.contains("no such bucket"),
        "{text}"
    );
}

/// Needs no S3 server: nobody is there.
#[test]
fn an_endpoint_that_nobody_serves_is_told() {
    let text = refused(&root("x"), &environment(&free_address()));
    assert!(
        text.contains(&format!("s3://{BUCKET}/x")) && text.contains("reached"),
        "{text}"
    );
}

#[test]
fn a_bucket_that_another_server_has_is_told() {
    let Some(gateway) = Gateway::start() else { return };
    let environment = environment(gateway.address());
    let mut first = Server::start_in(Path::new(&root("x")), &[], &environment).unwrap();
    let text = refused(&root("x"), &environment);
    assert!(text.contains("in use by another stakeout-server"), "{text}");
    let _beside = Server::start_in(Path::new(&root("y")), &[], &environment).unwrap();
    assert!(first.stop());
    let mut second = Server::start_in(Path::new(&root("x")), &[], &environment).unwrap();
    assert!(second.stop());
}
