//! The forms of frames: with a name, with an offset instead, and those of which only the kind is known.

use std::sync::Arc;

use crate::frames::{Frame, FrameKind};

/// Where the kernel's own functions are.
pub(super) const KERNEL_MODULE: &str = "[kernel]";

pub(super) fn named_frame(kind: FrameKind, module: Arc<str>, build_id: Option<Arc<str>>, name: &str) -> Frame {
    let function = Some(name.into());
    Frame {
        kind,
        module,
        build_id,
        function,
        file: None,
        line: 0,
        inlined: false,
        offset: None,
    }
}

pub(super) fn bare_frame(kind: FrameKind, module: &Arc<str>, build_id: Option<&Arc<str>>, offset: u64) -> Frame {
    let (module, build_id) = (Arc::clone(module), build_id.cloned());
    Frame {
        kind,
        module,
        build_id,
        function: None,
        file: None,
        line: 0,
        inlined: false,
        offset: Some(offset),
    }
}

/// A program's name has its tag, 16 hexadecimal digits; the kernel has functions of its own that begin as it does.
pub(super) fn is_bpf_program(name: &str) -> bool {
    let tag = name.strip_prefix("bpf_prog_").and_then(|rest| rest.get(..16));
    tag.is_some_and(|tag| tag.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Of one of two modules.
pub(super) fn unsure_module_frame() -> Frame {
    Frame {
        kind: FrameKind::Kernel,
        module: "[module]".into(),
        ..Frame::unknown()
    }
}

/// Of code that the kernel made at run time.
pub(super) fn code_frame(name: Option<&str>) -> Frame {
    let is_bpf = name.is_none_or(|name| name.starts_with("bpf_"));
    Frame {
        kind: FrameKind::Kernel,
        module: if is_bpf { "[bpf]" } else { KERNEL_MODULE }.into(),
        function: name.map(Arc::from),
        ..Frame::unknown()
    }
}

/// Without an offset: addresses of run-time code mean nothing later, and would only make every sample a stack of its
/// own.
pub(super) fn jit_frame(name: Option<&str>) -> Frame {
    let function = name.map(Arc::from);
    Frame {
        function,
        kind: FrameKind::Jit,
        ..Frame::unknown()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_the_kernel_are_no_bpf_programs() {
        assert!(is_bpf_program("bpf_prog_6deef7357e7b4530_case_first"));
        assert!(is_bpf_program("bpf_prog_6deef7357e7b4530"));
        for function in [
            "bpf_prog_load",
            "bpf_prog_test_run_skb",
            "bpf_prog_",
            "bpf_prog_select_runtime",
        ] {
            assert!(!is_bpf_program(function), "{function}");
        }
    }
}
