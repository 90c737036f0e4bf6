//! Partial counts as bytes: what one server counted of a question's rows, for the server that was asked.
//!
//! In: an accumulator that has been handed all of its rows. Out: bytes, and of such bytes an accumulator that is merged
//! as one of another thread is. Ids stand once and in their order, as the distance from the one before; counts are
//! varints, and cells without any are left out. What is read is bounded by the accumulator that it is read into: no
//! more stacks, groups and cells than one server would count itself, and no room is made before bytes are there for it
//! and memory was taken for it.

pub(crate) mod wire;

use crate::query::count::partial::wire::{Malformed, PartialReader, PartialWriter, Room};
use crate::query::count::scan::Accumulator;
use crate::query::limits::error::QueryError;

/// The layout of the bytes. Servers of different versions may run beside each other: another number is refused.
pub(crate) const LAYOUT: u64 = 1;

/// An accumulator whose counts can be sent.
pub(crate) trait Partial: Accumulator + Sized {
    /// Writes what was counted. Rows are added no more.
    fn write(self, to: &mut PartialWriter) -> Result<(), QueryError>;

    /// Takes what another of the same question wrote. `self` has counted nothing: it knows what is asked for, and what
    /// the limits are.
    fn read(&mut self, from: &mut PartialReader<'_>) -> Result<(), Malformed>;

    /// Gives back memory of what was merged and stands several times. Rows are added no more.
    fn pack(&mut self) {}
}

/// What was counted, with the layout before it.
pub(crate) fn encode<C: Partial>(counted: C) -> Result<Vec<u8>, QueryError> {
    let mut to = PartialWriter::default();
    to.number(LAYOUT);
    counted.write(&mut to)?;
    Ok(to.into_bytes())
}

/// Reads all of what [`encode`] made into an accumulator that has counted nothing.
#[cfg(any(test, fuzzing))]
pub(crate) fn decode<C: Partial>(empty: C, bytes: &[u8]) -> Result<C, Malformed> {
    read(empty, PartialReader::new(bytes))
}

/// The same, where memory is asked for before it is taken.
pub(crate) fn decode_within<'b, C: Partial>(empty: C, bytes: &'b [u8], room: Room<'b>) -> Result<C, Malformed> {
    read(empty, PartialReader::within(bytes, room))
}

fn read<C: Partial>(mut empty: C, mut from: PartialReader<'_>) -> Result<C, Malformed> {
    match from.number()? {
        LAYOUT => {}
        other => return Err(Malformed::new(format!("its layout is {other}, and not {LAYOUT}"))),
    }
    empty.read(&mut from)?;
    from.end()?;
    Ok(empty)
}
