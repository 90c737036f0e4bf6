//! Queries stay within what all of them may take, and give it back.

use super::*;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool};
use http_body_util::Empty;
use stakeout_server::api::query::router_with;
use stakeout_server::query::{Engine, Limits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Every question that counts samples.
const QUESTIONS: &[(&str, &[(&str, &str)])] = &[
    ("flamegraph", &[]),
    ("flamegraph", &[("format", "svg"), ("transform", "merge_recursion")]),
    ("diff", &[("base_from", "now-2h"), ("base_until", "now-1h")]),
    ("top", &[]),
    ("top", &[("by", "thread")]),
    ("heatmap", &[("step", "10s")]),
    ("timeline", &[]),
    ("timeline", &[("before", "50ms"), ("match", "work")]),
    ("series", &[("by", "thread")]),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_needs_more_than_there_is_says_so() {
    let (server, _) = filled_with(recent(), |config| StoreConfig {
        query_memory_bytes: 512,
        ..config
    })
    .await;
    for (path, parameters) in QUESTIONS {
        let (status, code, text) = server.error(path, parameters).await;
        assert_eq!(
            (status, code.as_str()),
            (413, "too_large"),
            "{path} {parameters:?}: {text}"
        );
        assert!(text.contains("narrower selector"), "{path} {parameters:?}: {text}");
    }
    let pool = server.store.snapshot().memory_pool().clone();
    crate::support::eventually("all is given back", async || pool.reserved() == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_others_leave_no_room_for_may_come_again() {
    const ALL: usize = 64 << 20;
    let (server, all) = filled_with(recent(), |config| StoreConfig {
        query_memory_bytes: ALL,
        ..config
    })
    .await;
    let snapshot = server.store.snapshot();
    let pool: &Arc<dyn MemoryPool> = snapshot.memory_pool();
    let other = MemoryConsumer::new("another query").register(pool);
    other.try_grow(ALL - 512).unwrap();
    for (path, parameters) in QUESTIONS {
        let (status, headers, body) = server.get(path, parameters).await;
        let (status, code, text) = error_of(status, &body);
        assert_eq!((status, code.as_str()), (503, "overloaded"), "{path}: {text}");
        assert!(headers.contains_key("retry-after"), "{path}: {text}");
        assert!(text.contains("other queries"), "{path}: {text}");
    }
    let (status, code, text) = server.error("flamegraph", &[]).await;
    assert_eq!((status, code.as_str()), (503, "overloaded"), "{text}");
    assert!(text.contains("other queries"), "{text}");
    drop(other);
    for (path, parameters) in QUESTIONS {
        server.bytes(path, parameters).await;
    }
    assert_eq!(server.json("flamegraph", &[]).await["samples"], all.len());
    // What is left is the tree that the next query needs too.
    let kept = pool.reserved();
    assert!(kept > 0);
    server.json("flamegraph", &[]).await;
    crate::support::eventually("the rest is given back", async || pool.reserved() <= kept).await;
}

/// The only place of a server whose queries may run for an hour.
async fn one_place() -> (std::net::SocketAddr, Server) {
    let (server, _) = filled(recent()).await;
    let engine = Engine::new(Limits {
        running: 1,
        timeout: Duration::from_secs(3600),
        ..Limits::default()
    });
    let app = router_with(engine).with_state(AppState::new(server.store.clone()));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    (address, server)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_ends_when_its_client_leaves() {
    let (address, server) = one_place().await;
    let pool = server.store.snapshot().memory_pool().clone();
    // 800 samples to the power of five: for ever.
    let body = json!({"query": "SELECT count(*) FROM samples a, samples b, samples c, samples d, samples e WHERE a.ts_ns + b.ts_ns > c.ts_ns + d.ts_ns + e.ts_ns"});
    let body = body.to_string();
    let mut client = tokio::net::TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /api/v1/sql HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    client.write_all(head.as_bytes()).await.unwrap();
    crate::support::eventually("the query runs", async || pool.reserved() > 0).await;

    let waits = tokio::spawn(async move { ask(address, "/api/v1/labels/service/values").await });
    drop(client);
    let answer = tokio::time::timeout(Duration::from_secs(60), waits).await;
    assert_eq!(answer.expect("the place is free again").unwrap(), StatusCode::OK);
    crate::support::eventually("its memory is free again", async || pool.reserved() == 0).await;
}

async fn ask(address: std::net::SocketAddr, path: &str) -> StatusCode {
    let stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(hyper_util::rt::TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    let request = Request::get(path)
        .header("host", "x")
        .body(Empty::<bytes::Bytes>::new())
        .unwrap();
    sender.send_request(request).await.unwrap().status()
}

/// The application as it listens.
async fn listening(server: &Server) -> std::net::SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(stakeout_server::api::serve(
        listener,
        server.app.clone(),
        None,
        64,
        std::future::pending(),
    ));
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_not_read_stays_on_the_account_until_its_client_leaves() {
    let (server, _) = filled(recent()).await;
    let address = listening(&server).await;
    let pool = server.store.snapshot().memory_pool().clone();
    // 10,000 rows of 4 kB: far more than what sockets hold.
    let text = "x".repeat(4_000);
    let body = json!({"query": format!("SELECT '{text}', a.ts_ns FROM samples a, samples b")}).to_string();
    for encoding in ["identity", "gzip"] {
        let mut client = tokio::net::TcpStream::connect(address).await.unwrap();
        let head = format!(
            "POST /api/v1/sql HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\naccept-encoding: {encoding}\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        client.write_all(head.as_bytes()).await.unwrap();
        let mut first = [0; 15];
        client.read_exact(&mut first).await.unwrap();
        assert_eq!(&first, b"HTTP/1.1 200 OK");
        if encoding == "identity" {
            // The query is over: this is its answer.
            assert!(pool.reserved() > 20 << 20, "{} bytes", pool.reserved());
            let metrics = crate::support::get(&address.to_string(), "/metrics").await;
            let metrics = String::from_utf8(metrics.body.to_vec()).unwrap();
            let line = metrics
                .lines()
                .find_map(|line| line.strip_prefix("stakeout_query_memory_bytes "));
            assert!(line.unwrap().parse::<usize>().unwrap() > 20 << 20, "{line:?}");
        }
        drop(client);
        crate::support::eventually("all is given back", async || pool.reserved() == 0).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pprof_of_more_stacks_than_there_is_memory_for_is_refused() {
    const ALL: usize = 64 << 20;
    const LEFT: usize = 4 << 20;
    const STACKS: usize = 1_200;
    let server = Server::start_with(|config| StoreConfig {
        query_memory_bytes: ALL,
        ..config
    })
    .await;
    // Their tree is small, but each has a path of its own.
    let common: Vec<String> = (0..300).map(|depth| format!("common{depth}")).collect();
    let from_ns = recent();
    let samples = (0..STACKS).map(|at| Sample {
        ts_ns: from_ns + at as i64,
        service: "db",
        tgid: 1,
        tid: 1,
        thread: "main",
        cpu: 0,
        stack: String::leak(format!("{};leaf{at}", common.join(";"))),
    });
    let batch = Batch {
        node: "a",
        instance: "00000000-0000-4000-8000-00000000000a",
        number: 1,
        from_ns,
        until_ns: from_ns + S,
        period_ns: PERIOD_NS,
        missed_ticks: 0,
        samples: samples.collect(),
    };
    server.ingest(&batch).await;
    assert_eq!(server.json("flamegraph", &[]).await["samples"], STACKS);
    let pool: Arc<dyn MemoryPool> = server.store.snapshot().memory_pool().clone();
    let kept = pool.reserved();
    let other = MemoryConsumer::new("another query").register(&pool);
    other.try_grow(ALL - kept - LEFT).unwrap();
    assert_eq!(server.json("flamegraph", &[]).await["samples"], STACKS);
    let (status, code, text) = server.error("flamegraph", &[("format", "pprof")]).await;
    assert_eq!((status, code.as_str()), (503, "overloaded"), "{text}");
    assert!(text.contains("whole stacks with files and lines need"), "{text}");
    drop(other);
    assert!(!server.bytes("flamegraph", &[("format", "pprof")]).await.is_empty());
    crate::support::eventually("the rest is given back", async || pool.reserved() <= kept).await;
}
