//! Labels: the name, the OTLP attribute and the table of each.
//!
//! In: names of labels and attributes. Out: which column of which table has the value. No I/O.

pub mod attribute;

use attribute::AttributeName;
use std::borrow::Cow;

/// The table that has a label's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelTable {
    /// A column of `series`: answered there first.
    Series,
    /// A column of `samples`.
    Samples,
    /// A column of `processes`.
    Processes,
}

/// A label that can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Label {
    /// The machine: `host.name`.
    Node,
    /// What the process works for: `service.name`.
    Service,
    /// Name of the program: `process.executable.name`.
    Process,
    /// Process id: `process.pid`.
    Tgid,
    /// Name of the thread: `thread.name`.
    Thread,
    /// Thread id: `thread.id`.
    Tid,
    /// Logical number of the CPU: `cpu.logical_number`.
    Cpu,
    /// `kernel` where the leaf is a frame of the kernel, else `user`.
    Mode,
    /// Name of the container: `container.name`.
    Container,
    /// Kubernetes pod: `k8s.pod.name`.
    Pod,
    /// Kubernetes namespace: `k8s.namespace.name`.
    Namespace,
    /// What a pod is one of, such as a Deployment: `k8s.workload.name`.
    Workload,
    /// Kubernetes cluster: `k8s.cluster.name`.
    Cluster,
    /// systemd unit: `systemd.unit`.
    Unit,
    /// Path of the control group.
    Cgroup,
    /// What a sender said of itself, by the attribute's name.
    Attribute(AttributeName),
}

impl Label {
    /// Every fixed label, in the order in which they are listed to users.
    pub const ALL: [Label; 15] = [
        Label::Node,
        Label::Service,
        Label::Process,
        Label::Tgid,
        Label::Thread,
        Label::Tid,
        Label::Cpu,
        Label::Mode,
        Label::Container,
        Label::Pod,
        Label::Namespace,
        Label::Workload,
        Label::Cluster,
        Label::Unit,
        Label::Cgroup,
    ];

    /// Its name in selectors.
    pub fn name(&self) -> &str {
        match self {
            Label::Attribute(name) => name.as_str(),
            fixed => fixed.column(),
        }
    }

    /// The column that has its value, of a fixed label of the same name.
    pub const fn column(self) -> &'static str {
        match self {
            Label::Node => "node",
            Label::Service => "service",
            Label::Process => "process",
            Label::Tgid => "tgid",
            Label::Thread => "thread",
            Label::Tid => "tid",
            Label::Cpu => "cpu",
            Label::Mode => "mode",
            Label::Container => "container",
            Label::Pod => "pod",
            Label::Namespace => "namespace",
            Label::Workload => "workload",
            Label::Cluster => "cluster",
            Label::Unit => "unit",
            Label::Cgroup => "cgroup",
            Label::Attribute(_) => "labels",
        }
    }

    /// Its value, of what its column has.
    pub fn value_in(self, column: &str) -> Cow<'_, str> {
        match self {
            Label::Attribute(name) => name.value_in(column),
            _ => Cow::Borrowed(column),
        }
    }

    /// The label of this name; `None` for a word that is none, and is no attribute's name either.
    pub fn parse(name: &str) -> Option<Label> {
        let fixed = Label::ALL.into_iter().find(|label| label.name() == name);
        let of_attribute = || Label::ALL.into_iter().find(|label| label.attribute() == Some(name));
        fixed
            .or_else(of_attribute)
            .or_else(|| attribute::by_label_name(name).map(Label::Attribute))
    }

    /// The table that knows the label's value.
    pub const fn home(self) -> LabelTable {
        match self {
            Label::Tgid => LabelTable::Processes,
            Label::Thread | Label::Tid | Label::Cpu | Label::Mode => LabelTable::Samples,
            Label::Node
            | Label::Service
            | Label::Process
            | Label::Container
            | Label::Pod
            | Label::Namespace
            | Label::Workload
            | Label::Cluster
            | Label::Unit
            | Label::Cgroup
            | Label::Attribute(_) => LabelTable::Series,
        }
    }

    /// The attribute that is this label under another name; none where it can be asked for by its own name alone.
    const fn attribute(self) -> Option<&'static str> {
        Some(match self {
            Label::Node => "host.name",
            Label::Service => "service.name",
            Label::Process => "process.executable.name",
            Label::Tgid => "process.pid",
            Label::Thread => "thread.name",
            Label::Tid => "thread.id",
            Label::Cpu => "cpu.logical_number",
            Label::Container => "container.name",
            Label::Pod => "k8s.pod.name",
            Label::Namespace => "k8s.namespace.name",
            Label::Workload => "k8s.workload.name",
            Label::Cluster => "k8s.cluster.name",
            Label::Unit => "systemd.unit",
            Label::Mode | Label::Cgroup | Label::Attribute(_) => return None,
        })
    }

    /// All names, for messages.
    pub fn names() -> String {
        let names: Vec<&str> = Label::ALL.iter().map(Label::name).collect();
        format!("{}, and attributes such as service.version", names.join(", "))
    }
}

/// The fixed labels that make up a series, in the order of its columns.
pub const OF_SERIES: [Label; 10] = {
    let mut labels = [Label::Node; 10];
    let (mut label, mut of_series) = (0, 0);
    while label < Label::ALL.len() {
        if matches!(Label::ALL[label].home(), LabelTable::Series) {
            labels[of_series] = Label::ALL[label];
            of_series += 1;
        }
        label += 1;
    }
    assert!(of_series == labels.len());
    labels
};

/// Their columns. An absent label is an empty string.
pub const SERIES_LABELS: [&str; OF_SERIES.len()] = {
    let mut names = [""; OF_SERIES.len()];
    let mut label = 0;
    while label < names.len() {
        names[label] = OF_SERIES[label].column();
        label += 1;
    }
    names
};

/// No attribute has the name of a fixed label: [`attribute::FIXED`] has all of them, in the same order.
const _: () = {
    let reserved: [&str; Label::ALL.len()] = attribute::FIXED;
    let mut label = 0;
    while label < reserved.len() {
        assert!(
            is_same(reserved[label], Label::ALL[label].column()),
            "FIXED of label/attribute.rs has other names than Label::ALL, or another order"
        );
        label += 1;
    }
};

const fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_label_is_found_by_its_name_and_by_its_attribute() {
        for label in Label::ALL {
            assert_eq!(Label::parse(label.name()), Some(label));
            if let Some(attribute) = label.attribute() {
                assert_eq!(Label::parse(attribute), Some(label), "{attribute}");
            }
        }
    }

    #[test]
    fn the_columns_of_a_series_are_those_that_files_have() {
        let columns = "node service process container pod namespace workload cluster unit cgroup";
        assert_eq!(SERIES_LABELS.join(" "), columns);
    }
}
