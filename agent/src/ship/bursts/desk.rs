//! What lies between the task that asks the server and the thread that samples.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::wire::{BurstOrder, BurstReport, BurstState};

/// Orders that may wait; the server has one at a time for an agent.
const MAX_ORDERS: usize = 4;
/// Ends that the server has not heard of; beyond them the oldest are forgotten.
const MAX_REPORTS: usize = 64;

#[derive(Default)]
struct Inner {
    orders: VecDeque<BurstOrder>,
    /// Those that are to be ended, with why.
    ends: BTreeMap<String, String>,
    /// Oldest first.
    reports: VecDeque<BurstReport>,
    waker: Option<Box<dyn Fn() + Send>>,
}

/// See the module.
#[derive(Default)]
pub struct BurstDesk {
    inner: Mutex<Inner>,
    /// There is something to tell the server.
    news: Notify,
}

impl std::fmt::Debug for BurstDesk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BurstDesk(…)")
    }
}

impl BurstDesk {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Called with each order and each end, so that the thread that samples looks at once.
    pub fn set_waker(&self, waker: impl Fn() + Send + 'static) {
        self.lock().waker = Some(Box::new(waker));
    }

    /// Asks for a burst, unless it was asked for before.
    pub fn order(&self, order: BurstOrder) {
        let mut inner = self.lock();
        let is_known = inner.orders.iter().any(|known| known.id == order.id)
            || inner.reports.iter().any(|report| report.id == order.id);
        if is_known || inner.orders.len() >= MAX_ORDERS {
            return;
        }
        inner.orders.push_back(order);
        inner.wake();
    }

    /// Asks for the end of one; `reason` says why.
    pub fn end(&self, id: &str, reason: &str) {
        let mut inner = self.lock();
        if let Some(place) = inner.orders.iter().position(|order| order.id == id) {
            inner.orders.remove(place);
            return;
        }
        if inner.is_running(id) {
            inner.ends.insert(id.to_owned(), reason.to_owned());
            inner.wake();
        }
    }

    /// The same of all, for who cannot ask the server any more.
    pub fn end_all(&self, reason: &str) {
        let running: Vec<String> = self.running().collect();
        running.iter().for_each(|id| self.end(id, reason));
    }

    /// The next that was asked for.
    pub fn take_order(&self) -> Option<BurstOrder> {
        self.lock().orders.pop_front()
    }

    /// Why a burst is to be ended now, if it is.
    pub fn take_end(&self, id: &str) -> Option<String> {
        self.lock().ends.remove(id)
    }

    /// What is to be told of a burst, in place of what was.
    pub fn report(&self, report: BurstReport) {
        let mut inner = self.lock();
        inner.reports.retain(|known| known.id != report.id);
        if report.state != BurstState::Running {
            inner.ends.remove(&report.id);
        }
        if inner.reports.len() >= MAX_REPORTS {
            inner.reports.pop_front();
        }
        inner.reports.push_back(report);
        drop(inner);
        self.news.notify_one();
    }

    /// All that is to be told.
    pub fn reports(&self) -> Vec<BurstReport> {
        self.lock().reports.iter().cloned().collect()
    }

    fn running(&self) -> impl Iterator<Item = String> {
        let running = self.reports().into_iter();
        running
            .filter(|report| report.state == BurstState::Running)
            .map(|report| report.id)
    }

    pub(super) fn is_running(&self) -> bool {
        self.running().next().is_some()
    }

    /// The server has kept the end of this one.
    pub(super) fn told(&self, id: &str) {
        self.lock()
            .reports
            .retain(|report| report.id != id || report.state == BurstState::Running);
    }

    /// Until there is something new to tell.
    pub(super) async fn news(&self) {
        self.news.notified().await;
    }
}

impl Inner {
    fn is_running(&self, id: &str) -> bool {
        let mut reports = self.reports.iter();
        reports.any(|report| report.id == id && report.state == BurstState::Running)
    }

    fn wake(&self) {
        if let Some(waker) = &self.waker {
            waker();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(id: &str) -> BurstOrder {
        BurstOrder {
            id: id.into(),
            cpus: String::new(),
            service: String::new(),
            process: String::new(),
            conditions: Vec::new(),
            frequency_hz: 999,
            seconds: 1,
        }
    }

    fn report(id: &str, state: BurstState) -> BurstReport {
        BurstReport {
            id: id.into(),
            state,
            from_ms: 1,
            until_ms: 2,
            cpus: "0".into(),
            frequency_hz: 999,
            samples: 0,
            cpu_seconds: 0.0,
            reason: String::new(),
        }
    }

    #[test]
    fn an_order_is_taken_once_however_often_it_comes() {
        let desk = BurstDesk::default();
        desk.order(order("a"));
        desk.order(order("a"));
        assert_eq!(desk.take_order(), Some(order("a")));
        assert_eq!(desk.take_order(), None);
        desk.report(report("a", BurstState::Running));
        desk.order(order("a"));
        assert_eq!(desk.take_order(), None);
        desk.told("a");
        assert!(desk.is_running(), "it runs on, whatever the server has kept");
        desk.end("a", "so");
        assert_eq!(desk.take_end("a").as_deref(), Some("so"));
        desk.report(report("a", BurstState::Cancelled));
        assert_eq!(desk.reports().len(), 1);
        desk.told("a");
        assert_eq!(desk.reports().len(), 0);
    }

    #[test]
    fn what_waits_is_bounded_and_what_has_not_begun_is_only_forgotten() {
        let desk = BurstDesk::default();
        for id in 0..10 {
            desk.order(order(&id.to_string()));
        }
        desk.end("1", "so");
        let taken: Vec<String> = std::iter::from_fn(|| desk.take_order()).map(|order| order.id).collect();
        assert_eq!(taken, ["0", "2", "3"]);
        for id in 0..100 {
            desk.report(report(&id.to_string(), BurstState::Ended));
        }
        assert_eq!(desk.reports().len(), MAX_REPORTS);
        assert_eq!(desk.reports()[0].id, "36");
    }
}
