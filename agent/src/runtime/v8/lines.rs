//! Lines of scripts: which one a character stands in.

use std::collections::HashMap;
use std::sync::Arc;

use super::layout::Layout;
use super::text::{Text, name};
use super::{ReadMemory, Unreadable, field, object, object_at, small, type_of, word};

/// Of a script, in every version: the line that it begins at in its file, its number.
const FIRST_LINE: u16 = 24;
const NUMBER: u16 = 64;
/// A longer source has no lines.
const MAX_CHARACTERS: u32 = 1 << 23;
/// Lines are counted for so many characters at a time.
const PIECE: u32 = 4096;
/// Pieces that are remembered of all scripts.
const MAX_PIECES: usize = 1 << 15;
const MAX_SCRIPTS: usize = 1024;

/// Which script's source it was.
type Key = (u64, u64, Text);

/// Lines before each piece of the sources that were looked at.
#[derive(Debug, Default)]
pub(super) struct Lines {
    scripts: HashMap<Key, Arc<[u32]>>,
    pieces: usize,
}

/// Ends of lines in `text`, whose last character is only looked at from the one before. As V8 counts them.
fn count(text: &[u16], is_end: bool) -> u32 {
    const FEED: u16 = 10;
    const RETURN: u16 = 13;
    let last = usize::from(is_end);
    let all = text.windows(2).map(|pair| (pair[0], Some(pair[1])));
    let rest = text.iter().rev().take(last).map(|only| (*only, None));
    let is_end = |(one, next): &(u16, Option<u16>)| match *one {
        FEED | 0x2028 | 0x2029 => true,
        RETURN => *next != Some(FEED),
        _ => false,
    };
    all.chain(rest).filter(is_end).count() as u32
}

impl Lines {
    /// What is known of a source.
    pub(super) fn known(&self, key: &Key) -> Option<Arc<[u32]>> {
        self.scripts.get(key).map(Arc::clone)
    }

    pub(super) fn remember(&mut self, key: Key, before: Arc<[u32]>) {
        if self.pieces + before.len() > MAX_PIECES || self.scripts.len() >= MAX_SCRIPTS {
            self.scripts.clear();
            self.pieces = 0;
        }
        self.pieces += before.len();
        self.scripts.insert(key, before);
    }
}

fn pieces(memory: &dyn ReadMemory, text: &Text) -> Result<Arc<[u32]>, Unreadable> {
    const PIECES_AT_ONCE: u32 = 8;
    let mut before = vec![0];
    let mut from = 0;
    while from < text.length {
        let characters = text.characters(memory, from, PIECE * PIECES_AT_ONCE + 1)?;
        for piece in 0..PIECES_AT_ONCE {
            let first = (piece * PIECE) as usize;
            let end = (first + PIECE as usize + 1).min(characters.len());
            if first + 1 >= end {
                break;
            }
            let lines = count(&characters[first..end], false);
            before.push(before.last().map_or(0, |before| before + lines));
        }
        from += PIECE * PIECES_AT_ONCE;
    }
    Ok(before.into())
}

/// The line, from 1 on, of a script's character; 0 where its source is not there.
pub(super) fn line(
    memory: &dyn ReadMemory,
    layout: &Layout,
    lines: &std::sync::Mutex<Lines>,
    script: u64,
    character: u32,
) -> Result<u32, Unreadable> {
    let Some(source) = object(word(memory, field(script, layout.script_source))?) else {
        return Ok(0);
    };
    let Ok(text) = Text::read(memory, source) else {
        return Ok(0);
    };
    if text.length > MAX_CHARACTERS || character > text.length {
        return Ok(0);
    }
    let number = word(memory, field(script, NUMBER))?;
    let key = (script, number, text);
    let lock = || lines.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let known = lock().known(&key);
    let before = match known {
        Some(before) => before,
        None => {
            let before = pieces(memory, &text)?;
            lock().remember(key, Arc::clone(&before));
            before
        }
    };
    let piece = character / PIECE;
    let from = piece * PIECE;
    // The character itself is looked at from the one before.
    let characters = text.characters(memory, from, character - from + 1)?;
    let is_behind = character == text.length;
    let own = count(&characters, is_behind && !characters.is_empty());
    let first = small(word(memory, field(script, FIRST_LINE))?).unwrap_or(0);
    let line = u64::from(before.get(piece as usize).copied().unwrap_or(0)) + u64::from(own) + 1;
    let line = i64::try_from(line).map_or(0, |line| line + i64::from(first));
    Ok(u32::try_from(line).unwrap_or(0))
}

/// A script's file, address or name; of what was evaluated, where that was done.
pub(super) fn file(memory: &dyn ReadMemory, layout: &Layout, script: u64) -> Result<Option<String>, Unreadable> {
    let text_of = |offset: u16| -> Result<Option<String>, Unreadable> {
        let found = object(word(memory, field(script, offset))?);
        let text = found.and_then(|object| name(memory, object).ok());
        Ok(text.filter(|text| !text.is_empty()))
    };
    for offset in [layout.script_name, layout.script_source_url] {
        if let Some(text) = text_of(offset)? {
            return Ok(Some(text));
        }
    }
    let Ok(from) = object_at(memory, script, layout.script_eval_from, "what evaluated a script") else {
        return Ok(None);
    };
    if type_of(memory, from)? != layout.type_shared {
        return Ok(None);
    }
    let script = object_at(memory, from, layout.shared_script, "a script")?;
    if type_of(memory, script)? != layout.type_script {
        return Ok(None);
    }
    let outer = object_at(memory, script, layout.script_name, "a script's name")?;
    Ok(Some(format!("eval at {}", name(memory, outer)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_as_v8_has_it() {
        let count_of = |text: &str, is_end| count(&text.encode_utf16().collect::<Vec<_>>(), is_end);
        for (text, expected) in [
            ("", 0),
            ("a", 0),
            ("a\n", 1),
            ("a\r\nb", 1),
            ("a\rb\n", 2),
            ("\u{2028}\u{2029}x", 2),
        ] {
            assert_eq!(count_of(text, true), expected, "{text:?}");
        }
        assert_eq!(count_of("a\n", false), 0);
        assert_eq!(count_of("a\r\n", false), 0);
    }

    #[test]
    fn what_is_remembered_has_a_limit() {
        let mut lines = Lines::default();
        let text = |address| Text {
            address,
            length: 1,
            width: 1,
        };
        for number in 0..40 {
            lines.remember((number, 0, text(number)), vec![0; 1024].into());
            assert!(lines.pieces <= MAX_PIECES);
        }
        assert!(lines.known(&(39, 0, text(39))).is_some());
        assert!(lines.known(&(0, 0, text(0))).is_none());
    }
}
