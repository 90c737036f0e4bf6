//! The kernel's functions by address: /proc/kallsyms.
//!
//! The kernel makes the list anew for each reader, which takes it some fifty milliseconds: it is read within the CPU
//! budget. Only what can run is kept, some 40 bytes a function.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;

use crate::cpu_budget::{CpuBudget, NeededBy};

/// What is read at a time. The kernel gives a page at most.
const CHUNK_BYTES: usize = 16 * 1024;
/// Four times what a kernel with all its modules loaded has.
const MAX_SYMBOLS: usize = 1 << 20;
/// Longer names are the kernel's no more (`KSYM_NAME_LEN` is 512).
const MAX_LINE_BYTES: usize = 1024;
/// Where so many symbols in a row have no address, all are hidden. Some per-CPU symbols truly have small ones.
const HIDDEN_SYMBOLS: usize = 1000;
/// Of what compilers and the kernel's build put in front of functions, where nothing runs.
const PADDING: [&[u8]; 2] = [b"__pfx_", b"__cfi_"];

/// Where the functions of all BPF programs lie, and how long they are, as the kernel side tells it; empty where it
/// can't.
pub type BpfFunctions = fn() -> HashMap<u64, usize>;

/// A function.
#[derive(Debug, Clone, Copy)]
struct Symbol {
    address: u64,
    /// Where its name begins, and how long it is.
    name: u32,
    name_bytes: u16,
    is_global: bool,
}

/// What the kernel tells of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KernelSymbol<'a> {
    pub(super) name: &'a str,
    pub(super) address: u64,
    /// Known of BPF programs only.
    pub(super) bytes: Option<usize>,
}

/// All functions, as of one reading.
#[derive(Debug, Default)]
pub(super) struct KernelSymbols {
    /// Ascending, each address once.
    symbols: Vec<Symbol>,
    names: Vec<u8>,
    /// Bytes of the code of BPF programs, by its address: behind the last of them may lie another one, loaded since.
    bpf: HashMap<u64, usize>,
}

impl KernelSymbols {
    /// Empty where the kernel does not tell its addresses.
    pub(super) fn read(cpu_budget: &CpuBudget, bpf_functions: BpfFunctions) -> Self {
        let Ok(list) = File::open("/proc/kallsyms") else {
            return Self::default();
        };
        let mut symbols = Self::parse(list, || cpu_budget.rest(NeededBy::Nobody));
        symbols.bpf = bpf_functions();
        symbols
    }

    /// Lines such as `ffffffffc0a00000 t xfs_inode_alloc [xfs]`, with a tab before the module; `rest` is called now and
    /// then.
    fn parse(mut list: impl Read, mut rest: impl FnMut()) -> Self {
        let mut parsed = Self::default();
        let mut hidden = 0;
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut kept = 0;
        loop {
            let got = match list.read(&mut chunk[kept..]) {
                Ok(got) => got,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                // What came before is as good as any.
                Err(_) => 0,
            };
            let end = kept + got;
            let whole = chunk[..end].iter().rposition(|byte| *byte == b'\n');
            // A last line without an end is whole, too.
            let whole = whole.map_or(if got == 0 { end } else { 0 }, |last| last + 1);
            for line in chunk[..whole].split(|byte| *byte == b'\n') {
                match parse_line(line) {
                    Some((0, ..)) if parsed.symbols.is_empty() => hidden += 1,
                    Some((address, kind, name)) => parsed.add(address, kind, name),
                    None => {}
                }
            }
            let is_full = parsed.symbols.len() >= MAX_SYMBOLS;
            if got == 0 || hidden >= HIDDEN_SYMBOLS || is_full {
                break;
            }
            chunk.copy_within(whole..end, 0);
            kept = end - whole;
            if kept >= MAX_LINE_BYTES {
                kept = 0;
            }
            rest();
        }
        parsed.sort();
        parsed
    }

    fn add(&mut self, address: u64, kind: u8, name: &[u8]) {
        let runs = matches!(kind, b'T' | b't' | b'W' | b'w');
        if address == 0 || !runs || PADDING.iter().any(|prefix| name.starts_with(prefix)) {
            return;
        }
        let (Ok(at), Ok(name_bytes)) = (u32::try_from(self.names.len()), u16::try_from(name.len())) else {
            return;
        };
        self.names.extend(name);
        self.symbols.push(Symbol {
            address,
            name: at,
            name_bytes,
            is_global: kind == b'T',
        });
    }

    /// Of names for the same address, the one stays that people know: the linker's own labels (`_stext`) and what is
    /// behind a function's name begin with underscores.
    fn sort(&mut self) {
        let mut symbols = std::mem::take(&mut self.symbols);
        let preference = |symbol: &Symbol| {
            let name = self.name_bytes(*symbol);
            let underscores = name.iter().take_while(|byte| **byte == b'_').count();
            (underscores, !symbol.is_global, name.len())
        };
        // Most come in order, and few share an address: names are looked at for these only.
        symbols.sort_by(|a, b| {
            let by_address = a.address.cmp(&b.address);
            by_address.then_with(|| preference(a).cmp(&preference(b)))
        });
        symbols.dedup_by_key(|symbol| symbol.address);
        symbols.shrink_to_fit();
        self.names.shrink_to_fit();
        self.symbols = symbols;
    }

    fn name_bytes(&self, symbol: Symbol) -> &[u8] {
        let (begin, bytes) = (symbol.name as usize, usize::from(symbol.name_bytes));
        &self.names[begin..begin + bytes]
    }

    fn name(&self, symbol: Symbol) -> &str {
        std::str::from_utf8(self.name_bytes(symbol)).unwrap_or("?")
    }

    /// The last function that begins at the address or below it.
    pub(super) fn find(&self, address: u64) -> Option<KernelSymbol<'_>> {
        let behind = self.symbols.partition_point(|symbol| symbol.address <= address);
        let symbol = self.symbols[..behind].last()?;
        Some(KernelSymbol {
            name: self.name(*symbol),
            address: symbol.address,
            bytes: self.bpf.get(&symbol.address).copied(),
        })
    }
}

/// Address, type and name.
fn parse_line(line: &[u8]) -> Option<(u64, u8, &[u8])> {
    let mut fields = line.splitn(3, |byte| *byte == b' ');
    let address = std::str::from_utf8(fields.next()?).ok()?;
    let address = u64::from_str_radix(address, 16).ok()?;
    let kind = *fields.next()?.first()?;
    let name = fields.next()?.split(|byte| *byte == b'\t').next()?;
    (!name.is_empty()).then_some((address, kind, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "0000000000000000 A fixed_percpu_data
ffffffff81000000 T _stext
ffffffff81000000 T srso_alias_untrain_ret
ffffffff81000200 t __pfx_do_one
ffffffff81000210 t do_one
ffffffff81000300 D some_data
ffffffff81000400 W weak_one
ffffffff81000400 T __weak_one_alias
nonsense
ffffffffc0a00000 t xfs_alloc\t[xfs]
ffffffffc0300000 t bpf_prog_6deef7357e7b4530_on_exec\t[bpf]";

    /// Gives so many bytes at a time.
    struct Slowly<'a>(&'a [u8], usize);

    impl Read for Slowly<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let count = self.1.min(into.len()).min(self.0.len());
            into[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    #[test]
    fn functions_are_found_however_the_list_comes() {
        for step in [1, 7, 64, 4096] {
            let mut rests = 0;
            let symbols = KernelSymbols::parse(Slowly(LIST.as_bytes(), step), || rests += 1);
            let name = |address| symbols.find(address).map(|symbol| symbol.name);
            assert_eq!(name(0xffff_ffff_80ff_ffff), None);
            assert_eq!(name(0xffff_ffff_8100_0000), Some("srso_alias_untrain_ret"));
            assert_eq!(name(0xffff_ffff_8100_0205), Some("srso_alias_untrain_ret"));
            assert_eq!(name(0xffff_ffff_8100_0210), Some("do_one"));
            assert_eq!(name(0xffff_ffff_8100_0310), Some("do_one"), "data is no function");
            assert_eq!(name(0xffff_ffff_8100_0401), Some("weak_one"));
            assert_eq!(name(0xffff_ffff_c030_0010), Some("bpf_prog_6deef7357e7b4530_on_exec"));
            assert_eq!(name(u64::MAX), Some("xfs_alloc"));
            assert!(rests > 0);
        }
    }

    #[test]
    fn what_is_hidden_names_nothing_and_is_not_read_to_the_end() {
        let line = "0000000000000000 T some_function\n";
        let list = line.repeat(100_000);
        let mut slowly = Slowly(list.as_bytes(), 4096);
        let symbols = KernelSymbols::parse(&mut slowly, || {});
        assert!(symbols.find(0xffff_ffff_8100_0000).is_none());
        assert!(slowly.0.len() > list.len() / 2);
    }

    #[test]
    fn a_line_without_end_takes_no_memory() {
        let list = [vec![b'f'; 1 << 20], b"\nffffffff81000210 t do_one\n".to_vec()].concat();
        let symbols = KernelSymbols::parse(Slowly(&list, 4096), || {});
        assert_eq!(symbols.symbols.len(), 1);
    }

    /// The kernel that runs this, where it tells its addresses: more than one list of functions must be right.
    #[test]
    fn this_kernel_has_functions() {
        let symbols = KernelSymbols::read(&CpuBudget::default(), HashMap::new);
        let Some(first) = symbols.symbols.first() else {
            let list = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
            assert!(
                list.lines().all(|line| line.starts_with("0000000000000000")),
                "the list was not understood"
            );
            return;
        };
        assert!(first.address > 1 << 32 && symbols.symbols.len() > 10_000);
        let known = symbols
            .symbols
            .iter()
            .find(|symbol| symbols.name(**symbol) == "do_syscall_64" || symbols.name(**symbol) == "el0_svc");
        let known = known.expect("every kernel has its way in");
        assert_eq!(
            symbols.find(known.address + 4).map(|symbol| symbol.address),
            Some(known.address)
        );
    }
}
