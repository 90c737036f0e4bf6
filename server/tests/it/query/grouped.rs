//! Rows of labels above stacks: what stands below each is what is answered with its values as a selector.

use super::*;

/// Of each node its path as kinds, modules and functions, with columns.
fn frames_of(answer: &Value, columns: &[&str]) -> BTreeMap<Vec<[String; 3]>, Vec<u64>> {
    let nodes = &answer["nodes"];
    let column = |name: &str| -> Vec<i64> {
        let column = nodes[name].as_array().unwrap_or_else(|| panic!("column {name}"));
        column.iter().map(|value| value.as_i64().unwrap()).collect()
    };
    let (parents, names, modules, kinds) = (column("parent"), column("name"), column("module"), column("kind"));
    let counts: Vec<Vec<i64>> = columns.iter().map(|name| column(name)).collect();
    let text = |list: &str, at: i64| answer[list][at as usize].as_str().unwrap().to_owned();
    let mut paths: Vec<Vec<[String; 3]>> = Vec::new();
    let mut all = BTreeMap::new();
    for node in 0..parents.len() {
        let mut path = match parents[node] {
            -1 => Vec::new(),
            parent => paths[parent as usize].clone(),
        };
        if node > 0 {
            path.push([
                text("kinds", kinds[node]),
                text("strings", modules[node]),
                text("strings", names[node]),
            ]);
        }
        let of_node = counts.iter().map(|counts| counts[node] as u64).collect();
        assert!(all.insert(path.clone(), of_node).is_none(), "twice: {path:?}");
        paths.push(path);
    }
    all
}

/// Holds a grouped answer against one for each path of rows; returns how many rows the innermost label has.
async fn holds(server: &Server, path: &str, asked: &[(&str, &str)], labels: &[&str], columns: &[&str]) -> usize {
    let group = labels.join(",");
    let grouped = server.json(path, &[asked, &[("group", &*group)]].concat()).await;
    let plain = server.json(path, asked).await;
    let all = frames_of(&grouped, columns);
    assert_eq!(
        all[&vec![]],
        frames_of(&plain, columns)[&vec![]],
        "the root is all samples"
    );
    for head in ["samples", "quality", "exposure", "match", "base", "comparison"] {
        assert_eq!(grouped[head], plain[head], "{head}");
    }
    let (mut innermost, mut sums) = (0, vec![0; columns.len()]);
    for depth in 1..=labels.len() {
        let rows = all.keys().filter(|path| path.len() == depth);
        for row in rows {
            let conditions: Vec<String> = (row.iter().zip(labels))
                .map(|([kind, module, function], label)| {
                    assert_eq!((&**kind, &**module), ("label", *label));
                    format!("{label}={function:?}")
                })
                .collect();
            let query = format!("{{{}}}", conditions.join(","));
            let filtered = server.json(path, &[asked, &[("query", &*query)]].concat()).await;
            let filtered = frames_of(&filtered, columns);
            assert_eq!(all[row], filtered[&vec![]], "{query}");
            if depth == labels.len() {
                let below = all
                    .iter()
                    .filter(|(path, _)| path.len() >= depth && path.starts_with(row));
                let below: BTreeMap<_, _> = below
                    .map(|(path, counts)| (path[depth..].to_vec(), counts.clone()))
                    .collect();
                assert_eq!(below, filtered, "{query}");
                innermost += 1;
                sums.iter_mut().zip(&all[row]).for_each(|(sum, count)| *sum += count);
            }
        }
    }
    // What each row has as its own is in none of its neighbours.
    let (totals, _) = sums.split_at(columns.iter().filter(|name| name.ends_with("total")).count());
    assert_eq!(totals, &all[&vec![]][..totals.len()]);
    innermost
}

#[tokio::test(flavor = "multi_thread")]
async fn what_stands_below_a_row_is_the_answer_to_its_selector() {
    let from = recent();
    let (server, _) = filled(from).await;
    let (begin, end) = (ms(from), ms(from + 120 * S));
    let window = [("from", &*begin), ("until", &*end)];
    for committed in [false, true] {
        if committed {
            server.store.flush().await.unwrap();
        }
        for (labels, rows) in [
            (&["service"][..], 3),
            (&["service", "process"], 3),
            (&["node", "service", "thread", "mode"], 2 * 3 * 3 * 2),
            (&["tgid", "tid"], 9),
            (&["cpu"], 2),
            // No sample has one: the only row is that of the empty value.
            (&["pod", "service.version"], 1),
        ] {
            assert_eq!(
                holds(&server, "flamegraph", &window, labels, &["total", "self"]).await,
                rows,
                "{labels:?}"
            );
        }
    }
    // In other shapes, with a part of the window left out, and of part of a minute.
    let (cut, left_out) = (ms(from + 7 * S), [ms(from + 20 * S), ms(from + 45 * S)]);
    for more in [
        &[("transform", "merge_recursion")][..],
        &[("root", "^walk$")],
        &[("match", "main")],
        &[("match_path", "native,app,main;native,app,hot")],
        &[("except_from", &left_out[0]), ("except_until", &left_out[1])],
    ] {
        let asked = [&[("from", &*cut), ("until", &*end)], more].concat();
        holds(
            &server,
            "flamegraph",
            &asked,
            &["service", "thread"],
            &["total", "self"],
        )
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_differences_rows_have_both_sides_counts_and_are_judged() {
    let from = recent();
    let (server, _) = filled(from).await;
    let times = [ms(from), ms(from + 60 * S), ms(from + 120 * S)];
    let columns = ["base_total", "total", "base_self", "self"];
    // Windows that are read at once, apart, and with a part left out.
    let left_out = [ms(from + 70 * S), ms(from + 80 * S)];
    for asked in [
        &[
            ("base_from", &*times[0]),
            ("base_until", &times[1]),
            ("from", &times[1]),
            ("until", &times[2]),
        ][..],
        &[
            ("base_from", &*times[0]),
            ("base_until", &times[2]),
            ("from", &times[0]),
            ("until", &times[1]),
        ],
        &[
            ("base_from", &*left_out[0]),
            ("base_until", &left_out[1]),
            ("from", &times[0]),
            ("until", &times[2]),
            ("except_from", &left_out[0]),
            ("except_until", &left_out[1]),
        ],
    ] {
        assert_eq!(holds(&server, "diff", asked, &["service", "thread"], &columns).await, 9);
    }
}

/// A service that grows, one that ends and one that stays.
#[tokio::test(flavor = "multi_thread")]
async fn rows_that_grew_are_told_from_rows_that_stayed() {
    let from = recent();
    let server = Server::start().await;
    for (number, [web, db, job]) in [(1, [600, 600, 300]), (2, [1_800, 600, 0])] {
        let start = from + (number - 1) * 60 * S;
        let mut taken = Vec::new();
        for (service, count) in [("web", web), ("db", db), ("job", job)] {
            taken.extend((0..count).map(|i| Sample {
                ts_ns: start + i * 60 * S / count,
                service,
                tgid: 1,
                tid: 1,
                thread: "main",
                cpu: 0,
                stack: "main;work",
            }));
        }
        server.ingest(&accounting::batch(number, from, PERIOD_NS, taken)).await;
    }
    server.store.flush().await.unwrap();
    let times = [ms(from), ms(from + 60 * S), ms(from + 120 * S)];
    let asked = [
        ("base_from", &*times[0]),
        ("base_until", &times[1]),
        ("from", &times[1]),
        ("until", &times[2]),
        ("group", "service"),
    ];
    let answer = server.json("diff", &asked).await;
    let states = frames_of(&answer, &["state"]);
    let state = |service: &str, frames: &[&str]| {
        let mut path = vec![["label".to_owned(), "service".to_owned(), service.to_owned()]];
        path.extend(
            frames
                .iter()
                .map(|name| ["native".to_owned(), "app".to_owned(), (*name).to_owned()]),
        );
        answer["states"][states[&path][0] as usize].as_str().unwrap().to_owned()
    };
    for below in [&[][..], &["main"], &["main", "work"]] {
        assert_eq!(state("web", below), "grew");
        assert_eq!(state("db", below), "same");
        assert_eq!(state("job", below), "gone");
    }
    let folded = server
        .text("diff", &[&asked[..], &[("format", "collapsed")]].concat())
        .await;
    let lines: std::collections::BTreeSet<&str> = folded.lines().collect();
    let expected = ["db;main;work 600 600", "job;main;work 300 0", "web;main;work 600 1800"];
    assert_eq!(lines, expected.into());
    let svg = server.text("diff", &[&asked[..], &[("format", "svg")]].concat()).await;
    assert!(svg.contains("web (service) | grew | before 600 samples"), "{svg:.3000}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_export_has_the_rows() {
    let from = recent();
    let (server, all) = filled(from).await;
    let (begin, end) = (ms(from), ms(from + 120 * S));
    let asked = |format| {
        [
            ("from", begin.as_str()),
            ("until", end.as_str()),
            ("group", "node,pod"),
            ("format", format),
        ]
    };
    let mut truth: BTreeMap<String, u64> = BTreeMap::new();
    for (node, sample) in &all {
        *truth
            .entry(format!("{node};[no pod];{}", shown(sample.stack)))
            .or_default() += 1;
    }
    assert_eq!(
        collapsed_answer(&server.text("flamegraph", &asked("collapsed")).await),
        truth
    );
    let svg = server.text("flamegraph", &asked("svg")).await;
    assert!(svg.contains("[no pod] (800 samples, 50.00%)"), "{svg:.3000}");
    let scope = server.json("flamegraph", &asked("speedscope")).await;
    let frames = &scope["shared"]["frames"];
    let first = |at: usize| frames[scope["profiles"][0]["samples"][0][at].as_u64().unwrap() as usize].clone();
    assert_eq!(first(0), json!({"name": "a", "file": "node"}));
    assert_eq!(first(1), json!({"name": "[no pod]", "file": "pod"}));
    // pprof has labels for it, which its readers make rows of.
    let pprof = server.bytes("flamegraph", &asked("pprof")).await;
    assert_eq!(
        pprof,
        server.bytes("flamegraph", &asked("pprof")).await,
        "the same samples, the same bytes"
    );
    let read = labels_of_pprof(&pprof);
    let mut counted: BTreeMap<String, i64> = BTreeMap::new();
    for (node, count) in read {
        *counted.entry(node).or_default() += count;
    }
    assert_eq!(counted, [("a".to_owned(), 800), ("b".to_owned(), 800)].into());
}

/// Of each sample of a pprof profile the value of its only label, `node`, and its count: field by field, as
/// <https://protobuf.dev/programming-guides/encoding/> says.
fn labels_of_pprof(gzipped: &[u8]) -> Vec<(String, i64)> {
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::MultiGzDecoder::new(gzipped), &mut bytes).unwrap();
    let (mut samples, mut texts) = (Vec::new(), Vec::new());
    for (field, value) in fields(&bytes) {
        match (field, value) {
            (2, Field::Bytes(sample)) => samples.push(sample.to_vec()),
            (6, Field::Bytes(text)) => texts.push(String::from_utf8(text.to_vec()).unwrap()),
            _ => {}
        }
    }
    let of_sample = |sample: Vec<u8>| {
        let (mut count, mut labels) = (0, Vec::new());
        for (field, value) in fields(&sample) {
            match (field, value) {
                (2, Field::Bytes(packed)) => count = varint(packed).0 as i64,
                (3, Field::Bytes(label)) => labels.push(label.to_vec()),
                _ => {}
            }
        }
        assert_eq!(labels.len(), 1, "a label without a value is left out");
        let numbers: BTreeMap<u64, u64> = fields(&labels[0])
            .into_iter()
            .map(|(field, value)| match value {
                Field::Number(number) => (field, number),
                Field::Bytes(_) => panic!("a label is two numbers"),
            })
            .collect();
        assert_eq!(texts[numbers[&1] as usize], "node");
        (texts[numbers[&2] as usize].clone(), count)
    };
    samples.into_iter().map(of_sample).collect()
}

enum Field<'b> {
    Number(u64),
    Bytes(&'b [u8]),
}

fn varint(bytes: &[u8]) -> (u64, &[u8]) {
    let end = bytes.iter().position(|byte| byte & 0x80 == 0).unwrap();
    let number = (0..=end)
        .rev()
        .fold(0, |number, at| number << 7 | u64::from(bytes[at] & 0x7f));
    (number, &bytes[end + 1..])
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let (key, rest) = varint(bytes);
        let (number, rest) = varint(rest);
        match key & 7 {
            0 => {
                all.push((key >> 3, Field::Number(number)));
                bytes = rest;
            }
            2 => {
                let (value, rest) = rest.split_at(number as usize);
                all.push((key >> 3, Field::Bytes(value)));
                bytes = rest;
            }
            kind => panic!("wire type {kind}"),
        }
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_are_named_once_and_few() {
    let from = recent();
    let (server, _) = filled(from).await;
    for (group, said) in [
        ("colour", "labels with commas between: node, service"),
        ("service,service", "at most 4 labels, each once"),
        ("service,service.name", "at most 4 labels, each once"),
        ("node,service,process,thread,mode", "at most 4 labels, each once"),
        ("service,", "labels with commas between"),
    ] {
        let (status, code, text) = server.error("flamegraph", &[("group", group)]).await;
        assert_eq!((status, &*code), (400, "bad_parameter"), "{group}");
        assert!(text.contains(said), "{text}");
    }
    let (status, _, text) = server.error("top", &[("group", "service")]).await;
    assert_eq!(status, 400, "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn small_rows_are_folded_as_small_frames_are() {
    let from = recent();
    let server = Server::start().await;
    let taken = accounting::minute(from, &[("web", "main;hot", 990), ("a", "main", 4), ("b", "main;f", 6)]);
    server.ingest(&accounting::batch(1, from, PERIOD_NS, taken)).await;
    let (begin, end) = (ms(from), ms(from + 60 * S));
    let asked = [
        ("from", &*begin),
        ("until", &*end),
        ("group", "service"),
        ("min_share", "0.01"),
    ];
    let answer = server.json("flamegraph", &asked).await;
    let shown = paths(&answer, "total", "self");
    let expected = [
        ("", (1_000, 0)),
        (";5 frames below the threshold", (10, 10)),
        (";web", (990, 0)),
        (";web;main", (990, 0)),
        (";web;main;hot", (990, 990)),
    ];
    assert_eq!(shown, expected.map(|(path, counts)| (path.to_owned(), counts)).into());
}
