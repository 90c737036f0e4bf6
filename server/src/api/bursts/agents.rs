//! Agents that hold a question open: who they are, what they can do, and how many there may be.

use crate::lock::lock_mutex;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Agents that are remembered; then those go that were silent for longest.
pub(in crate::api) const MOST_AGENTS: usize = 20_000;

/// Questions that are held at a time. Those beyond are answered at once: connections are left for ingest.
pub(in crate::api) const MOST_POLLS: usize = 2_048;

/// The same of one address, behind which there may be many agents.
pub(in crate::api) const MOST_POLLS_OF_ADDRESS: usize = 256;

/// The highest rate of any burst, and where the processor counts events by itself.
pub(super) const MOST_HZ: u32 = 999;
pub(super) const MOST_PMU_HZ: u32 = 4_999;

/// An agent asks again within this time after its last question was to be answered.
const PATIENCE: Duration = Duration::from_secs(25);

/// An agent that asks.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Agent {
    pub(super) node: String,
    pub(super) instance: String,
    pub(super) limit_hz: u32,
    pub(super) has_pmu: bool,
    /// CPUs that are online, such as `0,2-3`.
    pub(super) cpus: String,
    /// Labels that a burst there can be of.
    pub(super) selects: Vec<String>,
    /// Whose token it showed.
    pub(super) token: u32,
}

impl Agent {
    /// The highest rate that may be asked of it.
    pub(super) fn most_hz(&self) -> u32 {
        let most = if self.has_pmu { MOST_PMU_HZ } else { MOST_HZ };
        self.limit_hz.min(most)
    }
}

#[derive(Debug)]
struct KnownAgent {
    agent: Agent,
    /// When it asked last, and until when that question may be held.
    asked: Instant,
    until: Instant,
    /// Its questions so far: a new one ends the one before.
    questions: u64,
    news: Arc<Notify>,
}

/// What an agent's question is answered by.
#[derive(Debug)]
pub(super) struct Asks {
    pub(super) question: u64,
    /// The agent is new here.
    pub(super) is_new: bool,
    /// There may be something for it.
    pub(super) news: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Inner {
    agents: BTreeMap<String, KnownAgent>,
    held: usize,
    held_of: BTreeMap<IpAddr, usize>,
    /// Those that ask other servers on the same data.
    elsewhere: Vec<Agent>,
    is_stopping: bool,
}

/// All of them.
#[derive(Debug, Default)]
pub struct Agents {
    inner: Mutex<Inner>,
}

/// A question that is held, until it is dropped.
#[derive(Debug)]
pub(super) struct Held {
    agents: Arc<Agents>,
    address: Option<IpAddr>,
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut inner = lock_mutex(&self.agents.inner);
        inner.held -= 1;
        if let Some(address) = self.address
            && let Some(count) = inner.held_of.get_mut(&address)
        {
            *count -= 1;
            if *count == 0 {
                inner.held_of.remove(&address);
            }
        }
    }
}

impl Agents {
    /// An agent asks, and may be held for so long. None where its instance is another token's.
    pub(super) fn asks(&self, agent: Agent, hold: Duration) -> Option<Asks> {
        let mut inner = lock_mutex(&self.inner);
        let asked = Instant::now();
        let until = asked + hold;
        if let Some(known) = inner.agents.get_mut(&agent.instance) {
            if known.agent.token != agent.token && known.agent.token != 0 && agent.token != 0 {
                return None;
            }
            known.questions += 1;
            (known.agent, known.asked, known.until) = (agent, asked, until);
            // The one before is answered.
            known.news.notify_waiters();
            return Some(Asks {
                question: known.questions,
                is_new: false,
                news: known.news.clone(),
            });
        }
        if inner.agents.len() >= MOST_AGENTS {
            let oldest = inner.agents.iter().min_by_key(|(_, known)| known.until);
            if let Some(instance) = oldest.map(|(instance, _)| instance.clone()) {
                inner.agents.remove(&instance);
            }
        }
        let news = Arc::new(Notify::new());
        let known = KnownAgent {
            asked,
            until,
            questions: 1,
            agent,
            news: news.clone(),
        };
        inner.agents.insert(known.agent.instance.clone(), known);
        Some(Asks {
            question: 1,
            is_new: true,
            news,
        })
    }

    /// It stops, and asks no more.
    pub(super) fn leaves(&self, instance: &str) {
        if let Some(known) = lock_mutex(&self.inner).agents.remove(instance) {
            known.news.notify_waiters();
        }
    }

    /// True while that is the agent's last question and the server goes on.
    pub(super) fn is_last(&self, instance: &str, question: u64) -> bool {
        let inner = lock_mutex(&self.inner);
        let known = inner.agents.get(instance);
        !inner.is_stopping && known.is_some_and(|known| known.questions == question)
    }

    /// Room for one more question that is held; none where there are too many.
    pub(super) fn hold(self: &Arc<Self>, address: Option<IpAddr>) -> Option<Held> {
        let mut inner = lock_mutex(&self.inner);
        if inner.held >= MOST_POLLS || inner.is_stopping {
            return None;
        }
        if let Some(address) = address {
            let count = inner.held_of.entry(address).or_default();
            if *count >= MOST_POLLS_OF_ADDRESS {
                return None;
            }
            *count += 1;
        }
        inner.held += 1;
        Some(Held {
            agents: self.clone(),
            address,
        })
    }

    /// Those that ask at present, this server or another on the same data, one a node: the one that asked here last.
    pub(super) fn here(&self) -> Vec<Agent> {
        let own = self.own();
        let mut by_node: BTreeMap<String, Agent> = BTreeMap::new();
        let elsewhere = lock_mutex(&self.inner).elsewhere.clone();
        for agent in elsewhere.into_iter().chain(own) {
            by_node.insert(agent.node.clone(), agent);
        }
        by_node.into_values().collect()
    }

    /// What others told of the agents that ask them.
    pub(super) fn learn(&self, mut elsewhere: Vec<Agent>) {
        elsewhere.truncate(MOST_AGENTS);
        lock_mutex(&self.inner).elsewhere = elsewhere;
    }

    pub(super) fn is_stopping(&self) -> bool {
        lock_mutex(&self.inner).is_stopping
    }

    /// Those that ask this server at present, one a node.
    pub(super) fn own(&self) -> Vec<Agent> {
        let (inner, now) = (lock_mutex(&self.inner), Instant::now());
        let mut by_node: BTreeMap<&str, &KnownAgent> = BTreeMap::new();
        for known in inner.agents.values().filter(|known| known.until + PATIENCE > now) {
            let newest = by_node.entry(&known.agent.node).or_insert(known);
            // One that runs a burst is held for less than one that has ended was.
            if known.asked > newest.asked {
                *newest = known;
            }
        }
        by_node.into_values().map(|known| known.agent.clone()).collect()
    }

    /// The highest rate that may be asked of each of these instances.
    pub(in crate::api) fn limits(&self) -> BTreeMap<String, u32> {
        let here = self.here().into_iter();
        here.map(|agent| (agent.instance.clone(), agent.most_hz())).collect()
    }

    /// There may be something for an agent.
    pub(super) fn tell(&self) {
        let inner = lock_mutex(&self.inner);
        inner.agents.values().for_each(|known| known.news.notify_waiters());
    }

    /// No question is held any more: the server stops.
    pub fn stop(&self) {
        lock_mutex(&self.inner).is_stopping = true;
        self.tell();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(node: &str, instance: &str, token: u32) -> Agent {
        Agent {
            node: node.to_owned(),
            instance: instance.to_owned(),
            limit_hz: 999,
            has_pmu: false,
            cpus: "0-1".to_owned(),
            selects: Vec::new(),
            token,
        }
    }

    #[test]
    fn an_instance_is_its_tokens_and_its_last_question_counts() {
        let agents = Agents::default();
        let hold = Duration::from_secs(20);
        let asks = |instance, token| {
            let asks = agents.asks(agent("a", instance, token), hold);
            asks.map(|asks| (asks.question, asks.is_new))
        };
        assert_eq!(asks("i", 7), Some((1, true)));
        assert_eq!(asks("i", 7), Some((2, false)));
        assert!(agents.is_last("i", 2) && !agents.is_last("i", 1));
        assert_eq!(asks("i", 9), None);
        agents.asks(agent("a", "k", 9), hold / 10);
        let here: Vec<String> = agents.here().into_iter().map(|agent| agent.instance).collect();
        assert_eq!(here, ["k"], "one a node");
        agents.leaves("k");
        assert_eq!(agents.here().len(), 1);
        agents.stop();
        assert!(!agents.is_last("i", 2));
    }

    #[test]
    fn what_is_held_is_bounded_by_address_and_in_all() {
        let agents = Arc::new(Agents::default());
        let address = |n: u8| Some(IpAddr::from([10, 0, 0, n]));
        let mut held: Vec<Held> = Vec::new();
        while let Some(one) = agents.hold(address(0)) {
            held.push(one);
        }
        assert_eq!(held.len(), MOST_POLLS_OF_ADDRESS);
        for n in 1..=255 {
            while let Some(one) = agents.hold(address(n)) {
                held.push(one);
            }
        }
        assert_eq!(held.len(), MOST_POLLS);
        drop(held);
        assert!(agents.hold(address(0)).is_some());
        assert_eq!(lock_mutex(&agents.inner).held_of.len(), 0);
    }
}
