//! What can go wrong between the agent and the kernel.

/// What can go wrong between the agent and the kernel.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    #[error("cannot load the BPF programs of the {what}: {source}; run as root or with CAP_BPF and CAP_PERFMON")]
    Load {
        what: &'static str,
        source: libbpf_rs::Error,
    },
    #[error("cannot attach to the tracepoint {tracepoint}: {source}; run as root or with CAP_BPF and CAP_PERFMON")]
    Tracepoint {
        tracepoint: &'static str,
        source: libbpf_rs::Error,
    },
    // Debian's kernels 6.1 and 6.12 refuse CAP_PERFMON alone at their default of 3.
    #[error(
        "cannot open the sampling timer of CPU {cpu}: {source}; it needs CAP_PERFMON or root, and CAP_SYS_ADMIN or \
         root where kernel.perf_event_paranoid is above 2, as Debian has it (sysctl kernel.perf_event_paranoid=2)"
    )]
    PerfEvent { cpu: u32, source: std::io::Error },
    #[error("cannot attach the sampler to CPU {cpu}: {source}; it needs CAP_BPF and CAP_PERFMON or root")]
    AttachPerfEvent { cpu: u32, source: libbpf_rs::Error },
    #[error(
        "cannot share the {what} of the unwinder with the kernel: {source}; run as root or with CAP_BPF and CAP_PERFMON"
    )]
    Tables {
        what: &'static str,
        source: libbpf_rs::Error,
    },
    #[error("cannot read {what} from the kernel: {source}")]
    Read {
        what: &'static str,
        source: libbpf_rs::Error,
    },
    #[error("cannot wait for process events: {0}")]
    Wait(std::io::Error),
    #[error("cannot read {path}: {source}")]
    File { path: &'static str, source: std::io::Error },
    #[error("{path} has unexpected content: {content:?}")]
    Content { path: &'static str, content: String },
}
