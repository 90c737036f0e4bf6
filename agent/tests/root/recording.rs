//! Runs the agent and keeps its batches.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use stakeout_agent::agent::{Agent, AgentConfig, Totals};
use stakeout_agent::frames::{Frame, FrameKind, SampleKind, Stack};
use stakeout_agent::kernel::preflight;
use stakeout_agent::metadata::Resolver;
use stakeout_agent::ship::{Batch, Process, Sample};

/// One agent at a time: each would see the others' work as load.
static TURN: Mutex<()> = Mutex::new(());

/// Waits for the other tests that run an agent or take all CPUs.
pub(crate) fn take_turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// False, with a word of why, where the kernel side cannot run here.
pub(crate) fn possible() -> bool {
    let fatal: Vec<_> = preflight::check().into_iter().filter(|problem| problem.fatal).collect();
    if fatal.is_empty() {
        return true;
    }
    assert!(
        std::env::var("CI").as_deref() != Ok("true"),
        "with CI=true this must run: {fatal:?}"
    );
    println!("SKIPPED, since the kernel side cannot run here: {fatal:?}");
    false
}

#[derive(Default)]
struct Shared {
    batches: Mutex<Vec<Batch>>,
    arrived: Condvar,
}

/// A running agent that keeps its batches.
pub(crate) struct Recording {
    agent: Agent,
    shared: Arc<Shared>,
    _turn: MutexGuard<'static, ()>,
}

/// What was recorded.
pub(crate) struct Recorded {
    pub(crate) batches: Vec<Batch>,
    pub(crate) totals: Totals,
    /// Held as long as somebody looks: no other agent runs in this process meanwhile.
    _turn: MutexGuard<'static, ()>,
}

/// One sample with everything that it refers to.
#[derive(Clone, Copy)]
pub(crate) struct Seen<'a> {
    pub(crate) sample: &'a Sample,
    pub(crate) process: &'a Process,
    pub(crate) stack: &'a Stack,
    batch: &'a Batch,
}

impl Recording {
    pub(crate) fn start(config: AgentConfig) -> Self {
        Self::start_in(take_turn(), config)
    }

    /// For who had the turn already.
    pub(crate) fn start_in(turn: MutexGuard<'static, ()>, mut config: AgentConfig) -> Self {
        // Hardly optimised, the agent would soon lower its rate: only the test of that sets a limit of its own.
        if config.cpu_limit == AgentConfig::default().cpu_limit {
            config.cpu_limit = 1.0;
        }
        let shared = Arc::new(Shared::default());
        let sink = {
            let shared = Arc::clone(&shared);
            move |batch| {
                shared.batches.lock().unwrap().push(batch);
                shared.arrived.notify_all();
            }
        };
        let agent = Agent::start(config, Resolver::default(), sink).unwrap();
        Self {
            agent,
            shared,
            _turn: turn,
        }
    }

    /// Waits until a sample is there that `wanted` accepts.
    pub(crate) fn wait_for(&self, what: &str, wanted: impl Fn(Seen<'_>) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(90);
        let mut batches = self.shared.batches.lock().unwrap();
        while !batches.iter().flat_map(samples_of).any(&wanted) {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "no sample of {what} within 90 s");
            batches = self.shared.arrived.wait_timeout(batches, left).unwrap().0;
        }
    }

    /// As long as this is held, the thread that names is busy once it has a batch.
    pub(crate) fn keep_naming_busy(&self) -> MutexGuard<'_, Vec<Batch>> {
        self.shared.batches.lock().unwrap()
    }

    pub(crate) fn stop(self) -> Recorded {
        let Self { agent, shared, _turn } = self;
        let totals = agent.stop().unwrap();
        let batches = std::mem::take(&mut *shared.batches.lock().unwrap());
        Recorded { batches, totals, _turn }
    }
}

fn samples_of(batch: &Batch) -> impl Iterator<Item = Seen<'_>> {
    batch.samples.iter().map(move |sample| Seen {
        sample,
        process: &batch.processes[sample.process as usize],
        stack: &batch.stacks[sample.stack as usize],
        batch,
    })
}

impl Recorded {
    /// Of threads that ran.
    pub(crate) fn samples(&self) -> impl Iterator<Item = Seen<'_>> {
        let all = self.batches.iter().flat_map(samples_of);
        all.filter(|seen| seen.sample.kind == SampleKind::Cpu)
    }

    /// Those that waited, too.
    pub(crate) fn all_of_tgid(&self, tgid: u32) -> Vec<Seen<'_>> {
        let all = self.batches.iter().flat_map(samples_of);
        all.filter(|seen| seen.process.tgid == tgid).collect()
    }

    /// Who ended waits of a thread of this process and name.
    pub(crate) fn wakers_of<'a>(&'a self, tgid: u32, thread: &'a str) -> impl Iterator<Item = Seen<'a>> {
        let all = self.batches.iter().flat_map(samples_of);
        all.filter(move |seen| {
            let woken = seen.sample.woken.as_ref();
            woken.is_some_and(|woken| {
                &*woken.thread == thread && seen.batch.processes[woken.process as usize].tgid == tgid
            })
        })
    }

    pub(crate) fn of_tgid(&self, tgid: u32) -> Vec<Seen<'_>> {
        self.samples().filter(|seen| seen.process.tgid == tgid).collect()
    }
}

impl<'a> Seen<'a> {
    /// What the sample stands for.
    pub(crate) fn seconds(self) -> f64 {
        let ns = match self.sample.kind {
            SampleKind::Cpu if self.sample.value_ns == 0 => self.batch.period_ns,
            SampleKind::Cpu | SampleKind::OffCpu(_) | SampleKind::RunQueue(_) | SampleKind::WakeUp(_) => {
                self.sample.value_ns
            }
        };
        ns as f64 / 1e9
    }

    /// Leaf first.
    pub(crate) fn frames(self) -> impl DoubleEndedIterator<Item = &'a Frame> + Clone {
        self.stack
            .frames
            .iter()
            .map(move |index| &self.batch.frames[*index as usize])
    }

    pub(crate) fn functions(self) -> Vec<&'a str> {
        self.frames()
            .map(|frame| frame.function.as_deref().unwrap_or("?"))
            .collect()
    }

    pub(crate) fn has(self, function: &str) -> bool {
        self.frames().any(|frame| frame.function.as_deref() == Some(function))
    }

    pub(crate) fn in_kernel(self) -> bool {
        self.frames()
            .next()
            .is_some_and(|frame| frame.kind == FrameKind::Kernel)
    }
}
