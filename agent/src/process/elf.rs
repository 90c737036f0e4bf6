//! The GNU build id of an ELF file, read from its program headers.

use std::fs::File;
use std::os::unix::fs::FileExt;

const ELF_MAGIC: &[u8; 4] = b"\x7fELF";
const CLASS_64: u8 = 2;
const LITTLE_ENDIAN: u8 = 1;
const HEADER_BYTES: usize = 64;
const PROGRAM_HEADER_BYTES: usize = 56;
const PT_NOTE: u32 = 4;
const NT_GNU_BUILD_ID: u32 = 3;
/// Larger tables of program headers or notes are not looked at.
const MAX_PROGRAM_HEADERS: usize = 128;
const SECTION_HEADER_BYTES: usize = 64;
const MAX_SECTIONS: usize = 4096;
const MAX_NOTES_BYTES: u64 = 64 * 1024;

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// The build id in lower-case hex; none where the file has none or is no 64-bit little-endian ELF file.
pub fn gnu_build_id(file: &File) -> Option<String> {
    let mut header = [0; HEADER_BYTES];
    file.read_exact_at(&mut header, 0).ok()?;
    if &header[..4] != ELF_MAGIC || header[4] != CLASS_64 || header[5] != LITTLE_ENDIAN {
        return None;
    }
    let offset = u64_at(&header, 32)?;
    let entry_bytes = usize::from(u16_at(&header, 54)?);
    let count = usize::from(u16_at(&header, 56)?).min(MAX_PROGRAM_HEADERS);
    if entry_bytes != PROGRAM_HEADER_BYTES {
        return None;
    }
    let mut table = vec![0; entry_bytes * count];
    file.read_exact_at(&mut table, offset).ok()?;
    table
        .chunks_exact(entry_bytes)
        .filter(|entry| u32_at(entry, 0) == Some(PT_NOTE))
        .find_map(|entry| {
            let (at, bytes) = (u64_at(entry, 8)?, u64_at(entry, 32)?.min(MAX_NOTES_BYTES));
            let mut notes = vec![0; bytes as usize];
            file.read_exact_at(&mut notes, at).ok()?;
            // Notes are padded to 4 bytes, in some segments to 8.
            build_id_in_notes(&notes, 4).or_else(|| build_id_in_notes(&notes, 8))
        })
}

/// True where the file has a section of this name. Names longer than 64 KiB in all are not looked at to their end.
pub(super) fn has_section(file: &File, name: &str) -> bool {
    section_names(file).is_some_and(|names| names.iter().any(|known| known == name.as_bytes()))
}

fn section_names(file: &File) -> Option<Vec<Vec<u8>>> {
    let mut header = [0; HEADER_BYTES];
    file.read_exact_at(&mut header, 0).ok()?;
    if &header[..4] != ELF_MAGIC || header[4] != CLASS_64 || header[5] != LITTLE_ENDIAN {
        return None;
    }
    let count = usize::from(u16_at(&header, 60)?).min(MAX_SECTIONS);
    if usize::from(u16_at(&header, 58)?) != SECTION_HEADER_BYTES {
        return None;
    }
    let mut table = vec![0; count * SECTION_HEADER_BYTES];
    file.read_exact_at(&mut table, u64_at(&header, 40)?).ok()?;
    let names_at = usize::from(u16_at(&header, 62)?).checked_mul(SECTION_HEADER_BYTES)?;
    let names_header = table.get(names_at..names_at + SECTION_HEADER_BYTES)?;
    let mut names = vec![0; u64_at(names_header, 32)?.min(MAX_NOTES_BYTES) as usize];
    file.read_exact_at(&mut names, u64_at(names_header, 24)?).ok()?;
    let name_of = |entry: &[u8]| {
        let name = names.get(u32_at(entry, 0)? as usize..)?;
        Some(name.split(|byte| *byte == 0).next()?.to_vec())
    };
    Some(table.chunks_exact(SECTION_HEADER_BYTES).filter_map(name_of).collect())
}

fn build_id_in_notes(mut notes: &[u8], alignment: usize) -> Option<String> {
    loop {
        let name_bytes = u32_at(notes, 0)? as usize;
        let id_bytes = u32_at(notes, 4)? as usize;
        let kind = u32_at(notes, 8)?;
        let id_at = 12usize.checked_add(name_bytes)?.checked_next_multiple_of(alignment)?;
        let next = id_at.checked_add(id_bytes)?.checked_next_multiple_of(alignment)?;
        if kind == NT_GNU_BUILD_ID && notes.get(12..12 + name_bytes)? == b"GNU\0" {
            let id = notes.get(id_at..id_at + id_bytes)?;
            let plausible = (4..=64).contains(&id.len());
            return plausible.then(|| id.iter().map(|byte| format!("{byte:02x}")).collect());
        }
        notes = notes.get(next..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(name: &[u8], kind: u32, content: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend((name.len() as u32).to_le_bytes());
        bytes.extend((content.len() as u32).to_le_bytes());
        bytes.extend(kind.to_le_bytes());
        bytes.extend(name);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes.extend(content);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn the_build_id_is_found_among_other_notes() {
        let mut notes = note(b"GNU\0", 1, &[0; 16]);
        notes.extend(note(b"Go\0\0", 4, b"abc"));
        notes.extend(note(b"GNU\0", 3, &[0xab, 0xcd, 0x01, 0x02]));
        assert_eq!(build_id_in_notes(&notes, 4).as_deref(), Some("abcd0102"));
    }

    #[test]
    fn notes_that_lie_about_their_lengths_give_nothing() {
        let mut notes = note(b"GNU\0", 3, &[1; 20]);
        notes.truncate(20);
        assert_eq!(build_id_in_notes(&notes, 4), None);
        assert_eq!(build_id_in_notes(&[0xff; 40], 4), None);
        assert_eq!(build_id_in_notes(&[], 4), None);
    }

    #[test]
    fn this_test_program_has_the_build_id_that_its_section_says() {
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        if let Some(id) = gnu_build_id(&file) {
            assert!(id.len() >= 8 && id.bytes().all(|byte| byte.is_ascii_hexdigit()));
        }
        assert!(has_section(&file, ".text") && !has_section(&file, ".tex"));
        let nothing = File::open("/dev/null").unwrap();
        assert_eq!(gnu_build_id(&nothing), None);
        assert!(!has_section(&nothing, ".text"));
    }
}
