//! Where a file's symbols lie, by their names, whatever they are of: data too.

use super::blocks::Blocks;
use super::image::{Image, field};
use super::symbols::{SHT_DYNSYM, SHT_SYMTAB, SYMBOL_BYTES};

const SHN_UNDEF: u64 = 0;
const STT_FILE: u64 = 4;
/// Symbols of a table that are looked at; a large library exports some ten thousand.
const MAX_SYMBOLS: u64 = 1 << 18;
const CHUNK_SYMBOLS: u64 = 512;

/// The addresses, in the file's own, of dynamic symbols by these names; none for one that is not there. A name that
/// ends with a star stands for all that begin like it.
pub(crate) fn dynamic_symbols<R: Fn(u64, &mut [u8]) -> bool>(image: &Image<R>, names: &[&str]) -> Vec<Option<u64>> {
    named_symbols(image, SHT_DYNSYM, names)
}

/// The same of all symbols, which a stripped file does not have. Of a table that is too large, what other files may use
/// is looked at before what is the file's own.
pub(crate) fn static_symbols<R: Fn(u64, &mut [u8]) -> bool>(image: &Image<R>, names: &[&str]) -> Vec<Option<u64>> {
    named_symbols(image, SHT_SYMTAB, names)
}

fn named_symbols<R: Fn(u64, &mut [u8]) -> bool>(image: &Image<R>, kind: u64, names: &[&str]) -> Vec<Option<u64>> {
    let mut found = vec![None; names.len()];
    let Some(sections) = image.sections() else { return found };
    let Some(table) = sections.iter().find(|section| section.kind == kind) else {
        return found;
    };
    let Some(strings) = sections.get(table.link).filter(|strings| !strings.compressed) else {
        return found;
    };
    if table.entry_bytes != SYMBOL_BYTES as u64 || table.compressed {
        return found;
    }
    let longest = names.iter().map(|name| name.len()).max().unwrap_or(0);
    let mut texts = Blocks::new(image, strings.offset, strings.bytes);
    let mut text = vec![0; longest + 1];
    let mut chunk = vec![0; CHUNK_SYMBOLS as usize * SYMBOL_BYTES];
    // A table begins with what is the file's own.
    let count = table.bytes / SYMBOL_BYTES as u64;
    for first in (count.saturating_sub(MAX_SYMBOLS)..count).step_by(CHUNK_SYMBOLS as usize) {
        let some = &mut chunk[..(count - first).min(CHUNK_SYMBOLS) as usize * SYMBOL_BYTES];
        if image
            .read_offset(table.offset.saturating_add(first * SYMBOL_BYTES as u64), some)
            .is_none()
        {
            break;
        }
        for entry in some.chunks_exact(SYMBOL_BYTES) {
            let (Some(name), Some(info)) = (field(entry, 0, 4), field(entry, 4, 1)) else {
                continue;
            };
            let (Some(section), Some(address)) = (field(entry, 6, 2), field(entry, 8, 8)) else {
                continue;
            };
            if section == SHN_UNDEF || info & 0xf == STT_FILE || name >= strings.bytes {
                continue;
            }
            let there = (longest + 1).min((strings.bytes - name) as usize);
            let Some(text) = text.get_mut(..there) else { continue };
            if texts.copy(name, text).is_none() {
                continue;
            }
            let end = text.iter().position(|byte| *byte == 0).unwrap_or(there);
            let text = &text[..end];
            if let Some(at) = names.iter().position(|wanted| is_meant(wanted.as_bytes(), text)) {
                found[at] = Some(address);
            }
        }
        if found.iter().all(Option::is_some) {
            break;
        }
    }
    found
}

fn is_meant(wanted: &[u8], name: &[u8]) -> bool {
    wanted
        .strip_suffix(b"*")
        .map_or(wanted == name, |begin| name.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    /// The C library has both kinds of data, and names that begin alike.
    #[test]
    fn data_is_found_by_its_whole_name() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let path = maps
            .lines()
            .find_map(|line| line.find("/libc.so").map(|_| line.split_whitespace().last().unwrap()));
        let file = std::fs::File::open(path.unwrap()).unwrap();
        let read = |offset: u64, bytes: &mut [u8]| file.read_exact_at(bytes, offset).is_ok();
        let image = Image::open(read).unwrap();
        let found = dynamic_symbols(&image, &["environ", "stdout", "environ_", "stdou", "getenv"]);
        assert!(
            found[0].is_some() && found[1].is_some() && found[4].is_some(),
            "{found:?}"
        );
        assert_eq!((found[2], found[3]), (None, None));
        let begins = dynamic_symbols(&image, &["secure_getenv*", "stdou*x", "secure_getenv_*"]);
        assert!(begins[0].is_some() && begins[1..] == [None, None], "{begins:?}");
        // This process's own address of one of them tells the same.
        let begin = maps.lines().find(|line| line.ends_with(path.unwrap())).unwrap();
        let begin = u64::from_str_radix(begin.split('-').next().unwrap(), 16).unwrap();
        assert_eq!(begin + found[4].unwrap(), libc::getenv as *const () as u64);
    }

    /// An executable exports neither; where it begins, its header says.
    #[test]
    fn what_is_not_exported_is_in_the_table_of_all_symbols() {
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        let read = |offset: u64, bytes: &mut [u8]| file.read_exact_at(bytes, offset).is_ok();
        let image = Image::open(read).unwrap();
        let names = ["_start", "main", "_star", "main_"];
        assert_eq!(dynamic_symbols(&image, &names)[1], None);
        let mut entry = [0; 8];
        file.read_exact_at(&mut entry, 24).unwrap();
        let found = static_symbols(&image, &names);
        assert_eq!(found[0], Some(u64::from_le_bytes(entry)));
        let main = found[1].unwrap();
        assert!(image.is_code(main, main + 1), "{main:#x}");
        assert_eq!((found[2], found[3]), (None, None));
    }
}
