//! What is kept beside samples: markers of moments, addresses with names, bursts, and what was taken of quotas. Each
//! kind is a small object in the data root, which is read at the start and replaced, durably, with each change.
//!
//! In: notes to keep. Out: the notes there are. Knows nothing of tables.

mod bursts;
mod markers;
mod quotas;
mod views;

use crate::lock::lock_mutex;
use crate::store::root::contract::Root;
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
    /// Held by the one change that is under way.
    changing: Arc<tokio::sync::Mutex<()>>,
}

impl<T: Clone + Serialize + DeserializeOwned + Send + Sync + 'static> Notebook<T> {
    /// Reads what is kept. What is corrupt is set aside, and said in the log: samples do not depend on it.
    pub(crate) async fn open(root: &Arc<dyn Root>, name: &str) -> Result<Self, RootError> {
        let path = format!("{FOLDER}/{name}.json");
        let (of, object) = (root.clone(), path.clone());
        let notes = waiting(move || {
            of.prepare(FOLDER)?;
            read(of.as_ref(), &object)
        })
        .await?;
        Ok(Notebook {
            root: root.clone(),
            path,
            notes: Arc::new(Mutex::new(Arc::new(notes))),
            changing: Arc::default(),
        })
    }

    /// As they are now.
    pub(crate) fn all(&self) -> Arc<BTreeMap<String, T>> {
        lock_mutex(&self.notes).clone()
    }

    /// Changes what is kept: once it is durable it is seen. What `change` returns is the answer.
    pub(crate) async fn change<A: Send + 'static>(
        &self,
        change: impl FnOnce(&mut BTreeMap<String, T>) -> Result<A, Refused> + Send + 'static,
    ) -> Result<A, Refused> {
        let (root, path) = (self.root.clone(), self.path.clone());
        let (notes, changing) = (self.notes.clone(), self.changing.clone());
        // To its end, whoever leaves meanwhile: what is on the disk is what is seen.
        let done = tokio::spawn(async move {
            let _one = changing.lock().await;
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
