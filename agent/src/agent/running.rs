//! A running agent: its threads, and how they end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;

use tokio::sync::oneshot;

use super::clock::ClockReading;
use super::config::AgentConfig;
use super::naming::{self, Behind, Intervals, WAITING_INTERVALS};
use super::sampling::Sampling;
use super::threads::{AgentError, spawn};
use super::totals::Totals;
use crate::cpu_budget::CpuBudget;
use crate::kernel::{self, Sensor, Waker};
use crate::metadata::Resolver;
use crate::ship::Batch;
use crate::symbolize::{Namer, NamerStats, Names};

/// Rounds of files to be given up that may wait for their names.
const WAITING_AHEAD: usize = 4;

/// A running agent. Dropping it stops it; [`Agent::stop`] also says what it did.
#[derive(Debug)]
pub struct Agent {
    stop: Arc<AtomicBool>,
    sampling: Option<JoinHandle<Result<Totals, AgentError>>>,
    /// Its other half goes with the sampling thread.
    ended: oneshot::Receiver<()>,
    /// Of the sampling thread, once it samples.
    waker: Option<Waker>,
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
        let names = Names::within(config.names.cached_locations);
        let (of_intervals, of_leaving) = (config.names.clone(), config.names.ahead());
        let shared = names.clone();
        let naming = spawn("stakeout-name", move || {
            naming::name_intervals(Namer::with(of_intervals, shared), &finished, &behind, sink)
        })?;
        let ahead = spawn("stakeout-ahead", move || {
            naming::name_ahead(Namer::with(of_leaving, names), &leaving, &given_up);
        })?;
        // The kernel side stays on the thread that loads it; only whether that went well comes back.
        let (started, outcome) = mpsc::sync_channel(1);
        let (ending, ended) = oneshot::channel();
        let sampling = {
            let stop = Arc::clone(&stop);
            spawn("stakeout-sample", move || {
                let _ending: oneshot::Sender<()> = ending;
                let wait_period_ns = config.wait_period.as_nanos() as u64;
                match Sensor::start(config.frequency_hz, config.table_bytes, config.waits, wait_period_ns) {
                    Ok(sensor) => {
                        let begun = ClockReading::now();
                        // The receiver waits for exactly this message.
                        let _ = started.send(Ok(sensor.waker()));
                        Sampling::new(config, sensor, begun, resolver, intervals)?.run(&stop)
                    }
                    Err(error) => {
                        let _ = started.send(Err(error));
                        Ok(Totals::default())
                    }
                }
            })?
        };
        let mut agent = Self {
            stop,
            sampling: Some(sampling),
            ended,
            waker: None,
            naming: Some(naming),
            ahead: Some(ahead),
        };
        match outcome.recv() {
            Ok(Ok(waker)) => {
                agent.waker = Some(waker);
                Ok(agent)
            }
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
        // What comes after who was to be observed has ended is none of it.
        if let Some(waker) = &self.waker {
            waker.wake();
        }
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
