//! The few DWARF expressions that compilers, linkers and the assembly code of libraries really write in unwind
//! information, known by their exact bytes (DWARF 5, section 2.5).

use super::rule::Cfa;
use crate::elf::Registers;
use crate::elf::reader::Reader;

const DEREF: u8 = 0x06;
const PLUS_UCONST: u8 = 0x23;
/// `DW_OP_breg0`; the other registers follow.
const BREG: u8 = 0x70;
const LAST_BREG: u8 = 0x8f;

/// A canonical frame address.
pub(super) fn cfa(expression: &[u8], registers: Registers) -> Option<Cfa> {
    let mut reader = Reader::new(expression);
    let register = base_register(&mut reader)?;
    let offset = reader.sleb()?;
    if reader.is_empty() {
        let offset = i32::try_from(offset).ok()?;
        return Some(if register == registers.sp {
            Cfa::Sp(offset)
        } else if register == registers.fp {
            Cfa::Fp(offset)
        } else {
            let register = i16::try_from(register).ok()?;
            Cfa::Register { register, offset }
        });
    }
    if let Some(threshold) = plt_threshold(reader.rest()) {
        let offset = i32::try_from(offset).ok()?;
        return (register == registers.sp).then_some(Cfa::Plt { threshold, offset });
    }
    let at = i16::try_from(offset).ok()?;
    if reader.u8()? != DEREF {
        return None;
    }
    let mut offset = 0;
    if !reader.is_empty() {
        if reader.u8()? != PLUS_UCONST {
            return None;
        }
        offset = i32::try_from(reader.uleb()?).ok()?;
    }
    match register {
        _ if !reader.is_empty() => None,
        _ if register == registers.sp => Some(Cfa::SpDeref { at, offset }),
        _ if register == registers.fp => Some(Cfa::FpDeref { at, offset }),
        _ => None,
    }
}

/// Where a register was saved, as an offset from the frame pointer.
pub(super) fn saved_at_fp(expression: &[u8], registers: Registers) -> Option<i64> {
    let mut reader = Reader::new(expression);
    let register = base_register(&mut reader)?;
    let offset = reader.sleb()?;
    (register == registers.fp && reader.is_empty()).then_some(offset)
}

fn base_register(reader: &mut Reader<'_>) -> Option<u64> {
    let operation = reader.u8()?;
    (BREG..=LAST_BREG)
        .contains(&operation)
        .then(|| u64::from(operation - BREG))
}

/// What follows `DW_OP_breg7 8` in the linkers' rule for .plt on x86-64: `breg16 0; lit15; and; litN; ge; lit3; shl;
/// plus`. It adds 8 once the slot has pushed its number, which its instruction at byte N follows.
fn plt_threshold(rest: &[u8]) -> Option<i16> {
    const LIT0: u8 = 0x30;
    match rest {
        [0x80, 0x00, 0x3f, 0x1a, literal @ LIT0..=0x3f, 0x2a, 0x33, 0x24, 0x22] => Some(i16::from(literal - LIT0)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const X86_64: Registers = Registers { sp: 7, fp: 6 };

    #[test]
    fn the_known_patterns() {
        let cfa = |bytes: &[u8]| cfa(bytes, X86_64);
        let plt = [0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22];
        let expected = Cfa::Plt {
            threshold: 11,
            offset: 8,
        };
        assert_eq!(cfa(&plt), Some(expected));
        assert_eq!(cfa(&plt[..10]), None);
        assert_eq!(cfa(&[0x76, 0x78, 0x06]), Some(Cfa::FpDeref { at: -8, offset: 0 }));
        assert_eq!(
            cfa(&[0x77, 16, 0x06, 0x23, 8]),
            Some(Cfa::SpDeref { at: 16, offset: 8 })
        );
        assert_eq!(cfa(&[0x77, 0xa0, 1]), Some(Cfa::Sp(160)));
        assert_eq!(
            cfa(&[0x7a, 0]),
            Some(Cfa::Register {
                register: 10,
                offset: 0
            })
        );
        assert_eq!(cfa(&[0x7a, 0, 0x06]), None, "another register's word");
        assert_eq!(cfa(&[0x77, 16, 0x06, 0x23, 8, 0x06]), None);
        assert_eq!(cfa(&[]), None);
    }

    #[test]
    fn a_frame_pointer_saved_at_the_frame_pointer() {
        assert_eq!(saved_at_fp(&[0x76, 0], X86_64), Some(0));
        assert_eq!(saved_at_fp(&[0x76, 0x70], X86_64), Some(-16));
        assert_eq!(saved_at_fp(&[0x77, 0], X86_64), None);
        assert_eq!(saved_at_fp(&[0x76, 0, 0x06], X86_64), None);
    }
}
