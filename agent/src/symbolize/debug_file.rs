//! Separate debug files: where distributions put the symbols that they stripped (gdb's manual, "Separate Debug Files").
//!
//! A file is taken only if it has the program's build id, or, where there is none, the checksum that the program names.
//! So it does no harm to look in a process's root, whose content is up to the process, or in our own for what ran
//! elsewhere.

use crate::elf::{Image, field};
use crate::process::{SafeFile, open_in_root, open_regular};
use crate::sys::{Owner, guarded, guarded_for};

const MAX_LINK_BYTES: u64 = 4096;
/// Larger debug files without a build id are not read to their end for their checksum.
const MAX_CHECKED_BYTES: u64 = 256 * 1024 * 1024;
const CHUNK_BYTES: usize = 1 << 16;
const FOLDER: &str = "/usr/lib/debug";

/// What a program says of its debug file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Link {
    build_id: Option<String>,
    /// Name without folders, and CRC-32 of the whole file.
    name: Option<(String, u32)>,
}

impl Link {
    pub(super) fn of<R: Fn(u64, &mut [u8]) -> bool>(image: &Image<R>) -> Self {
        Self {
            build_id: image.build_id(),
            name: debug_link(image),
        }
    }

    /// Opens the debug file of the program that lies at `path` for the process `tgid`, looked for in that process's
    /// root and then in ours.
    pub(super) fn open(&self, path: &str, tgid: u32) -> Option<SafeFile> {
        let candidates = self.candidates(path);
        if candidates.is_empty() {
            return None;
        }
        let belonging = |files: Option<Vec<SafeFile>>| files?.into_iter().find(|file| self.belongs(file));
        let own = candidates.clone();
        let there = guarded_for(tgid, move || {
            let files = candidates.iter().filter_map(|path| open_in_root(tgid, path));
            files.collect()
        });
        belonging(there).or_else(|| {
            let here = move || own.iter().filter_map(|path| open_regular(path)).collect();
            belonging(guarded(Owner::User(0), here))
        })
    }

    pub(super) fn candidates(&self, path: &str) -> Vec<String> {
        let mut candidates = Vec::new();
        if let Some((first, rest)) = self.build_id.as_ref().and_then(|id| id.split_at_checked(2)) {
            candidates.push(format!("{FOLDER}/.build-id/{first}/{rest}.debug"));
        }
        if let Some((name, _)) = &self.name
            && let Some((folder, own)) = path.rsplit_once('/')
        {
            if own != name {
                candidates.push(format!("{folder}/{name}"));
            }
            candidates.push(format!("{folder}/.debug/{name}"));
            candidates.push(format!("{FOLDER}{folder}/{name}"));
        }
        candidates
    }

    fn belongs(&self, file: &SafeFile) -> bool {
        let Some(image) = Image::open(|offset, into: &mut [u8]| file.read_at(offset, into)) else {
            return false;
        };
        match (&self.build_id, image.build_id()) {
            (Some(wanted), Some(found)) => *wanted == found,
            _ => self
                .name
                .as_ref()
                .is_some_and(|(_, wanted)| checksum(file) == Some(*wanted)),
        }
    }
}

fn debug_link<R: Fn(u64, &mut [u8]) -> bool>(image: &Image<R>) -> Option<(String, u32)> {
    let section = image.section(&[b".gnu_debuglink"])?;
    let mut bytes = vec![0; usize::try_from(section.bytes.min(MAX_LINK_BYTES)).ok()?];
    image.read_offset(section.offset, &mut bytes)?;
    let end = bytes.iter().position(|byte| *byte == 0)?;
    let name = std::str::from_utf8(&bytes[..end]).ok()?;
    let checksum = field(&bytes, (end + 1).next_multiple_of(4), 4)?;
    let plain = !name.is_empty() && !name.contains('/') && name != "." && name != "..";
    plain.then(|| Some((name.to_owned(), u32::try_from(checksum).ok()?)))?
}

fn checksum(file: &SafeFile) -> Option<u32> {
    let bytes = file.state().bytes;
    if bytes > MAX_CHECKED_BYTES {
        return None;
    }
    let mut sum = crc32fast::Hasher::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut done = 0;
    while done < bytes {
        let count = file.read_some(done, &mut chunk).filter(|count| *count > 0)?;
        sum.update(&chunk[..count]);
        done += count as u64;
    }
    Some(sum.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_gdb_looks() {
        let link = Link {
            build_id: Some("abcdef".into()),
            name: Some(("a.debug".into(), 0)),
        };
        let expected = [
            "/usr/lib/debug/.build-id/ab/cdef.debug",
            "/opt/x/a.debug",
            "/opt/x/.debug/a.debug",
            "/usr/lib/debug/opt/x/a.debug",
        ];
        assert_eq!(link.candidates("/opt/x/a"), expected);
        assert_eq!(link.candidates("/opt/x/a.debug").len(), 3, "not itself");
        assert!(Link::default().candidates("/a").is_empty());
    }
}
