//! Metadata of real processes, and of folders laid out as the container runtimes do.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use stakeout_agent::metadata::{Resolver, Subject};
use tempfile::TempDir;

const ID: &str = "8e3f4c1a5b6d7e8f9a0b1c2d3e4f5a6b7c8d9e0f1a2b3c4d5e6f7a8b9c0d1e2f";

/// Ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// The number of the control group of this process, which its children share; 0 without version 2.
fn own_group() -> u64 {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let mount = mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        fields.next().filter(|_| fields.next() == Some("cgroup2"))
    });
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    let path = groups.lines().find_map(|line| line.strip_prefix("0::/"));
    let folder = mount.zip(path).map(|(mount, path)| Path::new(mount).join(path));
    folder
        .and_then(|folder| std::fs::metadata(folder).ok())
        .map_or(0, |folder| folder.ino())
}

#[test]
fn a_running_process_is_named_by_its_environment() {
    let mut command = Command::new("sleep");
    command
        .arg("600")
        .env("OTEL_RESOURCE_ATTRIBUTES", "service.name=shop,k8s.namespace.name=prod");
    let child = Running(command.spawn().unwrap());
    // The new program is there a moment before its environment is.
    let deadline = Instant::now() + Duration::from_secs(60);
    while std::fs::read(format!("/proc/{}/environ", child.0.id()))
        .unwrap()
        .is_empty()
    {
        assert!(Instant::now() < deadline, "no environment");
        std::thread::yield_now();
    }
    let mut resolver = Resolver::default();
    let surroundings = resolver.surroundings(child.0.id());
    let metadata = resolver.resolve(Subject {
        executable: "sleep",
        kernel_thread: false,
        cgroup_id: own_group(),
        surroundings: Some(&surroundings),
    });
    assert_eq!(&*metadata.service, "shop");
    assert_eq!(metadata.namespace.as_deref(), Some("prod"));
    let line = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    assert!(line.contains(&*metadata.cgroup), "{line} {}", metadata.cgroup);
}

#[test]
fn pods_and_containers_are_named_by_what_their_runtimes_keep() {
    let root = TempDir::new().unwrap();
    let group = |tgid: u32, path: String| {
        write(
            &root.path().join(format!("proc/{tgid}/cgroup")),
            &format!("0::{path}\n"),
        )
    };
    group(
        1,
        format!("/kubepods.slice/kubepods-pod12.slice/cri-containerd-{ID}.scope"),
    );
    group(2, format!("/system.slice/docker-{}.scope", ID.replace('8', "9")));
    group(3, format!("/machine.slice/libpod-{}.scope", ID.replace('8', "7")));
    write(
        &root
            .path()
            .join(format!("var/log/containers/web-7d4b9c6f5-x2x4z_prod_nginx-{ID}.log")),
        "",
    );
    let docker = root.path().join("var/lib/docker/containers").join(ID.replace('8', "9"));
    write(&docker.join("config.v2.json"), r#"{"Name":"/db"}"#);
    let podman = root
        .path()
        .join("var/lib/containers/storage/overlay-containers/containers.json");
    write(
        &podman,
        &format!(r#"[{{"id":"{}","names":["cache"]}}]"#, ID.replace('8', "7")),
    );

    let mut resolver = Resolver::at(&root.path().join("proc"), root.path());
    let mut resolve = |tgid| {
        let surroundings = resolver.surroundings(tgid);
        resolver.resolve(Subject {
            executable: "x",
            kernel_thread: false,
            cgroup_id: 0,
            surroundings: Some(&surroundings),
        })
    };
    let pod = resolve(1);
    assert_eq!(&*pod.service, "web");
    assert_eq!(pod.pod.as_deref(), Some("web-7d4b9c6f5-x2x4z"));
    assert_eq!(pod.namespace.as_deref(), Some("prod"));
    assert_eq!(pod.workload.as_deref(), Some("web"));
    assert_eq!(pod.container_name.as_deref(), Some("nginx"));
    assert_eq!(pod.container_id.as_deref(), Some(ID));
    assert_eq!(
        (&*resolve(2).service, resolve(2).container_name.as_deref()),
        ("db", Some("db"))
    );
    assert_eq!(&*resolve(3).service, "cache");
}
