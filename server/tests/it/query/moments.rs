//! Every sample keeps its time and its CPU: heatmaps, timelines, and what ran before.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_heatmap_has_every_sample_in_its_cell() {
    let from = recent();
    let (server, all) = filled(from).await;
    let (begin, end) = (from + 500 * 1_000_000, from + 100 * S);
    for (step, step_ns, rows) in [("1s", S, 50), ("250ms", S / 4, 7), ("1m", 60 * S, 60)] {
        let mut truth = BTreeMap::new();
        let chosen = all.iter().filter(|(node, s)| *node == "a" && s.service != "db");
        for (_, sample) in chosen.filter(|(_, s)| (begin..end).contains(&s.ts_ns)) {
            let offset = sample.ts_ns - begin;
            let (column, row) = (offset / step_ns, offset % step_ns * rows / step_ns);
            *truth.entry((column * rows + row) as usize).or_insert(0) += 1;
        }
        let parameters = [
            ("query", "{node=\"a\",service!=\"db\"}"),
            ("from", &ms(begin)),
            ("until", &ms(end)),
            ("step", step),
            ("rows", &rows.to_string()),
        ];
        let answer = server.json("heatmap", &parameters).await;
        let cells = answer["cells"].as_array().unwrap();
        let columns = (end - begin + step_ns - 1) / step_ns;
        assert_eq!(answer["columns"].as_i64(), Some(columns));
        assert_eq!(cells.len() as i64, columns * rows);
        let found: BTreeMap<usize, u64> = cells
            .iter()
            .enumerate()
            .map(|(cell, count)| (cell, count.as_u64().unwrap()))
            .filter(|(_, count)| *count > 0)
            .collect();
        assert_eq!(found, truth, "{step}");
        assert_eq!(answer["samples"].as_u64(), Some(truth.values().sum()));
    }
    let wide = [("from", "now-7d"), ("until", "now"), ("rows", "100")];
    let (status, code, said) = server.error("heatmap", &wide).await;
    assert_eq!((status, code.as_str()), (400, "bad_parameter"), "{said}");
    assert!(said.contains("1000000"), "{said}");
}

/// Of the path to each node: the names, root first.
fn path_of(answer: &Value, node: u64) -> String {
    let nodes = &answer["nodes"];
    let (mut at, mut path) = (node as usize, Vec::new());
    while at != 0 {
        let name = nodes["name"][at].as_u64().unwrap() as usize;
        path.insert(0, answer["strings"][name].as_str().unwrap());
        at = nodes["parent"][at].as_u64().unwrap() as usize;
    }
    path.join(";")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeline_has_one_cpus_samples_in_order_with_their_stacks() {
    let from = recent();
    let (server, all) = filled(from).await;
    let (begin, end) = (from + 20 * S, from + 90 * S);
    let mut truth: Vec<&Sample> = all
        .iter()
        .filter(|(node, s)| *node == "b" && s.cpu == 1 && (begin..end).contains(&s.ts_ns))
        .map(|(_, sample)| sample)
        .collect();
    truth.sort_by_key(|sample| sample.ts_ns);
    let window = [
        ("query", "{node=\"b\",cpu=\"1\"}"),
        ("from", &ms(begin)),
        ("until", &ms(end)),
    ];
    let answer = server.json("timeline", &window).await;
    assert_eq!(answer["complete"], json!(true));
    assert_eq!(answer["from_ns"], json!(begin.to_string()));
    let samples = &answer["samples"];
    assert_eq!(samples["offset_ns"].as_array().unwrap().len(), truth.len());
    for (at, sample) in truth.iter().enumerate() {
        assert_eq!(samples["offset_ns"][at], json!(sample.ts_ns - begin));
        assert_eq!(samples["node"][at], json!("b"));
        assert_eq!(samples["cpu"][at], json!(1));
        assert_eq!(samples["tid"][at], json!(sample.tid));
        assert_eq!(samples["tgid"][at], json!(sample.tgid.to_string()));
        assert_eq!(samples["service"][at], json!(sample.service));
        assert_eq!(samples["thread"][at], json!(sample.thread));
        assert_eq!(samples["value_ns"][at], json!(PERIOD_NS));
        let stack = path_of(&answer, samples["stack"][at].as_u64().unwrap());
        assert_eq!(stack, frames(sample.stack).join(";"));
    }
    let first = [&window[..], &[("limit", "7")]].concat();
    let answer = server.json("timeline", &first).await;
    assert_eq!(answer["complete"], json!(false));
    let offsets: Vec<i64> = truth[..7].iter().map(|sample| sample.ts_ns - begin).collect();
    assert_eq!(answer["samples"]["offset_ns"], json!(offsets));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ran_before_a_match_is_counted_once_and_on_its_cpu_only() {
    let from = recent();
    let (server, all) = filled(from).await;
    // The window begins late, so that some of what ran before lies outside of it.
    let (begin, end) = (from + 30 * S, from + 110 * S);
    for (before, before_ns) in [("2s", 2 * S), ("100ms", S / 10)] {
        let hits: Vec<_> = all
            .iter()
            .filter(|(_, s)| s.service == "nginx" && s.stack.contains("sys_read") && (begin..end).contains(&s.ts_ns))
            .collect();
        assert!(hits.len() > 10);
        let ran_before = |node: &str, sample: &Sample| {
            hits.iter().any(|(hit_node, hit)| {
                *hit_node == node
                    && hit.cpu == sample.cpu
                    && sample.ts_ns < hit.ts_ns
                    && hit.ts_ns - sample.ts_ns <= before_ns
            })
        };
        let chosen = all.iter().filter(|(node, sample)| ran_before(node, sample));
        let mut truth: BTreeMap<String, u64> = BTreeMap::new();
        for (_, sample) in chosen.filter(|(_, s)| (begin - before_ns..end).contains(&s.ts_ns)) {
            *truth.entry(format!(";{}", frames(sample.stack).join(";"))).or_default() += 1;
        }
        let parameters = [
            ("query", "{service=\"nginx\"}"),
            ("from", &ms(begin)),
            ("until", &ms(end)),
            ("match", "sys_read"),
            ("before", before),
        ];
        let answer = server.json("timeline", &parameters).await;
        let found: BTreeMap<String, u64> = paths(&answer, "total", "self")
            .into_iter()
            .filter(|(_, (_, own))| *own > 0)
            .map(|(path, (_, own))| (path, own))
            .collect();
        assert_eq!(found, truth, "{before}");
    }
    for (parameters, word) in [
        (vec![("before", "1s")], "match"),
        (vec![("match", "x")], "before"),
        (vec![("before", "soon"), ("match", "x")], "duration"),
        (vec![("limit", "0")], "100000"),
    ] {
        let (status, code, said) = server.error("timeline", &parameters).await;
        assert_eq!((status, code.as_str()), (400, "bad_parameter"), "{said}");
        assert!(said.contains(word), "{said}");
    }
}
