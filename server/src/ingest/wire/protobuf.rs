//! The fields of protobuf messages, one after another, as they stand in the body (protobuf.dev, "Encoding").

use crate::ingest::error::IngestError;
use std::str::Utf8Error;

/// What is wrong with a request. Small, since every step may end in one.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    Broken(&'static str),
    WireType(u8),
    Text(Utf8Error),
    OverBudget {
        limit_bytes: usize,
    },
    /// The message is of another version.
    Layout(&'static str),
}

/// What a field of a type that it had until 1.7 says.
pub(crate) const OLDER: Fault =
    Fault::Layout("its fields have the numbers and types of opentelemetry-proto 1.7 or older");

const TRUNCATED: Fault = Fault::Broken("the message ends in the middle of a field");

impl From<Fault> for IngestError {
    #[cold]
    fn from(fault: Fault) -> Self {
        let cause = match fault {
            Fault::Broken(cause) => cause.to_owned(),
            Fault::WireType(number) => format!("wire type {number} does not exist here"),
            Fault::Text(error) => {
                return Self::Text {
                    cause: format!("text is not UTF-8: {error}"),
                };
            }
            Fault::Layout(why) => return Self::Layout { why },
            Fault::OverBudget { limit_bytes } => {
                return Self::TooLarge {
                    what: "the decoded request",
                    limit_bytes,
                };
            }
        };
        Self::Protobuf { cause }
    }
}

/// The fields of one message.
pub(crate) struct Fields<'a> {
    pub(crate) wire: &'a [u8],
}

/// The largest field number with the largest wire type.
const MAX_KEY: u64 = u32::MAX as u64;

/// A field's content, by wire type.
#[derive(Clone, Copy)]
pub(crate) enum Field<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32,
    Bytes(&'a [u8]),
}

impl<'a> Fields<'a> {
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Result<Option<(u64, Field<'a>)>, Fault> {
        if self.wire.is_empty() {
            return Ok(None);
        }
        let key = varint(&mut self.wire)?;
        if key >> 3 == 0 || key > MAX_KEY {
            return Err(Fault::Broken("a field's number is 0, or larger than any may be"));
        }
        let field = match key & 7 {
            0 => Field::Varint(varint(&mut self.wire)?),
            1 => Field::Fixed64(fixed64(&mut self.wire)?),
            2 => {
                let length = varint(&mut self.wire)?;
                Field::Bytes(split(&mut self.wire, length)?)
            }
            5 => {
                split(&mut self.wire, 4)?;
                Field::Fixed32
            }
            other => return Err(Fault::WireType(other as u8)),
        };
        Ok(Some((key >> 3, field)))
    }
}

impl<'a> Field<'a> {
    #[inline]
    pub(crate) fn message(self) -> Result<&'a [u8], Fault> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            _ => Err(Fault::Broken("a number stands where a message or text belongs")),
        }
    }

    #[inline]
    pub(crate) fn int(self) -> Result<u64, Fault> {
        match self {
            Self::Varint(int) => Ok(int),
            _ => Err(Fault::Broken("something else stands where an integer belongs")),
        }
    }

    pub(crate) fn fixed(self) -> Result<u64, Fault> {
        match self {
            Self::Fixed64(number) => Ok(number),
            _ => Err(Fault::Broken("something else stands where a number of 64 bits belongs")),
        }
    }

    /// No field of this kind holds more integers.
    #[inline]
    pub(crate) fn most_ints(self) -> usize {
        match self {
            Self::Bytes(packed) => packed.len(),
            _ => 1,
        }
    }

    /// Integers of a repeated field, packed or one by one.
    #[inline]
    pub(crate) fn ints(self, mut each: impl FnMut(u64) -> Result<(), Fault>) -> Result<(), Fault> {
        let Self::Bytes(mut packed) = self else {
            return each(self.int()?);
        };
        while !packed.is_empty() {
            each(varint(&mut packed)?)?;
        }
        Ok(())
    }

    /// Whether [`Field::ints`] would read all of them.
    #[inline]
    pub(crate) fn check_ints(self) -> Result<(), Fault> {
        let Self::Bytes(packed) = self else {
            return self.int().map(drop);
        };
        // Integers of more than ten bytes would have four bytes in a row that do not end one, wherever they begin;
        // indices never have.
        let goes_on = |word: &[u8; 4]| u32::from_le_bytes(*word) & 0x8080_8080 == 0x8080_8080;
        let is_long = packed.as_chunks().0.iter().fold(false, |any, word| any | goes_on(word));
        if !is_long && packed.last().is_none_or(|last| last & 0x80 == 0) {
            return Ok(());
        }
        self.ints(|_| Ok(()))
    }

    /// Numbers of 64 bits of a repeated field, packed or one by one.
    pub(crate) fn fixed_numbers(self, mut each: impl FnMut(u64) -> Result<(), Fault>) -> Result<(), Fault> {
        let Self::Bytes(mut packed) = self else {
            return each(self.fixed()?);
        };
        while !packed.is_empty() {
            each(fixed64(&mut packed)?)?;
        }
        Ok(())
    }
}

/// What stands in the body as text.
#[inline]
pub(crate) fn text(bytes: &[u8]) -> Result<&str, Fault> {
    std::str::from_utf8(bytes).map_err(Fault::Text)
}

#[inline]
pub(crate) fn varint(wire: &mut &[u8]) -> Result<u64, Fault> {
    // Lengths and field keys mostly have one byte, indices two.
    match **wire {
        [byte, ref rest @ ..] if byte < 0x80 => {
            *wire = rest;
            Ok(u64::from(byte))
        }
        [low, high, ref rest @ ..] if high < 0x80 => {
            *wire = rest;
            Ok(u64::from(low & 0x7f) | u64::from(high) << 7)
        }
        _ => long_varint(wire),
    }
}

fn long_varint(wire: &mut &[u8]) -> Result<u64, Fault> {
    let mut value = 0;
    for (index, byte) in wire.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            // Nine bytes have 63 bits.
            if index == 9 && *byte > 1 {
                break;
            }
            *wire = &wire[index + 1..];
            return Ok(value);
        }
    }
    Err(if wire.len() < 10 {
        TRUNCATED
    } else {
        Fault::Broken("an integer has more than 64 bits")
    })
}

fn fixed64(wire: &mut &[u8]) -> Result<u64, Fault> {
    let (number, rest) = wire.split_first_chunk().ok_or(TRUNCATED)?;
    *wire = rest;
    Ok(u64::from_le_bytes(*number))
}

#[inline]
fn split<'a>(wire: &mut &'a [u8], length: u64) -> Result<&'a [u8], Fault> {
    let length = usize::try_from(length).map_err(|_| TRUNCATED)?;
    let (inner, rest) = wire.split_at_checked(length).ok_or(TRUNCATED)?;
    *wire = rest;
    Ok(inner)
}
