//! The attributes that Stakeout knows, on a resource, a sample, a mapping or a location.

use crate::ingest::error::IngestError;
use crate::ingest::wire::attribute::Value;

/// What an attribute says. Times are nanoseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Attribute<'a> {
    Node(&'a str),
    /// Of Kubernetes, and of the machine: each stands in where those before it are not there.
    NodeOfCluster(&'a str),
    NodeId(&'a str),
    Arch(&'a str),
    Kernel(&'a str),
    Service(&'a str),
    ExecutableName(&'a str),
    ExecutablePath(&'a str),
    CommandLine(&'a str),
    BuildId(&'a str),
    BuildIdFallback(&'a str),
    Tgid(i64),
    Tid(i64),
    Thread(&'a str),
    Cpu(i64),
    WaitLength(i64),
    WokenTid(i64),
    StartTicks(i64),
    ExecCount(i64),
    Cgroup(&'a str),
    ContainerId(&'a str),
    ContainerName(&'a str),
    Pod(&'a str),
    Namespace(&'a str),
    Workload(&'a str),
    WorkloadFallback(&'a str),
    Cluster(&'a str),
    Unit(&'a str),
    Truncated(bool),
    FrameType(&'a str),
    Instance(&'a str),
    Batch(i64),
    AgentVersion(&'a str),
    BootId(&'a str),
    FrequencyHz(i64),
    From(i64),
    Until(i64),
    Cpus(i64),
    Ticks(i64),
    IdleTicks(i64),
    MissedTicks(i64),
    CpusOffline(&'a str),
    RunQueues(&'a str),
    WaitsObserved(i64),
    SamplesTaken(i64),
    Lost(&'a str, i64),
    Limit(&'a str, i64),
    CpuSeconds(f64),
    BpfSeconds(f64),
    RssBytes(i64),
    BpfMapBytes(i64),
    /// Not one of ours: kept by its name.
    Kept(&'a str, Value<'a>),
    /// Of a type that makes no sense for its key.
    Other,
}

/// Reads an attribute. `string` looks a string index up.
pub(crate) fn read<'a>(
    key: &'a str,
    value: Value<'a>,
    string: impl Fn(i32) -> Result<&'a str, IngestError>,
) -> Result<Attribute<'a>, IngestError> {
    use Attribute as A;
    let text = match value {
        Value::Text(text) => Some(text),
        Value::TextIndex(index) => Some(string(index)?),
        Value::NotText => {
            return Err(IngestError::Text {
                cause: format!("the value of the attribute {key:?}: text is not UTF-8"),
            });
        }
        _ => None,
    };
    let int = match value {
        Value::Int(int) => Some(int),
        _ => None,
    };
    let real = match value {
        Value::Real(real) => Some(real),
        Value::Int(int) => Some(int as f64),
        _ => None,
    };
    let of_text = |make: fn(&'a str) -> A<'a>| text.map_or(A::Other, make);
    let of_int = |make: fn(i64) -> A<'a>| int.map_or(A::Other, make);
    let of_real = |make: fn(f64) -> A<'a>| real.filter(|real| real.is_finite()).map_or(A::Other, make);
    Ok(match key {
        "host.name" => of_text(A::Node),
        "k8s.node.name" => of_text(A::NodeOfCluster),
        "host.id" => of_text(A::NodeId),
        "host.arch" => of_text(A::Arch),
        "os.version" => of_text(A::Kernel),
        "service.name" => of_text(A::Service),
        "process.executable.name" => of_text(A::ExecutableName),
        "process.executable.path" => of_text(A::ExecutablePath),
        "process.command_line" => of_text(A::CommandLine),
        "process.executable.build_id.gnu" => of_text(A::BuildId),
        "process.executable.build_id.go" | "process.executable.build_id.htlhash" => of_text(A::BuildIdFallback),
        "process.pid" => of_int(A::Tgid),
        "thread.id" => of_int(A::Tid),
        "thread.name" => of_text(A::Thread),
        "cpu.logical_number" => of_int(A::Cpu),
        "wait.length" => of_int(A::WaitLength),
        "woken.tid" => of_int(A::WokenTid),
        "stakeout.process.start_ticks" => of_int(A::StartTicks),
        "stakeout.process.exec_count" => of_int(A::ExecCount),
        "process.linux.cgroup" => of_text(A::Cgroup),
        "container.id" => of_text(A::ContainerId),
        "container.name" | "k8s.container.name" => of_text(A::ContainerName),
        "k8s.pod.name" => of_text(A::Pod),
        "k8s.namespace.name" => of_text(A::Namespace),
        "k8s.workload.name" => of_text(A::Workload),
        "k8s.deployment.name" | "k8s.statefulset.name" | "k8s.daemonset.name" | "k8s.cronjob.name" | "k8s.job.name" => {
            of_text(A::WorkloadFallback)
        }
        "k8s.cluster.name" => of_text(A::Cluster),
        "systemd.unit" => of_text(A::Unit),
        "stakeout.stack.truncated" => match value {
            Value::Bool(truncated) => A::Truncated(truncated),
            _ => A::Other,
        },
        // The image's tags, of which the first is as good as any.
        "container.image.tags" => match value {
            Value::List(first) => A::Kept(key, Value::Text(first)),
            _ => A::Kept(key, text.map_or(value, Value::Text)),
        },
        "profile.frame.type" => of_text(A::FrameType),
        "stakeout.instance" => of_text(A::Instance),
        "stakeout.batch" => of_int(A::Batch),
        "stakeout.agent.version" => of_text(A::AgentVersion),
        "stakeout.boot_id" => of_text(A::BootId),
        "stakeout.frequency_hz" => of_int(A::FrequencyHz),
        "stakeout.from_unix_nano" => of_int(A::From),
        "stakeout.until_unix_nano" => of_int(A::Until),
        "stakeout.cpus" => of_int(A::Cpus),
        "stakeout.ticks" => of_int(A::Ticks),
        "stakeout.idle_ticks" => of_int(A::IdleTicks),
        "stakeout.missed_ticks" => of_int(A::MissedTicks),
        "stakeout.cpus_offline" => of_text(A::CpusOffline),
        "stakeout.run_queues" => of_text(A::RunQueues),
        "stakeout.waits_observed_ns" => of_int(A::WaitsObserved),
        "stakeout.samples_taken" => of_int(A::SamplesTaken),
        "stakeout.cpu_seconds" => of_real(A::CpuSeconds),
        "stakeout.bpf_seconds" => of_real(A::BpfSeconds),
        "stakeout.rss_bytes" => of_int(A::RssBytes),
        "stakeout.bpf_map_bytes" => of_int(A::BpfMapBytes),
        _ => match (
            key.strip_prefix("stakeout.lost."),
            key.strip_prefix("stakeout.limit."),
            int,
        ) {
            (Some(cause), _, Some(count)) => A::Lost(cause, count),
            (_, Some(limit), Some(count)) => A::Limit(limit, count),
            _ if key.is_empty() || key.starts_with("stakeout.") => A::Other,
            _ => A::Kept(key, text.map_or(value, Value::Text)),
        },
    })
}
