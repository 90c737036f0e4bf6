//! What is known of a column before it is read. Pure.

/// What may be said of a column before it is read: the bounds of its values, inclusive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Bounds {
    Numbers(i64, i64),
    Texts(String, String),
}

/// Bounds of columns, by name; `None` where nothing is known.
pub(crate) type Statistics<'a> = &'a dyn Fn(&str) -> Option<Bounds>;
