//! What somebody asks for: read, and held against what there is.

use super::agents::{Agent, MOST_PMU_HZ};
use crate::api::AppState;
use crate::api::bodies::asked::{body_of, is_json};
use crate::api::error::{ApiError, Code};
use crate::label::Label;
use crate::label::attribute::label_names;
use crate::query::selector::{Matcher, Selector};
use crate::store::BurstCondition;
use axum::body::Body;
use axum::http::Request;
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Nodes that one request is for.
pub(super) const MOST_NODES: usize = 256;

/// The longest burst.
pub(super) const MOST_BURST_SECONDS: u32 = 60;

/// Bytes of a list of CPUs, and of a name.
const MOST_TEXT_BYTES: usize = 1_024;

/// CPUs that a list may name.
const MOST_CPUS: u32 = 65_536;

/// Values that a condition may name: agents take no more.
const MOST_VALUES: usize = 64;

/// Labels of agents, by which those are chosen that are asked.
const OF_AGENTS: [Label; 2] = [Label::Node, Label::Cluster];

/// Labels of processes and threads, which agents may know.
const OF_PROCESSES: [&str; 14] = [
    SERVICE,
    PROCESS,
    "tgid",
    "thread",
    "tid",
    "container",
    "pod",
    "namespace",
    "workload",
    "unit",
    "cgroup",
    "version",
    "service.version",
    "container.image.name",
];

const SERVICE: &str = "service";
const PROCESS: &str = "process";

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

/// Which agents: by the node's name, or by a selector of their labels.
enum Nodes {
    Named(String),
    Selected(Selector),
}

/// A burst that is asked for.
pub(super) struct Asked {
    nodes: Nodes,
    cpus: String,
    /// By a selector instead.
    of_cpus: Selector,
    pub(super) service: String,
    pub(super) process: String,
    pub(super) conditions: Vec<BurstCondition>,
    /// The conditions as they were written; empty without any.
    pub(super) query: String,
    pub(super) frequency_hz: u32,
    pub(super) seconds: u32,
}

/// An agent that it is for, which may be unable to.
pub(super) struct Chosen {
    pub(super) node: String,
    pub(super) instance: String,
    pub(super) cpus: String,
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

/// The list; none where it would be too long a text.
fn list_of(cpus: &BTreeSet<u32>) -> Option<String> {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for cpu in cpus {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == *cpu => *last = *cpu,
            _ => parts.push((*cpu, *cpu)),
        }
    }
    let part = |(first, last): &(u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    let text = parts.iter().map(part).collect::<Vec<_>>().join(",");
    (text.len() <= MOST_TEXT_BYTES).then_some(text)
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
        let (mut service, mut process) = (name(SERVICE, sent.service)?, name(PROCESS, sent.process)?);
        let mut selector = Selector::default();
        let nodes = match (sent.node, sent.query) {
            (Some(node), None) if !node.is_empty() => Nodes::Named(name("node", Some(node))?),
            (None, Some(query)) => {
                selector = selected(&query)?;
                Nodes::Selected(selector.only(|matcher| OF_AGENTS.contains(&matcher.label())))
            }
            _ => {
                return Err(bad(
                    "it says neither a `node` nor a `query`, or both",
                    "give one of them: the name of a node, or a selector such as {node=~\"db-.*\",container=\"api\"}",
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
        let of_cpus = selector.on(Label::Cpu);
        if !cpus.trim().is_empty() && !of_cpus.matchers().is_empty() {
            return Err(bad(
                "it has `cpus`, and `cpu` in its `query`",
                "say in one of both which CPUs are meant",
            ));
        }
        // Agents that know of no conditions take one service and one process.
        let mut is_field = |matcher: &Matcher| {
            let field = match matcher.label() {
                Label::Service => &mut service,
                Label::Process => &mut process,
                _ => return false,
            };
            match matcher.equal_to().filter(|value| field.is_empty() && !value.is_empty()) {
                Some(value) => value.clone_into(field),
                None => return false,
            }
            true
        };
        let (mut conditions, mut written) = (Vec::new(), Vec::new());
        let of_processes = selector.only(|matcher| is_of_processes(&matcher.label()));
        for matcher in of_processes.matchers() {
            if !is_field(matcher) {
                conditions.push(condition(matcher)?);
                written.push(matcher.clone());
            }
        }
        // What came from the selector is bounded as the fields are: agents hear nothing of an answer with longer texts.
        let (service, process) = (name(SERVICE, Some(service))?, name(PROCESS, Some(process))?);
        let query = match written.is_empty() {
            true => String::new(),
            false => Selector::of_matchers(written).to_string(),
        };
        Ok(Self {
            nodes,
            cpus: cpus.trim().to_owned(),
            of_cpus,
            service,
            process,
            conditions,
            query,
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
                let clusters = clusters(state, selector);
                let value = |agent: &Agent, label: Label| match label {
                    Label::Cluster => clusters.get(&agent.instance).cloned().unwrap_or_default(),
                    _ => agent.node.clone(),
                };
                let accepts = |agent: &&Agent| {
                    let mut matchers = selector.matchers().iter();
                    matchers.all(|matcher| matcher.accepts(&value(agent, matcher.label())))
                };
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
        } else if let Some(cpu) = off {
            Some(format!("CPU {cpu} is not online at {node}: online are {}", agent.cpus))
        } else {
            self.unknown_to(agent)
        };
        let (cpus, none_chosen) = match self.cpus_of(online) {
            Ok(cpus) => (cpus, None),
            Err(what) => (
                String::new(),
                Some(format!("`query` selects {what} of {node}: online are {}", agent.cpus)),
            ),
        };
        Chosen {
            node: node.clone(),
            instance: agent.instance.clone(),
            cpus,
            refused: refused.or(none_chosen),
        }
    }

    /// A condition that the agent cannot keep, in words.
    fn unknown_to(&self, agent: &Agent) -> Option<String> {
        let is_unknown = |condition: &&BurstCondition| !agent.selects.contains(&condition.label);
        let unknown = self.conditions.iter().find(is_unknown)?;
        let known = match agent.selects.is_empty() {
            true => "is older, and selects by one service and one process alone".to_owned(),
            false => format!("selects by {}", agent.selects.join(", ")),
        };
        Some(format!(
            "`query` speaks of `{}`: the agent of {} {known}",
            unknown.label, agent.node
        ))
    }

    /// The CPUs of those online that are meant, as a list; or what they are instead.
    fn cpus_of(&self, mut online: BTreeSet<u32>) -> Result<String, &'static str> {
        let matchers = self.of_cpus.matchers();
        if matchers.is_empty() {
            return Ok(self.cpus.clone());
        }
        online.retain(|cpu| matchers.iter().all(|matcher| matcher.accepts(&cpu.to_string())));
        match online.is_empty() {
            true => Err("no CPU"),
            false => list_of(&online).ok_or("too long a list of CPUs"),
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

/// The clusters of agents by their instances, where a selector asks for them.
fn clusters(state: &AppState, selector: &Selector) -> BTreeMap<String, String> {
    if selector.on(Label::Cluster).matchers().is_empty() {
        return BTreeMap::new();
    }
    let nodes = state.store.nodes().into_iter();
    nodes.map(|known| (known.last.instance, known.last.cluster)).collect()
}

/// The name by which a label is asked for: that of no other one, so that an attribute `thread` is not taken for the
/// thread.
fn name_of(label: &Label) -> Cow<'_, str> {
    match label {
        Label::Attribute(name) => match name.short() {
            Some(short) => Cow::Borrowed(short),
            None => Cow::Owned(label_names(name.as_str()).swap_remove(0)),
        },
        fixed => Cow::Borrowed(fixed.name()),
    }
}

fn is_of_processes(label: &Label) -> bool {
    OF_PROCESSES.contains(&&*name_of(label))
}

/// Reads the selector of a burst.
fn selected(query: &str) -> Result<Selector, ApiError> {
    let selector = Selector::parse(query)?;
    let is_known = |label: Label| OF_AGENTS.contains(&label) || label == Label::Cpu || is_of_processes(&label);
    let mut labels = selector.matchers().iter().map(Matcher::label);
    match labels.find(|label| !is_known(*label)) {
        Some(label) => Err(bad(
            format!("`query` speaks of `{}`", name_of(&label)),
            format!(
                "a closer look is of nodes by `node` and `cluster`, of CPUs by `cpu`, and of processes and threads \
                 by {}",
                OF_PROCESSES.join(", ")
            ),
        )),
        None => Ok(selector),
    }
}

/// A condition as agents take it.
fn condition(matcher: &Matcher) -> Result<BurstCondition, ApiError> {
    let label = matcher.label();
    let field = name_of(&label);
    let Some((values, not)) = matcher.values() else {
        return Err(bad(
            format!("`{field}` in `query` is a pattern"),
            "in a burst a condition of processes and threads names its values: =, !=, and =~ and !~ with names such \
             as a|b",
        ));
    };
    if values.len() > MOST_VALUES {
        return Err(bad(
            format!("`{field}` in `query` has {} values", values.len()),
            format!("at most {MOST_VALUES} are allowed"),
        ));
    }
    let values = values.into_iter().map(|value| name(&field, Some(value)));
    Ok(BurstCondition {
        label: field.to_string(),
        values: values.collect::<Result<_, _>>()?,
        not,
    })
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

    #[test]
    fn an_attribute_is_not_taken_for_a_label_of_processes() {
        for (label, is_one) in [
            ("thread", true),
            ("version", true),
            ("service.version", true),
            ("container.image.name", true),
            ("attribute.thread", false),
            ("attribute.service", false),
            ("attribute.version", false),
            ("attribute.node", false),
        ] {
            assert_eq!(selected(&format!("{{{label}=\"a\"}}")).is_ok(), is_one, "{label}");
        }
    }
}
