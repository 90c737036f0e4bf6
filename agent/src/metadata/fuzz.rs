//! What holds of control groups, environments and the files of container runtimes: containers choose what is in them.

use super::{cgroup, combine, environ, runtime};
use crate::fuzz::Input;

/// One text, taken for each of the files.
pub(crate) fn metadata(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let listed = cgroup::parse(&text);
    let place = cgroup::best(listed.unified.as_deref(), &listed.legacy);
    for container in &place.containers {
        let cgroup::Container::Id(id) = container else {
            continue;
        };
        // It becomes a part of a path.
        assert!(
            !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'),
            "{id:?}"
        );
    }
    assert!(place.path.len() <= text.len());
    let named = environ::parse(bytes);
    let all = [
        &named.service,
        &named.container,
        &named.pod,
        &named.namespace,
        &named.workload,
    ];
    for value in all.into_iter().flatten() {
        assert!((1..=256).contains(&value.chars().count()) && !value.chars().any(char::is_control));
    }
    runtime::check(bytes);
    let mut input = Input(bytes);
    let half = input.bytes(bytes.len() / 2);
    let listed = cgroup::parse(&String::from_utf8_lossy(half));
    let place = cgroup::best(listed.unified.as_deref(), &listed.legacy);
    let metadata = combine(
        "program",
        &place,
        None,
        environ::parse(input.0),
        runtime::ContainerNames::default(),
    );
    assert!(!metadata.service.is_empty());
}
