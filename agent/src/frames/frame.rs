//! A frame with its name, and a stack of such frames.

use std::sync::Arc;

/// What kind of code a frame is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FrameKind {
    /// The kernel, its modules and BPF programs.
    Kernel,
    /// Compiled code of a file, or of the vdso.
    Native,
    /// An interpreter's frame; the value is OTLP's `profile.frame.type`, such as `cpython`.
    Interpreted(&'static str),
    /// Code that a program made at run time; its perf map may name it.
    Jit,
    /// Nothing is known of the code, or the frame stands for others that are missing there.
    Unknown,
}

/// One frame. Inlined frames stand as frames of their own, before (nearer to the leaf than) the frame they were inlined
/// into.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Frame {
    /// What kind of code it is of.
    pub kind: FrameKind,
    /// Path of the mapped file as its process sees it, `[kernel]`, a kernel module's name in brackets, or `[vdso]`;
    /// empty when unknown.
    pub module: Arc<str>,
    /// GNU build id in lower-case hex.
    pub build_id: Option<Arc<str>>,
    /// Demangled name.
    pub function: Option<Arc<str>>,
    /// Source file, as the debug information has it.
    pub file: Option<Arc<str>>,
    /// 1-based; 0 when unknown.
    pub line: u32,
    /// It was inlined into the next frame.
    pub inlined: bool,
    /// Offset in the module's file (kernel: address), for frames without a function only, so that they can be named
    /// later.
    pub offset: Option<u64>,
}

impl Frame {
    /// One of which nothing is known.
    pub(crate) fn unknown() -> Self {
        Self {
            kind: FrameKind::Unknown,
            module: "".into(),
            build_id: None,
            function: None,
            file: None,
            line: 0,
            inlined: false,
            offset: None,
        }
    }

    /// One that stands for others, by the words that it is shown by.
    pub(crate) fn mark(text: &str) -> Self {
        Self {
            function: Some(text.into()),
            ..Self::unknown()
        }
    }
}

/// A call stack.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Stack {
    /// Indices into `Batch::frames`, leaf first: kernel frames, then user frames.
    pub frames: Vec<u32>,
    /// The walk ended before the root.
    pub truncated: bool,
}

/// The frames of one code location. Shared: equal frames are the same allocation.
pub type Frames = Arc<[Arc<Frame>]>;
