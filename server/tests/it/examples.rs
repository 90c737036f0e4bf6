//! The examples of `docs/guide.md` that ask, exactly as they stand there, against the real binary with samples that are
//! known by construction: what they print is right.
//!
//! `curl` and `python3` run them. A block of `text` behind an example is what it prints, to the letter; other
//! examples print JSON, which is looked at here.

use crate::pprof::{gzip, pprof};
use crate::support::{Server, get, now_ns, post};
use crate::wire::{Batch, PERIOD_NS, Sample, request};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

const S: i64 = 1_000_000_000;
const MINUTE: i64 = 60 * S;
const HOUR: i64 = 60 * MINUTE;

/// One example of the guide.
struct Example {
    section: String,
    language: String,
    code: String,
    /// What stands behind it as its output.
    output: Option<String>,
}

/// Every fenced block of the guide's sections.
fn examples() -> Vec<Example> {
    let guide = include_str!("../../docs/guide.md");
    let mut found: Vec<Example> = Vec::new();
    let mut section = "";
    let mut lines = guide.lines();
    while let Some(line) = lines.next() {
        if let Some(title) = line.strip_prefix("## ") {
            section = title;
        }
        let Some(language) = line.strip_prefix("```") else {
            continue;
        };
        let code: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let code = code.join("\n") + "\n";
        match (language, found.last_mut()) {
            ("text", Some(last)) if last.section == section && last.output.is_none() => last.output = Some(code),
            _ => found.push(Example {
                section: section.to_owned(),
                language: language.to_owned(),
                code,
                output: None,
            }),
        }
    }
    found
}

/// Runs it in a folder of its own, and returns what it prints.
fn run(example: &Example, server: &str, folder: &Path) -> String {
    let file = folder.join("example");
    std::fs::write(&file, &example.code).unwrap();
    let mut command = match &*example.language {
        "sh" => {
            let mut shell = Command::new("sh");
            shell.arg("-eu");
            shell
        }
        "python" => Command::new("python3"),
        other => panic!("{}: nothing runs {other}", example.section),
    };
    let output = command
        .arg(&file)
        .current_dir(folder)
        .env("SERVER", format!("http://{server}"))
        .env("NO_PROXY", "*")
        .output()
        .unwrap_or_else(|error| panic!("{} needs a program that is not here: {error}", example.section));
    let [printed, said] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(
        output.status.success() && said.is_empty(),
        "{}: {}\n{}\n{printed}\n{said}",
        example.section,
        output.status,
        example.code
    );
    printed
}

/// What one thread did: so many samples of each stack, evenly in this time.
fn ran(
    service: &'static str,
    thread: &'static str,
    cpu: i64,
    window: (i64, i64),
    stacks: &[(&'static str, i64)],
) -> Vec<Sample> {
    let count: i64 = stacks.iter().map(|(_, count)| count).sum();
    let each = stacks
        .iter()
        .flat_map(|(stack, count)| (0..*count).map(move |_| *stack));
    let at = |index: i64| window.0 + (window.1 - window.0) * index / count;
    let sample = |(index, stack)| Sample {
        ts_ns: at(index),
        service,
        tgid: 40,
        tid: thread.len() as i64,
        thread,
        cpu,
        stack,
    };
    (0..).zip(each).map(sample).collect()
}

async fn take(server: &Server, node: &str, instance: u32, window: (i64, i64), samples: Vec<Sample>) {
    let instance = format!("00000000-0000-4000-8000-{instance:012}");
    let batch = Batch {
        node,
        instance: &instance,
        number: 1,
        from_ns: window.0,
        until_ns: window.1,
        period_ns: PERIOD_NS,
        missed_ticks: 0,
        samples,
    };
    let answer = post(&server.address, request(&batch), &[]).await.unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
}

/// All that the examples ask for. What has to be of the last whole hour is the same in the hours around it, and what
/// has to be of the last seconds goes on for minutes.
async fn fill(server: &Server, folder: &Path) {
    let now = now_ns();
    let mut instance = 0;
    let mut next = || {
        instance += 1;
        instance
    };
    for hours in -2..=1 {
        let from = now / HOUR * HOUR + hours * HOUR + 10 * MINUTE;
        let window = (from, from + 2 * MINUTE);
        let samples = [
            ran(
                "postgres",
                "backend",
                0,
                window,
                &[("main;exec;scan", 800), ("main;exec;sort", 300)],
            ),
            ran("postgres", "writer", 1, window, &[("main;parse", 100)]),
        ];
        take(server, "db-7", next(), window, samples.concat()).await;
    }
    let window = (now - 15 * MINUTE, now + 15 * MINUTE);
    let backup = ran("backup", "main", 0, window, &[("main;copy", 18_000)]);
    take(server, "db-7", next(), window, backup).await;
    // A tenth of a second with a copy and a softirq on one CPU, again and again.
    let mut stalls = ran("shop", "main", 11, window, &[("main;handle", 18_000)]);
    let softirqs = (window.0 + S / 20, window.1 + S / 20);
    stalls.extend(ran(
        "kernel",
        "ksoftirqd",
        11,
        softirqs,
        &[("k:kthread;k:run_ksoftirqd", 18_000)],
    ));
    take(server, "web-3", next(), window, stalls).await;
    // Two versions of a program, as its client sends them.
    for (version, stacks) in [
        ("1.4", [("main", "main;route", 900), ("main", "main;render", 100)]),
        ("1.5", [("main", "main;route", 500), ("main", "main;render", 500)]),
    ] {
        let (from, until) = (now - 40 * MINUTE, now - 30 * MINUTE);
        let name = format!("shop%7Bhostname%3Dweb-1,version%3D{version}%7D");
        let path = format!("/ingest?name={name}&spyName=gospy&from={from}&until={until}");
        let body = gzip(&pprof(&stacks, PERIOD_NS as u64));
        let sent = hyper::Request::post(path)
            .header("host", &server.address)
            .body(http_body_util::Full::new(body.into()));
        let answer = crate::support::send(&server.address, sent.unwrap()).await.unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    std::fs::write(
        folder.join("cpu.pb.gz"),
        gzip(&pprof(&[("main", "main;by_hand", 10)], PERIOD_NS as u64)),
    )
    .unwrap();
}

/// The rows of an answer by the value of one of their fields.
fn by<'a>(rows: &'a Value, name: &str) -> BTreeMap<&'a str, &'a Value> {
    let rows = rows.as_array().unwrap_or_else(|| panic!("no rows: {rows}")).iter();
    rows.map(|row| (row[name].as_str().unwrap(), row)).collect()
}

/// Function names of a tree with their counts.
fn totals(tree: &Value) -> BTreeMap<&str, i64> {
    let column = |name: &str| tree["nodes"][name].as_array().unwrap().iter();
    let names = column("name").map(|at| tree["strings"][at.as_u64().unwrap() as usize].as_str().unwrap());
    names
        .zip(column("total").map(|total| total.as_i64().unwrap()))
        .collect()
}

/// What examples print whose output does not stand in the guide, so many seconds after the samples came.
fn check(section: &str, answers: &[Value], folder: &Path, seconds: i64) {
    match (section, answers) {
        ("A node got slow", [chart, table]) => {
            let line = &chart["series"][0];
            assert_eq!(
                (&line["value"], &chart["by"]),
                (&json!("app"), &json!("process")),
                "{chart}"
            );
            // At least the last quarter of an hour of `backup`, and one whole hour of `postgres`.
            let samples = line["samples"].as_i64().unwrap();
            let most = 9_010 + 10 * seconds;
            assert!((8_990 + 1_200..=most + 3 * 1_200).contains(&samples), "{samples}");
            let row = by(&table["rows"], "name")["app"];
            let total = row["total"].as_i64().unwrap();
            assert!((8_990..=most + 1_200).contains(&total), "{row}");
            let picture = std::fs::read_to_string(folder.join("diff.svg")).unwrap();
            assert!(picture.contains("<svg") && picture.contains("copy") && picture.contains("main"));
        }
        ("Compare two versions", [table]) => {
            assert_eq!(table["unit"], "share");
            let rows = by(&table["rows"], "name");
            let of = |name: &str| {
                let row = rows[name];
                let number = |field: &str| row[field].as_f64().unwrap();
                (row["state"].as_str().unwrap().to_owned(), number("delta"))
            };
            let (render, route) = (of("render"), of("route"));
            assert_eq!((render.0.as_str(), route.0.as_str()), ("grew", "shrank"), "{table}");
            assert!((render.1 - 0.4).abs() < 1e-9 && (route.1 + 0.4).abs() < 1e-9, "{table}");
        }
        ("Find what ran before a stall", [before, samples]) => {
            let totals = totals(before);
            let (handle, all) = (totals["handle"], totals["all"]);
            assert!(handle > 5_000 && handle * 2 <= all + 200, "{totals:?}");
            assert_eq!(before["match"], Value::Null);
            let columns = &samples["samples"];
            let ids = columns["cpu"].as_array().unwrap();
            assert!((190..=202).contains(&ids.len()), "{} samples", ids.len());
            assert!(ids.iter().all(|cpu| *cpu == 11), "{columns}");
        }
        ("Ask by SQL", [services, nodes, places, programs]) => {
            let rows = |answer: &Value| answer["rows"].as_array().unwrap().clone();
            assert!(rows(services).contains(&json!(["postgres", 60.0])), "{services}");
            let names: Vec<Value> = rows(nodes).iter().map(|row| row[0].clone()).collect();
            assert!(names.contains(&json!("db-7")), "{nodes}");
            assert_eq!(
                rows(places),
                [json!(["/usr/bin/app", "", "/src/app.c", 7, 7])],
                "{places}"
            );
            let count: i64 = rows(programs).iter().map(|row| row[1].as_i64().unwrap()).sum();
            assert!(count >= 1_200, "{programs}");
        }
        _ => panic!("{section}: nobody looks at {answers:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guides_examples_print_what_is_so() {
    let dir = tempfile::tempdir().unwrap();
    let (data, folder) = (dir.path().join("data"), dir.path().join("examples"));
    std::fs::create_dir(&folder).unwrap();
    let server = Server::start(&data, &[]);
    let begun = Instant::now();
    fill(&server, &folder).await;
    let all = examples();
    let sections = [
        ("A node got slow", 1),
        ("Compare two versions", 1),
        ("Find what ran before a stall", 1),
        ("Ask by HTTP", 2),
        ("Ask by SQL", 1),
        ("Ask from Python", 1),
    ];
    // Every part that asks stands before the first that runs a server.
    let asking = all
        .iter()
        .take_while(|example| example.section != "Run it for one machine");
    let mut found: BTreeMap<&str, usize> = BTreeMap::new();
    for example in asking {
        *found.entry(&example.section).or_default() += 1;
        let printed = run(example, &server.address, &folder);
        match &example.output {
            Some(output) => assert_eq!(printed, *output, "{}:\n{}", example.section, example.code),
            None => {
                let answers = serde_json::Deserializer::from_str(&printed).into_iter::<Value>();
                let answers: Result<Vec<Value>, _> = answers.collect();
                let answers = answers.unwrap_or_else(|error| panic!("{}: {error}\n{printed}", example.section));
                let seconds = begun.elapsed().as_secs() as i64 + 1;
                check(&example.section, &answers, &folder, seconds);
            }
        }
    }
    assert_eq!(found, sections.into());
    // One profile by hand is there afterwards.
    let mut sent = all.iter().filter(|example| example.code.contains("cpu.pb.gz"));
    let by_hand = sent.next().unwrap();
    assert!(sent.next().is_none() && by_hand.section == "Send pprof");
    assert_eq!(run(by_hand, &server.address, &folder), "");
    let stored = get(
        &server.address,
        "/api/v1/top?by=function&query=%7Bnode%3D%22node-a%22%7D",
    )
    .await;
    let stored = stored.json();
    assert_eq!(by(&stored["rows"], "name")["by_hand"]["total"], 10, "{stored}");
    drop(server);
}

#[test]
fn an_example_that_is_refused_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let (data, folder) = (dir.path().join("data"), dir.path().join("examples"));
    std::fs::create_dir(&folder).unwrap();
    let server = Server::start(&data, &[]);
    let python = examples()
        .into_iter()
        .find(|example| example.language == "python")
        .unwrap();
    let wrong = python.code.replace("\"by\": \"function\"", "\"by\": \"colour\"");
    assert_ne!(wrong, python.code);
    let file = folder.join("wrong.py");
    std::fs::write(&file, wrong).unwrap();
    let output = Command::new("python3")
        .arg(&file)
        .env("SERVER", format!("http://{}", server.address))
        .env("NO_PROXY", "*")
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    assert!(
        said.starts_with("bad_parameter: `by` cannot be `colour` (`by` is function, or one of node, "),
        "{said}"
    );
}
