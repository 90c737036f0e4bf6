//! What is asked for.

use crate::label::LabelTable;
use crate::query::ask::selector::{Matcher, Selector};
use crate::query::ask::time::Window;
use crate::query::ask::unit::Unit;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Question {
    /// Type of profile, such as `cpu`.
    pub profile: String,
    /// Which samples.
    pub selector: Selector,
    /// Of which time.
    pub window: Window,
    /// A time of the window whose samples do not count: the window is then the rest around it.
    pub except: Option<Window>,
    /// Of a type with values in several units the one that is asked for.
    pub unit: Option<Unit>,
    /// What becomes of interpreters' and virtual machines' own frames.
    pub runtime_frames: RuntimeFrames,
    /// Which values samples have that count.
    pub values: ValueRange,
    /// How long waits were that count, in nanoseconds; of types that are none it means nothing.
    pub lengths: ValueRange,
}

/// Values of samples, in the type's own unit, or lengths of waits; both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValueRange {
    /// The least one.
    pub least: i64,
    /// The largest one.
    pub most: i64,
}

impl Default for ValueRange {
    /// All of them.
    fn default() -> Self {
        ValueRange {
            least: i64::MIN,
            most: i64::MAX,
        }
    }
}

impl ValueRange {
    pub(crate) fn is_all(self) -> bool {
        self == ValueRange::default()
    }

    pub(crate) fn contains(self, value: i64) -> bool {
        (self.least..=self.most).contains(&value)
    }

    /// Whether any of these values is in it.
    pub(crate) fn meets(self, least: i64, most: i64) -> bool {
        self.least <= most && least <= self.most
    }

    /// Whether all of these values are in it.
    pub(crate) fn holds(self, least: i64, most: i64) -> bool {
        self.least <= least && most <= self.most
    }
}

/// What becomes of C functions of an interpreter or a virtual machine that lead to a function of its language.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RuntimeFrames {
    /// They are part of that function.
    #[default]
    Fold,
    /// They stand by themselves.
    Show,
}

impl Question {
    /// What is asked of a series: conditions on its labels, and the unit of its values.
    pub(crate) fn of_series(&self) -> Vec<Cow<'_, Matcher>> {
        let of_unit = self.unit.as_ref().and_then(Unit::matcher);
        let of_labels = self.selector.of(LabelTable::Series).map(Cow::Borrowed);
        of_labels.chain(of_unit.map(Cow::Owned)).collect()
    }
}
