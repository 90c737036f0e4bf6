//! Files of which only the beginning counts.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Most files are smaller.
const USUAL_BYTES: usize = 8 * 1024;

/// The first `limit` bytes of a file; nothing when it cannot be read.
pub(super) fn read(path: &Path, limit: u64) -> Vec<u8> {
    // With nothing to begin with it would be read in ever larger pieces, and the kernel looks into the process's memory
    // for each.
    let mut bytes = Vec::with_capacity(USUAL_BYTES);
    if let Ok(file) = File::open(path) {
        // /proc fails in the middle when the process ends: what came before is as good as any.
        let _ = file.take(limit).read_to_end(&mut bytes);
    }
    bytes
}
