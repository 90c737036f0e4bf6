//! Samples and profiles that are left out, counted by reason, and said in words.

use crate::ingest::error::IngestError;
use crate::ingest::rows::values::{Bad, MOST_VALUE};
use crate::ingest::rows::window::TimeWindow;
use crate::ingest::wire::allocation::AllocationBudget;
use crate::ingest::wire::message::{Layout, Profile};

/// What is left out of a request, and why.
#[derive(Debug, Clone, Default)]
pub(super) struct Rejected {
    pub(super) future: u64,
    pub(super) past: u64,
    negative: u64,
    /// Of profiles that are left out whole.
    of_broken: u64,
    large: u64,
    pub(super) profiles: i64,
    broken: u64,
    /// The first.
    pub(super) fault: Option<IngestError>,
}

impl Rejected {
    pub(super) fn samples(&self) -> u64 {
        self.future + self.past + self.negative + self.large + self.of_broken
    }

    /// A whole profile.
    pub(super) fn leave_out(
        &mut self,
        profile: &Profile<'_>,
        layout: Layout,
        budget: AllocationBudget,
        fault: &IngestError,
    ) {
        // What can be read of it is counted as its rows would be.
        let _ = profile.each_sample(layout, budget, |sample| {
            self.of_broken += sample.times.len().max(1) as u64;
            Ok(())
        });
        self.profiles += 1;
        self.broken += 1;
        self.fault.get_or_insert_with(|| fault.clone());
    }

    pub(super) fn count(&mut self, bad: Bad) {
        *match bad {
            Bad::Negative => &mut self.negative,
            Bad::Large => &mut self.large,
            Bad::Future => &mut self.future,
            Bad::Past => &mut self.past,
        } += 1;
    }

    pub(super) fn message(&self, window: TimeWindow) -> String {
        let time = |ns| chrono::DateTime::from_timestamp_nanos(ns).to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
        let mut reasons = Vec::new();
        if self.future > 0 {
            reasons.push(format!(
                "{} samples are later than {}, a day from now",
                self.future,
                time(window.latest_ns)
            ));
        }
        if self.past > 0 {
            let earliest = time(window.earliest_ns);
            reasons.push(format!(
                "{} samples are older than the retention, which begins at {earliest}",
                self.past
            ));
        }
        if self.negative > 0 {
            reasons.push(format!("{} samples have a negative value", self.negative));
        }
        if self.large > 0 {
            reasons.push(format!("{} samples have a value above {MOST_VALUE}", self.large));
        }
        if let Some(fault) = &self.fault {
            let (profiles, samples) = (self.broken, self.of_broken);
            reasons.push(format!(
                "{profiles} profiles with {samples} samples, of the first: {fault}"
            ));
        }
        if reasons.is_empty() {
            String::new()
        } else {
            format!("left out: {}", reasons.join("; "))
        }
    }
}
