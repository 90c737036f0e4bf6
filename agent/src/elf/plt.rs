//! What an entry of the procedure linkage table jumps to. Entries have no symbols.
//!
//! An entry jumps through a word of the global offset table, and a relocation says which symbol's address the loader
//! puts there (System V psABI of x86-64, chapter 5.2; ELF for the Arm 64-bit architecture, "Program Linkage Table").
//! Where the entry tells the number of its relocation instead, as it does where indirect branches are tracked, that
//! is one of `.rela.plt`.

use super::image::{Arch, Image, Section, field};
use super::symbols::{Name, SYMBOL_BYTES, read_name};

const PLT_SECTIONS: [&[u8]; 5] = [b".plt", b".plt.sec", b".plt.got", b".plt.bnd", b".iplt"];
/// Those that fill the words of entries of the `.plt`, in the order of these.
const PLT_RELOCATIONS: &[u8] = b".rela.plt";
/// Those of other entries' words stand at its end, after all that name no symbol.
const OTHER_RELOCATIONS: &[u8] = b".rela.dyn";
const RELOCATION_BYTES: usize = 24;
/// What is read of a table of relocations: those of some 40,000 functions, its last ones.
const MAX_RELOCATIONS_BYTES: u64 = 1 << 20;
/// Longest entry.
const ENTRY_BYTES: u64 = 16;

/// Where a jump goes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Function(Name),
    /// A function of the same file (SVMA) that chooses one when the program starts.
    Resolver(u64),
}

/// How an entry tells where it goes.
#[derive(Debug, PartialEq, Eq)]
enum Jump {
    /// Through the word at an address.
    Through(u64),
    /// Of the so-many-th relocation.
    Relocation(u64),
}

/// The sections of a file that hold entries.
pub(crate) fn sections<R: Fn(u64, &mut [u8]) -> bool>(image: &Image<R>) -> Vec<Section> {
    PLT_SECTIONS.iter().filter_map(|name| image.section(&[name])).collect()
}

/// The one of them in which an address lies.
pub(crate) fn section_at(sections: &[Section], address: u64) -> Option<&Section> {
    let holds = |section: &&Section| {
        address
            .checked_sub(section.address)
            .is_some_and(|at| at < section.bytes)
    };
    sections.iter().find(holds)
}

/// Where the entry at an address of this section goes. None where nothing tells.
pub(crate) fn target<R: Fn(u64, &mut [u8]) -> bool>(image: &Image<R>, plt: &Section, address: u64) -> Option<Target> {
    let jump = match image.arch {
        Arch::X86_64 => x86_64(image, plt, address)?,
        Arch::Arm64 => arm64(image, address)?,
    };
    match jump {
        Jump::Through(word) => [PLT_RELOCATIONS, OTHER_RELOCATIONS]
            .iter()
            .filter_map(|name| image.section(&[name]))
            .find_map(|table| says(image, &table, &filling(image, &table, word)?)),
        Jump::Relocation(number) => {
            let table = image.section(&[PLT_RELOCATIONS])?;
            says(image, &table, &numbered(image, &table, number)?)
        }
    }
}

/// Entries have 16 bytes, or 8 where they are nothing but a jump, which the section's header does not always say.
fn x86_64<R: Fn(u64, &mut [u8]) -> bool>(image: &Image<R>, plt: &Section, address: u64) -> Option<Jump> {
    const SHORT_BYTES: u64 = 8;
    let is_short = || {
        let mut first = [0; SHORT_BYTES as usize];
        image.read(plt.address, &mut first).is_some() && matches!(first, [0xff, 0x25, .., 0x66, 0x90])
    };
    let bytes = match plt.entry_bytes {
        ENTRY_BYTES => ENTRY_BYTES,
        SHORT_BYTES => SHORT_BYTES,
        _ if is_short() => SHORT_BYTES,
        _ => ENTRY_BYTES,
    };
    let begin = address - (address - plt.address) % bytes;
    let mut entry = [0; ENTRY_BYTES as usize];
    let entry = &mut entry[..usize::try_from(bytes).ok()?];
    image.read(begin, entry)?;
    x86_64_jump(begin, entry)
}

fn x86_64_jump(begin: u64, entry: &[u8]) -> Option<Jump> {
    const ENDBR64: &[u8] = &[0xf3, 0x0f, 0x1e, 0xfa];
    const PUSH: &[u8] = &[0x68];
    const MOV_R11D: &[u8] = &[0x41, 0xbb];
    const BND: &[u8] = &[0xf2];
    const JMP: &[u8] = &[0xff, 0x25];
    let mut code = entry.strip_prefix(ENDBR64).unwrap_or(entry);
    if let Some(number) = code.strip_prefix(PUSH) {
        return Some(Jump::Relocation(field(number, 0, 4)?));
    }
    if let Some(rest) = code.strip_prefix(MOV_R11D) {
        code = rest.get(4..)?;
    }
    let displacement = code.strip_prefix(BND).unwrap_or(code).strip_prefix(JMP)?;
    let next = begin.wrapping_add((entry.len() - displacement.len()) as u64 + 4);
    let displacement = (field(displacement, 0, 4)? as u32).cast_signed();
    Some(Jump::Through(next.wrapping_add_signed(displacement.into())))
}

/// `adrp x16, page; ldr x17, [x16, #low]; add x16, x16, #low; br x17`, after a landing pad where branches are
/// tracked: the address may be any of these.
fn arm64<R: Fn(u64, &mut [u8]) -> bool>(image: &Image<R>, address: u64) -> Option<Jump> {
    arm64_near(address, |at, code| image.read(at, code))
}

/// Behind an entry begins the next one: what lies behind the address is looked at last, for landing pads.
fn arm64_near(address: u64, read: impl Fn(u64, &mut [u8]) -> Option<()>) -> Option<Jump> {
    const INSTRUCTION_BYTES: u64 = 4;
    let before = (0..4).filter_map(|count| address.checked_sub(count * INSTRUCTION_BYTES));
    before.chain(address.checked_add(INSTRUCTION_BYTES)).find_map(|begin| {
        let mut code = [0; 8];
        read(begin, &mut code)?;
        arm64_jump(begin, &code)
    })
}

fn arm64_jump(begin: u64, code: &[u8]) -> Option<Jump> {
    let (adrp, ldr) = (field(code, 0, 4)?, field(code, 4, 4)?);
    if adrp & 0x9f00_001f != 0x9000_0010 || ldr & 0xffc0_03ff != 0xf940_0211 {
        return None;
    }
    // 21 bits, signed, the lower two of which stand apart.
    let pages = (adrp >> 5 & 0x7_ffff) << 2 | adrp >> 29 & 3;
    let pages = (pages << 43).cast_signed() >> 43;
    let low = (ldr >> 10 & 0xfff) * 8;
    let page = (begin & !0xfff).wrapping_add_signed(pages << 12);
    Some(Jump::Through(page.wrapping_add(low)))
}

/// The relocation of a table that fills the word at an address.
fn filling<R: Fn(u64, &mut [u8]) -> bool>(image: &Image<R>, table: &Section, word: u64) -> Option<Vec<u8>> {
    const CHUNK_BYTES: u64 = 1024 * RELOCATION_BYTES as u64;
    const MOST_BYTES: u64 = MAX_RELOCATIONS_BYTES / RELOCATION_BYTES as u64 * RELOCATION_BYTES as u64;
    let all = table.bytes - table.bytes % RELOCATION_BYTES as u64;
    let mut at = all.saturating_sub(MOST_BYTES);
    while at < all {
        let mut chunk = vec![0; usize::try_from(CHUNK_BYTES.min(all - at)).ok()?];
        image.read_offset(table.offset.checked_add(at)?, &mut chunk)?;
        let mut entries = chunk.chunks_exact(RELOCATION_BYTES);
        if let Some(entry) = entries.find(|entry| field(entry, 0, 8) == Some(word)) {
            return Some(entry.to_vec());
        }
        at += chunk.len() as u64;
    }
    None
}

/// The so-many-th relocation of a table.
fn numbered<R: Fn(u64, &mut [u8]) -> bool>(image: &Image<R>, table: &Section, number: u64) -> Option<Vec<u8>> {
    let at = number.checked_mul(RELOCATION_BYTES as u64)?;
    let left = table.bytes.checked_sub(at)?;
    let mut entry = vec![0; RELOCATION_BYTES];
    (left >= RELOCATION_BYTES as u64).then_some(())?;
    image.read_offset(table.offset.checked_add(at)?, &mut entry)?;
    Some(entry)
}

fn says<R: Fn(u64, &mut [u8]) -> bool>(image: &Image<R>, relocations: &Section, entry: &[u8]) -> Option<Target> {
    let (info, addend) = (field(entry, 8, 8)?, field(entry, 16, 8)?);
    let symbol = info >> 32;
    if symbol == 0 {
        return (addend != 0).then_some(Target::Resolver(addend));
    }
    let sections = image.sections()?;
    let symbols = sections.get(relocations.link)?;
    let strings = sections.get(symbols.link)?;
    let at = symbol
        .checked_mul(SYMBOL_BYTES as u64)
        .filter(|at| *at < symbols.bytes)?;
    let mut name = [0; 4];
    image.read_offset(symbols.offset.checked_add(at)?, &mut name)?;
    let name = field(&name, 0, 4).filter(|name| *name != 0)?;
    let left = strings.bytes.checked_sub(name)?;
    let read = |at: u64, into: &mut [u8]| image.read_offset(at, into).is_some();
    read_name(strings.offset.checked_add(name)?, left, read).map(Target::Function)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_all_linkers_on_x86_64() {
        let through = |code: &[u8]| x86_64_jump(0x1000, code);
        // GNU ld, bound lazily: jmp *0x2fe2(%rip); push $0; jmp.
        assert_eq!(
            through(&[
                0xff, 0x25, 0xe2, 0x2f, 0, 0, 0x68, 0, 0, 0, 0, 0xe9, 0xe0, 0xff, 0xff, 0xff
            ]),
            Some(Jump::Through(0x1000 + 6 + 0x2fe2))
        );
        // endbr64; bnd jmp *-8(%rip); nop.
        assert_eq!(
            through(&[
                0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0xf8, 0xff, 0xff, 0xff, 0x0f, 0x1f, 0x44, 0, 0
            ]),
            Some(Jump::Through(0x1000 + 11 - 8))
        );
        // endbr64; push $7; jmp.
        assert_eq!(
            through(&[
                0xf3, 0x0f, 0x1e, 0xfa, 0x68, 7, 0, 0, 0, 0xe9, 0xe1, 0xff, 0xff, 0xff, 0x66, 0x90
            ]),
            Some(Jump::Relocation(7))
        );
        // endbr64; mov $3, %r11d; jmp *0x10(%rip).
        assert_eq!(
            through(&[
                0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0xbb, 3, 0, 0, 0, 0xff, 0x25, 0x10, 0, 0, 0
            ]),
            Some(Jump::Through(0x1000 + 16 + 0x10))
        );
        // .plt.got: jmp *0x10(%rip); xchg %ax, %ax.
        assert_eq!(
            through(&[0xff, 0x25, 0x10, 0, 0, 0, 0x66, 0x90]),
            Some(Jump::Through(0x1016))
        );
        // What all lazy ones go on to: push 0x2fe2(%rip); jmp *0x2fe4(%rip).
        assert_eq!(
            through(&[
                0xff, 0x35, 0xe2, 0x2f, 0, 0, 0xff, 0x25, 0xe4, 0x2f, 0, 0, 0x0f, 0x1f, 0x40, 0
            ]),
            None
        );
    }

    #[test]
    fn an_entry_on_arm64() {
        let entry = |adrp: u32, ldr: u32| arm64_jump(0x7654, &[adrp.to_le_bytes(), ldr.to_le_bytes()].concat());
        // adrp x16, 0x1f000 (24 pages on); ldr x17, [x16, #0xfa8].
        assert_eq!(entry(0x9000_00d0, 0xf947_d611), Some(Jump::Through(0x1_ffa8)));
        // adrp x16, one page back; ldr x17, [x16].
        assert_eq!(entry(0xf0ff_fff0, 0xf940_0211), Some(Jump::Through(0x6000)));
        assert_eq!(entry(0x9000_00d1, 0xf947_d611), None, "another register");
    }

    #[test]
    fn each_instruction_on_arm64_belongs_to_its_own_entry() {
        const BEGIN: u64 = 0x7000;
        let (ldr, add, br, bti, nop) = (0xf940_0211u32, 0x9100_0210, 0xd61f_0220, 0xd503_245f, 0xd503_201f);
        // Through the words at the begin of the first and the second page behind.
        let (first, second) = (0xb000_0010u32, 0xd000_0010);
        let plain = [first, ldr, add, br, second, ldr, add, br].to_vec();
        let padded = [bti, first, ldr, add, br, nop, bti, second, ldr, add, br, nop].to_vec();
        for code in [plain, padded] {
            let bytes: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
            let read = |at: u64, into: &mut [u8]| {
                let at = usize::try_from(at.checked_sub(BEGIN)?).ok()?;
                into.copy_from_slice(bytes.get(at..at + into.len())?);
                Some(())
            };
            let half = code.len() / 2;
            for (index, word) in code.iter().enumerate().filter(|(_, word)| **word != nop) {
                let page = BEGIN + 0x1000 * (1 + index as u64 / half as u64);
                let jump = arm64_near(BEGIN + 4 * index as u64, read);
                assert_eq!(jump, Some(Jump::Through(page)), "{index}: {word:x}");
            }
        }
    }
}
