//! Closer looks on demand, over HTTP: what they are begun for, and what an agent hears and says.

mod refused;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};
use stakeout_server::api::{AppState, Tokens, app};
use stakeout_server::store::{Store, StoreConfig};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tower::ServiceExt;

use crate::support::Sender;
use prost::Message;

struct Server {
    app: Router,
    store: Arc<Store>,
}

impl Server {
    async fn open(dir: &Path, change: impl FnOnce(AppState) -> AppState) -> Server {
        let config = StoreConfig {
            commit_interval: Duration::from_millis(20),
            min_free_bytes: 0,
            ..StoreConfig::new(dir)
        };
        let store = Store::open(config).await.unwrap();
        let state = change(AppState::new(store.clone()));
        Server { app: app(state), store }
    }

    async fn ask(&self, method: &str, path: &str, token: &str, body: &Value) -> (u16, Value) {
        let mut request = Request::builder().method(method).uri(format!("/api/v1/{path}"));
        if !token.is_empty() {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let text = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let request = request
            .header("content-type", "application/json")
            .body(Body::from(text));
        let answer = self.app.clone().oneshot(request.unwrap()).await.unwrap();
        let status = answer.status().as_u16();
        let body = axum::body::to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }

    async fn begin(&self, body: &Value) -> (u16, Value) {
        self.ask("POST", "bursts", "", body).await
    }

    async fn list(&self) -> Vec<Value> {
        let (status, answer) = self.ask("GET", "bursts", "", &Value::Null).await;
        assert_eq!(status, 200, "{answer}");
        answer["bursts"].as_array().unwrap().clone()
    }

    /// An agent asks, and is held for so long at most.
    async fn poll(&self, agent: &Agent, wait_ms: u64, bursts: &[Value]) -> Value {
        let (status, answer) = self
            .ask("POST", "agent/bursts", "", &agent.question(wait_ms, bursts))
            .await;
        assert_eq!(status, 200, "{answer}");
        answer
    }
}

#[derive(Clone)]
struct Agent {
    node: &'static str,
    instance: &'static str,
    limit_hz: u32,
    has_pmu: bool,
}

fn agent(node: &'static str, instance: &'static str) -> Agent {
    Agent {
        node,
        instance,
        limit_hz: 999,
        has_pmu: false,
    }
}

impl Agent {
    fn question(&self, wait_ms: u64, bursts: &[Value]) -> Value {
        json!({"node": self.node, "instance": self.instance, "agent_version": "0.1.0", "cpus": "0-3", "wait_ms": wait_ms,
            "burst_limit_hz": self.limit_hz, "has_pmu": self.has_pmu, "bursts": bursts})
    }
}

fn said(id: &Value, state: &str) -> Value {
    json!({"id": id, "state": state, "from_ms": 1_795_000_000_000_i64, "until_ms": 1_795_000_010_000_i64, "cpus": "0-3",
        "frequency_hz": 999, "samples": 9_990, "cpu_seconds": 0.25, "reason": ""})
}

fn burst(node: &str) -> Value {
    json!({"node": node, "cpus": "0,2-3", "process": "db", "frequency_hz": 999, "seconds": 10})
}

fn message(answer: &Value) -> String {
    format!(
        "{} / {}",
        answer["error"]["message"].as_str().unwrap_or_default(),
        answer["error"]["hint"].as_str().unwrap_or_default()
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_hears_at_once_and_says_what_became_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let server = Arc::new(Server::open(dir.path(), |state| state).await);
    let held = {
        let server = server.clone();
        tokio::spawn(async move { server.poll(&agent("db-1", "i"), 20_000, &[]).await })
    };
    // Until the agent is known.
    let deadline = Instant::now() + Duration::from_secs(20);
    let (begun, made) = loop {
        let begun = Instant::now();
        let (status, made) = server.begin(&burst("db-1")).await;
        if status == 201 {
            break (begun, made);
        }
        assert!(Instant::now() < deadline, "{made}");
        tokio::task::yield_now().await;
    };
    let order = held.await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    let own = &made["bursts"][0];
    let id = &own["id"];
    assert_eq!(
        (&own["state"], &own["node"], &own["from_ms"], &own["cpus"]),
        (&json!("waiting"), &json!("db-1"), &Value::Null, &json!("0,2-3"))
    );
    assert_eq!(
        order["begin"],
        json!([{"id": id, "cpus": "0,2-3", "service": "", "process": "db", "frequency_hz": 999, "seconds": 10}])
    );
    // The answer may not have come: it is said until the agent has heard it.
    assert_eq!(server.poll(&agent("db-1", "i"), 0, &[]).await["begin"], order["begin"]);
    let nothing = json!({"begin": [], "cancel": [], "told": [], "again_ms": 0});
    assert_eq!(
        server.poll(&agent("db-1", "i"), 0, &[said(id, "running")]).await,
        nothing
    );
    assert_eq!(server.list().await[0]["state"], "running");
    // One at a time.
    let (status, answer) = server.begin(&burst("db-1")).await;
    assert_eq!((status, &answer["error"]["code"]), (429, &json!("too_many_requests")));
    assert!(
        message(&answer).contains("another burst is under way on db-1"),
        "{answer}"
    );
    let told = server.poll(&agent("db-1", "i"), 0, &[said(id, "ended")]).await;
    assert_eq!(told["told"], json!([id]));
    let list = server.list().await;
    assert_eq!(list.len(), 1);
    assert_eq!(
        (&list[0]["state"], &list[0]["samples"], &list[0]["cpu_seconds"]),
        (&json!("ended"), &json!(9_990), &json!(0.25))
    );
    // It is a marker, of its node.
    let markers = |query: &str| format!("markers?from=1794999999000&until=1795000020000&kinds=burst&query={query}");
    let (_, shown) = server.ask("GET", &markers("{}"), "", &Value::Null).await;
    let marker = &shown["markers"][0];
    assert_eq!(
        (&marker["kind"], &marker["time"], &marker["until"], &marker["labels"]),
        (
            &json!("burst"),
            &json!(1_795_000_000_000_i64),
            &json!(1_795_000_010_000_i64),
            &json!({"node": "db-1", "process": "db"})
        )
    );
    assert_eq!(marker["title"], "999 Hz on CPU 0-3 for 10.0 s");
    let (_, shown) = server
        .ask("GET", &markers("%7Bnode=%22x%22%7D"), "", &Value::Null)
        .await;
    assert_eq!(shown["markers"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_can_be_cancelled_and_outlives_a_restart_of_the_server() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::open(dir.path(), |state| state).await;
    let who = agent("db-1", "i");
    server.poll(&who, 0, &[]).await;
    // Before the agent has it.
    let (_, made) = server.begin(&burst("db-1")).await;
    let first = made["bursts"][0]["id"].clone();
    let path = |id: &Value| format!("bursts/{}", id.as_str().unwrap());
    let (status, ended) = server.ask("DELETE", &path(&first), "", &Value::Null).await;
    assert_eq!((status, &ended["bursts"][0]["state"]), (200, &json!("cancelled")));
    assert_eq!(server.poll(&who, 0, &[]).await["begin"], json!([]));
    assert_eq!(server.ask("DELETE", "bursts/nothing", "", &Value::Null).await.0, 404);
    // While it runs, over a restart of the server.
    let (_, made) = server.begin(&burst("db-1")).await;
    let second = made["bursts"][0]["id"].clone();
    server.poll(&who, 0, &[said(&second, "running")]).await;
    server.store.close().await;
    drop(server);
    let server = Arc::new(Server::open(dir.path(), |state| state).await);
    let list = server.list().await;
    let states: Vec<&str> = list.iter().map(|burst| burst["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["running", "cancelled"]);
    let held = {
        let (server, who, second) = (server.clone(), who.clone(), second.clone());
        tokio::spawn(async move { server.poll(&who, 20_000, &[said(&second, "running")]).await })
    };
    let begun = Instant::now();
    // The agent's question may come before or after it.
    let (status, ended) = server.ask("DELETE", &path(&second), "", &Value::Null).await;
    assert_eq!((status, &ended["bursts"][0]["state"]), (200, &json!("running")));
    assert_eq!(held.await.unwrap()["cancel"], json!([second]));
    assert!(begun.elapsed() < Duration::from_secs(2));
    let told = server.poll(&who, 0, &[said(&second, "cancelled")]).await;
    assert_eq!(told["told"], json!([second]));
    assert_eq!(server.list().await[0]["state"], "cancelled");
    // An agent that is started anew takes its burst along.
    let (_, made) = server.begin(&burst("db-1")).await;
    let third = made["bursts"][0]["id"].clone();
    server.poll(&who, 0, &[said(&third, "running")]).await;
    server.poll(&agent("db-1", "another"), 0, &[]).await;
    let list = server.list().await;
    assert_eq!(
        (&list[0]["id"], &list[0]["state"], &list[0]["reason"]),
        (&third, &json!("lost"), &json!("its agent was started anew"))
    );
    // One of which the server knows nothing is to end.
    let unknown = server
        .poll(&agent("db-1", "another"), 0, &[said(&json!("ffff"), "running")])
        .await;
    assert_eq!(unknown["cancel"], json!(["ffff"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_question_ends_the_one_before_and_nodes_tell_the_limit() {
    let dir = tempfile::tempdir().unwrap();
    let server = Arc::new(Server::open(dir.path(), |state| state).await);
    let mut shipping = Sender::new("db-1", 10);
    let instance: &'static str = Box::leak(shipping.instance.clone().into_boxed_str());
    let body = shipping.batch(1, crate::support::now_ns()).encode_to_vec();
    let sent = Request::post("/v1development/profiles")
        .header("content-type", "application/x-protobuf")
        .body(Body::from(body));
    assert_eq!(server.app.clone().oneshot(sent.unwrap()).await.unwrap().status(), 200);
    let limit = || async {
        let (_, nodes) = server.ask("GET", "nodes", "", &Value::Null).await;
        nodes["nodes"][0]["burst_limit_hz"].clone()
    };
    assert_eq!(limit().await, json!(0));
    let who = Agent {
        limit_hz: 4_999,
        ..agent("db-1", instance)
    };
    let held = {
        let (server, who) = (server.clone(), who.clone());
        tokio::spawn(async move { server.poll(&who, 30_000, &[]).await })
    };
    let deadline = Instant::now() + Duration::from_secs(20);
    while limit().await != json!(999) {
        assert!(Instant::now() < deadline);
    }
    let begun = Instant::now();
    server.poll(&who, 0, &[]).await;
    held.await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_selector_chooses_nodes_clusters_cpus_processes_and_threads() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::open(dir.path(), |state| state).await;
    let asks = async |agent: &Agent, selects: Value| {
        let mut question = agent.question(0, &[]);
        question["selects"] = selects;
        let (status, answer) = server.ask("POST", "agent/bursts", "", &question).await;
        assert_eq!(status, 200, "{answer}");
        answer
    };
    // One that ships, in a cluster, one that knows conditions and ships nothing, and one that knows none.
    let mut sender = Sender::new("db-1", 10);
    let mut batch = sender.batch(1, crate::support::now_ns());
    let resource = batch.resource_profiles[0].resource.as_mut().unwrap();
    let cluster = crate::support::attributes([("k8s.cluster.name", crate::support::text("eu"))]);
    resource.attributes.extend(cluster);
    let sent = Request::post("/v1development/profiles")
        .header("content-type", "application/x-protobuf")
        .body(Body::from(batch.encode_to_vec()));
    assert_eq!(server.app.clone().oneshot(sent.unwrap()).await.unwrap().status(), 200);
    let of_eu = agent("db-1", Box::leak(sender.instance.clone().into_boxed_str()));
    let known = json!(["container", "thread", "version"]);
    asks(&of_eu, known.clone()).await;
    asks(&agent("db-2", "k"), known.clone()).await;
    asks(&agent("old-1", "o"), json!([])).await;
    let query = r#"{cluster="eu",cpu=~"1|2|7",service="web",container=~"api|api\\.2",thread!="idle",version="1.4"}"#;
    let wish = |query: &str| json!({"query": query, "frequency_hz": 999, "seconds": 1});
    let (status, made) = server.begin(&wish(query)).await;
    assert_eq!(status, 201, "{made}");
    let made = made["bursts"].as_array().unwrap();
    assert_eq!(made.len(), 1);
    assert_eq!(
        [
            &made[0]["node"],
            &made[0]["cpus"],
            &made[0]["service"],
            &made[0]["query"]
        ],
        [
            &json!("db-1"),
            &json!("1-2"),
            &json!("web"),
            &json!(r#"{container=~"api|api\\.2",thread!="idle",version="1.4"}"#)
        ]
    );
    let order = asks(&of_eu, known.clone()).await["begin"][0].clone();
    assert_eq!(
        [&order["cpus"], &order["service"], &order["conditions"]],
        [
            &json!("1-2"),
            &json!("web"),
            &json!([
                {"label": "container", "values": ["api", "api.2"], "not": false},
                {"label": "thread", "values": ["idle"], "not": true},
                {"label": "version", "values": ["1.4"], "not": false},
            ])
        ]
    );
    // Of all agents: where one cannot, it says so, and the others begin.
    let (status, made) = server.begin(&wish(r#"{node!="db-1",thread="worker"}"#)).await;
    assert_eq!(status, 201, "{made}");
    let made = made["bursts"].as_array().unwrap();
    let told: Vec<(&str, &str)> = made
        .iter()
        .map(|one| (one["node"].as_str().unwrap(), one["state"].as_str().unwrap()))
        .collect();
    assert_eq!(told, [("db-2", "waiting"), ("old-1", "refused")]);
    assert!(
        made[1]["reason"]
            .as_str()
            .unwrap()
            .contains("the agent of old-1 is older"),
        "{made:?}"
    );
    let unknown = server.begin(&wish(r#"{node="db-2",pod="a"}"#)).await;
    assert!(
        message(&unknown.1)
            .contains("`query` speaks of `pod`: the agent of db-2 selects by container, thread, version"),
        "{unknown:?}"
    );
    // It stays a marker of what it was of.
    let id = &server.list().await.iter().find(|one| one["node"] == "db-1").unwrap()["id"].clone();
    server.poll(&of_eu, 0, &[said(id, "ended")]).await;
    let path = "markers?from=1794999999000&until=1795000020000&kinds=burst&query={}";
    let (_, shown) = server.ask("GET", path, "", &Value::Null).await;
    let labels = json!({"node": "db-1", "service": "web", "version": "1.4"});
    assert_eq!(shown["markers"][0]["labels"], labels);
}
