//! /proc/PID/cgroup to the paths that say most, and a path to containers and unit. Pure.
//!
//! Containers lie in containers. Whose runtime made which, the path does not say, but the outermost one was made by a
//! runtime of this node, and of those further in, whatever a runtime of this node knows: the caller looks from the
//! inside out ([`CgroupPath::containers`]). What else is in a container (another one, a systemd with units) is the
//! container's own affair, and no unit of the node's.

/// Where a process stands in the tree of control groups.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CgroupPath {
    /// Empty where the kernel has no control groups.
    pub(super) path: String,
    /// The outermost first.
    pub(super) containers: Vec<Container>,
    /// Whether kubelet runs the container.
    pub(super) kubernetes: bool,
    /// The innermost service or scope of the systemd that runs the process. Of a container only where that is a machine
    /// of its own (LXC, systemd-nspawn), whose name stands beside it.
    pub(super) unit: Option<String>,
}

/// One container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Container {
    /// As its runtime prints it: 64 hex digits, or what Amazon's Fargate uses.
    Id(String),
    /// Where the path itself holds it: LXC, systemd-nspawn.
    Name(String),
}

/// What /proc/PID/cgroup says: one line in version 2 (`0::/path`), one a hierarchy in version 1 (`4:memory:/path`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Listed {
    /// Of version 2.
    pub(super) unified: Option<String>,
    /// Of version 1, those first that say most.
    pub(super) legacy: Vec<String>,
}

/// Takes the whole file.
pub(super) fn parse(file: &str) -> Listed {
    let mut listed = Listed::default();
    let mut legacy: Vec<(u8, &str)> = Vec::new();
    for line in file.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        match controllers {
            "" if listed.unified.is_none() => listed.unified = Some(outside(path).into()),
            "" => {}
            // systemd's own names units; resource controllers may all be at their root.
            "name=systemd" => legacy.push((0, outside(path))),
            _ => legacy.push((1, outside(path))),
        }
    }
    legacy.sort_by_key(|(rank, _)| *rank);
    listed.legacy = legacy.into_iter().map(|(_, path)| path.to_owned()).collect();
    listed
}

/// The place that says most: with both versions mounted, a runtime may have put the container into the trees of version
/// 1 only. `unified` is the path in version 2, where there is one.
pub(super) fn best(unified: Option<&str>, legacy: &[String]) -> CgroupPath {
    let places = || {
        unified
            .into_iter()
            .chain(legacy.iter().map(String::as_str))
            .map(cgroup_path)
    };
    places()
        .find(|cgroup_path| !cgroup_path.containers.is_empty())
        .or_else(|| places().find(|cgroup_path| cgroup_path.path != "/"))
        .or_else(|| places().next())
        .unwrap_or_default()
}

/// Without the steps that lead out of the agent's own cgroup namespace.
fn outside(path: &str) -> &str {
    let mut path = path;
    while let Some(rest) = path.strip_prefix("/..") {
        path = rest;
    }
    if path.is_empty() { "/" } else { path }
}

fn cgroup_path(path: &str) -> CgroupPath {
    let mut cgroup_path = CgroupPath {
        path: path.into(),
        ..CgroupPath::default()
    };
    // Of LXC's old layout the second segment is the name.
    let lxc = path.strip_prefix("/lxc/").and_then(|rest| rest.split('/').next());
    let mut in_runtime_container = false;
    for (index, segment) in path.split('/').enumerate() {
        if segment.contains("kubepods") {
            cgroup_path.kubernetes = true;
        }
        if is_monitor(segment) {
            continue;
        }
        let named = match lxc {
            Some(name) if index == 2 && !name.is_empty() => Some(name.to_owned()),
            _ => container_name(segment),
        };
        if let Some(id) = container_id(segment) {
            cgroup_path.containers.push(Container::Id(id.into()));
            // Units further out are those of the host: the runtime's scope, or the runtime itself.
            cgroup_path.unit = None;
            in_runtime_container = true;
        } else if let Some(name) = named {
            cgroup_path.containers.push(Container::Name(name));
            cgroup_path.unit = None;
        } else if is_unit(segment) && !in_runtime_container {
            cgroup_path.unit = Some(segment.into());
        }
    }
    cgroup_path
}

/// The process that watches a container stands beside it, not in it.
fn is_monitor(segment: &str) -> bool {
    segment.starts_with("crio-conmon-") || segment.starts_with("libpod-conmon-")
}

/// `ID`, `RUNTIME-ID.scope` or `POD.slice:RUNTIME:ID`.
fn container_id(segment: &str) -> Option<&str> {
    let segment = segment.strip_suffix(".scope").unwrap_or(segment);
    let hex = |text: &str, length| text.len() == length && text.bytes().all(|b| b.is_ascii_hexdigit());
    let last = segment.rsplit(['-', ':']).next()?;
    if hex(last, 64) {
        return Some(last);
    }
    // Fargate: 32 hex digits, a hyphen, decimal digits.
    let (task, number) = segment.split_once('-')?;
    let digits = (6..=20).contains(&number.len()) && number.bytes().all(|b| b.is_ascii_digit());
    (hex(task, 32) && digits).then_some(segment)
}

fn is_unit(segment: &str) -> bool {
    let name = segment
        .strip_suffix(".service")
        .or_else(|| segment.strip_suffix(".scope"));
    name.is_some_and(|name| !name.is_empty())
}

/// Never an empty one.
fn container_name(segment: &str) -> Option<String> {
    if let Some(name) = segment.strip_prefix("lxc.payload.") {
        return (!name.is_empty()).then(|| name.into());
    }
    let nspawn = segment
        .strip_prefix("machine-")
        .and_then(|rest| rest.strip_suffix(".scope"));
    let nspawn = nspawn.or_else(|| segment.strip_prefix("systemd-nspawn@")?.strip_suffix(".service"));
    nspawn.filter(|name| !name.is_empty()).map(unescape)
}

/// systemd writes a byte that a unit's name cannot hold as `\x` and two hex digits.
fn unescape(name: &str) -> String {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let [first, after @ ..] = rest {
        let escaped = rest
            .strip_prefix(b"\\x")
            .and_then(|hex| std::str::from_utf8(hex.get(..2)?).ok())
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match escaped {
            Some(byte) => {
                bytes.push(byte);
                rest = &rest[4..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "8e3f4c1a5b6d7e8f9a0b1c2d3e4f5a6b7c8d9e0f1a2b3c4d5e6f7a8b9c0d1e2f";

    const INNER: &str = "1111111111111111111111111111111111111111111111111111111111111111";

    fn of_file(file: &str) -> CgroupPath {
        let listed = parse(file);
        best(listed.unified.as_deref(), &listed.legacy)
    }

    fn of(path: &str) -> CgroupPath {
        of_file(&format!("0::{}\n", path.replace("ID", ID).replace("INNER", INNER)))
    }

    fn ids(cgroup_path: &CgroupPath) -> Vec<&str> {
        let containers = cgroup_path.containers.iter().map(|container| match container {
            Container::Id(id) => id.as_str(),
            Container::Name(name) => panic!("{name}"),
        });
        containers.collect()
    }

    fn names(cgroup_path: &CgroupPath) -> Vec<&str> {
        let containers = cgroup_path.containers.iter().map(|container| match container {
            Container::Name(name) => name.as_str(),
            Container::Id(id) => panic!("{id}"),
        });
        containers.collect()
    }

    #[test]
    fn containers_are_found_under_every_runtime() {
        for path in [
            "/docker/ID",
            "/system.slice/docker-ID.scope",
            "/system.slice/nerdctl-ID.scope",
            "/machine.slice/libpod-ID.scope",
            "/machine.slice/libpod-ID.scope/container",
            "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-ID.scope/container",
            "/libpod_parent/libpod-ID",
            "/kubepods/burstable/pod2b7b5d33-8a2a-4f2b-9d5c-0f6f3f1f7a11/ID",
            "/kubepods/pod2b7b5d33-8a2a-4f2b-9d5c-0f6f3f1f7a11/ID",
            "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod2b7b5d33_8a2a_4f2b.slice/cri-containerd-ID.scope",
            "/kubepods.slice/kubepods-pod2b7b5d33_8a2a_4f2b.slice/crio-ID.scope",
            "/kubepods.slice/kubepods-pod2b7b5d33_8a2a_4f2b.slice/docker-ID.scope",
            "/system.slice/containerd.service/kubepods-burstable-pod2b7b5d33_8a2a.slice:cri-containerd:ID",
            "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod2b7b5d33.slice/cri-containerd-ID.scope",
            "/ecs/3bd1a3c2a6e84bd7a4a1a0ed0a3a3f7e/ID",
            "/../../kubepods-pod2b7b5d33.slice/cri-containerd-ID.scope",
        ] {
            let cgroup_path = of(path);
            assert_eq!(ids(&cgroup_path), [ID], "{path}");
            assert_eq!(cgroup_path.unit, None, "{path}");
        }
        assert!(of("/kubepods/besteffort/podx/ID").kubernetes);
        assert!(of("/system.slice/containerd.service/kubepods-burstable-podx.slice:cri-containerd:ID").kubernetes);
        assert!(!of("/docker/ID").kubernetes);
    }

    #[test]
    fn fargate_has_ids_of_its_own() {
        let id = "3bd1a3c2a6e84bd7a4a1a0ed0a3a3f7e-1234567890";
        let path = format!("/ecs/3bd1a3c2a6e84bd7a4a1a0ed0a3a3f7e/{id}");
        assert_eq!(ids(&of(&path)), [id]);
    }

    #[test]
    fn named_containers_keep_their_names() {
        for (path, name, unit) in [
            ("/lxc/web", "web", None),
            (
                "/lxc.payload.web/system.slice/nginx.service",
                "web",
                Some("nginx.service"),
            ),
            (
                "/machine.slice/machine-build\\x2dhost.scope/payload",
                "build-host",
                None,
            ),
            (
                "/machine.slice/systemd-nspawn@deb.service/payload/system.slice/cron.service",
                "deb",
                Some("cron.service"),
            ),
        ] {
            let cgroup_path = of(path);
            assert_eq!(names(&cgroup_path), [name], "{path}");
            assert_eq!(cgroup_path.unit.as_deref(), unit, "{path}");
        }
    }

    #[test]
    fn units_are_the_innermost_ones() {
        for (path, unit) in [
            ("/system.slice/cron.service", Some("cron.service")),
            (
                "/system.slice/system-getty.slice/getty@tty1.service",
                Some("getty@tty1.service"),
            ),
            ("/init.scope", Some("init.scope")),
            ("/user.slice/user-1000.slice/session-3.scope", Some("session-3.scope")),
            (
                "/user.slice/user-1000.slice/user@1000.service/app.slice/dbus.service",
                Some("dbus.service"),
            ),
            (
                "/system.slice/system-postgresql.slice/postgresql@15-main.service",
                Some("postgresql@15-main.service"),
            ),
            ("/user.slice", None),
            ("/", None),
        ] {
            let cgroup_path = of(path);
            assert_eq!(cgroup_path.unit.as_deref(), unit, "{path}");
            assert_eq!(cgroup_path.containers, [], "{path}");
        }
    }

    #[test]
    fn what_is_in_a_container_is_no_unit_of_the_nodes() {
        // Docker in Docker, Kubernetes in Docker, a container in a pod, systemd in a container.
        for path in [
            "/docker/ID/docker/INNER",
            "/system.slice/docker-ID.scope/system.slice/docker-INNER.scope",
            "/docker/ID/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-podx.slice/cri-containerd-INNER.scope",
            "/kubepods/burstable/podx/ID/docker/INNER",
            "/kubepods.slice/kubepods-podx.slice/crio-ID.scope/container/libpod-INNER.scope/container",
        ] {
            let cgroup_path = of(path);
            assert_eq!(
                (ids(&cgroup_path), cgroup_path.unit.as_deref()),
                (vec![ID, INNER], None),
                "{path}"
            );
        }
        for path in [
            "/docker/ID/init.scope",
            "/docker/ID/system.slice/containerd.service",
            "/kubepods/podx/ID/system.slice/nginx.service",
            "/machine.slice/libpod-ID.scope/container/system.slice/sshd.service",
        ] {
            let cgroup_path = of(path);
            assert_eq!(
                (ids(&cgroup_path), cgroup_path.unit.as_deref()),
                (vec![ID], None),
                "{path}"
            );
        }
        let cgroup_path = of("/lxc.payload.web/system.slice/docker-ID.scope");
        let containers = [Container::Name("web".into()), Container::Id(ID.into())];
        assert_eq!((&cgroup_path.containers[..], cgroup_path.unit), (&containers[..], None));
    }

    #[test]
    fn monitors_are_not_in_their_container() {
        for path in [
            "/machine.slice/libpod-conmon-ID.scope",
            "/kubepods.slice/kubepods-podx.slice/crio-conmon-ID.scope",
        ] {
            assert_eq!(of(path).containers, [], "{path}");
        }
    }

    #[test]
    fn of_version_1_the_tree_with_the_container_counts() {
        let file = format!(
            "12:pids:/docker/{ID}\n4:memory:/docker/{ID}\n1:name=systemd:/docker/{ID}\n0::/system.slice/containerd.service\n"
        );
        assert_eq!(ids(&of_file(&file)), [ID]);
        let file = "12:pids:/\n4:memory:/user.slice\n1:name=systemd:/system.slice/ssh.service\n";
        assert_eq!(of_file(file).path, "/system.slice/ssh.service");
        assert_eq!(of_file(file).unit.as_deref(), Some("ssh.service"));
        let file = "3:cpu,cpuacct:/jobs:odd/7\n1:name=systemd:/\n";
        assert_eq!(of_file(file).path, "/jobs:odd/7");
    }

    #[test]
    fn anything_else_is_no_place() {
        for file in ["", "\n", "0", "0:", "garbage\n\n::"] {
            assert_eq!(of_file(file).containers, [], "{file}");
        }
        assert_eq!(of_file(""), CgroupPath::default());
        assert_eq!(of_file("0::/\n").path, "/");
        assert_eq!(of_file("0::/../..\n").path, "/");
        let long_hex = "a".repeat(65);
        assert_eq!(of(&format!("/docker/{long_hex}")).containers, []);
    }
}
