//! Which columns tell a row's group, and the values of labels that their codes mean.

use crate::column::coded::{CodedColumn, Projection};
use crate::hash::MixState;
use crate::label::{Label, LabelTable};
use crate::query::limits::error::QueryError;
use crate::query::plan::columns::codes;
use crate::query::plan::days::Days;
use crate::query::views::by_label::values_by_id;
use crate::store::Snapshot;
use std::collections::HashMap;
use std::sync::Arc;

/// The labels of a question, by the columns that tell their values.
#[derive(Debug)]
pub(super) struct Keys {
    /// Of the labels, outermost first.
    pub(super) names: Vec<Arc<str>>,
    pub(super) columns: Vec<Key>,
}

/// One column, and which labels it tells.
#[derive(Debug)]
pub(super) struct Key {
    column: &'static str,
    /// Places of the labels among all.
    labels: Vec<usize>,
    /// Of ids; none where the column has the label's text itself.
    by_id: Option<ById>,
}

/// The values of several labels for each id.
#[derive(Debug, Default)]
struct ById {
    class_of: HashMap<i64, u32, MixState>,
    /// The first one is of ids without values.
    classes: Vec<Vec<Arc<str>>>,
}

impl Keys {
    pub(super) async fn new(snapshot: &Snapshot, days: &Days, labels: &[Label]) -> Result<Keys, QueryError> {
        let mut columns: Vec<Key> = Vec::new();
        for (table, column) in [(LabelTable::Series, "series_id"), (LabelTable::Processes, "process_id")] {
            let here = labels.iter().enumerate().filter(|(_, label)| label.home() == table);
            let (places, labels): (Vec<usize>, Vec<Label>) = here.map(|(place, label)| (place, *label)).unzip();
            if !labels.is_empty() {
                let mut values = Vec::with_capacity(labels.len());
                for label in labels {
                    values.push(values_by_id(snapshot, days, label).await?);
                }
                columns.push(Key {
                    column,
                    labels: places,
                    by_id: Some(ById::of(&values)),
                });
            }
        }
        let of_samples = (labels.iter().enumerate()).filter(|(_, label)| label.home() == LabelTable::Samples);
        columns.extend(of_samples.map(|(place, label)| Key {
            column: label.column(),
            labels: vec![place],
            by_id: None,
        }));
        Ok(Keys {
            names: labels.iter().map(|label| label.name().into()).collect(),
            columns,
        })
    }

    pub(super) fn projections(&self) -> impl Iterator<Item = Projection> {
        self.columns.iter().map(|key| codes(key.column))
    }

    /// The values that one code of each column means, in the order of labels.
    pub(super) fn values(&self, classes: impl Iterator<Item = Vec<Arc<str>>>) -> Vec<Arc<str>> {
        let mut values = vec![Arc::default(); self.names.len()];
        for (key, of_key) in self.columns.iter().zip(classes) {
            for (place, value) in key.labels.iter().zip(of_key) {
                values[*place] = value;
            }
        }
        values
    }
}

impl Key {
    /// Of each code the number of what it means: codes with the same values have the same one.
    pub(super) fn classes(&self, column: &CodedColumn) -> Vec<u32> {
        let class = |code: usize| match &self.by_id {
            Some(by_id) => {
                let id = column.number(code);
                id.and_then(|id| by_id.class_of.get(&id)).copied().unwrap_or(0)
            }
            None => code as u32,
        };
        (0..column.distinct()).map(class).collect()
    }

    /// The values of such a number.
    pub(super) fn values(&self, class: u32, column: &CodedColumn) -> Vec<Arc<str>> {
        match &self.by_id {
            Some(by_id) => by_id.classes[class as usize].clone(),
            None => vec![column.text(class as usize).into()],
        }
    }
}

impl ById {
    /// `values`: of each label the value of each id.
    fn of(values: &[HashMap<i64, Arc<str>, MixState>]) -> ById {
        let nothing: Vec<Arc<str>> = vec![Arc::default(); values.len()];
        let mut known = HashMap::from([(nothing.clone(), 0)]);
        let mut by_id = ById {
            class_of: HashMap::default(),
            classes: vec![nothing],
        };
        for id in values.iter().flat_map(HashMap::keys) {
            if by_id.class_of.contains_key(id) {
                continue;
            }
            let of_id = values.iter().map(|values| values.get(id).cloned().unwrap_or_default());
            let of_id: Vec<Arc<str>> = of_id.collect();
            let class = *known.entry(of_id).or_insert_with_key(|of_id| {
                by_id.classes.push(of_id.clone());
                by_id.classes.len() as u32 - 1
            });
            by_id.class_of.insert(*id, class);
        }
        by_id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_with_the_same_values_are_of_one_class() {
        let of = |pairs: &[(i64, &str)]| pairs.iter().map(|(id, value)| (*id, Arc::from(*value))).collect();
        let by_id = ById::of(&[
            of(&[(1, "web"), (2, "web"), (3, "db"), (4, "")]),
            of(&[(1, "a"), (2, "a"), (3, "a"), (4, "")]),
        ]);
        let class = |id: i64| by_id.class_of[&id];
        assert_eq!(class(1), class(2));
        assert_ne!(class(1), class(3));
        assert_eq!(class(4), 0, "what has no values is as what is not known");
        assert_eq!(
            by_id.classes[class(3) as usize],
            [Arc::from("db"), Arc::<str>::from("a")]
        );
    }
}
