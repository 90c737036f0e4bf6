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
        let known = OF_ATTRIBUTES.iter().find(|(attribute, _)| *attribute == name);
        fixed
            .or(known.map(|(_, label)| *label))
            .or_else(|| attribute::by_label_name(name).map(Label::Attribute))
    }

    /// The table that knows the label's value.
    pub const fn home(self) -> LabelTable {
        match self {
            Label::Tgid => LabelTable::Processes,
            Label::Thread | Label::Tid | Label::Cpu | Label::Mode => LabelTable::Samples,
            _ => LabelTable::Series,
        }
    }

    /// All names, for messages.
    pub fn names() -> String {
        let names: Vec<&str> = Label::ALL.iter().map(Label::name).collect();
        format!("{}, and attributes such as service.version", names.join(", "))
    }
}

/// The fixed labels that make up a series, in the order of its columns. An absent label is an empty string.
pub const SERIES_LABELS: [&str; 10] = {
    let mut names = [""; 10];
    let (mut label, mut of_series) = (0, 0);
    while label < Label::ALL.len() {
        if matches!(Label::ALL[label].home(), LabelTable::Series) {
            names[of_series] = Label::ALL[label].column();
            of_series += 1;
        }
        label += 1;
    }
    assert!(of_series == names.len());
    names
};

/// Attributes that are fixed labels under another name.
const OF_ATTRIBUTES: [(&str, Label); 13] = [
    ("host.name", Label::Node),
    ("service.name", Label::Service),
    ("process.executable.name", Label::Process),
    ("process.pid", Label::Tgid),
    ("thread.name", Label::Thread),
    ("thread.id", Label::Tid),
    ("cpu.logical_number", Label::Cpu),
    ("container.name", Label::Container),
    ("k8s.pod.name", Label::Pod),
    ("k8s.namespace.name", Label::Namespace),
    ("k8s.workload.name", Label::Workload),
    ("k8s.cluster.name", Label::Cluster),
    ("systemd.unit", Label::Unit),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_fixed_labels_are_reserved() {
        assert_eq!(Label::ALL.each_ref().map(Label::name), attribute::FIXED);
    }

    #[test]
    fn the_columns_of_a_series_are_those_that_files_have() {
        let columns = "node service process container pod namespace workload cluster unit cgroup";
        assert_eq!(SERIES_LABELS.join(" "), columns);
    }
}
