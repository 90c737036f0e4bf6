//! Call frame instructions (DWARF 5, section 6.4.2) to rows of rules.

use super::entry::{Cie, Fde, Format};
use super::expression;
use super::rule::{CallerFp, CallerPc, Cfa, Rule, Unsupported};
use crate::elf::Arch;
use crate::elf::reader::{Bases, Reader};

/// Remembered states that a function may nest.
const MAX_REMEMBERED: usize = 32;
/// x86-64's, by DWARF.
const RBX: u64 = 3;

/// The rules at one address, of the registers that a stack walk needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct State {
    cfa: CfaState,
    fp: Saved,
    pc: Saved,
    /// x86-64 only.
    rbx: Saved,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum CfaState {
    #[default]
    None,
    Register(u64, i64),
    /// None where the expression is not one of the known ones.
    Expression(Option<Cfa>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Saved {
    #[default]
    Unspecified,
    Undefined,
    Same,
    /// Bytes from the canonical frame address.
    AtCfa(i64),
    /// Bytes from the frame pointer.
    AtFp(i64),
    /// In another register, computed, or an expression that is not one of the known ones.
    Other,
}

/// One row: from, to (exclusive), the rule, and what of it is not supported.
pub(super) type Row = (u64, u64, Rule, Option<Unsupported>);

/// Offsets in words; none where it is no whole number of them or too large.
fn words(bytes: i64) -> Option<i16> {
    (bytes % 8 == 0).then(|| i16::try_from(bytes / 8).ok()).flatten()
}

impl State {
    /// The packed rule; where something is not supported, what is left of it and the reason.
    fn rule(&self, arch: Arch) -> (Rule, Option<Unsupported>) {
        if self.pc == Saved::Undefined {
            return (Rule::END, None);
        }
        let (fp, lost) = match self.fp {
            Saved::Unspecified | Saved::Same => (Some(CallerFp::Same), None),
            Saved::Undefined => (Some(CallerFp::Undefined), None),
            Saved::AtCfa(bytes) => (words(bytes).map(CallerFp::AtCfa), Some(())),
            Saved::AtFp(bytes) => (words(bytes).map(CallerFp::AtFp), Some(())),
            Saved::Other => (None, Some(())),
        };
        let reason = (fp.is_none() && lost.is_some()).then_some(Unsupported::FramePointer);
        let packed = self.caller_pc(arch).and_then(|pc| {
            let fp = fp.unwrap_or(CallerFp::Undefined);
            Rule::pack(self.canonical_frame_address(arch)?, fp, pc)
        });
        match packed {
            Ok(rule) => match self.rbx {
                Saved::AtCfa(bytes) => (words(bytes).map_or(rule, |words| rule.with_rbx_at(words)), reason),
                _ => (rule, reason),
            },
            Err(reason) => (Rule::UNKNOWN, Some(reason)),
        }
    }

    fn caller_pc(&self, arch: Arch) -> Result<CallerPc, Unsupported> {
        match (arch, self.pc) {
            (_, Saved::AtCfa(-8)) => Ok(CallerPc::BelowCfa),
            (Arch::Arm64, Saved::AtCfa(bytes)) => words(bytes).map(CallerPc::AtCfa).ok_or(Unsupported::ReturnAddress),
            (Arch::Arm64, Saved::Unspecified | Saved::Same) => Ok(CallerPc::LinkRegister),
            _ => Err(Unsupported::ReturnAddress),
        }
    }

    fn canonical_frame_address(&self, arch: Arch) -> Result<Cfa, Unsupported> {
        let registers = arch.registers();
        match self.cfa {
            CfaState::None => Err(Unsupported::CfaOffset),
            CfaState::Expression(cfa) => cfa.ok_or(Unsupported::CfaExpression),
            CfaState::Register(register, offset) => {
                let offset = i32::try_from(offset).map_err(|_| Unsupported::CfaOffset)?;
                Ok(if register == registers.sp {
                    Cfa::Sp(offset)
                } else if register == registers.fp {
                    Cfa::Fp(offset)
                } else {
                    let register = i16::try_from(register).map_err(|_| Unsupported::CfaOffset)?;
                    Cfa::Register { register, offset }
                })
            }
        }
    }

    fn register(&mut self, number: u64, arch: Arch) -> Option<&mut Saved> {
        if number == arch.registers().fp {
            Some(&mut self.fp)
        } else if number == arch.return_address() {
            Some(&mut self.pc)
        } else if number == RBX && arch == Arch::X86_64 {
            Some(&mut self.rbx)
        } else {
            None
        }
    }
}

/// A CIE with the state that its instructions leave: at that begins each of its functions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Common {
    pub(super) cie: Cie,
    initial: State,
}

impl Common {
    /// As [`Cie::parse`]; none as well where the instructions make no sense.
    pub(super) fn parse(reader: Reader<'_>, format: Format, arch: Arch, bases: Bases) -> Option<Self> {
        let (cie, instructions) = Cie::parse(reader, format, arch)?;
        let nothing = Self {
            cie,
            initial: State::default(),
        };
        let mut interpreter = Interpreter::new(&nothing, bases, 0, 0);
        interpreter.run(instructions, &mut |_| {})?;
        let initial = interpreter.state;
        Some(Self { cie, initial })
    }
}

/// Hands out the rows of a function in the order of their addresses, without gaps. None where the instructions make no
/// sense; the rows up to there were handed out, and the rest as one without a rule.
pub(super) fn rows(common: &Common, fde: &Fde<'_>, bases: Bases, row: &mut impl FnMut(Row)) -> Option<()> {
    if common.cie.signal {
        row((fde.begin, fde.end, Rule::SIGNAL, None));
        return Some(());
    }
    let mut interpreter = Interpreter::new(common, bases, fde.begin, fde.end);
    let result = interpreter.run(fde.instructions, row);
    if interpreter.location < fde.end {
        let (rule, reason) = match result {
            Some(()) => interpreter.state.rule(common.cie.arch),
            None => (Rule::UNKNOWN, None),
        };
        row((interpreter.location, fde.end, rule, reason));
    }
    result
}

struct Interpreter<'a> {
    cie: &'a Cie,
    initial: &'a State,
    bases: Bases,
    location: u64,
    end: u64,
    state: State,
    remembered: Vec<State>,
}

impl<'a> Interpreter<'a> {
    fn new(common: &'a Common, bases: Bases, begin: u64, end: u64) -> Self {
        Self {
            cie: &common.cie,
            initial: &common.initial,
            bases,
            location: begin,
            end,
            state: common.initial,
            remembered: Vec::new(),
        }
    }

    fn run(&mut self, mut reader: Reader<'_>, row: &mut impl FnMut(Row)) -> Option<()> {
        while !reader.is_empty() {
            let byte = reader.u8()?;
            let low = u64::from(byte & 0x3f);
            let advance = match byte >> 6 {
                1 => Some(low),
                2 => {
                    let offset = self.factored(reader.uleb()?)?;
                    self.set(low, Saved::AtCfa(offset));
                    None
                }
                3 => {
                    self.restore(low);
                    None
                }
                _ => self.operation(byte, &mut reader, row)?,
            };
            if let Some(delta) = advance {
                let bytes = delta.checked_mul(self.cie.code_alignment)?;
                self.advance_to(self.location.checked_add(bytes)?, row);
            }
        }
        Some(())
    }

    fn advance_to(&mut self, location: u64, row: &mut impl FnMut(Row)) {
        let end = location.min(self.end);
        if self.location < end {
            let (rule, reason) = self.state.rule(self.cie.arch);
            row((self.location, end, rule, reason));
        }
        self.location = location;
    }

    /// Carries out what is not in the upper two bits; gives how far the location advances, in units of the code
    /// alignment.
    fn operation(&mut self, operation: u8, reader: &mut Reader<'_>, row: &mut impl FnMut(Row)) -> Option<Option<u64>> {
        match operation {
            // nop
            0x00 => {}
            // set_loc
            0x01 => {
                let location = reader.pointer(self.cie.encoding, self.bases)?;
                if location < self.location {
                    return None;
                }
                self.advance_to(location, row);
            }
            // advance_loc1, 2, 4
            0x02 => return Some(Some(reader.unsigned(1)?)),
            0x03 => return Some(Some(reader.unsigned(2)?)),
            0x04 => return Some(Some(reader.unsigned(4)?)),
            // remember_state, restore_state
            0x0a if self.remembered.len() < MAX_REMEMBERED => self.remembered.push(self.state),
            0x0b => self.state = self.remembered.pop()?,
            0x0c..=0x0f | 0x12 | 0x13 => self.define_cfa(operation, reader)?,
            // GNU_args_size
            0x2e => {
                reader.uleb()?;
            }
            // AARCH64_negate_ra_state_with_pc and AARCH64_negate_ra_state: the walk takes signatures off in any case.
            // With this number GNU_window_save is meant elsewhere, which x86-64 has no use for.
            0x2c | 0x2d if self.cie.arch == Arch::Arm64 => {}
            _ => self.save_register(operation, reader)?,
        }
        Some(None)
    }

    fn define_cfa(&mut self, operation: u8, reader: &mut Reader<'_>) -> Option<()> {
        let known = match self.state.cfa {
            CfaState::Register(register, offset) => Some((register, offset)),
            _ => None,
        };
        self.state.cfa = match operation {
            // def_cfa, def_cfa_sf
            0x0c => CfaState::Register(reader.uleb()?, i64::try_from(reader.uleb()?).ok()?),
            0x12 => CfaState::Register(reader.uleb()?, self.factored_signed(reader.sleb()?)?),
            // def_cfa_register
            0x0d => CfaState::Register(reader.uleb()?, known?.1),
            // def_cfa_offset, def_cfa_offset_sf
            0x0e => CfaState::Register(known?.0, i64::try_from(reader.uleb()?).ok()?),
            0x13 => CfaState::Register(known?.0, self.factored_signed(reader.sleb()?)?),
            // def_cfa_expression
            _ => CfaState::Expression(expression::cfa(block(reader)?, self.cie.arch.registers())),
        };
        Some(())
    }

    fn save_register(&mut self, operation: u8, reader: &mut Reader<'_>) -> Option<()> {
        let register = reader.uleb()?;
        let saved = match operation {
            // offset_extended, offset_extended_sf, GNU_negative_offset_extended
            0x05 => Saved::AtCfa(self.factored(reader.uleb()?)?),
            0x11 => Saved::AtCfa(self.factored_signed(reader.sleb()?)?),
            0x2f => Saved::AtCfa(self.factored(reader.uleb()?)?.checked_neg()?),
            // restore_extended
            0x06 => {
                self.restore(register);
                return Some(());
            }
            0x07 => Saved::Undefined,
            0x08 => Saved::Same,
            // register, val_offset, val_offset_sf
            0x09 | 0x14 | 0x15 => {
                reader.uleb()?;
                Saved::Other
            }
            // expression
            0x10 => {
                let saved = expression::saved_at_fp(block(reader)?, self.cie.arch.registers());
                saved.map_or(Saved::Other, Saved::AtFp)
            }
            // val_expression
            0x16 => {
                block(reader)?;
                Saved::Other
            }
            _ => return None,
        };
        self.set(register, saved);
        Some(())
    }

    fn set(&mut self, register: u64, saved: Saved) {
        if let Some(rule) = self.state.register(register, self.cie.arch) {
            *rule = saved;
        }
    }

    fn restore(&mut self, register: u64) {
        let mut initial = *self.initial;
        if let Some(saved) = initial.register(register, self.cie.arch) {
            self.set(register, *saved);
        }
    }

    fn factored(&self, offset: u64) -> Option<i64> {
        self.factored_signed(i64::try_from(offset).ok()?)
    }

    fn factored_signed(&self, offset: i64) -> Option<i64> {
        offset.checked_mul(self.cie.data_alignment)
    }
}

fn block<'a>(reader: &mut Reader<'a>) -> Option<&'a [u8]> {
    let bytes = reader.uleb()?;
    reader.skip(bytes)
}
