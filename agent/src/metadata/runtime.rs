//! Names of containers and pods from what the runtimes keep on the disk: kubelet's log folder, Docker's and Podman's
//! state.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::cgroup::{CgroupPath, Container};
use super::small_files::read;

const CONFIG_LIMIT_BYTES: u64 = 1 << 20;
const LIST_LIMIT_BYTES: u64 = 8 << 20;
/// kubelet runs a few hundred containers on a node at most.
const LOGS_LIMIT: usize = 8192;
/// An unknown container makes the list be read again, but not more often than this.
const REREAD_AFTER: Duration = Duration::from_secs(5);

/// What a runtime knows of a container.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ContainerNames {
    pub(super) container: Option<String>,
    pub(super) pod: Option<String>,
    pub(super) namespace: Option<String>,
    /// The image with its tag, as it was asked for.
    pub(super) image: Option<String>,
}

#[derive(Debug)]
pub(super) struct ContainerRuntimes {
    kubelet_logs: PathBuf,
    docker: PathBuf,
    podman: PathBuf,
    kubernetes: Listed,
    podman_names: Listed,
}

/// By container id, as of the last reading.
#[derive(Debug, Default)]
struct Listed {
    by_id: HashMap<String, ContainerNames>,
    read_at: Option<Instant>,
}

impl Listed {
    fn get(&mut self, id: &str, list: impl FnOnce() -> HashMap<String, ContainerNames>) -> Option<ContainerNames> {
        if !self.by_id.contains_key(id) && self.read_at.is_none_or(|at| at.elapsed() >= REREAD_AFTER) {
            self.by_id = list();
            self.read_at = Some(Instant::now());
        }
        self.by_id.get(id).cloned()
    }
}

impl ContainerRuntimes {
    pub(super) fn below(host_root: &Path) -> Self {
        Self {
            kubelet_logs: host_root.join("var/log/containers"),
            docker: host_root.join("var/lib/docker/containers"),
            podman: host_root.join("var/lib/containers/storage/overlay-containers/containers.json"),
            kubernetes: Listed::default(),
            podman_names: Listed::default(),
        }
    }

    /// The container that the place is in, as a runtime of this node has it, and what that knows of it: of several
    /// within each other the innermost that is known, else the outermost, which nobody but a runtime of this node can
    /// have made.
    pub(super) fn look_up<'a>(&mut self, cgroup_path: &'a CgroupPath) -> (Option<&'a Container>, ContainerNames) {
        for container in cgroup_path.containers.iter().rev() {
            if let Container::Id(id) = container {
                let names = self.names(id, cgroup_path);
                if names.container.is_some() {
                    return (Some(container), names);
                }
            }
        }
        let outermost = cgroup_path.containers.first();
        let container = outermost.and_then(|container| match container {
            Container::Name(name) => Some(name.clone()),
            Container::Id(_) => None,
        });
        let names = ContainerNames {
            container,
            ..ContainerNames::default()
        };
        (outermost, names)
    }

    fn names(&mut self, id: &str, cgroup_path: &CgroupPath) -> ContainerNames {
        if cgroup_path.kubernetes
            && let Some(names) = self.kubernetes.get(id, || kubelet_logs(&self.kubelet_logs))
        {
            return names;
        }
        if cgroup_path.path.contains("libpod") {
            let list = || podman_list(&read(&self.podman, LIST_LIMIT_BYTES));
            if let Some(names) = self.podman_names.get(id, list) {
                return names;
            }
        }
        // The id is hex digits: it leads nowhere else.
        docker_config(&read(&self.docker.join(id).join("config.v2.json"), CONFIG_LIMIT_BYTES))
    }
}

fn kubelet_logs(folder: &Path) -> HashMap<String, ContainerNames> {
    let Ok(files) = std::fs::read_dir(folder) else {
        return HashMap::new();
    };
    files
        .flatten()
        .take(LOGS_LIMIT)
        .filter_map(|file| log_name(file.file_name().to_str()?))
        .collect()
}

/// An empty name names nothing.
fn named(name: &str) -> Option<String> {
    (!name.is_empty()).then(|| name.to_owned())
}

/// `POD_NAMESPACE_CONTAINER-ID.log`, as kubelet links the log of each container. None of the names can hold `_`.
fn log_name(name: &str) -> Option<(String, ContainerNames)> {
    let (names, id) = name.strip_suffix(".log")?.rsplit_once('-')?;
    let mut names = names.split('_').map(named);
    let (pod, namespace, container) = (names.next()??, names.next()??, names.next()??);
    Some((
        id.into(),
        ContainerNames {
            container: Some(container),
            pod: Some(pod),
            namespace: Some(namespace),
            image: None,
        },
    ))
}

#[derive(Deserialize)]
struct DockerConfig {
    #[serde(rename = "Name")]
    name: String,
    #[serde(rename = "Config", default)]
    config: DockerOptions,
}

#[derive(Default, Deserialize)]
struct DockerOptions {
    #[serde(rename = "Image", default)]
    image: String,
}

/// An image that was asked for by a name; one that was asked for by its digest alone says no more than that.
fn image(name: &str) -> Option<String> {
    let is_digest = name.starts_with("sha256:") || name.len() >= 64 && name.bytes().all(|b| b.is_ascii_hexdigit());
    named(name).filter(|_| !is_digest)
}

fn docker_config(json: &[u8]) -> ContainerNames {
    let config = serde_json::from_slice::<DockerConfig>(json).ok();
    ContainerNames {
        image: config.as_ref().and_then(|config| image(&config.config.image)),
        container: config.and_then(|config| named(config.name.trim_start_matches('/'))),
        ..ContainerNames::default()
    }
}

#[derive(Deserialize)]
struct PodmanContainer {
    id: String,
    #[serde(default)]
    names: Vec<String>,
    /// JSON again.
    #[serde(default)]
    metadata: String,
}

#[derive(Deserialize)]
struct PodmanMetadata {
    #[serde(rename = "image-name", default)]
    image: String,
}

fn podman_list(json: &[u8]) -> HashMap<String, ContainerNames> {
    let containers: Vec<PodmanContainer> = serde_json::from_slice(json).unwrap_or_default();
    let names = |container: PodmanContainer| {
        let name = container.names.first().and_then(|name| named(name));
        let metadata = serde_json::from_str::<PodmanMetadata>(&container.metadata).ok();
        (
            container.id,
            ContainerNames {
                container: name,
                image: metadata.and_then(|metadata| image(&metadata.image)),
                ..ContainerNames::default()
            },
        )
    };
    containers.into_iter().map(names).collect()
}

/// Holds of every file and name.
#[cfg(any(test, fuzzing))]
pub(super) fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Some((id, names)) = log_name(&text) {
        assert!(text.contains(&id));
        let names = [names.container, names.pod, names.namespace];
        assert!(names.into_iter().all(|name| name.is_some_and(|name| !name.is_empty())));
    }
    let listed = podman_list(bytes);
    assert!(listed.len() <= bytes.len());
    let mut names = listed.into_values().chain([docker_config(bytes)]);
    assert!(names.all(|names| names.container.is_none_or(|name| !name.is_empty())));
    let owner = workload(&text);
    assert!(text.starts_with(owner) && owner.is_empty() == text.is_empty());
}

/// The pod's owner by Kubernetes' rules for names: a replica set adds a hash of the template and five random
/// characters, a daemon set or job five random characters, a stateful set a number, a cron job its minute. Hashes and
/// random characters are of an alphabet without vowels and without 0, 1 and 3 (k8s.io/apimachinery/pkg/util/rand).
pub(super) fn workload(pod: &str) -> &str {
    let safe = |text: &str| text.bytes().all(|b| b"bcdfghjklmnpqrstvwxz2456789".contains(&b));
    let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let Some((owner, suffix)) = pod.rsplit_once('-').filter(|(owner, _)| !owner.is_empty()) else {
        return pod;
    };
    if suffix.len() == 5 && safe(suffix) {
        return match owner.rsplit_once('-') {
            Some((deployment, hash)) if !deployment.is_empty() && (6..=10).contains(&hash.len()) && safe(hash) => {
                deployment
            }
            Some((cron_job, minute)) if !cron_job.is_empty() && minute.len() == 8 && number(minute) => cron_job,
            _ => owner,
        };
    }
    if number(suffix) { owner } else { pod }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubelet_log_names_hold_all_names() {
        let (id, names) = log_name("web-7d4b9c6f5-x2x4z_prod_nginx-sidecar-abc123.log").unwrap();
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(id, "abc123");
        let expected = ContainerNames {
            container: text("nginx-sidecar"),
            pod: text("web-7d4b9c6f5-x2x4z"),
            namespace: text("prod"),
            image: None,
        };
        assert_eq!(names, expected);
        for other in ["", "x.log", "a_b-c.log", "a_b_c-d.txt"] {
            assert!(log_name(other).is_none(), "{other}");
        }
    }

    #[test]
    fn docker_and_podman_names_are_read() {
        assert_eq!(
            docker_config(br#"{"ID":"x","Name":"/db","Config":{}}"#)
                .container
                .as_deref(),
            Some("db")
        );
        let image = |json: &str| docker_config(json.as_bytes()).image;
        assert_eq!(
            image(r#"{"Name":"/db","Config":{"Image":"postgres:16.2"}}"#).as_deref(),
            Some("postgres:16.2")
        );
        assert_eq!(image(r#"{"Name":"/db","Config":{"Image":"sha256:00ff"}}"#), None);
        assert_eq!(image(r#"{"Name":"/db"}"#), None);
        assert_eq!(docker_config(b"{"), ContainerNames::default());
        let list = podman_list(
            br#"[{"id":"a1","names":["cache"],"layer":"x","metadata":"{\"image-name\":\"docker.io/redis:7\"}"},{"id":"b2"}]"#,
        );
        assert_eq!(list["a1"].image.as_deref(), Some("docker.io/redis:7"));
        assert_eq!(list["b2"].image, None);
        assert_eq!(list["a1"].container.as_deref(), Some("cache"));
        assert_eq!(list["b2"].container, None);
        assert!(podman_list(b"nothing").is_empty());
    }

    #[test]
    fn empty_names_are_none() {
        assert_eq!(log_name("web_shop_-8e3f.log"), None);
        assert_eq!(log_name("_shop_nginx-8e3f.log"), None);
        assert_eq!(
            podman_list(br#"[{"id":"a","names":[""]}]"#)["a"],
            ContainerNames::default()
        );
    }

    #[test]
    fn owners_are_told_from_pods() {
        for (pod, owner) in [
            ("web-7d4b9c6f5-x2x4z", "web"),
            ("kube-proxy-x2x4z", "kube-proxy"),
            ("db-0", "db"),
            ("db-12", "db"),
            ("backup-28930140-x2x4z", "backup"),
            ("etcd", "etcd"),
            ("kube-apiserver-node1", "kube-apiserver-node1"),
            ("-x2x4z", "-x2x4z"),
            ("", ""),
        ] {
            assert_eq!(workload(pod), owner, "{pod}");
        }
    }

    #[test]
    fn an_unknown_container_does_not_make_every_look_up_read() {
        let mut listed = Listed::default();
        let mut readings = 0;
        for _ in 0..3 {
            let found = listed.get("a", || {
                readings += 1;
                HashMap::new()
            });
            assert_eq!(found, None);
        }
        assert_eq!(readings, 1);
    }
}
