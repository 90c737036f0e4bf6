//! The rule that leads from one frame to its caller's, in the 64 bits that the kernel side reads.

/// What the tables cannot say, or not yet; each is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsupported {
    /// The canonical frame address is an expression that is not one of the known ones.
    CfaExpression,
    /// There is no rule for the canonical frame address, or an offset that the packed rule has no room for.
    CfaOffset,
    /// The return address is neither on the stack at a fixed offset nor in the link register.
    ReturnAddress,
    /// The caller's frame pointer cannot be had. The rest of the rule holds, with the frame pointer as undefined.
    FramePointer,
    /// Both the canonical frame address and the return address need the auxiliary number.
    Auxiliary,
    /// More than 65,535 distinct rules in one file.
    TooManyRules,
}

impl Unsupported {
    /// All of them, in the order of [`super::Stats::unsupported`].
    pub const ALL: [Self; 6] = [
        Self::CfaExpression,
        Self::CfaOffset,
        Self::ReturnAddress,
        Self::FramePointer,
        Self::Auxiliary,
        Self::TooManyRules,
    ];
}

/// The canonical frame address: the stack pointer before the call that made this frame. Offsets are bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cfa {
    /// Nobody knows: between functions, or not supported.
    Unknown,
    /// Stack pointer + offset.
    Sp(i32),
    /// Frame pointer + offset.
    Fp(i32),
    /// Another register (DWARF's number) + offset: only at the innermost frame, whose registers are all known.
    Register {
        /// DWARF's number of it.
        register: i16,
        /// Bytes that are added to it.
        offset: i32,
    },
    /// The word at stack pointer + `at`, plus offset.
    SpDeref {
        /// Bytes from the stack pointer to the word.
        at: i16,
        /// Bytes that are added to the word.
        offset: i32,
    },
    /// The word at frame pointer + `at`, plus offset: GCC's realigned stacks.
    FpDeref {
        /// Bytes from the frame pointer to the word.
        at: i16,
        /// Bytes that are added to the word.
        offset: i32,
    },
    /// The linker's rule for .plt: stack pointer + offset, and 8 more from byte `threshold` of each 16-byte slot on.
    Plt {
        /// From this byte of a slot on 8 are added.
        threshold: i16,
        /// Bytes from the stack pointer, before that.
        offset: i32,
    },
    /// The kernel pushed a signal frame: all registers stand in the `ucontext` at the stack pointer.
    Signal,
    /// The outermost frame.
    End,
    /// One step by the frame pointer, which may lead to another stack.
    FpChain,
}

/// The caller's frame pointer. Offsets are words of 8 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallerFp {
    /// As in this frame.
    Same,
    /// The word at the canonical frame address + 8 * offset.
    AtCfa(i16),
    /// The word at this frame's frame pointer + 8 * offset.
    AtFp(i16),
    /// Lost.
    Undefined,
}

/// The return address. Offsets are words of 8 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallerPc {
    /// The word below the canonical frame address; on x86-64 always.
    BelowCfa,
    /// The word at the canonical frame address + 8 * offset.
    AtCfa(i16),
    /// In the link register: only at the innermost frame.
    LinkRegister,
}

/// A rule as the kernel side reads it: bits 0..=3 kind of canonical frame address, 4..=5 kind of frame pointer, 6..=7
/// kind of return address (3: as 0, and auxiliary is where rbx was saved, in words), 8..=31 offset of the canonical
/// frame address (signed, bytes), 32..=47 offset of the frame pointer (signed, words), 48..=63 auxiliary (signed).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Rule(u64);

const OFFSET_BITS: u32 = 24;

impl Rule {
    /// The rule where nothing is known; all bits are zero.
    pub const UNKNOWN: Self = Self(0);
    pub(super) const SIGNAL: Self = Self(7);
    pub(super) const END: Self = Self(8);
    pub(super) const FP_CHAIN: Self = Self(9);

    pub(super) fn pack(cfa: Cfa, fp: CallerFp, pc: CallerPc) -> Result<Self, Unsupported> {
        let (kind, offset, cfa_aux) = match cfa {
            Cfa::Unknown => return Ok(Self::UNKNOWN),
            Cfa::Signal => return Ok(Self::SIGNAL),
            Cfa::End => return Ok(Self::END),
            Cfa::FpChain => return Ok(Self::FP_CHAIN),
            Cfa::Sp(offset) => (1, offset, None),
            Cfa::Fp(offset) => (2, offset, None),
            Cfa::Register { register, offset } => (3, offset, Some(register)),
            Cfa::SpDeref { at, offset } => (4, offset, Some(at)),
            Cfa::FpDeref { at, offset } => (5, offset, Some(at)),
            Cfa::Plt { threshold, offset } => (6, offset, Some(threshold)),
        };
        let unused = 32 - OFFSET_BITS;
        if offset << unused >> unused != offset {
            return Err(Unsupported::CfaOffset);
        }
        let (pc_kind, pc_aux) = match pc {
            CallerPc::BelowCfa | CallerPc::AtCfa(-1) => (0, None),
            CallerPc::AtCfa(offset) => (1, Some(offset)),
            CallerPc::LinkRegister => (2, None),
        };
        let (fp_kind, fp_offset) = match fp {
            CallerFp::Same => (0, 0),
            CallerFp::AtCfa(offset) => (1, offset),
            CallerFp::AtFp(offset) => (2, offset),
            CallerFp::Undefined => (3, 0),
        };
        if cfa_aux.is_some() && pc_aux.is_some() {
            return Err(Unsupported::Auxiliary);
        }
        let aux = cfa_aux.or(pc_aux).unwrap_or(0);
        let offset = u64::from(offset.cast_unsigned() << unused >> unused);
        Ok(Self(
            kind | fp_kind << 4
                | pc_kind << 6
                | offset << 8
                | u64::from(fp_offset.cast_unsigned()) << 32
                | u64::from(aux.cast_unsigned()) << 48,
        ))
    }

    /// The same, with the caller's rbx in the word at the canonical frame address + 8 * `offset`. The dynamic
    /// loader's lazy binding keeps its frame by rbx, so that its callers are found only where it was followed. Rules
    /// whose auxiliary number is in use, and x86-64 has few such, stay as they are.
    pub(super) fn with_rbx_at(self, offset: i16) -> Self {
        let plain = matches!(self.cfa(), Cfa::Sp(_) | Cfa::Fp(_)) && self.0 >> 6 & 3 == 0;
        if plain {
            Self(self.0 | 3 << 6 | u64::from(offset.cast_unsigned()) << 48)
        } else {
            self
        }
    }

    /// Where the caller's rbx is, in words from the canonical frame address; none where it is in the register still.
    pub fn rbx(self) -> Option<i16> {
        (self.0 >> 6 & 3 == 3).then(|| self.half(48))
    }

    /// The bits that go into the kernel's map.
    pub fn bits(self) -> u64 {
        self.0
    }

    fn half(self, shift: u32) -> i16 {
        let [low, high, ..] = (self.0 >> shift).to_le_bytes();
        i16::from_le_bytes([low, high])
    }

    /// The canonical frame address.
    pub fn cfa(self) -> Cfa {
        let [_, a, b, c, ..] = self.0.to_le_bytes();
        let offset = i32::from_le_bytes([0, a, b, c]) >> (32 - OFFSET_BITS);
        let aux = self.half(48);
        match self.0 & 0x0f {
            1 => Cfa::Sp(offset),
            2 => Cfa::Fp(offset),
            3 => Cfa::Register { register: aux, offset },
            4 => Cfa::SpDeref { at: aux, offset },
            5 => Cfa::FpDeref { at: aux, offset },
            6 => Cfa::Plt { threshold: aux, offset },
            7 => Cfa::Signal,
            8 => Cfa::End,
            9 => Cfa::FpChain,
            _ => Cfa::Unknown,
        }
    }

    /// The caller's frame pointer.
    pub fn fp(self) -> CallerFp {
        match self.0 >> 4 & 3 {
            0 => CallerFp::Same,
            1 => CallerFp::AtCfa(self.half(32)),
            2 => CallerFp::AtFp(self.half(32)),
            _ => CallerFp::Undefined,
        }
    }

    /// The return address.
    pub fn pc(self) -> CallerPc {
        match self.0 >> 6 & 3 {
            1 => CallerPc::AtCfa(self.half(48)),
            2 => CallerPc::LinkRegister,
            _ => CallerPc::BelowCfa,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bits_stand_where_the_kernel_side_reads_them() {
        let rule = |cfa, fp, pc| Rule::pack(cfa, fp, pc).unwrap().bits();
        let below = CallerPc::BelowCfa;
        assert_eq!(rule(Cfa::Sp(8), CallerFp::Same, below), 0x0801);
        assert_eq!(rule(Cfa::Fp(16), CallerFp::AtCfa(-2), below), 0x0000_fffe_0000_1012);
        assert_eq!(
            rule(Cfa::FpDeref { at: -8, offset: 0 }, CallerFp::AtFp(0), below),
            0xfff8_0000_0000_0025
        );
        assert_eq!(rule(Cfa::Sp(-1), CallerFp::Undefined, below), 0xffff_ff31);
        assert_eq!(
            rule(Cfa::Sp(32), CallerFp::Same, CallerPc::AtCfa(-4)),
            0xfffc_0000_0000_2041
        );
        assert_eq!(rule(Cfa::Sp(0), CallerFp::Same, CallerPc::LinkRegister), 0x81);
        assert_eq!(Rule::UNKNOWN.bits(), 0);
    }

    #[test]
    fn what_is_packed_comes_out_again() {
        let frames = [
            Cfa::Sp(8_388_607),
            Cfa::Fp(-8_388_608),
            Cfa::Register {
                register: 10,
                offset: 0,
            },
            Cfa::SpDeref { at: -8, offset: 8 },
            Cfa::Plt {
                threshold: 11,
                offset: 8,
            },
            Cfa::Signal,
            Cfa::End,
            Cfa::FpChain,
        ];
        for cfa in frames {
            let rule = Rule::pack(cfa, CallerFp::AtCfa(-3), CallerPc::BelowCfa).unwrap();
            assert_eq!(rule.cfa(), cfa);
        }
        let rule = Rule::pack(Cfa::Sp(1), CallerFp::AtFp(-3), CallerPc::AtCfa(-9)).unwrap();
        assert_eq!((rule.fp(), rule.pc()), (CallerFp::AtFp(-3), CallerPc::AtCfa(-9)));
        let pack = |cfa, pc| Rule::pack(cfa, CallerFp::Same, pc);
        assert_eq!(
            pack(Cfa::Sp(8_388_608), CallerPc::BelowCfa),
            Err(Unsupported::CfaOffset)
        );
        let with_rbx = Rule::pack(Cfa::Sp(48), CallerFp::AtCfa(-2), CallerPc::BelowCfa)
            .unwrap()
            .with_rbx_at(-6);
        assert_eq!((with_rbx.rbx(), with_rbx.bits()), (Some(-6), 0xfffa_fffe_0000_30d1));
        assert_eq!((with_rbx.cfa(), with_rbx.pc()), (Cfa::Sp(48), CallerPc::BelowCfa));
        let deref = Cfa::SpDeref { at: 0, offset: 0 };
        let kept = Rule::pack(deref, CallerFp::Same, CallerPc::BelowCfa).unwrap();
        assert_eq!((kept.with_rbx_at(-2), kept.rbx()), (kept, None));
        assert_eq!(pack(deref, CallerPc::AtCfa(-2)), Err(Unsupported::Auxiliary));
    }
}
