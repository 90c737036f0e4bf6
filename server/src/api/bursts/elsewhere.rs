//! Agents that ask other servers on the same data: each server tells the others which ask it, so that a burst can be
//! asked for at any of them.

use super::agents::{Agent, Agents};
use crate::store::Store;
use bytes::Bytes;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Each server tells, and learns, so often.
const SHARED_EVERY: Duration = Duration::from_secs(5);

impl Agents {
    /// Tells and learns until the server stops. Ends at once where there are no others.
    pub async fn share(self: Arc<Self>, store: Arc<Store>) {
        if !store.is_shared() {
            return;
        }
        let weak: Weak<Store> = Arc::downgrade(&store);
        drop(store);
        let mut told: Vec<Agent> = Vec::new();
        while !self.is_stopping() {
            let Some(store) = weak.upgrade() else { return };
            let own = self.own();
            if own != told
                && let Ok(text) = serde_json::to_vec(&own)
            {
                store.tell_agents(Bytes::from(text)).await;
                told = own;
            }
            let of_others = store.agents_of_others().await;
            drop(store);
            // What another version tells in another way is passed over.
            let lists = of_others.iter().map(|told| serde_json::from_slice::<Vec<Agent>>(told));
            self.learn(lists.flat_map(Result::unwrap_or_default).collect());
            tokio::time::sleep(SHARED_EVERY).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::StoreConfig;

    #[tokio::test(flavor = "multi_thread")]
    async fn an_agent_that_asks_one_server_is_known_to_the_other() {
        let dir = tempfile::tempdir().unwrap();
        let config = || StoreConfig {
            is_shared: true,
            min_free_bytes: 0,
            ..StoreConfig::new(dir.path())
        };
        let stores = [
            Store::open(config()).await.unwrap(),
            Store::open(config()).await.unwrap(),
        ];
        let servers = [Arc::new(Agents::default()), Arc::new(Agents::default())];
        let agent = Agent {
            node: "a".to_owned(),
            instance: "i".to_owned(),
            limit_hz: 999,
            has_pmu: false,
            cpus: "0-1".to_owned(),
            selects: Vec::new(),
            token: 7,
        };
        servers[0].asks(agent.clone(), Duration::from_secs(20));
        let sharing: Vec<_> = servers
            .iter()
            .zip(&stores)
            .map(|(agents, store)| tokio::spawn(agents.clone().share(store.clone())))
            .collect();
        let begun = std::time::Instant::now();
        while servers[1].here().is_empty() {
            assert!(begun.elapsed() < Duration::from_secs(60), "it is not known");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(servers[1].here(), [agent]);
        assert!(servers[1].own().is_empty());
        servers.iter().for_each(|agents| agents.stop());
        for task in sharing {
            task.await.unwrap();
        }
        for store in stores {
            store.close().await;
        }
    }
}
