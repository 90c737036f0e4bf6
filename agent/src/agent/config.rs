//! What an agent is told when it starts.

use std::sync::Arc;
use std::time::Duration;

use crate::kernel::Waits;
use crate::process::CommandLines;
use crate::ship::BurstDesk;
use crate::symbolize::NamerConfig;

/// How the agent samples and gathers.
#[derive(Debug, Clone)]
pub struct AgentConfig {
    /// Samples per second and CPU.
    pub frequency_hz: u32,
    /// Mean length of an interval; each is up to a tenth shorter or longer, so that the agents of a fleet don't march
    /// in step.
    pub interval: Duration,
    /// How often the ring buffer is drained where it does not fill up: each time costs as much as dozens of samples.
    pub drain_every: Duration,
    /// Processes that are remembered.
    pub max_processes: usize,
    /// Memory for unwinding tables, in bytes; whole megabytes are used.
    pub table_bytes: u64,
    /// Resident memory and BPF maps together, in bytes, beyond which names and tables are made with less.
    pub memory_limit_bytes: u64,
    /// Share of the machine's CPU time, between 0 and 1, that sampling and naming may take on average; beyond it
    /// samples are taken less often. Tables and names of new files keep near it also in each second.
    pub cpu_limit: f64,
    /// What is kept of processes' arguments.
    pub command_lines: CommandLines,
    /// Whether threads are seen to wait.
    pub waits: Waits,
    /// Time off its CPU that a sample of a thread that waits stands for, where there are not too many.
    pub wait_period: Duration,
    /// Where closer looks are asked for; none where nobody can.
    pub bursts: Option<Arc<BurstDesk>>,
    /// The highest rate of one, in Hz; 0: there is none.
    pub burst_limit_hz: u32,
    /// How names of frames are found, and what that may take.
    pub names: NamerConfig,
}

impl Default for AgentConfig {
    fn default() -> Self {
        Self {
            frequency_hz: 20,
            interval: Duration::from_secs(5),
            drain_every: Duration::from_millis(500),
            max_processes: 8192,
            table_bytes: 16 << 20,
            memory_limit_bytes: 64 << 20,
            cpu_limit: 0.01,
            command_lines: CommandLines::default(),
            waits: Waits::Off,
            wait_period: Duration::from_millis(50),
            bursts: None,
            burst_limit_hz: 999,
            names: NamerConfig::default(),
        }
    }
}
