//! What is kept beside samples: markers of moments, addresses with names, bursts, and what was taken of quotas. Each
//! kind is a small object in the data root, which is read at the start and replaced, durably, with each change.
//!
//! In: notes to keep. Out: the notes there are. Knows nothing of tables.

mod bursts;
mod markers;
mod quotas;
mod views;

use crate::lock::lock_mutex;
use crate::store::root::backoff::Backoff;
use crate::store::root::contract::{Root, Stamp};
use crate::store::root::error::RootError;
use crate::store::root::waiting::waiting;
pub(crate) use bursts::{Burst, BurstCondition, BurstReport, BurstState, Bursts};
#[cfg(test)]
pub(crate) use bursts::{MOST_BURSTS, TAKEN_WITHIN_SECONDS, TOLD_WITHIN_SECONDS};
use bytes::Bytes;
#[cfg(test)]
pub(crate) use markers::{MOST_MARKERS, MOST_MARKERS_BYTES};
pub(crate) use markers::{Marker, Markers, Put};
pub(crate) use quotas::Quotas;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
#[cfg(test)]
pub(crate) use views::MOST_VIEWS;
pub(crate) use views::{Expected, View, Views};

/// The folder of all kinds.
const FOLDER: &str = "notes";

/// What is corrupt goes there, until somebody deletes it.
const ASIDE: &str = "damaged";

/// A larger object is none of the server's.
const MOST_BYTES: u64 = 64 << 20;

/// How often a change is tried that another server's was before.
const MOST_TRIES: u32 = 20;

/// Why a note was not kept.
#[derive(Debug)]
pub(crate) enum Refused {
    /// It is beyond a limit, which is said.
    Limit(String),
    /// It is not as the asker has it: somebody else changed it meanwhile.
    Changed,
    /// There is none.
    Absent,
    /// It could not be written.
    Failed(RootError),
}

/// All notes of one kind by their names.
#[derive(Debug)]
pub(crate) struct Notebook<T> {
    root: Arc<dyn Root>,
    path: String,
    notes: Arc<Mutex<Arc<BTreeMap<String, T>>>>,
    /// Of the object that they were read of, or of none that there is any more.
    stamp: Arc<Mutex<Stamp>>,
    /// Held by the one change that is under way.
    changing: Arc<tokio::sync::Mutex<()>>,
}

impl<T: Clone + Serialize + DeserializeOwned + Send + Sync + 'static> Notebook<T> {
    /// Reads what is kept. What is corrupt is set aside, and said in the log: samples do not depend on it.
    pub(crate) async fn open(root: &Arc<dyn Root>, name: &str) -> Result<Self, RootError> {
        let path = format!("{FOLDER}/{name}.json");
        let (of, object) = (root.clone(), path.clone());
        let (stamp, notes) = waiting(move || {
            of.prepare(FOLDER)?;
            stamped(of.as_ref(), &object)
        })
        .await?;
        Ok(Notebook {
            root: root.clone(),
            path,
            notes: Arc::new(Mutex::new(Arc::new(notes))),
            stamp: Arc::new(Mutex::new(stamp)),
            changing: Arc::default(),
        })
    }

    /// As they are now.
    pub(crate) fn all(&self) -> Arc<BTreeMap<String, T>> {
        lock_mutex(&self.notes).clone()
    }

    /// Takes in what another server has changed since, where several write.
    pub(crate) async fn refresh(&self) -> Result<(), RootError> {
        if !self.root.is_shared() {
            return Ok(());
        }
        let _one = self.changing.lock().await;
        let known = lock_mutex(&self.stamp).clone();
        let (root, path) = (self.root.clone(), self.path.clone());
        let news = waiting(move || match stamp(root.as_ref(), &path)? {
            found if found == known => Ok(None),
            _ => stamped(root.as_ref(), &path).map(Some),
        });
        if let Some((stamp, notes)) = news.await? {
            *lock_mutex(&self.notes) = Arc::new(notes);
            *lock_mutex(&self.stamp) = stamp;
        }
        Ok(())
    }

    /// Changes what is kept: once it is durable it is seen. What `change` returns is the answer. Where several servers
    /// write it is done anew on what another has made of it meanwhile.
    pub(crate) async fn change<A: Send + 'static>(
        &self,
        change: impl Fn(&mut BTreeMap<String, T>) -> Result<A, Refused> + Send + Sync + 'static,
    ) -> Result<A, Refused> {
        let (root, path) = (self.root.clone(), self.path.clone());
        let (notes, changing) = (self.notes.clone(), self.changing.clone());
        // To its end, whoever leaves meanwhile: what is on the disk is what is seen.
        let done = tokio::spawn(async move {
            let _one = changing.lock().await;
            if root.is_shared() {
                let (answer, after) = change_shared(&root, &path, &change).await?;
                *lock_mutex(&notes) = Arc::new(after);
                return Ok(answer);
            }
            let before = lock_mutex(&notes).clone();
            let mut after = (*before).clone();
            let answer = change(&mut after)?;
            let after = Arc::new(after);
            let written = after.clone();
            let replaced = waiting(move || {
                let text = serde_json::to_vec(&*written).map_err(|error| RootError::new(&path, error))?;
                root.replace(&path, Bytes::from(text))
            });
            replaced.await.map_err(Refused::Failed)?;
            *lock_mutex(&notes) = after;
            Ok(answer)
        });
        done.await
            .unwrap_or_else(|error| Err(Refused::Failed(RootError::new("", error))))
    }
}

/// A change of what other servers change, too.
async fn change_shared<T, A>(
    root: &Arc<dyn Root>,
    path: &str,
    change: &(impl Fn(&mut BTreeMap<String, T>) -> Result<A, Refused> + Send + Sync),
) -> Result<(A, BTreeMap<String, T>), Refused>
where
    T: Serialize + DeserializeOwned + Send + 'static,
{
    let mut backoff = Backoff::default();
    let mut tries = 0;
    loop {
        let (of, object) = (root.clone(), path.to_owned());
        let read = waiting(move || stamped(of.as_ref(), &object)).await;
        let (stamp, mut notes) = read.map_err(Refused::Failed)?;
        let answer = change(&mut notes)?;
        let text = serde_json::to_vec(&notes).map_err(|error| Refused::Failed(RootError::new(path, error)))?;
        let (of, object) = (root.clone(), path.to_owned());
        let replaced = waiting(move || {
            let text = Bytes::from(text);
            let replaced = of.replace_if(&object, &stamp, text.clone());
            // It may be there though the answer says otherwise, or was lost.
            let is_there = || of.reader().whole(&object).is_ok_and(|found| found == text);
            replaced.or_else(|error| if is_there() { Ok(()) } else { Err(error) })
        });
        tries += 1;
        match replaced.await {
            Ok(()) => return Ok((answer, notes)),
            Err(RootError::Exists(_)) if tries < MOST_TRIES => backoff.pause().await,
            Err(error) => return Err(Refused::Failed(error)),
        }
    }
}

/// Of an object, or of none.
fn stamp(root: &dyn Root, path: &str) -> Result<Stamp, RootError> {
    match root.stamp(path) {
        Err(RootError::NotFound(_)) => Ok(Stamp::default()),
        stamp => stamp,
    }
}

/// Notes with a stamp that is no newer than they are: a replacement on its condition loses nothing.
fn stamped<T: DeserializeOwned>(root: &dyn Root, path: &str) -> Result<(Stamp, BTreeMap<String, T>), RootError> {
    let stamp = stamp(root, path)?;
    Ok((stamp, read(root, path)?))
}

fn read<T: DeserializeOwned>(root: &dyn Root, path: &str) -> Result<BTreeMap<String, T>, RootError> {
    let length = match root.stamp(path) {
        Ok(stamp) => stamp.bytes,
        Err(RootError::NotFound(..)) => return Ok(BTreeMap::new()),
        Err(error) => return Err(error),
    };
    let cause = match length {
        length if length > MOST_BYTES => format!("it has {length} bytes"),
        _ => match serde_json::from_slice(&root.reader().whole(path)?) {
            Ok(notes) => return Ok(notes),
            Err(error) => error.to_string(),
        },
    };
    let now = chrono::Utc::now().format("%Y%m%dT%H%M%S%.3fZ");
    let aside = format!("{ASIDE}/{}-{now}", path.replace('/', "-"));
    root.prepare(ASIDE)?;
    root.set_aside(path, &aside)?;
    root.settle(ASIDE)?;
    tracing::error!(
        path,
        cause,
        aside,
        "notes are corrupt: they were set aside, and the server begins without"
    );
    Ok(BTreeMap::new())
}

#[cfg(test)]
#[path = "notebook_tests.rs"]
mod tests;
