//! Profile types as they are stored, and what senders give beside values.

use crate::ingest::rows::text::push_text;
use xxhash_rust::xxh3::xxh3_64;

/// What the sender of a sample gives beside it. It is a part of its series, so that it is known of the series of a
/// selection how to take its samples, without a look at each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct SenderKind {
    /// Accounts of what was observed.
    pub(crate) accounted: bool,
    /// No time stamps but a duration, over which values are spread.
    pub(crate) spread: bool,
}

impl SenderKind {
    /// As our own agents are.
    pub(crate) const AGENT: SenderKind = SenderKind {
        accounted: true,
        spread: false,
    };

    /// What is hashed with the labels of a series: nothing of agents, whose series were there before others were told
    /// apart.
    pub(crate) fn mark(self) -> Option<u8> {
        (self != SenderKind::AGENT).then_some(u8::from(self.accounted) | u8::from(self.spread) << 1)
    }
}

/// One row of `types`: what values of a profile type are, and what its sender gives beside them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TypeRow<'a> {
    pub(crate) kind: &'a str,
    pub(crate) unit: &'a str,
    pub(crate) sender: SenderKind,
}

impl TypeRow<'_> {
    pub(crate) fn id(&self) -> i64 {
        let mut content = Vec::with_capacity(64);
        push_text(&mut content, self.kind);
        push_text(&mut content, self.unit);
        content.extend(self.sender.mark());
        xxh3_64(&content) as i64
    }
}
