//! What strangers, pages of other sites and hostile statements may not: on the real application and binary.

use axum::body::Body;
use axum::http::{Request, StatusCode};
use serde_json::{Value, json};
use stakeout_server::api::{AppState, Hosts, app};
use stakeout_server::store::{Store, StoreConfig};
use std::time::Duration;
use tower::ServiceExt;

/// The application without a connection.
struct Server {
    app: axum::Router,
    _dir: tempfile::TempDir,
}

impl Server {
    async fn start() -> Server {
        let dir = tempfile::tempdir().unwrap();
        let config = StoreConfig {
            commit_interval: Duration::from_millis(20),
            min_free_bytes: 0,
            ..StoreConfig::new(dir.path())
        };
        let state = AppState {
            hosts: Hosts::new("127.0.0.1:7373".parse().unwrap(), None, &[]),
            ..AppState::new(Store::open(config).await.unwrap())
        };
        Server {
            app: app(state),
            _dir: dir,
        }
    }

    async fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, Value) {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body.to_owned())).unwrap();
        let answer = self.app.clone().oneshot(request).await.unwrap();
        let status = answer.status();
        let body = axum::body::to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        (status.as_u16(), serde_json::from_slice(&body).unwrap_or_default())
    }

    async fn sql(&self, statement: &str) -> (u16, Value) {
        let body = json!({"query": statement}).to_string();
        self.ask("POST", "/api/v1/sql", &[("content-type", "application/json")], &body)
            .await
    }
}

#[tokio::test]
async fn a_deep_statement_is_refused_in_words_and_the_deepest_allowed_is_answered() {
    let server = Server::start().await;
    let chain = |count: usize| format!("select {}", vec!["1"; count].join("+"));
    let nested = |count: usize| (0..count).fold("1".to_owned(), |inner, _| format!("abs({inner})"));
    // As many steps as may refer to one another, of as many levels as each may have: put together they are one
    // expression.
    let levels = vec!["x"; 80].join("+");
    let steps: Vec<String> = (1..24)
        .map(|step| format!("t{step} as (select {levels} as x from t{})", step - 1))
        .collect();
    let together = format!(
        "with t0 as (select ts_ns as x from samples), {} select max(x) from t23",
        steps.join(", ")
    );
    let cases = format!("select {}1{}", "case when true then ".repeat(40), " end".repeat(40));
    for statement in [
        chain(100),
        format!("explain {}", chain(100)),
        format!("select {}", nested(40)),
        format!("select 1{}", "::int".repeat(90)),
        vec!["select 1"; 90].join(" union all "),
        cases,
    ] {
        let (status, answer) = server.sql(&statement).await;
        assert_eq!(status, 200, "{statement:.80}: {answer}");
    }
    // It may take too long, but not end the server.
    let (status, answer) = server.sql(&together).await;
    assert!(matches!(status, 200 | 400 | 504), "{status} {answer}");
    for statement in [
        chain(2_000),
        format!("explain {}", chain(1_500)),
        format!("select {}", nested(3_000)),
        format!("select 1{}", "::int".repeat(400)),
        vec!["select 1"; 800].join(" union all "),
        format!("select {}1{}", "(".repeat(2_000), ")".repeat(2_000)),
        format!("select {}1", "not ".repeat(5_000)),
        format!("{}select 1", "explain ".repeat(3_000)),
        format!("select 1::{}int{}", "array<".repeat(3_000), ">".repeat(3_000)),
    ] {
        let (status, answer) = server.sql(&statement).await;
        assert_eq!(status, 400, "{statement:.80}: {answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.starts_with("SQL: ") && message.len() < 700, "{message}");
    }
    assert_eq!(server.sql("select 1").await.0, 200);
}

#[tokio::test]
async fn a_column_of_sql_has_one_type_in_json() {
    let server = Server::start().await;
    let statement = "select x, cast(x as bigint unsigned) as y, [x] as z from (values (1), (9007199254740993), (9223372036854775807)) as t(x) order by x";
    let (status, answer) = server.sql(statement).await;
    assert_eq!(status, 200, "{answer}");
    let row = |value: i64| json!([value, value, [value]]);
    assert_eq!(
        answer["rows"],
        json!([row(1), row(9_007_199_254_740_993), row(i64::MAX)])
    );
}

#[tokio::test]
async fn what_is_not_there_is_not_found_and_what_is_there_says_its_methods() {
    let server = Server::start().await;
    for (method, path) in [
        ("GET", "/api/v1/nope"),
        ("POST", "/api/v1/nope"),
        ("GET", "/api"),
        ("GET", "/healthz/"),
        ("GET", "/compare"),
        ("PUT", "/foo.php"),
        ("DELETE", "/download"),
        ("POST", "/v1development/profiles/"),
        ("GET", "//"),
    ] {
        let (status, answer) = server.ask(method, path, &[], "").await;
        let code = answer["error"]["code"].as_str();
        assert_eq!((status, code), (404, Some("not_found")), "{method} {path}: {answer}");
    }
    for (method, path) in [("POST", "/"), ("POST", "/api/v1/labels"), ("DELETE", "/healthz")] {
        let (status, answer) = server.ask(method, path, &[], "").await;
        assert_eq!(status, 405, "{method} {path}: {answer}");
    }
    assert_eq!(server.ask("GET", "/?view=compare", &[], "").await.0, 200);
}

#[tokio::test]
async fn pages_of_others_and_foreign_names_are_refused() {
    let server = Server::start().await;
    let body = r#"{"query":"select 1"}"#;
    let (own, json_type) = (("host", "localhost:7373"), ("content-type", "application/json"));
    for (headers, status, code) in [
        (&[own, json_type][..], 200, None),
        (&[own, json_type, ("origin", "http://localhost:7373")], 200, None),
        (&[own, ("content-type", "application/json; charset=utf-8")], 200, None),
        (
            &[own, ("content-type", "text/plain")],
            415,
            Some("unsupported_media_type"),
        ),
        (&[own], 415, Some("unsupported_media_type")),
        (
            &[own, json_type, ("origin", "http://evil.example")],
            403,
            Some("forbidden"),
        ),
        (&[("host", "evil.example:7373"), json_type], 421, Some("misdirected")),
    ] {
        let (found, answer) = server.ask("POST", "/api/v1/sql", headers, body).await;
        assert_eq!(
            (found, answer["error"]["code"].as_str()),
            (status, code),
            "{headers:?}: {answer}"
        );
    }
    for path in ["/", "/metrics", "/healthz", "/install.sh", "/v1development/profiles"] {
        let (status, _) = server.ask("GET", path, &[("host", "evil.example")], "").await;
        assert_eq!(status, StatusCode::MISDIRECTED_REQUEST.as_u16(), "{path}");
    }
}

/// The binary with two tokens for senders and one for viewers.
fn secured(dir: &std::path::Path) -> crate::support::Server {
    let file = |name: &str, tokens: &str| {
        let path = dir.join(name);
        std::fs::write(&path, tokens).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (ingest, view) = (file("ingest", "of-a\nof-b\n"), file("view", "see-it\n"));
    let arguments = ["--ingest-token-file", &ingest, "--view-token-file", &view];
    crate::support::Server::start(&dir.join("data"), &arguments)
}

async fn asked(
    address: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> crate::support::Answer {
    let mut request = hyper::Request::builder()
        .method(method)
        .uri(path)
        .header("host", address);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = http_body_util::Full::new(bytes::Bytes::from(body.to_owned()));
    crate::support::send(address, request.body(body).unwrap())
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_is_its_beginners_and_numbers_neither_jump_nor_silence() {
    let dir = tempfile::tempdir().unwrap();
    let server = secured(dir.path());
    let mut sender = crate::support::Sender::new("node-a", 3);
    let mut other = crate::support::Sender::new("node-b", 3);
    let instance = sender.instance.clone();
    other.instance.clone_from(&instance);
    let mut sends = async |token: &str, of_other: bool, number: i64| {
        let sender = if of_other { &mut other } else { &mut sender };
        let batch = sender.batch(number, crate::support::now_ns());
        let (bearer, number) = (format!("Bearer {token}"), number.to_string());
        let headers = [
            ("authorization", bearer.as_str()),
            ("stakeout-instance", instance.as_str()),
            ("stakeout-batch", &number),
        ];
        let answer = crate::support::post(&server.address, prost::Message::encode_to_vec(&batch), &headers);
        answer.await.unwrap().status.as_u16()
    };
    for (token, of_other, number, status) in [
        ("of-a", false, 1, 200),
        // Somebody else's token, another node, a number far ahead.
        ("of-b", false, 1 << 62, 400),
        ("of-b", false, 2, 400),
        ("of-a", true, 2, 400),
        ("of-a", false, 1 << 40, 400),
        ("of-a", false, 2, 200),
        // As a spool leaves it that was full.
        ("of-a", false, 900, 200),
        ("of-a", false, 901, 200),
        // Skipped, and never stored: it is not acknowledged.
        ("of-a", false, 5, 400),
        // A repeat is.
        ("of-a", false, 2, 200),
    ] {
        assert_eq!(
            sends(token, of_other, number).await,
            status,
            "{token} {of_other} {number}"
        );
    }
    let statement = r#"{"query":"select node, count(*) from samples group by node"}"#;
    let headers = [("authorization", "Bearer see-it"), ("content-type", "application/json")];
    let answer = asked(&server.address, "POST", "/api/v1/sql", &headers, statement).await;
    let answer: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(answer["rows"], json!([["node-a", 12]]), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sender_may_show_its_token_as_a_password() {
    let dir = tempfile::tempdir().unwrap();
    let server = secured(dir.path());
    let profile = crate::pprof::gzip(&crate::pprof::pprof(&[("main", "main;work", 7)], 10_000_000));
    let until_ns = crate::support::now_ns();
    let from_ns = until_ns - 10_000_000_000;
    let path = format!("/ingest?name=shop%7Bhostname%3Dn%7D&from={from_ns}&until={until_ns}");
    let sends = async |authorization: &str| {
        let request = hyper::Request::post(&path)
            .header("host", &server.address)
            .header("authorization", authorization)
            .body(http_body_util::Full::new(bytes::Bytes::from(profile.clone())));
        let answer = crate::support::send(&server.address, request.unwrap()).await.unwrap();
        answer.status.as_u16()
    };
    // any:of-a, x:of-b, a viewer's token, a wrong one, one that is no pair.
    let (right, wrong) = ("Basic YW55Om9mLWE=", "Basic MTpndWVzcw==");
    for (authorization, status) in [
        (right, 200),
        ("basic eDpvZi1i", 200),
        ("Bearer of-a", 200),
        ("Basic OnNlZS1pdA==", 401),
        (wrong, 401),
        ("Basic of-a", 401),
    ] {
        assert_eq!(sends(authorization).await, status, "{authorization}");
    }
    // It does not let anybody read.
    let headers = [("authorization", "Basic OnNlZS1pdA==")];
    let answer = asked(&server.address, "GET", "/api/v1/labels", &headers, "").await;
    assert_eq!(answer.status, 401);
    let mut statuses = std::collections::BTreeSet::new();
    for _ in 0..40 {
        statuses.insert(sends(wrong).await);
    }
    assert_eq!(statuses, [401, 429].into());
    assert_eq!(sends(right).await, 200, "it was right before from here");
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_end_guesses_wait_and_secrets_are_read_again() {
    use std::os::unix::fs::MetadataExt;
    let dir = tempfile::tempdir().unwrap();
    let server = secured(dir.path());
    let address = server.address.as_str();
    for (path, most) in [
        ("data", 0o700),
        ("data/lock", 0o600),
        ("data/samples/_delta_log", 0o700),
    ] {
        let mode = std::fs::metadata(dir.path().join(path)).unwrap().mode() & 0o777;
        assert_eq!(mode, most, "{path}");
    }
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let log_in = async |token: &str| {
        let answer = asked(address, "POST", "/login", &form, &format!("token={token}&next=/")).await;
        let cookie = answer
            .headers
            .get("set-cookie")
            .map(|cookie| cookie.to_str().unwrap().to_owned());
        (
            answer.status.as_u16(),
            cookie.unwrap_or_default().split(';').next().unwrap().to_owned(),
        )
    };
    let sees = async |cookie: &str| {
        let answer = asked(address, "GET", "/api/v1/labels", &[("cookie", cookie)], "").await;
        answer.status.as_u16()
    };
    let ((status, one), (_, two)) = (log_in("see-it").await, log_in("see-it").await);
    assert!(status == 303 && one != two && one.len() > 64, "{one} {two}");
    assert_eq!((sees(&one).await, sees(&two).await), (200, 200));
    assert_eq!(
        asked(address, "POST", "/logout", &[("cookie", &one)], "").await.status,
        303
    );
    assert_eq!((sees(&one).await, sees(&two).await), (401, 200));
    let large = format!("token={}", "x".repeat(9_000));
    assert_eq!(asked(address, "POST", "/login", &form, &large).await.status, 413);
    // Guesses: some are refused, then all must wait; who was right before from here need not.
    let mut statuses = std::collections::BTreeMap::new();
    for guess in 0..40 {
        let bearer = format!("Bearer guess-{guess}");
        let answer = asked(address, "GET", "/api/v1/labels", &[("authorization", &bearer)], "").await;
        if answer.status == 429 {
            assert!(answer.headers.contains_key("retry-after"));
        }
        *statuses.entry(answer.status.as_u16()).or_insert(0) += 1;
    }
    assert!(statuses[&401] >= 20 && statuses[&429] >= 10, "{statuses:?}");
    let mut forms = Vec::new();
    for _ in 0..30 {
        forms.push(log_in("guess").await.0);
    }
    assert!(forms.contains(&429), "{forms:?}");
    let known = asked(
        address,
        "GET",
        "/api/v1/labels",
        &[("authorization", "Bearer see-it")],
        "",
    )
    .await;
    assert_eq!(known.status, 200);
    // Another token: the old one's session ends with it.
    std::fs::write(dir.path().join("view"), "see-it-anew\n").unwrap();
    server.hang_up();
    crate::support::eventually("the session has ended", async || sees(&two).await == 401).await;
    let metrics = async || {
        let answer = asked(
            address,
            "GET",
            "/metrics",
            &[("authorization", "Bearer see-it-anew")],
            "",
        )
        .await;
        (answer.status.as_u16(), String::from_utf8(answer.body.to_vec()).unwrap())
    };
    crate::support::eventually("the new token is let in", async || metrics().await.0 == 200).await;
    let text = metrics().await.1;
    for line in [
        "stakeout_build_info{version=\"",
        "# TYPE stakeout_http_request_seconds histogram",
        "stakeout_http_request_seconds_bucket{",
        "door=\"view\"",
        "# TYPE stakeout_store_commit_seconds histogram",
        "stakeout_panics_total 0",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert!(!text.contains("milliseconds"));
}

#[tokio::test]
async fn the_server_is_not_ready_while_nothing_can_be_stored() {
    let server = Server::start().await;
    let ready = async || server.ask("GET", "/readyz", &[], "").await.0;
    assert_eq!(ready().await, 200);
    let (there, away) = (server._dir.path().join("tmp"), server._dir.path().join("away"));
    std::fs::rename(&there, &away).unwrap();
    crate::support::eventually("it is not ready", async || ready().await == 503).await;
    std::fs::rename(&away, &there).unwrap();
    crate::support::eventually("it is ready again", async || ready().await == 200).await;
}
