//! The way of a sample through the agent: kernel, process table, names, batch.
//!
//! In: a rate. Out: one [`Batch`] about every five seconds, handed to a sink. Four threads: `stakeout-sample` drains the
//! kernel side and finds out where each address comes from while the process still lives; `stakeout-table` compiles the
//! tables by which the kernel side walks user stacks; `stakeout-name` names and builds the batch; `stakeout-ahead` names what is in files
//! that are about to be given up. Between sampling and naming
//! stand at most two intervals; while both wait, the present one goes on. Every sample that the kernel side took is in a
//! batch or counted as lost, also at a clean stop.

mod ahead;
mod budget;
mod clock;
mod deferred;
mod gather;
mod intervals;
mod locate;
mod naming;
mod news;
mod roots;
mod sampling;
mod tables;
mod throttle;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::cpu_budget::CpuBudget;
use crate::kernel::{self, Counters, KernelError, Sensor, Unticked};
use crate::metadata::Resolver;
use crate::process::{CommandLines, TableStats};
use crate::ship::Batch;
use crate::symbolize::{Namer, NamerConfig, NamerStats, Names};
use clock::Moment;
use intervals::{Behind, Intervals};
use sampling::Sampling;
pub use tables::UnwindStats;

/// How the agent samples and gathers.
#[derive(Debug, Clone)]
pub struct AgentConfig {
    /// Samples per second and CPU.
    pub frequency_hz: u32,
    /// Mean length of an interval; each is up to a tenth shorter or longer, so that the agents of a fleet don't march in step.
    pub interval: Duration,
    /// How often the ring buffer is drained where it does not fill up: each time costs as much as dozens of samples.
    pub drain_every: Duration,
    /// Processes that are remembered.
    pub max_processes: usize,
    /// Memory for unwinding tables, in bytes; whole megabytes are used.
    pub table_bytes: u64,
    /// Resident memory and BPF maps together, in bytes, beyond which names and tables are made with less.
    pub memory_limit_bytes: u64,
    /// Share of the machine's CPU time, between 0 and 1, that sampling and naming may take on average; beyond it samples are
    /// taken less often. Tables and names of new files keep near it also in each second.
    pub cpu_limit: f64,
    /// What is kept of processes' arguments.
    pub command_lines: CommandLines,
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
            names: NamerConfig::default(),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error(transparent)]
    Kernel(#[from] KernelError),
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
    #[error("the {0} thread ended unexpectedly; the log says why")]
    Ended(&'static str),
}

/// What a stopped agent did over its life.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    pub unwinding: UnwindStats,
    /// How often the rate was lowered to keep the CPU limit.
    pub throttled: u64,
    /// The kernel side's own counters.
    pub kernel: Counters,
    /// Ticks that were due and did not come.
    pub unticked: Unticked,
    /// Samples that were handed over in batches.
    pub batched: u64,
    pub batches: u64,
    /// By cause, as in [`crate::ship::Report::lost`].
    pub lost: BTreeMap<&'static str, u64>,
    pub table: TableStats,
    pub names: NamerStats,
}

/// Samples that found the kernel's ring buffer full.
pub const CAUSE_RING_FULL: &str = "ring_full";
/// Records that the agent could not understand.
pub const CAUSE_MALFORMED: &str = "malformed_record";
/// Samples beyond what one interval may hold.
pub const CAUSE_INTERVAL_FULL: &str = "interval_full";
/// The kernel side counted more than arrived. Never seen; named so that it would be.
pub const CAUSE_UNACCOUNTED: &str = "unaccounted";

/// Intervals that may wait for their names.
const WAITING_INTERVALS: usize = 2;
/// Rounds of files to be given up that may wait for their names.
const WAITING_AHEAD: usize = 4;

/// A running agent. Dropping it stops it; [`Agent::stop`] also says what it did.
#[derive(Debug)]
pub struct Agent {
    stop: Arc<AtomicBool>,
    sampling: Option<JoinHandle<Result<Totals, AgentError>>>,
    /// Its other half goes with the sampling thread.
    ended: oneshot::Receiver<()>,
    naming: Option<JoinHandle<(u64, u64, NamerStats)>>,
    ahead: Option<JoinHandle<()>>,
}

impl Agent {
    /// Loads the kernel side and starts to sample. `sink` gets each batch, on a thread where it may take its time;
    /// `resolver` finds the labels of a process.
    pub fn start(
        mut config: AgentConfig,
        resolver: Resolver,
        sink: impl FnMut(Batch) + Send + 'static,
    ) -> Result<Self, AgentError> {
        config.names.cpu_budget = CpuBudget::within(config.cpu_limit);
        config.names.bpf_functions = kernel::bpf_functions;
        let stop = Arc::new(AtomicBool::new(false));
        let (sender, finished) = mpsc::sync_channel(WAITING_INTERVALS + WAITING_AHEAD);
        let (ahead_sender, leaving) = mpsc::sync_channel(WAITING_AHEAD);
        let behind = Arc::new(Behind::default());
        let given_up = sender.clone();
        let intervals = Intervals::new(sender, ahead_sender, Arc::clone(&behind));
        let names = Names::within(config.names.cached_places);
        let (of_intervals, of_leaving) = (config.names.clone(), config.names.ahead());
        let shared = names.clone();
        let naming = spawn("stakeout-name", move || {
            naming::run(Namer::with(of_intervals, shared), &finished, &behind, sink)
        })?;
        let ahead = spawn("stakeout-ahead", move || {
            ahead::run(Namer::with(of_leaving, names), &leaving, &given_up);
        })?;
        // The kernel side stays on the thread that loads it; only whether that went well comes back.
        let (started, outcome) = mpsc::sync_channel(1);
        let (ending, ended) = oneshot::channel();
        let sampling = {
            let stop = Arc::clone(&stop);
            spawn("stakeout-sample", move || {
                let _ending: oneshot::Sender<()> = ending;
                match Sensor::start(config.frequency_hz, config.table_bytes) {
                    Ok(sensor) => {
                        let begun = Moment::now();
                        // The receiver waits for exactly this message.
                        let _ = started.send(Ok(()));
                        Sampling::new(config, sensor, begun, resolver, intervals)?.run(&stop)
                    }
                    Err(error) => {
                        let _ = started.send(Err(error));
                        Ok(Totals::default())
                    }
                }
            })?
        };
        let agent = Self {
            stop,
            sampling: Some(sampling),
            ended,
            naming: Some(naming),
            ahead: Some(ahead),
        };
        match outcome.recv() {
            Ok(Ok(())) => Ok(agent),
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(AgentError::Ended("sampling")),
        }
    }

    /// Waits until the sampling thread has ended by itself: [`Self::stop`] says why.
    pub async fn failed(&mut self) {
        // Nothing is ever sent.
        let _ = (&mut self.ended).await;
    }

    /// Detaches, drains the ring, hands the last batch to the sink and waits until that has taken it.
    pub fn stop(mut self) -> Result<Totals, AgentError> {
        self.join()
    }

    fn join(&mut self) -> Result<Totals, AgentError> {
        self.stop.store(true, Ordering::Release);
        let totals = match self.sampling.take() {
            Some(thread) => thread.join().map_err(|_| AgentError::Ended("sampling"))?,
            None => Err(AgentError::Ended("sampling")),
        };
        let naming = self.naming.take().ok_or(AgentError::Ended("naming"))?;
        let (batches, batched, names) = naming.join().map_err(|_| AgentError::Ended("naming"))?;
        let ahead = self.ahead.take().map(JoinHandle::join);
        ahead.transpose().map_err(|_| AgentError::Ended("naming ahead"))?;
        Ok(Totals {
            batches,
            batched,
            names,
            ..totals?
        })
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        if self.sampling.is_some() {
            // Whoever drops the agent does not ask how it went.
            let _ = self.join();
        }
    }
}

fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, AgentError> {
    std::thread::Builder::new()
        .name(name.into())
        .spawn(work)
        .map_err(AgentError::Thread)
}
