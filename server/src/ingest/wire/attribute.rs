//! Attributes: a key, and the kinds of values that a label or a count can have.

use crate::ingest::wire::protobuf::{Fault, Field, Fields, OLDER, text};

/// A key that is given as text, or by its index where the text is empty.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct KeyValue<'a> {
    /// As it stands in the body.
    pub(crate) key: &'a [u8],
    pub(crate) key_strindex: i32,
    pub(crate) value: Value<'a>,
}

/// The values that a label or a count can have.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) enum Value<'a> {
    Text(&'a str),
    /// A text that is not UTF-8.
    NotText,
    TextIndex(i32),
    Bool(bool),
    Int(i64),
    Real(f64),
    /// A list, by its first text; empty where there is none.
    List(&'a str),
    /// Absent, bytes, or a list of pairs.
    #[default]
    Other,
}

/// Of a resource or a scope: its key is text, or an index where the text is empty.
pub(super) fn resource_attribute(wire: &[u8]) -> Result<KeyValue<'_>, Fault> {
    let mut attribute = KeyValue::default();
    let mut fields = Fields { wire };
    while let Some((number, field)) = fields.next()? {
        match number {
            1 => attribute.key = field.message()?,
            2 => attribute.value = value(field.message()?, attribute.value)?,
            3 => attribute.key_strindex = field.int()? as i32,
            _ => {}
        }
    }
    Ok(attribute)
}

/// Of the dictionary: its key is an index.
pub(super) fn table_attribute(wire: &[u8]) -> Result<KeyValue<'_>, Fault> {
    let mut attribute = KeyValue::default();
    let mut fields = Fields { wire };
    while let Some((number, field)) = fields.next()? {
        match (number, field) {
            // A key as text.
            (1, Field::Bytes(_)) => return Err(OLDER),
            (1, field) => attribute.key_strindex = field.int()? as i32,
            (2, field) => attribute.value = value(field.message()?, attribute.value)?,
            _ => {}
        }
    }
    Ok(attribute)
}

fn value<'a>(wire: &'a [u8], before: Value<'a>) -> Result<Value<'a>, Fault> {
    let mut value = before;
    let mut fields = Fields { wire };
    while let Some((number, field)) = fields.next()? {
        value = match number {
            // The last counts.
            1 => text(field.message()?).map_or(Value::NotText, Value::Text),
            2 => Value::Bool(field.int()? != 0),
            3 => Value::Int(field.int()? as i64),
            4 => Value::Real(f64::from_bits(field.fixed()?)),
            5 => match (value, first_text(field.message()?)?) {
                // The second part of a list that comes in two.
                (Value::List(first), _) if !first.is_empty() => value,
                (_, first) => Value::List(first),
            },
            // A list of pairs, or bytes.
            6 | 7 => field.message().map(|_| Value::Other)?,
            8 => Value::TextIndex(field.int()? as i32),
            _ => continue,
        };
    }
    Ok(value)
}

/// Of a list its first text that is not empty.
fn first_text(wire: &[u8]) -> Result<&str, Fault> {
    let mut fields = Fields { wire };
    while let Some((number, field)) = fields.next()? {
        let (mut of_value, mut found) = (Fields { wire: &[] }, "");
        if number == 1 {
            of_value.wire = field.message()?;
        }
        while let Some((number, field)) = of_value.next()? {
            found = match number {
                // The last counts.
                1 => text(field.message()?).unwrap_or(""),
                2..=8 => "",
                _ => found,
            };
        }
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok("")
}
