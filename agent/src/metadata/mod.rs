//! Who a process works for: cgroup path, environment and files of the container runtimes to service, container, pod and unit.
//!
//! In: a process's tgid and executable. Out: [`Metadata`]. Reads /proc and what kubelet, Docker and Podman keep on the disk, every
//! file up to a bound; never the network, and of the environment only the two variables that name a service.

mod cgroup;
mod environ;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod runtime;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::environ::Named;
use self::runtime::Runtimes;
use crate::kernel::path_state;
use crate::process::{Owner, guarded};

/// The service of everything that the kernel does on its own account.
pub const KERNEL_SERVICE: &str = "[kernel]";

const CGROUP_LIMIT_BYTES: u64 = 64 << 10;
const ENVIRON_LIMIT_BYTES: u64 = 256 << 10;

/// Labels of one process, all optional but the service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Metadata {
    /// OTEL_SERVICE_NAME, else workload or container, else systemd unit, else executable.
    pub service: Arc<str>,
    pub cgroup: Arc<str>,
    pub container_id: Option<Arc<str>>,
    pub container_name: Option<Arc<str>>,
    pub pod: Option<Arc<str>>,
    pub namespace: Option<Arc<str>>,
    pub workload: Option<Arc<str>>,
    pub unit: Option<Arc<str>>,
}

/// The process to resolve.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    pub tgid: u32,
    /// Base name of the executable.
    pub executable: &'a str,
    pub kernel_thread: bool,
}

/// Resolves processes; the caller keeps the answers, one for each process and exec.
#[derive(Debug)]
pub struct Resolver {
    proc_root: PathBuf,
    runtimes: Runtimes,
}

impl Default for Resolver {
    fn default() -> Self {
        Self::at(Path::new("/proc"), Path::new("/"))
    }
}

impl Resolver {
    /// Reads processes below `proc_root` and the container runtimes' files below `host_root` instead of the machine's own.
    pub fn at(proc_root: &Path, host_root: &Path) -> Self {
        Self {
            proc_root: proc_root.into(),
            runtimes: Runtimes::below(host_root),
        }
    }

    /// What cannot be read, because the process has ended or the kernel refuses, is absent; the service is always there.
    pub fn resolve(&mut self, subject: Subject<'_>) -> Metadata {
        let process = self.proc_root.join(subject.tgid.to_string());
        let groups = read(&process.join("cgroup"), CGROUP_LIMIT_BYTES);
        let place = cgroup::parse(&String::from_utf8_lossy(&groups));
        if subject.kernel_thread {
            let service = KERNEL_SERVICE.into();
            return Metadata {
                service,
                cgroup: place.path.into(),
                ..Metadata::default()
            };
        }
        // It lies in the process's own memory, which may be a file that nobody serves.
        let environ = process.join("environ");
        let owner = path_state(&process.to_string_lossy()).map_or(u32::MAX, |state| state.owner);
        let environ = guarded(Owner::User(owner), move || read(&environ, ENVIRON_LIMIT_BYTES));
        let named = environ::parse(&environ.unwrap_or_default());
        let known = self.runtimes.look_up(&place);
        combine(subject.executable, place, named, known)
    }
}

/// What the process itself says goes before what its surroundings say.
fn combine(executable: &str, place: cgroup::Place, named: Named, known: runtime::Known) -> Metadata {
    let pod = named.pod.or(known.pod);
    let workload = named
        .workload
        .or_else(|| pod.as_deref().map(|pod| runtime::workload(pod).to_owned()));
    let container_name = named.container.or(known.container).or(place.container_name);
    // A bare container id or a session's number would name nothing: then the executable says more.
    let unit_service = place.unit.as_deref().and_then(|unit| unit.strip_suffix(".service"));
    let service = named
        .service
        .as_deref()
        .or(workload.as_deref())
        .or(container_name.as_deref())
        .or(unit_service)
        .unwrap_or(executable);
    Metadata {
        service: service.into(),
        cgroup: place.path.into(),
        container_id: place.container_id.map(Into::into),
        container_name: container_name.map(Into::into),
        pod: pod.map(Into::into),
        namespace: named.namespace.or(known.namespace).map(Into::into),
        workload: workload.map(Into::into),
        unit: place.unit.map(Into::into),
    }
}

/// Most files are smaller.
const USUAL_BYTES: usize = 8 * 1024;

/// The first `limit` bytes of a file; nothing when it cannot be read.
fn read(path: &Path, limit: u64) -> Vec<u8> {
    // With nothing to begin with it would be read in ever larger pieces, and the kernel looks into the process's memory for each.
    let mut bytes = Vec::with_capacity(USUAL_BYTES);
    if let Ok(file) = File::open(path) {
        // /proc fails in the middle when the process ends: what came before is as good as any.
        let _ = file.take(limit).read_to_end(&mut bytes);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(path: &str) -> cgroup::Place {
        cgroup::parse(&format!("0::{path}\n"))
    }

    const ID: &str = "8e3f4c1a5b6d7e8f9a0b1c2d3e4f5a6b7c8d9e0f1a2b3c4d5e6f7a8b9c0d1e2f";

    /// Of the fuzz target: a container that is called nothing named its service so.
    #[test]
    fn an_empty_name_names_no_service() {
        for path in ["/lxc.payload.", "/machine-.scope", "/.service", "/.scope"] {
            let metadata = combine("app", place(path), Named::default(), Default::default());
            assert_eq!((&*metadata.service, metadata.container_name), ("app", None), "{path}");
        }
    }

    #[test]
    fn a_service_is_named_by_the_nearest_source() {
        let scope = format!("/system.slice/docker-{ID}.scope");
        let service = |path: &str, named: Named, known: runtime::Known| {
            combine("app", place(path), named, known).service.to_string()
        };
        let text = |text: &str| Some(text.to_owned());
        let named = Named {
            service: text("shop"),
            ..Named::default()
        };
        let pod = runtime::Known {
            pod: text("web-7d4b9c6f5-x2x4z"),
            container: text("nginx"),
            ..Default::default()
        };
        let container = runtime::Known {
            container: text("db"),
            ..Default::default()
        };
        assert_eq!(service(&scope, named, pod.clone()), "shop");
        assert_eq!(service(&scope, Named::default(), pod), "web");
        assert_eq!(service(&scope, Named::default(), container), "db");
        assert_eq!(service(&scope, Named::default(), Default::default()), "app");
        assert_eq!(
            service("/system.slice/cron.service", Named::default(), Default::default()),
            "cron"
        );
        let session = "/user.slice/user-1000.slice/session-3.scope";
        assert_eq!(service(session, Named::default(), Default::default()), "app");
        assert_eq!(service("/", Named::default(), Default::default()), "app");
    }

    #[test]
    fn this_process_and_one_that_is_gone_have_a_service() {
        let mut resolver = Resolver::default();
        let subject = Subject {
            tgid: std::process::id(),
            executable: "itself",
            kernel_thread: false,
        };
        assert!(!resolver.resolve(subject).service.is_empty());
        let gone = resolver.resolve(Subject {
            tgid: u32::MAX,
            executable: "gone",
            kernel_thread: false,
        });
        assert_eq!(
            gone,
            Metadata {
                service: "gone".into(),
                ..Metadata::default()
            }
        );
        let kernel = resolver.resolve(Subject {
            tgid: 2,
            executable: "kthreadd",
            kernel_thread: true,
        });
        assert_eq!(&*kernel.service, KERNEL_SERVICE);
    }
}
