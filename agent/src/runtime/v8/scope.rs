//! What V8 knows of a function's scope: its names, where it begins, and the scope around it.

use super::layout::Layout;
use super::{ReadMemory, Unreadable, field, object, part, read_long, small};

/// Of a scope's flags: the scope's kind, ways of keeping the function's own variable, and what is there.
const KIND: u64 = 15;
const HAS_SAVED_CLASS: u64 = 1 << 10;
const FUNCTION_SHIFT: u32 = 12;
const HAS_INFERRED: u64 = 1 << 14;
const HAS_OUTER: u64 = 1 << 22;
/// Kinds before V8 13 that say where they begin: of classes, functions, modules and scripts.
const PLACED_KINDS: u64 = 5;
/// Local variables that are kept in the scope itself; of more there is one word for all names.
const MAX_INLINED: usize = 75;
const WORD: usize = 8;
/// Words before the variables: map, flags, parameters, number of variables; since V8 13 the begin and the end too.
const WORDS_WITH_PLACE: u16 = 5;

/// A scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scope {
    pub(super) is_class: bool,
    /// The function's own name, which may be empty.
    pub(super) name: Option<u64>,
    /// What the parser made of the place where a function stands: `o.method`.
    pub(super) inferred: Option<u64>,
    /// The number of its first character in the source.
    pub(super) start: Option<u32>,
    /// The scope around it.
    pub(super) outer: Option<u64>,
}

/// Reads one word after the other.
struct Words<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Words<'_> {
    fn next(&mut self) -> u64 {
        let word = part(self.bytes, self.at as u16, WORD as u16);
        self.at += WORD;
        word
    }

    fn skip(&mut self, words: usize) {
        self.at += words * WORD;
    }
}

impl Scope {
    pub(super) fn read(memory: &dyn ReadMemory, layout: &Layout, address: u64) -> Result<Self, Unreadable> {
        const HEAD_BYTES: usize = 4 * WORD;
        let nonsense = Unreadable::Nonsense {
            what: "a scope",
            address,
        };
        let head = read_long(memory, address, HEAD_BYTES)?;
        // A scope may lie at the end of its page.
        let has_place = layout.scope_first >= WORDS_WITH_PLACE;
        let flags = match small(part(&head, 8, 8)) {
            Some(flags) if !has_place => u64::from(flags.cast_unsigned()),
            _ => part(&head, 8, 4),
        };
        let locals = small(part(&head, 24, 8)).and_then(|count| usize::try_from(count).ok());
        let locals = locals.filter(|count| *count <= 1 << 20).ok_or(nonsense)?;
        let [class, module] = if has_place { [2, 5] } else { [0, 3] };
        let kind = flags & KIND;
        let mut skipped = if kind == module { 1 } else { 0 };
        skipped += if locals < MAX_INLINED { 2 * locals } else { 1 + locals };
        skipped += usize::from(flags & HAS_SAVED_CLASS != 0);
        // Where something is kept for the function's name, the last of these words is the scope around.
        let has_function = flags >> FUNCTION_SHIFT & 3 != 0;
        let words = 2 * usize::from(has_function) + usize::from(flags & HAS_INFERRED != 0);
        let words = words + if has_place { 1 } else { 3 };
        let first = HEAD_BYTES + if has_place { 2 * WORD } else { 0 } + skipped * WORD;
        let tail = read_long(memory, address.saturating_add(first as u64), words * WORD)?;
        let mut words = Words { bytes: &tail, at: 0 };
        let name = if has_function { object(words.next()) } else { None };
        words.skip(usize::from(has_function));
        let inferred = if flags & HAS_INFERRED != 0 {
            object(words.next())
        } else {
            None
        };
        let place = if has_place {
            let head = read_long(memory, field(address, HEAD_BYTES as u16), 2 * WORD)?;
            small(part(&head, 0, 8))
        } else if kind < PLACED_KINDS {
            let start = small(words.next());
            words.skip(1);
            start
        } else {
            None
        };
        let outer = if flags & HAS_OUTER != 0 {
            object(words.next())
        } else {
            None
        };
        Ok(Self {
            is_class: kind == class,
            name,
            inferred,
            start: place.and_then(|start| u32::try_from(start).ok()),
            outer,
        })
    }
}
