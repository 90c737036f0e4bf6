//! The agents' questions: held until there is something for who asks.

use super::agents::Agent;
use crate::api::AppState;
use crate::api::bodies::asked::{body_of, is_json};
use crate::api::door::crowd::Visitor;
use crate::api::error::{ApiError, Code};
use crate::store::{Burst, BurstReport, BurstState, Sender};
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::Request;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of a question.
pub(super) const MAX_BODY_BYTES: usize = 256 << 10;

/// The longest time that a question is held.
pub(super) const MOST_HOLD_SECONDS: u64 = 30;

/// Bursts that one question tells of.
pub(super) const MOST_REPORTS: usize = 64;

/// Labels that an agent says a burst can be of.
const MOST_LABELS: usize = 64;

/// Bytes of any text in it.
const MOST_TEXT_BYTES: usize = 1_024;

/// When an agent is to ask again: where too many questions are held, while the server stops, and where bursts are off.
const AGAIN_CROWDED_MS: u64 = 2_000;
const AGAIN_STOPPING_MS: u64 = 500;
const AGAIN_OFF_MS: u64 = 60_000;

/// A held question is looked at so often where other servers are asked for bursts, too.
const LOOK_EVERY: Duration = Duration::from_secs(1);

#[derive(Deserialize)]
struct Sent {
    node: String,
    instance: String,
    burst_limit_hz: u32,
    #[serde(default)]
    cpus: String,
    #[serde(default)]
    has_pmu: bool,
    #[serde(default)]
    selects: Vec<String>,
    #[serde(default)]
    wait_ms: u64,
    #[serde(default)]
    stops: bool,
    #[serde(default)]
    bursts: Vec<SentReport>,
}

#[derive(Deserialize)]
struct SentReport {
    id: String,
    state: BurstState,
    from_ms: i64,
    until_ms: i64,
    cpus: String,
    frequency_hz: u32,
    samples: u64,
    cpu_seconds: f64,
    reason: String,
}

fn bad(message: impl Into<String>) -> ApiError {
    ApiError::new(Code::BadParameter, message).hint("only agents ask here, as docs/wire.md says")
}

impl Sent {
    fn check(&self) -> Result<(), ApiError> {
        if self.bursts.len() > MOST_REPORTS {
            return Err(bad(format!(
                "it tells of {} bursts, of {MOST_REPORTS} at most",
                self.bursts.len()
            )));
        }
        if self.selects.len() > MOST_LABELS {
            return Err(bad(format!(
                "it selects by {} labels, of {MOST_LABELS} at most",
                self.selects.len()
            )));
        }
        let of_reports = self
            .bursts
            .iter()
            .flat_map(|report| [&report.id, &report.cpus, &report.reason]);
        let texts = [&self.node, &self.instance, &self.cpus].into_iter();
        let mut texts = texts.chain(of_reports).chain(&self.selects);
        if texts.any(|text| text.len() > MOST_TEXT_BYTES || text.contains(char::is_control)) {
            return Err(bad(format!(
                "a text has more than {MOST_TEXT_BYTES} bytes, or control characters"
            )));
        }
        if self.node.is_empty() || self.instance.is_empty() {
            return Err(bad("`node` or `instance` is empty"));
        }
        Ok(())
    }
}

fn reports(sent: Vec<SentReport>) -> Vec<BurstReport> {
    let report = |sent: SentReport| BurstReport {
        id: sent.id,
        state: match sent.state {
            // An agent says neither.
            BurstState::Waiting | BurstState::Lost => BurstState::Refused,
            state => state,
        },
        from_ms: sent.from_ms,
        until_ms: sent.until_ms,
        cpus: sent.cpus,
        frequency_hz: sent.frequency_hz,
        samples: sent.samples,
        cpu_seconds: if sent.cpu_seconds.is_finite() {
            sent.cpu_seconds.max(0.0)
        } else {
            0.0
        },
        reason: sent.reason,
    };
    sent.into_iter().map(report).collect()
}

/// A burst that an agent is to begin.
fn order(id: &str, burst: &Burst) -> Value {
    let mut order = json!({
        "id": id,
        "cpus": burst.cpus,
        "service": burst.service,
        "process": burst.process,
        "frequency_hz": burst.frequency_hz,
        "seconds": burst.seconds,
    });
    // Only agents that know of conditions are given some.
    if !burst.conditions.is_empty() {
        order["conditions"] = json!(burst.conditions);
    }
    order
}

/// What there is for an agent that told of these bursts; none where that is nothing.
fn for_agent(all: &BTreeMap<String, Burst>, instance: &str, told: &[BurstReport]) -> Option<Value> {
    let of_it = || all.iter().filter(|(_, burst)| burst.instance == instance);
    let is_known = |id: &str| told.iter().any(|report| report.id == id);
    let begin: Vec<Value> = of_it()
        .filter(|(id, burst)| burst.state == BurstState::Waiting && !is_known(id))
        .map(|(id, burst)| order(id, burst))
        .collect();
    // One that nobody knows any more cannot be ended by anybody else.
    let is_over = |id: &str| all.get(id).is_none_or(|burst| burst.is_cancelled);
    let running = told.iter().filter(|report| report.state == BurstState::Running);
    let cancel: Vec<&str> = running
        .map(|report| report.id.as_str())
        .filter(|id| is_over(id))
        .collect();
    let ended = told.iter().filter(|report| report.state != BurstState::Running);
    let ended: Vec<&str> = ended.map(|report| report.id.as_str()).collect();
    let is_something = !begin.is_empty() || !cancel.is_empty() || !ended.is_empty();
    is_something.then(|| json!({"begin": begin, "cancel": cancel, "told": ended, "again_ms": 0}))
}

fn again(after_ms: u64) -> Json<Value> {
    Json(json!({"begin": [], "cancel": [], "told": [], "again_ms": after_ms}))
}

pub(super) async fn poll(State(state): State<AppState>, asked: Request<Body>) -> Result<Json<Value>, ApiError> {
    is_json(asked.headers())?;
    let visitor = asked.extensions().get::<Arc<Visitor>>().cloned();
    let sender = asked.extensions().get::<Sender>().cloned();
    let body = body_of(asked, MAX_BODY_BYTES).await?;
    let sent: Sent = serde_json::from_slice(&body).map_err(|error| bad(format!("the body cannot be read: {error}")))?;
    sent.check()?;
    if !state.has_bursts() {
        return Ok(again(AGAIN_OFF_MS));
    }
    let hold = Duration::from_millis(sent.wait_ms).min(Duration::from_secs(MOST_HOLD_SECONDS));
    let (node, instance) = (sent.node, sent.instance);
    let agent = Agent {
        node: node.clone(),
        instance: instance.clone(),
        limit_hz: sent.burst_limit_hz,
        has_pmu: sent.has_pmu,
        cpus: sent.cpus,
        selects: sent.selects,
        token: sender.map_or(0, |sender| sender.owner.token),
    };
    let Some(asks) = state.burst_agents.asks(agent, hold) else {
        return Err(ApiError::new(Code::Forbidden, "this instance is another token's")
            .hint("an agent that is given another token is to be started again"));
    };
    let (told, now_ms) = (reports(sent.bursts), chrono::Utc::now().timestamp_millis());
    let bursts = state.store.bursts();
    bursts.report(&instance, told.clone(), now_ms).await?;
    let runs = asks.is_new.then(|| (node, instance.clone()));
    bursts.settle(runs, now_ms).await?;
    if sent.stops {
        state.burst_agents.leaves(&instance);
        return Ok(again(0));
    }
    let until = Instant::now() + hold;
    let address = visitor.map(|visitor| visitor.address());
    let held = state.burst_agents.hold(address);
    loop {
        let news = asks.news.notified();
        tokio::pin!(news);
        // Before the look: what comes between both is not missed.
        news.as_mut().enable();
        if let Some(answer) = for_agent(&bursts.all(), &instance, &told) {
            return Ok(Json(answer));
        }
        if !state.burst_agents.is_last(&instance, asks.question) {
            return Ok(again(AGAIN_STOPPING_MS));
        }
        if held.is_none() {
            return Ok(again(AGAIN_CROWDED_MS));
        }
        // What another server was asked for comes with this one's looks at what others have noted.
        let look = match state.store.is_shared() {
            true => until.min(Instant::now() + LOOK_EVERY),
            false => until,
        };
        if tokio::time::timeout_at(look.into(), news).await.is_err() && Instant::now() >= until {
            return Ok(again(0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_hears_of_what_is_its_own_and_new() {
        let burst = |instance: &str, state, is_cancelled| Burst {
            node: "a".to_owned(),
            instance: instance.to_owned(),
            state,
            cpus: "0".to_owned(),
            service: String::new(),
            process: String::new(),
            conditions: Vec::new(),
            query: String::new(),
            frequency_hz: 999,
            seconds: 1,
            created_ms: 0,
            from_ms: None,
            until_ms: None,
            ends_ms: 0,
            samples: 0,
            cpu_seconds: 0.0,
            reason: String::new(),
            is_cancelled,
        };
        let said = |id: &str, state| BurstReport {
            id: id.to_owned(),
            state,
            from_ms: 0,
            until_ms: 0,
            cpus: String::new(),
            frequency_hz: 0,
            samples: 0,
            cpu_seconds: 0.0,
            reason: String::new(),
        };
        let all: BTreeMap<String, Burst> = [
            ("new".to_owned(), burst("i", BurstState::Waiting, false)),
            ("other".to_owned(), burst("k", BurstState::Waiting, false)),
            ("off".to_owned(), burst("i", BurstState::Running, true)),
        ]
        .into();
        let answer = for_agent(&all, "i", &[]).unwrap();
        assert_eq!(answer["begin"].as_array().unwrap().len(), 1);
        assert_eq!(
            (&answer["begin"][0]["id"], &answer["cancel"]),
            (&json!("new"), &json!([]))
        );
        let told = [
            said("new", BurstState::Refused),
            said("off", BurstState::Running),
            said("unknown", BurstState::Running),
        ];
        let answer = for_agent(&all, "i", &told).unwrap();
        let expected = json!({"begin": [], "cancel": ["off", "unknown"], "told": ["new"], "again_ms": 0});
        assert_eq!(answer, expected);
        assert_eq!(for_agent(&all, "m", &[]), None);
    }
}
