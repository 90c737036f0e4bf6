//! Which encodings the asker accepts.

use crate::render::Writer;
use axum::body::Bytes;
use axum::http::{HeaderMap, header};
use std::io::Write;

/// Cheap levels: above them the CPU time of the server grows faster than the answer shrinks.
pub(crate) const ZSTD_LEVEL: i32 = 1;

pub(crate) const GZIP_LEVEL: u32 = 1;

/// Whether the asker accepts an encoding: it names it, or everything, and not with the quality 0.
pub(crate) fn accepts(headers: &HeaderMap, encoding: &str) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING);
    let parts = || {
        let values = values.iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).map(|part| {
            let (name, quality) = part.split_once(';').unwrap_or((part, "q=1"));
            let quality = quality.trim().strip_prefix("q=").and_then(|number| number.parse().ok());
            (name.trim(), quality.unwrap_or(1.0_f32))
        })
    };
    let find = |wanted: &str| parts().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
    find(encoding)
        .or_else(|| find("*"))
        .is_some_and(|(_, quality)| quality > 0.0)
}

/// A way to compress that the asker accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Zstd,
    Gzip,
}

impl Encoding {
    pub(crate) fn choose(headers: &HeaderMap) -> Option<Self> {
        let known = [("zstd", Self::Zstd), ("gzip", Self::Gzip)];
        known
            .into_iter()
            .find(|(name, _)| accepts(headers, name))
            .map(|(_, encoding)| encoding)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        }
    }

    /// Pieces are dropped as they are written: what they take is free for what they become.
    pub(crate) fn compress(self, pieces: Vec<Bytes>, to: &mut Writer) -> std::io::Result<()> {
        match self {
            Self::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(to, ZSTD_LEVEL)?;
                let bytes: usize = pieces.iter().map(Bytes::len).sum();
                encoder.set_pledged_src_size(Some(bytes as u64))?;
                for piece in pieces {
                    encoder.write_all(&piece)?;
                }
                encoder.finish().map(drop)
            }
            Self::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(to, flate2::Compression::new(GZIP_LEVEL));
                for piece in pieces {
                    encoder.write_all(&piece)?;
                }
                encoder.finish().map(drop)
            }
        }
    }
}

/// How an answer of some size to who asks so is packed.
pub(crate) fn encoding_of(headers: &HeaderMap) -> Option<&'static str> {
    Encoding::choose(headers).map(Encoding::name)
}
