//! A small ELF file made byte by byte around one section: what the programs of one machine don't have.

pub(crate) const X86_64: u16 = 62;
pub(crate) const ARM64: u16 = 183;
const ADDRESS: u64 = 0x1_0000;
/// Where the code begins.
pub(crate) const CODE: u64 = ADDRESS + 0x200;
const SECTIONS_AT: usize = 0x1200;

/// Puts `bytes` at `at`.
fn put(file: &mut [u8], at: usize, bytes: &[u8]) {
    file[at..at + bytes.len()].copy_from_slice(bytes);
}

/// A file with one executable segment and one section beside that of the names.
pub(crate) fn elf(machine: u16, name: &str, flags: u64, content: &[u8]) -> Vec<u8> {
    let names_at = SECTIONS_AT + content.len();
    let names = format!("\0{name}\0");
    let table_at = (names_at + names.len()).next_multiple_of(8);
    let mut file = vec![0; table_at + 3 * 64];
    put(&mut file, 0, b"\x7fELF\x02\x01\x01");
    put(&mut file, 18, &machine.to_le_bytes());
    put(&mut file, 32, &64u64.to_le_bytes());
    put(&mut file, 40, &(table_at as u64).to_le_bytes());
    for (at, value) in [(54, 56u16), (56, 1), (58, 64), (60, 3), (62, 2)] {
        put(&mut file, at, &value.to_le_bytes());
    }
    let bytes = file.len() as u64;
    put(&mut file, 64, &[1, 0, 0, 0, 5, 0, 0, 0]);
    put(&mut file, 64 + 16, &ADDRESS.to_le_bytes());
    put(&mut file, 64 + 32, &bytes.to_le_bytes());
    put(&mut file, SECTIONS_AT, content);
    put(&mut file, names_at, names.as_bytes());
    for (index, name, flags, at, bytes) in [
        (1, 1u32, flags, SECTIONS_AT, content.len()),
        (2, 0, 0, names_at, names.len()),
    ] {
        let header = table_at + index * 64;
        put(&mut file, header, &name.to_le_bytes());
        put(&mut file, header + 4, &1u32.to_le_bytes());
        put(&mut file, header + 8, &flags.to_le_bytes());
        put(&mut file, header + 16, &(ADDRESS + at as u64).to_le_bytes());
        put(&mut file, header + 24, &(at as u64).to_le_bytes());
        put(&mut file, header + 32, &(bytes as u64).to_le_bytes());
    }
    file
}
