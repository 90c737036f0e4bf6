//! The entries of the map `runtimes`: what walks know of the runtime of a process's language.

use std::collections::VecDeque;

use libbpf_rs::{MapCore, MapFlags, MapHandle};

use super::walk::so_runtime;
use crate::kernel::records::Record;
use crate::unwind::RETIRE_NS;

/// Entries of the map, `SO_MAX_RUNTIMES` of bpf/abi.h.
const MAX_RUNTIMES: usize = 512;

impl Record for so_runtime {}

/// Which entries are whose, and what is in them.
pub(super) struct RuntimeEntries {
    map: MapHandle,
    entries: Vec<Option<so_runtime>>,
    /// Free, and since when no walk can be reading them.
    free: VecDeque<(u32, u64)>,
}

impl RuntimeEntries {
    pub(super) fn new(map: MapHandle) -> Self {
        Self {
            map,
            entries: Vec::new(),
            free: VecDeque::new(),
        }
    }

    pub(super) fn get(&self, number: u32) -> Option<&so_runtime> {
        self.entries.get(number as usize)?.as_ref()
    }

    /// Puts a runtime into a process's entry, of which `known` is the number if it has one; or gives the entry up. None
    /// where there is no more room, or nothing to put.
    pub(super) fn set(&mut self, known: Option<u32>, runtime: Option<&so_runtime>, now_ns: u64) -> Option<u32> {
        let Some(runtime) = runtime else {
            if let Some(number) = known {
                self.entries[number as usize] = None;
                self.free.push_back((number, now_ns + RETIRE_NS));
            }
            return None;
        };
        let number = match known {
            Some(number)
                if self
                    .get(number)
                    .is_some_and(|there| bytes_of(there) == bytes_of(runtime)) =>
            {
                return Some(number);
            }
            Some(number) => number,
            None => self.take(now_ns)?,
        };
        if let Err(error) = self.map.update(&number.to_ne_bytes(), bytes_of(runtime), MapFlags::ANY) {
            tracing::warn!(%error, "cannot tell the kernel side of a runtime");
            return self.set(Some(number), None, now_ns);
        }
        self.entries[number as usize] = Some(*runtime);
        Some(number)
    }

    fn take(&mut self, now_ns: u64) -> Option<u32> {
        if let Some((number, _)) = self.free.front().copied().filter(|(_, from_ns)| *from_ns <= now_ns) {
            self.free.pop_front();
            return Some(number);
        }
        (self.entries.len() < MAX_RUNTIMES).then(|| {
            self.entries.push(None);
            self.entries.len() as u32 - 1
        })
    }
}

/// As the kernel side reads it.
fn bytes_of(runtime: &so_runtime) -> &[u8] {
    // SAFETY: plain integers in C layout without padding, borrowed for as long as the bytes are.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(runtime).cast(), size_of::<so_runtime>()) }
}
