//! What a delta of the stack pointer means.
//!
//! amd64, by disassembly of Go 1.26: a function begins with `PUSHQ BP; MOVQ SP, BP; SUBQ $n, SP` and ends with `ADDQ
//! $n, SP; POPQ BP; RET`. The delta is 0 up to behind the push, then 8, then n + 8, and back again: the canonical frame
//! address is SP + delta + 8, and wherever the delta is not 0 the caller's frame pointer lies at it - 16. Up to Go
//! 1.20, and in some assembly code, the frame pointer is stored behind the SUBQ; for the length of that one instruction
//! the rule here is wrong, about the frame pointer only, which Go code above does not need. Functions without a frame
//! neither move SP nor touch BP. Only assembly code can move SP without having saved BP, so there the instructions are
//! looked at.
//!
//! arm64: `MOVD.W R30, -n(SP); MOVD R29, -8(SP); SUB $8, SP, R29`. The canonical frame address is SP + delta, the
//! return address lies at SP and the caller's frame pointer below it; where the delta is 0, the return address is in
//! the link register. Assembly code that makes its frames by hand is taken for the same.

use super::super::rule::{CallerFp, CallerPc, Cfa, Rule, Unsupported};
use crate::elf::{Arch, Image};

/// A range of addresses, and how far the stack pointer is below its place at the entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Delta {
    pub(super) begin: u64,
    pub(super) bytes: i64,
}

/// What kind of function it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nature {
    Compiled,
    Assembly,
    /// Assembly code that gives SP another stack's value, which no delta can tell.
    ChangesStack,
    /// Nothing called it.
    End,
    /// The kernel's way back from a signal handler.
    Signal,
}

/// `FuncFlag` (internal/abi/symtab.go): writes SP other than by adding to it; since Go 1.17.
const FLAG_SP_WRITE: u64 = 2;

/// By name, since the numbers of special functions changed with nearly every version. `sigtramp` carries the flag of a
/// first function too, but what called it is the kernel's signal frame, which the walk can pass.
pub(super) fn nature(name: &[u8], flags: u64) -> Nature {
    match name {
        b"runtime.goexit" | b"runtime.mstart" | b"runtime.rt0_go" => Nature::End,
        b"_rt0_amd64" | b"_rt0_amd64_linux" | b"_rt0_arm64" | b"_rt0_arm64_linux" => Nature::End,
        b"runtime.sigreturn" | b"runtime.sigreturn__sigaction" => Nature::Signal,
        b"runtime.systemstack" | b"runtime.mcall" | b"runtime.gogo" | b"gogo" | b"runtime.morestack" => {
            Nature::ChangesStack
        }
        b"runtime.asmcgocall" | b"runtime.cgocallback" | b"runtime.cgocallback_gofunc" => Nature::ChangesStack,
        _ if flags & FLAG_SP_WRITE != 0 => Nature::ChangesStack,
        _ if flags != 0 => Nature::Assembly,
        _ => Nature::Compiled,
    }
}

/// What becomes of the frame pointer where the delta is not 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Frame {
    /// Saved, and set up.
    Kept,
    /// Not touched as far as one can tell.
    None,
    /// Saved and set up, and it is what leads to the caller: systemstack, asmcgocall and cgocallback call on another
    /// stack with the frame pointer of theirs, so a step by it leads back; mcall and morestack clear it, which ends the
    /// stack as it should, since they never return. nanotime1 and walltime run the vDSO on the first stack of the
    /// thread.
    FramedChain,
    /// There is no frame, but SP cannot be trusted anywhere (gogo).
    Chain,
}

pub(super) fn frame<R: Fn(u64, &mut [u8]) -> bool>(image: &Image<R>, nature: Nature, deltas: &[Delta]) -> Frame {
    if nature == Nature::Compiled {
        return Frame::Kept;
    }
    let saves = saves_frame_pointer(image, deltas);
    match (nature, saves) {
        (Nature::ChangesStack, true) => Frame::FramedChain,
        (Nature::ChangesStack, false) => Frame::Chain,
        (_, true) => Frame::Kept,
        (_, false) => Frame::None,
    }
}

/// True where the function's first change of SP is that of a frame with the frame pointer in it.
fn saves_frame_pointer<R: Fn(u64, &mut [u8]) -> bool>(image: &Image<R>, deltas: &[Delta]) -> bool {
    let Some(first) = deltas.iter().find(|delta| delta.bytes != 0) else {
        return false;
    };
    if image.arch == Arch::Arm64 {
        return true;
    }
    const PUSH_BP: u8 = 0x55;
    let mut before = [0; 1];
    let read = first
        .begin
        .checked_sub(1)
        .and_then(|address| image.read(address, &mut before));
    if read.is_some() && before[0] == PUSH_BP && first.bytes == 8 {
        return true;
    }
    // MOVQ BP, n(SP), with n in one byte or four: up to Go 1.20.
    let mut code = [0; 8];
    if image.read(first.begin, &mut code).is_none() {
        return false;
    }
    let at = match code {
        [0x48, 0x89, 0x6c, 0x24, n, ..] => i64::from(n.cast_signed()),
        [0x48, 0x89, 0xac, 0x24, a, b, c, d] => i64::from(i32::from_le_bytes([a, b, c, d])),
        _ => return false,
    };
    first.bytes.checked_sub(8) == Some(at)
}

pub(super) fn rule(arch: Arch, frame: Frame, delta: i64) -> Result<Rule, Unsupported> {
    if frame == Frame::Chain || (frame == Frame::FramedChain && delta != 0) {
        return Ok(Rule::FP_CHAIN);
    }
    let bytes = i32::try_from(delta).ok().filter(|bytes| *bytes >= 0 && bytes % 8 == 0);
    let bytes = bytes.ok_or(Unsupported::CfaOffset)?;
    let has_frame = delta != 0 && frame != Frame::None;
    match arch {
        Arch::X86_64 => {
            let offset = bytes.checked_add(8).ok_or(Unsupported::CfaOffset)?;
            let fp = if has_frame { CallerFp::AtCfa(-2) } else { CallerFp::Same };
            Rule::pack(Cfa::Sp(offset), fp, CallerPc::BelowCfa)
        }
        Arch::Arm64 if delta == 0 => Rule::pack(Cfa::Sp(0), CallerFp::Same, CallerPc::LinkRegister),
        Arch::Arm64 => {
            let words = i16::try_from(-(bytes / 8)).map_err(|_| Unsupported::ReturnAddress)?;
            let below = words.checked_sub(1).ok_or(Unsupported::FramePointer)?;
            Rule::pack(Cfa::Sp(bytes), CallerFp::AtCfa(below), CallerPc::AtCfa(words))
        }
    }
}
