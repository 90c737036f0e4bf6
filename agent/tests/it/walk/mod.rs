//! The kernel side's walk of user stacks, compiled for the host: the same code, without a kernel.

mod above;
mod arm64;
mod chain;
#[cfg(target_arch = "x86_64")]
mod search;
#[cfg(target_arch = "x86_64")]
mod stepped;
#[cfg(target_arch = "x86_64")]
mod tracee;

use stakeout_agent::kernel::HostMemory;
use stakeout_agent::unwind::{Code, CodeMapping, Layout, Published};

use crate::unwind::compile_bytes;

/// How far the addresses of a file made by hand are moved in its process.
const BIAS: u64 = 0x5500_0000_0000;

/// Tables of a process that maps such a file's code, and other code beside it.
fn tables_of(file: &[u8], others: &[CodeMapping<'_>]) -> (Layout<HostMemory>, Published) {
    let table = compile_bytes(file).unwrap();
    let mut layout = Layout::new(HostMemory::new(2));
    let installed = layout.install(&table).unwrap();
    let mapping = CodeMapping {
        begin: BIAS + 0x1_0000,
        end: BIAS + 0x2_0000,
        code: Code::Table {
            installed: &installed,
            chunk_zero: BIAS + table.base,
        },
    };
    let mut mappings = vec![mapping];
    mappings.extend_from_slice(others);
    let published = layout.publish(&mappings).unwrap();
    (layout, published)
}
