//! What can go wrong between the agent and the kernel.

/// What can go wrong between the agent and the kernel.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// The kernel refuses BPF programs: rights are missing, or its verifier does not take them.
    #[error("cannot load the BPF programs of the {what}: {source}; run as root or with CAP_BPF and CAP_PERFMON")]
    Load {
        /// Which programs, such as `sampler`.
        what: &'static str,
        /// What libbpf says.
        source: libbpf_rs::Error,
    },
    /// A tracepoint is missing, or may not be used.
    #[error("cannot attach to the tracepoint {tracepoint}: {source}; run as root or with CAP_BPF and CAP_PERFMON")]
    Tracepoint {
        /// Its name.
        tracepoint: &'static str,
        /// What libbpf says.
        source: libbpf_rs::Error,
    },
    // Debian's kernels 6.1 and 6.12 refuse CAP_PERFMON alone at their default of 3.
    /// The kernel does not give a CPU's perf event.
    #[error(
        "cannot open the sampling timer of CPU {cpu}: {source}; it needs CAP_PERFMON or root, and CAP_SYS_ADMIN or \
         root where kernel.perf_event_paranoid is above 2, as Debian has it (sysctl kernel.perf_event_paranoid=2)"
    )]
    PerfEvent {
        /// The CPU's logical number.
        cpu: u32,
        /// What the system says.
        source: std::io::Error,
    },
    /// A CPU's perf event is open and takes no BPF program.
    #[error("cannot attach the sampler to CPU {cpu}: {source}; it needs CAP_BPF and CAP_PERFMON or root")]
    AttachPerfEvent {
        /// The CPU's logical number.
        cpu: u32,
        /// What libbpf says.
        source: libbpf_rs::Error,
    },
    /// Memory for unwinding tables cannot be made, or the kernel does not take it.
    #[error(
        "cannot share the {what} of the unwinder with the kernel: {source}; run as root or with CAP_BPF and CAP_PERFMON"
    )]
    Tables {
        /// Which part: `slabs`, `rules` or `processes`.
        what: &'static str,
        /// What libbpf says.
        source: libbpf_rs::Error,
    },
    /// A map of the BPF programs cannot be written to.
    #[error("cannot tell the kernel side of {what}: {source}")]
    Map {
        /// What was to be told, such as `bursts`.
        what: &'static str,
        /// What libbpf says.
        source: libbpf_rs::Error,
    },
    /// A ring buffer or a map of the BPF programs cannot be read.
    #[error("cannot read {what} from the kernel: {source}")]
    Read {
        /// What was to be read, such as `samples`.
        what: &'static str,
        /// What libbpf says.
        source: libbpf_rs::Error,
    },
    /// The wait for the kernel's rings failed. The value is what the system says.
    #[error("cannot wait for process events: {0}")]
    Wait(std::io::Error),
    /// A file in which the kernel lists CPUs cannot be read.
    #[error("cannot read {path}: {source}")]
    File {
        /// Which file.
        path: &'static str,
        /// What the system says.
        source: std::io::Error,
    },
    /// Such a file does not hold a list of CPUs.
    #[error("{path} has unexpected content: {content:?}")]
    Content {
        /// Which file.
        path: &'static str,
        /// What it holds.
        content: String,
    },
}
