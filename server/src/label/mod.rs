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
    Node,
    Service,
    Process,
    Tgid,
    Thread,
    Tid,
    Cpu,
    Mode,
    Container,
    Pod,
    Namespace,
    Workload,
    Cluster,
    Unit,
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
    pub fn column(self) -> &'static str {
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
    pub fn home(self) -> LabelTable {
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
}
