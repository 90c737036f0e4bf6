//! One way for all benches to tell what they measured: tables of rows, and in each row named values with units and
//! targets.

use serde::{Deserialize, Serialize};

/// What a value should be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Target {
    AtMost(f64),
    AtLeast(f64),
}

/// One measured value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Figure {
    /// The table that it stands in, and the row.
    pub(super) table: String,
    pub(super) row: String,
    /// What was measured; the table's column.
    pub(super) name: String,
    /// As it is written behind the name; empty for counts and ratios.
    pub(super) unit: String,
    /// None where there was nothing to measure, such as a picture that did not come.
    pub(super) value: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) target: Option<Target>,
}

impl Figure {
    /// Whether the target is met; none where there is none. What could not be measured misses it.
    pub(super) fn is_met(&self) -> Option<bool> {
        let value = self.value.unwrap_or(f64::NAN);
        self.target.map(|target| match target {
            Target::AtMost(most) => value <= most,
            Target::AtLeast(least) => value >= least,
        })
    }

    pub(crate) fn at_most(&mut self, most: f64) {
        self.target = Some(Target::AtMost(most));
    }

    pub(crate) fn at_least(&mut self, least: f64) {
        self.target = Some(Target::AtLeast(least));
    }
}

/// All that a bench measured.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures {
    table: String,
    row: String,
    pub(super) all: Vec<Figure>,
    pub(super) notes: Vec<String>,
}

impl Figures {
    /// What follows stands in this table.
    pub(crate) fn table(&mut self, title: &str) {
        title.clone_into(&mut self.table);
        self.row.clear();
    }

    /// What follows stands in this row of it. A table without rows is a list.
    pub(crate) fn row(&mut self, row: &str) {
        row.clone_into(&mut self.row);
    }

    /// One more value; what comes back takes a target.
    pub(crate) fn add(&mut self, name: &str, unit: &str, value: f64) -> &mut Figure {
        let at = self.all.len();
        self.all.push(Figure {
            table: self.table.clone(),
            row: self.row.clone(),
            name: name.to_owned(),
            unit: unit.to_owned(),
            // JSON has no other numbers.
            value: Some(value).filter(|value| value.is_finite()),
            target: None,
        });
        &mut self.all[at]
    }

    /// Whether no target is missed.
    pub(crate) fn are_met(&self) -> bool {
        self.all.iter().all(|figure| figure.is_met() != Some(false))
    }

    /// What a reader has to know beside the figures: conditions, the meaning of a name.
    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// Prints it too.
    pub(crate) fn print_note(&mut self, text: impl Into<String>) {
        self.note(text);
        println!("{}", self.notes.last().map_or("", String::as_str));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_met_up_to_its_very_value_and_missed_by_what_is_not_there() {
        let mut figures = Figures::default();
        figures.add("a", "ms", 16.0).at_most(16.0);
        figures.add("b", "ms", 16.1).at_most(16.0);
        figures.add("c", "", 2.0).at_least(3.0);
        figures.add("d", "ms", f64::NAN).at_most(16.0);
        figures.add("e", "", 1.0);
        let met: Vec<_> = figures.all.iter().map(Figure::is_met).collect();
        assert_eq!(met, [Some(true), Some(false), Some(false), Some(false), None]);
        assert!(!figures.are_met());
        figures.all.retain(|figure| figure.is_met() != Some(false));
        assert!(figures.are_met());
    }
}
