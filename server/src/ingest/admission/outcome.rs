//! What a sender is told of a request that was taken in.

use crate::store::{BatchId, StoreError};

/// Bytes of what an answer says was left out, about.
const MOST_MESSAGE: usize = 2_000;

/// What became of a request that was taken in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Samples that were stored now; those of duplicates are not.
    pub samples: i64,
    /// Batches that had been stored, or were pending, before.
    pub duplicates: usize,
    /// Profiles of which samples were left out.
    pub rejected_profiles: i64,
    /// Samples that were left out, in those profiles.
    pub rejected_samples: u64,
    /// Says what was left out and why; empty when nothing was.
    pub message: String,
}

impl Outcome {
    /// A batch whose number was stored with other samples.
    pub(super) fn leave_out(&mut self, samples: i64, id: Option<BatchId>) {
        let (instance, number) = id.map_or_else(Default::default, |id| (id.instance, id.number));
        tracing::warn!(
            instance,
            number,
            samples,
            "left out: the same batch came before with other samples; a collector must not split batches"
        );
        self.rejected_profiles += 1;
        self.rejected_samples += u64::try_from(samples).unwrap_or_default();
        if !self.message.is_empty() {
            self.message.push_str("; ");
        }
        self.message.push_str(&format!(
            "{samples} samples are left out: batch {number} of instance {instance} came before with other samples; a collector \
             on the way must not split batches"
        ));
    }

    /// A batch that will never be taken, among others.
    pub(super) fn refuse(&mut self, samples: i64, why: &StoreError) {
        self.rejected_profiles += 1;
        self.rejected_samples += u64::try_from(samples).unwrap_or_default();
        if self.message.len() > MOST_MESSAGE {
            return;
        }
        if !self.message.is_empty() {
            self.message.push_str("; ");
        }
        self.message.push_str(&format!("{samples} samples are left out: {why}"));
    }
}
