//! Which CPython a process has, and where its structures have what matters.

use std::fmt;

use thiserror::Error;

use super::offsets::{Offsets, TABLE_BYTES, by_table};
use super::{ReadMemory, Unreadable, field, pointer, read};

/// The symbols that are asked for. Executables and libraries with the interpreter export all that their version has
/// but the last, which a table of all symbols may have.
pub const SYMBOLS: [&str; 11] = [
    "_PyRuntime",
    "Py_Version",
    "PyCode_Type",
    "PyUnicode_Type",
    "PyBytes_Type",
    "PyDict_Type",
    "_PyEval_EvalFrameDefault",
    // Each came with a version: 3.10, 3.9, 3.8. `Py_Version` came with 3.11.
    "PyModule_AddObjectRef",
    "PyThreadState_GetFrame",
    "PyConfig_InitPythonConfig",
    "_PyEval_EvalFrameDefault.cold",
];

/// What a walker reads of each at once: `SO_PYTHON_THREAD_WORDS` and the like of bpf/cpython.h.
const THREAD_BYTES: u16 = 24 * 8;
const OBJECT_BYTES: u16 = 14 * 8;
const FRAME_BYTES: u16 = 10 * 8;
pub(super) const CODE_BYTES: u16 = 20 * 8;

/// `3.13`; what comes after that is not known until the interpreter says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// 3 so far.
    pub major: u8,
    /// What tells layouts apart.
    pub minor: u8,
}

impl fmt::Display for Version {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "Python {}.{}", self.major, self.minor)
    }
}

/// Why an interpreter can't be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LayoutError {
    /// Not CPython, or a build that exports nothing.
    #[error("no symbol {name}: not CPython, or one that exports nothing")]
    NoSymbol {
        /// The symbol that lacks.
        name: &'static str,
    },
    /// Before 3.8.
    #[error("Python 3.7 or older: unknown layout")]
    TooOld,
    /// One that no table has.
    #[error("{version}: unknown layout")]
    Unknown {
        /// Which one.
        version: Version,
    },
    /// Two things that can't be true at once.
    #[error("{version}: {what} contradicts")]
    Contradiction {
        /// Of which version.
        version: Version,
        /// What is as it can't be.
        what: &'static str,
    },
    /// Its memory can't be read.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
}

/// Everything of one build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Which one it is.
    pub version: Version,
    /// Address of `_PyRuntime`.
    pub runtime: u64,
    /// Addresses of the types of code, text and bytes.
    pub code_type: u64,
    pub(super) text_type: u64,
    pub(super) bytes_type: u64,
    /// That of dictionaries, without which no module has a name.
    pub(super) dict_type: Option<u64>,
    /// Where the interpreter's loop begins, and where its part for what is rare does.
    pub(super) loops: [Option<u64>; 2],
    pub(super) offsets: Offsets,
}

impl Layout {
    /// Finds the version and its layout. `symbol` gives a symbol's address in the process, of those in [`SYMBOLS`].
    pub fn read(memory: &dyn ReadMemory, symbol: &dyn Fn(&str) -> Option<u64>) -> Result<Self, LayoutError> {
        let address = |name| symbol(name).ok_or(LayoutError::NoSymbol { name });
        let runtime = address("_PyRuntime")?;
        let loops = [
            Some(address("_PyEval_EvalFrameDefault")?),
            symbol("_PyEval_EvalFrameDefault.cold"),
        ];
        let (version, hex_version) = version(memory, symbol)?;
        let offsets = offsets(memory, runtime, version, hex_version)?;
        let mut layout = Self {
            version,
            runtime,
            code_type: address("PyCode_Type")?,
            text_type: address("PyUnicode_Type")?,
            bytes_type: address("PyBytes_Type")?,
            dict_type: symbol("PyDict_Type"),
            loops,
            offsets,
        };
        layout.check_reach()?;
        layout.check_type(memory, layout.code_type, b"code\0", "PyCode_Type")?;
        layout.check_type(memory, layout.text_type, b"str\0", "PyUnicode_Type")?;
        layout.check_type(memory, layout.bytes_type, b"bytes\0", "PyBytes_Type")?;
        layout.dict_type = layout.dict_type.filter(|address| {
            let checked = layout.check_type(memory, *address, b"dict\0", "PyDict_Type");
            checked.is_ok()
        });
        Ok(layout)
    }

    pub(super) fn contradiction(&self, what: &'static str) -> LayoutError {
        LayoutError::Contradiction {
            version: self.version,
            what,
        }
    }

    /// A walker reads as much of each structure and not more.
    fn check_reach(&self) -> Result<(), LayoutError> {
        use super::FrameForm::Objects;
        let Offsets { form, .. } = self.offsets;
        let frame_bytes = if form == Objects { OBJECT_BYTES } else { FRAME_BYTES };
        let offsets = &self.offsets;
        let all = [
            (THREAD_BYTES, offsets.thread_next, 8),
            (THREAD_BYTES, offsets.thread_id, 8),
            (THREAD_BYTES, offsets.thread_frame, 8),
            (frame_bytes, offsets.frame_previous, 8),
            (frame_bytes, offsets.frame_code, 8),
            (frame_bytes, offsets.frame_instruction, 8),
            (frame_bytes, offsets.frame_mark, 1),
            (frame_bytes, offsets.frame_copy, 4),
            (CODE_BYTES, offsets.code_size, 8),
            (CODE_BYTES, offsets.code_name, 8),
            (CODE_BYTES, offsets.code_qualname, 8),
            (CODE_BYTES, offsets.code_filename, 8),
            (CODE_BYTES, offsets.code_lines, 8),
            (CODE_BYTES, offsets.code_first_line, 4),
        ];
        let fits = |(bytes, offset, width): (u16, u16, u16)| offset % width == 0 && offset < bytes;
        if all.into_iter().all(fits) {
            Ok(())
        } else {
            Err(self.contradiction("the reach of a structure"))
        }
    }

    fn check_type(
        &self,
        memory: &dyn ReadMemory,
        address: u64,
        name: &[u8],
        what: &'static str,
    ) -> Result<(), LayoutError> {
        let mut found = [0; 8];
        let found = &mut found[..name.len()];
        read(memory, self.pointer_to_name(memory, address, what)?, found)?;
        if *found == *name {
            Ok(())
        } else {
            Err(self.contradiction(what))
        }
    }

    /// Names of types need no alignment.
    fn pointer_to_name(&self, memory: &dyn ReadMemory, address: u64, what: &'static str) -> Result<u64, Unreadable> {
        // A type's own type is one, too.
        pointer(memory, field(address, self.offsets.object_type()), what)?;
        super::word(memory, field(address, self.offsets.type_name()))
    }
}

/// The version, and all its digits where it says them: `0x030d05f0`. What has no number is known by what it exports.
fn version(
    memory: &dyn ReadMemory,
    symbol: &dyn Fn(&str) -> Option<u64>,
) -> Result<(Version, Option<u64>), LayoutError> {
    let Some(address) = symbol("Py_Version") else {
        let has = |name| symbol(name).is_some();
        let minor = match () {
            () if has("PyModule_AddObjectRef") => 10,
            () if has("PyThreadState_GetFrame") => 9,
            () if has("PyConfig_InitPythonConfig") => 8,
            () => return Err(LayoutError::TooOld),
        };
        return Ok((Version { major: 3, minor }, None));
    };
    let mut hex = [0; 4];
    read(memory, address, &mut hex)?;
    let [_, _, minor, major] = hex;
    let version = Version { major, minor };
    if major == 3 && minor >= 11 {
        Ok((version, Some(u64::from(u32::from_le_bytes(hex)))))
    } else {
        Err(LayoutError::Unknown { version })
    }
}

fn offsets(
    memory: &dyn ReadMemory,
    runtime: u64,
    version: Version,
    hex_version: Option<u64>,
) -> Result<Offsets, LayoutError> {
    if let Some(offsets) = Offsets::by_version(version.minor) {
        return Ok(offsets);
    }
    let mut table = [0; TABLE_BYTES];
    read(memory, runtime, &mut table)?;
    let contradiction = |what| LayoutError::Contradiction { version, what };
    let table = match by_table(&table, version.minor) {
        None => return Err(LayoutError::Unknown { version }),
        Some(table) => table.map_err(contradiction)?,
    };
    if Some(table.hex_version) != hex_version {
        return Err(contradiction("the table's version"));
    }
    Ok(table.offsets)
}
