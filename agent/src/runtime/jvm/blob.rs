//! Code blobs: pieces of code that the VM made, each with a header that says what it is.

use super::code::Jvm;
use super::{ADDRESSES, ReadMemory, Unreadable, c_string, number};

/// Steps back in a heap's segment map. 254 segments take two at most, so a blob of 8 MiB, larger than the VM compiles
/// any method to, takes some 1,000.
const MAX_STEPS: usize = 8192;
/// `ReservedCodeCacheSize` ends at 2 GiB.
const MAX_BLOB_BYTES: i64 = 1 << 31;
const MAX_NAME_BYTES: usize = 256;
/// Bytes of the segment map that are read at a time.
const MAP_BYTES: usize = 256;

/// What a blob is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlobKind {
    /// A compiled method.
    Nmethod,
    /// The wrapper of a native method.
    NativeNmethod,
    /// The interpreter's code.
    Interpreter,
    /// A call from compiled code into the VM.
    RuntimeStub,
    /// Between interpreted and compiled code.
    Adapter,
    /// Calls by vtable or itable.
    Vtable,
    /// Between method handles and what they call.
    MethodHandles,
    /// Routines in assembler, such as copies of arrays.
    StubRoutines,
    /// Where frames that are no longer valid go on in the interpreter.
    Deoptimization,
    /// Where threads wait for a safepoint.
    Safepoint,
    /// Where compiled code goes on with an exception.
    Exception,
    /// Where compiled code goes that met what it did not expect.
    UncommonTrap,
    /// From native code to Java.
    Upcall,
    /// Another one without frames of a known size.
    Buffer,
}

/// A blob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    /// Address of its header.
    pub address: u64,
    /// What it is.
    pub kind: BlobKind,
    /// The VM's own name of it, such as `StubRoutines (1)`.
    pub name: String,
    /// From its header's begin to its end.
    pub bytes: u32,
    /// Address of its first instruction.
    pub code_begin: u64,
    /// Address behind its last one.
    pub code_end: u64,
    /// Of its frames, return address included, in words; zero or less where they have no fixed size.
    pub frame_words: i32,
    /// How far behind `code_begin` a frame is set up; -1 for never.
    pub frame_complete: i32,
    /// Number of the compilation that made it; zero where it is not compiled code.
    pub compile_id: u32,
}

impl Jvm {
    /// The blob whose block holds an address. None for free room, and where memory makes no sense.
    pub fn blob_at(&self, memory: &dyn ReadMemory, pc: u64) -> Option<Blob> {
        let heap = self.heap_of(pc)?;
        let segment = pc.checked_sub(heap.first_segment)? >> heap.segment_shift;
        let first = first_segment(memory, heap.segment_map, segment)?;
        let header = heap.first_segment.checked_add(first << heap.segment_shift)?;
        let blob = self
            .blob(memory, header.checked_add(u64::from(self.layout.heap.header_bytes))?)
            .ok()?;
        (blob.address..blob.address.checked_add(u64::from(blob.bytes))?)
            .contains(&pc)
            .then_some(blob)
    }

    /// The name of a blob that is no Java method, as the VM has it: `StubRoutines (1)`, `I2C/C2I adapters`.
    pub fn stub_name(&self, memory: &dyn ReadMemory, blob: u64) -> Option<String> {
        let blob = self.blob(memory, blob).ok()?;
        let name = match blob.kind {
            BlobKind::Nmethod | BlobKind::NativeNmethod => return None,
            BlobKind::Vtable => "vtable stub".to_owned(),
            _ => blob.name,
        };
        Some(name).filter(|name| !name.is_empty())
    }

    /// A blob by the address of its header.
    pub(super) fn blob(&self, memory: &dyn ReadMemory, address: u64) -> Result<Blob, Unreadable> {
        let layout = &self.layout.blob;
        let nonsense = |what| Unreadable::Nonsense { what, address };
        self.check_used(memory, address)?;
        let (bytes, header_bytes) = (
            layout.bytes.get(memory, address)?,
            layout.header_bytes.get(memory, address)?,
        );
        let code_begin = layout.code_begin.get(memory, address)?;
        let data = layout.data.get(memory, address)?;
        let code_end = address.saturating_add_signed(data);
        let end = address.saturating_add_signed(bytes);
        let is_sane = (header_bytes..MAX_BLOB_BYTES).contains(&bytes)
            && header_bytes > 0
            && address < code_begin
            && code_begin <= code_end
            && code_end <= end;
        if !is_sane {
            return Err(nonsense("a code blob"));
        }
        let name = match number(memory, address.saturating_add(u64::from(layout.name)), 8)? {
            name if ADDRESSES.contains(&name) => c_string(memory, name, MAX_NAME_BYTES)?,
            _ => return Err(nonsense("a code blob's name")),
        };
        let small = |value| i32::try_from(value).map_err(|_| nonsense("a code blob"));
        let frame_words = small(layout.frame_words.get(memory, address)?)?;
        let is_nmethod = header_bytes == i64::from(layout.nmethod_bytes);
        Ok(Blob {
            address,
            kind: kind(&name, is_nmethod, frame_words),
            name,
            bytes: u32::try_from(bytes).map_err(|_| nonsense("a code blob"))?,
            code_begin,
            code_end,
            frame_words,
            frame_complete: small(layout.frame_complete.get(memory, address)?)?,
            compile_id: if is_nmethod {
                self.compile_id(memory, address)?
            } else {
                0
            },
        })
    }

    pub(super) fn compile_id(&self, memory: &dyn ReadMemory, nmethod: u64) -> Result<u32, Unreadable> {
        let id = self.layout.blob.compile_id.get(memory, nmethod)?;
        Ok((id & i64::from(u32::MAX)).unsigned_abs() as u32)
    }

    /// Does a blob lie in a block of a code heap that is in use?
    pub(super) fn check_used(&self, memory: &dyn ReadMemory, address: u64) -> Result<(), Unreadable> {
        let heap = &self.layout.heap;
        let header = address.checked_sub(u64::from(heap.header_bytes));
        let header = header.filter(|header| self.heap_of(*header).is_some());
        let what = "a code blob's place";
        let header = header.ok_or(Unreadable::Nonsense { what, address })?;
        match number(memory, header.saturating_add(u64::from(heap.header_used)), 1)? {
            0 => Err(Unreadable::Replaced),
            _ => Ok(()),
        }
    }
}

/// The segment that the block of another one begins at.
fn first_segment(memory: &dyn ReadMemory, map: u64, segment: u64) -> Option<u64> {
    /// A segment that belongs to no block.
    const FREE: u8 = 0xff;
    let mut segment = segment;
    let mut steps = 0;
    loop {
        // Steps only lead back, so what lies before is read with each.
        let first = segment.saturating_sub(MAP_BYTES as u64 - 1);
        let mut entries = [0; MAP_BYTES];
        let entries = entries.get_mut(..=usize::try_from(segment - first).ok()?)?;
        super::read(memory, map.checked_add(first)?, entries).ok()?;
        while let Some(entry) = segment
            .checked_sub(first)
            .and_then(|at| entries.get(usize::try_from(at).ok()?))
        {
            match *entry {
                0 => return Some(segment),
                FREE => return None,
                back => segment = segment.checked_sub(u64::from(back))?,
            }
            steps += 1;
            if steps > MAX_STEPS {
                return None;
            }
        }
    }
}

fn kind(name: &str, is_nmethod: bool, frame_words: i32) -> BlobKind {
    /// What names begin with (codeBlob.cpp, vtableStubs.cpp, nmethod.cpp).
    const KINDS: &[(&str, BlobKind)] = &[
        ("Interpreter", BlobKind::Interpreter),
        ("I2C/C2I adapters", BlobKind::Adapter),
        ("vtable", BlobKind::Vtable),
        ("itable", BlobKind::Vtable),
        ("MethodHandle", BlobKind::MethodHandles),
        ("StubRoutines", BlobKind::StubRoutines),
        ("DeoptimizationBlob", BlobKind::Deoptimization),
        ("SafepointBlob", BlobKind::Safepoint),
        ("ExceptionBlob", BlobKind::Exception),
        ("UncommonTrapBlob", BlobKind::UncommonTrap),
        ("upcall", BlobKind::Upcall),
    ];
    if is_nmethod {
        return if name.starts_with("native") {
            BlobKind::NativeNmethod
        } else {
            BlobKind::Nmethod
        };
    }
    let known = KINDS.iter().find(|(begin, _)| name.starts_with(begin));
    match known {
        Some((_, kind)) => *kind,
        None if frame_words > 0 => BlobKind::RuntimeStub,
        None => BlobKind::Buffer,
    }
}
