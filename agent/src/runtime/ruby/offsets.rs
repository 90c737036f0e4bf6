//! Where structures of CRuby have what matters, by version: as a compiler says for x86-64 of the sources of 2.7.4,
//! 3.1.2, 3.3.8 and 3.4.5, and of the headers of 3.0.0 to 3.0.7 and of 3.2.0 to 3.2.11.

/// Bits of an object's flags: its type, and where an internal object has its kind.
pub(super) const TYPE_MASK: u64 = 0x1f;
pub(super) const T_CLASS: u64 = 0x02;
pub(super) const T_MODULE: u64 = 0x03;
pub(super) const T_STRING: u64 = 0x05;
pub(super) const T_ARRAY: u64 = 0x07;
pub(super) const T_IMEMO: u64 = 0x1a;
pub(super) const IMEMO_SHIFT: u32 = 12;
pub(super) const IMEMO_METHOD: u64 = 6;
pub(super) const IMEMO_ISEQ: u64 = 7;
/// The first of the flags that mean something else in each type.
pub(super) const USER_SHIFT: u32 = 12;
/// Of text: it is not in the object itself. Of lists: it is.
pub(super) const USER_1: u64 = 1 << (USER_SHIFT + 1);

/// `rb_control_frame_t`, the same in all but for its size.
pub(super) const FRAME_ISEQ: u16 = 16;
pub(super) const FRAME_ENV: u16 = 32;
/// `rb_execution_context_t`.
pub(super) const CONTEXT_STACK: u16 = 0;
pub(super) const CONTEXT_STACK_WORDS: u16 = 8;
pub(super) const CONTEXT_FRAME: u16 = 16;
/// `rb_iseq_t`, and its body.
pub(super) const ISEQ_BODY: u16 = 16;
pub(super) const BODY_SIZE: u16 = 4;
pub(super) const BODY_ENCODED: u16 = 8;
pub(super) const BODY_PATH: u16 = 64;
pub(super) const BODY_BASE_LABEL: u16 = 72;
pub(super) const BODY_LABEL: u16 = 80;
pub(super) const BODY_FIRST_LINE: u16 = 88;
pub(super) const BODY_BYTES: usize = 152;
/// `rb_callable_method_entry_t`, and its definition.
pub(super) const METHOD_DEFINITION: u16 = 16;
pub(super) const METHOD_ID: u16 = 24;
pub(super) const METHOD_OWNER: u16 = 32;
pub(super) const METHOD_BYTES: usize = 40;
pub(super) const DEFINITION_ID: u16 = 32;

/// What is another in each version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Offsets {
    /// `rb_vm_t`.
    pub(super) vm_main_thread: u16,
    /// The list of threads is in it, or in a ractor that it leads to.
    pub(super) vm_main_ractor: Option<u16>,
    pub(super) threads: u16,
    /// `rb_thread_t`.
    pub(super) thread_vm: u16,
    pub(super) thread_context: u16,
    /// The number of the native thread is there, or in a structure that it leads to.
    pub(super) thread_native: Option<u16>,
    pub(super) thread_id: u16,
    pub(super) context_thread: u16,
    pub(super) frame_bytes: u16,
    /// In a body: the table of lines (entries, positions, their number, an index), and how large an entry is.
    pub(super) body_lines: u16,
    pub(super) line_bytes: u16,
    /// The number of a first line is an object.
    pub(super) is_line_object: bool,
    /// Short text has its length in its flags, and lies where longer text has that.
    pub(super) is_length_in_flags: bool,
    /// Where classes have their names, or that they are among their variables.
    pub(super) class_names: ClassNames,
    /// Of a class' flags: it is the one of a single object.
    pub(super) singleton: u64,
    /// The highest number of an operator's name, which is its number itself.
    pub(super) last_operator: u64,
    /// Names of methods that handle exceptions say so, in Ruby's own traces.
    pub(super) has_handlers_in_names: bool,
}

/// Where a class has its name and, of a singleton class, its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClassNames {
    Fields {
        path: u16,
        attached: u16,
    },
    Variables {
        extension: u16,
        table: u16,
    },
    /// Variables that a shape gives numbers: the list of shapes in the virtual machine, the values in the class.
    Shapes {
        list: u16,
        values: u16,
    },
}

impl Offsets {
    pub(super) fn by_version(major: u32, minor: u32) -> Option<Self> {
        let since_3_1 = Self {
            vm_main_thread: 40,
            vm_main_ractor: Some(32),
            threads: 304,
            thread_vm: 32,
            thread_context: 40,
            thread_native: None,
            thread_id: 80,
            context_thread: 48,
            frame_bytes: 64,
            body_lines: 120,
            line_bytes: 12,
            is_line_object: true,
            is_length_in_flags: true,
            class_names: ClassNames::Variables {
                extension: 24,
                table: 8,
            },
            singleton: 1 << USER_SHIFT,
            last_operator: 169,
            has_handlers_in_names: true,
        };
        let since_3_3 = Self {
            threads: 256,
            thread_context: 48,
            thread_native: Some(40),
            thread_id: 16,
            frame_bytes: 56,
            body_lines: 112,
            is_line_object: false,
            is_length_in_flags: false,
            class_names: ClassNames::Fields {
                path: 152,
                attached: 128,
            },
            ..since_3_1
        };
        match (major, minor) {
            (2, 7) => Some(Self {
                vm_main_thread: 192,
                vm_main_ractor: None,
                threads: 312,
                thread_vm: 24,
                thread_context: 32,
                thread_id: 72,
                context_thread: 56,
                frame_bytes: 56,
                line_bytes: 8,
                last_operator: 168,
                ..since_3_1
            }),
            (3, 0) => Some(Self {
                context_thread: 56,
                frame_bytes: 56,
                line_bytes: 8,
                last_operator: 168,
                ..since_3_1
            }),
            (3, 1) => Some(since_3_1),
            (3, 2) => Some(Self {
                thread_context: 48,
                thread_native: Some(40),
                thread_id: 8,
                body_lines: 112,
                is_line_object: false,
                is_length_in_flags: false,
                class_names: ClassNames::Shapes { list: 376, values: 32 },
                ..since_3_1
            }),
            (3, 3) => Some(since_3_3),
            (3, 4) => Some(Self {
                singleton: USER_1,
                last_operator: 170,
                has_handlers_in_names: false,
                ..since_3_3
            }),
            _ => None,
        }
    }
}
