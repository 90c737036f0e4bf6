//! Sections that are compressed in the file.

use std::io::{self, Read};

use super::image::{FileRange, Image, Section, field};

/// What a section may have after decompression.
const MAX_DECOMPRESSED_BYTES: u64 = 256 * 1024 * 1024;
/// How far back zstd may refer: 8 MiB, which is what its highest usual level writes.
const MAX_ZSTD_WINDOW_LOG: u32 = 23;
const COMPRESSION_HEADER_BYTES: u64 = 24;

/// The content of a compressed section (gABI, "Section Compression"). None for other methods than zlib and zstd.
pub(crate) fn decompressed<'a, R: Fn(u64, &mut [u8]) -> bool>(
    image: &'a Image<R>,
    section: Section,
) -> Option<io::Result<Box<dyn Read + 'a>>> {
    const ZLIB: u64 = 1;
    const ZSTD: u64 = 2;
    let mut header = [0; 4];
    image.read_offset(section.offset, &mut header)?;
    let offset = section.offset.checked_add(COMPRESSION_HEADER_BYTES)?;
    let source = FileRange::new(image, offset, section.bytes.checked_sub(COMPRESSION_HEADER_BYTES)?);
    match field(&header, 0, 4)? {
        ZLIB => {
            let decoder = flate2::read::ZlibDecoder::new(source);
            Some(Ok(Box::new(decoder.take(MAX_DECOMPRESSED_BYTES))))
        }
        ZSTD => Some(zstd::stream::read::Decoder::new(source).and_then(|mut decoder| {
            decoder.window_log_max(MAX_ZSTD_WINDOW_LOG)?;
            Ok(Box::new(decoder.take(MAX_DECOMPRESSED_BYTES)) as Box<dyn Read>)
        })),
        _ => None,
    }
}

/// How many bytes all compressed sections have after decompression. None where one cannot be decompressed, or where
/// they are more than `limit`: what a section says of its own size may be wrong, so they are decompressed to find
/// out.
pub(crate) fn decompressed_bytes<R: Fn(u64, &mut [u8]) -> bool>(image: &Image<R>, limit: u64) -> Option<u64> {
    let mut total = 0;
    for section in image.sections()?.into_iter().filter(|section| section.compressed) {
        let left = limit - total;
        let mut source = decompressed(image, section)?.ok()?.take(left + 1);
        let bytes = io::copy(&mut source, &mut io::sink()).ok()?;
        if bytes > left {
            return None;
        }
        total += bytes;
    }
    Some(total)
}
