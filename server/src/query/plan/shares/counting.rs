//! What a share counts its rows to, in words that another server understands.

use crate::label::attribute::{Alias, PREFIX, aliases};
use crate::label::{Label, LabelTable};
use crate::query::ask::time::Window;
use crate::query::plan::steps::Steps;
use serde::{Deserialize, Serialize};

/// Steps of all windows of a count by stack, at most: more than any view asks for.
const MOST_STACK_STEPS: usize = 1_000;

/// Steps of a count by label, at most.
const MOST_STEPS: usize = 100_000;

/// Cells of a heatmap, at most, as its view allows.
const MOST_CELLS: usize = 1_000_000;

/// Labels of one count, at most.
const MOST_LABELS: usize = 64;

/// A window in steps, and a time of it that does not count.
type CountedWindow = (Steps, Option<Window>);

/// What rows are counted to. Limits are those of the asked server; whoever counts has its own beside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub(crate) enum Counting {
    /// By stack, of one window or of both sides of a difference.
    Stacks { windows: Vec<CountedWindow>, limit: usize },
    /// By the values of labels and stack.
    Pairs {
        windows: Vec<CountedWindow>,
        group: Vec<String>,
        limit: usize,
    },
    /// By the values of each of some labels.
    Groups(GroupsOf),
    /// By column and offset.
    Heatmap { columns: Steps, rows: usize },
    /// The earliest samples one by one.
    Earliest { limit: usize, profile: u8 },
}

/// See [`Counting::Groups`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GroupsOf {
    pub(crate) labels: Vec<String>,
    pub(crate) steps: Steps,
    /// Most cells, groups times steps.
    pub(crate) cells: usize,
    /// Of each label the values that are groups of their own; none: all are.
    pub(crate) told_apart: Option<Vec<Vec<String>>>,
    /// User mode and the time of each group's stacks too, of at most so many pairs.
    pub(crate) stacks: Option<usize>,
}

impl Counting {
    /// The labels that are told apart.
    pub(crate) fn labels(&self) -> &[String] {
        match self {
            Counting::Pairs { group, .. } => group,
            Counting::Groups(of) => &of.labels,
            Counting::Stacks { .. } | Counting::Heatmap { .. } | Counting::Earliest { .. } => &[],
        }
    }

    /// Whether this can be counted at all.
    pub(crate) fn is_sound(&self) -> bool {
        let windows_are_sound = |windows: &[CountedWindow]| {
            let steps = windows
                .iter()
                .map(|(steps, _)| steps.count)
                .fold(0_usize, usize::saturating_add);
            (1..=2).contains(&windows.len())
                && steps <= MOST_STACK_STEPS
                && windows.iter().all(|(steps, _)| steps.are_sound(MOST_STACK_STEPS))
        };
        let labels_are_sound = self.labels().len() <= MOST_LABELS && labels(self.labels()).is_some();
        labels_are_sound
            && match self {
                Counting::Stacks { windows, .. } | Counting::Pairs { windows, .. } => windows_are_sound(windows),
                Counting::Groups(of) => {
                    let apart = of.told_apart.as_ref();
                    !of.labels.is_empty()
                        && of.steps.are_sound(MOST_STEPS)
                        && apart.is_none_or(|apart| apart.len() == of.labels.len())
                }
                Counting::Heatmap { columns, rows } => {
                    let cells = columns.count.saturating_mul(*rows);
                    columns.are_sound(MOST_CELLS) && (1..=MOST_CELLS).contains(&cells)
                }
                Counting::Earliest { limit, .. } => *limit > 0,
            }
    }
}

/// The name by which another server finds a label.
pub(crate) fn label_name(label: Label) -> String {
    match label {
        Label::Attribute(name) => match name.short() {
            Some(short) => short.to_owned(),
            None => format!("{PREFIX}{}", name.as_str()),
        },
        fixed => fixed.column().to_owned(),
    }
}

/// The labels of such names; none where one of them is none.
pub(crate) fn labels(names: &[String]) -> Option<Vec<Label>> {
    names.iter().map(|name| Label::parse(name)).collect()
}

/// Whether any of the labels stands in this table.
pub(crate) fn has_home(names: &[String], home: LabelTable) -> bool {
    labels(names).is_some_and(|labels| labels.iter().any(|label| label.home() == home))
}

/// A short name, its attribute, and whether the image's tag stands in for that.
pub(crate) type ShortName = (String, String, bool);

/// The short names that this server knows: with others a selector would mean something else.
pub(crate) fn short_names() -> Vec<ShortName> {
    meanings(aliases())
}

/// What short names mean, in whatever order they were given.
fn meanings(aliases: &[Alias]) -> Vec<ShortName> {
    let meaning = |Alias { name, attribute }: &Alias| {
        let stands_in = attribute.short().is_some();
        (name.clone(), attribute.as_str().to_owned(), stands_in)
    };
    let mut all: Vec<ShortName> = aliases.iter().map(meaning).collect();
    all.sort_unstable();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Window = Window {
        from_ns: 1_000,
        until_ns: 61_000,
    };

    #[test]
    fn labels_are_found_by_their_names() {
        let attribute = Label::parse("attribute.team").unwrap();
        for label in Label::ALL
            .into_iter()
            .chain([attribute, Label::parse("version").unwrap()])
        {
            assert_eq!(labels(&[label_name(label)]), Some(vec![label]));
        }
        assert_eq!(labels(&["nonsense".to_owned()]), None);
    }

    #[test]
    fn short_names_are_the_same_in_any_order_and_only_where_they_mean_the_same() {
        let usual = aliases();
        assert!(
            short_names()
                .iter()
                .any(|(name, _, stands_in)| name == "version" && *stands_in)
        );
        let backwards: Vec<Alias> = usual.iter().rev().cloned().collect();
        assert_eq!(meanings(&backwards), short_names());
        // Given by hand, it is the attribute alone: of images without one it has no tag.
        let by_hand = |alias: &Alias| match alias.name.as_str() {
            "version" => "version=service.version".parse().unwrap(),
            _ => alias.clone(),
        };
        let by_hand: Vec<Alias> = usual.iter().map(by_hand).collect();
        assert_ne!(meanings(&by_hand), short_names());
    }

    #[test]
    fn what_cannot_be_counted_is_refused() {
        let sound = Counting::Stacks {
            windows: vec![(Steps::parts(WINDOW, 8), None)],
            limit: 10,
        };
        assert!(sound.is_sound());
        let text = serde_json::to_string(&sound).unwrap();
        assert_eq!(serde_json::from_str::<Counting>(&text).unwrap(), sound);
        for (of, made_up) in [
            ("\"count\":", "\"count\":9999999"),
            ("\"step_ns\":", "\"step_ns\":-"),
            ("\"step_ns\":", "\"step_ns\":0."),
        ] {
            let text = text.replacen(of, made_up, 1);
            let read = serde_json::from_str::<Counting>(&text);
            assert!(read.is_err() || read.is_ok_and(|read| !read.is_sound()), "{text}");
        }
        let none = Counting::Stacks {
            windows: Vec::new(),
            limit: 10,
        };
        assert!(!none.is_sound());
        let columns = Steps::of(WINDOW, 1_000);
        for (rows, is_sound) in [(0, false), (1, true), (20_000, false)] {
            assert_eq!(Counting::Heatmap { columns, rows }.is_sound(), is_sound, "{rows} rows");
        }
        let unknown = Counting::Pairs {
            windows: vec![(Steps::one(WINDOW), None)],
            group: vec!["nonsense".to_owned()],
            limit: 10,
        };
        assert!(!unknown.is_sound());
    }
}
