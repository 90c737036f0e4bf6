//! The real binary: exactly once over kill -9, refusals at the start, tokens, many connections.

use crate::support::{Sender, Server, get, now_ns, post, post_batch, send};
use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use std::collections::BTreeMap;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[tokio::test(flavor = "multi_thread")]
async fn killed_again_and_again_every_acknowledged_sample_is_stored_once() {
    const SENDERS: usize = 4;
    const ROUNDS: u64 = 5;
    const SAMPLES: usize = 20;
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::start(dir.path(), &[]);
    let address = Arc::new(Mutex::new(server.address.clone()));
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let senders: Vec<_> = (0..SENDERS)
        .map(|index| {
            let (address, stop) = (address.clone(), stop.clone());
            tokio::spawn(async move {
                let mut sender = Sender::new(&format!("node-{index}"), SAMPLES);
                let mut number = 0;
                // As an agent does: each batch is repeated until it is acknowledged; the last one too.
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    number += 1;
                    let batch = sender.batch(number, now_ns());
                    loop {
                        let to = address.lock().unwrap().clone();
                        match post_batch(&to, &sender, number, &batch).await {
                            Ok(answer) if answer.status == 200 => break,
                            Ok(answer) => assert!(answer.status.is_server_error(), "{answer:?}"),
                            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
                        }
                    }
                }
                (sender.instance.clone(), number)
            })
        })
        .collect();
    for round in 0..ROUNDS {
        // Not a wait for anything: the kill shall fall at different points of a commit.
        tokio::time::sleep(Duration::from_millis(500 + round * 83)).await;
        server.kill();
        server = Server::start(dir.path(), &[]);
        *address.lock().unwrap() = server.address.clone();
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let mut acknowledged = BTreeMap::new();
    for sender in senders {
        let (instance, number) = sender.await.unwrap();
        acknowledged.insert(instance, number);
    }
    assert!(acknowledged.values().all(|number| *number > 3), "{acknowledged:?}");
    assert!(server.stop(), "SIGTERM ends the server well");
    let store = stakeout_server::store::Store::open(stakeout_server::store::StoreConfig {
        min_free_bytes: 0,
        ..stakeout_server::store::StoreConfig::new(dir.path())
    })
    .await
    .unwrap();
    let stored: BTreeMap<String, i64> = store
        .nodes()
        .into_iter()
        .map(|node| (node.last.instance, node.samples_stored))
        .collect();
    let expected: BTreeMap<String, i64> = acknowledged
        .into_iter()
        .map(|(instance, number)| (instance, number * SAMPLES as i64))
        .collect();
    assert_eq!(stored, expected);
    // The table itself, by node and without the ledger: as many rows, and no two alike.
    let session = store.snapshot().session();
    let query = "SELECT count(*) AS n, count(DISTINCT concat(node, ts_ns, '/', tid)) AS d FROM samples";
    let batch = session.sql(query).await.unwrap().collect().await.unwrap().remove(0);
    let value = |column: usize| {
        use arrow::array::AsArray;
        batch
            .column(column)
            .as_primitive::<arrow::datatypes::Int64Type>()
            .value(0)
    };
    assert_eq!((value(0), value(1)), (expected.values().sum(), expected.values().sum()));
    store.close().await;
}

fn refused(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_stakeout-server"))
        .args(arguments)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{arguments:?}: {text}");
    text
}

#[test]
fn the_start_is_refused_with_one_clear_line() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let data = data.to_str().unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = port.local_addr().unwrap().to_string();
    let file = dir.path().join("file");
    std::fs::write(&file, "not a directory").unwrap();
    let file = file.to_str().unwrap();
    let free = "127.0.0.1:0";
    let cases: [(&[&str], &str); 8] = [
        (&["--listen", &taken, "--data", data], "in use"),
        (&["--listen", free, "--data", file], "--data"),
        (&["--listen", free, "--data", "/proc/stakeout"], "--data"),
        (&["--listen", free, "--data", "ftp://bucket/x"], "no such place"),
        (&["--listen", "0.0.0.0:0", "--data", data], "--insecure-no-tls"),
        (
            &["--listen", "0.0.0.0:0", "--data", data, "--insecure-no-tls"],
            "--insecure-no-auth",
        ),
        (
            &["--listen", free, "--data", data, "--tls-cert", file, "--tls-key", file],
            "PEM",
        ),
        (
            &["--listen", free, "--data", data, "--view-token-file", "/nonexistent"],
            "--view-token-file",
        ),
    ];
    for (arguments, expected) in cases {
        let text = refused(arguments);
        assert!(text.contains(expected), "{arguments:?}: {text}");
        assert_eq!(text.trim().lines().count(), 1, "{text}");
    }
    let _running = Server::start(dir.path(), &[]);
    let text = refused(&["--listen", free, "--data", dir.path().to_str().unwrap()]);
    assert!(text.contains("in use by another stakeout-server"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_open_one_door_each() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, token: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, token).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (ingest, view) = (file("ingest", "send-it"), file("view", "see-it"));
    let server = Server::start(
        &dir.path().join("data"),
        &["--ingest-token-file", &ingest, "--view-token-file", &view],
    );
    let address = server.address.as_str();
    let ask = async |path: &str, headers: &[(&str, &str)]| {
        let mut request = Request::get(path).header("host", address);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        send(address, request.body(Full::<Bytes>::default()).unwrap())
            .await
            .unwrap()
    };
    for open in ["/healthz", "/readyz"] {
        assert_eq!(ask(open, &[]).await.status, 200, "{open}");
    }
    let (sending, seeing) = (("authorization", "Bearer send-it"), ("authorization", "Bearer see-it"));
    for path in ["/api/v1/nodes", "/metrics", "/"] {
        let answer = ask(path, &[]).await;
        assert_eq!(
            (answer.status.as_u16(), answer.error_code().as_str()),
            (401, "unauthorized"),
            "{path}"
        );
        assert_eq!(ask(path, &[sending]).await.status, 401, "{path}");
        assert_eq!(ask(path, &[seeing]).await.status, 200, "{path}");
    }
    assert_eq!(ask("/api/v1/ingest-check", &[sending]).await.status, 204);
    assert_eq!(ask("/api/v1/ingest-check", &[seeing]).await.status, 401);
    assert_eq!(ask("/api/v1/ingest-check", &[]).await.status, 401);
    let batch = prost::Message::encode_to_vec(&Sender::new("node-a", 3).batch(1, now_ns()));
    assert_eq!(post(address, batch.clone(), &[]).await.unwrap().status, 401);
    assert_eq!(post(address, batch.clone(), &[seeing]).await.unwrap().status, 401);
    assert_eq!(post(address, batch, &[sending]).await.unwrap().status, 200);
    // In a browser: to the form, and by a link with the token to a cookie.
    let html = ("accept", "text/html,*/*");
    let answer = ask("/?query=%7B%7D", &[html]).await;
    assert_eq!(answer.status, 303);
    assert_eq!(answer.headers["location"], "/login?next=%2F%3Fquery%3D%257B%257D");
    let answer = ask("/?from=now-1h&token=see-it", &[html]).await;
    assert_eq!(
        (answer.status.as_u16(), answer.headers["location"].to_str().unwrap()),
        (303, "/?from=now-1h")
    );
    let cookie = answer.headers["set-cookie"].to_str().unwrap();
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict") && !cookie.contains("see-it"),
        "{cookie}"
    );
    let cookie = cookie.split(';').next().unwrap();
    assert_eq!(ask("/api/v1/nodes", &[("cookie", cookie)]).await.status, 200);
    assert_eq!(
        ask("/api/v1/nodes", &[("cookie", "stakeout_view=see-it")]).await.status,
        401
    );
    let page = ask("/", &[("cookie", cookie)]).await;
    let policy = page.headers["content-security-policy"].to_str().unwrap();
    assert!(
        policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
        "{policy}"
    );
    assert!(!policy.contains("unsafe"), "{policy}");
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_connections_do_no_harm() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        },
    );
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::start(dir.path(), &["--max-connections", "500"]);
    let address = server.address.clone();
    // Beyond the server's room and the kernel's queue connections are refused or wait: both are fine.
    let connects = (0..10_000).map(|_| {
        let address = address.clone();
        tokio::spawn(async move {
            let connect = tokio::net::TcpStream::connect(address);
            tokio::time::timeout(Duration::from_secs(5), connect).await.ok()?.ok()
        })
    });
    let connects: Vec<_> = connects.collect();
    let mut idle = Vec::new();
    for connect in connects {
        idle.extend(connect.await.unwrap());
    }
    assert!(idle.len() >= 500, "{}", idle.len());
    drop(idle);
    crate::support::eventually("the server answers", async || {
        let request = Request::get("/healthz")
            .header("host", &address)
            .body(Full::<Bytes>::default())
            .unwrap();
        send(&address, request).await.is_ok_and(|answer| answer.status == 200)
    })
    .await;
    let mut sender = Sender::new("node-a", 5);
    let batch = sender.batch(1, now_ns());
    assert_eq!(post_batch(&address, &sender, 1, &batch).await.unwrap().status, 200);
    assert!(server.stop());
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_are_handed_out_with_their_checksum() {
    let dir = tempfile::tempdir().unwrap();
    let agents = dir.path().join("agents");
    std::fs::create_dir(&agents).unwrap();
    std::fs::write(agents.join("stakeout-agent-linux-aarch64"), b"an agent").unwrap();
    let server = Server::start(&dir.path().join("data"), &["--agent-dir", agents.to_str().unwrap()]);
    let address = server.address.as_str();
    let binary = get(address, "/download/stakeout-agent-linux-aarch64").await;
    assert_eq!(
        (binary.status.as_u16(), binary.body.as_ref()),
        (200, b"an agent".as_slice())
    );
    let checksum = get(address, "/download/stakeout-agent-linux-aarch64.sha256").await;
    let text = String::from_utf8(checksum.body.to_vec()).unwrap();
    assert_eq!(
        text,
        "647936ec3e40783d8d86fad9d2d8acfac4613dee5c3eb516ef433fed532f8d86  stakeout-agent-linux-aarch64\n"
    );
    for missing in [
        "stakeout-agent-linux-x86_64",
        "stakeout-agent-linux-sparc",
        "..%2Fdata%2Flock",
    ] {
        let answer = get(address, &format!("/download/{missing}")).await;
        assert_eq!(
            (answer.status.as_u16(), answer.error_code().as_str()),
            (404, "not_found"),
            "{missing}"
        );
    }
    let info = get(address, "/api/v1/info").await.json();
    assert_eq!(
        info["install_command"],
        format!("curl -fsSL http://{address}/install.sh | sudo sh")
    );
    assert_eq!(info["agent_download"], true);
    // As cargo names the folder of what it builds.
    let folder = std::path::Path::new(env!("CARGO_BIN_EXE_stakeout-server"))
        .parent()
        .unwrap();
    assert_eq!(info["build_profile"], folder.file_name().unwrap().to_str().unwrap());
}
