//! What the agent and the server say to each other of bursts, as JSON: `server/docs/wire.md` has it.

use serde::{Deserialize, Serialize};

/// Most bytes of an id, and of a name.
const MAX_TEXT_BYTES: usize = 1024;
/// Most of anything in one answer.
const MAX_LISTED: usize = 64;

/// What a burst is of, beside its service and process: a label's values.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct BurstCondition {
    /// The label's name, such as `container`.
    pub label: String,
    /// Its values; the empty one is that of what lacks it.
    pub values: Vec<String>,
    /// Of all but those.
    #[serde(default)]
    pub not: bool,
}

/// A closer look that somebody asks for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct BurstOrder {
    /// The server's name of it.
    pub id: String,
    /// CPUs such as `0,2-3`; all where it is empty.
    #[serde(default)]
    pub cpus: String,
    /// Of this service alone; of all where it is empty.
    #[serde(default)]
    pub service: String,
    /// Of processes of this name alone; of all where it is empty.
    #[serde(default)]
    pub process: String,
    /// Of what meets all of these alone.
    #[serde(default)]
    pub conditions: Vec<BurstCondition>,
    /// Samples a second and CPU, in the mean.
    pub frequency_hz: u32,
    /// How long.
    pub seconds: u32,
}

/// What became of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BurstState {
    /// It goes on.
    Running,
    /// Its time was over.
    Ended,
    /// Before that somebody, or something, ended it.
    Cancelled,
    /// It never began.
    Refused,
}

/// The agent's word on one of them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BurstReport {
    /// The order's.
    pub id: String,
    /// What became of it.
    pub state: BurstState,
    /// When it began, Unix milliseconds; 0 where it did not.
    pub from_ms: u64,
    /// When it ended, or will.
    pub until_ms: u64,
    /// The CPUs that were looked at, such as `0,2-3`.
    pub cpus: String,
    /// The rate, which `--cpu-limit` may have made lower than what was asked for.
    pub frequency_hz: u32,
    /// Samples that were taken at it.
    pub samples: u64,
    /// CPU time of the agent meanwhile, BPF programs included.
    pub cpu_seconds: f64,
    /// Why it was refused or cancelled, or is not quite what was asked for; else empty.
    pub reason: String,
}

/// Who asks, and what it can do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct About {
    /// The node's name.
    pub node: String,
    /// The run of the agent, as its batches have it.
    pub instance: String,
    /// The agent's version.
    pub agent_version: String,
    /// The highest rate that may be asked for.
    pub burst_limit_hz: u32,
    /// CPUs that are online, such as `0,2-3`.
    pub cpus: String,
    /// The processor counts events by itself.
    pub has_pmu: bool,
    /// Labels of which there may be conditions.
    pub selects: &'static [&'static str],
}

/// A question.
#[derive(Debug, Serialize)]
pub(super) struct Question<'a> {
    #[serde(flatten)]
    pub(super) about: &'a About,
    /// The server may hold the question for so long.
    pub(super) wait_ms: u64,
    /// It is the last one of this run.
    pub(super) stops: bool,
    pub(super) bursts: Vec<BurstReport>,
}

/// What the server says to it.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Answer {
    /// To be begun.
    #[serde(default)]
    pub(super) begin: Vec<BurstOrder>,
    /// To be ended: their ids.
    #[serde(default)]
    pub(super) cancel: Vec<String>,
    /// Whose end the server has kept.
    #[serde(default)]
    pub(super) told: Vec<String>,
    /// The next question is to come after so long.
    #[serde(default)]
    pub(super) again_ms: u64,
}

/// Reads an answer. None where it is not one, or more than is ever said.
pub(super) fn parse_answer(body: &[u8]) -> Option<Answer> {
    let answer: Answer = serde_json::from_slice(body).ok()?;
    answer.is_bounded().then_some(answer)
}

/// Holds of whatever a server answers.
#[cfg(any(test, fuzzing))]
pub(crate) fn check_answer(body: &[u8]) {
    assert!(parse_answer(body).is_none_or(|answer| answer.is_bounded()));
}

impl Answer {
    fn is_bounded(&self) -> bool {
        let orders = self.begin.iter();
        let of_orders = orders.flat_map(|order| [&order.id, &order.cpus, &order.service, &order.process]);
        let conditions = || self.begin.iter().flat_map(|order| &order.conditions);
        let of_conditions = conditions().flat_map(|condition| condition.values.iter().chain([&condition.label]));
        let mut texts = of_orders.chain(&self.cancel).chain(&self.told).chain(of_conditions);
        let of_orders = self.begin.iter().map(|order| order.conditions.len());
        let of_conditions = conditions().map(|condition| condition.values.len());
        let lists = [self.begin.len(), self.cancel.len(), self.told.len()].into_iter();
        let mut lists = lists.chain(of_orders).chain(of_conditions);
        lists.all(|count| count <= MAX_LISTED) && texts.all(|text| text.len() <= MAX_TEXT_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_within_its_bounds() {
        let order = r#"{"id":"a","cpus":"0,2-3","service":"","process":"db","frequency_hz":999,"seconds":10,"more":1}"#;
        let answer = parse_answer(format!(r#"{{"begin":[{order}],"cancel":["b"]}}"#).as_bytes()).unwrap();
        assert_eq!((answer.begin[0].frequency_hz, &*answer.begin[0].process), (999, "db"));
        assert_eq!((answer.cancel, answer.again_ms), (vec!["b".to_owned()], 0));
        assert_eq!(parse_answer(b"{}"), Some(Answer::default()));
        let of = |values: &[&str]| {
            let values = serde_json::to_string(values).unwrap();
            let condition = format!(r#"{{"label":"thread","values":{values},"not":true}}"#);
            let order = format!(r#"{{"id":"a","conditions":[{condition}],"frequency_hz":999,"seconds":1}}"#);
            parse_answer(format!(r#"{{"begin":[{order}]}}"#).as_bytes())
        };
        let condition = &of(&["x", ""]).unwrap().begin[0].conditions[0];
        assert_eq!(
            (&*condition.label, condition.values.len(), condition.not),
            ("thread", 2, true)
        );
        assert_eq!(of(&["x"; MAX_LISTED + 1]), None);
        assert_eq!(of(&[&"x".repeat(MAX_TEXT_BYTES + 1)]), None);
        let many = vec![order; MAX_LISTED + 1].join(",");
        for wrong in ["", "[1]", "<html>", &format!(r#"{{"begin":[{many}]}}"#)] {
            assert_eq!(parse_answer(wrong.as_bytes()), None, "{wrong:.40}");
        }
        let long = format!(r#"{{"cancel":["{}"]}}"#, "x".repeat(MAX_TEXT_BYTES + 1));
        assert_eq!(parse_answer(long.as_bytes()), None);
    }
}
