//! Sizes that ingest never goes beyond.

use crate::memory::Shares;
use std::time::Duration;

/// A machine without a battery for its clock has the right time only some time after its start: until then samples
/// that seem to be ahead are asked to come again, and left out only after that.
const CLOCK_WAIT: Duration = Duration::from_secs(600);

/// Sizes that ingest never goes beyond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IngestConfig {
    /// A body as it comes.
    pub max_body_bytes: usize,
    /// A body after decompression.
    pub max_plain_bytes: usize,
    /// A decoded message in memory.
    pub max_decoded_bytes: usize,
    /// All bodies that are being received.
    pub max_receiving_bytes: usize,
    /// Requests decoded at the same time.
    pub max_decoding: usize,
    /// For how long since the start nothing is left out for being ahead of the clock.
    pub clock_wait: Duration,
}

impl IngestConfig {
    /// Requests that this machine decodes at the same time.
    pub fn decoding() -> usize {
        std::thread::available_parallelism()
            .map_or(2, |cores| cores.get())
            .min(4)
    }

    /// The usual sizes, or smaller ones where memory is short.
    pub fn within(shares: &Shares) -> Self {
        let most = |share: u64, most: usize| usize::try_from(share).unwrap_or(usize::MAX).min(most);
        Self {
            max_body_bytes: most(shares.receiving, 32 << 20),
            max_plain_bytes: most(shares.plain, 64 << 20),
            max_decoded_bytes: most(shares.decoded, 512 << 20),
            max_receiving_bytes: most(shares.receiving, 256 << 20),
            max_decoding: Self::decoding(),
            clock_wait: CLOCK_WAIT,
        }
    }
}

impl Default for IngestConfig {
    fn default() -> Self {
        Self::within(&Shares::of(8 << 30, Self::decoding()))
    }
}
