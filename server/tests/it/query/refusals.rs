//! What cannot be asked is refused with a reason.

use super::*;

/// Path, parameters, the error's code, and what its text has to say.
type Bad = (
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static str,
    &'static str,
);

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_is_explained() {
    let server = Server::start().await;
    let cases: [Bad; 36] = [
        (
            "series",
            &[("step", "90000d")],
            "bad_parameter",
            "`step` is no duration of 1ms to 400d",
        ),
        (
            "timeline",
            &[("before", "20000d"), ("match", "x")],
            "bad_parameter",
            "`before` is no duration of 1ms to 400d",
        ),
        (
            "flamegraph",
            &[("except_from", "now-10m")],
            "bad_parameter",
            "`except_until` is missing",
        ),
        (
            "diff",
            &[("base_except_from", "now-2h"), ("base_except_until", "now")],
            "bad_parameter",
            "leave nothing of the window",
        ),
        (
            "top",
            &[("except_from", "now"), ("except_until", "now-10m")],
            "bad_time",
            "is after `except_until`",
        ),
        (
            "flamegraph",
            &[("query", "{service=kubelet}")],
            "bad_query",
            "position 10: expected a value in quotes",
        ),
        (
            "flamegraph",
            &[("query", "{servcie=\"a\"}")],
            "bad_query",
            "labels are node, service",
        ),
        (
            "flamegraph",
            &[("query", "{node=~\"((a{100}){100}){100}\"}")],
            "bad_query",
            "regex too large",
        ),
        (
            "flamegraph",
            &[("query", "{node=~\"(\"}")],
            "bad_query",
            "unclosed group",
        ),
        (
            "flamegraph",
            &[("from", "now"), ("until", "now-1h")],
            "bad_time",
            "is after `until`",
        ),
        ("flamegraph", &[("from", "yesterday")], "bad_time", "`from` is no time"),
        (
            "flamegraph",
            &[("form", "svg")],
            "bad_parameter",
            "unknown parameter `form`",
        ),
        (
            "flamegraph",
            &[("format", "png")],
            "bad_parameter",
            "one of json, svg, collapsed, pprof, speedscope",
        ),
        (
            "flamegraph",
            &[("match", "(")],
            "bad_query",
            "the regular expression of `match`",
        ),
        (
            "flamegraph",
            &[("min_share", "2")],
            "bad_parameter",
            "a share from 0 to below 1",
        ),
        (
            "flamegraph",
            &[("min_share", "NaN")],
            "bad_parameter",
            "a share from 0 to below 1",
        ),
        ("flamegraph", &[("transform", "x")], "bad_parameter", "merge_recursion"),
        (
            "flamegraph",
            &[("type", "a\nb")],
            "bad_parameter",
            "without control characters",
        ),
        (
            "flamegraph",
            &[("from", "now-1h"), ("from", "now-2h")],
            "bad_parameter",
            "repeated parameter `from`",
        ),
        ("series", &[("step", "1ms")], "bad_parameter", "at most 5000"),
        ("series", &[("step", "abc")], "bad_parameter", "`step` is no duration"),
        ("series", &[("by", "colour")], "bad_parameter", "one of node, service"),
        ("series", &[("limit", "0")], "bad_parameter", "a number from 1 to 10000"),
        (
            "series",
            &[("match", "(")],
            "bad_query",
            "regular expression of `match`",
        ),
        (
            "series",
            &[("match_frame", "main")],
            "bad_parameter",
            "KIND,MODULE,FUNCTION",
        ),
        (
            "series",
            &[("match_path", "native,m,f;")],
            "bad_parameter",
            "from the root on",
        ),
        (
            "flamegraph",
            &[("match", "f"), ("match_frame", "native,m,f")],
            "bad_parameter",
            "`match` and `match_frame` at once",
        ),
        (
            "top",
            &[("match", "f"), ("base_from", "now-2h"), ("base_until", "now-1h")],
            "bad_parameter",
            "of one window",
        ),
        ("top", &[("by", "colour")], "bad_parameter", "function, or one of"),
        ("diff", &[], "bad_parameter", "nothing to compare with"),
        (
            "diff",
            &[("base_from", "now"), ("base_until", "now-1h")],
            "bad_time",
            "`base_from`",
        ),
        (
            "diff",
            &[("base_from", "now-2h"), ("normalize", "x")],
            "bad_parameter",
            "rate, share, absolute",
        ),
        (
            "diff",
            &[("base_from", "now-2h"), ("confidence", "1")],
            "bad_parameter",
            "a share from 0.8 to 0.999",
        ),
        (
            "top",
            &[("base_from", "now-2h"), ("confidence", "NaN")],
            "bad_parameter",
            "a share from 0.8 to 0.999",
        ),
        (
            "diff",
            &[("base_from", "now-2h"), ("measure", "x")],
            "bad_parameter",
            "total, self",
        ),
        (
            "top",
            &[("confidence", "0.9")],
            "bad_parameter",
            "nothing to compare with",
        ),
    ];
    for (path, parameters, code, text) in cases {
        let (status, answer, message) = server.error(path, parameters).await;
        assert_eq!(
            (status, answer.as_str()),
            (400, code),
            "{path} {parameters:?}: {message}"
        );
        assert!(message.contains(text), "{path} {parameters:?}: {message}");
    }
    assert_eq!(server.error("labels/colour/values", &[]).await.0, 404);

    // A window without data is an answer, not an error.
    let empty = server.json("flamegraph", &[("match", "x")]).await;
    assert_eq!(
        (&empty["samples"], &empty["nodes"]["total"], &empty["match"]["share"]),
        (&json!(0), &json!([0]), &json!(0.0))
    );
    for format in ["svg", "collapsed", "pprof", "speedscope"] {
        server.bytes("flamegraph", &[("format", format)]).await;
    }
    for format in ["json", "svg", "collapsed"] {
        server
            .bytes(
                "diff",
                &[("base_from", "now-3h"), ("base_until", "now-2h"), ("format", format)],
            )
            .await;
    }
    server.json("series", &[]).await;
    server.json("top", &[]).await;
    server.json("top", &[("by", "pod"), ("base_from", "now-3h")]).await;
    server.json("labels/pod/values", &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sql_reads_and_never_writes() {
    let (server, all) = filled(recent()).await;
    let (status, body) = server
        .sql("SELECT service, count(*) AS n, sum(value) FROM samples GROUP BY service ORDER BY service")
        .await;
    assert_eq!(status, StatusCode::OK, "{}", String::from_utf8_lossy(&body));
    let answer: Value = serde_json::from_slice(&body).unwrap();
    let of = |service: &str| all.iter().filter(|(_, s)| s.service == service).count() as i64;
    let row = |service: &str| json!([service, of(service), of(service) * PERIOD_NS]);
    assert_eq!(answer["rows"], json!([row("db"), row("kubelet"), row("nginx")]));
    assert_eq!(answer["columns"][0], json!({"name": "service", "type": "string"}));
    assert_eq!(answer["complete"], true);

    let (_, body) = server.sql("SELECT stack_id, frames FROM stacks LIMIT 1").await;
    let answer: Value = serde_json::from_slice(&body).unwrap();
    assert!(
        answer["rows"][0][0].is_i64() && answer["rows"][0][1][0].is_i64(),
        "ids are exact: {answer}"
    );
    let (_, body) = server.sql("SELECT a.ts_ns FROM samples a, samples b").await;
    let answer: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(
        (answer["rows"].as_array().unwrap().len(), &answer["complete"]),
        (10_000, &json!(false))
    );
    let (status, _) = server.sql("EXPLAIN SELECT * FROM samples").await;
    assert_eq!(status, StatusCode::OK);

    for statement in [
        "DROP TABLE samples",
        "INSERT INTO samples SELECT * FROM samples",
        "COPY samples TO '/tmp/out.parquet'",
        "CREATE TABLE x AS SELECT 1",
        "CREATE EXTERNAL TABLE x STORED AS PARQUET LOCATION '/tmp'",
        "SET datafusion.execution.batch_size = 1",
        "EXPLAIN ANALYZE DELETE FROM samples",
        "SELECT * FROM '/etc/passwd'",
        "SELECT 1; SELECT 2",
        "SELEC 1",
        "SELECT nothing FROM samples",
        "SELECT array_length(range(0, 1000000000))",
        "SELECT count(*) FROM generate_series(1, 1000000000)",
        "SELECT length(repeat('x', 2000000000))",
        "SELECT length(lpad('x', 2000000000, 'y'))",
        "SELECT array_length(array_resize([1], 1000000000, 2))",
        "WITH RECURSIVE t AS (SELECT 'x' AS s UNION ALL SELECT s || s FROM t) SELECT length(s) FROM t",
        "",
    ] {
        let (status, body) = server.sql(statement).await;
        let (status, code, message) = error_of(status, &body);
        assert_eq!((status, code.as_str()), (400, "bad_query"), "{statement}: {message}");
    }
    let sql = |body: String| {
        Request::post("/api/v1/sql")
            .header("content-type", "application/json")
            .body(Body::from(body))
            .unwrap()
    };
    let (status, _, body) = server.send(sql("no json".to_owned())).await;
    assert_eq!(error_of(status, &body).1, "bad_parameter");
    let untyped = Request::post("/api/v1/sql").body(Body::from("{}")).unwrap();
    let (status, _, body) = server.send(untyped).await;
    let (status, code, _) = error_of(status, &body);
    assert_eq!((status, code.as_str()), (415, "unsupported_media_type"));
    // The longest statement has room however it is escaped; what is longer is told what is not too long.
    for (bytes, code, text) in [
        (500_000, (400, "bad_parameter"), "no SQL request"),
        (600_000, (413, "too_large"), "more than 524288 bytes"),
        (3_000_000, (413, "too_large"), "more than 524288 bytes"),
    ] {
        let (status, _, body) = server.send(sql("x".repeat(bytes))).await;
        let (status, found, message) = error_of(status, &body);
        assert_eq!((status, found.as_str()), code, "{bytes}: {message}");
        assert!(message.contains(text), "{bytes}: {message}");
    }
}

#[tokio::test]
async fn a_wrong_method_is_told_the_right_ones() {
    let server = Server::start().await;
    for (method, path, allow) in [
        ("POST", "/api/v1/flamegraph?type=cpu", "GET,HEAD"),
        ("DELETE", "/api/v1/labels/service/values", "GET,HEAD"),
        ("GET", "/api/v1/sql", "POST"),
        ("GET", "/v1development/profiles", "POST"),
        ("PUT", "/login", "GET,HEAD,POST"),
        ("POST", "/metrics", "GET,HEAD"),
        ("POST", "/", "GET,HEAD"),
    ] {
        let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
        let (status, headers, body) = server.send(request).await;
        let (status, code, text) = error_of(status, &body);
        assert_eq!(
            (status, code.as_str()),
            (405, "method_not_allowed"),
            "{method} {path}: {text}"
        );
        assert_eq!(headers["x-content-type-options"], "nosniff", "{method} {path}");
        assert_eq!(headers.get("allow").map(String::as_str), Some(allow), "{method} {path}");
        assert!(text.contains(&allow.replace(',', ", ")), "{method} {path}: {text}");
    }
}
