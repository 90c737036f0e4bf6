//! Closer looks on demand, over HTTP: who asks for one, and the agents that ask what was asked for.
//!
//! In: requests of both. Out: bursts of the store, and answers. Agents are never called: each holds a question open,
//! which is answered once there is something for it.

mod agents;
mod asked;
mod elsewhere;
mod polls;

pub use agents::Agents as BurstAgents;
#[cfg(test)]
use agents::{MOST_AGENTS, MOST_POLLS, MOST_POLLS_OF_ADDRESS};

use super::AppState;
use super::error::{ApiError, Code};
use super::openapi::operation::{DELETE_BURST, GET_BURSTS, POST_BURSTS};
use super::parameters::Parameters;
use crate::store::{Burst, BurstState, Marker};
use asked::Asked;
use axum::Json;
use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Path, RawQuery, State};
use axum::http::{Request, StatusCode};
use axum::routing::{delete, get, post};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Where agents ask.
pub(super) const AGENTS_PATH: &str = "/api/v1/agent/bursts";

/// Bytes of a request that asks for a burst.
const MAX_BODY_BYTES: usize = 32 << 10;

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route(
            "/api/v1/bursts",
            get(list).post(begin).layer(DefaultBodyLimit::max(MAX_BODY_BYTES)),
        )
        .route("/api/v1/bursts/{id}", delete(cancel))
}

/// The agents' side.
pub(super) fn agents_router() -> Router<AppState> {
    Router::new().route(
        AGENTS_PATH,
        post(polls::poll).layer(DefaultBodyLimit::max(polls::MAX_BODY_BYTES)),
    )
}

fn now_ms() -> i64 {
    chrono::Utc::now().timestamp_millis()
}

fn shown(id: &str, burst: &Burst) -> Value {
    json!({
        "id": id,
        "node": burst.node,
        "instance": burst.instance,
        "state": burst.state,
        "cpus": burst.cpus,
        "service": burst.service,
        "process": burst.process,
        "query": burst.query,
        "frequency_hz": burst.frequency_hz,
        "seconds": burst.seconds,
        "created_ms": burst.created_ms,
        "from_ms": burst.from_ms,
        "until_ms": burst.until_ms,
        "samples": burst.samples,
        "cpu_seconds": burst.cpu_seconds,
        "reason": burst.reason,
    })
}

/// Another one with each call, and one of a later time behind all of earlier ones.
fn new_id(now_ms: i64) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("{now_ms:012x}{:04x}", COUNT.fetch_add(1, Ordering::Relaxed) & 0xffff)
}

async fn begin(
    State(state): State<AppState>,
    RawQuery(query): RawQuery,
    asked: Request<Body>,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    Parameters::read(query, POST_BURSTS.parameters)?;
    let asked = Asked::read(asked, MAX_BODY_BYTES).await?;
    let now_ms = now_ms();
    let chosen = asked.agents(&state)?;
    let new = chosen.into_iter().map(|agent| {
        let burst = Burst {
            node: agent.node,
            instance: agent.instance,
            state: BurstState::Waiting,
            cpus: agent.cpus,
            service: asked.service.clone(),
            process: asked.process.clone(),
            conditions: asked.conditions.clone(),
            query: asked.query.clone(),
            frequency_hz: asked.frequency_hz,
            seconds: asked.seconds,
            created_ms: now_ms,
            from_ms: None,
            until_ms: None,
            ends_ms: now_ms + i64::from(asked.seconds) * 1000,
            samples: 0,
            cpu_seconds: 0.0,
            reason: String::new(),
            is_cancelled: false,
        };
        let refused = agent.refused.map(|reason| Burst {
            state: BurstState::Refused,
            reason,
            ..burst.clone()
        });
        (new_id(now_ms), refused.unwrap_or(burst))
    });
    let kept = state.store.bursts().ask(new.collect(), now_ms).await?;
    if let Some((_, first)) = kept.first()
        && kept.iter().all(|(_, burst)| !burst.state.is_live())
    {
        let error = ApiError::new(Code::TooManyRequests, first.reason.clone())
            .hint("wait for its end, or end it: DELETE /api/v1/bursts/{id}");
        return Err(error.retry_after(asked.seconds.max(1)));
    }
    state.burst_agents.tell();
    let list: Vec<Value> = kept.iter().map(|(id, burst)| shown(id, burst)).collect();
    Ok((StatusCode::CREATED, Json(json!({ "bursts": list }))))
}

async fn list(State(state): State<AppState>, RawQuery(query): RawQuery) -> Result<Json<Value>, ApiError> {
    Parameters::read(query, GET_BURSTS.parameters)?;
    state.store.bursts().settle(None, now_ms()).await?;
    let all = state.store.bursts().all();
    let list: Vec<Value> = all.iter().rev().map(|(id, burst)| shown(id, burst)).collect();
    Ok(Json(json!({ "bursts": list })))
}

async fn cancel(
    State(state): State<AppState>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Json<Value>, ApiError> {
    Parameters::read(query, DELETE_BURST.parameters)?;
    let burst = state.store.bursts().cancel(id.clone(), now_ms()).await?;
    let burst = burst.ok_or_else(|| {
        ApiError::new(Code::NotFound, "there is no burst of this id")
            .hint("GET /api/v1/bursts has the newest; the oldest are forgotten")
    })?;
    state.burst_agents.tell();
    Ok(Json(json!({ "bursts": [shown(&id, &burst)] })))
}

/// A marker of each burst that began, of a window.
pub(super) fn markers(all: &BTreeMap<String, Burst>, (from_ms, until_ms): (i64, i64)) -> Vec<(String, Marker)> {
    let marker = |(id, burst): (&String, &Burst)| {
        let time_ms = burst.from_ms.filter(|ms| (from_ms..until_ms).contains(ms))?;
        let until_ms = burst.until_ms.unwrap_or(time_ms);
        let seconds = (until_ms - time_ms) as f64 / 1000.0;
        let cpus = match burst.cpus.as_str() {
            "" => String::new(),
            cpus => format!(" on CPU {cpus}"),
        };
        let mut labels: BTreeMap<String, String> = [("node".to_owned(), burst.node.clone())].into();
        let more = [("service", &burst.service), ("process", &burst.process)];
        labels.extend(
            more.into_iter()
                .filter(|(_, value)| !value.is_empty())
                .map(|(name, value)| (name.to_owned(), value.clone())),
        );
        let named = burst.conditions.iter().filter(|condition| !condition.not);
        labels.extend(named.filter_map(|condition| match &condition.values[..] {
            [only] if !only.is_empty() => Some((condition.label.clone(), only.clone())),
            _ => None,
        }));
        let marker = Marker {
            time_ms,
            title: format!("{} Hz{cpus} for {seconds:.1} s", burst.frequency_hz),
            text: burst.reason.clone(),
            labels,
        };
        Some((id.clone(), marker))
    };
    all.iter().filter_map(marker).collect()
}

/// When a burst of a marker ended, or will.
pub(super) fn end_of(all: &Arc<BTreeMap<String, Burst>>, id: &str) -> Option<i64> {
    all.get(id)?.until_ms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limits_are_documented() {
        use crate::store::{MOST_BURSTS, TAKEN_WITHIN_SECONDS, TOLD_WITHIN_SECONDS};
        crate::documented(&[
            ("MOST_BURSTS", MOST_BURSTS as u64),
            ("TAKEN_WITHIN_SECONDS", TAKEN_WITHIN_SECONDS),
            ("TOLD_WITHIN_SECONDS", TOLD_WITHIN_SECONDS),
            ("MOST_NODES", asked::MOST_NODES as u64),
            ("MOST_BURST_SECONDS", asked::MOST_BURST_SECONDS.into()),
            ("MOST_HZ", agents::MOST_HZ.into()),
            ("MOST_PMU_HZ", agents::MOST_PMU_HZ.into()),
            ("MOST_AGENTS", MOST_AGENTS as u64),
            ("MOST_POLLS", MOST_POLLS as u64),
            ("MOST_POLLS_OF_ADDRESS", MOST_POLLS_OF_ADDRESS as u64),
            ("MOST_HOLD_SECONDS", polls::MOST_HOLD_SECONDS),
            ("MOST_REPORTS", polls::MOST_REPORTS as u64),
        ]);
    }
}
