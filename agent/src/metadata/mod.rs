//! Who a process works for: control group, environment and files of the container runtimes to service, container, pod
//! and unit.
//!
//! In: what /proc says of a process ([`Surroundings`]), the number of its control group at a moment, its executable.
//! Out: [`Metadata`] of that moment. Reads /proc, the tree of control groups and what kubelet, Docker and Podman keep
//! on the disk, every file up to a bound; never the network, and of the environment only the two variables that name a
//! service.

mod cgroup;
mod environ;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod groups;
mod runtime;
mod small_files;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::environ::Named;
use self::groups::{Group, Groups};
use self::runtime::ContainerRuntimes;
use self::small_files::read;
use crate::sys::{Owner, guarded, path_state};

/// The service of everything that the kernel does on its own account.
pub const KERNEL_SERVICE: &str = "[kernel]";

const CGROUP_LIMIT_BYTES: u64 = 64 << 10;
const ENVIRON_LIMIT_BYTES: u64 = 256 << 10;
const MOUNTS_LIMIT_BYTES: u64 = 4 << 20;

/// Labels of one process, all optional but the service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Metadata {
    /// OTEL_SERVICE_NAME, else workload or container, else systemd unit, else executable.
    pub service: Arc<str>,
    /// What the process was told to be the version of its service.
    pub version: Option<Arc<str>>,
    /// The image of its container, with its tag.
    pub image: Option<Arc<str>>,
    /// Empty where it is not known.
    pub cgroup: Arc<str>,
    /// The container's id, as the path of its control group has it.
    pub container_id: Option<Arc<str>>,
    /// The container's name: of the environment, else of the runtime's files or the control group.
    pub container_name: Option<Arc<str>>,
    /// Name of the Kubernetes pod.
    pub pod: Option<Arc<str>>,
    /// Namespace of the Kubernetes pod.
    pub namespace: Option<Arc<str>>,
    /// What the pod is one of, such as a Deployment: of the environment, else cut from the pod's name.
    pub workload: Option<Arc<str>>,
    /// The systemd unit, such as `cron.service`.
    pub unit: Option<Arc<str>>,
}

/// What /proc says of a process: read once for each program, and its groups of version 1 again when it was moved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surroundings {
    named: Named,
    listed: cgroup::Listed,
}

impl Surroundings {
    /// Of another program in the same control groups.
    pub fn groups(&self) -> Self {
        Self {
            named: Named::default(),
            listed: self.listed.clone(),
        }
    }

    /// The same at a time of whose control groups nothing is known.
    pub fn without_groups(&self) -> Self {
        Self {
            named: self.named.clone(),
            listed: cgroup::Listed::default(),
        }
    }
}

/// Whose labels are asked for.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// Base name of the executable.
    pub executable: &'a str,
    /// It is a thread of the kernel.
    pub kernel_thread: bool,
    /// The control group of version 2 at the moment in question; 0 where it is not known.
    pub cgroup_id: u64,
    /// None where the process was gone too soon.
    pub surroundings: Option<&'a Surroundings>,
}

/// Resolves processes; the caller keeps the answers, one for each program and control group.
#[derive(Debug)]
pub struct Resolver {
    proc_root: PathBuf,
    runtimes: ContainerRuntimes,
    groups: Groups,
    /// Control groups of version 1 are in use, too.
    has_legacy: bool,
    /// They are, or those of version 2 are not told by number.
    reads_lists: bool,
}

impl Default for Resolver {
    fn default() -> Self {
        let mounts = read(Path::new("/proc/self/mountinfo"), MOUNTS_LIMIT_BYTES);
        let own = cgroup::parse(&String::from_utf8_lossy(&read(
            Path::new("/proc/self/cgroup"),
            CGROUP_LIMIT_BYTES,
        )));
        let mut groups = Groups::mounted(&String::from_utf8_lossy(&mounts));
        // The root of the tree is the first group.
        let is_told = groups.get(1) != Group::Untold;
        Self {
            groups,
            has_legacy: !own.legacy.is_empty(),
            reads_lists: !is_told || !own.legacy.is_empty(),
            ..Self::at(Path::new("/proc"), Path::new("/"))
        }
    }
}

impl Resolver {
    /// Reads processes below `proc_root` and the container runtimes' files below `host_root` instead of the machine's
    /// own. It knows only those control groups by their number that it is told of.
    pub fn at(proc_root: &Path, host_root: &Path) -> Self {
        Self {
            proc_root: proc_root.into(),
            runtimes: ContainerRuntimes::below(host_root),
            groups: Groups::default(),
            has_legacy: false,
            reads_lists: true,
        }
    }

    /// A control group of version 2 was made.
    pub fn group_made(&mut self, id: u64, path: &str) {
        self.groups.made(id, path);
    }

    /// Reads a live process. What cannot be read is absent.
    pub fn surroundings(&self, tgid: u32) -> Surroundings {
        let process = self.proc_root.join(tgid.to_string());
        // It lies in the process's own memory, which may be a file that nobody serves.
        let environ = process.join("environ");
        let owner = path_state(&process.to_string_lossy()).map_or(u32::MAX, |state| state.owner);
        let environ = guarded(Owner::User(owner), move || read(&environ, ENVIRON_LIMIT_BYTES));
        Surroundings {
            named: environ::parse(&environ.unwrap_or_default()),
            listed: self.listed(tgid),
        }
    }

    /// The same, where only the control groups may have changed.
    pub fn moved(&self, before: &Surroundings, tgid: u32) -> Surroundings {
        Surroundings {
            named: before.named.clone(),
            listed: self.listed(tgid),
        }
    }

    fn listed(&self, tgid: u32) -> cgroup::Listed {
        if !self.reads_lists {
            return cgroup::Listed::default();
        }
        let groups = read(
            &self.proc_root.join(tgid.to_string()).join("cgroup"),
            CGROUP_LIMIT_BYTES,
        );
        cgroup::parse(&String::from_utf8_lossy(&groups))
    }

    /// What is not known, because the process or its group is gone or the kernel refuses, is absent; the service is
    /// always there.
    pub fn resolve(&mut self, subject: Subject<'_>) -> Metadata {
        let nothing = Surroundings::default();
        let Surroundings { named, listed } = subject.surroundings.unwrap_or(&nothing);
        let group = self.groups.get(subject.cgroup_id);
        // At the root of version 2, those of version 1 tell where a process is, which nobody has asked of one that was
        // gone too soon.
        let is_untold = self.has_legacy && listed.legacy.is_empty() && !subject.kernel_thread;
        let unified = match &group {
            Group::Path(path) if is_untold && **path == *"/" => None,
            Group::Path(path) => Some(&**path),
            Group::Gone => None,
            Group::Untold => listed.unified.as_deref(),
        };
        // A group that is gone was none at the root; what version 1 says besides would hide that it is not known.
        let legacy: &[String] = if group == Group::Gone { &[] } else { &listed.legacy };
        let cgroup_path = cgroup::best(unified, legacy);
        if subject.kernel_thread {
            let service = KERNEL_SERVICE.into();
            return Metadata {
                service,
                cgroup: cgroup_path.path.into(),
                ..Metadata::default()
            };
        }
        let (container, names) = self.runtimes.look_up(&cgroup_path);
        let id = match container {
            Some(cgroup::Container::Id(id)) => Some(id.as_str()),
            _ => None,
        };
        combine(subject.executable, &cgroup_path, id, named.clone(), names)
    }
}

/// What the process itself says goes before what its surroundings say.
fn combine(
    executable: &str,
    cgroup_path: &cgroup::CgroupPath,
    container_id: Option<&str>,
    named: Named,
    names: runtime::ContainerNames,
) -> Metadata {
    let pod = named.pod.or(names.pod);
    let workload = named
        .workload
        .or_else(|| pod.as_deref().map(|pod| runtime::workload(pod).to_owned()));
    let container_name = named.container.or(names.container);
    // A bare container id or a session's number would name nothing: then the executable says more.
    let unit_service = cgroup_path
        .unit
        .as_deref()
        .and_then(|unit| unit.strip_suffix(".service"));
    let service = named
        .service
        .as_deref()
        .or(workload.as_deref())
        .or(container_name.as_deref())
        .or(unit_service)
        .unwrap_or(executable);
    Metadata {
        service: service.into(),
        version: named.version.map(Into::into),
        image: names.image.map(Into::into),
        cgroup: cgroup_path.path.as_str().into(),
        container_id: container_id.map(Into::into),
        container_name: container_name.map(Into::into),
        pod: pod.map(Into::into),
        namespace: named.namespace.or(names.namespace).map(Into::into),
        workload: workload.map(Into::into),
        unit: cgroup_path.unit.as_deref().map(Into::into),
    }
}

#[cfg(test)]
mod tests;
