//! Labels of places that are laid out as runtimes do, and of this process.

use super::*;

const ID: &str = "8e3f4c1a5b6d7e8f9a0b1c2d3e4f5a6b7c8d9e0f1a2b3c4d5e6f7a8b9c0d1e2f";
const INNER: &str = "1111111111111111111111111111111111111111111111111111111111111111";

fn resolver() -> (Resolver, tempfile::TempDir) {
    let root = tempfile::TempDir::new().unwrap();
    (Resolver::at(&root.path().join("proc"), root.path()), root)
}

fn at(resolver: &mut Resolver, path: &str, surroundings: Option<&Surroundings>) -> Metadata {
    resolver.group_made(7, path);
    resolver.resolve(Subject {
        executable: "app",
        kernel_thread: false,
        cgroup_id: 7,
        surroundings,
    })
}

/// Of the fuzz target: a container that is called nothing named its service so.
#[test]
fn an_empty_name_names_no_service() {
    let (mut resolver, _root) = resolver();
    for path in ["/lxc.payload.", "/machine-.scope", "/.service", "/.scope", "/lxc/"] {
        let metadata = at(&mut resolver, path, None);
        assert_eq!((&*metadata.service, metadata.container_name), ("app", None), "{path}");
    }
}

#[test]
fn a_service_is_named_by_the_nearest_source() {
    let scope = format!("/system.slice/docker-{ID}.scope");
    let service = |path: &str, named: Named, known: runtime::ContainerNames| {
        let place = cgroup::best(Some(path), &[]);
        combine("app", &place, None, named, known).service.to_string()
    };
    let text = |text: &str| Some(text.to_owned());
    let named = Named {
        service: text("shop"),
        ..Named::default()
    };
    let pod = runtime::ContainerNames {
        pod: text("web-7d4b9c6f5-x2x4z"),
        container: text("nginx"),
        ..Default::default()
    };
    let container = runtime::ContainerNames {
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

/// Container, its name and unit: of containers in containers the innermost that a runtime of this node knows, else the
/// outermost.
#[test]
fn of_nested_containers_the_one_counts_that_this_node_made() {
    let (mut resolver, root) = resolver();
    let know = |id: &str, name: &str| {
        let folder = root.path().join("var/lib/docker/containers").join(id);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("config.v2.json"), format!(r#"{{"Name":"/{name}"}}"#)).unwrap();
    };
    let mut labels = |path: &str| {
        let metadata = at(&mut resolver, &path.replace("ID", ID).replace("INNER", INNER), None);
        let text = |label: Option<Arc<str>>| label.as_deref().unwrap_or("").to_owned();
        [metadata.container_id, metadata.container_name, metadata.unit].map(text)
    };
    let kind = "/docker/ID/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-podx.slice/cri-containerd-INNER.scope";
    for path in ["/docker/ID/docker/INNER", kind, "/docker/ID/init.scope"] {
        assert_eq!(labels(path), [ID, "", ""], "nobody knows either: {path}");
    }
    know(ID, "outer");
    for path in ["/docker/ID/docker/INNER", kind, "/docker/ID/system.slice/cron.service"] {
        assert_eq!(labels(path), [ID, "outer", ""], "{path}");
    }
    know(INNER, "inner");
    assert_eq!(
        labels("/docker/ID/docker/INNER"),
        [INNER, "inner", ""],
        "made by this node in another's group"
    );
    let machine = "/lxc.payload.web/system.slice/nginx.service";
    assert_eq!(labels(machine), ["", "web", "nginx.service"]);
    let unknown = "/lxc.payload.web/docker/2222222222222222222222222222222222222222222222222222222222222222";
    assert_eq!(labels(unknown), ["", "web", ""]);
}

#[test]
fn the_group_of_the_moment_counts_and_what_is_gone_is_unknown() {
    let (mut resolver, _root) = resolver();
    let surroundings = Surroundings {
        listed: cgroup::parse("4:memory:/now\n0::/now\n"),
        ..Surroundings::default()
    };
    assert_eq!(
        &*at(&mut resolver, "/then/a.service", Some(&surroundings)).cgroup,
        "/then/a.service"
    );
    let legacy = Surroundings {
        listed: cgroup::parse(&format!("1:name=systemd:/docker/{ID}\n0::/\n")),
        ..Surroundings::default()
    };
    let metadata = at(&mut resolver, "/system.slice/containerd.service", Some(&legacy));
    assert_eq!(
        metadata.container_id.as_deref(),
        Some(ID),
        "version 1 alone has the container"
    );
    // This resolver cannot look a number up: what the process's own list says is the best there is.
    let mut untold = |cgroup_id, surroundings| {
        let subject = Subject {
            executable: "app",
            kernel_thread: false,
            cgroup_id,
            surroundings,
        };
        resolver.resolve(subject).cgroup.to_string()
    };
    assert_eq!(untold(99, Some(&surroundings)), "/now");
    assert_eq!(untold(99, None), "");
    // At the root of version 2 those of version 1 tell, where there are any; of who was gone too soon nobody knows.
    assert_eq!(&*at(&mut resolver, "/", None).cgroup, "/");
    resolver.has_legacy = true;
    assert_eq!(&*at(&mut resolver, "/", None).cgroup, "");
    assert_eq!(&*at(&mut resolver, "/", Some(&surroundings)).cgroup, "/now");
}

#[test]
fn this_process_and_one_that_is_gone_have_a_service() {
    let mut resolver = Resolver::default();
    let surroundings = resolver.surroundings(std::process::id());
    let subject = Subject {
        executable: "itself",
        kernel_thread: false,
        cgroup_id: 0,
        surroundings: Some(&surroundings),
    };
    assert!(!resolver.resolve(subject).service.is_empty());
    let gone = resolver.surroundings(u32::MAX);
    assert_eq!(gone, Surroundings::default());
    let gone = resolver.resolve(Subject {
        executable: "gone",
        surroundings: None,
        ..subject
    });
    assert_eq!((&*gone.service, &*gone.cgroup), ("gone", ""));
    let kernel = resolver.resolve(Subject {
        executable: "kthreadd",
        kernel_thread: true,
        ..subject
    });
    assert_eq!(&*kernel.service, KERNEL_SERVICE);
}
