//! Where CPython's structures have what walks and names need: by version until 3.12 (pycore_runtime.h, pycore_interp.h,
//! pystate.h, pycore_frame.h, frameobject.h, code.h, unicodeobject.h of each), by its own table since
//! (`_Py_DebugOffsets` of pycore_debug_offsets.h).

use super::part;

/// How frames of Python lie over those of the interpreter's loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameForm {
    /// 3.8 to 3.10: objects, one for each call of the loop.
    Objects,
    /// 3.11: each call of the loop has an entry on the native stack, and its last frame a mark.
    Entries,
    /// 3.12 and later: each call of the loop has a frame without code on the native stack, behind its last one.
    Shims,
}

/// How a code object tells lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineForm {
    /// `co_lnotab` until 3.9: steps of bytes and lines.
    Steps,
    /// `co_linetable` of 3.10: ranges, which may have no line.
    Ranges,
    /// `co_linetable` since 3.11: locations.
    Locations,
}

/// All in bytes from a structure's begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Offsets {
    pub(super) form: FrameForm,
    /// `_PyRuntimeState` and `PyInterpreterState`.
    pub(super) interpreters_head: u32,
    pub(super) interpreter_next: u32,
    pub(super) threads_head: u32,
    /// The thread that ran last: in the runtime until 3.11, then in the interpreter. Only a guess.
    pub(super) last_thread: u32,
    pub(super) is_last_in_runtime: bool,
    /// The table of modules of an interpreter, where its own table says that.
    pub(super) modules: Option<u32>,
    /// `PyThreadState`.
    pub(super) thread_next: u16,
    pub(super) thread_interpreter: u16,
    pub(super) thread_id: u16,
    pub(super) thread_frame: u16,
    /// `_PyCFrame` of 3.11 and 3.12, which `thread_frame` leads to there: its frame, and the one before it.
    pub(super) entry: Option<(u16, u16)>,
    /// Of the loop's code, in which such an entry joins the chain and gets its frame; as compilers make it.
    pub(super) prologue_bytes: u8,
    /// `_PyInterpreterFrame`, or until 3.10 `PyFrameObject`.
    pub(super) frame_previous: u16,
    pub(super) frame_code: u16,
    pub(super) frame_instruction: u16,
    pub(super) frame_mark: u16,
    /// `PyCodeObject`. Its size is a number, or until 3.10 the pointer to its bytecodes stands for it.
    pub(super) code_size: u16,
    pub(super) code_name: u16,
    /// That of the name until 3.10.
    pub(super) code_qualname: u16,
    pub(super) code_filename: u16,
    pub(super) code_first_line: u16,
    pub(super) code_lines: u16,
    pub(super) code_begin: u16,
    /// Without the interpreter's lock, since 3.14: in a frame the number of the copy of the instructions that it runs,
    /// and in a code object what leads to its copies; both 0 where there are none.
    pub(super) frame_copy: u16,
    pub(super) code_copies: u16,
    /// Until 3.10: what makes code units of the number of an instruction.
    pub(super) instruction_shift: u8,
    pub(super) lines: LineForm,
    /// Bytes of `PyObject`, which all objects begin with.
    pub(super) header_bytes: u16,
    /// Bytes of `PyASCIIObject`.
    pub(super) ascii_bytes: u16,
}

/// `PyObject` with the interpreter's lock, and without it, where each object has a lock and two counts.
pub(super) const HEADER_BYTES: u16 = 16;
pub(super) const FREE_HEADER_BYTES: u16 = 32;
/// `PyASCIIObject` has a length, a hash and a state behind the header.
const ASCII_BYTES: u16 = HEADER_BYTES + TEXT_BYTES;
const TEXT_BYTES: u16 = 24;
/// `PyCompactUnicodeObject` has the form in UTF-8 beyond that. Until 3.11 each had a word more, for a third form.
const TEXT_UTF8_BYTES: u16 = 16;
const TEXT_WIDE_BYTES: u16 = 8;

impl Offsets {
    const V3_8: Self = Self {
        form: FrameForm::Objects,
        interpreters_head: 32,
        interpreter_next: 0,
        threads_head: 8,
        last_thread: 1368,
        is_last_in_runtime: true,
        modules: None,
        thread_next: 8,
        thread_interpreter: 16,
        thread_id: 176,
        thread_frame: 24,
        entry: None,
        prologue_bytes: 0,
        frame_previous: 24,
        frame_code: 32,
        frame_instruction: 104,
        frame_mark: 0,
        code_size: 48,
        code_name: 112,
        code_qualname: 112,
        code_filename: 104,
        code_first_line: 40,
        code_lines: 120,
        code_begin: 0,
        frame_copy: 0,
        code_copies: 0,
        instruction_shift: 1,
        lines: LineForm::Steps,
        header_bytes: HEADER_BYTES,
        ascii_bytes: ASCII_BYTES + TEXT_WIDE_BYTES,
    };

    const V3_9: Self = Self {
        last_thread: 568,
        ..Self::V3_8
    };

    const V3_10: Self = Self {
        frame_instruction: 96,
        instruction_shift: 0,
        lines: LineForm::Ranges,
        ..Self::V3_9
    };

    const V3_11: Self = Self {
        form: FrameForm::Entries,
        interpreters_head: 40,
        threads_head: 16,
        last_thread: 576,
        thread_id: 152,
        thread_frame: 56,
        entry: Some((8, 16)),
        prologue_bytes: 112,
        frame_previous: 48,
        frame_code: 32,
        frame_instruction: 56,
        frame_mark: 68,
        code_size: HEADER_BYTES,
        code_name: 120,
        code_qualname: 128,
        code_filename: 112,
        code_first_line: 72,
        code_lines: 136,
        code_begin: 184,
        lines: LineForm::Locations,
        ..Self::V3_10
    };

    const V3_12: Self = Self {
        form: FrameForm::Shims,
        threads_head: 72,
        last_thread: 1048,
        is_last_in_runtime: false,
        thread_id: 136,
        entry: Some((0, 8)),
        prologue_bytes: 176,
        frame_previous: 8,
        frame_code: 0,
        frame_mark: 70,
        code_first_line: 68,
        code_begin: 192,
        ascii_bytes: ASCII_BYTES,
        ..Self::V3_11
    };

    /// Of versions whose own table does not say them.
    pub(super) fn by_version(minor: u8) -> Option<Self> {
        match minor {
            8 => Some(Self::V3_8),
            9 => Some(Self::V3_9),
            10 => Some(Self::V3_10),
            11 => Some(Self::V3_11),
            12 => Some(Self::V3_12),
            _ => None,
        }
    }

    /// In any object: its type, which the header ends with.
    pub(super) fn object_type(&self) -> u16 {
        self.header_bytes - 8
    }

    /// In objects of variable size: that.
    pub(super) fn size(&self) -> u16 {
        self.header_bytes
    }

    /// `PyBytesObject`: its bytes are behind size and hash.
    pub(super) fn bytes_body(&self) -> u16 {
        self.header_bytes + 16
    }

    /// `PyASCIIObject`.
    pub(super) fn text_length(&self) -> u16 {
        self.header_bytes
    }

    /// All ones where nobody has asked for it.
    pub(super) fn text_hash(&self) -> u16 {
        self.header_bytes + 8
    }

    pub(super) fn text_state(&self) -> u16 {
        self.header_bytes + 16
    }

    /// `PyTypeObject`.
    pub(super) fn type_name(&self) -> u16 {
        self.header_bytes + 8
    }

    pub(super) fn type_flags(&self) -> u16 {
        self.header_bytes + 152
    }

    /// Bytes of `PyCompactUnicodeObject`.
    pub(super) fn compact_bytes(&self) -> u16 {
        let has_wide = self.ascii_bytes > self.header_bytes + TEXT_BYTES;
        self.ascii_bytes + TEXT_UTF8_BYTES + if has_wide { TEXT_WIDE_BYTES } else { 0 }
    }
}

/// What the table begins with.
pub(super) const COOKIE: [u8; 8] = *b"xdebugpy";
/// The interpreter's state has some 320,000.
const MAX_STRUCTURE_BYTES: u64 = 1 << 21;
/// As much of the table is read.
pub(super) const TABLE_BYTES: usize = 760;

/// Where groups of the table begin, in words from its begin: each has its structure's size first.
struct Groups {
    interpreter: u16,
    thread: u16,
    frame: u16,
    code: u16,
    object: u16,
    bytes: u16,
    text: u16,
    /// In the interpreter's group.
    modules: u16,
    last_thread: u16,
    /// In the thread's.
    thread_id: u16,
    /// In the frame's and in the code object's: of copies of instructions.
    copies: Option<[u16; 2]>,
}

/// 3.14 put fields into the groups of interpreters, frames and code, and a group before that of dicts; 3.15 put some
/// into those of threads and types, and a group behind that of types.
const GROUPS_3_13: Groups = Groups {
    interpreter: 6,
    thread: 19,
    frame: 28,
    code: 34,
    object: 44,
    bytes: 64,
    text: 67,
    modules: 5,
    last_thread: 12,
    thread_id: 5,
    copies: None,
};
const GROUPS_3_14: Groups = Groups {
    interpreter: 6,
    thread: 22,
    frame: 31,
    code: 39,
    object: 50,
    bytes: 74,
    text: 77,
    modules: 6,
    last_thread: 13,
    thread_id: 5,
    copies: Some([7, 10]),
};
const GROUPS_3_15: Groups = Groups {
    interpreter: 6,
    thread: 22,
    frame: 39,
    code: 47,
    object: 58,
    bytes: 86,
    text: 89,
    modules: 6,
    last_thread: 13,
    thread_id: 8,
    copies: Some([7, 10]),
};

/// What a table says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) hex_version: u64,
    pub(super) offsets: Offsets,
}

/// Reads a table of `TABLE_BYTES`: None where the version has none, an error that names what makes no sense.
pub(super) fn by_table(table: &[u8], minor: u8) -> Option<Result<Table, &'static str>> {
    let groups = match minor {
        13 => GROUPS_3_13,
        14 => GROUPS_3_14,
        15 => GROUPS_3_15,
        _ => return None,
    };
    if !table.starts_with(&COOKIE) {
        return Some(Err("the table's cookie"));
    }
    let words = Words { table };
    Some(words.offsets(&groups))
}

struct Words<'a> {
    table: &'a [u8],
}

impl Words<'_> {
    fn at(&self, number: u16) -> u64 {
        part(self.table, number * 8, 8)
    }

    /// A field of a group whose structure must hold it.
    fn wide(&self, group: u16, number: u16, what: &'static str) -> Result<u32, &'static str> {
        let (size, offset) = (self.at(group), self.at(group + number));
        let is_inside = size <= MAX_STRUCTURE_BYTES && offset < size;
        u32::try_from(offset).ok().filter(|_| is_inside).ok_or(what)
    }

    fn near(&self, group: u16, number: u16, what: &'static str) -> Result<u16, &'static str> {
        let offset = self.wide(group, number, what)?;
        u16::try_from(offset).map_err(|_| what)
    }

    fn offsets(&self, groups: &Groups) -> Result<Table, &'static str> {
        let (interpreter, thread, code) = (groups.interpreter, groups.thread, groups.code);
        let (frame, what) = (groups.frame, "a frame's layout");
        let is_free_threaded = self.at(2) != 0;
        let header_bytes = if is_free_threaded {
            FREE_HEADER_BYTES
        } else {
            HEADER_BYTES
        };
        let threads_head = self.wide(interpreter, 3, "an interpreter's layout")?;
        let last_thread = self.wide(interpreter, groups.last_thread, "an interpreter's layout")?;
        let [frame_copy, code_copies] = match groups.copies {
            Some([number, copies]) if is_free_threaded => [
                self.near(frame, number, what)?,
                self.near(code, copies, "a code object's layout")?,
            ],
            _ => [0, 0],
        };
        let offsets = Offsets {
            form: FrameForm::Shims,
            interpreters_head: self.wide(3, 2, "the runtime's layout")?,
            interpreter_next: self.wide(interpreter, 2, "an interpreter's layout")?,
            threads_head,
            // Nobody has the lock: the newest thread is as good a guess as any, and is there.
            last_thread: if is_free_threaded { threads_head } else { last_thread },
            is_last_in_runtime: false,
            modules: Some(self.wide(interpreter, groups.modules, "an interpreter's layout")?),
            thread_next: self.near(thread, 2, "a thread's layout")?,
            thread_interpreter: self.near(thread, 3, "a thread's layout")?,
            thread_frame: self.near(thread, 4, "a thread's layout")?,
            thread_id: self.near(thread, groups.thread_id, "a thread's layout")?,
            entry: None,
            prologue_bytes: 0,
            frame_previous: self.near(frame, 1, what)?,
            frame_code: self.near(frame, 2, what)?,
            frame_instruction: self.near(frame, 3, what)?,
            frame_mark: self.near(frame, 5, what)?,
            code_size: header_bytes,
            code_filename: self.near(code, 1, "a code object's layout")?,
            code_name: self.near(code, 2, "a code object's layout")?,
            code_qualname: self.near(code, 3, "a code object's layout")?,
            code_lines: self.near(code, 4, "a code object's layout")?,
            code_first_line: self.near(code, 5, "a code object's layout")?,
            code_begin: self.near(code, 9, "a code object's layout")?,
            frame_copy,
            code_copies,
            instruction_shift: 0,
            lines: LineForm::Locations,
            header_bytes,
            ascii_bytes: header_bytes + TEXT_BYTES,
        };
        // What is fixed elsewhere must be so here.
        let fixed = [
            (groups.object, header_bytes),
            (groups.object + 1, offsets.object_type()),
            (groups.bytes + 1, offsets.size()),
            (groups.bytes + 2, offsets.bytes_body()),
            (groups.text + 1, offsets.text_state()),
            (groups.text + 2, offsets.text_length()),
            (groups.text + 3, offsets.ascii_bytes),
        ];
        if fixed.into_iter().any(|(number, is)| self.at(number) != u64::from(is)) {
            return Err("the layout of objects");
        }
        Ok(Table {
            hex_version: self.at(1),
            offsets,
        })
    }
}
