//! A real program, executed instruction by instruction: at each, the walk by our tables equals framehop's, and ends
//! at the program's start.

use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, Module, Unwinder};
use stakeout_agent::kernel::{Arch, HostMemory, RED_ZONE_BYTES, WalkStop};
use stakeout_agent::process::{Backing, MapLine, parse_maps};
use stakeout_agent::unwind::{Code, CodeMapping, FileTable, Installed, Layout, Published, code_address};

use super::tracee::Tracee;
use crate::unwind::compile_bytes;
use crate::unwind::oracle::Elf;

/// Enough for the loop over the program's parts; the dynamic loader's work for lazy binding is part of it.
const MAX_STEPS: usize = 150_000;
/// All of the stack that the program uses, its deepest frame included.
const STACK_BYTES: usize = 64 * 1024;

fn compiled(flags: &[&str]) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/walk/stepped.cpp");
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("stepped{}", flags.concat()));
    let done = Command::new("c++")
        .args(["-O2", "-fomit-frame-pointer", "-o"])
        .arg(&path)
        .arg(root)
        .args(flags)
        .status()
        .expect("this test needs a C++ compiler (Debian: apt install g++)");
    assert!(done.success());
    path
}

/// The program's executable mappings, and the tables of their files.
struct Ours {
    layout: Layout<HostMemory>,
    published: Published,
}

fn ours(maps: &[MapLine], files: &BTreeMap<String, Vec<u8>>) -> Ours {
    let mut layout = Layout::new(HostMemory::new(16));
    let mut installed: BTreeMap<&str, (FileTable, Installed)> = BTreeMap::new();
    for (path, bytes) in files {
        let table = compile_bytes(bytes).unwrap();
        let place = layout.install(&table).unwrap();
        installed.insert(path, (table, place));
    }
    let mappings: Vec<CodeMapping<'_>> = maps
        .iter()
        .map(|line| CodeMapping {
            begin: line.start,
            end: line.end,
            code: match path_of(line).and_then(|path| installed.get(path)) {
                Some((table, installed)) => Code::Table {
                    installed,
                    chunk_zero: (line.start - code_address(&table.segments, line.file_offset).unwrap())
                        .wrapping_add(table.base),
                },
                None => Code::NoTable,
            },
        })
        .collect();
    let published = layout.publish(&mappings).unwrap();
    Ours { layout, published }
}

fn path_of(line: &MapLine) -> Option<&str> {
    match &line.backing {
        Backing::File { path, .. } => Some(path),
        Backing::Vdso => Some("[vdso]"),
        _ => None,
    }
}

fn framehop_of(maps: &[MapLine], files: &BTreeMap<String, Vec<u8>>) -> UnwinderX86_64<Vec<u8>> {
    let mut unwinder = UnwinderX86_64::new();
    for line in maps {
        let Some((path, bytes)) = path_of(line).and_then(|path| files.get_key_value(path)) else {
            continue;
        };
        let elf = Elf::new(bytes);
        let segments = compile_bytes(bytes).unwrap().segments;
        let bias = line.start - code_address(&segments, line.file_offset).unwrap();
        let section = |name| elf.section(name);
        let range = |name| -> Option<Range<u64>> {
            let section = elf.section(name)?;
            Some(section.address..section.address + section.bytes.len() as u64)
        };
        let info = ExplicitModuleSectionInfo {
            base_svma: 0,
            text_svma: range(".text"),
            text: section(".text").map(|section| section.bytes),
            eh_frame_svma: range(".eh_frame"),
            eh_frame: section(".eh_frame").map(|section| section.bytes),
            eh_frame_hdr_svma: range(".eh_frame_hdr"),
            eh_frame_hdr: section(".eh_frame_hdr").map(|section| section.bytes),
            ..Default::default()
        };
        unwinder.add_module(Module::new(path.clone(), line.start..line.end, bias, info));
    }
    unwinder
}

/// The mapped files; the vDSO from the process's memory.
fn files_of(tracee: &Tracee, maps: &[MapLine]) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for line in maps {
        let Some(path) = path_of(line) else { continue };
        files.entry(path.to_owned()).or_insert_with(|| match &line.backing {
            Backing::Vdso => tracee.read(line.start, (line.end - line.start) as usize),
            _ => {
                let file = File::open(path).unwrap();
                let mut bytes = vec![0; file.metadata().unwrap().len() as usize];
                file.read_exact_at(&mut bytes, 0).unwrap();
                bytes
            }
        });
    }
    files
}

fn maps_of(tracee: &Tracee) -> Vec<MapLine> {
    let text = std::fs::read_to_string(format!("/proc/{}/maps", tracee.pid())).unwrap();
    let maps = parse_maps(&text, 1000);
    maps.into_iter().filter(|line| path_of(line).is_some()).collect()
}

fn step_through(flags: &[&str]) {
    let program = compiled(flags);
    let tracee = Tracee::start(&program);
    let maps = maps_of(&tracee);
    let files = files_of(&tracee, &maps);
    let ours = ours(&maps, &files);
    let framehop = framehop_of(&maps, &files);
    let is_loader = |line: &&MapLine| path_of(line).is_some_and(|path| path.contains("/ld-linux"));
    let loader = maps.iter().find(is_loader).map_or(0..0, |line| line.start..line.end);
    let mut cache = CacheX86_64::new();
    let (mut steps, mut compared, mut deepest, mut differing, mut unrooted) = (0, 0, 0, 0, 0);
    let mut start = None;
    while steps < MAX_STEPS && tracee.step() {
        steps += 1;
        let at = tracee.registers();
        let stack = tracee.read(at.sp - RED_ZONE_BYTES, STACK_BYTES);
        let (frames, stop) = ours.layout.memory.walk(Arch::HOST, ours.published, &at, &stack);
        let place = || {
            let line = maps.iter().find(|line| (line.start..line.end).contains(&at.pc));
            let line = line.map(|line| (path_of(line), at.pc - line.start + line.file_offset));
            format!("step {steps} at {:x}, {line:x?}: {frames:x?}", at.pc)
        };
        // Where an exception leaves the C++ library's unwinder, that overwrites its own frame with the one that it
        // goes to, and for four instructions no table tells where that is: some hundred instructions each time.
        unrooted += usize::from(stop != WalkStop::Root);
        deepest = deepest.max(frames.len());
        let mut read_stack = |address: u64| {
            let offset = usize::try_from(address.wrapping_sub(at.sp - RED_ZONE_BYTES)).map_err(|_| ())?;
            let word = stack.get(offset..).and_then(|rest| rest.get(..8)).ok_or(())?;
            Ok(u64::from_le_bytes(word.try_into().unwrap()))
        };
        let registers = UnwindRegsX86_64::new(at.pc, at.sp, at.fp);
        let mut theirs = Vec::new();
        let mut iterator = framehop.iter_frames(at.pc, registers, &mut cache, &mut read_stack);
        while let Ok(Some(frame)) = iterator.next() {
            theirs.push(frame.address());
        }
        // It follows no register but the stack and frame pointers, and lazy binding keeps its frame by another.
        let binding = frames.iter().any(|frame| loader.contains(frame));
        differing += usize::from(frames != theirs && !binding);
        compared += usize::from(!binding);
        if stop == WalkStop::Root {
            let start = *start.get_or_insert(frames[frames.len() - 1]);
            assert_eq!(frames.last(), Some(&start), "{}", place());
        }
    }
    println!(
        "{flags:?}: {steps} instructions, up to {deepest} frames; not whole at {unrooted}; framehop differs at {differing} of {compared}"
    );
    assert!(steps > 5_000 && deepest > 25, "{steps} steps, {deepest} frames");
    assert!(unrooted <= 200, "not whole at {unrooted} of {steps}");
    assert!(
        compared > 5_000 && differing * 100 < compared,
        "framehop differs at {differing} of {compared}"
    );
}

#[test]
fn every_instruction_of_a_program_without_frame_pointers_unwinds_as_framehop_says() {
    step_through(&["-Wl,-z,now"]);
}

#[test]
fn the_same_where_calls_are_bound_lazily() {
    step_through(&["-Wl,-z,lazy"]);
}

#[test]
fn the_same_where_everything_is_in_one_static_program() {
    step_through(&["-static-pie"]);
}
