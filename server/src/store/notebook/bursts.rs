//! Closer looks that somebody asked for, from the question to what became of it. They are kept across a restart, so
//! that what an agent does meanwhile is told, and charts show later when one was.

use crate::store::notebook::{Notebook, Refused};
use crate::store::root::contract::Root;
use crate::store::root::error::RootError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Most bursts that are remembered; beyond them those that ended first go.
pub(crate) const MOST_BURSTS: usize = 1_000;

/// An agent takes one within this time, or it is lost.
pub(crate) const TAKEN_WITHIN_SECONDS: u64 = 10;

/// And says how one ended within this time after it was to end.
pub(crate) const TOLD_WITHIN_SECONDS: u64 = 30;

/// What became of a burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum BurstState {
    /// The agent has not taken it.
    Waiting,
    Running,
    Ended,
    Cancelled,
    Refused,
    /// Nobody knows: the agent says nothing.
    Lost,
}

impl BurstState {
    pub(crate) fn is_live(self) -> bool {
        matches!(self, BurstState::Waiting | BurstState::Running)
    }
}

/// What a burst is of, beside its service and process: a label's values, or all others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BurstCondition {
    pub(crate) label: String,
    pub(crate) values: Vec<String>,
    pub(crate) not: bool,
}

/// One burst of one agent. Its name in the notebook is its id; ids ascend by time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Burst {
    pub(crate) node: String,
    pub(crate) instance: String,
    pub(crate) state: BurstState,
    pub(crate) cpus: String,
    pub(crate) service: String,
    pub(crate) process: String,
    /// And of what meets these alone; as the selector in which they came.
    #[serde(default)]
    pub(crate) conditions: Vec<BurstCondition>,
    #[serde(default)]
    pub(crate) query: String,
    pub(crate) frequency_hz: u32,
    pub(crate) seconds: u32,
    pub(crate) created_ms: i64,
    /// When it began and when it ends, or has, by the agent's clock.
    pub(crate) from_ms: Option<i64>,
    pub(crate) until_ms: Option<i64>,
    /// When it ends by the server's.
    pub(crate) ends_ms: i64,
    pub(crate) samples: u64,
    pub(crate) cpu_seconds: f64,
    pub(crate) reason: String,
    /// Somebody wants it to end.
    pub(crate) is_cancelled: bool,
}

/// An agent's word on one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BurstReport {
    pub(crate) id: String,
    pub(crate) state: BurstState,
    pub(crate) from_ms: i64,
    pub(crate) until_ms: i64,
    pub(crate) cpus: String,
    pub(crate) frequency_hz: u32,
    pub(crate) samples: u64,
    pub(crate) cpu_seconds: f64,
    pub(crate) reason: String,
}

/// All of them by their ids.
pub(crate) type All = BTreeMap<String, Burst>;

/// See the module.
#[derive(Debug)]
pub(crate) struct Bursts(Notebook<Burst>);

impl Bursts {
    pub(crate) async fn open(root: &Arc<dyn Root>) -> Result<Self, RootError> {
        Notebook::open(root, "bursts").await.map(Bursts)
    }

    /// See [`Notebook::refresh`].
    pub(crate) async fn refresh(&self) -> Result<(), RootError> {
        self.0.refresh().await
    }

    pub(crate) fn all(&self) -> Arc<All> {
        self.0.all()
    }

    /// Keeps new ones. One of an agent that has another is refused, and tells why. Where all are, none is kept.
    pub(crate) async fn ask(&self, new: Vec<(String, Burst)>, now_ms: i64) -> Result<Vec<(String, Burst)>, Refused> {
        self.0.change(move |all| ask(all, new.clone(), now_ms)).await
    }

    /// Takes what an agent says.
    pub(crate) async fn report(&self, instance: &str, reports: Vec<BurstReport>, now_ms: i64) -> Result<(), Refused> {
        if reports.iter().any(|report| !self.all().contains_key(&report.id)) {
            // Another server may have been asked for it a moment ago.
            self.refresh().await.map_err(Refused::Failed)?;
        }
        let instance = instance.to_owned();
        self.change_if(move |all| report(all, &instance, &reports, now_ms))
            .await
    }

    /// Ends one, as soon as its agent has heard of it. False where there is none.
    pub(crate) async fn cancel(&self, id: String, now_ms: i64) -> Result<Option<Burst>, Refused> {
        if !self.all().contains_key(&id) {
            self.refresh().await.map_err(Refused::Failed)?;
        }
        let known = self.all().contains_key(&id);
        if known {
            let of = id.clone();
            self.change_if(move |all| cancel(all, &of, now_ms)).await?;
        }
        Ok(self.all().get(&id).cloned())
    }

    /// Gives up those of which nothing was heard. `runs` is a node with the run of its agent that began: what ran in
    /// another one is lost, and what waits for one is this one's.
    pub(crate) async fn settle(&self, runs: Option<(String, String)>, now_ms: i64) -> Result<(), Refused> {
        self.change_if(move |all| settle(all, runs.as_ref(), now_ms)).await
    }

    /// Writes nothing where nothing changes.
    async fn change_if(&self, change: impl Fn(&mut All) -> bool + Send + Sync + 'static) -> Result<(), Refused> {
        let mut tried = (*self.all()).clone();
        if !change(&mut tried) {
            return Ok(());
        }
        self.0
            .change(move |all| {
                change(all);
                Ok(())
            })
            .await
    }
}

fn seconds_ms(seconds: u64) -> i64 {
    i64::try_from(seconds.saturating_mul(1000)).unwrap_or(i64::MAX)
}

fn ask(all: &mut All, new: Vec<(String, Burst)>, now_ms: i64) -> Result<Vec<(String, Burst)>, Refused> {
    settle(all, None, now_ms);
    let mut answered = Vec::with_capacity(new.len());
    for (id, mut burst) in new {
        let other = all
            .values()
            .find(|other| other.state.is_live() && other.instance == burst.instance);
        if let Some(other) = other {
            let rest = other.ends_ms.saturating_sub(now_ms).max(1000) / 1000;
            burst.state = BurstState::Refused;
            burst.reason = format!("another burst is under way on {}, for {rest} s more", burst.node);
        }
        answered.push((id, burst));
    }
    if answered.iter().any(|(_, burst)| burst.state.is_live()) {
        all.extend(answered.iter().cloned());
        while all.len() > MOST_BURSTS {
            let oldest = all.iter().find(|(_, burst)| !burst.state.is_live());
            let Some(id) = oldest.map(|(id, _)| id.clone()) else {
                return Err(Refused::Limit(format!("{MOST_BURSTS} bursts are under way")));
            };
            all.remove(&id);
        }
    }
    Ok(answered)
}

fn report(all: &mut All, instance: &str, reports: &[BurstReport], now_ms: i64) -> bool {
    let mut changes = false;
    for report in reports {
        let Some(burst) = all.get_mut(&report.id).filter(|burst| burst.instance == instance) else {
            continue;
        };
        let before = burst.clone();
        if report.state == BurstState::Running && before.state != BurstState::Running {
            // What was given up or called off runs all the same.
            burst.is_cancelled |= before.state == BurstState::Cancelled;
            burst.ends_ms = now_ms + seconds_ms(burst.seconds.into());
        }
        burst.state = report.state;
        let is_time = |ms: &i64| *ms > 0;
        burst.from_ms = Some(report.from_ms).filter(is_time);
        burst.until_ms = Some(report.until_ms).filter(is_time);
        burst.cpus.clone_from(&report.cpus);
        burst.frequency_hz = report.frequency_hz;
        burst.samples = report.samples;
        burst.cpu_seconds = report.cpu_seconds;
        burst.reason.clone_from(&report.reason);
        changes |= *burst != before;
    }
    changes
}

fn cancel(all: &mut All, id: &str, now_ms: i64) -> bool {
    let Some(burst) = all.get_mut(id).filter(|burst| burst.state.is_live()) else {
        return false;
    };
    let before = burst.clone();
    burst.is_cancelled = true;
    if burst.state == BurstState::Waiting {
        (burst.state, burst.ends_ms) = (BurstState::Cancelled, now_ms);
        "it was cancelled before its agent had it".clone_into(&mut burst.reason);
    }
    *burst != before
}

fn settle(all: &mut All, runs: Option<&(String, String)>, now_ms: i64) -> bool {
    let mut changes = false;
    for burst in all.values_mut().filter(|burst| burst.state.is_live()) {
        let successor = runs.filter(|(node, instance)| burst.node == *node && burst.instance != *instance);
        let taken_until = burst.created_ms.saturating_add(seconds_ms(TAKEN_WITHIN_SECONDS));
        let told_until = burst.ends_ms.saturating_add(seconds_ms(TOLD_WITHIN_SECONDS));
        let reason = match burst.state {
            BurstState::Running if successor.is_some() => "its agent was started anew".to_owned(),
            BurstState::Waiting if now_ms > taken_until => {
                format!("its agent did not take it within {TAKEN_WITHIN_SECONDS} s")
            }
            BurstState::Running if now_ms > told_until => "its agent did not say how it ended".to_owned(),
            _ => {
                // Who asked for it had the node in mind.
                if let Some((_, instance)) = successor {
                    (burst.instance, changes) = (instance.clone(), true);
                }
                continue;
            }
        };
        (burst.state, burst.reason, changes) = (BurstState::Lost, reason, true);
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn burst(instance: &str, created_ms: i64) -> Burst {
        Burst {
            node: "a".to_owned(),
            instance: instance.to_owned(),
            state: BurstState::Waiting,
            cpus: String::new(),
            service: String::new(),
            process: String::new(),
            conditions: Vec::new(),
            query: String::new(),
            frequency_hz: 999,
            seconds: 10,
            created_ms,
            from_ms: None,
            until_ms: None,
            ends_ms: created_ms + 10_000,
            samples: 0,
            cpu_seconds: 0.0,
            reason: String::new(),
            is_cancelled: false,
        }
    }

    fn said(id: &str, state: BurstState) -> BurstReport {
        BurstReport {
            id: id.to_owned(),
            state,
            from_ms: 5,
            until_ms: 10_005,
            cpus: "0-1".to_owned(),
            frequency_hz: 999,
            samples: 7,
            cpu_seconds: 0.5,
            reason: String::new(),
        }
    }

    #[test]
    fn an_agent_has_one_at_a_time_and_those_that_ended_first_go() {
        let mut all = All::new();
        let one = |id: usize, instance: &str| vec![(format!("{id:06}"), burst(instance, 0))];
        assert_eq!(ask(&mut all, one(1, "i"), 0).unwrap()[0].1.state, BurstState::Waiting);
        let refused = ask(&mut all, one(2, "i"), 4_000).unwrap();
        assert_eq!(refused[0].1.state, BurstState::Refused);
        assert!(refused[0].1.reason.contains("for 6 s more"), "{}", refused[0].1.reason);
        assert_eq!(all.len(), 1, "what is wholly refused is not kept");
        let both = vec![one(3, "i").remove(0), one(4, "k").remove(0)];
        let states: Vec<BurstState> = ask(&mut all, both, 0)
            .unwrap()
            .into_iter()
            .map(|(_, b)| b.state)
            .collect();
        assert_eq!(states, [BurstState::Refused, BurstState::Waiting]);
        for id in 10..MOST_BURSTS + 10 {
            ask(&mut all, one(id, &format!("i{id}")), 0).unwrap();
            let ended = all.get_mut(&format!("{id:06}")).unwrap();
            ended.state = BurstState::Ended;
        }
        assert_eq!(all.len(), MOST_BURSTS);
        assert!(all.contains_key("000001") && !all.contains_key("000003"));
    }

    #[test]
    fn what_is_not_heard_of_is_lost_and_found_again() {
        let mut all: All = [("x".to_owned(), burst("i", 0))].into();
        assert!(!settle(&mut all, None, 10_000));
        assert!(settle(&mut all, None, 10_001));
        assert_eq!(all["x"].state, BurstState::Lost);
        assert!(report(&mut all, "i", &[said("x", BurstState::Running)], 20_000));
        assert!(
            !report(&mut all, "i", &[said("x", BurstState::Running)], 21_000),
            "nothing new"
        );
        assert!(
            !report(&mut all, "k", &[said("x", BurstState::Ended)], 21_000),
            "another's"
        );
        let late = 30_000 + seconds_ms(TOLD_WITHIN_SECONDS);
        assert!(!settle(&mut all, None, late) && settle(&mut all, None, late + 1));
        assert!(report(&mut all, "i", &[said("x", BurstState::Ended)], late + 2));
        assert_eq!((all["x"].state, all["x"].samples), (BurstState::Ended, 7));
        let mut all: All = [("x".to_owned(), burst("i", 0))].into();
        assert!(!settle(&mut all, Some(&("b".to_owned(), "k".to_owned())), 1));
        assert!(settle(&mut all, Some(&("a".to_owned(), "k".to_owned())), 1));
        assert_eq!((&*all["x"].instance, all["x"].state), ("k", BurstState::Waiting));
        report(&mut all, "k", &[said("x", BurstState::Running)], 2);
        assert!(settle(&mut all, Some(&("a".to_owned(), "l".to_owned())), 3));
        assert_eq!(all["x"].reason, "its agent was started anew");
    }

    #[test]
    fn one_that_was_called_off_and_begins_all_the_same_is_ended() {
        let mut all: All = [("x".to_owned(), burst("i", 0))].into();
        assert!(cancel(&mut all, "x", 1) && !cancel(&mut all, "x", 1) && !cancel(&mut all, "y", 1));
        assert_eq!(all["x"].state, BurstState::Cancelled);
        report(&mut all, "i", &[said("x", BurstState::Running)], 2);
        assert!(all["x"].is_cancelled && all["x"].state == BurstState::Running);
    }
}
