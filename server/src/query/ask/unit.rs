//! The unit of values.

use crate::label::Label;
use crate::label::attribute::AttributeName;
use crate::profile_type::NANOSECONDS;
use crate::query::ask::selector::Matcher;
use std::sync::Arc;

/// The label of a series that has the unit of its values; those of time have none.
const LABEL: &str = "stakeout.unit";

/// The unit of a type's values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit(Arc<str>);

impl Unit {
    /// Of types of time.
    pub fn time() -> Unit {
        Unit::named(NANOSECONDS)
    }

    pub(crate) fn named(name: impl Into<Arc<str>>) -> Unit {
        Unit(name.into())
    }

    /// As its sender calls it, such as `nanoseconds` or `bytes`.
    pub fn name(&self) -> &str {
        &self.0
    }

    /// The condition on series that their values are in it.
    pub(crate) fn matcher(&self) -> Option<Matcher> {
        let label = Label::Attribute(AttributeName::new(LABEL)?);
        Some(Matcher::equal(label, if self.is_time() { "" } else { self.name() }))
    }

    /// Whether values are nanoseconds.
    pub fn is_time(&self) -> bool {
        &*self.0 == NANOSECONDS
    }
}
