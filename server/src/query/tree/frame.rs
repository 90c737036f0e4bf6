//! Frames and stacks as queries see them, names ready to be shown. Does no I/O.

use crate::query::limits::reservation::Reservation;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// The node above all stacks.
    Root,
    /// The kernel, its modules or BPF.
    Kernel,
    /// Compiled code of a file.
    Native,
    /// A function that an interpreter or a virtual machine runs: of no language below, or stored by an older server.
    Interpreted,
    /// Code that was made at run time.
    Jit,
    /// Nothing is known of it, or it stands for frames that are missing.
    Unknown,
    /// Several nodes below the threshold of a view.
    Trimmed,
    /// A value of a label above the stacks that have it: its module is the label's name.
    Label,
    /// Java and what else a JVM runs; this and what follows is called as in `profile.frame.type`.
    Jvm,
    /// Python on CPython.
    Cpython,
    /// JavaScript on V8, such as Node.js.
    V8js,
    /// Ruby.
    Ruby,
    /// PHP.
    Php,
    /// What .NET runs.
    Dotnet,
    /// Erlang and Elixir.
    Beam,
    /// Perl.
    Perl,
    /// Lua, also LuaJIT.
    Lua,
    /// R.
    R,
    /// Julia.
    Julia,
    /// WebAssembly.
    Wasm,
}

impl Kind {
    /// In the order of the numbers that stand in answers.
    pub const ALL: [Kind; 20] = [
        Kind::Root,
        Kind::Kernel,
        Kind::Native,
        Kind::Interpreted,
        Kind::Jit,
        Kind::Unknown,
        Kind::Trimmed,
        Kind::Label,
        Kind::Jvm,
        Kind::Cpython,
        Kind::V8js,
        Kind::Ruby,
        Kind::Php,
        Kind::Dotnet,
        Kind::Beam,
        Kind::Perl,
        Kind::Lua,
        Kind::R,
        Kind::Julia,
        Kind::Wasm,
    ];

    /// As the `frames` table calls it, and who asks for a frame: by its language where one is known.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Root => "root",
            Kind::Kernel => "kernel",
            Kind::Native => "native",
            Kind::Interpreted => "interpreted",
            Kind::Jit => "jit",
            Kind::Unknown => "unknown",
            Kind::Trimmed => "trimmed",
            Kind::Label => "label",
            Kind::Jvm => "jvm",
            Kind::Cpython => "cpython",
            Kind::V8js => "v8js",
            Kind::Ruby => "ruby",
            Kind::Php => "php",
            Kind::Dotnet => "dotnet",
            Kind::Beam => "beam",
            Kind::Perl => "perl",
            Kind::Lua => "lua",
            Kind::R => "r",
            Kind::Julia => "julia",
            Kind::Wasm => "wasm",
        }
    }

    /// As answers call it: what an interpreter or a virtual machine runs is `interpreted`, in whatever language.
    pub fn class(self) -> &'static str {
        if self.language().is_empty() {
            self.name()
        } else {
            Kind::Interpreted.name()
        }
    }

    /// The language, by the name of what runs it, as in `profile.frame.type`; empty where none is known.
    pub fn language(self) -> &'static str {
        if self as usize >= Kind::Jvm as usize {
            self.name()
        } else {
            ""
        }
    }

    /// Whether stacks have frames of this kind; trees have others, too.
    pub fn is_of_stacks(self) -> bool {
        !matches!(self, Kind::Root | Kind::Trimmed | Kind::Label)
    }

    /// The kind that the `frames` table calls by this name.
    pub fn of_frame(name: &str) -> Kind {
        let known = Kind::ALL.into_iter().find(|kind| kind.name() == name);
        known.filter(|kind| kind.is_of_stacks()).unwrap_or(Kind::Unknown)
    }
}

/// What makes frames the same node under one parent.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Name {
    /// As shown: the function, or `[module]`, or `[jit]`, or `[unknown]`.
    pub function: Arc<str>,
    /// Base name, with the folder where that alone tells files apart; empty when unknown.
    pub module: Arc<str>,
    /// What kind of code it is of.
    pub kind: Kind,
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        (&self.function, &self.module, self.kind).cmp(&(&other.function, &other.module, other.kind))
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// One frame of the dictionary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// What it is called in a tree.
    pub name: Name,
    /// The function's name is known.
    pub named: bool,
    /// It was inlined into the next frame.
    pub inlined: bool,
    /// Source file; empty when unknown.
    pub file: Arc<str>,
    /// 1-based; 0 when unknown.
    pub line: u32,
    /// GNU build id of the module in lower-case hex; empty when unknown.
    pub build_id: Arc<str>,
    /// Offset in the module's file; 0 when unknown.
    pub offset: u64,
    /// Line at which the function begins; 0 when unknown.
    pub start_line: u32,
}

impl Frame {
    /// A frame as the `frames` table holds it: `module` is a path, `function` may be empty. Frames without a function
    /// are one of their module, wherever in it they are, which [`Frame::offset`] says; of a module without a name its
    /// build id is one. Code that was made at run time, and that nothing names, is `[jit]`.
    pub fn new(kind: Kind, module: &str, build_id: &str, function: &str, offset: Option<u64>) -> Frame {
        let base = base_name(module);
        let shown = match (function, base, build_id) {
            ("", "", "") if kind == Kind::Jit => "[jit]".into(),
            ("", "", "") => "[unknown]".into(),
            ("", "", build_id) => format!("[build {}]", first_digits(build_id)).into(),
            // Names of the kernel's own have brackets already.
            ("", base, _) if base.starts_with('[') => base.into(),
            ("", base, _) => format!("[{base}]").into(),
            (function, ..) => function.into(),
        };
        Frame {
            name: Name {
                function: shown,
                module: base.into(),
                kind,
            },
            named: !function.is_empty(),
            inlined: false,
            file: Arc::default(),
            line: 0,
            build_id: Arc::default(),
            offset: offset.unwrap_or(0),
            start_line: 0,
        }
    }
}

impl Name {
    /// As text: a label's value that is empty says which label has none.
    pub fn text(&self) -> Cow<'_, str> {
        if self.kind == Kind::Label && self.function.is_empty() {
            return Cow::Owned(format!("[no {}]", self.module));
        }
        Cow::Borrowed(&self.function)
    }

    /// The frame stands for others that are missing there, as the agent sends it: `[cut]`, in the module that the walk
    /// did not get out of, or `[… N frames]` for at least so many.
    pub fn is_mark(&self) -> bool {
        let text = &*self.function;
        let counts = || text.starts_with("[… ") && text.ends_with("frames]");
        self.kind == Kind::Unknown && (text == "[cut]" || self.module.is_empty() && counts())
    }
}

/// So much of a build id as tells it from others.
fn first_digits(build_id: &str) -> &str {
    &build_id[..build_id.floor_char_boundary(12)]
}

/// Files of languages that are called alike in every folder: the folder is what is imported by its name.
const FILES_OF_FOLDERS: [&str; 6] = [
    "__init__.py",
    "__main__.py",
    "index.js",
    "index.mjs",
    "index.cjs",
    "index.php",
];

fn base_name(module: &str) -> &str {
    let path = module.trim_end_matches('/');
    let mut parts = path.rmatch_indices('/').map(|(at, _)| &path[at + 1..]);
    let base = parts.next().unwrap_or(path);
    if FILES_OF_FOLDERS.contains(&base) {
        // The folder with it; of a relative path that begins with the folder, all.
        return parts.next().unwrap_or(path).trim_start_matches('/');
    }
    base
}

/// The stacks that one query met, with the frames that they index.
#[derive(Debug, Clone, Default)]
pub struct Stacks {
    /// The frames that stacks index, each once.
    pub frames: Vec<Arc<Frame>>,
    /// One for each id that was asked for, in that order.
    pub stacks: Vec<Stack>,
    /// What all this takes.
    pub(crate) _held: Option<Arc<Reservation>>,
}

impl Stacks {
    /// Puts a stack among them that is this one frame, in the place of all that it lacks.
    pub(crate) fn insert(&mut self, place: usize, frame: Frame) {
        let frames = Box::new([self.frames.len() as u32]);
        self.frames.push(Arc::new(frame));
        self.stacks.insert(
            place,
            Stack {
                frames,
                truncated: true,
            },
        );
    }
}

/// One stack.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stack {
    /// Indices into [`Stacks::frames`], leaf first.
    pub frames: Box<[u32]>,
    /// The walk ended before the root.
    pub truncated: bool,
}

/// What is missing of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missing {
    /// The walk ended before the root, or there is no frame at all.
    pub root: bool,
    /// A frame's function is not known.
    pub name: bool,
}

impl Missing {
    /// The stack is complete. That one has kernel frames only says nothing against it: kernel threads have no others.
    pub fn nothing(self) -> bool {
        !self.root && !self.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_has_the_number_of_its_name_in_answers() {
        for (number, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, number);
            let stored = if kind.is_of_stacks() { kind } else { Kind::Unknown };
            assert_eq!(Kind::of_frame(kind.name()), stored);
        }
        assert_eq!(Kind::of_frame("cobol"), Kind::Unknown);
    }

    #[test]
    fn a_language_is_told_beside_the_kind() {
        let told = |kind: Kind| (kind.class(), kind.language());
        assert_eq!(told(Kind::Cpython), ("interpreted", "cpython"));
        assert_eq!(told(Kind::Jvm), ("interpreted", "jvm"));
        assert_eq!(told(Kind::Wasm), ("interpreted", "wasm"));
        let without = Kind::ALL.into_iter().filter(|kind| kind.language().is_empty());
        let without: Vec<&str> = without.map(Kind::class).collect();
        assert_eq!(
            without,
            [
                "root",
                "kernel",
                "native",
                "interpreted",
                "jit",
                "unknown",
                "trimmed",
                "label"
            ]
        );
    }

    #[test]
    fn a_module_has_its_folder_where_its_own_name_says_nothing() {
        for (module, base) in [
            ("/usr/lib/python3.11/json/__init__.py", "json/__init__.py"),
            ("/usr/lib/python3.11/json/decoder.py", "decoder.py"),
            ("json/__init__.py", "json/__init__.py"),
            ("/__main__.py", "__main__.py"),
            ("__main__.py", "__main__.py"),
            ("/srv/app/node_modules/express/index.js", "express/index.js"),
            ("/usr/lib/libc.so.6/", "libc.so.6"),
            ("org.apache.lucene.search", "org.apache.lucene.search"),
            ("", ""),
        ] {
            let frame = Frame::new(Kind::Cpython, module, "", "f", None);
            assert_eq!(&*frame.name.module, base, "{module}");
        }
    }

    #[test]
    fn frames_without_names_are_shown_as_what_is_known() {
        let shown = |module, build_id, function, offset| {
            Frame::new(Kind::Native, module, build_id, function, offset)
                .name
                .function
                .to_string()
        };
        for offset in [None, Some(0), Some(0x1f20)] {
            assert_eq!(shown("/usr/lib/libc.so.6", "c0ffee", "", offset), "[libc.so.6]");
            assert_eq!(shown("", "c0ffeec0ffeec0ffee", "", offset), "[build c0ffeec0ffee]");
            assert_eq!(shown("[kernel]", "", "", offset), "[kernel]");
        }
        assert_eq!(shown("", "", "", Some(7)), "[unknown]");
        let made = |module, function| Frame::new(Kind::Jit, module, "", function, None).name.function;
        assert_eq!(&*made("", ""), "[jit]");
        assert_eq!((&*made("/tmp/made.so", ""), &*made("", "f")), ("[made.so]", "f"));
        assert_eq!(shown("[kernel]", "", "do_syscall_64", Some(7)), "do_syscall_64");
        assert_eq!(
            &*Frame::new(Kind::Kernel, "[kernel]", "", "", Some(1)).name.module,
            "[kernel]"
        );
    }

    #[test]
    fn what_stands_for_missing_frames_is_told_from_frames() {
        let is_mark = |kind, module, function| Frame::new(kind, module, "", function, None).name.is_mark();
        assert!(is_mark(Kind::Unknown, "", "[cut]") && is_mark(Kind::Unknown, "/usr/lib/libz.so.1", "[cut]"));
        assert!(is_mark(Kind::Unknown, "", "[… frames]") && is_mark(Kind::Unknown, "", "[… 512 frames]"));
        assert!(!is_mark(Kind::Unknown, "", "") && !is_mark(Kind::Jit, "", ""));
        assert!(!is_mark(Kind::Native, "/bin/app", "[cut]"));
    }
}
