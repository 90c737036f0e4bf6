//! What `ship` takes in: one interval's samples of this agent, names resolved.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::frames::{CpuTicks, Frame, SampleKind, Stack, WaitClass, WaitLengths};
use crate::metadata::Metadata;

/// Samples of one interval with the dictionaries that they index into.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Batch {
    /// Start of the interval that the batch covers, nanoseconds since the Unix epoch; equals the previous batch's end.
    pub from_unix_ns: u64,
    /// End of the interval, exclusive.
    pub until_unix_ns: u64,
    /// Nanoseconds of CPU time that one sample of a thread that ran stands for.
    pub period_ns: u64,
    /// Samples that a busy CPU gives in a second.
    pub frequency_hz: u32,
    /// The agent's account at the end of the interval.
    pub report: Report,
    /// What stacks are made of, each frame once.
    pub frames: Vec<Frame>,
    /// Stacks of the samples, each once.
    pub stacks: Vec<Stack>,
    /// Programs of the samples, each once.
    pub processes: Vec<Process>,
    /// What was sampled in the interval, of all kinds.
    pub samples: Vec<Sample>,
    /// How long waits for a CPU were that ended in the interval.
    pub run_queues: RunQueues,
}

impl Batch {
    /// What is left to tell of a batch that was lost: its cumulative figures, of no time.
    pub(super) fn without_samples(self) -> Self {
        let report = Report {
            ticks: 0,
            idle_ticks: 0,
            missed_ticks: 0,
            waits_observed_ns: self.report.waits_observed_ns.map(|_| 0),
            ..self.report
        };
        Self {
            from_unix_ns: self.until_unix_ns,
            until_unix_ns: self.until_unix_ns,
            period_ns: self.period_ns,
            frequency_hz: self.frequency_hz,
            report,
            ..Self::default()
        }
    }
}

/// The agent's account of itself. `*ticks`, `cpus` and `waits_observed_ns` are of this interval, everything else is
/// cumulative or a gauge.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// CPUs that were observed in the interval.
    pub cpus: u32,
    /// CPUs of the machine that were off, or could not be sampled, at any time in the interval, such as `2-3,7`.
    pub cpus_offline: String,
    /// Timer ticks of all CPUs in the interval, and those that an idle CPU left out.
    pub ticks: u64,
    /// Ticks of idle CPUs: not samples.
    pub idle_ticks: u64,
    /// Ticks that were due, on a CPU that was not idle, and did not come.
    pub missed_ticks: u64,
    /// How long of the interval waits were observed; none where they are not seen.
    pub waits_observed_ns: Option<u64>,
    /// Samples that the kernel side took, cumulative over the instance, this batch included.
    pub samples_taken: u64,
    /// Samples lost, cumulative, by cause. `samples_taken` = samples in all batches + every cause.
    pub lost: BTreeMap<&'static str, u64>,
    /// How often a limit was reached, cumulative, by name: what was done less well for it, without losing a sample.
    /// Behind a dot may stand a cause of a part of them.
    pub limits: BTreeMap<Cow<'static, str>, u64>,
    /// CPU time of the agent's process since its start.
    pub cpu_seconds: f64,
    /// CPU time of its BPF programs since their load.
    pub bpf_seconds: f64,
    /// Resident memory without BPF maps, which it maps in part, and with its files in memory.
    pub rss_bytes: u64,
    /// Kernel memory of its BPF maps.
    pub bpf_map_bytes: u64,
}

/// One program run by one process: execve makes another one of the same tgid.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Process {
    /// Process id, as the machine's first process id namespace has it.
    pub tgid: u32,
    /// Start time in clock ticks since boot (field 22 of /proc/PID/stat).
    pub start_ticks: u64,
    /// Execs seen of this process.
    pub exec_count: u32,
    /// Base name of the executable; the comm of a kernel thread.
    pub executable: Arc<str>,
    /// The executable's whole path; empty for kernel threads.
    pub executable_path: Arc<str>,
    /// Arguments, as much as is kept of them.
    pub command_line: Arc<str>,
    /// GNU build id of the executable, in lower-case hex.
    pub build_id: Option<Arc<str>>,
    /// What the `metadata` room found out.
    pub metadata: Arc<Metadata>,
}

/// Waits for a CPU, each once in either list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunQueues {
    /// Of each CPU, by its logical number.
    pub by_cpu: BTreeMap<u32, WaitLengths>,
    /// Ticks of each CPU's timer in the interval, by the same.
    pub ticks: BTreeMap<u32, CpuTicks>,
    /// Of programs with the same name and labels, on each CPU.
    pub by_program: Vec<RunQueue>,
}

/// Waits for one CPU of programs with the same name and labels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunQueue {
    /// Base name of the executable; the comm of a kernel thread. Empty where it is not known whose waits they are.
    pub executable: Arc<str>,
    /// GNU build id of the executable, in lower-case hex.
    pub build_id: Option<Arc<str>>,
    /// The labels.
    pub metadata: Arc<Metadata>,
    /// Logical number of the CPU; none of waits for several, where there are too many to tell apart.
    pub cpu: Option<u32>,
    /// How long they were.
    pub lengths: WaitLengths,
}

/// One sample: when a thread was interrupted, or had waited, where, and with which stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// Whether the thread ran or waited.
    pub kind: SampleKind,
    /// Nanoseconds that it waited, or that a sample of a burst stands for; 0 of other threads that ran, whose samples
    /// stand for the batch's period.
    pub value_ns: u64,
    /// How long the wait itself was, in nanoseconds, as far as it was observed; 0 of a thread that ran.
    pub wait_ns: u64,
    /// What it waited for, of waits for something else than a CPU.
    pub wait_class: Option<WaitClass>,
    /// Wall clock, nanoseconds since the Unix epoch.
    pub ts_unix_ns: u64,
    /// Logical number of the CPU.
    pub cpu: u32,
    /// Thread id, as the machine's first process id namespace has it.
    pub tid: u32,
    /// The thread's name at that moment.
    pub thread: Arc<str>,
    /// Index into `Batch::processes`.
    pub process: u32,
    /// Index into `Batch::stacks`.
    pub stack: u32,
    /// Whose wait the thread ended.
    pub woken: Option<Woken>,
}

/// A thread whose wait another one ended.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Woken {
    /// Index into `Batch::processes`.
    pub process: u32,
    /// Thread id, as the machine's first process id namespace has it.
    pub tid: u32,
    /// The thread's name at that moment.
    pub thread: Arc<str>,
}
