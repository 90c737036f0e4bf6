//! The rule for the canonical frame address, from a CIE and an FDE (DWARF 5, section 6.4, and the LSB's .eh_frame chapter).

/// Where the canonical frame address is: a register plus an offset, or something that only an expression tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cfa {
    RegisterOffset(Register, i64),
    Expression,
}

/// DWARF's number of a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Register(pub u64);

/// Remembered states that an FDE may nest.
const MAX_REMEMBERED: usize = 16;

/// Reads little-endian data; every method gives none past the end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn skip(&mut self, count: u64) -> Option<&'a [u8]> {
        let (head, tail) = self.bytes.split_at_checked(usize::try_from(count).ok()?)?;
        self.bytes = tail;
        Some(head)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.skip(1).map(|bytes| bytes[0])
    }

    pub(super) fn unsigned(&mut self, bytes: u64) -> Option<u64> {
        let bytes = self.skip(bytes)?;
        Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    pub(super) fn i32(&mut self) -> Option<i64> {
        self.unsigned(4).map(|value| i64::from(value as u32 as i32))
    }

    pub(super) fn uleb(&mut self) -> Option<u64> {
        let (mut value, mut shift) = (0u64, 0);
        loop {
            let byte = self.u8()?;
            if shift < 64 {
                value |= u64::from(byte & 0x7f) << shift;
            }
            shift += 7;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
    }

    pub(super) fn sleb(&mut self) -> Option<i64> {
        let (mut value, mut shift) = (0i64, 0);
        loop {
            let byte = self.u8()?;
            if shift < 64 {
                value |= i64::from(byte & 0x7f) << shift;
            }
            shift += 7;
            if byte & 0x80 == 0 {
                if shift < 64 && byte & 0x40 != 0 {
                    value |= -1 << shift;
                }
                return Some(value);
            }
        }
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let end = self.bytes.iter().position(|byte| *byte == 0)?;
        let text = self.skip(end as u64)?;
        self.skip(1)?;
        Some(text)
    }
}

/// What a CIE says about its FDEs.
#[derive(Debug)]
pub(super) struct Cie<'a> {
    code_alignment: u64,
    data_alignment: i64,
    /// Encoding of addresses, `DW_EH_PE_*`.
    encoding: u8,
    has_augmentation_length: bool,
    instructions: &'a [u8],
}

impl<'a> Cie<'a> {
    /// `body` is what follows the length. None where it is no CIE, is of a signal frame (the kernel pushed that: there is no
    /// caller), or uses what no compiler for Linux writes.
    pub(super) fn parse(body: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(body);
        let id = reader.unsigned(4)?;
        let version = reader.u8()?;
        if id != 0 || !matches!(version, 1 | 3) {
            return None;
        }
        let augmentation = reader.text()?;
        let code_alignment = reader.uleb()?;
        let data_alignment = reader.sleb()?;
        if version == 1 {
            reader.u8()?;
        } else {
            reader.uleb()?;
        }
        let mut encoding = 0;
        let has_augmentation_length = augmentation.first() == Some(&b'z');
        if has_augmentation_length {
            let bytes = reader.uleb()?;
            let mut data = Reader::new(reader.skip(bytes)?);
            for letter in &augmentation[1..] {
                match letter {
                    b'R' => encoding = data.u8()?,
                    b'L' => {
                        data.u8()?;
                    }
                    b'P' => {
                        let bytes = encoded_bytes(data.u8()?)?;
                        data.skip(bytes)?;
                    }
                    _ => return None,
                }
            }
        } else if !augmentation.is_empty() {
            return None;
        }
        Some(Self {
            code_alignment,
            data_alignment,
            encoding,
            has_augmentation_length,
            instructions: reader.bytes,
        })
    }
}

/// Size of an encoded address.
fn encoded_bytes(encoding: u8) -> Option<u64> {
    match encoding & 0x0f {
        0x00 | 0x04 | 0x0c => Some(8),
        0x02 | 0x0a => Some(2),
        0x03 | 0x0b => Some(4),
        _ => None,
    }
}

/// The rule at `pc`. `body` is the FDE without its length, `body_address` where it lies. Addresses are those of the file.
pub(super) fn cfa_at(cie: &Cie<'_>, body: &[u8], body_address: u64, pc: u64) -> Option<Cfa> {
    let mut reader = Reader::new(body);
    reader.skip(4)?;
    let bytes = encoded_bytes(cie.encoding)?;
    let value = reader.unsigned(bytes)?;
    let signed = if bytes == 4 && cie.encoding & 0x08 != 0 {
        value as u32 as i32 as i64 as u64
    } else {
        value
    };
    let begin = match cie.encoding & 0x70 {
        0x00 => signed,
        0x10 => body_address.wrapping_add(4).wrapping_add(signed),
        _ => return None,
    };
    let length = reader.unsigned(bytes)?;
    if pc < begin || pc - begin >= length {
        return None;
    }
    if cie.has_augmentation_length {
        let bytes = reader.uleb()?;
        reader.skip(bytes)?;
    }
    let mut state = Interpreter {
        location: begin,
        cfa: None,
        remembered: Vec::new(),
        cie,
        pc,
    };
    if state.run(cie.instructions)? {
        state.run(reader.bytes)?;
    }
    state.cfa
}

struct Interpreter<'a> {
    location: u64,
    cfa: Option<Cfa>,
    remembered: Vec<Option<Cfa>>,
    cie: &'a Cie<'a>,
    pc: u64,
}

impl Interpreter<'_> {
    /// Follows the instructions up to the row of `pc`. False once that is reached; none where they make no sense.
    fn run(&mut self, instructions: &[u8]) -> Option<bool> {
        let mut reader = Reader::new(instructions);
        while !reader.is_empty() {
            let byte = reader.u8()?;
            let advance = match (byte >> 6, byte & 0x3f) {
                (1, delta) => Some(u64::from(delta)),
                (2, _) => {
                    reader.uleb()?;
                    None
                }
                (3, _) => None,
                (_, 0x02) => Some(reader.unsigned(1)?),
                (_, 0x03) => Some(reader.unsigned(2)?),
                (_, 0x04) => Some(reader.unsigned(4)?),
                (_, operation) => {
                    self.step(operation, &mut reader)?;
                    None
                }
            };
            if let Some(delta) = advance {
                let next = self.location.checked_add(delta.checked_mul(self.cie.code_alignment)?)?;
                if next > self.pc {
                    return Some(false);
                }
                self.location = next;
            }
        }
        Some(true)
    }

    fn step(&mut self, operation: u8, reader: &mut Reader<'_>) -> Option<()> {
        let offset_of = |cfa: Option<Cfa>| match cfa {
            Some(Cfa::RegisterOffset(_, offset)) => offset,
            _ => 0,
        };
        match operation {
            // nop
            0x00 => {}
            // offset_extended, register, val_offset
            0x05 | 0x09 | 0x14 => {
                reader.uleb()?;
                reader.uleb()?;
            }
            // restore_extended, undefined, same_value, GNU_args_size
            0x06..=0x08 | 0x2e => {
                reader.uleb()?;
            }
            // remember_state
            0x0a => {
                if self.remembered.len() >= MAX_REMEMBERED {
                    return None;
                }
                self.remembered.push(self.cfa);
            }
            // restore_state
            0x0b => self.cfa = self.remembered.pop()?,
            // def_cfa, def_cfa_sf
            0x0c => {
                self.cfa = Some(Cfa::RegisterOffset(
                    Register(reader.uleb()?),
                    i64::try_from(reader.uleb()?).ok()?,
                ))
            }
            0x12 => {
                let register = Register(reader.uleb()?);
                self.cfa = Some(Cfa::RegisterOffset(
                    register,
                    reader.sleb()?.checked_mul(self.cie.data_alignment)?,
                ));
            }
            // def_cfa_register
            0x0d => self.cfa = Some(Cfa::RegisterOffset(Register(reader.uleb()?), offset_of(self.cfa))),
            // def_cfa_offset, def_cfa_offset_sf
            0x0e | 0x13 => {
                let offset = if operation == 0x0e {
                    i64::try_from(reader.uleb()?).ok()?
                } else {
                    reader.sleb()?.checked_mul(self.cie.data_alignment)?
                };
                if let Some(Cfa::RegisterOffset(register, _)) = self.cfa {
                    self.cfa = Some(Cfa::RegisterOffset(register, offset));
                }
            }
            // def_cfa_expression
            0x0f => {
                let bytes = reader.uleb()?;
                reader.skip(bytes)?;
                self.cfa = Some(Cfa::Expression);
            }
            // expression, val_expression
            0x10 | 0x16 => {
                reader.uleb()?;
                let bytes = reader.uleb()?;
                reader.skip(bytes)?;
            }
            // offset_extended_sf, val_offset_sf
            0x11 | 0x15 => {
                reader.uleb()?;
                reader.sleb()?;
            }
            _ => return None,
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Version 1, "zR", alignments 1 and -8, return address 16, addresses relative and of 4 bytes; CFA = rsp + 8.
    const CIE: &[u8] = &[0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1];

    /// An FDE at 0x2000 for 0x1000 to 0x1040: push rbp at 0x1000, mov at 0x1001, pop at 0x103e.
    fn fde() -> Vec<u8> {
        let mut body = vec![0x44, 0, 0, 0];
        body.extend((0x1000i32 - 0x2004).to_le_bytes());
        body.extend(0x40u32.to_le_bytes());
        body.push(0);
        body.extend([
            0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x0a, 0x02, 0x3a, 0x0c, 7, 8, 0x41, 0x0b,
        ]);
        body
    }

    #[test]
    fn the_rule_follows_the_prologue() {
        let cie = Cie::parse(CIE).unwrap();
        let at = |pc| cfa_at(&cie, &fde(), 0x2000, pc);
        let rsp = |offset| Some(Cfa::RegisterOffset(Register(7), offset));
        assert_eq!(at(0xfff), None);
        assert_eq!(at(0x1000), rsp(8));
        assert_eq!(at(0x1001), rsp(16));
        assert_eq!(at(0x1003), rsp(16));
        assert_eq!(at(0x1004), Some(Cfa::RegisterOffset(Register(6), 16)));
        assert_eq!(at(0x103e), rsp(8));
        assert_eq!(at(0x103f), Some(Cfa::RegisterOffset(Register(6), 16)), "restored");
        assert_eq!(at(0x1040), None);
    }

    #[test]
    fn damaged_data_gives_nothing_and_does_no_harm() {
        for cut in 0..CIE.len() {
            if let Some(cie) = Cie::parse(&CIE[..cut]) {
                for length in 0..fde().len() {
                    cfa_at(&cie, &fde()[..length], 0x2000, 0x1010);
                }
            }
        }
        let mut state = 1u64;
        for _ in 0..20_000 {
            let mut noise = [0u8; 64];
            for byte in &mut noise {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                *byte = (state >> 56) as u8;
            }
            let cie = Cie::parse(CIE).unwrap();
            let mut body = fde();
            body.truncate(13);
            body.extend(noise);
            cfa_at(&cie, &body, 0x2000, 0x1010);
            Cie::parse(&noise);
        }
    }
}
