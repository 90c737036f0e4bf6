//! Waits for a CPU by their length: what agents count is what is answered, and refused in words.

use crate::ingest::App;
use crate::support::{Answer, Sender, attributes, get, now_ns, text};
use serde_json::{Value, json};

/// A batch of a node with such waits, 5 s long, that ends at this time.
async fn send(app: &App, sender: &mut Sender, number: i64, until_ns: i64, run_queues: &str) {
    let mut request = sender.batch(number, until_ns);
    let resource = request.resource_profiles[0].resource.as_mut().unwrap();
    resource
        .attributes
        .extend(attributes([("stakeout.run_queues", text(run_queues))]));
    let answer = app.post_plain(&request).await;
    assert_eq!(answer.status, 200, "{answer:?}");
}

async fn ask(app: &App, parameters: &[(&str, &str)]) -> Answer {
    let query = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(parameters)
        .finish();
    get(&app.address, &format!("/api/v1/run_queue?{query}")).await
}

fn values(answer: &Value) -> Vec<(&str, u64, u64)> {
    let lines = answer["lines"].as_array().unwrap().iter();
    let number = |line: &Value, name: &str| line[name].as_u64().unwrap();
    lines
        .map(|line| {
            (
                line["value"].as_str().unwrap(),
                number(line, "waits"),
                number(line, "total_ns"),
            )
        })
        .collect()
}

/// Of a service on a CPU of its own: so many waits of about a millisecond, and one of 99 ms.
fn waits(service: &str, cpu: u32, short: u64) -> String {
    let counts = json!({
        "total_ns": short * 1_100_000 + 99_000_000,
        "longest_ns": 99_000_000,
        "lengths": [[1_048_576, short], [83_886_080, 1]],
    });
    let with = |labels: Value| {
        let mut entry = counts.clone();
        entry
            .as_object_mut()
            .unwrap()
            .extend(labels.as_object().unwrap().clone());
        entry
    };
    let entries = [
        with(json!({"cpu": cpu, "ticks": 100, "idle_ticks": 10 * cpu + 5})),
        with(json!({"service": service, "process": "worker"})),
    ];
    serde_json::to_string(&entries).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn waits_for_a_cpu_are_answered_as_they_were_counted() {
    let app = App::start().await;
    let now = now_ns() - 60_000_000_000;
    let mut nodes = [Sender::new("node-a", 2), Sender::new("node-b", 2)];
    // Two batches of one, 20 s apart, and one of the other.
    send(&app, &mut nodes[0], 1, now - 20_000_000_000, &waits("web", 0, 199)).await;
    send(&app, &mut nodes[0], 2, now, &waits("db", 1, 9)).await;
    send(&app, &mut nodes[1], 1, now, &waits("web", 1, 99)).await;
    let (from, until) = ((now - 60_000_000_000) / 1_000_000, (now + 1_000_000_000) / 1_000_000);
    let window = [("from", from.to_string()), ("until", until.to_string())];
    let window = [("from", &*window[0].1), ("until", &*window[1].1), ("step", "10s")];
    let with = |more: &[(&'static str, &'static str)]| [&window[..], more].concat();

    let answer = ask(&app, &with(&[])).await.json();
    let time = |short: u64| short * 1_100_000 + 99_000_000;
    assert_eq!(
        values(&answer),
        [("web", 300, time(199) + time(99)), ("db", 10, time(9))]
    );
    assert_eq!(
        (answer["batches"].as_u64(), answer["others"].as_u64()),
        (Some(3), Some(0))
    );
    let all = &answer["all"];
    assert_eq!(
        (all["waits"].as_u64(), all["longest_ns"].as_u64()),
        (Some(310), Some(99_000_000))
    );
    let within = |ns: &Value, from: u64, until: u64| {
        let ns = ns.as_u64().unwrap();
        assert!((from..=until).contains(&ns), "{ns}");
    };
    within(&all["p50_ns"], 1_048_576, 1_310_720);
    within(&answer["lines"][0]["p99_ns"], 1_048_576, 1_310_720);
    within(&answer["lines"][1]["p99_ns"], 83_886_080, 99_000_000);
    let steps = answer["lines"][0]["steps"]["waits"].as_array().unwrap();
    let ended: Vec<u64> = steps
        .iter()
        .filter_map(Value::as_u64)
        .filter(|waits| *waits > 0)
        .collect();
    assert_eq!(ended, [200, 100]);
    let medians = answer["lines"][0]["steps"]["p50_ns"].as_array().unwrap();
    assert_eq!(medians.iter().filter(|ns| !ns.is_null()).count(), 2);
    assert_eq!(answer["times"].as_array().unwrap().len(), steps.len());

    let by = |label: &'static str| with(&[("by", label)]);
    let of_cpus = ask(&app, &by("cpu")).await.json();
    assert_eq!(
        values(&of_cpus),
        [("0", 200, time(199)), ("1", 110, time(9) + time(99))]
    );
    // Beside them is how idle the CPUs were.
    let ticks = |answer: &Value| {
        let lines = answer["lines"].as_array().unwrap().iter().chain([&answer["all"]]);
        let of_line = |line: &Value| (line["ticks"].as_u64(), line["idle_ticks"].as_u64());
        lines.map(of_line).collect::<Vec<_>>()
    };
    assert_eq!(
        ticks(&of_cpus),
        [(Some(100), Some(5)), (Some(200), Some(30)), (Some(300), Some(35))]
    );
    assert_eq!(ticks(&answer), [(None::<u64>, None::<u64>); 3], "programs have none");
    let of_nodes = ask(&app, &by("node")).await.json();
    assert_eq!(
        values(&of_nodes),
        [("node-a", 210, time(199) + time(9)), ("node-b", 100, time(99))]
    );
    let one = ask(
        &app,
        &with(&[("query", r#"{node="node-a",cpu=~"1|2"}"#), ("by", "cpu")]),
    )
    .await
    .json();
    assert_eq!(values(&one), [("1", 10, time(9))]);
    let one = ask(
        &app,
        &with(&[("query", r#"{service="web"}"#), ("by", "node"), ("limit", "1")]),
    )
    .await
    .json();
    assert_eq!(
        (values(&one), one["others"].as_u64()),
        (vec![("node-a", 200, time(199))], Some(1))
    );
    assert_eq!(one["all"]["waits"].as_u64(), Some(300), "of all, the other node too");

    let refused = |query: &'static str, by: &'static str| {
        let app = &app;
        let parameters = with(&[("query", query), ("by", by)]);
        async move {
            let answer = ask(app, &parameters).await;
            (
                answer.status.as_u16(),
                answer.json()["error"]["message"].as_str().unwrap().to_owned(),
            )
        }
    };
    let (status, message) = refused(r#"{thread="x"}"#, "service").await;
    assert_eq!(
        (status, &*message),
        (400, "waits for a CPU are not counted by `thread`")
    );
    for (query, by) in [
        (r#"{wait.class="lock"}"#, "service"),
        ("{}", "mode"),
        ("{}", "woken.service"),
    ] {
        let (status, message) = refused(query, by).await;
        assert!(
            status == 400 && message.starts_with("waits for a CPU are not counted by `"),
            "{query} {by}: {message}"
        );
    }
    // These agents do not say for which CPU a program waited.
    let one = ask(&app, &with(&[("query", r#"{cpu="1"}"#), ("by", "service")]))
        .await
        .json();
    assert_eq!(values(&one).len(), 0);
    let one = ask(&app, &with(&[("query", r#"{service="db"}"#), ("by", "cpu")]))
        .await
        .json();
    assert_eq!(values(&one), [("", 10, time(9))]);
}

/// Waits of a version of a service on each CPU, so many short ones each, as agents tell them now.
fn waits_on_cpus(service: &str, build_id: &str, version: Option<&str>, short: [u64; 2]) -> String {
    let lengths = |short: u64| {
        json!({
            "total_ns": short * 1_100_000,
            "longest_ns": 1_100_000 + short,
            "lengths": [[1_048_576, short]],
        })
    };
    let with = |short: u64, labels: Value| {
        let mut entry = lengths(short);
        entry
            .as_object_mut()
            .unwrap()
            .extend(labels.as_object().unwrap().clone());
        entry
    };
    let mut entries = Vec::new();
    for (cpu, short) in (0..).zip(short) {
        let mut attributes = json!({"process.executable.build_id.gnu": build_id});
        if let Some(version) = version {
            attributes["service.version"] = json!(version);
        }
        // The CPU had another's waits, too.
        entries.push(with(
            short + 5,
            json!({"cpu": cpu, "ticks": 100, "idle_ticks": 10 * cpu + 5}),
        ));
        entries.push(with(
            short,
            json!({"service": service, "process": "worker", "on_cpu": cpu, "attributes": attributes}),
        ));
        entries.push(with(5, json!({"service": "other", "process": "sh", "on_cpu": cpu})));
    }
    serde_json::to_string(&entries).unwrap()
}

/// Sends a batch of a node in a cluster, with an attribute of the resource.
async fn send_from(app: &App, sender: &mut Sender, until_ns: i64, cluster: &str, team: &str, run_queues: &str) {
    let mut request = sender.batch(1, until_ns);
    let resource = request.resource_profiles[0].resource.as_mut().unwrap();
    resource.attributes.extend(attributes([
        ("k8s.cluster.name", text(cluster)),
        ("acme.team", text(team)),
        ("stakeout.run_queues", text(run_queues)),
    ]));
    let answer = app.post_plain(&request).await;
    assert_eq!(answer.status, 200, "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn waits_are_selected_by_service_and_cpu_at_once_and_by_attributes() {
    let app = App::start().await;
    let now = now_ns() - 60_000_000_000;
    let mut nodes = [Sender::new("node-a", 2), Sender::new("node-b", 2)];
    let build = "c0ffee00c0ffee00";
    let of_a = waits_on_cpus("web", build, Some("1.4"), [100, 20]);
    let of_b = waits_on_cpus("web", build, None, [7, 3]);
    send_from(&app, &mut nodes[0], now, "eu", "red", &of_a).await;
    send_from(&app, &mut nodes[1], now, "us", "blue", &of_b).await;
    let (from, until) = ((now - 60_000_000_000) / 1_000_000, (now + 1_000_000_000) / 1_000_000);
    let window = [("from", from.to_string()), ("until", until.to_string())];
    let asked = async |query: &str, by: &str| {
        let more = [("query", query), ("by", by)];
        let window = window.each_ref().map(|(name, value)| (*name, &**value));
        let answer = ask(&app, &[&window[..], &more[..]].concat()).await;
        assert_eq!(answer.status, 200, "{query} {by}: {answer:?}");
        answer.json()
    };
    let counted = async |query: &str, by: &str| {
        let answer = asked(query, by).await;
        let told = values(&answer).into_iter();
        told.map(|(value, waits, _)| (value.to_owned(), waits))
            .collect::<Vec<_>>()
    };
    let of = |lines: &[(&str, u64)]| -> Vec<(String, u64)> {
        lines
            .iter()
            .map(|(value, waits)| ((*value).to_owned(), *waits))
            .collect()
    };
    for (query, by, wanted) in [
        (r#"{service="web",cpu="1"}"#, "service", &[("web", 23)][..]),
        (r#"{service="web"}"#, "cpu", &[("0", 107), ("1", 23)]),
        (r#"{cpu="0"}"#, "service", &[("web", 107), ("other", 10)]),
        (
            r#"{node="node-b",process="worker",cpu=~"0|1"}"#,
            "cpu",
            &[("0", 7), ("1", 3)],
        ),
        // CPUs by themselves have all of their waits.
        ("{}", "cpu", &[("0", 117), ("1", 33)]),
        ("{}", "cluster", &[("eu", 130), ("us", 20)]),
        (r#"{cluster="us"}"#, "cpu", &[("0", 12), ("1", 8)]),
        (r#"{cluster="us",service="web"}"#, "node", &[("node-b", 10)]),
        // A version is told, or is the build's.
        (r#"{service="web"}"#, "version", &[("1.4", 120), ("c0ffee00c0ff", 10)]),
        (r#"{version="1.4",cpu="1"}"#, "service", &[("web", 20)]),
        (r#"{service.version=""}"#, "service", &[("other", 20), ("web", 10)]),
        // What a resource says is of all in its batch.
        (r#"{acme.team="red"}"#, "service", &[("web", 120), ("other", 10)]),
        (r#"{acme.team!="red"}"#, "cpu", &[("0", 12), ("1", 8)]),
        ("{}", "acme.team", &[("red", 130), ("blue", 20)]),
    ] {
        assert_eq!(counted(query, by).await, of(wanted), "{query} by {by}");
    }
    // Beside a service's waits stands how idle its CPUs were, whoever ran there.
    let answer = asked(r#"{service="web",cpu="1"}"#, "cpu").await;
    let idle = |answer: &Value| {
        (
            answer["lines"][0]["ticks"].as_u64(),
            answer["lines"][0]["idle_ticks"].as_u64(),
        )
    };
    assert_eq!(idle(&answer), (Some(200), Some(30)));
    let answer = asked(r#"{service="web",cluster="us"}"#, "node").await;
    assert_eq!(idle(&answer), (Some(200), Some(20)));
    for (query, by) in [(r#"{cpu="1"}"#, "service"), (r#"{version="1.4"}"#, "cpu")] {
        assert_eq!(idle(&asked(query, by).await), (None, None), "{query} by {by}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_cpus_of_nodes_on_which_nobody_selected_waited_are_left_out() {
    let app = App::start().await;
    let now = now_ns() - 60_000_000_000;
    // One service on the first of three nodes, another on the others, which are of the same cluster in part.
    for (node, cluster, service) in [("node-a", "eu", "web"), ("node-b", "eu", "db"), ("node-c", "us", "db")] {
        let waits = waits_on_cpus(service, "c0ffee00c0ffee00", None, [100, 20]);
        send_from(&app, &mut Sender::new(node, 2), now, cluster, "red", &waits).await;
    }
    let (from, until) = ((now - 60_000_000_000) / 1_000_000, (now + 1_000_000_000) / 1_000_000);
    let (from, until) = (from.to_string(), until.to_string());
    for (query, by, wanted) in [
        (r#"{service="web"}"#, "cpu", &[("0", 100, 5), ("1", 100, 15)][..]),
        (r#"{service="web"}"#, "node", &[("node-a", 200, 20)]),
        (r#"{service="web"}"#, "cluster", &[("eu", 200, 20)]),
        (r#"{service="db"}"#, "cpu", &[("0", 200, 10), ("1", 200, 30)]),
        (r#"{service="db"}"#, "cluster", &[("eu", 200, 20), ("us", 200, 20)]),
        // Whoever waits: all of them.
        (r#"{service="other"}"#, "cpu", &[("0", 300, 15), ("1", 300, 45)]),
        ("{}", "cluster", &[("eu", 400, 40), ("us", 200, 20)]),
    ] {
        let asked = [("from", &*from), ("until", &*until), ("query", query), ("by", by)];
        let answer = ask(&app, &asked).await.json();
        let mut told: Vec<(&str, u64, u64)> = answer["lines"]
            .as_array()
            .unwrap()
            .iter()
            .map(|line| {
                let number = |name: &str| line[name].as_u64().unwrap();
                (line["value"].as_str().unwrap(), number("ticks"), number("idle_ticks"))
            })
            .collect();
        told.sort_unstable();
        assert_eq!(told, wanted, "{query} by {by}");
        let sum = |of: fn(&(&str, u64, u64)) -> u64| wanted.iter().map(of).sum::<u64>();
        assert_eq!(
            (answer["all"]["ticks"].as_u64(), answer["all"]["idle_ticks"].as_u64()),
            (Some(sum(|line| line.1)), Some(sum(|line| line.2))),
            "{query} by {by}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn waits_that_cannot_be_read_are_left_out_and_counted() {
    let app = App::start().await;
    let mut sender = Sender::new("node-a", 2);
    let now = now_ns();
    send(&app, &mut sender, 1, now, r#"[{"cpu":0,"total_ns":-1}]"#).await;
    assert_eq!(app.stored(), 2, "the samples are kept");
    let nodes = get(&app.address, "/api/v1/nodes").await.json();
    assert_eq!(nodes["nodes"][0]["limits"]["run_queues_unreadable"].as_i64(), Some(1));
    let answer = ask(&app, &[]).await.json();
    assert_eq!((values(&answer).len(), answer["batches"].as_u64()), (0, Some(0)));
}
