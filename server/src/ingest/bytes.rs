//! From a request's body to a message: decompression and protobuf, both bounded before they allocate.

use super::IngestError;
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use prost::Message;
use std::io::Read;

/// How a body is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Identity,
    Gzip,
    Zstd,
}

impl Encoding {
    /// From a `Content-Encoding` header.
    pub fn from_header(value: &str) -> Option<Self> {
        match value.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Some(Self::Identity),
            "gzip" | "x-gzip" => Some(Self::Gzip),
            "zstd" => Some(Self::Zstd),
            _ => None,
        }
    }
}

/// A zstd frame may ask for no larger a window than this power of two: what the format recommends decoders to support.
const ZSTD_WINDOW_LOG: u32 = 23;

/// Decompresses a body. Never yields or holds more than `limit` bytes: a larger body is an error as soon as it is known.
pub fn decompress(body: &[u8], encoding: Encoding, limit: usize) -> Result<Vec<u8>, IngestError> {
    let mut plain = Vec::new();
    let too_large = || IngestError::TooLarge {
        what: "the decompressed request",
        limit_bytes: limit,
    };
    let limited = limit as u64 + 1;
    let broken = |what: &'static str| {
        move |error: std::io::Error| IngestError::Compression {
            what,
            cause: error.to_string(),
        }
    };
    match encoding {
        Encoding::Identity => {
            if body.len() > limit {
                return Err(too_large());
            }
            plain.extend_from_slice(body);
        }
        Encoding::Gzip => {
            flate2::read::MultiGzDecoder::new(body)
                .take(limited)
                .read_to_end(&mut plain)
                .map_err(broken("gzip"))?;
        }
        Encoding::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(body).map_err(broken("zstd"))?;
            decoder.window_log_max(ZSTD_WINDOW_LOG).map_err(broken("zstd"))?;
            decoder.take(limited).read_to_end(&mut plain).map_err(broken("zstd"))?;
        }
    }
    if plain.len() > limit {
        Err(too_large())
    } else {
        Ok(plain)
    }
}

/// Decodes the message, after a look at its shape has shown that it takes no more than `limit` bytes of memory.
pub fn decode(plain: &[u8], limit: usize) -> Result<ExportProfilesServiceRequest, IngestError> {
    let mut estimate = Estimate { bytes: 0, limit };
    estimate.message(plain, &shape::REQUEST, 0)?;
    ExportProfilesServiceRequest::decode(plain).map_err(|error| IngestError::Protobuf {
        cause: error.to_string(),
    })
}

/// A message's fields that are messages again, and what one of the message takes in memory.
struct Shape {
    bytes: usize,
    /// What a byte on the wire takes at most, apart from the fields that are messages.
    per_byte: usize,
    fields: &'static [(u64, &'static Shape)],
}

/// Sizes are those of the generated structs, taken from the compiler; only messages that can be repeated matter.
mod shape {
    use super::Shape;
    use opentelemetry_proto::tonic::common::v1 as common;
    use opentelemetry_proto::tonic::profiles::v1development as profiles;
    use std::mem::size_of;

    /// A varint of one byte becomes an integer of eight.
    const PACKED: usize = 8;

    const fn leaf<T>() -> Shape {
        Shape {
            bytes: size_of::<T>(),
            per_byte: PACKED,
            fields: &[],
        }
    }

    static TEXT: Shape = Shape {
        bytes: size_of::<String>(),
        per_byte: 1,
        fields: &[],
    };
    static ARRAY: Shape = Shape {
        bytes: size_of::<common::ArrayValue>(),
        per_byte: PACKED,
        fields: &[(1, &VALUE)],
    };
    static LIST: Shape = Shape {
        bytes: size_of::<common::KeyValueList>(),
        per_byte: PACKED,
        fields: &[(1, &KEY_VALUE)],
    };
    static VALUE: Shape = Shape {
        bytes: size_of::<common::AnyValue>(),
        per_byte: PACKED,
        fields: &[(5, &ARRAY), (6, &LIST)],
    };
    static KEY_VALUE: Shape = Shape {
        bytes: size_of::<common::KeyValue>(),
        per_byte: PACKED,
        fields: &[(2, &VALUE)],
    };
    static ENTITY: Shape = Shape {
        bytes: size_of::<common::EntityRef>(),
        per_byte: PACKED,
        fields: &[(3, &TEXT), (4, &TEXT)],
    };
    static RESOURCE: Shape = Shape {
        bytes: 0,
        per_byte: PACKED,
        fields: &[(1, &KEY_VALUE), (3, &ENTITY)],
    };
    static SCOPE: Shape = Shape {
        bytes: 0,
        per_byte: PACKED,
        fields: &[(3, &KEY_VALUE)],
    };
    static SAMPLE: Shape = leaf::<profiles::Sample>();
    static PROFILE: Shape = Shape {
        bytes: size_of::<profiles::Profile>(),
        per_byte: PACKED,
        fields: &[(2, &SAMPLE)],
    };
    static SCOPE_PROFILES: Shape = Shape {
        bytes: size_of::<profiles::ScopeProfiles>(),
        per_byte: PACKED,
        fields: &[(1, &SCOPE), (2, &PROFILE)],
    };
    static RESOURCE_PROFILES: Shape = Shape {
        bytes: size_of::<profiles::ResourceProfiles>(),
        per_byte: PACKED,
        fields: &[(1, &RESOURCE), (2, &SCOPE_PROFILES)],
    };
    static MAPPING: Shape = leaf::<profiles::Mapping>();
    static LINE: Shape = leaf::<profiles::Line>();
    static LOCATION: Shape = Shape {
        bytes: size_of::<profiles::Location>(),
        per_byte: PACKED,
        fields: &[(3, &LINE)],
    };
    static FUNCTION: Shape = leaf::<profiles::Function>();
    static LINK: Shape = leaf::<profiles::Link>();
    static ATTRIBUTE: Shape = Shape {
        bytes: size_of::<profiles::KeyValueAndUnit>(),
        per_byte: PACKED,
        fields: &[(2, &VALUE)],
    };
    static STACK: Shape = leaf::<profiles::Stack>();
    static DICTIONARY: Shape = Shape {
        bytes: 0,
        per_byte: PACKED,
        fields: &[
            (1, &MAPPING),
            (2, &LOCATION),
            (3, &FUNCTION),
            (4, &LINK),
            (5, &TEXT),
            (6, &ATTRIBUTE),
            (7, &STACK),
        ],
    };
    pub(super) static REQUEST: Shape = Shape {
        bytes: 0,
        per_byte: PACKED,
        fields: &[(1, &RESOURCE_PROFILES), (2, &DICTIONARY)],
    };
}

/// As deep as prost goes.
const MAX_DEPTH: usize = 100;

/// Walks the wire format without allocating and adds up what decoding it will allocate.
struct Estimate {
    bytes: usize,
    limit: usize,
}

impl Estimate {
    fn message(&mut self, mut wire: &[u8], shape: &'static Shape, depth: usize) -> Result<(), IngestError> {
        if depth > MAX_DEPTH {
            return Err(IngestError::Protobuf {
                cause: format!("messages nest deeper than {MAX_DEPTH}"),
            });
        }
        // Vectors grow by doubling.
        self.bytes = self.bytes.saturating_add(2 * shape.bytes);
        if shape.fields.is_empty() {
            self.bytes = self.bytes.saturating_add(shape.per_byte * wire.len());
        }
        if self.bytes > self.limit {
            return Err(IngestError::TooLarge {
                what: "the decoded request",
                limit_bytes: self.limit,
            });
        }
        if shape.fields.is_empty() {
            return Ok(());
        }
        while !wire.is_empty() {
            let key = varint(&mut wire)?;
            match key & 7 {
                0 => drop(varint(&mut wire)?),
                1 => drop(split(&mut wire, 8)?),
                5 => drop(split(&mut wire, 4)?),
                2 => {
                    let length = varint(&mut wire)?;
                    let inner = split(&mut wire, length)?;
                    match shape.fields.iter().find(|(field, _)| *field == key >> 3) {
                        Some((_, shape)) => self.message(inner, shape, depth + 1)?,
                        None => self.bytes = self.bytes.saturating_add(shape.per_byte * inner.len()),
                    }
                }
                other => {
                    return Err(IngestError::Protobuf {
                        cause: format!("wire type {other} does not exist here"),
                    });
                }
            }
        }
        Ok(())
    }
}

fn truncated() -> IngestError {
    IngestError::Protobuf {
        cause: "the message ends in the middle of a field".to_owned(),
    }
}

fn varint(wire: &mut &[u8]) -> Result<u64, IngestError> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = wire.split_first().ok_or_else(truncated)?;
        *wire = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(IngestError::Protobuf {
        cause: "an integer has more than ten bytes".to_owned(),
    })
}

fn split<'a>(wire: &mut &'a [u8], length: u64) -> Result<&'a [u8], IngestError> {
    let length = usize::try_from(length).map_err(|_| truncated())?;
    let (inner, rest) = wire.split_at_checked(length).ok_or_else(truncated)?;
    *wire = rest;
    Ok(inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use opentelemetry_proto::tonic::profiles::v1development::{Profile, ResourceProfiles, Sample, ScopeProfiles};

    fn with_samples(count: usize) -> Vec<u8> {
        let profile = Profile {
            samples: vec![Sample::default(); count],
            ..Default::default()
        };
        let scope = ScopeProfiles {
            profiles: vec![profile],
            ..Default::default()
        };
        let resource = ResourceProfiles {
            scope_profiles: vec![scope],
            ..Default::default()
        };
        ExportProfilesServiceRequest {
            resource_profiles: vec![resource],
            dictionary: None,
        }
        .encode_to_vec()
    }

    #[test]
    fn a_gigabyte_of_zeros_is_refused_at_the_limit() {
        let zeros = std::io::repeat(0).take(1 << 30);
        let bomb = zstd::stream::encode_all(zeros, 1).unwrap();
        assert!(bomb.len() < 100_000, "{}", bomb.len());
        let error = decompress(&bomb, Encoding::Zstd, 1 << 20).unwrap_err();
        assert!(matches!(error, IngestError::TooLarge { .. }), "{error}");
    }

    #[test]
    fn what_was_compressed_comes_back_and_what_was_cut_does_not() {
        let plain = b"some bytes that are the same again ".repeat(100);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut gzip, &plain).unwrap();
        for (encoding, body) in [
            (Encoding::Gzip, gzip.finish().unwrap()),
            (Encoding::Zstd, zstd::stream::encode_all(plain.as_slice(), 3).unwrap()),
            (Encoding::Identity, plain.clone()),
        ] {
            assert_eq!(decompress(&body, encoding, plain.len()).unwrap(), plain, "{encoding:?}");
            assert!(decompress(&body, encoding, plain.len() - 1).is_err(), "{encoding:?}");
            if encoding != Encoding::Identity {
                let error = decompress(&body[..body.len() - 5], encoding, plain.len()).unwrap_err();
                assert!(matches!(error, IngestError::Compression { .. }), "{encoding:?} {error}");
            }
        }
    }

    #[test]
    fn many_empty_messages_are_refused_before_they_take_memory() {
        let wire = with_samples(100_000);
        assert!(wire.len() < 300_000);
        assert!(decode(&wire, 100 << 20).is_ok());
        let error = decode(&wire, 1 << 20).unwrap_err();
        assert!(matches!(error, IngestError::TooLarge { .. }), "{error}");
    }

    #[test]
    fn garbage_and_cut_messages_are_errors() {
        let wire = with_samples(10);
        for cut in 1..wire.len() {
            assert!(decode(&wire[..cut], 1 << 20).is_err(), "cut at {cut}");
        }
        assert!(decode(b"not a protobuf message at all", 1 << 20).is_err());
    }
}
