//! Large files part by part, held against the same files as a whole.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use stakeout_agent::unwind::{CHUNK_BYTES, FileTable, Outline, Rule, TableError, compile_part, outline};

use super::{ROW_LIMIT, compile_file};

/// Parts of one file that are compared.
const COMPARED: usize = 40;

fn outline_of(path: &Path) -> Option<Outline> {
    let file = File::open(path).unwrap();
    outline(|offset, into| file.read_exact_at(into, offset).is_ok())
}

/// What a command prints, as a path; nothing where it cannot be run.
fn printed_path(program: &str, arguments: &[&str]) -> Option<PathBuf> {
    let output = Command::new(program).args(arguments).output().ok()?;
    Some(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

/// The compiler's own library and, where they are there, an interpreter and Go's own program.
fn large_files() -> Vec<PathBuf> {
    let library = printed_path("rustc", &["--print", "sysroot"]).unwrap().join("lib");
    let driver = std::fs::read_dir(library).unwrap().flatten().map(|entry| entry.path());
    let driver = driver.filter(|path| path.to_string_lossy().contains("librustc_driver"));
    let node = printed_path("sh", &["-c", "command -v node"]);
    let go = printed_path("go", &["env", "GOROOT"]).map(|root| root.join("bin/go"));
    driver
        .chain(node.into_iter().chain(go).filter(|path| path.is_file()))
        .collect()
}

/// The last address of each row, which is in a function; what lies between functions may take its rule from either
/// side.
fn check(outline: &Outline, part: u32, whole: &FileTable, own: &FileTable) -> usize {
    let addresses = outline.addresses_of(part);
    let mut rows = 0;
    for chunk in outline.chunks_of(part) {
        let begin = outline.base + u64::from(chunk) * CHUNK_BYTES;
        let number = usize::try_from((begin - whole.base) / CHUNK_BYTES).unwrap();
        let (Some(first), Some(last)) = (whole.chunks.get(number), whole.chunks.get(number + 1)) else {
            continue;
        };
        let offsets: Vec<u64> = whole.rows[*first as usize..*last as usize]
            .iter()
            .map(|row| u64::from(row.offset))
            .collect();
        for end in offsets.iter().skip(1).chain([&CHUNK_BYTES]) {
            let address = begin + end - 1;
            assert!(addresses.contains(&address));
            // What fills up the part's end may belong to the next part's first function.
            if address + 1 == addresses.end && own.rule_at(address) == Rule::UNKNOWN {
                continue;
            }
            assert_eq!(
                own.rule_at(address),
                whole.rule_at(address),
                "{address:x} of part {part}"
            );
            rows += 1;
        }
    }
    rows
}

#[test]
fn every_part_says_what_the_whole_says() {
    for path in large_files() {
        let outline = outline_of(&path).expect("so large a file is divided");
        let whole = compile_file(&path).unwrap();
        assert_eq!(outline.segments, whole.segments);
        let file = File::open(&path).unwrap();
        let parts = outline
            .part_of(outline.base + u64::from(outline.chunks) * CHUNK_BYTES - 1)
            .unwrap()
            + 1;
        let (mut rows, mut compared) = (0, 0);
        for part in (0..parts).step_by((parts as usize / COMPARED).max(1)) {
            let read = |offset: u64, into: &mut [u8]| file.read_exact_at(into, offset).is_ok();
            match compile_part(read, &outline, part, ROW_LIMIT) {
                Ok(own) => rows += check(&outline, part, &whole, &own),
                Err(error) => assert_eq!(error, TableError::NoUnwindInformation),
            }
            compared += 1;
        }
        println!("{}: {rows} rows of {compared} parts of {parts}", path.display());
        assert!(rows > 10_000);
    }
}

/// Linkers put code together from several places: neighbours are described in runs far from each other, by turns.
#[test]
fn a_part_is_read_about_once() {
    const PAGE: u64 = 4096;
    let own = std::env::current_exe().unwrap();
    for path in large_files().into_iter().chain([own]) {
        let outline = outline_of(&path).expect("so large a file is divided");
        let file = File::open(&path).unwrap();
        let parts = outline.chunks / outline.chunks_of(0).len() as u32;
        let (mut read_bytes, mut read_once) = (0, 0);
        for part in (0..parts).step_by((parts as usize / COMPARED).max(1)) {
            let pages: RefCell<(HashSet<u64>, u64)> = RefCell::default();
            let read = |offset: u64, into: &mut [u8]| {
                let mut pages = pages.borrow_mut();
                pages.0.extend(offset / PAGE..=(offset + into.len() as u64) / PAGE);
                pages.1 += into.len() as u64;
                file.read_exact_at(into, offset).is_ok()
            };
            let _ = compile_part(read, &outline, part, ROW_LIMIT);
            let (pages, bytes) = pages.into_inner();
            read_bytes += bytes;
            read_once += pages.len() as u64 * PAGE;
        }
        println!("{}: {read_bytes} bytes for {read_once}", path.display());
        assert!(
            read_bytes < 3 * read_once,
            "{}: {read_bytes} bytes for {read_once}",
            path.display()
        );
    }
}

#[test]
fn a_small_file_is_not_divided() {
    assert_eq!(outline_of(Path::new("/bin/true")), None);
}
