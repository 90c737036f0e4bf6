//! One object a server, which it replaces every few seconds: whoever sees it change knows that the server is alive.

use crate::lock::lock_mutex;
use crate::store::root::contract::Root;
use crate::store::root::error::RootError;
use crate::store::root::waiting::waiting;
use crate::store::table::format_version;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStoreExt};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The folder of all that servers say to each other.
pub(super) const FOLDER: &str = "servers";

/// A server says so often that it is alive, and looks for others.
pub(crate) const BEAT_EVERY: Duration = Duration::from_secs(3);

/// A server that said nothing for so long is not counted any more.
const SILENT: Duration = Duration::from_secs(15);

/// What is older than this server's own object by that much is one of a server that was killed.
const LEFT_BEHIND: Duration = Duration::from_secs(24 * 3600);

/// Servers that are known at most; others do not count.
const MOST_MEMBERS: usize = 256;

/// A larger object is none of a server's.
const MOST_BYTES: u64 = 16 << 10;

/// Bytes of what a server tells beside.
const MOST_TOLD: u64 = 16 << 20;

/// What a server tells beside, by the end of its object's name.
pub(crate) const AGENTS: &str = "agents";

/// What a server says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Beat {
    id: String,
    address: String,
    /// Older servers do not have it.
    #[serde(default)]
    exchange: String,
    version: String,
    format: u32,
    started_ms: i64,
    /// Another one with each beat.
    sequence: u64,
}

/// A server that writes to the data root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Another one with each start.
    pub id: String,
    /// Where it says that it is reached.
    pub address: String,
    /// Where it counts for others; empty: it does not.
    pub exchange: String,
    /// Its version.
    pub version: String,
    /// The format of the store that it writes.
    pub format: u32,
    /// When it was started, by its own clock, Unix milliseconds.
    pub started_ms: i64,
    /// How long ago it was last heard of.
    pub heard: Duration,
    /// Whether it counts as alive.
    pub is_alive: bool,
    /// Whether it is this server.
    pub is_own: bool,
}

/// What tells an object from the one before.
type Seen = (DateTime<Utc>, Option<String>, u64);

#[derive(Debug)]
struct Known {
    seen: Seen,
    changed: Instant,
    beat: Option<Beat>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Heartbeats {
    root: Arc<dyn Root>,
    own: Beat,
    sequence: AtomicU64,
    /// By the names of their objects.
    known: Mutex<BTreeMap<String, Known>>,
}

impl Heartbeats {
    pub(crate) fn new(root: Arc<dyn Root>, id: String, [address, exchange]: [String; 2]) -> Self {
        Self {
            root,
            own: Beat {
                id,
                address,
                exchange,
                version: env!("CARGO_PKG_VERSION").to_owned(),
                format: format_version::VERSION,
                started_ms: Utc::now().timestamp_millis(),
                sequence: 0,
            },
            sequence: AtomicU64::new(1),
            known: Mutex::default(),
        }
    }

    /// What this server is called.
    pub(crate) fn id(&self) -> &str {
        &self.own.id
    }

    fn own_name(&self) -> String {
        format!("{}.json", self.own.id)
    }

    /// Makes room for the servers' objects, and tells of this one.
    pub(crate) async fn begin(&self) -> Result<(), RootError> {
        let root = self.root.clone();
        waiting(move || root.prepare(FOLDER)).await?;
        self.beat().await?;
        self.look().await
    }

    /// Tells that this server is alive.
    pub(crate) async fn beat(&self) -> Result<(), RootError> {
        let beat = Beat {
            sequence: self.sequence.fetch_add(1, Ordering::Relaxed),
            ..self.own.clone()
        };
        let (root, path) = (self.root.clone(), format!("{FOLDER}/{}", self.own_name()));
        waiting(move || {
            let text = serde_json::to_vec(&beat).map_err(|error| RootError::new(&path, error))?;
            root.replace(&path, Bytes::from(text))
        })
        .await
    }

    /// Tells others more, of some kind; in place of what was told before.
    pub(crate) async fn tell(&self, kind: &str, bytes: Bytes) -> Result<(), RootError> {
        let (root, path) = (self.root.clone(), format!("{FOLDER}/{}.{kind}", self.own.id));
        waiting(move || root.replace(&path, bytes)).await
    }

    /// What others that are alive have told of a kind. What cannot be read is left out.
    pub(crate) async fn told(&self, kind: &str) -> Vec<Bytes> {
        let others = self
            .list()
            .into_iter()
            .filter(|member| member.is_alive && !member.is_own);
        let mut told = Vec::new();
        for member in others {
            let (root, path) = (self.root.clone(), format!("{FOLDER}/{}.{kind}", member.id));
            let read = waiting(move || match root.stamp(&path)?.bytes {
                ..=MOST_TOLD => root.reader().whole(&path),
                length => Err(RootError::new(&path, format!("it has {length} bytes"))),
            });
            match read.await {
                Ok(bytes) => told.push(bytes),
                Err(RootError::NotFound(_)) => {}
                Err(error) => tracing::warn!(%error, "cannot read what another server tells"),
            }
        }
        told
    }

    /// Looks which of the others said something since the last look.
    pub(crate) async fn look(&self) -> Result<(), RootError> {
        let failed = |error: object_store::Error| RootError::new(FOLDER, error);
        let mut listed = self.root.objects().list(Some(&Path::from(FOLDER)));
        let (mut found, mut unread) = (BTreeMap::new(), Vec::new());
        while let Some(object) = listed.try_next().await.map_err(failed)? {
            let name = object.location.filename().unwrap_or_default().to_owned();
            if name.ends_with(".json") && object.size <= MOST_BYTES && found.len() < MOST_MEMBERS {
                found.insert(name, object);
            }
        }
        {
            let mut known = lock_mutex(&self.known);
            known.retain(|name, _| found.contains_key(name));
            for (name, object) in &found {
                let seen = seen(object);
                match known.get_mut(name) {
                    Some(member) if member.seen == seen => {}
                    Some(member) => (member.seen, member.changed) = (seen, Instant::now()),
                    None => {
                        let (changed, beat) = (Instant::now(), None);
                        known.insert(name.clone(), Known { seen, changed, beat });
                    }
                }
            }
            let nameless = known.iter().filter(|(_, member)| member.beat.is_none());
            unread.extend(nameless.map(|(name, _)| name.clone()));
        }
        for name in unread {
            let (root, path) = (self.root.clone(), format!("{FOLDER}/{name}"));
            let read = waiting(move || root.reader().whole(&path)).await;
            // What cannot be read is shown without its address; a server that has just left is gone.
            let beat = read.ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
            if let Some(member) = lock_mutex(&self.known).get_mut(&name) {
                member.beat = beat;
            }
        }
        Ok(())
    }

    /// How many servers are alive, with this one. One that was never seen to change counts until it has been silent.
    pub(crate) fn alive(&self) -> usize {
        let own = self.own_name();
        let known = lock_mutex(&self.known);
        let others = known
            .iter()
            .filter(|(name, member)| **name != own && member.changed.elapsed() < SILENT);
        1 + others.count()
    }

    /// All that are known, in the order of their start.
    pub(crate) fn list(&self) -> Vec<Member> {
        let known = lock_mutex(&self.known);
        let mut list: Vec<Member> = known
            .iter()
            .map(|(name, member)| {
                let (heard, beat) = (member.changed.elapsed(), member.beat.as_ref());
                Member {
                    id: name.trim_end_matches(".json").to_owned(),
                    address: beat.map(|beat| beat.address.clone()).unwrap_or_default(),
                    exchange: beat.map(|beat| beat.exchange.clone()).unwrap_or_default(),
                    version: beat.map(|beat| beat.version.clone()).unwrap_or_default(),
                    format: beat.map_or(0, |beat| beat.format),
                    started_ms: beat.map_or(0, |beat| beat.started_ms),
                    heard,
                    is_alive: heard < SILENT,
                    is_own: *name == self.own_name(),
                }
            })
            .collect();
        list.sort_by(|a, b| (a.started_ms, &a.id).cmp(&(b.started_ms, &b.id)));
        list
    }

    /// What time it is by the store's clock, as of the last look: when it says that this server's object was written.
    pub(crate) fn store_time(&self) -> Option<DateTime<Utc>> {
        let known = lock_mutex(&self.known);
        known.get(&self.own_name()).map(|own| own.seen.0)
    }

    /// Removes what servers that were killed have left, a day later.
    pub(crate) async fn forget_dead(&self) {
        let Some(now) = self.store_time() else { return };
        let dead: Vec<String> = {
            let known = lock_mutex(&self.known);
            let is_old = |member: &Known| (now - member.seen.0).to_std().is_ok_and(|age| age > LEFT_BEHIND);
            let dead = known.iter().filter(|(_, member)| is_old(member));
            dead.map(|(name, _)| name.clone()).collect()
        };
        for name in dead {
            self.delete(&name).await;
            self.delete(&name.replace(".json", &format!(".{AGENTS}"))).await;
        }
    }

    /// This server stops.
    pub(crate) async fn end(&self) {
        self.delete(&self.own_name()).await;
        self.delete(&format!("{}.{AGENTS}", self.own.id)).await;
    }

    async fn delete(&self, name: &str) {
        let path = Path::from(format!("{FOLDER}/{name}"));
        match self.root.objects().delete(&path).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
            Err(error) => tracing::warn!(%error, %path, "cannot remove what says that a server is alive"),
        }
    }
}

fn seen(object: &ObjectMeta) -> Seen {
    (object.last_modified, object.e_tag.clone(), object.size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::root::open::open_as;

    #[tokio::test]
    async fn servers_know_of_each_other_and_of_who_left() {
        let dir = tempfile::tempdir().unwrap();
        let root = open_as(dir.path(), true).unwrap();
        let _lock = root.join().unwrap();
        let addresses = |id: &str| ["7373", "7474"].map(|port| format!("{id}:{port}"));
        let member = |id: &str| Heartbeats::new(root.clone(), id.to_owned(), addresses(id));
        let (one, other) = (member("a"), member("b"));
        one.begin().await.unwrap();
        assert_eq!(one.alive(), 1);
        other.begin().await.unwrap();
        one.look().await.unwrap();
        assert_eq!((one.alive(), other.alive()), (2, 2));
        let list = one.list();
        let own: Vec<(&str, bool)> = list.iter().map(|member| (&*member.address, member.is_own)).collect();
        assert!(
            own.contains(&("a:7373", true)) && own.contains(&("b:7373", false)),
            "{own:?}"
        );
        assert_eq!((one.id(), &*list[1].exchange), ("a", "b:7474"));
        assert!(one.store_time().is_some());
        other.beat().await.unwrap();
        one.look().await.unwrap();
        assert!(one.list().iter().all(|member| member.is_alive));
        other.end().await;
        one.look().await.unwrap();
        assert_eq!((one.alive(), one.list().len()), (1, 1));
        // What is a day old by the store's clock goes; a clock of ours has no part in it.
        let left = dir.path().join("servers/c.json");
        std::fs::write(&left, b"{}").unwrap();
        let old = std::time::SystemTime::now() - LEFT_BEHIND - Duration::from_secs(60);
        std::fs::File::options()
            .write(true)
            .open(&left)
            .unwrap()
            .set_modified(old)
            .unwrap();
        one.look().await.unwrap();
        one.forget_dead().await;
        assert!(!left.exists() && dir.path().join("servers/a.json").exists());
    }
}
