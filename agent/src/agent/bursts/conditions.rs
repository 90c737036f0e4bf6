//! Of which processes and threads a burst is, by their labels.
//!
//! In: an order's conditions. Out: what a program has to be, which this thread looks for; and which threads, which the
//! kernel side tells at each tick.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::kernel::{Chosen, ChosenThreads, MAX_BURST_THREADS, NAME_BYTES};
use crate::metadata::Metadata;
use crate::process::Program;
use crate::ship::{BurstCondition, BurstOrder};

/// Labels that a burst can be of.
pub const BURST_LABELS: [&str; 14] = [
    "service",
    "process",
    "tgid",
    THREAD,
    TID,
    "container",
    "pod",
    "namespace",
    "workload",
    "unit",
    "cgroup",
    VERSION,
    "service.version",
    "container.image.name",
];

const THREAD: &str = "thread";
const TID: &str = "tid";
const VERSION: &str = "version";

/// So many digits of a build id are a version.
const BUILD_ID_DIGITS: usize = 12;

/// What an order is of.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Conditions {
    /// Of programs.
    of_programs: Vec<BurstCondition>,
    pub(super) threads: ChosenThreads,
}

impl Conditions {
    /// Or why there are none such.
    pub(super) fn of(order: &BurstOrder) -> Result<Self, String> {
        let mut all = order.conditions.clone();
        for (label, value) in [("service", &order.service), ("process", &order.process)] {
            if !value.is_empty() {
                all.push(BurstCondition {
                    label: label.to_owned(),
                    values: vec![value.clone()],
                    not: false,
                });
            }
        }
        if let Some(unknown) = all.iter().find(|condition| !BURST_LABELS.contains(&&*condition.label)) {
            return Err(format!(
                "a burst is not of a `{}` there, but of {}",
                unknown.label,
                BURST_LABELS.join(", ")
            ));
        }
        let threads = ChosenThreads {
            names: chosen(&all, THREAD, |value| {
                let mut name = [0; NAME_BYTES];
                let room = name.get_mut(..value.len()).filter(|room| room.len() < NAME_BYTES);
                room.ok_or_else(|| format!("a thread's name has at most {} bytes: `{value}`", NAME_BYTES - 1))?
                    .copy_from_slice(value.as_bytes());
                Ok(name)
            })?,
            tids: chosen(&all, TID, |value| {
                value.parse::<u32>().map_err(|_| format!("`{value}` is no thread's id"))
            })?,
        };
        all.retain(|condition| condition.label != THREAD && condition.label != TID);
        Ok(Self {
            of_programs: all,
            threads,
        })
    }

    /// Whether programs are told apart.
    pub(super) fn are_of_programs(&self) -> bool {
        !self.of_programs.is_empty()
    }

    /// Whether it is of this program.
    pub(super) fn meets(&self, program: &Program) -> bool {
        let is_met = |condition: &BurstCondition| {
            let value = value(program, &condition.label);
            condition.values.iter().any(|wanted| **wanted == *value) != condition.not
        };
        self.of_programs.iter().all(is_met)
    }
}

/// All conditions on one label as one.
fn chosen<Key: Ord>(
    all: &[BurstCondition],
    label: &str,
    read: impl Fn(&str) -> Result<Key, String>,
) -> Result<Chosen<Key>, String> {
    let (mut these, mut others): (Option<BTreeSet<Key>>, BTreeSet<Key>) = (None, BTreeSet::new());
    for condition in all.iter().filter(|condition| condition.label == label) {
        let keys: BTreeSet<Key> = condition
            .values
            .iter()
            .map(|value| read(value))
            .collect::<Result<_, _>>()?;
        match &mut these {
            _ if condition.not => others.extend(keys),
            Some(these) => these.retain(|key| keys.contains(key)),
            None => these = Some(keys),
        }
    }
    let chosen = match these {
        Some(mut these) => {
            these.retain(|key| !others.contains(key));
            Chosen::These(these)
        }
        None if others.is_empty() => return Ok(Chosen::All),
        None => Chosen::Others(others),
    };
    match &chosen {
        Chosen::These(keys) | Chosen::Others(keys) if keys.len() > MAX_BURST_THREADS => Err(format!(
            "a burst names at most {MAX_BURST_THREADS} threads, not {}",
            keys.len()
        )),
        _ => Ok(chosen),
    }
}

/// A label's value of a program; empty where it lacks it.
fn value<'p>(program: &'p Program, label: &str) -> Cow<'p, str> {
    // All by their names: a label more does not compile until a burst can be of it, or it is said to be left out.
    let Metadata {
        service,
        version: own_version,
        image,
        cgroup,
        container_id,
        container_name,
        pod,
        namespace,
        workload,
        unit,
    } = &*program.metadata;
    let text = match label {
        "service" => Some(service),
        "process" => Some(&program.executable),
        "tgid" => return Cow::Owned(program.key.tgid.to_string()),
        "container" => container_name.as_ref().or(container_id.as_ref()),
        "pod" => pod.as_ref(),
        "namespace" => namespace.as_ref(),
        "workload" => workload.as_ref(),
        "unit" => unit.as_ref(),
        "cgroup" => Some(cgroup),
        VERSION => return Cow::Borrowed(version(program)),
        "service.version" => own_version.as_ref(),
        "container.image.name" => image.as_ref(),
        _ => None,
    };
    Cow::Borrowed(text.map_or("", |text| &**text))
}

/// The version as the server makes it: of the service, else the image's tag, else the begin of the build id.
fn version(program: &Program) -> &str {
    let metadata = &*program.metadata;
    let build_id = program.build_id.as_deref().unwrap_or_default();
    let short = || build_id.get(..BUILD_ID_DIGITS).unwrap_or(build_id);
    let tag = || tag_of_name(metadata.image.as_deref()?);
    metadata.version.as_deref().or_else(tag).unwrap_or_else(short)
}

/// The tag in an image's name. Behind a digest there is none, and a colon before a slash is that of a port.
fn tag_of_name(name: &str) -> Option<&str> {
    let (name, _) = name.split_once('@').unwrap_or((name, ""));
    let (_, tag) = name.rsplit_once('/').unwrap_or(("", name)).1.split_once(':')?;
    Some(tag)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::ProgramKey;

    fn program(change: impl FnOnce(&mut Metadata)) -> Program {
        let mut metadata = Metadata {
            service: "web".into(),
            container_id: Some("c0ffee".into()),
            ..Metadata::default()
        };
        change(&mut metadata);
        Program {
            key: ProgramKey {
                tgid: 7,
                start_ticks: 1,
                exec_id: 1,
            },
            executable: "nginx".into(),
            executable_path: "/usr/sbin/nginx".into(),
            command_line: "".into(),
            build_id: Some("0123456789abcdef".into()),
            metadata: metadata.into(),
        }
    }

    fn order(conditions: &[(&str, &[&str], bool)]) -> BurstOrder {
        let condition = |(label, values, not): &(&str, &[&str], bool)| BurstCondition {
            label: (*label).to_owned(),
            values: values.iter().map(|value| (*value).to_owned()).collect(),
            not: *not,
        };
        BurstOrder {
            id: "a".into(),
            cpus: String::new(),
            service: String::new(),
            process: String::new(),
            conditions: conditions.iter().map(condition).collect(),
            frequency_hz: 999,
            seconds: 1,
        }
    }

    #[test]
    fn programs_are_told_by_all_of_their_labels() {
        let own = program(|_| {});
        for (label, right) in [
            ("service", "web"),
            ("process", "nginx"),
            ("tgid", "7"),
            ("container", "c0ffee"),
            ("pod", ""),
            ("version", "0123456789ab"),
            ("service.version", ""),
        ] {
            for (values, not, is_met) in [
                (&[right, "x"][..], false, true),
                (&[right], true, false),
                (&["x"], false, false),
                (&["x"], true, true),
            ] {
                let conditions = Conditions::of(&order(&[(label, values, not)])).unwrap();
                assert!(conditions.are_of_programs());
                assert_eq!(conditions.meets(&own), is_met, "{label} {values:?} {not}");
            }
        }
        let both = Conditions::of(&order(&[("service", &["web"], false), ("tgid", &["8"], false)])).unwrap();
        assert!(!both.meets(&own));
        // As they stand in an order of their own.
        let named = Conditions::of(&BurstOrder {
            process: "sh".into(),
            ..order(&[])
        });
        assert!(!named.unwrap().meets(&own));
        assert!(!Conditions::of(&order(&[])).unwrap().are_of_programs());
    }

    #[test]
    fn a_program_that_has_all_labels_has_a_value_of_each_that_a_burst_can_be_of() {
        let whole = program(|metadata| {
            *metadata = Metadata {
                service: "web".into(),
                version: Some("1.4".into()),
                image: Some("web:1.4".into()),
                cgroup: "/web".into(),
                container_id: Some("c0ffee".into()),
                container_name: Some("nginx".into()),
                pod: Some("web-0".into()),
                namespace: Some("shop".into()),
                workload: Some("web".into()),
                unit: Some("web.service".into()),
            };
        });
        // Of threads the kernel side asks.
        let of_programs = BURST_LABELS.iter().filter(|label| ![THREAD, TID].contains(label));
        for label in of_programs {
            assert_ne!(
                value(&whole, label),
                "",
                "{label} is in BURST_LABELS, and `value` does not know it"
            );
        }
    }

    #[test]
    fn a_version_is_that_of_the_service_or_of_its_image_or_of_its_build() {
        let version_of = |change: fn(&mut Metadata)| value(&program(change), VERSION).into_owned();
        assert_eq!(version_of(|_| {}), "0123456789ab");
        assert_eq!(
            version_of(|metadata| metadata.image = Some("a:5000/b".into())),
            "0123456789ab"
        );
        assert_eq!(
            version_of(|metadata| metadata.image = Some("a:5000/b:4@sha256:00".into())),
            "4"
        );
        assert_eq!(version_of(|metadata| metadata.version = Some("1.4".into())), "1.4");
    }

    #[test]
    fn conditions_on_threads_are_one_list_and_what_cannot_be_is_refused_in_words() {
        let of = |conditions: &[(&str, &[&str], bool)]| Conditions::of(&order(conditions)).map(|all| all.threads);
        let name = |text: &str| {
            let mut name = [0; NAME_BYTES];
            name[..text.len()].copy_from_slice(text.as_bytes());
            name
        };
        let threads = of(&[
            ("thread", &["a", "b", "c"], false),
            ("thread", &["b", "c"], false),
            ("thread", &["c"], true),
            ("tid", &["7", "8"], true),
            ("tid", &["9"], true),
        ]);
        let right = ChosenThreads {
            names: Chosen::These([name("b")].into()),
            tids: Chosen::Others([7, 8, 9].into()),
        };
        assert_eq!(threads, Ok(right));
        assert_eq!(of(&[("service", &["web"], false)]), Ok(ChosenThreads::default()));
        let longest = of(&[("thread", &["fifteen bytes.."], false)]);
        assert!(longest.is_ok(), "{longest:?}");
        let many: Vec<String> = (0..=MAX_BURST_THREADS).map(|tid| tid.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        for (label, values, words) in [
            ("thread", &["sixteen bytes..."][..], "at most 15 bytes"),
            ("tid", &["x"], "no thread's id"),
            ("tid", &many, "at most 64 threads, not 65"),
            ("mode", &["user"], "not of a `mode` there, but of service, process"),
        ] {
            let refused = of(&[(label, values, false)]).unwrap_err();
            assert!(refused.contains(words), "{refused}");
        }
    }
}
