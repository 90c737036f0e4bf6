//! Pages of objects that never change, kept in bounded memory.
//!
//! A page is fetched once, whoever wants it at the same time: the others wait for it. Nobody waits for another's page
//! while his own are not fetched, so nobody waits in a circle.

use crate::lock::lock_mutex;
use crate::store::root::error::RootError;
use crate::store::root::traffic::Traffic;
use bytes::Bytes;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Bytes of a page, but for the last one of an object.
pub(super) const PAGE_BYTES: u64 = 1 << 20;

/// Pages that one request fetches.
pub(super) const MOST_AT_ONCE: u64 = 8;

/// Memory that is taken where nobody said how much.
const USUAL_BYTES: usize = 32 << 20;

type Key = (Arc<str>, u64);

/// See the module.
#[derive(Debug)]
pub(super) struct Pages {
    kept: Mutex<Kept>,
    /// Tells that pages that were on their way have come, or will not.
    arrived: Condvar,
    limit_bytes: AtomicUsize,
    traffic: Arc<Traffic>,
}

/// Two generations: what was not used while the young one filled up goes.
#[derive(Debug, Default)]
struct Kept {
    young: HashMap<Key, Bytes>,
    young_bytes: usize,
    old: HashMap<Key, Bytes>,
    old_bytes: usize,
    on_the_way: HashSet<Key>,
}

impl Kept {
    fn get(&mut self, key: &Key, limit_bytes: usize) -> Option<Bytes> {
        if let Some(page) = self.young.get(key) {
            return Some(page.clone());
        }
        let page = self.old.remove(key)?;
        self.old_bytes -= page.len();
        self.keep(key.clone(), page.clone(), limit_bytes);
        Some(page)
    }

    fn keep(&mut self, key: Key, page: Bytes, limit_bytes: usize) {
        if page.len() > limit_bytes / 2 {
            return;
        }
        if self.young_bytes + page.len() > limit_bytes / 2 {
            self.old = std::mem::take(&mut self.young);
            self.old_bytes = std::mem::take(&mut self.young_bytes);
        }
        self.young_bytes += page.len();
        if let Some(before) = self.young.insert(key, page) {
            self.young_bytes -= before.len();
        }
    }
}

/// Pages that this thread fetches. Whatever comes of it, nobody waits for them afterwards.
struct Claim<'p> {
    pages: &'p Pages,
    keys: Vec<Key>,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let mut kept = lock_mutex(&self.pages.kept);
        for key in &self.keys {
            kept.on_the_way.remove(key);
        }
        drop(kept);
        self.pages.arrived.notify_all();
    }
}

impl Pages {
    pub(super) fn new(traffic: Arc<Traffic>) -> Self {
        Self {
            kept: Mutex::default(),
            arrived: Condvar::new(),
            limit_bytes: AtomicUsize::new(USUAL_BYTES),
            traffic,
        }
    }

    /// From now on no more than so many bytes are kept.
    pub(super) fn limit(&self, bytes: usize) {
        self.limit_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Whether a page is kept, or on its way.
    pub(super) fn has(&self, path: &Arc<str>, page: u64) -> bool {
        let (key, kept) = ((path.clone(), page), lock_mutex(&self.kept));
        kept.young.contains_key(&key) || kept.old.contains_key(&key) || kept.on_the_way.contains(&key)
    }

    /// These pages of an object. `fetch` gives the bytes of stretches of pages, fewer only where the object ends; it
    /// waits.
    pub(super) fn get(
        &self,
        path: &Arc<str>,
        wanted: &BTreeSet<u64>,
        fetch: impl Fn(&[RangeInclusive<u64>]) -> Result<Vec<Bytes>, RootError>,
    ) -> Result<HashMap<u64, Bytes>, RootError> {
        let mut got = HashMap::with_capacity(wanted.len());
        let limit_bytes = self.limit_bytes.load(Ordering::Relaxed);
        let mut kept = lock_mutex(&self.kept);
        loop {
            let (mut missing, mut comes) = (Vec::new(), false);
            for page in wanted {
                if got.contains_key(page) {
                    continue;
                }
                let key = (path.clone(), *page);
                if let Some(bytes) = kept.get(&key, limit_bytes) {
                    self.traffic.page_hits.fetch_add(1, Ordering::Relaxed);
                    got.insert(*page, bytes);
                } else if kept.on_the_way.contains(&key) {
                    comes = true;
                } else {
                    missing.push(*page);
                }
            }
            if missing.is_empty() {
                if !comes {
                    return Ok(got);
                }
                kept = self.arrived.wait(kept).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let keys: Vec<Key> = missing.iter().map(|page| (path.clone(), *page)).collect();
            kept.on_the_way.extend(keys.iter().cloned());
            drop(kept);
            let claim = Claim { pages: self, keys };
            let stretches = stretches(&missing);
            let fetched = fetch(&stretches)?;
            kept = lock_mutex(&self.kept);
            for (stretch, bytes) in stretches.iter().zip(fetched) {
                for page in stretch.clone() {
                    let page_bytes = piece(&bytes, page - stretch.start());
                    kept.keep((path.clone(), page), page_bytes.clone(), limit_bytes);
                    got.insert(page, page_bytes);
                }
            }
            let bytes = (kept.young_bytes + kept.old_bytes) as u64;
            self.traffic.page_bytes.store(bytes, Ordering::Relaxed);
            self.traffic
                .page_misses
                .fetch_add(missing.len() as u64, Ordering::Relaxed);
            drop(kept);
            drop(claim);
            kept = lock_mutex(&self.kept);
        }
    }
}

/// A page of a stretch, in memory of its own: a part of the stretch would keep all of it.
fn piece(bytes: &Bytes, page: u64) -> Bytes {
    let length = bytes.len() as u64;
    let (from, to) = ((page * PAGE_BYTES).min(length), ((page + 1) * PAGE_BYTES).min(length));
    Bytes::copy_from_slice(&bytes[from as usize..to as usize])
}

/// Pages that follow each other, no more together than one request may fetch.
fn stretches(pages: &[u64]) -> Vec<RangeInclusive<u64>> {
    let mut stretches: Vec<RangeInclusive<u64>> = Vec::new();
    for page in pages {
        match stretches.last_mut() {
            Some(last) if last.end() + 1 == *page && page - last.start() < MOST_AT_ONCE => {
                *last = *last.start()..=*page;
            }
            _ => stretches.push(*page..=*page),
        }
    }
    stretches
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::sync::atomic::AtomicU64;

    /// Of an object of so many bytes, each of which is its page's number.
    fn fetch(length: u64, stretches: &[RangeInclusive<u64>]) -> Vec<Bytes> {
        let bytes = |stretch: &RangeInclusive<u64>| {
            let (from, to) = (stretch.start() * PAGE_BYTES, (stretch.end() + 1) * PAGE_BYTES);
            (from..to.min(length)).map(|at| (at / PAGE_BYTES) as u8).collect()
        };
        stretches.iter().map(bytes).collect()
    }

    #[test]
    fn pages_that_follow_each_other_are_fetched_together_and_none_twice() {
        let (pages, path) = (Pages::new(Arc::default()), Arc::from("a"));
        let asked = Mutex::new(Vec::new());
        let get = |wanted: &[u64]| {
            let got = pages.get(&path, &wanted.iter().copied().collect(), |stretches| {
                asked.lock().unwrap().extend(stretches.to_vec());
                Ok(fetch(3 * PAGE_BYTES + 5, stretches))
            });
            got.unwrap()
        };
        let got = get(&[0, 1, 3]);
        assert_eq!((got[&0].len() as u64, got[&1][0], got[&3].len()), (PAGE_BYTES, 1, 5));
        assert_eq!(get(&[1, 2, 3])[&2][7], 2);
        assert_eq!(*asked.lock().unwrap(), [0..=1, 3..=3, 2..=2]);
        let counts = [&pages.traffic.page_hits, &pages.traffic.page_misses].map(|count| count.load(Ordering::Relaxed));
        assert_eq!(counts, [2, 4]);
        assert_eq!(stretches(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]), [0..=7, 8..=9]);
    }

    #[test]
    fn what_is_kept_has_a_limit() {
        let (pages, path) = (Pages::new(Arc::default()), Arc::from("a"));
        pages.limit(4 * PAGE_BYTES as usize);
        for page in 0..40 {
            let wanted = BTreeSet::from([page, 0]);
            pages
                .get(&path, &wanted, |stretches| Ok(fetch(u64::MAX, stretches)))
                .unwrap();
            assert!(pages.traffic.page_bytes.load(Ordering::Relaxed) <= 4 * PAGE_BYTES);
        }
        assert!(pages.has(&path, 0) && pages.has(&path, 39), "what is used stays");
        assert!(!pages.has(&path, 20));
    }

    #[test]
    fn a_page_is_fetched_once_for_all_who_want_it_and_again_after_an_error() {
        let (pages, path) = (Pages::new(Arc::default()), Arc::from("a"));
        let failed = pages.get(&path, &BTreeSet::from([0]), |_| Err(RootError::new("a", "no answer")));
        assert!(failed.is_err() && !pages.has(&path, 0));
        let (fetched, together) = (AtomicU64::new(0), Barrier::new(8));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    together.wait();
                    let got = pages.get(&path, &BTreeSet::from([0, 1]), |stretches| {
                        fetched.fetch_add(1, Ordering::Relaxed);
                        Ok(fetch(2 * PAGE_BYTES, stretches))
                    });
                    assert_eq!(got.unwrap()[&1][0], 1);
                });
            }
        });
        assert_eq!(fetched.load(Ordering::Relaxed), 1);
    }
}
