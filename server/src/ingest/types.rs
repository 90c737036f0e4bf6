//! Profile types as they are stored, and what senders give beside values.

use super::rows::push_text;
use xxhash_rust::xxh3::xxh3_64;

/// What the sender of a sample gives beside it. It is a part of its series, so that it is known of the series of a selection how to take its
/// samples, without a look at each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct SenderKind {
    /// Accounts of what was observed.
    pub(super) accounted: bool,
    /// No time stamps but a duration, over which values are spread.
    pub(super) spread: bool,
}

impl SenderKind {
    /// As our own agents are.
    pub(super) const AGENT: SenderKind = SenderKind {
        accounted: true,
        spread: false,
    };

    /// What is hashed with the labels of a series: nothing of agents, whose series were there before others were told apart.
    pub(super) fn mark(self) -> Option<u8> {
        (self != SenderKind::AGENT).then_some(u8::from(self.accounted) | u8::from(self.spread) << 1)
    }
}

/// One row of `types`: what values of a profile type are, and what its sender gives beside them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct TypeRow<'a> {
    pub(super) kind: &'a str,
    pub(super) unit: &'a str,
    pub(super) sender: SenderKind,
}

impl TypeRow<'_> {
    pub(super) fn id(&self) -> i64 {
        let mut content = Vec::with_capacity(64);
        push_text(&mut content, self.kind);
        push_text(&mut content, self.unit);
        content.extend(self.sender.mark());
        xxh3_64(&content) as i64
    }
}
