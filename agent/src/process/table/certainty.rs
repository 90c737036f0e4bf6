//! When an address of a program is sure to have meant what is known of it: what was mapped or written since is noted
//! with the program.

use super::entry::Entry;
use super::replaced::{Replaced, WRITTEN_LATELY_NS};
use crate::process::NewCode;
use crate::process::address_space::{Mapping, Source};

impl Entry {
    /// Something was mapped, perhaps in the place of what is known, or of what was there when no look told of it:
    /// between two files that are loaded in turns a look may find nothing.
    pub(super) fn note_new_code(&mut self, code: &NewCode) {
        let after = self.mappings.partition_point(|mapping| mapping.end <= code.start);
        let there = self.mappings[after..]
            .iter()
            .take_while(|mapping| mapping.start < code.end);
        // A compiler makes its own memory executable again and again: what it had there, it has.
        let is_other = |mapping: &Mapping| match self.sources.iter().find(|(id, _)| *id == mapping.source) {
            Some((_, Source::Module(_))) => true,
            Some((_, Source::Jit(made))) => made.file.is_none() && !code.is_made,
            _ => false,
        };
        if !code.is_made || there.into_iter().any(is_other) {
            self.replaced.add(Replaced {
                start: code.start,
                end: code.end,
                since_ns: code.time_ns,
                is_content: false,
            });
        }
    }

    /// The mappings were read: files that were written lately had something else in them before.
    pub(super) fn note_written_files(&mut self) {
        let now_ns = self.reading.ended_ns;
        for (id, source) in self.sources.iter() {
            let Source::Module(module) = source else { continue };
            let lately = |written_ns: &u64| now_ns.saturating_sub(*written_ns) < WRITTEN_LATELY_NS;
            let Some(since_ns) = module.written_ns().filter(lately) else {
                continue;
            };
            for mapping in self.mappings.iter().filter(|mapping| mapping.source == *id) {
                self.replaced.add(Replaced {
                    start: mapping.start,
                    end: mapping.end,
                    since_ns,
                    is_content: true,
                });
            }
        }
    }

    /// True where nobody knows what a sample of that time meant by the address.
    pub(super) fn is_unsure(&self, address: u64, sample_ns: u64) -> bool {
        self.replaced.is_unsure(address, sample_ns, self.reading)
    }
}
