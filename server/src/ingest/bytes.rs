//! Decompression of a request's body, bounded before it allocates.

use super::IngestError;
use std::io::Read;
use zstd::zstd_safe::{DCtx, ResetDirective};

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

/// What a decompressor keeps from one body to the next, at most.
const KEPT_BYTES: usize = 4 << 20;

/// Decompresses bodies, one after another, into the same memory: fresh pages cost more than what is written to them.
pub struct Decompressor {
    plain: Vec<u8>,
    zstd: DCtx<'static>,
}

impl std::fmt::Debug for Decompressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decompressor")
            .field("plain", &self.plain.len())
            .finish_non_exhaustive()
    }
}

impl Default for Decompressor {
    fn default() -> Self {
        Self {
            plain: Vec::new(),
            zstd: DCtx::create(),
        }
    }
}

impl Decompressor {
    /// Decompresses a body. Never yields or holds more than `limit` bytes: a larger body is an error as soon as it is known.
    pub fn decompress(&mut self, body: &[u8], encoding: Encoding, limit: usize) -> Result<&[u8], IngestError> {
        let Self { plain, zstd } = self;
        plain.clear();
        plain.shrink_to(KEPT_BYTES);
        // What requests compress to, or less.
        plain.reserve(limit.min(4 * body.len()));
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
                    .read_to_end(plain)
                    .map_err(broken("gzip"))?;
            }
            Encoding::Zstd => {
                // What a broken body left behind is not this one's.
                let reset = zstd.reset(ResetDirective::SessionAndParameters);
                reset.map_err(|code| IngestError::Compression {
                    what: "zstd",
                    cause: zstd::zstd_safe::get_error_name(code).to_owned(),
                })?;
                let mut decoder = zstd::stream::read::Decoder::with_context(body, zstd);
                decoder.window_log_max(ZSTD_WINDOW_LOG).map_err(broken("zstd"))?;
                decoder.take(limited).read_to_end(plain).map_err(broken("zstd"))?;
            }
        }
        if plain.len() > limit {
            Err(too_large())
        } else {
            Ok(plain)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gigabyte_of_zeros_is_refused_at_the_limit() {
        let zeros = std::io::repeat(0).take(1 << 30);
        let bomb = zstd::stream::encode_all(zeros, 1).unwrap();
        assert!(bomb.len() < 100_000, "{}", bomb.len());
        let mut decompressor = Decompressor::default();
        let error = decompressor.decompress(&bomb, Encoding::Zstd, 1 << 20).unwrap_err();
        assert!(matches!(error, IngestError::TooLarge { .. }), "{error}");
    }

    #[test]
    fn what_was_compressed_comes_back_and_what_was_cut_does_not() {
        let plain = b"some bytes that are the same again ".repeat(100);
        // One for all: what failed before does no harm.
        let mut decompressor = Decompressor::default();
        let mut decompress =
            |body: &[u8], encoding, limit| decompressor.decompress(body, encoding, limit).map(<[u8]>::to_vec);
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
}
