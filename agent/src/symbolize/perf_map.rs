//! Perf maps: text files in which run-time compilers say where they put which function.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};

/// What is read of one map, and so what one map costs in memory. V8 writes tens of megabytes after days.
const MAX_MAP_BYTES: u64 = 8 * 1024 * 1024;
const MAX_NAME_BYTES: usize = 512;
const CHUNK_BYTES: usize = 64 * 1024;
/// What is compared to see whether a file only grew.
const KNOWN_BYTES: usize = 256;

/// One process's map, read as far as it has grown.
#[derive(Debug, Default)]
pub(super) struct PerfMap {
    /// Start to (end, name). Ranges don't overlap: what was written later replaces what it covers.
    ranges: BTreeMap<u64, (u64, Box<str>)>,
    read_bytes: u64,
    /// The end of what was read, to know the file again.
    read_end: Vec<u8>,
    inode: u64,
    pub(super) used_ns: u64,
}

impl PerfMap {
    /// Reads what was appended since. Some compilers write their whole map anew, into the same file or another.
    pub(super) fn refresh(&mut self, file: &File) {
        let Ok(metadata) = file.metadata() else { return };
        if metadata.ino() != self.inode || metadata.len() < self.read_bytes || !self.is_same_up_to_here(file) {
            self.ranges.clear();
            self.read_bytes = 0;
            self.read_end.clear();
            self.inode = metadata.ino();
        }
        let mut chunk = vec![0; CHUNK_BYTES];
        while self.read_bytes < metadata.len().min(MAX_MAP_BYTES) {
            let Ok(got) = file.read_at(&mut chunk, self.read_bytes) else {
                return;
            };
            if !self.take(&chunk[..got], got == chunk.len()) {
                return;
            }
        }
    }

    /// Takes the whole lines of what was appended; false where there is none. The last line may be half-written: it waits for the
    /// next time, unless it could never be whole, since there is `no_more_room` for it.
    fn take(&mut self, appended: &[u8], no_more_room: bool) -> bool {
        let whole = match appended.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => end + 1,
            None if no_more_room => appended.len(),
            None => return false,
        };
        for line in appended[..whole].split(|byte| *byte == b'\n') {
            self.add_line(&String::from_utf8_lossy(line));
        }
        self.read_bytes += whole as u64;
        self.read_end = appended[whole.saturating_sub(KNOWN_BYTES)..whole].to_vec();
        true
    }

    fn is_same_up_to_here(&self, file: &File) -> bool {
        let mut end = vec![0; self.read_end.len()];
        let at = self.read_bytes - self.read_end.len() as u64;
        file.read_exact_at(&mut end, at).is_ok() && end == self.read_end
    }

    /// `START SIZE NAME`, both numbers in hex.
    fn add_line(&mut self, line: &str) {
        let mut fields = line.splitn(3, ' ');
        let hex = |text: Option<&str>| u64::from_str_radix(text?.trim_start_matches("0x"), 16).ok();
        let (Some(start), Some(bytes)) = (hex(fields.next()), hex(fields.next())) else {
            return;
        };
        let Some(name) = fields.next().map(str::trim).filter(|name| !name.is_empty()) else {
            return;
        };
        let Some(end) = start.checked_add(bytes).filter(|end| *end > start) else {
            return;
        };
        self.make_room(start, end);
        let cut = name.floor_char_boundary(MAX_NAME_BYTES);
        self.ranges.insert(start, (end, name[..cut].into()));
    }

    fn make_room(&mut self, start: u64, end: u64) {
        while let Some((&other_start, (other_end, _))) = self.ranges.range(..end).next_back() {
            if *other_end <= start {
                break;
            }
            self.ranges.remove(&other_start);
        }
    }

    pub(super) fn find(&self, address: u64) -> Option<&str> {
        let (_, (end, name)) = self.ranges.range(..=address).next_back()?;
        (address < *end).then_some(&**name)
    }
}

#[cfg(any(test, fuzzing))]
impl PerfMap {
    /// Reads a map that grew twice, and holds what must hold of the ranges.
    pub(super) fn check(first: &[u8], second: &[u8]) {
        let mut map = Self::default();
        map.take(first, false);
        let rest = usize::try_from(map.read_bytes).map_or(&[][..], |read| &first[read..]);
        map.take(&[rest, second].concat(), true);
        let mut reached = 0;
        for (start, (end, name)) in &map.ranges {
            assert!(reached <= *start && start < end, "ranges overlap");
            assert!((1..=MAX_NAME_BYTES).contains(&name.len()));
            assert_eq!(map.find(*start), Some(&**name));
            assert_eq!(map.find(*end - 1), Some(&**name));
            reached = *end;
        }
        assert!(map.ranges.len() <= (first.len() + second.len()) / "0 1 a".len() + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn later_lines_win_and_growth_is_followed() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut map = PerfMap::default();
        write!(
            file,
            "1000 100 LazyCompile:~old a.js:1\n1100 20 other\nnonsense\n2000 0 empty\n30"
        )
        .unwrap();
        map.refresh(file.as_file());
        assert_eq!(map.find(0x1050), Some("LazyCompile:~old a.js:1"));
        assert_eq!(map.find(0x1100), Some("other"));
        assert_eq!(map.find(0x1120), None);
        assert_eq!(map.find(0x2000), None);
        assert_eq!(map.find(0x3000), None, "the line is not whole yet");
        write!(file, "00 10 late\n1080 10 new\n").unwrap();
        map.refresh(file.as_file());
        assert_eq!(map.find(0x3005), Some("late"));
        assert_eq!(map.find(0x1085), Some("new"));
        assert_eq!(map.find(0x1050), None, "what it covered is gone");
    }

    #[test]
    fn a_map_written_anew_replaces_the_old_one() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut map = PerfMap::default();
        write!(file, "1000 100 old\n2000 100 other\n").unwrap();
        map.refresh(file.as_file());
        assert_eq!(map.find(0x2000), Some("other"));
        file.as_file().set_len(0).unwrap();
        std::io::Seek::rewind(&mut file).unwrap();
        write!(
            file,
            "1000 100 new\n3000 100 longer than before, so that length tells nothing\n"
        )
        .unwrap();
        map.refresh(file.as_file());
        assert_eq!((map.find(0x1000), map.find(0x2000)), (Some("new"), None));
        let mut another = tempfile::NamedTempFile::new().unwrap();
        writeln!(another, "1000 100 another").unwrap();
        map.refresh(another.as_file());
        assert_eq!((map.find(0x1000), map.find(0x3000)), (Some("another"), None));
    }

    #[test]
    fn a_map_of_any_size_costs_a_bounded_part() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        for i in 0..400_000u64 {
            writeln!(file, "{:x} 10 function_with_a_name", 0x1000 + i * 16).unwrap();
        }
        let mut map = PerfMap::default();
        map.refresh(file.as_file());
        assert!(map.read_bytes <= MAX_MAP_BYTES + CHUNK_BYTES as u64);
        assert!(map.find(0x1000).is_some());
        write!(file, "{}", "x".repeat(200_000)).unwrap();
        map.refresh(file.as_file());
    }
}
