//! Why a VM can't be read.

use thiserror::Error;

use super::Unreadable;

/// Why a VM can't be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LayoutError {
    /// Not HotSpot, or one without tables.
    #[error("libjvm exports no {name}: not HotSpot, or one without vmStructs")]
    NoSymbol {
        /// The dynamic symbol that lacks.
        name: String,
    },
    /// Not what the tables look like.
    #[error("the table of {name} makes no sense")]
    Table {
        /// Which table.
        name: &'static str,
    },
    /// A field that is needed is not there.
    #[error("HotSpot {java}: no field {field}")]
    NoField {
        /// Release of Java; 0 where it is not known.
        java: u64,
        /// Its type and name.
        field: String,
    },
    /// A type that is needed is not there.
    #[error("HotSpot {java}: no size of {name}")]
    NoSize {
        /// Release of Java.
        java: u64,
        /// The type.
        name: &'static str,
    },
    /// Two things that can't be true at once.
    #[error("HotSpot {java}: {what} contradicts")]
    Contradiction {
        /// Release of Java.
        java: u64,
        /// What is as it can't be.
        what: String,
    },
    /// The VM has hardly begun; another try may go well.
    #[error("the VM has not begun yet")]
    NotReady,
    /// Its memory can't be read.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
}
