//! Addresses of the page with names. What an address means is the page's own.

use crate::store::notebook::{Notebook, Refused};
use crate::store::root::contract::Root;
use crate::store::root::error::RootError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// Most views.
pub(crate) const MOST_VIEWS: usize = 1_000;

/// One view. Its name in the notebook is its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct View {
    /// A path with its query.
    pub(crate) address: String,
    pub(crate) changed_ms: i64,
    /// How often it was changed before.
    pub(crate) changes: u64,
}

impl View {
    /// Another one with each change.
    pub(crate) fn tag(&self) -> String {
        let of = format!("{}\0{}\0{}", self.changes, self.changed_ms, self.address);
        format!("\"{:016x}\"", xxh3_64(of.as_bytes()))
    }
}

/// What the asker takes to be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Expected {
    /// No view of this name.
    None,
    /// One that has one of these tags.
    Tags(String),
    /// Any.
    Any,
}

impl Expected {
    fn is(&self, view: Option<&View>) -> bool {
        match (self, view) {
            (Expected::None, view) => view.is_none(),
            (Expected::Any, view) => view.is_some(),
            (Expected::Tags(tags), Some(view)) => {
                let own = view.tag();
                // An answer that was packed has the tag of what is packed so.
                let plain = |tag: &str| tag.trim().replace("-gzip\"", "\"").replace("-zstd\"", "\"");
                tags.split(',').any(|tag| plain(tag) == own)
            }
            (Expected::Tags(_), None) => false,
        }
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Views(Notebook<View>);

impl Views {
    pub(crate) async fn open(root: &Arc<dyn Root>) -> Result<Self, RootError> {
        Notebook::open(root, "views").await.map(Views)
    }

    /// See [`Notebook::refresh`].
    pub(crate) async fn refresh(&self) -> Result<(), RootError> {
        self.0.refresh().await
    }

    pub(crate) fn all(&self) -> Arc<BTreeMap<String, View>> {
        self.0.all()
    }

    /// Keeps an address, if what is there is what the asker expects; whether it is new.
    pub(crate) async fn put(
        &self,
        name: String,
        address: String,
        expected: Expected,
        now_ms: i64,
    ) -> Result<(View, bool), Refused> {
        let change = move |all: &mut BTreeMap<String, View>| {
            let before = all.get(&name);
            if !expected.is(before) {
                return Err(Refused::Changed);
            }
            let is_new = before.is_none();
            if is_new && all.len() >= MOST_VIEWS {
                return Err(Refused::Limit(format!(
                    "there are {MOST_VIEWS} views, the most that are kept"
                )));
            }
            let view = View {
                address: address.clone(),
                changed_ms: now_ms,
                changes: before.map_or(0, |view| view.changes + 1),
            };
            all.insert(name.clone(), view.clone());
            Ok((view, is_new))
        };
        self.0.change(change).await
    }

    /// Forgets a view, if it is what the asker expects.
    pub(crate) async fn remove(&self, name: String, expected: Expected) -> Result<(), Refused> {
        let change = move |all: &mut BTreeMap<String, View>| match all.get(&name) {
            None => Err(Refused::Absent),
            Some(view) if !expected.is(Some(view)) => Err(Refused::Changed),
            Some(_) => {
                all.remove(&name);
                Ok(())
            }
        };
        self.0.change(change).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::root::open::open;

    #[tokio::test]
    async fn of_two_who_change_a_view_at_once_one_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let root = open(dir.path()).unwrap();
        // Whoever writes has it locked, which makes room for what is begun.
        let _lock = root.lock().unwrap();
        let views = Views::open(&root).await.unwrap();
        let put = |address: &str, expected| views.put("walks".to_owned(), address.to_owned(), expected, 5);
        let (first, is_new) = put("/explore?a", Expected::None).await.unwrap();
        assert!(is_new);
        assert!(matches!(put("/explore?b", Expected::None).await, Err(Refused::Changed)));
        let packed = first.tag().replace('"', "");
        let both = [
            Expected::Tags(first.tag()),
            Expected::Tags(format!("\"{packed}-gzip\"")),
        ];
        let [one, other] = both.map(|expected| put("/explore?b", expected));
        let (one, other) = tokio::join!(one, other);
        assert_eq!([&one, &other].iter().filter(|done| done.is_ok()).count(), 1);
        let again = Views::open(&root).await.unwrap();
        assert_eq!(again.all()["walks"].address, "/explore?b");
        assert_eq!(again.all()["walks"].changes, 1);
        let stale = again.remove("walks".to_owned(), Expected::Tags(first.tag()));
        assert!(matches!(stale.await, Err(Refused::Changed)));
        again.remove("walks".to_owned(), Expected::Any).await.unwrap();
        assert!(matches!(
            again.remove("walks".to_owned(), Expected::Any).await,
            Err(Refused::Absent)
        ));
    }

    #[tokio::test]
    async fn views_are_so_many_and_no_more() {
        let dir = tempfile::tempdir().unwrap();
        let root = open(dir.path()).unwrap();
        // Whoever writes has it locked, which makes room for what is begun.
        let _lock = root.lock().unwrap();
        let views = Views::open(&root).await.unwrap();
        let view = View {
            address: "/".to_owned(),
            changed_ms: 0,
            changes: 0,
        };
        let fill = move |all: &mut BTreeMap<String, View>| {
            all.extend((0..MOST_VIEWS).map(|at| (at.to_string(), view.clone())));
            Ok(())
        };
        views.0.change(fill).await.unwrap();
        let put = |name: &str| views.put(name.to_owned(), "/b".to_owned(), Expected::None, 0);
        assert!(matches!(put("one more").await, Err(Refused::Limit(_))));
        views.remove("7".to_owned(), Expected::Any).await.unwrap();
        put("one more").await.unwrap();
    }
}
