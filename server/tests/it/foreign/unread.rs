//! Whoever sends all of a body before looking for an answer sees that it is refused.

use crate::ingest::{App, grpc};
use crate::support::{Sender, get, now_ns};
use prost::Message;
use stakeout_server::ingest::IngestConfig;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const BODY_BYTES: usize = 24 << 20;

async fn small() -> App {
    App::start_with(IngestConfig {
        max_body_bytes: 1 << 20,
        ..IngestConfig::default()
    })
    .await
}

/// Reads until this is there.
async fn read_until(stream: &mut TcpStream, what: &str) -> String {
    let mut read = Vec::new();
    let all = async {
        while !String::from_utf8_lossy(&read).contains(what) {
            assert_ne!(stream.read_buf(&mut read).await.unwrap(), 0, "closed without {what:?}");
        }
    };
    tokio::time::timeout(Duration::from_secs(30), all).await.unwrap();
    String::from_utf8_lossy(&read).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_too_large_is_refused_after_it_was_sent() {
    let app = small().await;
    let head = "POST /v1development/profiles HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-protobuf\r\n";
    let whole = vec![0x12; BODY_BYTES / 24];
    for (how, framing) in [
        ("announced", format!("content-length: {BODY_BYTES}\r\n\r\n")),
        ("in pieces", "transfer-encoding: chunked\r\n\r\n".to_owned()),
    ] {
        let mut stream = TcpStream::connect(&app.address).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(framing.as_bytes()).await.unwrap();
        for _ in 0..24 {
            let sent = async {
                if how == "in pieces" {
                    stream.write_all(format!("{:x}\r\n", whole.len()).as_bytes()).await?;
                }
                stream.write_all(&whole).await?;
                match how {
                    "in pieces" => stream.write_all(b"\r\n").await,
                    _ => Ok(()),
                }
            };
            sent.await.unwrap_or_else(|error| panic!("{how}: {error}"));
        }
        if how == "in pieces" {
            stream.write_all(b"0\r\n\r\n").await.unwrap();
        }
        let told = read_until(&mut stream, "the body is larger than 1048576 bytes").await;
        assert!(told.starts_with("HTTP/1.1 413 "), "{how}: {told}");
        // The connection can be used again.
        stream
            .write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
            .await
            .unwrap();
        read_until(&mut stream, "HTTP/1.1 200 OK").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_first_need_not_send_what_is_too_large() {
    let app = small().await;
    let mut stream = TcpStream::connect(&app.address).await.unwrap();
    let head = format!(
        "POST /v1development/profiles HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-protobuf\r\n\
         content-length: {BODY_BYTES}\r\nexpect: 100-continue\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let told = read_until(&mut stream, "the body is larger than 1048576 bytes").await;
    assert!(told.starts_with("HTTP/1.1 413 "), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_too_large_is_refused_for_good_and_shown() {
    let app = small().await;
    let batch = Sender::new("node-a", 5).batch(1, now_ns()).encode_to_vec();
    assert_eq!(grpc(&app.address, &[], &batch).await.0, "0", "a smaller one is taken");
    let (status, _) = grpc(&app.address, &[], &vec![0x12; 2 << 20]).await;
    let resource_exhausted = "8";
    assert_eq!(status, resource_exhausted);
    let nodes = get(&app.address, "/api/v1/nodes").await.json();
    let told = nodes["nodes"].as_array().unwrap().iter();
    let refusal = told
        .map(|node| &node["refusals"][0])
        .find(|refusal| refusal.is_object())
        .unwrap();
    assert_eq!(
        (&refusal["reason"], &refusal["count"]),
        (&"too_large".into(), &1.into()),
        "{nodes}"
    );
    assert_eq!(refusal["message"], "the message is larger than 1048576 bytes");
}
