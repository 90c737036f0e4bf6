//! Trees, tables, charts and labels add up to the samples.

use super::*;
use stakeout_server::label::Label;

/// The same from the samples themselves.
fn path_truth(samples: &[&Sample]) -> BTreeMap<String, (u64, u64)> {
    let mut truth: BTreeMap<String, (u64, u64)> = BTreeMap::from([(String::new(), (0, 0))]);
    for sample in samples {
        let mut path = String::new();
        truth.get_mut("").unwrap().0 += 1;
        for frame in frames(sample.stack) {
            path = format!("{path};{frame}");
            truth.entry(path.clone()).or_default().0 += 1;
        }
        truth.entry(path).or_default().1 += 1;
    }
    truth
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tree_is_exact_and_so_are_its_views() {
    let from = recent();
    let (server, all) = filled(from).await;
    let (begin, end) = (ms(from), ms(from + 120 * S));
    let window = [("from", begin.as_str()), ("until", end.as_str())];
    let with = |more: &[(&'static str, &'static str)]| [&window[..], more].concat();
    let samples: Vec<&Sample> = all.iter().map(|(_, s)| s).collect();
    let answer = server
        .json("flamegraph", &with(&[("match", "^(walk|sys_read)$")]))
        .await;
    assert_eq!(paths(&answer, "total", "self"), path_truth(&samples));
    assert_eq!(answer["samples"], 1_600);
    assert_eq!(answer["period_ns"], PERIOD_NS);
    assert_eq!(answer["cpu_seconds"], 80.0);
    assert_eq!(answer["cores"].as_f64().unwrap(), 80.0 / 120.0);
    assert_eq!(answer["exposure"]["nodes"], 2);
    assert_eq!(answer["exposure"]["observed_cpu_seconds"], 480.0);
    assert_eq!(answer["exposure"]["gaps"], json!([]));
    assert_eq!(
        answer["quality"]["lost"]["ring_full"], 6,
        "three of each agent, cumulative over its batches"
    );
    let count = |test: &dyn Fn(&str) -> bool| samples.iter().filter(|s| test(s.stack)).count() as u64;
    assert_eq!(answer["quality"]["unnamed_samples"], count(&|s| s.contains('?')));
    let matched = count(&|s| s.contains("walk") || s.contains("sys_read"));
    assert_eq!(
        answer["match"]["samples"], matched,
        "a sample with three walks counts once"
    );

    let rooted = server
        .json(
            "flamegraph",
            &with(&[("root", "^walk$"), ("transform", "merge_recursion")]),
        )
        .await;
    let walks = (count(&|s| s.contains("walk;walk")), count(&|s| s == "main;walk;stat"));
    let expected = BTreeMap::from([
        (String::new(), (walks.0 + walks.1, 0)),
        (";walk".to_owned(), (walks.0 + walks.1, 0)),
        (";walk;stat".to_owned(), (walks.0 + walks.1, walks.0 + walks.1)),
    ]);
    assert_eq!(paths(&rooted, "total", "self"), expected);

    let trimmed = server.json("flamegraph", &with(&[("min_share", "0.2")])).await;
    let total: u64 = trimmed["nodes"]["self"]
        .as_array()
        .unwrap()
        .iter()
        .map(|v| v.as_u64().unwrap())
        .sum();
    assert_eq!(total, 1_600, "trimming loses no sample");
    assert!(trimmed["nodes"]["self"].as_array().unwrap().len() < answer["nodes"]["self"].as_array().unwrap().len());
    assert!(trimmed["strings"].to_string().contains("below the threshold"));
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_charts_and_labels_add_up() {
    let from = recent();
    let (server, all) = filled(from).await;
    let (begin, end) = (ms(from), ms(from + 180 * S));
    let window = [("from", begin.as_str()), ("until", end.as_str())];
    let with = |more: &[(&'static str, &'static str)]| [&window[..], more].concat();

    for (by, value_of) in [
        ("service", (|_, s| s.service.to_owned()) as fn(&str, &Sample) -> String),
        ("node", |node, _| node.to_owned()),
        ("thread", |_, s| s.thread.to_owned()),
        ("tid", |_, s| s.tid.to_string()),
        ("tgid", |_, s| s.tgid.to_string()),
        ("cpu", |_, s| s.cpu.to_string()),
        ("mode", |_, s| {
            if s.stack.rsplit(';').next().unwrap().starts_with("k:") {
                "kernel"
            } else {
                "user"
            }
            .to_owned()
        }),
    ] {
        let mut truth: BTreeMap<String, u64> = BTreeMap::new();
        for (node, sample) in &all {
            *truth.entry(value_of(node, sample)).or_default() += 1;
        }
        let series = server.json("series", &with(&[("by", by), ("step", "60s")])).await;
        let mut answer = BTreeMap::new();
        for line in series["series"].as_array().unwrap() {
            answer.insert(
                line["value"].as_str().unwrap().to_owned(),
                line["samples"].as_u64().unwrap(),
            );
            // Cores of each step times its observed seconds is the line's CPU time.
            let cores = line["cores"].as_array().unwrap();
            let cpu_s: f64 = cores.iter().filter_map(Value::as_f64).map(|cores| cores * 60.0).sum();
            assert!((cpu_s - line["cpu_seconds"].as_f64().unwrap()).abs() < 1e-6);
            assert!(cores[2].is_null(), "no agent covered the third minute");
        }
        assert_eq!(answer, truth, "series by {by}");
        assert_eq!(series["covered"], json!([1.0, 1.0, 0.0]));
        assert_eq!(series["capacity"], json!([4.0, 4.0, null]));
        let top = server.json("top", &with(&[("by", by)])).await;
        let rows = top["rows"].as_array().unwrap().iter();
        let answer: BTreeMap<_, _> = rows
            .map(|row| (row["name"].as_str().unwrap().to_owned(), row["total"].as_u64().unwrap()))
            .collect();
        assert_eq!(answer, truth, "top by {by}");
        let values = server.json(&format!("labels/{by}/values"), &window).await;
        assert_eq!(values["values"].as_array().unwrap().len(), truth.len(), "{values}");
    }
    let cut = server.json("series", &with(&[("by", "tid"), ("limit", "2")])).await;
    let sum: u64 = cut["series"]
        .as_array()
        .unwrap()
        .iter()
        .chain([&cut["other"]])
        .map(|l| l["samples"].as_u64().unwrap())
        .sum();
    assert_eq!(
        (sum, cut["other"]["series"].as_u64().unwrap()),
        (1_600, 7),
        "three services with three threads each"
    );

    // The chart of one function: every sample that has it, however often, at its own time.
    let mut truth: BTreeMap<(String, usize), u64> = BTreeMap::new();
    for (_, sample) in all.iter().filter(|(_, s)| s.stack.contains("walk")) {
        let minute = ((sample.ts_ns - from) / (60 * S)) as usize;
        *truth.entry((sample.service.to_owned(), minute)).or_default() += 1;
    }
    let walking = server
        .json("series", &with(&[("match", "^wal[k]$"), ("step", "60s")]))
        .await;
    let mut answer = BTreeMap::new();
    for line in walking["series"].as_array().unwrap() {
        for (minute, cores) in line["cores"].as_array().unwrap().iter().enumerate() {
            let samples = cores.as_f64().unwrap_or(0.0) * 60.0 * 1e9 / PERIOD_NS as f64;
            if samples > 0.0 {
                let key = (line["value"].as_str().unwrap().to_owned(), minute);
                answer.insert(key, samples.round() as u64);
            }
        }
    }
    assert!(!truth.is_empty() && truth.values().sum::<u64>() < 1_600);
    assert_eq!(answer, truth, "series of one function");
    assert_eq!(
        walking["covered"],
        json!([1.0, 1.0, 0.0]),
        "what was watched does not depend on the function"
    );
    let nowhere = server.json("series", &with(&[("match", "nowhere")])).await;
    assert_eq!(nowhere["series"], json!([]));

    // One function of one module, and one place of it: neither its namesakes nor what stands elsewhere.
    let whole = server.json("flamegraph", &window).await;
    let column = |name: &str| whole["nodes"][name].as_array().unwrap().clone();
    let (parent, name, module, kind) = (column("parent"), column("name"), column("module"), column("kind"));
    let frame = |node: usize| {
        let text = |at: &serde_json::Value| {
            whole["strings"][at.as_u64().unwrap() as usize]
                .as_str()
                .unwrap()
                .to_owned()
        };
        let kind = whole["kinds"][kind[node].as_u64().unwrap() as usize].as_str().unwrap();
        format!("{kind},{},{}", text(&module[node]), text(&name[node]))
    };
    let cpu_seconds = |answer: &serde_json::Value| -> f64 {
        let lines = answer["series"].as_array().unwrap().iter();
        lines.map(|line| line["cpu_seconds"].as_f64().unwrap()).sum()
    };
    for node in 1..name.len() {
        let mut path = vec![frame(node)];
        let mut above = parent[node].as_u64().unwrap() as usize;
        while above > 0 {
            path.insert(0, frame(above));
            above = parent[above].as_u64().unwrap() as usize;
        }
        let path = path.join(";");
        let total = whole["nodes"]["total"][node].as_u64().unwrap();
        let there = server
            .json("series", &[&window[..], &[("match_path", path.as_str())]].concat())
            .await;
        assert!((cpu_seconds(&there) - total as f64 * 0.05).abs() < 1e-6, "{path}");
        let there = server
            .json(
                "top",
                &[&window[..], &[("match_path", path.as_str()), ("by", "service")]].concat(),
            )
            .await;
        assert_eq!(there["samples"], total, "{path}");
        let there = server
            .json("flamegraph", &[&window[..], &[("match_path", path.as_str())]].concat())
            .await;
        assert_eq!(
            (&there["match"]["samples"], &there["match"]["pattern"]),
            (&json!(total), &json!(path))
        );
    }
    let walk = (1..name.len())
        .find(|node| frame(*node).ends_with(",walk"))
        .map(frame)
        .unwrap();
    let walks = all.iter().filter(|(_, s)| s.stack.contains("walk")).count() as u64;
    for (given, expected) in [
        (walk.clone(), walks),
        (walk.replace("native", "kernel"), 0),
        (walk.replace(",walk", ",wal"), 0),
    ] {
        let there = server
            .json("series", &[&window[..], &[("match_frame", given.as_str())]].concat())
            .await;
        assert!((cpu_seconds(&there) - expected as f64 * 0.05).abs() < 1e-6, "{given}");
        let there = server
            .json(
                "top",
                &[&window[..], &[("match_frame", given.as_str()), ("by", "function")]].concat(),
            )
            .await;
        assert_eq!(there["samples"], expected, "{given}");
        let of_walk = there["rows"]
            .as_array()
            .unwrap()
            .iter()
            .find(|row| row["name"] == "walk");
        assert_eq!(
            of_walk.map_or(0, |row| row["total"].as_u64().unwrap()),
            expected,
            "{given}"
        );
    }

    let top = server.json("top", &with(&[("by", "function")])).await;
    let stat = top["rows"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["name"] == "walk")
        .unwrap();
    let walks = all.iter().filter(|(_, s)| s.stack.contains("walk")).count() as u64;
    assert_eq!(
        (stat["total"].as_u64().unwrap(), stat["self"].as_u64().unwrap()),
        (walks, 0),
        "recursion counts once"
    );
    let csv = server
        .text("top", &with(&[("by", "function"), ("format", "csv")]))
        .await;
    assert_eq!(csv.lines().count(), top["rows"].as_array().unwrap().len() + 1);
    assert!(csv.starts_with("name,module,kind,language,self,total"));
    let labels = server.json("labels", &[]).await;
    assert_eq!(labels["labels"].as_array().unwrap().len(), Label::ALL.len());
}
