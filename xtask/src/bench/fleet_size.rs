//! How large a synthetic fleet is, and what its batches are.

#[derive(Debug, clap::Args)]
pub(super) struct Fleet {
    /// Hours of the fleet
    #[arg(long, default_value_t = 1.0, value_name = "HOURS")]
    pub(super) hours: f64,
    /// Nodes, all CPUs of which are busy
    #[arg(long, default_value_t = 100, value_name = "N")]
    pub(super) nodes: u64,
    /// CPUs of a node
    #[arg(long, default_value_t = 8, value_name = "N")]
    pub(super) cpus: u64,
    /// Services of the fleet, of which ten run on each node
    #[arg(long, default_value_t = 60, value_name = "N")]
    pub(super) services: u64,
    /// Distinct stacks of a service, by Zipf's law
    #[arg(long, default_value_t = 5000, value_name = "N")]
    pub(super) stacks: u64,
    /// Wait at most so long for compaction to come to rest
    #[arg(long, default_value_t = 1200, value_name = "SECONDS")]
    pub(super) settle: u64,
    /// Memory that the server may take, as it is told
    #[arg(long, default_value = "1GiB", value_name = "SIZE")]
    pub(super) memory_limit: String,
}

pub(super) const FREQUENCY_HZ: u64 = 20;
/// As an agent's.
pub(super) const BATCH_SECONDS: u64 = 5;
/// Batches of one agent that wait for their acknowledgement at the same time.
pub(super) const IN_FLIGHT: u64 = 16;
/// Samples that are on the way at the same time, at least: of so few nodes that the server would wait for them from
/// commit to commit, batches are of as many times five seconds.
const LEAST_ON_THE_WAY: u64 = 1_000_000;

impl Fleet {
    /// Seconds and samples of a batch.
    pub(super) fn batch(&self) -> (u64, u64) {
        let of_five = self.cpus * FREQUENCY_HZ * BATCH_SECONDS;
        let times = LEAST_ON_THE_WAY
            .div_ceil((IN_FLIGHT * self.nodes * of_five).max(1))
            .min(60);
        (BATCH_SECONDS * times, of_five * times)
    }
}
