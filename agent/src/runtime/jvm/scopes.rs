//! What is inlined at a place of compiled code: its PcDescs and scopes (pcDesc.hpp, scopeDesc.cpp, debugInfoRec.cpp).

use super::code::Jvm;
use super::numbers::{Encoding, unsigned};
use super::{ADDRESSES, JavaFrame, ReadMemory, Unreadable, number, pointer, read};

/// HotSpot inlines to a depth of 15, Graal deeper.
const MAX_SCOPES: usize = 128;
/// As many places has no method.
const MAX_PC_DESCS: u64 = 1 << 24;
/// PcDescs that are read at a time once a search is as near.
const BLOCK_PC_DESCS: u64 = 32;
/// No type of the VM of that name has more.
const MAX_PC_DESC_BYTES: usize = 64;
/// A scope's first three numbers.
const SCOPE_BYTES: usize = 15;

/// A method at an index of its bytecodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Scope {
    method: u64,
    /// -1 before its first one.
    bci: i32,
}

impl Jvm {
    /// The methods at a place of compiled code, leaf first. `blob` is the address of its header and `compile_id` the
    /// number that it had when the pc was seen. `innermost` says that the pc is one that was interrupted, not one
    /// that a call returns to.
    pub fn compiled(
        &self,
        memory: &dyn ReadMemory,
        blob: u64,
        compile_id: u32,
        pc: u64,
        innermost: bool,
    ) -> Result<Vec<JavaFrame>, Unreadable> {
        let method = self.check_same(memory, blob, compile_id)?;
        let frames = self.nmethod(memory, blob, method, pc, innermost);
        // What was read meanwhile may be anything.
        self.check_same(memory, blob, compile_id)?;
        frames
    }

    /// Is it still the same compiled method? Gives that method.
    fn check_same(&self, memory: &dyn ReadMemory, blob: u64, compile_id: u32) -> Result<u64, Unreadable> {
        self.check_used(memory, blob)?;
        let layout = &self.layout.blob;
        let header_bytes = layout.header_bytes.get(memory, blob)?;
        let is_nmethod = header_bytes == i64::from(layout.nmethod_bytes);
        if !is_nmethod || self.compile_id(memory, blob)? != compile_id {
            return Err(Unreadable::Replaced);
        }
        // Until JDK 17 what remains of code loses its method before the classes go whose methods were inlined into it.
        let at = blob.saturating_add(u64::from(layout.method));
        match number(memory, at, 8)? {
            0 => Err(Unreadable::Replaced),
            method if ADDRESSES.contains(&method) && method.is_multiple_of(8) => Ok(method),
            _ => Err(Unreadable::Nonsense {
                what: "compiled code's method",
                address: at,
            }),
        }
    }

    fn nmethod(
        &self,
        memory: &dyn ReadMemory,
        blob: u64,
        method: u64,
        pc: u64,
        innermost: bool,
    ) -> Result<Vec<JavaFrame>, Unreadable> {
        let layout = &self.layout.blob;
        let begin = layout.code_begin.get(memory, blob)?;
        let end = blob.saturating_add_signed(layout.bytes.get(memory, blob)?);
        // A return address may lie behind the last instruction.
        let offset = pc.checked_sub(begin).filter(|_| pc <= end);
        let offset = offset.ok_or(Unreadable::Nonsense {
            what: "a pc of compiled code",
            address: pc,
        })?;
        let desc = match self.is_native(memory, method)? {
            true => None,
            false => self.pc_desc(memory, blob, offset, innermost)?,
        };
        let Some(desc) = desc else {
            return Ok(vec![self.frame(memory, method, None)?]);
        };
        let scopes = self.scopes(memory, blob, method, desc)?;
        let mut frames = Vec::with_capacity(scopes.len());
        for (index, scope) in scopes.iter().enumerate() {
            // Before the first bytecode a method's lock is taken.
            let bci = u32::try_from(scope.bci).unwrap_or(0);
            let mut frame = self.frame(memory, scope.method, Some(bci))?;
            frame.inlined = index + 1 < scopes.len();
            frames.push(frame);
        }
        Ok(frames)
    }

    /// Where the scopes of a place are described. A return address has its own PcDesc or none; what is not a call's end
    /// belongs to the next PcDesc behind it, as they stand at the ends of what they describe (forte.cpp).
    fn pc_desc(
        &self,
        memory: &dyn ReadMemory,
        blob: u64,
        offset: u64,
        innermost: bool,
    ) -> Result<Option<u64>, Unreadable> {
        let layout = &self.layout.blob;
        let table = (layout.pcs.0.get(memory, blob)?, layout.pcs.1.get(memory, blob)?);
        let what = "the table of places";
        let nonsense = Unreadable::Nonsense { what, address: blob };
        let (bytes, size) = (table.1.checked_sub(table.0), u64::from(layout.pc_desc_bytes));
        let count = bytes.map(|bytes| bytes / size).filter(|count| *count <= MAX_PC_DESCS);
        let is_small = usize::from(layout.pc_desc_bytes) <= MAX_PC_DESC_BYTES;
        let count = count.filter(|_| is_small).ok_or(nonsense)?;
        let wanted = i64::try_from(offset)
            .map_err(|_| nonsense)?
            .saturating_add(i64::from(innermost));
        let at = |index: u64| table.0.saturating_add(index.saturating_mul(size));
        let (mut low, mut high) = (0, count);
        while high - low > BLOCK_PC_DESCS {
            let middle = low + (high - low) / 2;
            if layout.pc_offset.get(memory, at(middle))? < wanted {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        // The first one that lies at `wanted` or behind may be the one at `high`.
        for index in low..(high + 1).min(count) {
            let found = layout.pc_offset.get(memory, at(index))?;
            if found >= wanted {
                let is_meant = innermost || found == wanted;
                let scope = layout.scope_offset.get(memory, at(index))?;
                // Zero stands for none, also in the entry that ends the table.
                return Ok(u64::try_from(scope).ok().filter(|scope| is_meant && *scope != 0));
            }
        }
        Ok(None)
    }

    /// The scopes from the innermost one to the method's own, which shows that they were read rightly.
    fn scopes(&self, memory: &dyn ReadMemory, blob: u64, method: u64, first: u64) -> Result<Vec<Scope>, Unreadable> {
        let likely = self.layout.encoding;
        let result = self.scopes_as(memory, blob, method, first, likely);
        // A vendor may have taken the newer form into an older release, or kept the older one.
        result.or_else(|error| {
            let other = self.scopes_as(memory, blob, method, first, likely.other());
            other.map_err(|_| error)
        })
    }

    fn scopes_as(
        &self,
        memory: &dyn ReadMemory,
        blob: u64,
        method: u64,
        first: u64,
        encoding: Encoding,
    ) -> Result<Vec<Scope>, Unreadable> {
        let layout = &self.layout.blob;
        let data = (layout.scopes.0.get(memory, blob)?, layout.scopes.1.get(memory, blob)?);
        let metadata = (
            layout.metadata.0.get(memory, blob)?,
            layout.metadata.1.get(memory, blob)?,
        );
        let nonsense = Unreadable::Nonsense {
            what: "a scope",
            address: blob,
        };
        let mut scopes = Vec::new();
        let mut offset = first;
        loop {
            let at = data.0.checked_add(offset).ok_or(nonsense)?;
            let room = data.1.checked_sub(at).ok_or(nonsense)?;
            let mut bytes = [0; SCOPE_BYTES];
            let bytes = &mut bytes[..SCOPE_BYTES.min(usize::try_from(room).unwrap_or(SCOPE_BYTES))];
            read(memory, at, bytes)?;
            let [sender, index, bci] = numbers(bytes, encoding).ok_or(nonsense)?;
            let entry = u64::from(index).checked_sub(1).ok_or(nonsense)? * 8;
            let entry = metadata.0.checked_add(entry).filter(|entry| *entry < metadata.1);
            scopes.push(Scope {
                method: pointer(memory, entry.ok_or(nonsense)?, "a scope's method")?,
                bci: bci.wrapping_sub(1).cast_signed(),
            });
            let sender = u64::from(sender);
            // Each scope is written behind the one that it was inlined into.
            if scopes.len() > MAX_SCOPES || sender >= offset {
                return Err(nonsense);
            }
            if sender == 0 {
                break;
            }
            offset = sender;
        }
        match scopes.last() {
            Some(own) if own.method == method => Ok(scopes),
            _ => Err(nonsense),
        }
    }
}

/// A scope's sender, method and bytecode.
fn numbers(bytes: &[u8], encoding: Encoding) -> Option<[u32; 3]> {
    let mut numbers = [0; 3];
    let mut rest = bytes;
    for number in &mut numbers {
        let (value, length) = unsigned(rest, encoding)?;
        *number = value;
        rest = rest.get(length..)?;
    }
    Some(numbers)
}
