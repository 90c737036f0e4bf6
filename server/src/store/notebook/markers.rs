//! Markers: what happened at a moment, as whoever made it happen says.

use crate::store::notebook::{Notebook, Refused};
use crate::store::root::contract::Root;
use crate::store::root::error::RootError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Most markers; beyond them the oldest go, and whoever sent the newest is told.
pub(crate) const MOST_MARKERS: usize = 10_000;

/// Most bytes of all markers together; beyond them the oldest go as well.
pub(crate) const MOST_MARKERS_BYTES: usize = 16 << 20;

/// Bytes of a marker beside its texts.
const MARKER_BYTES: usize = 128;

/// One marker. Its name in the notebook is its id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Marker {
    pub(crate) time_ms: i64,
    pub(crate) title: String,
    #[serde(default)]
    pub(crate) text: String,
    #[serde(default)]
    pub(crate) labels: BTreeMap<String, String>,
}

impl Marker {
    fn bytes(&self, id: &str) -> usize {
        let labels = self.labels.iter().map(|(name, value)| name.len() + value.len());
        MARKER_BYTES + id.len() + self.title.len() + self.text.len() + labels.sum::<usize>()
    }
}

/// What became of a marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Put {
    /// It is new, or another one of its id was; so many older ones went for it.
    Stored { removed: usize },
    /// The very same was there.
    Known,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Markers(Notebook<Marker>);

impl Markers {
    pub(crate) async fn open(root: &Arc<dyn Root>) -> Result<Self, RootError> {
        Notebook::open(root, "markers").await.map(Markers)
    }

    /// See [`Notebook::refresh`].
    pub(crate) async fn refresh(&self) -> Result<(), RootError> {
        self.0.refresh().await
    }

    /// Keeps a marker, in place of one of the same id. What is older than `cutoff_ms` goes.
    pub(crate) async fn put(&self, id: String, marker: Marker, cutoff_ms: i64) -> Result<Put, Refused> {
        if self.0.all().get(&id) == Some(&marker) {
            return Ok(Put::Known);
        }
        let change = move |all: &mut BTreeMap<String, Marker>| {
            all.insert(id.clone(), marker.clone());
            Ok(Put::Stored {
                removed: bound(all, cutoff_ms),
            })
        };
        self.0.change(change).await
    }

    /// Those of `[from_ms, until_ms)` that are wanted, in the order of time.
    pub(crate) fn within(
        &self,
        (from_ms, until_ms): (i64, i64),
        is_wanted: impl Fn(&Marker) -> bool,
    ) -> Vec<(String, Marker)> {
        let all = self.0.all();
        let here = all
            .iter()
            .filter(|(_, marker)| (from_ms..until_ms).contains(&marker.time_ms) && is_wanted(marker));
        let mut found: Vec<(String, Marker)> = here.map(|(id, marker)| (id.clone(), marker.clone())).collect();
        found.sort_by(|(a_id, a), (b_id, b)| (a.time_ms, a_id).cmp(&(b.time_ms, b_id)));
        found
    }
}

/// Removes what is too old, and the oldest of what is too much; returns how many went for want of room.
fn bound(all: &mut BTreeMap<String, Marker>, cutoff_ms: i64) -> usize {
    all.retain(|_, marker| marker.time_ms >= cutoff_ms);
    let mut bytes: usize = all.iter().map(|(id, marker)| marker.bytes(id)).sum();
    if all.len() <= MOST_MARKERS && bytes <= MOST_MARKERS_BYTES {
        return 0;
    }
    let mut by_age: Vec<(i64, String)> = all.iter().map(|(id, marker)| (marker.time_ms, id.clone())).collect();
    by_age.sort_unstable();
    let before = all.len();
    for (_, id) in by_age {
        if all.len() <= MOST_MARKERS && bytes <= MOST_MARKERS_BYTES {
            break;
        }
        if let Some(marker) = all.remove(&id) {
            bytes -= marker.bytes(&id);
        }
    }
    before - all.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::root::open::open;

    fn marker(time_ms: i64, title: &str) -> Marker {
        Marker {
            time_ms,
            title: title.to_owned(),
            text: String::new(),
            labels: BTreeMap::new(),
        }
    }

    #[tokio::test]
    async fn the_same_marker_twice_is_one_and_another_of_its_id_takes_its_place() {
        let dir = tempfile::tempdir().unwrap();
        let root = open(dir.path()).unwrap();
        // Whoever writes has it locked, which makes room for what is begun.
        let _lock = root.lock().unwrap();
        let markers = Markers::open(&root).await.unwrap();
        let stored = Put::Stored { removed: 0 };
        let put = |id: &str, time_ms, title: &str| markers.put(id.to_owned(), marker(time_ms, title), 5);
        assert_eq!(put("a", 10, "one").await.unwrap(), stored);
        assert_eq!(put("a", 10, "one").await.unwrap(), Put::Known);
        assert_eq!(put("a", 20, "two").await.unwrap(), stored);
        assert_eq!(put("b", 15, "three").await.unwrap(), stored);
        let titles = |of: &Markers, window| -> Vec<String> {
            let found = of.within(window, |_| true);
            found.into_iter().map(|(_, marker)| marker.title).collect()
        };
        assert_eq!(titles(&markers, (0, 100)), ["three", "two"]);
        assert_eq!(titles(&markers, (15, 20)), ["three"], "the end is not part of a window");
        // After a restart, and when they have become too old.
        let again = Markers::open(&root).await.unwrap();
        assert_eq!(titles(&again, (0, 100)), ["three", "two"]);
        again.put("c".to_owned(), marker(40, "four"), 18).await.unwrap();
        assert_eq!(titles(&again, (0, 100)), ["two", "four"]);
    }

    #[test]
    fn beyond_the_bounds_the_oldest_go() {
        let named = |at: usize| format!("{at:05}");
        let mut all: BTreeMap<String, Marker> = (0..MOST_MARKERS + 3)
            .map(|at| (named(at), marker(at as i64, "x")))
            .collect();
        assert_eq!(bound(&mut all, 0), 3);
        assert_eq!(all.len(), MOST_MARKERS);
        assert!(!all.contains_key(&named(2)) && all.contains_key(&named(3)));
        let large = |at: usize| Marker {
            text: "x".repeat(4_096),
            ..marker(at as i64, "x")
        };
        let mut all: BTreeMap<String, Marker> = (0..9_000).map(|at| (named(at), large(at))).collect();
        let removed = bound(&mut all, 0);
        let bytes: usize = all.iter().map(|(id, marker)| marker.bytes(id)).sum();
        assert!(removed > 0 && bytes <= MOST_MARKERS_BYTES && bytes > MOST_MARKERS_BYTES - 10_000);
        assert!(all.contains_key(&named(8_999)));
    }
}
