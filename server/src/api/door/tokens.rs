//! Tokens that are accepted. They can be replaced while the server runs.

use sha2::{Digest, Sha256};
use std::sync::{Arc, PoisonError, RwLock};

/// What of a token is kept.
pub(super) type Hash = [u8; 32];

/// Tokens of one kind; none means that everyone may. Clones are the same tokens.
#[derive(Clone, Default)]
pub struct Tokens(Option<Arc<RwLock<KnownTokens>>>);

struct KnownTokens {
    hashes: Arc<[Hash]>,
    names: Arc<[u32]>,
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.count() {
            Some(count) => write!(f, "Tokens({count})"),
            None => f.write_str("Tokens(none needed)"),
        }
    }
}

pub(super) fn digest(purpose: &str, token: &str) -> Hash {
    Sha256::new()
        .chain_update(purpose)
        .chain_update([0])
        .chain_update(token)
        .finalize()
        .into()
}

/// Takes the same time whatever the difference.
fn equal(a: &Hash, b: &Hash) -> bool {
    a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

/// What a token is called where batches are owned; never 0, which is nobody's.
fn name(hash: &Hash) -> u32 {
    u32::from_le_bytes([hash[0], hash[1], hash[2], hash[3]]) | 1
}

/// Who has shown a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holder {
    /// No token is needed.
    Anyone,
    Of(Hash),
}

impl Holder {
    pub(super) fn name(self) -> u32 {
        match self {
            Holder::Anyone => 0,
            Holder::Of(hash) => name(&hash),
        }
    }
}

impl KnownTokens {
    fn of(text: &str) -> Self {
        let lines = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        let hashes: Arc<[Hash]> = lines.map(|token| digest("token", token)).collect();
        Self {
            names: hashes.iter().map(name).collect(),
            hashes,
        }
    }
}

impl Tokens {
    /// One token a line, so that one can be replaced by another without a gap.
    pub fn from_lines(text: &str) -> Self {
        Self(Some(Arc::new(RwLock::new(KnownTokens::of(text)))))
    }

    /// From here on these are accepted, and no others. Nothing changes where there are none, or none was needed.
    /// Whether others are now.
    pub fn replace(&self, text: &str) -> bool {
        let known = KnownTokens::of(text);
        let Some(tokens) = self.0.as_ref().filter(|_| !known.hashes.is_empty()) else {
            return false;
        };
        let mut tokens = tokens.write().unwrap_or_else(PoisonError::into_inner);
        let changes = tokens.hashes != known.hashes;
        *tokens = known;
        changes
    }

    fn read<T>(&self, of: impl FnOnce(&KnownTokens) -> T) -> Option<T> {
        let tokens = self.0.as_ref()?;
        Some(of(&tokens.read().unwrap_or_else(PoisonError::into_inner)))
    }

    /// How many tokens there are; none when none is needed.
    pub fn count(&self) -> Option<usize> {
        self.read(|known| known.hashes.len())
    }

    /// What the tokens are called where batches are owned.
    pub(super) fn names(&self) -> Arc<[u32]> {
        self.read(|known| known.names.clone()).unwrap_or_default()
    }

    /// Whose token it is, if it is accepted.
    pub(super) fn holder(&self, token: Option<&str>) -> Option<Holder> {
        match token {
            _ if self.0.is_none() => Some(Holder::Anyone),
            None => None,
            Some(token) => self.holder_of(&digest("token", token)),
        }
    }

    /// As [`Tokens::holder`], by what is kept of a token.
    pub(super) fn holder_of(&self, given: &Hash) -> Option<Holder> {
        let has = |known: &KnownTokens| {
            known
                .hashes
                .iter()
                .fold(false, |found, hash| found | equal(hash, given))
        };
        match self.read(has) {
            None => Some(Holder::Anyone),
            Some(true) => Some(Holder::Of(*given)),
            Some(false) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_line_is_a_token_and_nothing_else() {
        let tokens = Tokens::from_lines("# two tokens\nalpha\n\n  beta  \n");
        assert_eq!(tokens.count(), Some(2));
        let accepts = |token| tokens.holder(token).is_some();
        assert!(accepts(Some("alpha")) && accepts(Some("beta")));
        for wrong in [None, Some(""), Some("alph"), Some("alphaa"), Some("# two tokens")] {
            assert!(!accepts(wrong), "{wrong:?}");
        }
        assert_eq!(Tokens::default().holder(None), Some(Holder::Anyone));
        assert_eq!(Tokens::from_lines("").holder(Some("")), None);
    }

    #[test]
    fn tokens_are_replaced_everywhere_and_never_by_none() {
        let tokens = Tokens::from_lines("old\nstays");
        let others = tokens.clone();
        assert!(tokens.replace("new\nstays"));
        assert!(!tokens.replace("stays \n") || others.count() == Some(1));
        assert!(tokens.replace("new\nstays"));
        let accepts = |token| others.holder(Some(token)).is_some();
        assert!(accepts("new") && accepts("stays") && !accepts("old"));
        assert!(!tokens.replace("\n# nothing\n") && accepts("new"));
        assert!(!tokens.replace("new\nstays"), "they are the same");
        assert_eq!(tokens.names().len(), 2);
        assert!(!Tokens::default().replace("new"), "none was needed");
    }
}
