//! What gimli says of a file's unwind information, in the words of the tables.

use gimli::{CfaRule, LittleEndian, RegisterRule, UnwindSection};
use stakeout_agent::unwind::{CallerFp, CallerPc, Cfa, FileTable};

/// Bytes at a section or segment, by an independent small reader.
pub(crate) struct Elf<'a> {
    bytes: &'a [u8],
    pub(crate) arm64: bool,
}

pub(crate) struct Section {
    pub(crate) address: u64,
    pub(crate) bytes: Vec<u8>,
}

fn number(bytes: &[u8], at: usize, size: usize) -> u64 {
    bytes[at..at + size]
        .iter()
        .rev()
        .fold(0, |value, byte| value << 8 | u64::from(*byte))
}

impl<'a> Elf<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        let arm64 = number(bytes, 18, 2) == 183;
        Self { bytes, arm64 }
    }

    /// By section header, decompressed.
    pub(crate) fn section(&self, name: &str) -> Option<Section> {
        let field = |at: usize, size: usize| number(self.bytes, at, size);
        let (table, count, names) = (field(40, 8) as usize, field(60, 2) as usize, field(62, 2) as usize);
        if count == 0 {
            return None;
        }
        let names = field(table + names * 64 + 24, 8) as usize;
        let wanted = format!("{name}\0");
        let header = (0..count).map(|index| table + index * 64).find(|at| {
            let name = names + field(*at, 4) as usize;
            self.bytes[name..].starts_with(wanted.as_bytes()) && field(at + 4, 4) != 8
        })?;
        let (offset, bytes) = (field(header + 24, 8) as usize, field(header + 32, 8) as usize);
        let content = &self.bytes[offset..offset + bytes];
        let bytes = match (field(header + 8, 8) & 0x800 != 0, content.first()) {
            (false, _) => content.to_vec(),
            (true, Some(1)) => {
                let mut plain = Vec::new();
                std::io::Read::read_to_end(&mut flate2::read::ZlibDecoder::new(&content[24..]), &mut plain).unwrap();
                plain
            }
            (true, _) => zstd::decode_all(&content[24..]).unwrap(),
        };
        Some(Section {
            address: field(header + 16, 8),
            bytes,
        })
    }

    fn is_code(&self, begin: u64, end: u64) -> bool {
        let field = |at: usize, size: usize| number(self.bytes, at, size);
        let (table, count) = (field(32, 8) as usize, field(56, 2) as usize);
        (0..count).map(|index| table + index * 56).any(|at| {
            let (kind, flags) = (field(at, 4), field(at + 4, 4));
            let (address, bytes) = (field(at + 16, 8), field(at + 32, 8));
            kind == 1 && flags & 1 != 0 && begin >= address && end <= address + bytes
        })
    }
}

/// What was compared.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) rows: u64,
    pub(crate) unsupported: u64,
    pub(crate) overlapping: u64,
}

/// Holds every row that gimli finds in the section against the table; fails with the file and address of the first
/// that differs.
pub(crate) fn compare<'b, S>(
    section: &S,
    bases: &gimli::BaseAddresses,
    elf: &Elf<'_>,
    table: &FileTable,
    file: &str,
) -> Counts
where
    S: UnwindSection<gimli::EndianSlice<'b, LittleEndian>, Offset: gimli::UnwindOffset>,
{
    let mut counts = Counts::default();
    let mut context = gimli::UnwindContext::new();
    let mut entries = section.entries(bases);
    let mut functions = Vec::new();
    while let Some(entry) = entries.next().unwrap() {
        let gimli::CieOrFde::Fde(partial) = entry else { continue };
        let fde = partial.parse(S::cie_from_offset).unwrap();
        let (begin, end) = (fde.initial_address(), fde.initial_address() + fde.len());
        if begin > 1 && elf.is_code(begin, end) {
            functions.push((begin, end, fde));
        }
    }
    functions.sort_by_key(|(begin, _, _)| *begin);
    for (index, (begin, end, fde)) in functions.iter().enumerate() {
        let (begin, end) = (*begin, *end);
        // Of functions that two entries describe, either may win.
        let before = functions[..index].last().is_some_and(|before| before.1 > begin);
        if before || functions.get(index + 1).is_some_and(|next| next.0 < end) {
            counts.overlapping += 1;
            continue;
        }
        let mut rows = fde.rows(section, bases, &mut context).unwrap();
        while let Some(row) = rows.next_row().unwrap() {
            let (first, last) = (row.start_address(), row.end_address().min(end));
            if first >= last {
                continue;
            }
            counts.rows += 1;
            for pc in [first, last - 1] {
                let found = table.rule_at(pc);
                let found = (found.cfa(), found.fp(), found.pc());
                let expected = expected(section, row, fde.is_signal_trampoline(), elf.arm64);
                match expected {
                    Some(expected) => assert_eq!(found, expected, "{file}: {pc:#x}"),
                    None => counts.unsupported += 1,
                }
            }
        }
    }
    counts
}

type Triple = (Cfa, CallerFp, CallerPc);

fn words(bytes: i64) -> i16 {
    assert_eq!(bytes % 8, 0);
    i16::try_from(bytes / 8).unwrap()
}

/// None for what the tables don't support.
fn expected<'b, S>(section: &S, row: &gimli::UnwindTableRow<usize>, signal: bool, arm64: bool) -> Option<Triple>
where
    S: UnwindSection<gimli::EndianSlice<'b, LittleEndian>>,
{
    let (sp, fp, ra) = if arm64 { (31, 29, 30) } else { (7, 6, 16) };
    let nothing = (CallerFp::Same, CallerPc::BelowCfa);
    if signal {
        return Some((Cfa::Signal, nothing.0, nothing.1));
    }
    let caller = row.register(gimli::Register(ra));
    let pc = match caller {
        Some(RegisterRule::Undefined) => return Some((Cfa::End, nothing.0, nothing.1)),
        Some(RegisterRule::Offset(-8)) => CallerPc::BelowCfa,
        Some(RegisterRule::Offset(offset)) if arm64 => CallerPc::AtCfa(words(offset)),
        None | Some(RegisterRule::SameValue) if arm64 => CallerPc::LinkRegister,
        _ => return None,
    };
    let operations = |expression: &gimli::UnwindExpression<usize>| -> Vec<u8> {
        expression.get(section).unwrap().0.slice().to_vec()
    };
    let fp_rule = match row.register(gimli::Register(fp)) {
        None | Some(RegisterRule::SameValue) => CallerFp::Same,
        Some(RegisterRule::Undefined) => CallerFp::Undefined,
        Some(RegisterRule::Offset(offset)) => CallerFp::AtCfa(words(offset)),
        Some(RegisterRule::Expression(expression)) => match operations(&expression)[..] {
            [0x76, offset] if offset < 0x40 => CallerFp::AtFp(words(i64::from(offset))),
            [0x76, offset] if offset < 0x80 => CallerFp::AtFp(words(i64::from(offset) - 0x80)),
            _ => return None,
        },
        _ => return None,
    };
    let cfa = match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => {
            let offset = i32::try_from(*offset).unwrap();
            match register.0 {
                number if number == sp => Cfa::Sp(offset),
                number if number == fp => Cfa::Fp(offset),
                number => Cfa::Register {
                    register: i16::try_from(number).unwrap(),
                    offset,
                },
            }
        }
        CfaRule::Expression(expression) => cfa_of(&operations(expression))?,
    };
    Some((cfa, fp_rule, pc))
}

fn cfa_of(operations: &[u8]) -> Option<Cfa> {
    let mut reader = gimli::EndianSlice::new(operations, LittleEndian);
    let encoding = gimli::Encoding {
        address_size: 8,
        format: gimli::Format::Dwarf32,
        version: 5,
    };
    let mut parsed = Vec::new();
    while let Ok(operation) = gimli::Operation::parse(&mut reader, encoding) {
        parsed.push(operation);
        if reader.is_empty() {
            break;
        }
    }
    use gimli::Operation::{And, Deref, Ge, Plus, PlusConstant, RegisterOffset, Shl, UnsignedConstant};
    let offset_of = |value: u64| i32::try_from(value).unwrap();
    match parsed[..] {
        [
            RegisterOffset {
                register: gimli::Register(7),
                offset,
                ..
            },
        ] => Some(Cfa::Sp(i32::try_from(offset).unwrap())),
        [
            RegisterOffset { register, offset, .. },
            Deref { size: 8, .. },
            ref rest @ ..,
        ] => {
            let added = match rest {
                [] => 0,
                [PlusConstant { value }] => offset_of(*value),
                _ => return None,
            };
            let at = i16::try_from(offset).unwrap();
            match register.0 {
                7 => Some(Cfa::SpDeref { at, offset: added }),
                6 => Some(Cfa::FpDeref { at, offset: added }),
                _ => None,
            }
        }
        [
            RegisterOffset {
                register: gimli::Register(7),
                offset,
                ..
            },
            RegisterOffset {
                register: gimli::Register(16),
                offset: 0,
                ..
            },
            UnsignedConstant { value: 15 },
            And,
            UnsignedConstant { value },
            Ge,
            UnsignedConstant { value: 3 },
            Shl,
            Plus,
        ] => Some(Cfa::Plt {
            threshold: i16::try_from(value).unwrap(),
            offset: i32::try_from(offset).unwrap(),
        }),
        _ => None,
    }
}
