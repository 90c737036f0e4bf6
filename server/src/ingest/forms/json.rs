//! OTLP/JSON (<https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>), read value by value and written as
//! protobuf at once.
//!
//! Fields that are not known here are passed over. Names tell values and attributes apart, so every layout from 1.8
//! on is read.

use crate::ingest::error::IngestError;
use crate::ingest::forms::write::Write;
use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// A message's fields.
type Message = &'static [Field];

struct Field {
    name: &'static str,
    number: u32,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    One(Message),
    Many(Message),
    Text,
    Texts,
    /// 32 or 64 bits, with or without a sign.
    Int,
    Ints,
    Fixed,
    Fixeds,
    Real,
    Bool,
    /// Lists of pairs and bytes: that there is one is all that counts.
    Any,
    /// A field that no layout has since 1.8.
    Older,
}

const fn field(name: &'static str, number: u32, kind: Kind) -> Field {
    Field { name, number, kind }
}

const REQUEST: Message = &[
    field("resourceProfiles", 1, Kind::Many(RESOURCE_PROFILES)),
    field("dictionary", 2, Kind::One(DICTIONARY)),
];

const RESOURCE_PROFILES: Message = &[
    field("resource", 1, Kind::One(RESOURCE)),
    field("scopeProfiles", 2, Kind::Many(SCOPE_PROFILES)),
];

const RESOURCE: Message = &[field("attributes", 1, Kind::Many(KEY_VALUE))];

const SCOPE_PROFILES: Message = &[
    field("scope", 1, Kind::One(SCOPE)),
    field("profiles", 2, Kind::Many(PROFILE)),
];

const SCOPE: Message = &[field("attributes", 3, Kind::Many(KEY_VALUE))];

const KEY_VALUE: Message = &[
    field("key", 1, Kind::Text),
    field("value", 2, Kind::One(VALUE)),
    field("keyStrindex", 3, Kind::Int),
];

const VALUE: Message = &[
    field("stringValue", 1, Kind::Text),
    field("boolValue", 2, Kind::Bool),
    field("intValue", 3, Kind::Int),
    field("doubleValue", 4, Kind::Real),
    field("arrayValue", 5, Kind::One(LIST)),
    field("kvlistValue", 6, Kind::Any),
    field("bytesValue", 7, Kind::Any),
    field("stringValueStrindex", 8, Kind::Int),
];

/// Of a list its texts.
const LIST: Message = &[field("values", 1, Kind::Many(TEXT))];

const TEXT: Message = &[field("stringValue", 1, Kind::Text)];

const VALUE_TYPE: Message = &[field("typeStrindex", 1, Kind::Int), field("unitStrindex", 2, Kind::Int)];

const PROFILE: Message = &[
    field("sampleType", 1, Kind::One(VALUE_TYPE)),
    field("samples", 2, Kind::Many(SAMPLE)),
    field("sample", 2, Kind::Many(SAMPLE)),
    field("timeUnixNano", 3, Kind::Fixed),
    field("durationNano", 4, Kind::Int),
    field("periodType", 5, Kind::One(VALUE_TYPE)),
    field("period", 6, Kind::Int),
    field("attributeIndices", 11, Kind::Ints),
    field("locationIndices", 0, Kind::Older),
    field("timeNanos", 0, Kind::Older),
];

const SAMPLE: Message = &[
    field("stackIndex", 1, Kind::Int),
    field("attributeIndices", 2, Kind::Ints),
    field("linkIndex", 3, Kind::Int),
    field("values", 4, Kind::Ints),
    field("timestampsUnixNano", 5, Kind::Fixeds),
    field("locationsStartIndex", 0, Kind::Older),
    field("locationsLength", 0, Kind::Older),
];

const DICTIONARY: Message = &[
    field("mappingTable", 1, Kind::Many(MAPPING)),
    field("locationTable", 2, Kind::Many(LOCATION)),
    field("functionTable", 3, Kind::Many(FUNCTION)),
    field("stringTable", 5, Kind::Texts),
    field("attributeTable", 6, Kind::Many(ATTRIBUTE)),
    field("stackTable", 7, Kind::Many(STACK)),
    field("attributeUnits", 0, Kind::Older),
];

const MAPPING: Message = &[
    field("filenameStrindex", 4, Kind::Int),
    field("attributeIndices", 5, Kind::Ints),
];

const LOCATION: Message = &[
    field("mappingIndex", 1, Kind::Int),
    field("address", 2, Kind::Int),
    field("lines", 3, Kind::Many(LINE)),
    field("line", 3, Kind::Many(LINE)),
    field("attributeIndices", 4, Kind::Ints),
];

const LINE: Message = &[field("functionIndex", 1, Kind::Int), field("line", 2, Kind::Int)];

const FUNCTION: Message = &[
    field("nameStrindex", 1, Kind::Int),
    field("systemNameStrindex", 2, Kind::Int),
    field("filenameStrindex", 3, Kind::Int),
    field("startLine", 4, Kind::Int),
];

const ATTRIBUTE: Message = &[field("keyStrindex", 1, Kind::Int), field("value", 2, Kind::One(VALUE))];

const STACK: Message = &[field("locationIndices", 1, Kind::Ints)];

/// What an error says where the layout is another one.
const OLDER: &str = "fields of opentelemetry-proto 1.7 or older";

/// Makes a request in JSON one in protobuf.
pub fn json_to_otlp(json: &[u8]) -> Result<Vec<u8>, IngestError> {
    let mut to = Vec::with_capacity(json.len() / 2);
    let mut from = serde_json::Deserializer::from_slice(json);
    let read = InMessage(REQUEST, &mut to)
        .deserialize(&mut from)
        .and_then(|()| from.end());
    match read {
        Ok(()) => Ok(to),
        Err(error) if error.to_string().starts_with(OLDER) => Err(IngestError::Layout {
            why: "its fields have the names of opentelemetry-proto 1.7 or older",
        }),
        Err(error) => Err(IngestError::Protobuf {
            cause: format!("as JSON: {error}"),
        }),
    }
}

/// Whether a key names a field, in either form that protobuf knows: `stackIndex` and `stack_index`.
fn names(key: &str, field: &str) -> bool {
    let mut key = key.chars();
    let mut next = || match key.next() {
        Some('_') => key.next().map(|c| c.to_ascii_uppercase()),
        other => other,
    };
    field.chars().all(|c| next() == Some(c)) && next().is_none()
}

/// Reads an object into a message.
struct InMessage<'t>(Message, &'t mut Vec<u8>);

impl<'de> DeserializeSeed<'de> for InMessage<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for InMessage<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match self.0.iter().find(|field| names(&key, field.name)) {
                Some(field) => map.next_value_seed(InField(field.kind, field.number, self.1))?,
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// Reads a value into a field.
struct InField<'t>(Kind, u32, &'t mut Vec<u8>);

impl<'de> DeserializeSeed<'de> for InField<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        let Self(kind, number, to) = self;
        match kind {
            Kind::One(message) => {
                let mut inner = Vec::new();
                from.deserialize_any(InMessage(message, &mut inner))?;
                to.blob(number, &inner);
            }
            Kind::Any => {
                from.deserialize_ignored_any(IgnoredAny)?;
                to.blob(number, &[]);
            }
            Kind::Older => return Err(D::Error::custom(OLDER)),
            Kind::Many(_) | Kind::Texts | Kind::Ints | Kind::Fixeds => {
                from.deserialize_any(InList(kind, number, to))?
            }
            Kind::Text | Kind::Int | Kind::Fixed | Kind::Real | Kind::Bool => {
                from.deserialize_any(InScalar(kind, Some(number), to))?;
            }
        }
        Ok(())
    }
}

/// Reads a list into a repeated field.
struct InList<'t>(Kind, u32, &'t mut Vec<u8>);

impl<'de> Visitor<'de> for InList<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Self(kind, number, to) = self;
        let mut packed = Vec::new();
        loop {
            let more = match kind {
                Kind::Many(message) => list.next_element_seed(InField(Kind::One(message), number, to))?,
                Kind::Texts => list.next_element_seed(InField(Kind::Text, number, to))?,
                Kind::Fixeds => list.next_element_seed(Packed(Kind::Fixed, &mut packed))?,
                _ => list.next_element_seed(Packed(Kind::Int, &mut packed))?,
            };
            if more.is_none() {
                break;
            }
        }
        if !packed.is_empty() {
            to.blob(number, &packed);
        }
        Ok(())
    }
}

/// A number of a list.
struct Packed<'t>(Kind, &'t mut Vec<u8>);

impl<'de> DeserializeSeed<'de> for Packed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(InScalar(self.0, None, self.1))
    }
}

/// Reads a text, a number or a truth. Without a field's number it is one of a list.
struct InScalar<'t>(Kind, Option<u32>, &'t mut Vec<u8>);

impl InScalar<'_> {
    fn number<E: Error>(self, value: u64, real: f64) -> Result<(), E> {
        match (self.0, self.1) {
            // One of a choice of kinds is there also where it is zero.
            (Kind::Int, Some(number)) => {
                self.2.key(number, 0);
                self.2.varint(value);
            }
            (Kind::Int, None) => self.2.varint(value),
            (Kind::Fixed, Some(number)) => self.2.fixed64(number, value),
            (Kind::Fixed, None) => self.2.extend_from_slice(&value.to_le_bytes()),
            (Kind::Real, Some(number)) => self.2.fixed64(number, real.to_bits()),
            _ => return Err(E::custom("a number stands where a text or a truth belongs")),
        }
        Ok(())
    }
}

impl<'de> Visitor<'de> for InScalar<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Kind::Text => "a text",
            Kind::Bool => "true or false",
            _ => "a number, or a number as text",
        })
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        // What protobuf takes for the usual value. An entry of a list has its place all the same.
        match (self.0, self.1) {
            (Kind::Text, Some(number)) => self.2.blob(number, &[]),
            (_, None) => return self.number(0, 0.0),
            _ => {}
        }
        Ok(())
    }

    fn visit_bool<E: Error>(self, so: bool) -> Result<(), E> {
        match (self.0, self.1) {
            (Kind::Bool, Some(number)) => {
                self.2.key(number, 0);
                self.2.varint(u64::from(so));
                Ok(())
            }
            _ => Err(E::custom("true or false stands where something else belongs")),
        }
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.number(value, value as f64)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.number(value as u64, value as f64)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        if !matches!(self.0, Kind::Real) && (value.fract() != 0.0 || value.abs() > 2_f64.powi(63)) {
            return Err(E::custom(format!("{value} is no whole number of 64 bits")));
        }
        let whole = if value < 0.0 { value as i64 as u64 } else { value as u64 };
        self.number(whole, value)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        if let (Kind::Text, Some(number)) = (self.0, self.1) {
            self.2.blob(number, text.as_bytes());
            return Ok(());
        }
        let wrong = || E::custom(format!("{:?} is no number", text.chars().take(40).collect::<String>()));
        if matches!(self.0, Kind::Real) {
            return self.number(0, text.parse().map_err(|_| wrong())?);
        }
        let signed = text.parse::<i64>().map(|value| value as u64);
        let value = text.parse::<u64>().or(signed).map_err(|_| wrong())?;
        self.number(value, 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
    use opentelemetry_proto::tonic::common::v1::any_value::Value;
    use prost::Message as _;

    const SAID: &str = r#"{"unknown":[{}],"resourceProfiles":[{"resource":{"attributes":[
        {"key":"host.name","value":{"stringValue":"n\u00fc"}},{"key":"list","value":{"arrayValue":{"values":[{"intValue":"1"}]}}},
        {"key":"zero","value":{"intValue":"0"}}]},"scopeProfiles":[{"scope":{"name":"x"},"profiles":[{
        "sampleType":{"typeStrindex":1,"unitStrindex":2},"timeUnixNano":"1700000000000000000","durationNano":"5",
        "period":"-7","samples":[{"stackIndex":1,"values":["18446744073709551615",3],"timestampsUnixNano":["1","2"],
        "attribute_indices":[4,300]}]}]}]}],"dictionary":{"stringTable":["","cpu"],"stackTable":[{},{"locationIndices":[1]}]}}"#;

    #[test]
    fn json_says_the_same_as_protobuf() {
        let read = ExportProfilesServiceRequest::decode(json_to_otlp(SAID.as_bytes()).unwrap().as_slice()).unwrap();
        let resource = &read.resource_profiles[0];
        let attributes = &resource.resource.as_ref().unwrap().attributes;
        let value = |at: usize| attributes[at].value.as_ref().unwrap().value.clone();
        assert_eq!(value(0), Some(Value::StringValue("nü".to_owned())));
        assert!(matches!(value(1), Some(Value::ArrayValue(_))));
        assert_eq!(value(2), Some(Value::IntValue(0)));
        let profile = &resource.scope_profiles[0].profiles[0];
        assert_eq!(
            (profile.time_unix_nano, profile.duration_nano, profile.period),
            (1_700_000_000_000_000_000, 5, -7)
        );
        let sample = &profile.samples[0];
        assert_eq!((sample.stack_index, sample.values.clone()), (1, vec![-1, 3]));
        assert_eq!(
            (sample.timestamps_unix_nano.clone(), sample.attribute_indices.clone()),
            (vec![1, 2], vec![4, 300])
        );
        let tables = read.dictionary.unwrap();
        assert_eq!(
            (tables.string_table, tables.stack_table.len()),
            (vec![String::new(), "cpu".to_owned()], 2)
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (json, named) in [
            ("", "EOF"),
            ("{}x", "trailing"),
            ("[]", "an object"),
            (r#"{"dictionary":{"stringTable":[1]}}"#, "a number stands"),
            (
                r#"{"dictionary":{"stackTable":[{"locationIndices":["x"]}]}}"#,
                "no number",
            ),
            (
                r#"{"resourceProfiles":[{"scopeProfiles":[{"profiles":[{"period":1.5}]}]}]}"#,
                "whole number",
            ),
            (
                r#"{"resourceProfiles":[{"scopeProfiles":[{"profiles":[{"locationIndices":[1]}]}]}]}"#,
                "1.7",
            ),
        ] {
            let error = json_to_otlp(json.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(named), "{json}: {error}");
        }
    }
}
