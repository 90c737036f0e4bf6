//! One file of the spool: a header of 48 bytes, then the compressed request. All numbers are little-endian.
//!
//! | offset | bytes | |
//! |---|---|---|
//! | 0 | 8 | `STKSPL01` |
//! | 8 | 16 | instance |
//! | 24 | 8 | number of the batch |
//! | 32 | 8 | samples in it |
//! | 40 | 8 | XXH3-64 of bytes 8 to 40 followed by the request |

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use bytes::Bytes;
use uuid::Uuid;
use xxhash_rust::xxh3::Xxh3;

const MAGIC: &[u8; 8] = b"STKSPL01";
pub(super) const HEADER_BYTES: usize = 48;
/// A batch of the largest machine stays far below; a larger file is not ours.
const LARGEST_FILE_BYTES: u64 = 64 << 20;

/// What identifies a batch; fixed when it enters the spool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Label {
    pub(super) instance: Uuid,
    pub(super) number: u64,
    pub(super) samples: u64,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum Unreadable {
    /// Perhaps readable later: no descriptors, no memory.
    #[error(transparent)]
    Io(std::io::Error),
    #[error("{0}")]
    Damaged(&'static str),
}

/// The file's bytes in two parts: header and `request`.
pub(super) fn header(label: Label, request: &[u8]) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(MAGIC);
    header[8..24].copy_from_slice(label.instance.as_bytes());
    header[24..32].copy_from_slice(&label.number.to_le_bytes());
    header[32..40].copy_from_slice(&label.samples.to_le_bytes());
    let checksum = checksum(&header, request);
    header[40..].copy_from_slice(&checksum.to_le_bytes());
    header
}

fn checksum(header: &[u8; HEADER_BYTES], request: &[u8]) -> u64 {
    let mut hash = Xxh3::new();
    hash.update(&header[8..40]);
    hash.update(request);
    hash.digest()
}

/// Reads a whole file's bytes back. Any change of any byte is found.
pub(super) fn parse(file: Bytes) -> Result<(Label, Bytes), Unreadable> {
    let Some(header) = file.first_chunk::<HEADER_BYTES>() else {
        return Err(Unreadable::Damaged("shorter than its header"));
    };
    if &header[..8] != MAGIC {
        return Err(Unreadable::Damaged("does not begin as a spool file"));
    }
    let number = |at: usize| header[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let instance = header[8..]
        .first_chunk()
        .map_or(Uuid::nil(), |bytes| Uuid::from_bytes(*bytes));
    if number(40) != checksum(header, &file[HEADER_BYTES..]) {
        return Err(Unreadable::Damaged("its checksum is wrong: cut off or changed"));
    }
    Ok((
        Label {
            instance,
            number: number(24),
            samples: number(32),
        },
        file.slice(HEADER_BYTES..),
    ))
}

pub(super) fn read(path: &Path) -> Result<(Label, Bytes), Unreadable> {
    let open = || {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        Ok((file, length))
    };
    let (file, length) = open().map_err(|error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => Unreadable::Damaged("it has vanished"),
        _ => Unreadable::Io(error),
    })?;
    if length > LARGEST_FILE_BYTES {
        return Err(Unreadable::Damaged("larger than any batch"));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
    file.take(LARGEST_FILE_BYTES)
        .read_to_end(&mut bytes)
        .map_err(Unreadable::Io)?;
    parse(bytes.into())
}

/// Appears under `path` whole or not at all; `durable`: also after a power cut. Returns the file's length.
pub(super) fn write(path: &Path, label: Label, request: &[u8], durable: bool) -> std::io::Result<u64> {
    let partial = path.with_extension("part");
    let result = write_partial(&partial, label, request, durable).and_then(|()| std::fs::rename(&partial, path));
    if let Err(error) = result {
        // On a full disk even half a file takes room.
        let _ = std::fs::remove_file(&partial);
        return Err(error);
    }
    if durable && let Some(parent) = path.parent() {
        File::open(parent)?.sync_all()?;
    }
    Ok((HEADER_BYTES + request.len()) as u64)
}

fn write_partial(partial: &Path, label: Label, request: &[u8], durable: bool) -> std::io::Result<()> {
    let mut file = File::create(partial)?;
    file.write_all(&header(label, request))?;
    file.write_all(request)?;
    if durable { file.sync_data() } else { Ok(()) }
}

/// Holds of every file: what is read is what was written, byte for byte, and what is written is read. The first bytes
/// also serve as label, since nobody makes up a file whose checksum is right.
#[cfg(any(test, fuzzing))]
pub(in crate::ship) fn check(bytes: &[u8]) {
    let whole = |label, request: &[u8]| [&header(label, request)[..], request].concat();
    if let Ok((label, request)) = parse(Bytes::copy_from_slice(bytes)) {
        assert_eq!(whole(label, &request), bytes);
    }
    let Some((label, request)) = bytes.split_first_chunk::<32>() else {
        return;
    };
    let number = |at: usize| label[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let label = Label {
        instance: Uuid::from_u64_pair(number(0), number(8)),
        number: number(16),
        samples: number(24),
    };
    let file = whole(label, request);
    let read = parse(file.clone().into());
    assert!(read.is_ok_and(|read| read == (label, Bytes::copy_from_slice(request))));
    // One byte that the file itself chooses.
    let mut changed = file;
    let at = usize::try_from(label.number).unwrap_or(0) % changed.len();
    changed[at] ^= 0x10;
    assert!(parse(changed.into()).is_err());
}

/// Batches hold command lines, which are nobody else's business.
pub(super) fn make_private_dir(dir: &Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample_file() -> Vec<u8> {
        let label = Label {
            instance: Uuid::from_u128(7),
            number: 3,
            samples: 99,
        };
        [&header(label, b"request")[..], b"request"].concat()
    }

    #[test]
    fn what_is_written_is_read() {
        let (label, request) = parse(sample_file().into()).unwrap();
        assert_eq!(
            label,
            Label {
                instance: Uuid::from_u128(7),
                number: 3,
                samples: 99
            }
        );
        assert_eq!(&request[..], b"request");
    }

    #[test]
    fn every_changed_bit_and_every_cut_is_found() {
        let good = sample_file();
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(parse(bad.into()), Err(Unreadable::Damaged(_))), "bit {bit}");
        }
        for length in 0..good.len() {
            assert!(parse(good[..length].to_vec().into()).is_err(), "{length} bytes");
        }
        let mut long = good;
        long.push(0);
        assert!(parse(long.into()).is_err());
    }

    #[test]
    fn arbitrary_bytes_are_refused() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for length in 0..600 {
            let mut bytes: Vec<u8> = (0..length)
                .map(|_| {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1_442_695_040_888_963_407);
                    (state >> 56) as u8
                })
                .collect();
            assert!(parse(bytes.clone().into()).is_err());
            if length >= 8 {
                bytes[..8].copy_from_slice(MAGIC);
                assert!(parse(bytes.into()).is_err());
            }
        }
    }
}
