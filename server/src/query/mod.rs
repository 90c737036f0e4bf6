//! Answers questions over a [`crate::store::Snapshot`].
