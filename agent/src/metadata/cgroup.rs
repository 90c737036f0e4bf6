//! /proc/PID/cgroup to the path that says most, and the path to container and unit. Pure.

/// Where a process stands in the tree of control groups.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// Empty where the kernel has no control groups.
    pub(super) path: String,
    /// As its runtime prints it: 64 hex digits, or what Amazon's Fargate uses.
    pub(super) container_id: Option<String>,
    /// Where the path itself holds it: LXC, systemd-nspawn.
    pub(super) container_name: Option<String>,
    /// Whether kubelet runs the container.
    pub(super) kubernetes: bool,
    /// The innermost service or scope of the systemd that runs the process: inside a container, the container's.
    pub(super) unit: Option<String>,
}

/// Takes the whole file: one line in version 2 (`0::/path`), one a hierarchy in version 1 (`4:memory:/path`).
pub(super) fn parse(file: &str) -> Place {
    let mut paths: Vec<(u8, &str)> = file
        .lines()
        .filter_map(|line| {
            let mut fields = line.splitn(3, ':');
            let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
            // The unified tree and systemd's own name units; resource controllers may all be at their root.
            let rank = match controllers {
                "" => 0,
                "name=systemd" => 1,
                _ => 2,
            };
            Some((rank, outside(path)))
        })
        .collect();
    paths.sort_by_key(|(rank, _)| *rank);
    // With both versions mounted, a runtime may have put the container into the version 1 trees only.
    let places = || paths.iter().map(|(_, path)| place(path));
    places()
        .find(|place| place.container_id.is_some() || place.container_name.is_some())
        .or_else(|| places().find(|place| place.path != "/"))
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

fn place(path: &str) -> Place {
    let mut place = Place {
        path: path.into(),
        ..Place::default()
    };
    for segment in path.split('/') {
        if segment.contains("kubepods") {
            place.kubernetes = true;
        }
        if is_monitor(segment) {
            continue;
        }
        if let Some(id) = container_id(segment) {
            place.container_id = Some(id.into());
            // Units further out are those of the host: the runtime's scope, or the runtime itself.
            place.unit = None;
        } else if let Some(name) = container_name(segment) {
            place.container_name = Some(name);
            place.unit = None;
        } else if is_unit(segment) {
            place.unit = Some(segment.into());
        }
    }
    let mut segments = path.trim_start_matches('/').split('/');
    if let (Some("lxc"), Some(name)) = (segments.next(), segments.next())
        && !name.is_empty()
    {
        place.container_name = Some(name.into());
    }
    place
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

    fn of(path: &str) -> Place {
        parse(&format!("0::{}\n", path.replace("ID", ID)))
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
            let place = of(path);
            assert_eq!(place.container_id.as_deref(), Some(ID), "{path}");
            assert_eq!(place.unit, None, "{path}");
        }
        assert!(of("/kubepods/besteffort/podx/ID").kubernetes);
        assert!(of("/system.slice/containerd.service/kubepods-burstable-podx.slice:cri-containerd:ID").kubernetes);
        assert!(!of("/docker/ID").kubernetes);
    }

    #[test]
    fn fargate_has_ids_of_its_own() {
        let id = "3bd1a3c2a6e84bd7a4a1a0ed0a3a3f7e-1234567890";
        let path = format!("/ecs/3bd1a3c2a6e84bd7a4a1a0ed0a3a3f7e/{id}");
        assert_eq!(of(&path).container_id.as_deref(), Some(id));
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
            let place = of(path);
            assert_eq!(place.container_name.as_deref(), Some(name), "{path}");
            assert_eq!(place.unit.as_deref(), unit, "{path}");
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
            let place = of(path);
            assert_eq!(place.unit.as_deref(), unit, "{path}");
            assert_eq!((place.container_id, place.container_name), (None, None), "{path}");
        }
    }

    #[test]
    fn monitors_are_not_in_their_container() {
        assert_eq!(of("/machine.slice/libpod-conmon-ID.scope").container_id, None);
        assert_eq!(
            of("/kubepods.slice/kubepods-podx.slice/crio-conmon-ID.scope").container_id,
            None
        );
    }

    #[test]
    fn of_version_1_the_tree_with_the_container_counts() {
        let file = format!(
            "12:pids:/docker/{ID}\n4:memory:/docker/{ID}\n1:name=systemd:/docker/{ID}\n0::/system.slice/containerd.service\n"
        );
        assert_eq!(parse(&file).container_id.as_deref(), Some(ID));
        let file = "12:pids:/\n4:memory:/user.slice\n1:name=systemd:/system.slice/ssh.service\n";
        assert_eq!(parse(file).path, "/system.slice/ssh.service");
        assert_eq!(parse(file).unit.as_deref(), Some("ssh.service"));
        let file = "3:cpu,cpuacct:/jobs:odd/7\n1:name=systemd:/\n";
        assert_eq!(parse(file).path, "/jobs:odd/7");
    }

    #[test]
    fn anything_else_is_no_place() {
        for file in ["", "\n", "0", "0:", "garbage\n\n::"] {
            assert_eq!(parse(file).container_id, None, "{file}");
        }
        assert_eq!(parse(""), Place::default());
        assert_eq!(parse("0::/\n").path, "/");
        assert_eq!(parse("0::/../..\n").path, "/");
        let long_hex = "a".repeat(65);
        assert_eq!(of(&format!("/docker/{long_hex}")).container_id, None);
    }
}
