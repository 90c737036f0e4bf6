//! Where a VM's objects have what names and walks of Java frames need.

use super::error::LayoutError;
use super::numbers::Encoding;
use super::tables::{Field, Tables};
use super::{ReadMemory, Unreadable, c_string, number};

/// No object of the VM that matters here is as large.
const MAX_OFFSET: u64 = 1 << 15;
const MAX_RELEASE_BYTES: usize = 128;
/// The release from which on the code cache is a list of heaps, the interpreter's frame holds its class' mirror, and
/// vmStructs says so of the former (JEP 197; frame_x86.hpp).
const SEGMENTED: u64 = 9;
/// The release from which on numbers of debug information have no zero byte (unsigned5.hpp).
const NO_ZERO: u64 = 20;

/// Types whose fields, sizes and constants matter.
const TYPES: &[&str] = &[
    "AbstractInterpreter",
    "Abstract_VM_Version",
    "CodeBlob",
    "CodeCache",
    "CodeHeap",
    "CompiledMethod",
    "ConstMethod",
    "ConstMethodFlags",
    "ConstantPool",
    "GenericGrowableArray",
    "GrowableArray<int>",
    "GrowableArrayBase",
    "HeapBlock",
    "HeapBlock::Header",
    "InstanceKlass",
    "JDK_Version",
    "Klass",
    "Method",
    "PcDesc",
    "StubQueue",
    "Symbol",
    "Universe",
    "VirtualSpace",
    "frame",
    "nmethod",
];

/// A number in an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumberField {
    /// From the object's begin.
    pub offset: u16,
    /// Bytes: 1, 2, 4 or 8.
    pub width: u8,
    /// Its highest bit is a sign.
    pub is_signed: bool,
}

impl NumberField {
    pub(super) fn get(self, memory: &dyn ReadMemory, object: u64) -> Result<i64, Unreadable> {
        let value = number(memory, object.saturating_add(u64::from(self.offset)), self.width)?;
        let unused = 64 - 8 * u32::from(self.width.clamp(1, 8));
        let value = value.cast_signed();
        let is_cut = self.is_signed && unused > 0;
        Ok(if is_cut { value << unused >> unused } else { value })
    }
}

/// An address that belongs to a code blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlobAddress {
    /// Where the blob has a pointer that the rest counts from; None where that is the blob itself.
    pub(super) pointer: Option<u16>,
    /// Numbers of the blob that are added.
    pub(super) plus: [Option<NumberField>; 2],
}

impl BlobAddress {
    fn pointed(pointer: u16) -> Self {
        Self {
            pointer: Some(pointer),
            plus: [None; 2],
        }
    }

    fn behind(pointer: Option<u16>, place: NumberField) -> Self {
        Self {
            pointer,
            plus: [Some(place), None],
        }
    }

    /// The only number that it takes: an address where 8 bytes wide, else a distance from the blob.
    pub(super) fn single(self) -> NumberField {
        let pointer = NumberField {
            offset: self.pointer.unwrap_or_default(),
            width: 8,
            is_signed: false,
        };
        self.plus[0].unwrap_or(pointer)
    }

    pub(super) fn get(self, memory: &dyn ReadMemory, blob: u64) -> Result<u64, Unreadable> {
        let mut address = match self.pointer {
            Some(offset) => number(memory, blob.saturating_add(u64::from(offset)), 8)?,
            None => blob,
        };
        for place in self.plus.into_iter().flatten() {
            address = address.saturating_add_signed(place.get(memory, blob)?);
        }
        Ok(address)
    }
}

/// Where the code heaps are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heaps {
    /// The address of the pointer to the only one.
    One(u64),
    /// The address of the pointer to a list of them.
    List { at: u64, length: NumberField, data: u16 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HeapLayout {
    /// First address that the heap may grow to use, one behind its last one, and first one in use.
    pub(super) low_boundary: u16,
    pub(super) high_boundary: u16,
    pub(super) low: u16,
    pub(super) segmap_low: u16,
    pub(super) log2_segment_bytes: NumberField,
    /// Of what stands before each blob.
    pub(super) header_bytes: u16,
    pub(super) header_used: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StubsLayout {
    /// Address of the pointer to the interpreter's queue.
    pub(super) at: u64,
    pub(super) buffer: u16,
    pub(super) limit: NumberField,
    pub(super) end: NumberField,
    pub(super) count: NumberField,
    /// Address of a flag that is set when the VM has set itself up.
    pub(super) is_complete: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlobLayout {
    pub(super) name: u16,
    pub(super) bytes: NumberField,
    pub(super) header_bytes: NumberField,
    pub(super) frame_words: NumberField,
    pub(super) frame_complete: NumberField,
    pub(super) code_begin: BlobAddress,
    /// Behind the code.
    pub(super) data: NumberField,
    pub(super) kind: Option<NumberField>,
    /// What `header_bytes` holds in compiled code and in nothing else.
    pub(super) nmethod_bytes: u16,
    pub(super) method: u16,
    pub(super) compile_id: NumberField,
    pub(super) orig_pc: NumberField,
    pub(super) deopt: BlobAddress,
    pub(super) deopt_mh: Option<BlobAddress>,
    pub(super) pcs: (BlobAddress, BlobAddress),
    pub(super) scopes: (BlobAddress, BlobAddress),
    pub(super) metadata: (BlobAddress, BlobAddress),
    pub(super) pc_desc_bytes: u16,
    pub(super) pc_offset: NumberField,
    pub(super) scope_offset: NumberField,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MethodLayout {
    pub(super) const_method: u16,
    pub(super) access_flags: u16,
    /// The bytecodes begin behind as much of a ConstMethod.
    pub(super) const_bytes: u16,
    pub(super) pool: u16,
    pub(super) words: NumberField,
    pub(super) flags: NumberField,
    /// The flag that says that a line table follows the bytecodes.
    pub(super) has_lines: u64,
    pub(super) code_bytes: NumberField,
    pub(super) name: NumberField,
    pub(super) signature: NumberField,
    /// The entries begin behind as much of a ConstantPool.
    pub(super) pool_bytes: u16,
    pub(super) holder: u16,
    pub(super) pool_length: NumberField,
    pub(super) class_name: u16,
    /// In which numbers of a class a bit says that its name is followed by its address (JDK 9 to 14); later VMs make
    /// that part of the name.
    pub(super) anonymous: Option<(NumberField, u64)>,
    pub(super) file: NumberField,
    /// The file's index stands in the class, as before JDK 12, not in its pool.
    pub(super) is_file_in_class: bool,
    pub(super) symbol_length: NumberField,
    pub(super) symbol_body: u16,
}

/// Everything of one VM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Release of Java, such as 17.
    pub java: u64,
    /// As the VM calls itself: `17.0.15+6-Debian-1deb12u1`.
    pub release: String,
    /// How it writes numbers of debug information.
    pub encoding: Encoding,
    pub(super) heaps: Heaps,
    pub(super) heap: HeapLayout,
    pub(super) stubs: StubsLayout,
    pub(super) blob: BlobLayout,
    pub(super) method: MethodLayout,
}

impl Layout {
    /// Reads the tables. `symbol` gives a dynamic symbol's address in the process.
    pub fn read(memory: &dyn ReadMemory, symbol: &dyn Fn(&str) -> Option<u64>) -> Result<Self, LayoutError> {
        let tables = Tables::read(memory, symbol, &|name| TYPES.contains(&name))?;
        let java = java(memory, &tables)?;
        let tables = Wanted { tables: &tables, java };
        tables.check_frame()?;
        Ok(Self {
            java,
            release: release(memory, tables.tables),
            encoding: if java >= NO_ZERO {
                Encoding::NoZero
            } else {
                Encoding::Plain
            },
            heaps: tables.heaps()?,
            heap: tables.heap()?,
            stubs: tables.stubs()?,
            blob: tables.blob()?,
            method: tables.method()?,
        })
    }

    /// The interpreter's frame holds its method's mirror.
    pub(super) fn has_mirror(&self) -> bool {
        self.java >= SEGMENTED
    }
}

/// The release of Java. HotSpot's own number was another one in JDK 8, which alone has one code heap.
fn java(memory: &dyn ReadMemory, tables: &Tables) -> Result<u64, LayoutError> {
    let address = |owner, name| {
        let field = tables.field(owner, name).filter(|field| field.is_static);
        field.map(|field| field.at)
    };
    let is_segmented = address("CodeCache", "_heaps").is_some();
    let java = match (
        address("JDK_Version", "_current"),
        tables.field("JDK_Version", "_major"),
    ) {
        (Some(current), Some(major)) => number(memory, current.saturating_add(major.at), 1)?,
        _ if !is_segmented => SEGMENTED - 1,
        _ => {
            let owner = "Abstract_VM_Version";
            let at = address(owner, "_vm_major_version").ok_or_else(|| LayoutError::NoField {
                java: 0,
                field: format!("{owner}::_vm_major_version"),
            })?;
            number(memory, at, 4)?
        }
    };
    match java {
        0 => Err(LayoutError::NotReady),
        java if (java >= SEGMENTED) == is_segmented => Ok(java),
        java => Err(LayoutError::Contradiction {
            java,
            what: "CodeCache::_heaps".to_owned(),
        }),
    }
}

/// For messages only.
fn release(memory: &dyn ReadMemory, tables: &Tables) -> String {
    let field = tables.field("Abstract_VM_Version", "_s_vm_release");
    let text = field
        .filter(|field| field.is_static)
        .and_then(|field| number(memory, field.at, 8).ok())
        .and_then(|address| c_string(memory, address, MAX_RELEASE_BYTES).ok());
    text.unwrap_or_default()
}

/// The tables, whose every lack is an error.
struct Wanted<'a> {
    tables: &'a Tables,
    java: u64,
}

impl Wanted<'_> {
    fn heaps(&self) -> Result<Heaps, LayoutError> {
        if self.java < SEGMENTED {
            return Ok(Heaps::One(self.address("CodeCache", "_heap")?));
        }
        let base = ["GrowableArrayBase", "GenericGrowableArray"];
        let owner = self.one_of(base, "_len").unwrap_or(base[0]);
        Ok(Heaps::List {
            at: self.address("CodeCache", "_heaps")?,
            length: self.number(owner, "_len")?,
            data: self.offset("GrowableArray<int>", "_data")?,
        })
    }

    fn heap(&self) -> Result<HeapLayout, LayoutError> {
        let memory = self.offset("CodeHeap", "_memory")?;
        let space = |base: u16, name| Ok::<_, LayoutError>(base.saturating_add(self.offset("VirtualSpace", name)?));
        let header = self.offset("HeapBlock", "_header")?;
        Ok(HeapLayout {
            low_boundary: space(memory, "_low_boundary")?,
            high_boundary: space(memory, "_high_boundary")?,
            low: space(memory, "_low")?,
            segmap_low: space(self.offset("CodeHeap", "_segmap")?, "_low")?,
            log2_segment_bytes: self.number("CodeHeap", "_log2_segment_size")?,
            header_bytes: self.size("HeapBlock")?,
            header_used: header.saturating_add(self.offset("HeapBlock::Header", "_used")?),
        })
    }

    fn stubs(&self) -> Result<StubsLayout, LayoutError> {
        Ok(StubsLayout {
            at: self.address("AbstractInterpreter", "_code")?,
            buffer: self.offset("StubQueue", "_stub_buffer")?,
            limit: self.number("StubQueue", "_buffer_limit")?,
            end: self.number("StubQueue", "_queue_end")?,
            count: self.number("StubQueue", "_number_of_stubs")?,
            is_complete: self.address("Universe", "_fully_initialized").ok(),
        })
    }

    fn blob(&self) -> Result<BlobLayout, LayoutError> {
        // What was CompiledMethod's from JDK 9 to 22 is nmethod's before and after.
        let owners = ["nmethod", "CompiledMethod"];
        let code_begin = match self.offset("CodeBlob", "_code_begin") {
            Ok(pointer) => BlobAddress::pointed(pointer),
            Err(_) => BlobAddress::behind(None, self.number("CodeBlob", "_code_offset")?),
        };
        let deopt = match self.offset("CompiledMethod", "_deopt_handler_begin") {
            Ok(pointer) => BlobAddress::pointed(pointer),
            Err(_) => {
                let names = [
                    "_deopt_handler_offset",
                    "_deopt_handler_entry_offset",
                    "_deoptimize_offset",
                ];
                BlobAddress::behind(None, self.number_of("nmethod", &names)?)
            }
        };
        let deopt_mh = match self.offset("CompiledMethod", "_deopt_mh_handler_begin") {
            Ok(pointer) => Some(BlobAddress::pointed(pointer)),
            Err(_) => {
                let place = self.number_of("nmethod", &["_deopt_mh_handler_offset", "_deoptimize_mh_offset"]);
                place.ok().map(|place| BlobAddress::behind(None, place))
            }
        };
        let [pcs, scopes] = self.debug_information()?;
        Ok(BlobLayout {
            name: self.offset("CodeBlob", "_name")?,
            bytes: self.number("CodeBlob", "_size")?,
            header_bytes: self.number("CodeBlob", "_header_size")?,
            frame_words: self.number("CodeBlob", "_frame_size")?,
            frame_complete: self.number("CodeBlob", "_frame_complete_offset")?,
            code_begin,
            data: self.number("CodeBlob", "_data_offset")?,
            kind: self.number("CodeBlob", "_kind").ok(),
            nmethod_bytes: self.size("nmethod")?,
            method: self.offset(self.one_of(owners, "_method").unwrap_or(owners[0]), "_method")?,
            compile_id: self.number("nmethod", "_compile_id")?,
            orig_pc: self.number("nmethod", "_orig_pc_offset")?,
            deopt,
            deopt_mh,
            pcs,
            scopes,
            metadata: self.metadata(scopes.0)?,
            pc_desc_bytes: self.size("PcDesc")?,
            pc_offset: self.number("PcDesc", "_pc_offset")?,
            scope_offset: self.number("PcDesc", "_scope_decode_offset")?,
        })
    }

    /// Begins and ends of the PcDescs and of the scopes. Since JDK 23 they lie outside of the code.
    fn debug_information(&self) -> Result<[(BlobAddress, BlobAddress); 2], LayoutError> {
        let pcs = self.number("nmethod", "_scopes_pcs_offset")?;
        if let Ok(outside) = self.offset("nmethod", "_immutable_data") {
            let field = |name| Ok::<_, LayoutError>(BlobAddress::behind(Some(outside), self.number("nmethod", name)?));
            let scopes = field("_scopes_data_offset")?;
            return Ok([
                (BlobAddress::behind(Some(outside), pcs), scopes),
                (scopes, field("_immutable_data_size")?),
            ]);
        }
        let pcs = BlobAddress::behind(None, pcs);
        let scopes = match self.offset("CompiledMethod", "_scopes_data_begin") {
            Ok(pointer) => BlobAddress::pointed(pointer),
            Err(_) => BlobAddress::behind(None, self.number("nmethod", "_scopes_data_offset")?),
        };
        let end = BlobAddress::behind(None, self.number("nmethod", "_dependencies_offset")?);
        Ok([(pcs, end), (scopes, pcs)])
    }

    /// Begin and end of the table of methods that the scopes name. It lies before the scopes until JDK 22, at the end
    /// of the blob's data until 24, and outside of the code cache since 25.
    fn metadata(&self, scopes: BlobAddress) -> Result<(BlobAddress, BlobAddress), LayoutError> {
        if let Ok(outside) = self.offset("CodeBlob", "_mutable_data") {
            let field = |name| Ok::<_, LayoutError>(BlobAddress::behind(Some(outside), self.number("CodeBlob", name)?));
            return Ok((field("_relocation_size")?, field("_mutable_data_size")?));
        }
        let place = self.number("nmethod", "_metadata_offset")?;
        if self.offset("nmethod", "_immutable_data").is_err() {
            return Ok((BlobAddress::behind(None, place), scopes));
        }
        let begin = BlobAddress {
            pointer: None,
            plus: [Some(self.number("CodeBlob", "_data_offset")?), Some(place)],
        };
        Ok((begin, BlobAddress::behind(None, self.number("CodeBlob", "_size")?)))
    }

    fn method(&self) -> Result<MethodLayout, LayoutError> {
        let constant = |name| self.tables.constant(name);
        let has_lines = constant("ConstMethodFlags::_misc_has_linenumber_table");
        let has_lines = has_lines.or_else(|| constant("ConstMethod::_has_linenumber_table"));
        let files = ["ConstantPool", "InstanceKlass"];
        let file = self.one_of(files, "_source_file_name_index").unwrap_or(files[0]);
        let symbol_length = match self.number("Symbol", "_length") {
            Ok(length) => length,
            // JDK 12 to 14: the upper half of a number.
            Err(_) => NumberField {
                offset: self.offset("Symbol", "_length_and_refcount")?.saturating_add(2),
                width: 2,
                is_signed: false,
            },
        };
        let anonymous = constant("InstanceKlass::_misc_is_anonymous");
        let anonymous = anonymous.or_else(|| constant("InstanceKlass::_misc_is_unsafe_anonymous"));
        let misc_flags = self.number("InstanceKlass", "_misc_flags").ok();
        Ok(MethodLayout {
            const_method: self.offset("Method", "_constMethod")?,
            access_flags: self.offset("Method", "_access_flags")?,
            const_bytes: self.size("ConstMethod")?,
            pool: self.offset("ConstMethod", "_constants")?,
            words: self.number("ConstMethod", "_constMethod_size")?,
            flags: self.number_of("ConstMethod", &["_flags", "_flags._flags"])?,
            has_lines: has_lines.ok_or_else(|| self.no_field("ConstMethodFlags", "_misc_has_linenumber_table"))?,
            code_bytes: self.number("ConstMethod", "_code_size")?,
            name: self.number("ConstMethod", "_name_index")?,
            signature: self.number("ConstMethod", "_signature_index")?,
            pool_bytes: self.size("ConstantPool")?,
            holder: self.offset("ConstantPool", "_pool_holder")?,
            pool_length: self.number("ConstantPool", "_length")?,
            class_name: self.offset("Klass", "_name")?,
            anonymous: misc_flags.zip(anonymous),
            file: self.number(file, "_source_file_name_index")?,
            is_file_in_class: file == files[1],
            symbol_length,
            symbol_body: self.offset("Symbol", "_body")?,
        })
    }

    /// The slots of the interpreter's frame that the tables have must be where they always were.
    fn check_frame(&self) -> Result<(), LayoutError> {
        for (name, words) in [("sender_sp", -1i32), ("last_sp", -2)] {
            let what = format!("frame::interpreter_frame_{name}_offset");
            let value = self.tables.constant(&what);
            if value.is_some_and(|value| value != u64::from(words.cast_unsigned())) {
                return Err(LayoutError::Contradiction { java: self.java, what });
            }
        }
        Ok(())
    }

    fn no_field(&self, owner: &str, name: &str) -> LayoutError {
        LayoutError::NoField {
            java: self.java,
            field: format!("{owner}::{name}"),
        }
    }

    /// The first type that has a field of this name.
    fn one_of<const COUNT: usize>(&self, owners: [&'static str; COUNT], name: &str) -> Option<&'static str> {
        owners
            .into_iter()
            .find(|owner| self.tables.field(owner, name).is_some())
    }

    fn field(&self, owner: &str, name: &str, is_static: bool) -> Result<&Field, LayoutError> {
        let field = self
            .tables
            .field(owner, name)
            .filter(|field| field.is_static == is_static);
        field.ok_or_else(|| self.no_field(owner, name))
    }

    fn address(&self, owner: &str, name: &str) -> Result<u64, LayoutError> {
        Ok(self.field(owner, name, true)?.at)
    }

    fn offset(&self, owner: &str, name: &str) -> Result<u16, LayoutError> {
        let field = self.field(owner, name, false)?;
        self.bounded(field.at, || format!("{owner}::{name}"))
    }

    fn size(&self, name: &'static str) -> Result<u16, LayoutError> {
        let java = self.java;
        let size = self.tables.size(name).ok_or(LayoutError::NoSize { java, name })?;
        if size == 0 {
            return Err(LayoutError::NoSize { java, name });
        }
        self.bounded(size, || format!("size of {name}"))
    }

    fn bounded(&self, value: u64, what: impl Fn() -> String) -> Result<u16, LayoutError> {
        let small = u16::try_from(value).ok().filter(|_| value < MAX_OFFSET);
        small.ok_or_else(|| LayoutError::Contradiction {
            java: self.java,
            what: what(),
        })
    }

    fn number_of(&self, owner: &str, names: &[&str]) -> Result<NumberField, LayoutError> {
        let name = names.iter().find(|name| self.tables.field(owner, name).is_some());
        self.number(owner, name.or(names.first()).copied().unwrap_or_default())
    }

    fn number(&self, owner: &str, name: &str) -> Result<NumberField, LayoutError> {
        let offset = self.offset(owner, name)?;
        let type_name = self
            .field(owner, name, false)?
            .type_name
            .trim_start_matches("volatile ");
        let (width, is_signed) = match type_name {
            "bool" | "u1" | "uint8_t" | "unsigned char" | "CodeBlobKind" => (1, false),
            "jbyte" | "int8_t" | "signed char" => (1, true),
            "u2" | "uint16_t" | "unsigned short" | "jushort" => (2, false),
            "short" | "int16_t" | "jshort" => (2, true),
            "u4" | "uint32_t" | "juint" | "uint" | "unsigned int" => (4, false),
            "int" | "jint" | "int32_t" => (4, true),
            "size_t" | "uint64_t" | "u8" | "intx" | "uintx" => (8, false),
            _ => {
                return Err(LayoutError::Contradiction {
                    java: self.java,
                    what: format!("type {type_name} of {owner}::{name}"),
                });
            }
        };
        Ok(NumberField {
            offset,
            width,
            is_signed,
        })
    }
}
