//! The agent's questions for bursts, against servers of all kinds: what they say reaches the desk, what became of it
//! is told, and one that cannot be asked ends what runs.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use serde_json::{Value, json};
use stakeout_agent::ship::{
    About, BurstDesk, BurstOrder, BurstPolls, BurstReport, BurstState, Identity, Retry, ShipConfig, Token,
};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server whose answers are a test's: a question comes out, a status and a body go in.
struct Server {
    url: String,
    asked: Receiver<(Value, Sender<(u16, String)>)>,
}

fn serve(mut stream: TcpStream, questions: &Sender<(Value, Sender<(u16, String)>)>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    loop {
        let (mut length, mut has_token, mut line) = (0, false, String::new());
        while reader.read_line(&mut line).ok()? > 2 {
            let lower = line.to_ascii_lowercase();
            if let Some(value) = lower.strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
            has_token |= lower.trim() == "authorization: bearer ship";
            line.clear();
        }
        if length == 0 {
            return None;
        }
        assert!(has_token);
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let (answers, answer) = mpsc::channel();
        questions.send((serde_json::from_slice(&body).ok()?, answers)).ok()?;
        let (status, body) = answer.recv().ok()?;
        let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all(head.as_bytes()).ok()?;
        stream.write_all(body.as_bytes()).ok()?;
    }
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/below", listener.local_addr().unwrap());
        let (questions, asked) = mpsc::channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let questions = questions.clone();
                std::thread::spawn(move || serve(stream, &questions));
            }
        });
        Self { url, asked }
    }

    fn question(&self) -> (Value, Sender<(u16, String)>) {
        self.asked.recv_timeout(PATIENCE).unwrap()
    }
}

fn polls(url: &str) -> BurstPolls {
    let config = ShipConfig {
        server: url.into(),
        token: Some(Token::new("ship")),
        ca_file: None,
        state_dir: "/nonexistent".into(),
        spool_limit_bytes: 0,
        request_timeout: Duration::from_secs(5),
        retry: Retry::default(),
        identity: Identity::default(),
    };
    let about = || About {
        node: "a".into(),
        instance: "i".into(),
        agent_version: "0".into(),
        burst_limit_hz: 999,
        cpus: "0-1".into(),
        has_pmu: false,
        selects: &["container"],
    };
    BurstPolls::new(&config, about).unwrap()
}

/// Asks on a thread of its own until the test ends.
fn ask(url: &str, desk: &'static BurstDesk) {
    let url = url.to_owned();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(polls(&url).run(desk));
    });
}

fn report(id: &str, state: BurstState) -> BurstReport {
    BurstReport {
        id: id.into(),
        state,
        from_ms: 1,
        until_ms: 2,
        cpus: "0".into(),
        frequency_hz: 999,
        samples: 5,
        cpu_seconds: 0.5,
        reason: String::new(),
    }
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = std::time::Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::yield_now();
    }
}

fn wait_for_order(desk: &BurstDesk) -> BurstOrder {
    let begun = std::time::Instant::now();
    loop {
        if let Some(order) = desk.take_order() {
            return order;
        }
        assert!(begun.elapsed() < PATIENCE);
        std::thread::yield_now();
    }
}

#[test]
fn an_order_comes_once_and_what_became_of_it_is_told_until_it_is_kept() {
    let (server, desk): (Server, &'static BurstDesk) = (Server::start(), Box::leak(Box::default()));
    ask(&server.url, desk);
    let (question, answer) = server.question();
    assert_eq!(
        (
            &question["node"],
            &question["instance"],
            &question["burst_limit_hz"],
            &question["bursts"]
        ),
        (&json!("a"), &json!("i"), &json!(999), &json!([]))
    );
    assert!(
        question["wait_ms"].as_u64().unwrap() >= 10_000,
        "it is held for long while nothing runs"
    );
    assert_eq!(question["selects"], json!(["container"]));
    let condition = json!({"label": "container", "values": ["api"], "not": true});
    let order = json!({"id": "x", "cpus": "0", "service": "", "process": "", "conditions": [condition],
        "frequency_hz": 999, "seconds": 3});
    answer.send((200, json!({"begin": [order]}).to_string())).unwrap();
    let heard = wait_for_order(desk);
    assert_eq!(heard.id, "x");
    assert_eq!(
        (
            &*heard.conditions[0].label,
            &heard.conditions[0].values[..],
            heard.conditions[0].not
        ),
        ("container", &["api".to_owned()][..], true)
    );
    // It was asked again meanwhile, and a report ends that question.
    desk.report(report("x", BurstState::Running));
    let told = std::iter::repeat_with(|| server.question()).find(|(question, _)| question["bursts"] != json!([]));
    let (question, answer) = told.unwrap();
    assert_eq!(question["bursts"][0]["state"], "running");
    assert!(
        question["wait_ms"].as_u64().unwrap() <= 3_000,
        "its loss is to be noticed"
    );
    answer
        .send((200, json!({"begin": [order], "cancel": ["x"]}).to_string()))
        .unwrap();
    until("the end is asked for", || {
        desk.take_end("x").as_deref() == Some("it was cancelled")
    });
    assert_eq!(desk.take_order(), None, "it runs already");
    desk.report(report("x", BurstState::Cancelled));
    let is_told = |(question, _): &(Value, _)| question["bursts"][0]["state"] == "cancelled";
    let (_, answer) = std::iter::repeat_with(|| server.question()).find(is_told).unwrap();
    answer.send((200, json!({"told": ["x"]}).to_string())).unwrap();
    let (question, _answer) = server.question();
    assert_eq!(question["bursts"], json!([]));
}

#[test]
fn a_server_that_knows_of_no_bursts_is_left_alone_and_ends_what_runs() {
    for (status, body) in [(404, ""), (401, "{}"), (302, ""), (200, "<html>welcome</html>")] {
        let (server, desk): (Server, &'static BurstDesk) = (Server::start(), Box::leak(Box::default()));
        desk.report(report("x", BurstState::Running));
        ask(&server.url, desk);
        // The report may end the first question.
        let mut seen = vec![server.question()];
        while let Ok(more) = server.asked.recv_timeout(Duration::from_millis(300)) {
            seen.push(more);
        }
        let (_, answer) = seen.pop().unwrap();
        answer.send((status, body.to_owned())).unwrap();
        until("what runs is ended", || {
            desk.take_end("x").as_deref() == Some("the server takes no questions any more")
        });
        let again = server.asked.recv_timeout(Duration::from_secs(2));
        assert!(again.is_err(), "{status}: it asks again at once");
    }
}

#[test]
fn a_server_that_is_gone_ends_what_runs_and_is_asked_again() {
    let (server, desk): (Server, &'static BurstDesk) = (Server::start(), Box::leak(Box::default()));
    ask(&server.url, desk);
    let (_, answer) = server.question();
    answer.send((200, "{}".to_owned())).unwrap();
    desk.report(report("x", BurstState::Running));
    // Each question is hung up on.
    let begun = std::time::Instant::now();
    let ended = loop {
        drop(server.question());
        if let Some(reason) = desk.take_end("x") {
            break reason;
        }
        assert!(begun.elapsed() < PATIENCE);
    };
    assert_eq!(ended, "the server could not be reached");
    desk.report(report("x", BurstState::Cancelled));
    let is_told = |(question, _): &(Value, _)| question["bursts"][0]["state"] == "cancelled";
    assert!(std::iter::repeat_with(|| server.question()).any(|asked| is_told(&asked)));
}
