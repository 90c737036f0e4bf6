//! How well a text has a word: the whole of it, its beginning, the beginning of a word of it, or somewhere. Pure.

/// The best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// It is the word.
    Exact,
    /// It begins with the word.
    Prefix,
    /// One of its parts begins with the word.
    Word,
    /// The word is somewhere within.
    Inside,
}

impl Rank {
    /// From the best on.
    pub const ALL: [Rank; 4] = [Rank::Exact, Rank::Prefix, Rank::Word, Rank::Inside];

    /// As answers have it.
    pub fn name(self) -> &'static str {
        match self {
            Rank::Exact => "exact",
            Rank::Prefix => "prefix",
            Rank::Word => "word",
            Rank::Inside => "inside",
        }
    }
}

/// What is looked for, whatever the case of its ASCII letters.
#[derive(Debug, Clone)]
pub(crate) struct Word(Vec<u8>);

impl Word {
    /// None where there is nothing to look for.
    pub(crate) fn new(text: &str) -> Option<Word> {
        let text = text.trim();
        (!text.is_empty()).then(|| Word(text.as_bytes().to_ascii_lowercase()))
    }

    /// How well a text has it, if at all.
    pub(crate) fn rank(&self, text: &str) -> Option<Rank> {
        let (word, text) = (&self.0[..], text.as_bytes());
        let places = text.len().checked_sub(word.len())?;
        let mut found = None;
        for at in 0..=places {
            if !text[at].eq_ignore_ascii_case(&word[0]) || !text[at..at + word.len()].eq_ignore_ascii_case(word) {
                continue;
            }
            if at == 0 {
                return Some(if places == 0 { Rank::Exact } else { Rank::Prefix });
            }
            if begins_word(text[at - 1], text[at]) {
                return Some(Rank::Word);
            }
            found = Some(Rank::Inside);
        }
        found
    }
}

/// Whether a word begins between two bytes: behind a sign, and where small letters go over to a large one.
fn begins_word(before: u8, first: u8) -> bool {
    let is_sign = before.is_ascii() && !before.is_ascii_alphanumeric();
    is_sign || (before.is_ascii_lowercase() && first.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_place_of_a_word_counts() {
        let word = Word::new(" Walk ").unwrap();
        for (text, rank) in [
            ("walk", Some(Rank::Exact)),
            ("WALK", Some(Rank::Exact)),
            ("walker", Some(Rank::Prefix)),
            ("filepath.Walk", Some(Rank::Word)),
            ("tree::walk_all", Some(Rank::Word)),
            ("treeWalk", Some(Rank::Word)),
            ("sidewalk", Some(Rank::Inside)),
            ("sidewalk.walk", Some(Rank::Word)),
            ("äwalk", Some(Rank::Inside)),
            ("wal", None),
            ("", None),
        ] {
            assert_eq!(word.rank(text), rank, "{text}");
        }
        assert!(Word::new("  ").is_none());
        assert_eq!(Word::new("straße").unwrap().rank("Hauptstraße"), Some(Rank::Inside));
    }
}
