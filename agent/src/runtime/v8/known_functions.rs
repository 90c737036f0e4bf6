//! What was learned of functions, for those that are met again and again.

use std::collections::HashMap;
use std::sync::Arc;

/// Functions, and lines of them, that are remembered of a process; where there are more, all are forgotten.
const MAX_FUNCTIONS: usize = 512;
const MAX_LINES: usize = 2048;

/// Which function: where what it shares lies, and the hash of what stays as it is there.
pub(super) type Key = (u64, u64);

/// A function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) file: Option<String>,
    pub(super) script: Option<u64>,
    /// The number of its first character, where that is known.
    pub(super) start: Option<u32>,
}

/// What is remembered.
#[derive(Debug, Default)]
pub(super) struct KnownFunctions {
    functions: HashMap<Key, Arc<Function>>,
    lines: HashMap<(Key, u32), u32>,
}

impl KnownFunctions {
    pub(super) fn function(&self, key: Key) -> Option<Arc<Function>> {
        self.functions.get(&key).map(Arc::clone)
    }

    pub(super) fn remember(&mut self, key: Key, function: Arc<Function>) {
        if self.functions.len() >= MAX_FUNCTIONS {
            self.functions.clear();
        }
        self.functions.insert(key, function);
    }

    pub(super) fn line(&self, key: Key, character: u32) -> Option<u32> {
        self.lines.get(&(key, character)).copied()
    }

    pub(super) fn remember_line(&mut self, key: Key, character: u32, line: u32) {
        if self.lines.len() >= MAX_LINES {
            self.lines.clear();
        }
        self.lines.insert((key, character), line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_has_a_limit() {
        let mut known = KnownFunctions::default();
        let function = Arc::new(Function {
            name: "pop".to_owned(),
            file: None,
            script: None,
            start: None,
        });
        for number in 0..3000 {
            known.remember((number, 0), Arc::clone(&function));
            known.remember_line((number, 0), 7, 3);
            assert!(known.functions.len() <= MAX_FUNCTIONS && known.lines.len() <= MAX_LINES);
        }
        assert_eq!(known.function((2999, 0)), Some(function));
        assert_eq!((known.line((2999, 0), 7), known.line((2999, 0), 8)), (Some(3), None));
    }
}
