//! What somebody asks for: read, and held against what there is.

use super::agents::{Agent, MOST_PMU_HZ};
use crate::api::AppState;
use crate::api::bodies::asked::{body_of, is_json};
use crate::api::error::{ApiError, Code};
use crate::label::Label;
use crate::query::selector::Selector;
use axum::body::Body;
use axum::http::Request;
use serde::Deserialize;
use std::collections::BTreeSet;

/// Nodes that one request is for.
pub(super) const MOST_NODES: usize = 256;

/// The longest burst.
pub(super) const MOST_BURST_SECONDS: u32 = 60;

/// Bytes of a list of CPUs, and of a name.
const MOST_TEXT_BYTES: usize = 1_024;

/// CPUs that a list may name.
const MOST_CPUS: u32 = 65_536;

const EXAMPLE: &str = r#"{"node":"db-1","cpus":"0,2-3","frequency_hz":999,"seconds":10}"#;

/// A request as it is sent.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sent {
    node: Option<String>,
    query: Option<String>,
    cpus: Option<String>,
    service: Option<String>,
    process: Option<String>,
    frequency_hz: i64,
    seconds: i64,
}

/// Which agents: by the node's name, or by a selector of nodes.
enum Nodes {
    Named(String),
    Selected(Selector),
}

/// A burst that is asked for.
pub(super) struct Asked {
    nodes: Nodes,
    pub(super) cpus: String,
    pub(super) service: String,
    pub(super) process: String,
    pub(super) frequency_hz: u32,
    pub(super) seconds: u32,
}

/// An agent that it is for, which may be unable to.
pub(super) struct Chosen {
    pub(super) node: String,
    pub(super) instance: String,
    pub(super) refused: Option<String>,
}

fn bad(message: impl Into<String>, hint: impl Into<String>) -> ApiError {
    ApiError::new(Code::BadParameter, message).hint(hint)
}

/// Reads a list such as `0,2-3`. None where it is not one.
pub(super) fn parse_cpus(text: &str) -> Option<BTreeSet<u32>> {
    let mut cpus = BTreeSet::new();
    for part in text.split(',').map(str::trim) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(first) || !is_number(last) {
            return None;
        }
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last >= MOST_CPUS {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

fn name(field: &str, value: Option<String>) -> Result<String, ApiError> {
    let value = value.unwrap_or_default();
    if value.len() > MOST_TEXT_BYTES || value.contains(char::is_control) {
        return Err(bad(
            format!("`{field}` cannot be this text of {} bytes", value.len()),
            format!("`{field}` has at most {MOST_TEXT_BYTES} bytes and no control characters"),
        ));
    }
    Ok(value)
}

/// A whole number within its range.
fn number(field: &str, value: i64, most: u32, unit: &str) -> Result<u32, ApiError> {
    let within = u32::try_from(value).ok().filter(|value| (1..=most).contains(value));
    within.ok_or_else(|| {
        bad(
            format!("`{field}` is {value}"),
            format!("`{field}` is a whole number of {unit} from 1 to {most}"),
        )
    })
}

impl Asked {
    /// Reads the body of a request.
    pub(super) async fn read(asked: Request<Body>, most: usize) -> Result<Self, ApiError> {
        is_json(asked.headers())?;
        let body = body_of(asked, most).await?;
        let sent: Sent = serde_json::from_slice(&body).map_err(|error| {
            bad(
                format!("the body cannot be read: {error}"),
                format!("send JSON such as {EXAMPLE}"),
            )
        })?;
        Self::of(sent)
    }

    fn of(sent: Sent) -> Result<Self, ApiError> {
        let nodes = match (sent.node, sent.query) {
            (Some(node), None) if !node.is_empty() => Nodes::Named(name("node", Some(node))?),
            (None, Some(query)) => Nodes::Selected(of_nodes(&query)?),
            _ => {
                return Err(bad(
                    "it says neither a `node` nor a `query`, or both",
                    "give one of them: the name of a node, or a selector such as {node=~\"db-.*\"}",
                ));
            }
        };
        let cpus = name("cpus", sent.cpus)?;
        if !cpus.trim().is_empty() && parse_cpus(&cpus).is_none() {
            return Err(bad(
                format!("`cpus` is `{cpus}`"),
                "`cpus` is a list of CPUs such as 0,2-3; without it all are meant",
            ));
        }
        Ok(Self {
            nodes,
            cpus: cpus.trim().to_owned(),
            service: name("service", sent.service)?,
            process: name("process", sent.process)?,
            frequency_hz: number(
                "frequency_hz",
                sent.frequency_hz,
                MOST_PMU_HZ,
                "samples a second and CPU",
            )?,
            seconds: number("seconds", sent.seconds, MOST_BURST_SECONDS, "seconds")?,
        })
    }

    /// The agents that it is for. An error where there is none that can.
    pub(super) fn agents(&self, state: &AppState) -> Result<Vec<Chosen>, ApiError> {
        let here = state.burst_agents.here();
        let chosen: Vec<&Agent> = match &self.nodes {
            Nodes::Named(node) => here.iter().filter(|agent| agent.node == *node).collect(),
            Nodes::Selected(selector) => {
                let accepts = |agent: &&Agent| selector.matchers().iter().all(|matcher| matcher.accepts(&agent.node));
                here.iter().filter(accepts).collect()
            }
        };
        if chosen.is_empty() {
            return Err(self.nobody(state, &here));
        }
        if chosen.len() > MOST_NODES {
            return Err(bad(
                format!("`query` selects {} nodes", chosen.len()),
                format!("at most {MOST_NODES} are looked at by one request: select fewer"),
            ));
        }
        let all: Vec<Chosen> = chosen.into_iter().map(|agent| self.checked(agent)).collect();
        let refused = all.iter().find_map(|chosen| chosen.refused.clone());
        match refused {
            Some(reason) if all.iter().all(|chosen| chosen.refused.is_some()) => {
                Err(bad(reason, "GET /api/v1/nodes has each agent's `burst_limit_hz`"))
            }
            _ => Ok(all),
        }
    }

    fn checked(&self, agent: &Agent) -> Chosen {
        let (node, most) = (&agent.node, agent.most_hz());
        let online = parse_cpus(&agent.cpus).unwrap_or_default();
        let wanted = parse_cpus(&self.cpus).unwrap_or_default();
        let off = wanted.iter().find(|cpu| !online.contains(cpu));
        let refused = if self.frequency_hz > most {
            let hz = self.frequency_hz;
            let why = if most < agent.limit_hz {
                "it counts no events by itself"
            } else {
                "--burst-limit"
            };
            Some(format!("{hz} Hz is above the limit of {node}, {most} Hz ({why})"))
        } else {
            off.map(|cpu| format!("CPU {cpu} is not online at {node}: online are {}", agent.cpus))
        };
        Chosen {
            node: node.clone(),
            instance: agent.instance.clone(),
            refused,
        }
    }

    /// Why there is none.
    fn nobody(&self, state: &AppState, here: &[Agent]) -> ApiError {
        let Nodes::Named(node) = &self.nodes else {
            let count = here.len();
            return ApiError::new(Code::NotFound, "`query` selects no node whose agent asks for bursts").hint(format!(
                "{count} agents ask at present; GET /api/v1/nodes has their `burst_limit_hz`"
            ));
        };
        if state.store.nodes().iter().any(|known| known.last.node == *node) {
            let message = format!("the agent of `{node}` does not ask for bursts");
            return bad(
                message,
                "it is older than bursts, was started with --burst-limit 0, does not run, or cannot reach this server; \
                 after a start of the server agents ask again within seconds",
            );
        }
        ApiError::new(Code::NotFound, format!("no agent of a node `{node}` is known"))
            .hint("GET /api/v1/nodes has all of them")
    }
}

fn of_nodes(query: &str) -> Result<Selector, ApiError> {
    let selector = Selector::parse(query)?;
    let other = selector
        .matchers()
        .iter()
        .find(|matcher| matcher.label() != Label::Node);
    match other {
        Some(matcher) => Err(bad(
            format!("`query` speaks of `{}`", matcher.label().name()),
            "it selects agents, by `node` alone; `service` and `process` are fields of their own",
        )),
        None => Ok(selector),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus() {
        let list = |text| parse_cpus(text).map(|cpus| cpus.into_iter().collect::<Vec<u32>>());
        assert_eq!(list("0,2-3"), Some(vec![0, 2, 3]));
        assert_eq!(list(" 3, 3 "), Some(vec![3]));
        for wrong in ["", "a", "1-", "3-1", "+1", "0-65536", "1,,2", "-1"] {
            assert_eq!(list(wrong), None, "{wrong}");
        }
    }
}
