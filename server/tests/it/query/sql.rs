//! What SQL makes of texts and lists is bounded, and ordinary statements are not.

use super::*;

async fn rows(server: &Server, statement: &str) -> Value {
    let (status, body) = server.sql(statement).await;
    assert_eq!(
        status,
        StatusCode::OK,
        "{statement}: {}",
        String::from_utf8_lossy(&body)
    );
    serde_json::from_slice(&body).unwrap()
}

/// A statement in which each step is made of the one before, with how it is.
fn chain(steps: usize, first: &str, each: impl Fn(usize) -> String) -> String {
    let mut statement = format!("WITH t0 AS ({first})");
    for step in 1..=steps {
        statement += &format!(", t{step} AS ({})", each(step - 1));
    }
    statement
}

#[tokio::test(flavor = "multi_thread")]
async fn values_do_not_grow_without_bounds() {
    let (server, _) = filled(recent()).await;
    let doubled = |steps| {
        chain(steps, "SELECT function AS s FROM frames", |from| {
            format!("SELECT s || s AS s FROM t{from}")
        }) + &format!(" SELECT max(length(s)) FROM t{steps}")
    };
    let nested = (0..10).fold("function".to_owned(), |inner, _| format!("concat({inner}, {inner})"));
    let inner = (0..30).fold("SELECT function AS s FROM frames".to_owned(), |inner, _| {
        format!("SELECT s || s AS s FROM ({inner})")
    });
    let joined = chain(11, "SELECT function AS s FROM frames LIMIT 1", |from| {
        format!("SELECT x.s || y.s AS s FROM t{from} x CROSS JOIN t{from} y")
    }) + " SELECT length(s) FROM t11";
    let lists = chain(20, "SELECT [1, 2] AS s", |from| {
        format!("SELECT array_concat(s, s) AS s FROM t{from}")
    }) + " SELECT array_length(s) FROM t20";
    let long = "a".repeat(1_000);
    let many = vec!["function"; 1_000].join(", ");
    for statement in [
        doubled(20),
        doubled(40),
        format!("SELECT length({nested}) FROM frames"),
        format!("SELECT length(s) FROM ({inner})"),
        format!("SELECT (SELECT max(length(s)) FROM ({inner}) x) FROM samples"),
        format!("EXPLAIN ANALYZE SELECT length(s) FROM ({inner})"),
        joined,
        lists,
        format!("SELECT length(replace(function, 'a', '{long}')) FROM frames"),
        "SELECT length(replace(function, 'a', function)) FROM frames".to_owned(),
        "SELECT length(replace(function, '', 'aa')) FROM frames".to_owned(),
        format!("SELECT length(regexp_replace(function, '', '{long}', 'g')) FROM frames"),
        format!("SELECT length(concat({many})) FROM frames"),
        format!("SELECT length(concat_ws('{long}', function, file)) FROM frames"),
        format!("SELECT length(array_to_string(frames, '{long}')) FROM stacks"),
        format!(
            "SELECT regexp_match(function, '{}x{}') FROM frames",
            "(".repeat(500),
            ")".repeat(500)
        ),
        "SELECT upper(string_agg(function, ',')) FROM frames".to_owned(),
        "SELECT g.s FROM (SELECT string_agg(function, ',') AS s FROM frames) g CROSS JOIN samples".to_owned(),
        "WITH g AS (SELECT string_agg(function, ',') AS s FROM frames) SELECT s FROM g WHERE s IN (SELECT g.s FROM g CROSS JOIN samples)"
            .to_owned(),
        "SELECT string_agg(function, ',') OVER (ORDER BY frame_id) FROM frames".to_owned(),
"SELECT array_agg(function) || array_agg(function) FROM frames".to_owned(),
        "SELECT arrow_cast(NULL, 'FixedSizeBinary(1000000000)') FROM samples".to_owned(),
        "SELECT array_replace_all(frames, 1, 2) FROM stacks".to_owned(),
        "SELECT array_transform(frames, x -> x + 1) FROM stacks".to_owned(),
    ] {
        let shown: String = statement.chars().take(200).collect();
        let (status, body) = server.sql(&statement).await;
        let (status, code, message) = error_of(status, &body);
        assert_eq!((status, code.as_str()), (400, "bad_query"), "{shown}: {message}");
    }
    let pool = server.store.snapshot().memory_pool().clone();
    crate::support::eventually("all is given back", async || pool.reserved() == 0).await;
    // A part that is referred to twice, by a part that is, and so on: each look at it would take for ever.
    let statement = chain(40, "SELECT 1 AS x", |from| {
        format!("SELECT a.x FROM t{from} a CROSS JOIN t{from} b")
    }) + " SELECT count(*) FROM t40";
    let (status, body) = server.sql(&statement).await;
    let (status, code, message) = error_of(status, &body);
    assert_eq!((status, code.as_str()), (400, "bad_query"), "{message}");
    assert!(message.contains("under WITH"), "{message}");
    // As often as is allowed: it is planned, and is too much.
    let statement = chain(7, "SELECT ts_ns AS x FROM samples", |from| {
        format!("SELECT a.x FROM t{from} a CROSS JOIN t{from} b CROSS JOIN t{from} c")
    }) + " SELECT count(*) FROM t7";
    let (status, body) = server.sql(&statement).await;
    let (status, _, message) = error_of(status, &body);
    assert!(status == 400 && message.contains("steps"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn ordinary_statements_are_answered() {
    let (server, all) = filled(recent()).await;
    let answer = rows(
        &server,
        "SELECT service || '+' || thread, count(*) FROM samples GROUP BY service || '+' || thread ORDER BY 1",
    )
    .await;
    let mut truth: BTreeMap<String, u64> = BTreeMap::new();
    for (_, sample) in &all {
        *truth
            .entry(format!("{}+{}", sample.service, sample.thread))
            .or_default() += 1;
    }
    let truth: Vec<Value> = truth.into_iter().map(|row| json!(row)).collect();
    assert_eq!(answer["rows"], json!(truth));
    let name = answer["columns"][0]["name"].as_str().unwrap();
    assert!(name.contains("||") && !name.contains("within"), "{name}");

    // One text of many rows, as the end-to-end tests ask.
    let answer = rows(
        &server,
        "SELECT service, string_agg(line, ';' ORDER BY line), array_agg(line) FROM (SELECT service, concat(thread, '=', CAST(count(*) AS VARCHAR)) AS line \
         FROM samples GROUP BY service, thread) GROUP BY service ORDER BY service",
    )
    .await;
    let mut counts: BTreeMap<&str, BTreeMap<&str, u64>> = BTreeMap::new();
    for (_, sample) in &all {
        *counts
            .entry(sample.service)
            .or_default()
            .entry(sample.thread)
            .or_default() += 1;
    }
    for (row, (service, counts)) in counts.iter().enumerate() {
        let lines: Vec<String> = counts
            .iter()
            .map(|(thread, count)| format!("{thread}={count}"))
            .collect();
        assert_eq!(answer["rows"][row][0], *service);
        assert_eq!(answer["rows"][row][1], lines.join(";"));
        assert_eq!(answer["rows"][row][2].as_array().unwrap().len(), lines.len());
    }

    let one = |statement| {
        let server = &server;
        async move { rows(server, statement).await["rows"][0][0].clone() }
    };
    assert_eq!(
        one("SELECT max(upper(concat(service, '-', mode))) FROM samples").await,
        "NGINX-USER"
    );
    assert_eq!(
        one("SELECT replace(max(service), 'ngi', 'engi') FROM samples").await,
        "enginx"
    );
    assert_eq!(
        one("SELECT regexp_replace(max(service), 'n(.)', '\\1\\1') FROM samples").await,
        "gginx"
    );
    for statement in [
        // What the page asks.
        "SELECT module, build_id, file, min(line), max(line) FROM frames WHERE kind = 'native' AND function = 'work' GROUP BY module, build_id, file LIMIT 2000",
        "SELECT DISTINCT type FROM samples WHERE hour >= '2026-11-22T10' UNION SELECT DISTINCT type FROM samples_minute WHERE hour >= '2026-11-21T12' \
         UNION SELECT DISTINCT type FROM waits WHERE hour >= '2026-11-22T10' UNION SELECT DISTINCT type FROM waits_minute WHERE hour >= '2026-11-21T12'",
        // What people ask.
        "EXPLAIN SELECT upper(function) || '()' FROM frames",
        "SELECT module || '+' || file AS place, count(*) FROM frames GROUP BY place HAVING length(module || '+' || file) > 0 ORDER BY place DESC",
        "SELECT node || '/' || service AS s, row_number() OVER (PARTITION BY node || service ORDER BY ts_ns) FROM samples LIMIT 5",
        "SELECT DISTINCT s.service FROM samples s JOIN series r ON concat(s.service, '') = concat(r.service, '')",
        "SELECT function FROM frames f WHERE EXISTS (SELECT 1 FROM frames g WHERE g.function || 'x' = f.function || 'x')",
        "SELECT service || '?' FROM samples UNION ALL SELECT lower(thread) FROM samples ORDER BY 1 LIMIT 3",
        "SELECT array_length(array_append(frames, 1)), array_to_string(frames, ';'), frames[1] FROM stacks",
        "SELECT to_char(to_timestamp_nanos(ts_ns), '%H:%M') AS minute, count(DISTINCT concat_ws('/', node, service)) FROM samples GROUP BY minute",
        "SELECT unnest(string_to_array('a,b', ',')), coalesce(nullif(service, 'db'), 'none') || CAST(line AS VARCHAR) FROM samples CROSS JOIN (SELECT 1 AS line) LIMIT 4",
        "SELECT CASE WHEN service = 'db' THEN service || '!' ELSE split_part(service, 'e', 1) END FROM samples LIMIT 4",
        "VALUES ('a' || 'b')",
    ] {
        let answer = rows(&server, statement).await;
        assert!(answer["rows"].is_array(), "{statement}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_statement_is_told_every_table_that_there_is() {
    let server = Server::start().await;
    let (status, body) = server.sql("SELECT nothing FROM nowhere").await;
    let (status, _, message) = error_of(status, &body);
    assert_eq!(status, 400);
    let (_, told) = message.rsplit_once("tables are ").unwrap();
    let mut told: Vec<&str> = told.split(", ").collect();
    told.sort_unstable();
    let known = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY table_name";
    let known = rows(&server, known).await;
    let known: Vec<&str> = known["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row[0].as_str().unwrap())
        .collect();
    assert_eq!(told, known);
    assert!(known.len() >= 10, "{known:?}");
}
