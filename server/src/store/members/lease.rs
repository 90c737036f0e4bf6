//! Who does the maintenance: whoever holds the lease, one object that its holder replaces every few seconds.
//!
//! A server that has not seen the object change for [`EXPIRES`], by its own counter, takes it, on the condition that it
//! is the very object that was seen. The holder relies on it for less than that, by its own counter, from before its
//! last replacement. So no two hold it as long as no server sleeps in between; where one does, two rewrites of the same
//! files meet in the log, and the second is given up.

use crate::lock::lock_mutex;
use crate::store::members::heartbeat::FOLDER;
use crate::store::root::contract::{Root, Stamp};
use crate::store::root::error::RootError;
use crate::store::root::waiting::waiting;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Others wait for so long.
const EXPIRES: Duration = Duration::from_secs(30);

/// The holder replaces the object so often.
const RENEWED: Duration = Duration::from_secs(8);

/// And relies on it for so long.
const HELD: Duration = Duration::from_secs(20);

/// What the object says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Held {
    /// Empty where it was given back.
    holder: String,
    /// Another one with each replacement.
    count: u64,
}

#[derive(Debug)]
struct State {
    /// The object as it was seen last, what it said, and since when it has been so.
    seen: Option<(Stamp, Held, Instant)>,
    /// What this server put last, and since when it counts.
    put: Option<(Held, Instant)>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Lease {
    root: Arc<dyn Root>,
    id: String,
    state: tokio::sync::Mutex<State>,
    /// Since when it counts as this server's; none where it is not.
    since: Mutex<Option<Instant>>,
}

impl Lease {
    pub(crate) fn new(root: Arc<dyn Root>, id: String) -> Self {
        Self {
            root,
            id,
            state: tokio::sync::Mutex::new(State { seen: None, put: None }),
            since: Mutex::new(None),
        }
    }

    /// Whether this server does the maintenance.
    pub(crate) fn is_held(&self) -> bool {
        lock_mutex(&self.since).is_some_and(|since| since.elapsed() < HELD)
    }

    /// Takes it, renews it, or looks who has it: to be called every few seconds.
    pub(crate) async fn tick(&self) -> Result<(), RootError> {
        self.tick_for(EXPIRES, RENEWED).await
    }

    async fn tick_for(&self, expires: Duration, renewed: Duration) -> Result<(), RootError> {
        let mut state = self.state.lock().await;
        let since = *lock_mutex(&self.since);
        if since.is_some_and(|since| since.elapsed() < renewed) {
            return Ok(());
        }
        let (stamp, held) = self.read().await?;
        // What was put is the server's own also where the answer to the put was lost.
        let own = state.put.as_ref().filter(|(put, _)| *put == held).map(|(_, at)| *at);
        *lock_mutex(&self.since) = own;
        let is_same = state.seen.as_ref().is_some_and(|(seen, ..)| *seen == stamp);
        if !is_same {
            state.seen = Some((stamp.clone(), held.clone(), Instant::now()));
        }
        let is_over = state
            .seen
            .as_ref()
            .is_some_and(|(.., since)| since.elapsed() >= expires);
        if own.is_none() && !held.holder.is_empty() && !is_over {
            return Ok(());
        }
        let next = Held {
            holder: self.id.clone(),
            count: held.count + 1,
        };
        let begun = Instant::now();
        state.put = Some((next.clone(), begun));
        match self.put(stamp, next).await {
            Ok(()) => *lock_mutex(&self.since) = Some(begun),
            // Another was first.
            Err(RootError::Exists(_)) => *lock_mutex(&self.since) = None,
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Gives it back.
    pub(crate) async fn release(&self) {
        let mut state = self.state.lock().await;
        if lock_mutex(&self.since).take().is_none() {
            return;
        }
        let given_back = async {
            let (stamp, held) = self.read().await?;
            if held.holder != self.id {
                return Ok(());
            }
            let (holder, count) = (String::new(), held.count + 1);
            self.put(stamp, Held { holder, count }).await
        };
        if let Err(error) = given_back.await {
            tracing::warn!(%error, "cannot give the lease of maintenance back: others have it half a minute later");
        }
        state.put = None;
    }

    /// The stamp is no newer than what was read: what came in between makes a replacement fail.
    async fn read(&self) -> Result<(Stamp, Held), RootError> {
        let (root, path) = (self.root.clone(), path());
        waiting(move || {
            let stamp = match root.stamp(&path) {
                Ok(stamp) => stamp,
                Err(RootError::NotFound(_)) => return Ok((Stamp::default(), Held::default())),
                Err(error) => return Err(error),
            };
            // What is no lease of ours is nobody's.
            let held = serde_json::from_slice(&root.reader().whole(&path)?).unwrap_or_default();
            Ok((stamp, held))
        })
        .await
    }

    async fn put(&self, stamp: Stamp, held: Held) -> Result<(), RootError> {
        let (root, path) = (self.root.clone(), path());
        waiting(move || {
            let text = serde_json::to_vec(&held).map_err(|error| RootError::new(&path, error))?;
            root.replace_if(&path, &stamp, Bytes::from(text))
        })
        .await
    }
}

fn path() -> String {
    format!("{FOLDER}/maintenance.lease")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::root::open::open_as;

    #[tokio::test]
    async fn one_of_two_has_it_and_the_other_when_that_one_is_silent_or_gives_it_back() {
        let dir = tempfile::tempdir().unwrap();
        let root = open_as(dir.path(), true).unwrap();
        let _lock = root.join().unwrap();
        let [one, other] = ["a", "b"].map(|id| Lease::new(root.clone(), id.to_owned()));
        one.tick().await.unwrap();
        other.tick().await.unwrap();
        assert_eq!((one.is_held(), other.is_held()), (true, false));
        // It is renewed: whoever waits begins to wait anew, however long ago it first saw it.
        one.tick_for(EXPIRES, Duration::ZERO).await.unwrap();
        other.tick_for(Duration::MAX, RENEWED).await.unwrap();
        assert_eq!((one.is_held(), other.is_held()), (true, false));
        // It is silent: the other takes it, and the first finds out.
        other.tick_for(Duration::ZERO, RENEWED).await.unwrap();
        assert!(other.is_held());
        one.tick_for(EXPIRES, Duration::ZERO).await.unwrap();
        assert!(!one.is_held());
        other.release().await;
        one.tick().await.unwrap();
        assert_eq!((one.is_held(), other.is_held()), (true, false));
    }

    #[tokio::test]
    async fn two_that_take_it_at_once_do_not_both_get_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = open_as(dir.path(), true).unwrap();
        let _lock = root.join().unwrap();
        let leases: Vec<Lease> = (0..8).map(|id| Lease::new(root.clone(), id.to_string())).collect();
        let ticks = leases.iter().map(|lease| lease.tick());
        for done in futures::future::join_all(ticks).await {
            done.unwrap();
        }
        assert_eq!(leases.iter().filter(|lease| lease.is_held()).count(), 1);
    }
}
