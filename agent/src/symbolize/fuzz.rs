//! What holds of names, whatever files and compilers say.

use super::debug_file::Link;
use super::file_symbols::{FileSymbols, LinesFound, ReadAt, lines_in};
use super::kernel_modules::KernelModules;
use super::perf_map::PerfMap;
use super::{demangle, mini_debug};
use crate::elf::pclntab::{Location, Pclntab};
use crate::elf::symbols::{Kind, SymbolReader};
use crate::elf::{Coverage, Image, decompressed_bytes, read_from};
use crate::fuzz::{Input, made, with_section};

/// Functions of one input that are named.
const NAMED: usize = 64;
/// Replacement characters take three bytes for one that is no text.
const MAX_NAME_BYTES: usize = 3 * 16 * 1024;
const UNPACKED_BYTES: u64 = 1 << 20;

/// A whole file: its sections, build id, debug link, compressed sections, symbols.
pub(crate) fn elf(bytes: &[u8]) {
    let read = |offset: u64, into: &mut [u8]| read_from(bytes, offset, into);
    if let Some(image) = Image::open(read) {
        if let Some(id) = image.build_id() {
            assert!((8..=128).contains(&id.len()) && id.bytes().all(|digit| digit.is_ascii_hexdigit()));
        }
        for candidate in Link::of(&image).candidates("/opt/program") {
            let inside = ["/usr/lib/debug/", "/opt/"]
                .iter()
                .any(|root| candidate.starts_with(root));
            let steps = candidate.split('/').skip(1);
            assert!(
                inside && steps.into_iter().all(|step| !["", ".", ".."].contains(&step)),
                "{candidate:?}"
            );
        }
        assert!(decompressed_bytes(&image, UNPACKED_BYTES).is_none_or(|bytes| bytes <= UNPACKED_BYTES));
    }
    let size = bytes.len() as u64;
    if let LinesFound::Bytes(bytes) = lines_in(&read, size, (size + UNPACKED_BYTES, UNPACKED_BYTES)) {
        assert!(bytes <= UNPACKED_BYTES);
    }
    symbols(bytes);
}

/// Names functions of a file, if it is one; true where they came out of packed symbols.
fn symbols(bytes: &[u8]) -> bool {
    let read: ReadAt<'_> = &|offset, into| read_from(bytes, offset, into);
    let Some(symbols) = FileSymbols::read(read, |_| None) else {
        return false;
    };
    let addresses = symbols.check();
    around(read, &addresses);
    for address in addresses.iter().copied().take(NAMED) {
        for inside in [address, address + 1] {
            let name = symbols.name(inside, read);
            assert!(name.is_none_or(|name| (1..=MAX_NAME_BYTES).contains(&name.text.len())));
        }
    }
    let plts = [&b".plt"[..], b".plt.sec", b".plt.got"];
    let plts = plts.map(|name| Image::open(read)?.section(&[name]));
    for plt in plts.into_iter().flatten() {
        for at in (0..plt.bytes.min(NAMED as u64 * 8)).step_by(8) {
            let name = symbols.plt_name(plt.address.wrapping_add(at), read);
            assert!(name.is_none_or(|name| (1..=MAX_NAME_BYTES).contains(&name.text.len())));
        }
    }
    let addresses: Vec<Option<u64>> = addresses.into_iter().map(Some).take(NAMED).collect();
    for place in symbols.go_places(&addresses, read).into_iter().flatten() {
        assert!((1..=MAX_NAME_BYTES).contains(&place.function.len()));
    }
    symbols.unpacked
}

/// The symbols around some addresses are the same where it is known which parts of the tables say what.
fn around(read: ReadAt<'_>, addresses: &[u64]) {
    let Some(image) = Image::open(read) else { return };
    let segments = image.segments.clone();
    let some = |every: usize| {
        addresses
            .iter()
            .copied()
            .step_by(every)
            .take(NAMED)
            .collect::<Vec<u64>>()
    };
    let read = |addresses: Vec<u64>, known: &[Coverage]| {
        let mut reader = SymbolReader::new(&segments).around(addresses, known);
        reader.add(&image, Kind::All);
        reader.add(&image, Kind::Dynamic);
        let reading = reader.take_reading().expect("it reads around addresses");
        (reader.finish().check(), reading)
    };
    let (_, first) = read(some(7), &[]);
    for every in [1, 50] {
        let (all, whole) = read(some(every), &[]);
        let (same, part) = read(some(every), &first.found);
        assert_eq!(all, same);
        assert!(part.read_bytes <= whole.read_bytes);
        assert!(part.found.is_empty() || first.found.len() < whole.found.len());
    }
}

/// Packed symbols: what xz makes of them, and then the file in them.
pub(crate) fn mini_debug(bytes: &[u8]) {
    const MOST: usize = 16 << 20;
    let file = with_section(made::X86_64, ".gnu_debugdata", 0, bytes);
    let image = Image::open(|offset: u64, into: &mut [u8]| read_from(&file, offset, into));
    let unpacked = image.as_ref().and_then(mini_debug::unpack);
    let unpacked = unpacked.expect("the file has the section");
    let used = symbols(&file);
    assert!(unpacked.map_or(!used, |bytes| bytes.len() <= MOST));
}

/// A map that grew once.
pub(crate) fn perf_map(bytes: &[u8]) {
    let mut input = Input(bytes);
    let first = usize::try_from(input.number::<2>()).unwrap_or_default();
    let first = input.bytes(first);
    PerfMap::check(first, input.0);
}

/// A symbol of any language.
pub(crate) fn demangle(bytes: &[u8]) {
    const MOST: usize = 4096;
    let symbol = String::from_utf8_lossy(bytes);
    let name = demangle::demangle(&symbol);
    assert!(name.len() <= MOST, "{} bytes", name.len());
    assert_eq!(name, demangle::demangle(&symbol));
}

/// The names that Go's table has for addresses of a file.
pub(crate) fn go(file: &[u8]) {
    let read: ReadAt<'_> = &|offset, into| read_from(file, offset, into);
    let Some(symbols) = FileSymbols::read(read, |_| None) else {
        return;
    };
    let addresses: Vec<Option<u64>> = (0..NAMED as u64).map(|step| Some(made::CODE + step * 61)).collect();
    for place in symbols.go_places(&addresses, read).into_iter().flatten() {
        assert!((1..=MAX_NAME_BYTES).contains(&place.function.len()));
        assert!(place.line.is_none_or(|(file, _)| file.len() <= MAX_NAME_BYTES));
    }
    inlined(read, addresses.into_iter().flatten());
}

/// What was inlined where, by trees that lie in the table itself: a module's record that leads to some is hardly ever
/// made up.
fn inlined(read: ReadAt<'_>, addresses: impl Iterator<Item = u64>) {
    let Some(image) = Image::open(read) else { return };
    let Some(location) = Location::find(&image) else {
        return;
    };
    let trees = image.section(&[b".gopclntab"]).map(|section| section.offset);
    let (mut table, mut text) = (Pclntab::new(&image, location), [0; 256]);
    for address in addresses {
        let Some(function) = table.find(address) else { continue };
        let calls = table.calls(&function, address, || trees).unwrap_or_default();
        assert!(calls.len() <= NAMED);
        for call in calls {
            table.called(call, &mut text);
            table.line(&function, call, &mut text);
        }
    }
}

/// /proc/modules.
pub(crate) fn kernel_modules(text: &str) {
    let modules = KernelModules::parse(text);
    for address in [0, 1, 0xffff_ffff_c0a0_0000, u64::MAX] {
        assert!(
            modules
                .find(address)
                .is_none_or(|name| name.starts_with('[') && name.ends_with(']'))
        );
    }
}
