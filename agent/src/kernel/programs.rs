//! How large the loaded BPF programs are, and where they lie, in the kernel's own figures.

use std::collections::{BTreeMap, HashMap};
use std::ffi::CStr;
use std::os::fd::RawFd;

use libbpf_rs::btf::{Btf, BtfType, TypeId};
use libbpf_rs::query::{ProgInfoIter, ProgInfoQueryOptions, ProgramInfo};

use crate::process::CodeChange;

/// One program that this process holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedProgram {
    /// The first 15 bytes of its function's name: the kernel keeps no more.
    pub name: String,
    /// Instructions that the verifier followed, of a million allowed; none before Linux 5.16, which does not tell.
    pub followed: Option<u32>,
    /// Instructions after the verifier has rewritten them. They take 8 bytes each.
    pub translated: u32,
}

/// The BPF programs that this process holds, each once. Whoever holds a program may ask, with any capabilities.
pub fn loaded_programs() -> Vec<LoadedProgram> {
    let descriptors = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let descriptors = descriptors.filter_map(|entry| entry.file_name().to_str()?.parse::<RawFd>().ok());
    let infos = descriptors
        .filter(|descriptor| is_program(*descriptor))
        .filter_map(info);
    let by_id: BTreeMap<u32, LoadedProgram> = infos.map(|info| (info.id, LoadedProgram::from(&info))).collect();
    by_id.into_values().collect()
}

/// A link names its program too, but is none.
fn is_program(descriptor: RawFd) -> bool {
    std::fs::read_to_string(format!("/proc/self/fdinfo/{descriptor}")).is_ok_and(|text| text.contains("prog_type:"))
}

fn info(descriptor: RawFd) -> Option<libbpf_sys::bpf_prog_info> {
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut length = size_of_val(&info) as u32;
    // SAFETY: `info` holds `length` bytes, and its pointers are null with lengths of 0, so that the kernel writes
    // nothing elsewhere. A descriptor that was closed meanwhile is an error.
    let result = unsafe { libbpf_sys::bpf_prog_get_info_by_fd(descriptor, &raw mut info, &raw mut length) };
    (result == 0).then_some(info)
}

impl From<&libbpf_sys::bpf_prog_info> for LoadedProgram {
    fn from(info: &libbpf_sys::bpf_prog_info) -> Self {
        let name = info.name.map(|character| character as u8);
        Self {
            name: CStr::from_bytes_until_nul(&name)
                .map_or_else(|_| String::new(), |name| name.to_string_lossy().into_owned()),
            followed: Some(info.verified_insns).filter(|count| *count > 0),
            translated: info.xlated_prog_len / 8,
        }
    }
}

/// Where the functions of all BPF programs of the machine lie, and how long they are. Nothing without CAP_SYS_ADMIN.
pub fn bpf_functions() -> HashMap<u64, usize> {
    let options = ProgInfoQueryOptions::default()
        .include_jited_ksyms(true)
        .include_jited_func_lens(true);
    let functions = ProgInfoIter::with_query_opts(options).flat_map(|program| {
        let lengths = program.jited_func_lens.into_iter().map(|bytes| bytes as usize);
        let places = program.jited_ksyms.into_iter().map(|place| place.addr() as u64);
        places.zip(lengths).collect::<Vec<_>>()
    });
    functions.filter(|(place, bytes)| *place != 0 && *bytes > 0).collect()
}

/// More functions of BPF programs than any machine has.
const MAX_FUNCTIONS: usize = 65_536;

/// The functions of all BPF programs of the machine, under the names by which the kernel tells of them, each with the
/// time when it was loaded. None without CAP_SYS_ADMIN; since there is always one of the agent's own, that is the same
/// as an empty list.
pub fn bpf_code() -> Option<Vec<CodeChange>> {
    let options = ProgInfoQueryOptions::default()
        .include_jited_ksyms(true)
        .include_jited_func_lens(true)
        .include_func_info(true)
        .include_prog_tags(true);
    let slept_ns = crate::sys::slept_ns();
    let programs = ProgInfoIter::with_query_opts(options);
    let functions: Vec<CodeChange> = programs
        .flat_map(|program| functions_of(&program, slept_ns))
        .take(MAX_FUNCTIONS)
        .collect();
    (!functions.is_empty()).then_some(functions)
}

fn functions_of(program: &ProgramInfo, slept_ns: u64) -> Vec<CodeChange> {
    let types = (!program.func_info.is_empty())
        .then(|| Btf::from_prog_id(program.id).ok())
        .flatten();
    let loaded_ns = u64::try_from(program.load_time.as_nanos()).unwrap_or(u64::MAX);
    let places = program.jited_ksyms.iter().zip(&program.jited_func_lens);
    let functions = places.enumerate().map(|(index, (place, bytes))| CodeChange {
        start: place.addr() as u64,
        bytes: *bytes,
        name: name_of(program, types.as_ref(), index).into(),
        time_ns: loaded_ns.saturating_sub(slept_ns),
        is_gone: false,
    });
    functions
        .filter(|function| function.start != 0 && function.bytes > 0)
        .collect()
}

/// `bpf_prog_TAG_NAME`, as the kernel makes it (`bpf_get_prog_name` in kernel/bpf/core.c): the function's own tag, and
/// its name by the program's types, else the program's own.
fn name_of(program: &ProgramInfo, types: Option<&Btf<'_>>, index: usize) -> String {
    let tag = program.prog_tags.get(index).unwrap_or(&program.tag);
    let mut name = String::from("bpf_prog_");
    name.extend(tag.0.iter().map(|byte| format!("{byte:02x}")));
    let info = program.func_info.get(index);
    let typed = types.zip(info).and_then(|(types, info)| {
        let function: BtfType<'_> = types.type_by_id(TypeId::from(info.type_id))?;
        Some(function.name()?.to_string_lossy().into_owned())
    });
    let own = (index == 0 && !program.name.is_empty()).then(|| program.name.to_string_lossy().into_owned());
    if let Some(function) = typed
        .or(own)
        .or_else(|| (program.jited_ksyms.len() > 1).then(|| "F".into()))
    {
        name.push('_');
        name.push_str(&function);
    }
    name
}
