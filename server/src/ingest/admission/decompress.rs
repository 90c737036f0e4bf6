//! Decompression of a request's body, bounded before it allocates.

use crate::ingest::error::IngestError;
use std::io::Read;
use zstd::zstd_safe::{self, DCtx, ResetDirective};

/// How a body is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// Not at all.
    Identity,
    /// As of RFC 1952.
    Gzip,
    /// As of RFC 8878, with a window of at most 8 MiB.
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

/// How many bytes a body says that it has when it is decompressed; none where it says nothing.
/// [`Decompressor::decompress`] makes no more of it than that: a body of several frames, of which each says something
/// of itself alone, says nothing.
pub(crate) fn said_bytes(body: &[u8], encoding: Encoding) -> Option<u64> {
    match encoding {
        Encoding::Identity => Some(body.len() as u64),
        Encoding::Gzip => None,
        Encoding::Zstd => {
            let is_one = body.starts_with(&ZSTD_MAGIC) && zstd_safe::find_frame_compressed_size(body) == Ok(body.len());
            zstd_safe::get_frame_content_size(body)
                .ok()
                .flatten()
                .filter(|_| is_one)
        }
    }
}

/// How a frame begins that is not one to be skipped (RFC 8878, 3.1.1).
const ZSTD_MAGIC: [u8; 4] = zstd_safe::MAGICNUMBER.to_le_bytes();

/// A zstd frame may ask for no larger a window than this power of two: what the format recommends decoders to support.
const ZSTD_WINDOW_LOG: u32 = 23;

/// What a decompressor keeps from one body to the next, at most.
const KEPT_BYTES: usize = 4 << 20;

/// A body that says how long it is decompressed, and is not this many times as long as it came, gets that memory at
/// once.
const MAX_TRUSTED_RATIO: u64 = 64;

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
    /// What was decompressed last.
    pub fn last(&self) -> &[u8] {
        &self.plain
    }

    /// Decompresses a body. Never yields or holds more than `limit` bytes: a larger body is an error as soon as it is
    /// known.
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
            Encoding::Zstd if whole(zstd, body, limit, plain) => {}
            Encoding::Zstd => {
                plain.clear();
                // What a broken body left behind is not this one's.
                let reset = zstd.reset(ResetDirective::SessionAndParameters);
                reset.map_err(|code| IngestError::Compression {
                    what: "zstd",
                    cause: zstd_safe::get_error_name(code).to_owned(),
                })?;
                let mut decoder = zstd::stream::read::Decoder::with_context(body, zstd);
                decoder.window_log_max(ZSTD_WINDOW_LOG).map_err(broken("zstd"))?;
                let said = said_bytes(body, encoding).filter(|said| *said <= limit as u64);
                let mut decoder = decoder.take(said.map_or(limited, |said| said + 1));
                decoder.read_to_end(plain).map_err(broken("zstd"))?;
                if said.is_some_and(|said| plain.len() as u64 > said) {
                    return Err(IngestError::Compression {
                        what: "zstd",
                        cause: "the frame has more bytes than it says".to_owned(),
                    });
                }
            }
        }
        if plain.len() > limit {
            Err(too_large())
        } else {
            Ok(plain)
        }
    }
}

/// Decompresses a zstd frame that says its length, as agents' do, in one go: no window of what came before is kept
/// beside it. False where there is more to it; then it is read piece by piece, and errors are told.
fn whole(zstd: &mut DCtx<'static>, body: &[u8], limit: usize, plain: &mut Vec<u8>) -> bool {
    let Some(bytes) = said_bytes(body, Encoding::Zstd) else {
        return false;
    };
    if bytes > limit as u64 || bytes / MAX_TRUSTED_RATIO > body.len() as u64 {
        return false;
    }
    plain.reserve_exact(bytes as usize);
    zstd.reset(ResetDirective::SessionAndParameters).is_ok()
        && zstd.decompress(plain, body).is_ok()
        && plain.len() as u64 == bytes
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
    fn what_a_body_says_of_its_length_is_not_believed_blindly() {
        let zeros = vec![0; 1 << 20];
        let body = zstd::bulk::compress(&zeros, 3).unwrap();
        assert!(zeros.len() as u64 / MAX_TRUSTED_RATIO > body.len() as u64);
        let mut decompressor = Decompressor::default();
        assert_eq!(decompressor.decompress(&body, Encoding::Zstd, 1 << 20).unwrap(), zeros);
        // The length in the header is one byte less, or more.
        let text: Vec<u8> = (0..200).flat_map(|n: u8| [n, n.wrapping_mul(7), 3]).collect();
        let body = zstd::bulk::compress(&text, 3).unwrap();
        let at = body
            .windows(2)
            .position(|bytes| bytes == ((text.len() - 256) as u16).to_le_bytes());
        for change in [u8::wrapping_add, u8::wrapping_sub] {
            let mut wrong = body.clone();
            wrong[at.unwrap()] = change(wrong[at.unwrap()], 1);
            let error = decompressor.decompress(&wrong, Encoding::Zstd, 1 << 20).unwrap_err();
            assert!(matches!(error, IngestError::Compression { .. }), "{error}");
        }
        assert_eq!(
            decompressor.decompress(&body, Encoding::Zstd, text.len()).unwrap(),
            text
        );
        let error = decompressor
            .decompress(&body, Encoding::Zstd, text.len() - 1)
            .unwrap_err();
        assert!(matches!(error, IngestError::TooLarge { .. }), "{error}");
    }

    #[test]
    fn only_a_single_frame_says_how_much_a_body_is() {
        let text: Vec<u8> = (0..200).flat_map(|n: u8| [n, n.wrapping_mul(7), 3]).collect();
        let frame = zstd::bulk::compress(&text, 3).unwrap();
        let said = |body: &[u8]| said_bytes(body, Encoding::Zstd);
        assert_eq!(said(&frame), Some(text.len() as u64));
        // One to be skipped, of no bytes, and another frame behind it or before it: nothing is said of the whole.
        let skipped = [&0x184d_2a50_u32.to_le_bytes()[..], &[0; 4]].concat();
        for body in [[&skipped[..], &frame].concat(), [&frame[..], &frame].concat(), skipped] {
            assert_eq!(said(&body), None);
        }
        // A megabyte that says that it is of one byte is not made, but for that.
        let mut lie = zstd::bulk::compress(&vec![0; 1 << 20], 3).unwrap();
        let at = lie.windows(4).position(|bytes| bytes == (1_u32 << 20).to_le_bytes());
        lie[at.unwrap()..][..4].copy_from_slice(&1_u32.to_le_bytes());
        assert_eq!(said(&lie), Some(1));
        let mut decompressor = Decompressor::default();
        let error = decompressor.decompress(&lie, Encoding::Zstd, 1 << 24).unwrap_err();
        assert!(matches!(error, IngestError::Compression { .. }), "{error}");
        assert!(decompressor.plain.len() <= 2);
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
            // One that says how long it is, and two in one body.
            (Encoding::Zstd, zstd::bulk::compress(&plain, 3).unwrap()),
            (
                Encoding::Zstd,
                plain
                    .chunks(1000)
                    .flat_map(|part| zstd::bulk::compress(part, 3).unwrap())
                    .collect(),
            ),
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
