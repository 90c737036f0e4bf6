//! What others send: values without time stamps, units, types, senders without an account. Every answer to one
//! question has the truth.

use super::*;
use crate::pprof::{gzip, pprof};
use crate::wire::{Plain, PlainSample, json_of, plain};

/// Service, thread and stack of what is sent in several ways, and how many samples of [`PERIOD_NS`] it has in each of
/// two minutes.
const RECORDED: [(&str, &str, &str, [i64; 2]); 4] = [
    ("web", "main", "main;handle;parse", [700, 300]),
    ("web", "pool", "main;handle;render", [100, 400]),
    ("db", "io", "start;loop;read", [13, 14]),
    ("db", "one", "start;loop;fsync", [1, 0]),
];
pub(super) const MINUTE: i64 = 60 * S;
pub(super) const CPU: (&str, &str) = ("cpu", "nanoseconds");
pub(super) const COUNT: (&str, &str) = ("samples", "count");

/// A profile of one minute, in ticks of [`PERIOD_NS`].
pub(super) fn profile(node: &'static str, time_ns: i64, samples: Vec<PlainSample>) -> Plain {
    Plain {
        node,
        sample_type: COUNT,
        period_type: CPU,
        period: PERIOD_NS,
        time_ns,
        length_ns: MINUTE,
        samples,
    }
}

/// Times of so many samples in a minute.
pub(super) fn times(from_ns: i64, count: i64) -> Vec<i64> {
    (0..count).map(|at| from_ns + at * MINUTE / count).collect()
}

/// A request of one route: path, content type and body.
type Sent = (String, &'static str, Vec<u8>);

/// What Pyroscope's agents send: a request for each service, with the node as a label of its name and threads as
/// labels of samples.
fn as_pprof(node: &str, minute: usize, from_ns: i64) -> Vec<Sent> {
    let of = |service: &str| {
        let samples = RECORDED
            .iter()
            .filter(|(of, .., counts)| *of == service && counts[minute] > 0);
        let samples: Vec<_> = samples
            .map(|(_, thread, stack, counts)| (*thread, *stack, counts[minute] as u64))
            .collect();
        let name: String =
            url::form_urlencoded::byte_serialize(format!("{service}{{hostname={node}}}").as_bytes()).collect();
        let until_ns = from_ns + MINUTE;
        let path = format!("/ingest?name={name}&from={from_ns}&until={until_ns}&spyName=gospy&format=pprof");
        (
            path,
            "application/octet-stream",
            gzip(&pprof(&samples, PERIOD_NS as u64)),
        )
    };
    ["web", "db"].map(of).into()
}

/// The ways to send a minute of what was recorded, by the node that it is sent for. All but the first are of senders
/// without an account.
fn routes(minute: usize, from_ns: i64) -> Vec<(&'static str, Vec<Sent>)> {
    let recorded = || RECORDED.iter().filter(|(.., counts)| counts[minute] > 0);
    let moments = |(service, thread, stack, counts): &(&'static str, &'static str, &'static str, [i64; 2])| {
        let sample = Sample {
            ts_ns: 0,
            service,
            tgid: 1,
            tid: 1,
            thread,
            cpu: 0,
            stack,
        };
        times(from_ns, counts[minute]).into_iter().map(move |ts_ns| Sample {
            ts_ns,
            ..sample.clone()
        })
    };
    let batch = Batch {
        node: "agent",
        instance: "00000000-0000-4000-8000-0000000000aa",
        number: minute as i64 + 1,
        from_ns,
        until_ns: from_ns + MINUTE,
        period_ns: PERIOD_NS,
        missed_ticks: 0,
        samples: recorded().flat_map(moments).collect(),
    };
    let with = |values: fn(i64) -> Vec<i64>, is_timed: bool| -> Vec<PlainSample> {
        let sample = |(service, thread, stack, counts): &(&'static str, &'static str, &'static str, [i64; 2])| {
            let times = if is_timed {
                times(from_ns, counts[minute])
            } else {
                Vec::new()
            };
            (*service, *thread, *stack, values(counts[minute]), times)
        };
        recorded().map(sample).collect()
    };
    let counted = profile("counted", from_ns, with(|count| vec![count], false));
    let valued = Plain {
        sample_type: CPU,
        ..profile("valued", from_ns, with(|count| vec![count * PERIOD_NS], false))
    };
    let scaled = Plain {
        sample_type: ("cpu", "ms"),
        period_type: ("", ""),
        period: 0,
        ..profile(
            "scaled",
            from_ns,
            with(|count| vec![count * PERIOD_NS / 1_000_000], false),
        )
    };
    let timed = profile("timed", from_ns, with(|_| Vec::new(), true));
    let of_times = Plain {
        sample_type: CPU,
        ..profile("both", from_ns, with(|count| vec![PERIOD_NS; count as usize], true))
    };
    let json = Plain {
        node: "json",
        ..counted.clone()
    };
    let otlp = |content_type, body| vec![("/v1development/profiles".to_owned(), content_type, body)];
    let protobuf = "application/x-protobuf";
    let mut routes = vec![
        ("agent", otlp(protobuf, request(&batch))),
        ("json", otlp("application/json", json_of(&plain(&[json])))),
        ("pprof", as_pprof("pprof", minute, from_ns)),
    ];
    routes.extend(
        [counted, valued, scaled, timed, of_times].map(|profile| (profile.node, otlp(protobuf, plain(&[profile])))),
    );
    routes
}

pub(super) fn numbers(rows: &Value, name: &str, number: &str) -> BTreeMap<String, f64> {
    let rows = rows.as_array().unwrap().iter();
    rows.map(|row| (row[name].as_str().unwrap().to_owned(), row[number].as_f64().unwrap()))
        .collect()
}

fn same(route: &str, what: &str, found: &BTreeMap<String, f64>, truth: &BTreeMap<String, f64>) {
    assert!(found.keys().eq(truth.keys()), "{route}, {what}: {found:?} {truth:?}");
    for (name, right) in truth {
        let near = (found[name] - right).abs() <= 0.001 * right.abs();
        assert!(near, "{route}, {what}, {name}: {} is not {right}", found[name]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_recorded_profile_has_the_same_answers_whichever_way_it_came() {
    let (server, from) = (Server::start().await, recent());
    let mut nodes = Vec::new();
    for minute in 0..2 {
        for (node, requests) in routes(minute, from + minute as i64 * MINUTE) {
            let least = (4 - minute) / requests.len();
            for (path, content_type, body) in requests {
                server.ingest_as(&path, content_type, body, least).await;
            }
            nodes.push(node);
        }
        server.store.flush().await.unwrap();
    }
    let cores = |minute: usize| {
        let of = |(_, thread, _, counts): &(&str, &str, &str, [i64; 2])| {
            (thread.to_string(), (counts[minute] * PERIOD_NS) as f64 / MINUTE as f64)
        };
        RECORDED
            .iter()
            .filter(|(.., counts)| counts[minute] > 0)
            .map(of)
            .collect::<BTreeMap<_, _>>()
    };
    let names: BTreeMap<&str, &str> = RECORDED
        .iter()
        .map(|(_, thread, stack, _)| (leaf(stack), *thread))
        .collect();
    let by_thread = |of: BTreeMap<String, f64>| -> BTreeMap<String, f64> {
        let known = of
            .into_iter()
            .filter_map(|(name, value)| Some((names.get(name.as_str())?.to_string(), value)));
        known.collect()
    };
    for node in &nodes[..nodes.len() / 2] {
        let query = format!("{{node=\"{node}\"}}");
        let moments = [0, 1, 2].map(|minute| ms(from + minute * MINUTE));
        for minute in 0..2 {
            let asked = [
                ("query", &*query),
                ("from", &*moments[minute]),
                ("until", &*moments[minute + 1]),
            ];
            let with = |more: &[(&'static str, &'static str)]| [&asked[..], more].concat();
            let truth = cores(minute);

            let graph = server.json("flamegraph", &asked).await;
            let period_s = graph["period_ns"].as_f64().unwrap() / 1e9;
            let paths = paths(&graph, "total", "self");
            let found = RECORDED.iter().filter_map(|(_, thread, stack, _)| {
                let (total, _) = paths.get(&format!(";{stack}"))?;
                Some((thread.to_string(), *total as f64 * period_s / 60.0))
            });
            same(node, "flamegraph", &found.collect(), &truth);
            assert!(
                (graph["cores"].as_f64().unwrap() - truth.values().sum::<f64>()).abs() < 1e-9,
                "{node} {graph}"
            );

            let top = server.json("top", &with(&[("by", "function")])).await;
            same(node, "top", &by_thread(numbers(&top["rows"], "name", "cores")), &truth);
            let top = server.json("top", &with(&[("by", "thread")])).await;
            same(node, "top by thread", &numbers(&top["rows"], "name", "cores"), &truth);

            let series = server.json("series", &with(&[("by", "thread"), ("step", "60s")])).await;
            let lines = series["series"].as_array().unwrap().iter();
            let lines = lines.map(|line| {
                (
                    line["value"].as_str().unwrap().to_owned(),
                    line["cores"][0].as_f64().unwrap(),
                )
            });
            same(node, "series", &lines.collect(), &truth);

            let statement = format!(
                "SELECT thread, sum(value) FROM samples WHERE node = '{node}' AND ts_ns >= {} AND ts_ns < {} GROUP BY thread",
                from + minute as i64 * MINUTE,
                from + (minute as i64 + 1) * MINUTE
            );
            let (_, rows) = server.sql(&statement).await;
            let rows: Value = serde_json::from_slice(&rows).unwrap();
            let rows = rows["rows"].as_array().unwrap().iter().map(|row| {
                let value = row[1].as_f64().or_else(|| row[1].as_str()?.parse().ok()).unwrap();
                (row[0].as_str().unwrap().to_owned(), value / MINUTE as f64)
            });
            same(node, "sql", &rows.collect(), &truth);
        }
        let asked = [
            ("query", &*query),
            ("base_from", &*moments[0]),
            ("base_until", &*moments[1]),
            ("from", &*moments[1]),
            ("until", &*moments[2]),
        ];
        let diff = server.json("diff", &asked).await;
        let (strings, of) = (&diff["strings"], &diff["nodes"]);
        for (column, minute) in [("base_norm", 0), ("norm", 1)] {
            let nodes = of["name"]
                .as_array()
                .unwrap()
                .iter()
                .zip(of[column].as_array().unwrap());
            let found = nodes.map(|(name, norm)| {
                let name = strings[name.as_u64().unwrap() as usize].as_str().unwrap();
                (name.to_owned(), norm.as_f64().unwrap())
            });
            let found = by_thread(found.filter(|(_, norm)| *norm > 0.0).collect());
            same(node, column, &found, &cores(minute));
        }
    }
}

fn leaf(stack: &str) -> &str {
    stack.rsplit(';').next().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn values_have_their_shares_in_every_answer() {
    let (server, from) = (Server::start().await, recent());
    type Case = (
        &'static str,
        (&'static str, &'static str),
        (&'static str, &'static str),
        i64,
        [&'static [i64]; 2],
        &'static str,
    );
    let cases: [Case; 6] = [
        ("a", CPU, ("", ""), 0, [&[700_000_000], &[1_000_000_000]], "cpu"),
        ("b", CPU, CPU, 1, [&[1_000_000], &[1_000_000_000]], "cpu"),
        ("c", COUNT, CPU, 10_000_000, [&[3, 4], &[2, 3, 5]], "cpu"),
        ("d", COUNT, CPU, 10_000_000, [&[1], &[1_000]], "cpu"),
        ("e", COUNT, ("", ""), 0, [&[7], &[10]], "samples"),
        (
            "f",
            ("alloc_space", "bytes"),
            ("space", "bytes"),
            524_288,
            [&[4_096], &[123_456_789]],
            "alloc_space",
        ),
    ];
    for (node, sample_type, period_type, period, [left, right], _) in cases {
        let profile = Plain {
            sample_type,
            period_type,
            period,
            ..profile(
                node,
                from,
                vec![
                    ("s", "left", "main;left", left.to_vec(), Vec::new()),
                    ("s", "right", "main;right", right.to_vec(), Vec::new()),
                ],
            )
        };
        server.ingest_bytes(plain(&[profile]), 2).await;
    }
    for committed in [false, true] {
        if committed {
            server.store.flush().await.unwrap();
        }
        for (node, .., [left, right], kind) in cases {
            let (left, right) = (left.iter().sum::<i64>() as f64, right.iter().sum::<i64>() as f64);
            let truth = BTreeMap::from([
                ("left".to_owned(), left / (left + right)),
                ("right".to_owned(), right / (left + right)),
            ]);
            let shares = all_shares(&server, node, kind, from).await;
            for (answer, mut found) in shares {
                found.retain(|name, _| truth.contains_key(name));
                same(node, answer, &found, &truth);
            }
        }
    }
}

/// What part `left` and `right` have, by answer.
async fn all_shares(server: &Server, node: &str, kind: &str, from: i64) -> Vec<(&'static str, BTreeMap<String, f64>)> {
    let (query, moments) = (format!("{{node=\"{node}\"}}"), [ms(from), ms(from + MINUTE)]);
    let asked = [
        ("query", &*query),
        ("type", kind),
        ("from", &*moments[0]),
        ("until", &*moments[1]),
    ];
    let with = |more: &[(&'static str, &'static str)]| [&asked[..], more].concat();
    let of_whole = |of: BTreeMap<String, f64>| -> BTreeMap<String, f64> {
        let whole: f64 = of.values().sum();
        of.into_iter().map(|(name, value)| (name, value / whole)).collect()
    };
    let by_leaf = |of: BTreeMap<String, u64>| -> BTreeMap<String, f64> {
        of.into_iter()
            .map(|(stack, n)| (leaf(&stack).to_owned(), n as f64))
            .collect()
    };
    let mut shares = Vec::new();

    let graph = server.json("flamegraph", &asked).await;
    let totals = paths(&graph, "total", "self");
    let found = totals.into_iter().filter(|(path, _)| path.matches(';').count() == 2);
    shares.push((
        "flamegraph",
        of_whole(
            found
                .map(|(path, (total, _))| (leaf(&path).to_owned(), total as f64))
                .collect(),
        ),
    ));
    let matched = server.json("flamegraph", &with(&[("match", "^right$")])).await;
    let right = matched["match"]["share"].as_f64().unwrap();
    shares.push((
        "match",
        BTreeMap::from([("left".to_owned(), 1.0 - right), ("right".to_owned(), right)]),
    ));
    let folded = server.text("flamegraph", &with(&[("format", "collapsed")])).await;
    shares.push(("collapsed", of_whole(by_leaf(collapsed_answer(&folded)))));
    let scope = server.json("flamegraph", &with(&[("format", "speedscope")])).await;
    let (frames, profile) = (&scope["shared"]["frames"], &scope["profiles"][0]);
    let weights = profile["samples"]
        .as_array()
        .unwrap()
        .iter()
        .zip(profile["weights"].as_array().unwrap());
    let weights = weights.map(|(path, weight)| {
        let frame = path.as_array().unwrap().last().unwrap().as_u64().unwrap() as usize;
        (
            frames[frame]["name"].as_str().unwrap().to_owned(),
            weight.as_f64().unwrap(),
        )
    });
    shares.push(("speedscope", of_whole(weights.collect())));
    for by in ["function", "thread"] {
        let top = server.json("top", &with(&[("by", by)])).await;
        shares.push(("top", numbers(&top["rows"], "name", "total_share")));
        let csv = server.text("top", &with(&[("by", by), ("format", "csv")])).await;
        let (head, rows) = csv.split_once("\r\n").unwrap();
        let column = head.split(',').position(|name| name == "total_share").unwrap();
        let rows = rows.lines().map(|row| row.split(',').collect::<Vec<_>>());
        shares.push((
            "csv",
            rows.map(|row| (row[0].to_owned(), row[column].parse().unwrap()))
                .collect(),
        ));
    }
    let series = server.json("series", &with(&[("by", "thread"), ("step", "60s")])).await;
    let lines = series["series"].as_array().unwrap().iter();
    let lines = lines.map(|line| {
        (
            line["value"].as_str().unwrap().to_owned(),
            line["cores"][0].as_f64().unwrap(),
        )
    });
    shares.push(("series", of_whole(lines.collect())));
    let base = [
        ("base_from", &*moments[0]),
        ("base_until", &*moments[1]),
        ("normalize", "share"),
    ];
    let diff = server.json("diff", &[&asked[..], &base].concat()).await;
    let names = diff["nodes"]["name"]
        .as_array()
        .unwrap()
        .iter()
        .zip(diff["nodes"]["norm"].as_array().unwrap());
    let names = names.map(|(name, norm)| {
        let name = diff["strings"][name.as_u64().unwrap() as usize].as_str().unwrap();
        (name.to_owned(), norm.as_f64().unwrap())
    });
    shares.push(("diff", names.collect()));
    let by = [("by", "thread")];
    let diff = server.json("top", &[&asked[..], &base, &by].concat()).await;
    shares.push(("top of a difference", numbers(&diff["rows"], "name", "norm")));
    shares
}
