//! Where V8's objects have what, and which kinds of them there are, as V8 itself tells debuggers.

use std::fmt;

use thiserror::Error;

use super::positions::Steps;
use super::{ReadMemory, Unreadable, number};

/// Dynamic symbols that are looked for: constants of four bytes, and the version.
pub const SYMBOLS: [&str; 50] = [
    MAJOR,
    MINOR,
    "v8dbg_class_JSFunction__shared__SharedFunctionInfo",
    "v8dbg_class_SharedFunctionInfo__function_data__Object",
    "v8dbg_class_SharedFunctionInfo__function_data__Tagged_Object_",
    "v8dbg_class_SharedFunctionInfo__name_or_scope_info__Object",
    "v8dbg_class_SharedFunctionInfo__name_or_scope_info__Tagged_Object_",
    "v8dbg_class_SharedFunctionInfo__name_or_scope_info__Tagged_NameOrScopeInfoT_",
    "v8dbg_class_SharedFunctionInfo__script_or_debug_info__HeapObject",
    "v8dbg_class_SharedFunctionInfo__script__Tagged_HeapObject_",
    "v8dbg_class_SharedFunctionInfo__length__uint16_t",
    "v8dbg_class_SharedFunctionInfo__flags__int",
    "v8dbg_class_SharedFunctionInfoWrapper__shared_info__Tagged_SharedFunctionInfo_",
    "v8dbg_class_Script__source__Object",
    "v8dbg_class_Script__name__Object",
    "v8dbg_class_Script__line_ends__Object",
    "v8dbg_class_Script__eval_from_shared_or_wrapped_arguments__Object",
    "v8dbg_class_Script__eval_from_shared_or_wrapped_arguments__Tagged_Object_",
    "v8dbg_class_Script__eval_from_shared_or_wrapped_arguments_or_sfi_table__Object",
    "v8dbg_class_BytecodeArray__data__uintptr_t",
    "v8dbg_class_BytecodeArray__wrapper__Tagged_BytecodeWrapper_",
    "v8dbg_class_Code__instruction_start__uintptr_t",
    "v8dbg_class_Code__instruction_start__Address",
    "v8dbg_class_Code__instruction_size__int",
    "v8dbg_class_Code__instruction_stream__Tagged_InstructionStream_",
    "v8dbg_class_Code__flags__uint32_t",
    "v8dbg_class_InstructionStream__instruction_start__uintptr_t",
    "v8dbg_CodeKindBaseline",
    "v8dbg_CodeKindFieldMask",
    "v8dbg_DeoptimizationDataLiteralArrayIndex",
    "v8dbg_DeoptimizationDataInliningPositionsIndex",
    "v8dbg_DeoptimizationDataSharedFunctionInfoIndex",
    "v8dbg_DeoptimizationDataSharedFunctionInfoWrapperIndex",
    "v8dbg_DeoptimizationDataWrappedSharedFunctionInfoIndex",
    "v8dbg_scopeinfo_idx_first_vars",
    "v8dbg_FirstJSFunctionType",
    "v8dbg_LastJSFunctionType",
    "v8dbg_type_JSFunction__JS_FUNCTION_TYPE",
    "v8dbg_type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE",
    "v8dbg_type_ScopeInfo__SCOPE_INFO_TYPE",
    "v8dbg_type_Script__SCRIPT_TYPE",
    "v8dbg_type_Code__CODE_TYPE",
    "v8dbg_type_InstructionStream__INSTRUCTION_STREAM_TYPE",
    "v8dbg_type_BytecodeArray__BYTECODE_ARRAY_TYPE",
    "v8dbg_type_ByteArray__BYTE_ARRAY_TYPE",
    "v8dbg_type_TrustedByteArray__TRUSTED_BYTE_ARRAY_TYPE",
    "v8dbg_frametype_StubFrame",
    "v8dbg_frametype_WasmFrame",
    "v8dbg_frametype_WasmToJsFrame",
    "v8dbg_frametype_IrregexpFrame",
];
const MAJOR: &str = "_ZN2v88internal7Version6major_E";
const MINOR: &str = "_ZN2v88internal7Version6minor_E";

/// Since then a step in a table of positions has a bit for whether it is a statement's, which was its sign before.
const FLAGGED_SINCE: Version = Version { major: 14, minor: 1 };

/// V8's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// Such as 12.
    pub major: u32,
    /// Such as 4.
    pub minor: u32,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "V8 {}.{}", self.major, self.minor)
    }
}

/// Why a layout is not known.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LayoutError {
    /// Nothing like it is known.
    #[error("{0}: unknown layout")]
    Unknown(Version),
    /// What others tell is missing.
    #[error("{version}: no {what}")]
    Missing {
        /// Which one.
        version: Version,
        /// What is not there.
        what: &'static str,
    },
    /// Memory can't be read, or makes no sense.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
}

/// How objects that have code are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CodeForm {
    /// From where on instructions follow on the header of what holds them.
    pub(super) header: u16,
    /// Where that leads to what is known of them; none where it is one object.
    pub(super) code: Option<u16>,
    /// In what is known of them: the holder, the address of the first one, how many bytes, what kind.
    pub(super) stream: u16,
    pub(super) start: u16,
    pub(super) size: u16,
    pub(super) flags: u16,
    /// Data for deoptimisation; in their place bytecodes, where the code was made of them one by one.
    pub(super) deoptimisation: u16,
    /// Source positions; in their place the bytes that each bytecode was made into.
    pub(super) positions: u16,
}

/// Where is what, in bytes from an object's begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    pub(super) version: Version,
    pub(super) function_shared: u16,
    pub(super) shared_data: u16,
    pub(super) shared_name: u16,
    /// The scope around, as long as a function was not compiled.
    pub(super) shared_outer: u16,
    pub(super) shared_script: u16,
    pub(super) shared_length: u16,
    pub(super) shared_flags: u16,
    pub(super) shared_unique: Option<u16>,
    /// The script's number, where functions have none among all.
    pub(super) script_id: Option<u16>,
    pub(super) script_source: u16,
    pub(super) script_name: u16,
    pub(super) script_eval_from: u16,
    pub(super) script_source_url: u16,
    pub(super) bytecode_data: u16,
    pub(super) bytecode_positions: u16,
    pub(super) positions: Steps,
    pub(super) code: CodeForm,
    /// Of code's kinds the first two that are made of functions; the mask of kinds.
    pub(super) kind_baseline: u16,
    pub(super) kind_mask: u16,
    /// Elements of data for deoptimisation.
    pub(super) literals: u16,
    pub(super) inlining: u16,
    pub(super) own_shared: u16,
    /// In what leads to it, where it is not there itself.
    pub(super) own_shared_in: Option<u16>,
    pub(super) scope_first: u16,
    pub(super) type_functions: (u16, u16),
    pub(super) type_shared: u16,
    pub(super) type_scope: u16,
    pub(super) type_script: u16,
    pub(super) type_code: u16,
    /// Of what holds instructions.
    pub(super) type_stream: u16,
    pub(super) type_bytecode: u16,
    pub(super) type_bytes: [u16; 2],
    pub(super) frame_stub: u16,
    pub(super) frame_wasm: u16,
    pub(super) frame_wasm_to_js: u16,
    pub(super) frame_regexp: Option<u16>,
}

/// All are offsets, kinds or numbers of elements.
const MAX_CONSTANT: u16 = 1 << 12;

/// Reads what symbols say.
struct Symbols<'a> {
    memory: &'a dyn ReadMemory,
    address_of: &'a dyn Fn(&str) -> Option<u64>,
    version: Version,
}

impl Symbols<'_> {
    fn any(&self, names: &[&'static str]) -> Result<Option<u16>, LayoutError> {
        for name in names {
            if let Some(address) = (self.address_of)(name) {
                let value = number(self.memory, address, 4)?;
                let sane = u16::try_from(value).ok().filter(|value| *value < MAX_CONSTANT);
                let nonsense = Unreadable::Nonsense {
                    what: "a constant of V8",
                    address,
                };
                return Ok(Some(sane.ok_or(nonsense)?));
            }
        }
        Ok(None)
    }

    fn one(&self, names: &[&'static str]) -> Result<u16, LayoutError> {
        let what = names.first().map_or("", |name| name.trim_start_matches("v8dbg_"));
        let version = self.version;
        self.any(names)?.ok_or(LayoutError::Missing { version, what })
    }
}

impl Layout {
    /// How long what functions share is at least, in whole words. It may be the last thing on its page, and the next
    /// page is not there before somebody has written to it.
    pub(super) fn shared_bytes(&self) -> u16 {
        let last = self.shared_unique.unwrap_or(self.shared_flags + 4);
        (last + 4).next_multiple_of(8)
    }

    /// What is said in a process. `address_of` gives the addresses of [`SYMBOLS`] there.
    pub fn read(memory: &dyn ReadMemory, address_of: &dyn Fn(&str) -> Option<u64>) -> Result<Self, LayoutError> {
        let part_of_version = |name| -> Result<u32, LayoutError> {
            let Some(address) = address_of(name) else { return Ok(0) };
            Ok((number(memory, address, 4)? & 0xffff_ffff) as u32)
        };
        let version = Version {
            major: part_of_version(MAJOR)?,
            minor: part_of_version(MINOR)?,
        };
        let symbols = Symbols {
            memory,
            address_of,
            version,
        };
        let shared_length = symbols.one(&["v8dbg_class_SharedFunctionInfo__length__uint16_t"])?;
        let shared_flags = symbols.one(&["v8dbg_class_SharedFunctionInfo__flags__int"])?;
        let scope_first = symbols.one(&["v8dbg_scopeinfo_idx_first_vars"])?;
        let shared_name = symbols.one(&[
            "v8dbg_class_SharedFunctionInfo__name_or_scope_info__Object",
            "v8dbg_class_SharedFunctionInfo__name_or_scope_info__Tagged_Object_",
            "v8dbg_class_SharedFunctionInfo__name_or_scope_info__Tagged_NameOrScopeInfoT_",
        ])?;
        let (code, form) = code_form(&symbols)?;
        let function = symbols.one(&["v8dbg_type_JSFunction__JS_FUNCTION_TYPE"])?;
        // Where no more is said: constructors of what the language itself has come behind.
        let first = symbols.any(&["v8dbg_FirstJSFunctionType"])?.unwrap_or(function);
        let last = symbols.any(&["v8dbg_LastJSFunctionType"])?.unwrap_or(function + 20);
        let type_code = symbols.one(&["v8dbg_type_Code__CODE_TYPE"])?;
        let bytes = symbols.one(&["v8dbg_type_ByteArray__BYTE_ARRAY_TYPE"])?;
        let script_eval_from = symbols.one(&[
            "v8dbg_class_Script__eval_from_shared_or_wrapped_arguments__Object",
            "v8dbg_class_Script__eval_from_shared_or_wrapped_arguments__Tagged_Object_",
            "v8dbg_class_Script__eval_from_shared_or_wrapped_arguments_or_sfi_table__Object",
        ])?;
        // It stands between two that have symbols.
        let script_id = symbols.one(&["v8dbg_class_Script__line_ends__Object"])? + 8;
        let has_script_id = form < Form::Trusted && script_id + 8 == script_eval_from;
        Ok(Self {
            version,
            function_shared: symbols.one(&["v8dbg_class_JSFunction__shared__SharedFunctionInfo"])?,
            shared_data: symbols
                .any(&[
                    "v8dbg_class_SharedFunctionInfo__function_data__Object",
                    "v8dbg_class_SharedFunctionInfo__function_data__Tagged_Object_",
                ])?
                .unwrap_or(8),
            shared_name,
            shared_outer: shared_name + 8,
            shared_script: symbols.one(&[
                "v8dbg_class_SharedFunctionInfo__script_or_debug_info__HeapObject",
                "v8dbg_class_SharedFunctionInfo__script__Tagged_HeapObject_",
            ])?,
            shared_length,
            shared_flags,
            // Behind flags and the number in the script.
            shared_unique: (form >= Form::Trusted).then_some(shared_flags + 8),
            script_source: symbols.one(&["v8dbg_class_Script__source__Object"])?,
            script_name: symbols.one(&["v8dbg_class_Script__name__Object"])?,
            script_eval_from,
            script_id: has_script_id.then_some(script_id),
            script_source_url: if form == Form::One { 104 } else { 112 },
            bytecode_data: symbols.one(&["v8dbg_class_BytecodeArray__data__uintptr_t"])?,
            bytecode_positions: if form == Form::Trusted { 24 } else { 32 },
            positions: if version >= FLAGGED_SINCE {
                Steps::Flagged
            } else {
                Steps::Signed
            },
            code,
            kind_baseline: symbols.one(&["v8dbg_CodeKindBaseline"])?,
            kind_mask: symbols.one(&["v8dbg_CodeKindFieldMask"])?,
            literals: symbols
                .any(&["v8dbg_DeoptimizationDataLiteralArrayIndex"])?
                .unwrap_or(2),
            inlining: symbols
                .any(&["v8dbg_DeoptimizationDataInliningPositionsIndex"])?
                .unwrap_or(7),
            own_shared: symbols
                .any(&[
                    "v8dbg_DeoptimizationDataSharedFunctionInfoIndex",
                    "v8dbg_DeoptimizationDataSharedFunctionInfoWrapperIndex",
                    "v8dbg_DeoptimizationDataWrappedSharedFunctionInfoIndex",
                ])?
                .unwrap_or(6),
            own_shared_in: match symbols.any(&["v8dbg_DeoptimizationDataSharedFunctionInfoIndex"])? {
                Some(_) => None,
                None => {
                    symbols.any(&["v8dbg_class_SharedFunctionInfoWrapper__shared_info__Tagged_SharedFunctionInfo_"])?
                }
            },
            scope_first,
            type_functions: (first, last),
            type_shared: symbols.one(&["v8dbg_type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE"])?,
            type_scope: symbols.one(&["v8dbg_type_ScopeInfo__SCOPE_INFO_TYPE"])?,
            type_script: symbols.one(&["v8dbg_type_Script__SCRIPT_TYPE"])?,
            type_code,
            type_stream: symbols
                .any(&["v8dbg_type_InstructionStream__INSTRUCTION_STREAM_TYPE"])?
                .unwrap_or(type_code),
            type_bytecode: symbols.one(&["v8dbg_type_BytecodeArray__BYTECODE_ARRAY_TYPE"])?,
            type_bytes: [
                bytes,
                symbols
                    .any(&["v8dbg_type_TrustedByteArray__TRUSTED_BYTE_ARRAY_TYPE"])?
                    .unwrap_or(bytes),
            ],
            frame_stub: symbols.one(&["v8dbg_frametype_StubFrame"])?,
            frame_wasm: symbols.one(&["v8dbg_frametype_WasmFrame"])?,
            frame_wasm_to_js: symbols.one(&["v8dbg_frametype_WasmToJsFrame"])?,
            frame_regexp: symbols.any(&["v8dbg_frametype_IrregexpFrame"])?,
        })
    }

    /// Which one it is.
    pub fn version(&self) -> Version {
        self.version
    }
}

/// What has changed in how code is kept, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Form {
    /// 10.2: with its instructions in one object.
    One,
    /// 11.3: instructions are an object of their own.
    Apart,
    /// 12.4 and later: in memory that V8 trusts.
    Trusted,
}

fn code_form(symbols: &Symbols<'_>) -> Result<(CodeForm, Form), LayoutError> {
    let header = symbols.any(&["v8dbg_class_InstructionStream__instruction_start__uintptr_t"])?;
    let stream = symbols.any(&["v8dbg_class_Code__instruction_stream__Tagged_InstructionStream_"])?;
    let form = CodeForm {
        header: header.unwrap_or_default(),
        code: Some(8),
        stream: 32,
        start: 40,
        size: 56,
        flags: 48,
        deoptimisation: 16,
        positions: 24,
    };
    match (header, stream) {
        (Some(_), Some(stream)) => {
            let form = CodeForm {
                stream,
                start: symbols.one(&["v8dbg_class_Code__instruction_start__Address"])?,
                size: symbols.one(&["v8dbg_class_Code__instruction_size__int"])?,
                flags: symbols.one(&["v8dbg_class_Code__flags__uint32_t"])?,
                deoptimisation: 8,
                positions: 16,
                ..form
            };
            Ok((form, Form::Trusted))
        }
        (Some(16), None) if symbols.version.major == 11 => Ok((form, Form::Apart)),
        (None, None) if symbols.version.major == 10 => {
            let form = CodeForm {
                header: symbols.one(&["v8dbg_class_Code__instruction_start__uintptr_t"])?,
                code: None,
                size: symbols.one(&["v8dbg_class_Code__instruction_size__int"])?,
                flags: symbols.one(&["v8dbg_class_Code__flags__uint32_t"])?,
                ..form
            };
            Ok((form, Form::One))
        }
        _ => Err(LayoutError::Unknown(symbols.version)),
    }
}
