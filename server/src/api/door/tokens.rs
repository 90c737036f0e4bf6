//! Tokens that are accepted. They can be replaced while the server runs.
//!
//! A line is a token. Behind one of senders may stand what it is called and what may come by it in a day:
//! `TOKEN name=team-a bytes-per-day=10GiB series-per-day=100000`.

use crate::sizes::bytes;
use crate::store::{MOST_SERIES, Quota};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

/// Characters of the name of a token.
const MOST_NAME: usize = 64;

/// What may stand behind a token.
const ALLOWED: &str = "allowed behind a token: name=NAME, bytes-per-day=SIZE, series-per-day=COUNT";

/// What of a token is kept.
pub(super) type Hash = [u8; 32];

/// Tokens of one kind; none means that everyone may. Clones are the same tokens.
#[derive(Clone, Default)]
pub struct Tokens(Option<Arc<Shared>>);

struct Shared {
    /// Whether settings may stand behind a token.
    has_settings: bool,
    known: RwLock<KnownTokens>,
}

#[derive(Default)]
struct KnownTokens {
    hashes: Arc<[Hash]>,
    names: Arc<[u32]>,
    /// Of each.
    quotas: Arc<[Option<Arc<Quota>>]>,
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

/// Lines that say something, with their numbers.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

impl KnownTokens {
    /// Each line a token, or with settings behind it. An error says where and what, and never a token.
    fn of(text: &str, has_settings: bool) -> Result<Self, String> {
        let (mut hashes, mut quotas) = (Vec::new(), Vec::new());
        for (number, line) in lines(text) {
            let mut words = line.split_whitespace();
            let token = match words.next() {
                Some(token) if has_settings => token,
                _ => line,
            };
            let settings = words.filter(|_| has_settings);
            let quota = quota(settings).map_err(|cause| format!("line {number}: {cause}"))?;
            hashes.push(digest("token", token));
            quotas.push(quota);
        }
        let known = Self {
            names: hashes.iter().map(name).collect(),
            hashes: hashes.into(),
            quotas: share(quotas)?.into(),
        };
        Ok(known)
    }
}

/// What stands behind a token; none where that is no quota.
fn quota<'a>(settings: impl Iterator<Item = &'a str>) -> Result<Option<Quota>, String> {
    let mut quota = Quota {
        name: String::new(),
        bytes_per_day: None,
        series_per_day: None,
    };
    for (at, setting) in settings.enumerate() {
        let (key, value) = setting.split_once('=').unwrap_or_default();
        let refused = |cause: &str| format!("{key}: {cause}");
        let is_given = match key {
            "name" => !quota.name.is_empty(),
            "bytes-per-day" => quota.bytes_per_day.is_some(),
            "series-per-day" => quota.series_per_day.is_some(),
            // It may be a part of a token.
            _ => {
                return Err(format!(
                    "word {} is no setting, and a token has no spaces; {ALLOWED}",
                    at + 2
                ));
            }
        };
        if is_given {
            return Err(refused("it is given twice"));
        }
        let more_than_nothing = |number: u64| match number {
            0 => Err(refused(
                "it must be more than nothing; without its line a token is not accepted",
            )),
            number => Ok(Some(number)),
        };
        match key {
            "name" => {
                let is_fit = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
                if value.is_empty() || value.len() > MOST_NAME || !value.chars().all(is_fit) {
                    return Err(refused(&format!(
                        "a name has letters, digits, '.', '_' and '-', up to {MOST_NAME} of them"
                    )));
                }
                value.clone_into(&mut quota.name);
            }
            "bytes-per-day" => {
                quota.bytes_per_day = more_than_nothing(bytes(value).map_err(|cause| refused(&cause))?)?;
            }
            _ => {
                let count: u64 = value.parse().map_err(|_| refused("it is a whole number"))?;
                quota.series_per_day = more_than_nothing(count)?;
            }
        }
    }
    let has_limit = quota.bytes_per_day.is_some() || quota.series_per_day.is_some();
    if has_limit && quota.name.is_empty() {
        return Err(format!(
            "a token with a quota needs a name, by which it is told; {ALLOWED}"
        ));
    }
    // A name alone may have its quota at another of its tokens.
    Ok((!quota.name.is_empty()).then_some(quota))
}

/// The quotas of all tokens: those of one name have the same, which may be said at one of them.
fn share(quotas: Vec<Option<Quota>>) -> Result<Vec<Option<Arc<Quota>>>, String> {
    let mut of_names: BTreeMap<String, Quota> = BTreeMap::new();
    for quota in quotas.iter().flatten() {
        let shared = of_names.entry(quota.name.clone()).or_insert_with(|| quota.clone());
        for (has, says) in [
            (&mut shared.bytes_per_day, quota.bytes_per_day),
            (&mut shared.series_per_day, quota.series_per_day),
        ] {
            if says.is_some() && has.is_some() && *has != says {
                return Err(format!(
                    "the tokens of {} have different quotas: a name has one",
                    quota.name
                ));
            }
            *has = has.or(says);
        }
    }
    let series: u64 = of_names
        .values()
        .filter_map(|quota| quota.series_per_day)
        .fold(0, u64::saturating_add);
    if series > MOST_SERIES {
        return Err(format!(
            "series-per-day of all names are {series} together: at most {MOST_SERIES} are allowed, for each is \
             remembered"
        ));
    }
    of_names.retain(|_, quota| quota.bytes_per_day.is_some() || quota.series_per_day.is_some());
    let of_names: BTreeMap<String, Arc<Quota>> = of_names
        .into_iter()
        .map(|(name, quota)| (name, Arc::new(quota)))
        .collect();
    let each = quotas.into_iter().map(|quota| of_names.get(&quota?.name).cloned());
    Ok(each.collect())
}

impl Tokens {
    fn new(known: KnownTokens, has_settings: bool) -> Self {
        let known = RwLock::new(known);
        Self(Some(Arc::new(Shared { has_settings, known })))
    }

    /// One token a line, so that one can be replaced by another without a gap.
    pub fn from_lines(text: &str) -> Self {
        // Nothing but settings can be wrong, and there are none. No token at all would be needed without this.
        Self::new(KnownTokens::of(text, false).unwrap_or_default(), false)
    }

    /// The same of senders: behind a token may stand its name and its quota. An error says in which line what is
    /// wrong, and what is allowed.
    pub fn of_senders(text: &str) -> Result<Self, String> {
        Ok(Self::new(KnownTokens::of(text, true)?, true))
    }

    /// From here on these are accepted, and no others. Nothing changes where there are none, none was needed, or
    /// something is wrong. Whether others are now, or other quotas.
    pub fn replace(&self, text: &str) -> Result<bool, String> {
        let Some(shared) = &self.0 else { return Ok(false) };
        let new = KnownTokens::of(text, shared.has_settings)?;
        if new.hashes.is_empty() {
            return Ok(false);
        }
        let mut known = shared.known.write().unwrap_or_else(PoisonError::into_inner);
        let changes = known.hashes != new.hashes || known.quotas != new.quotas;
        *known = new;
        Ok(changes)
    }

    fn read<T>(&self, of: impl FnOnce(&KnownTokens) -> T) -> Option<T> {
        let shared = self.0.as_ref()?;
        Some(of(&shared.known.read().unwrap_or_else(PoisonError::into_inner)))
    }

    /// What may come in a day by the token of a holder.
    pub(super) fn quota(&self, holder: Holder) -> Option<Arc<Quota>> {
        let Holder::Of(given) = holder else { return None };
        let of = |known: &KnownTokens| {
            let at = known.hashes.iter().position(|hash| *hash == given)?;
            known.quotas[at].clone()
        };
        self.read(of)?
    }

    /// All quotas, each once.
    pub(crate) fn quotas(&self) -> Vec<Arc<Quota>> {
        let each = |known: &KnownTokens| {
            let quotas = known.quotas.iter().flatten();
            let by_name: BTreeMap<&str, &Arc<Quota>> = quotas.map(|quota| (quota.name.as_str(), quota)).collect();
            by_name.into_values().cloned().collect()
        };
        self.read(each).unwrap_or_default()
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
        assert_eq!(tokens.replace("new\nstays"), Ok(true));
        assert_eq!((tokens.replace("stays \n"), others.count()), (Ok(true), Some(1)));
        assert_eq!(tokens.replace("new\nstays"), Ok(true));
        let accepts = |token| others.holder(Some(token)).is_some();
        assert!(accepts("new") && accepts("stays") && !accepts("old"));
        assert_eq!(tokens.replace("\n# nothing\n"), Ok(false));
        assert!(accepts("new"));
        assert_eq!(tokens.replace("new\nstays"), Ok(false), "they are the same");
        assert_eq!(tokens.names().len(), 2);
        assert_eq!(Tokens::default().replace("new"), Ok(false), "none was needed");
    }

    #[test]
    fn behind_a_senders_token_stands_its_quota_and_others_are_whole_lines() {
        let text = "plain\nnew name=team-a bytes-per-day=10GiB series-per-day=1000\nold  name=team-a\nb name=b\n";
        let tokens = Tokens::of_senders(text).unwrap();
        let quota = |token| tokens.quota(tokens.holder(Some(token)).unwrap());
        let of_a = Quota {
            name: "team-a".to_owned(),
            bytes_per_day: Some(10 << 30),
            series_per_day: Some(1000),
        };
        assert_eq!(quota("new").as_deref(), Some(&of_a));
        assert_eq!(quota("old"), quota("new"), "a name has one quota");
        assert_eq!((quota("plain"), quota("b")), (None, None));
        assert_eq!(tokens.quotas(), [Arc::new(of_a)]);
        assert_eq!(tokens.replace(text), Ok(false));
        assert_eq!(
            tokens.replace(&text.replace("10GiB", "11GiB")),
            Ok(true),
            "other quotas"
        );
        assert_eq!(tokens.quotas()[0].bytes_per_day, Some(11 << 30));
        // Of viewers a line is a token, whatever it has.
        assert!(Tokens::from_lines("a name=b").holder(Some("a name=b")).is_some());
    }

    #[test]
    fn what_is_wrong_behind_a_token_is_told_without_the_token() {
        for (line, cause) in [
            ("secret bytes-per-day=1GiB", "needs a name"),
            (
                "secret name=a bytes-per-day=1GB",
                "bytes-per-day: give a number with KiB",
            ),
            ("secret name=a bytes-per-day=0", "more than nothing"),
            (
                "secret name=a series-per-day=many",
                "series-per-day: it is a whole number",
            ),
            ("secret name=a/b bytes-per-day=1", "name: a name has letters"),
            ("secret name=a name=b", "name: it is given twice"),
            ("secret more of secret=", "word 2 is no setting"),
            ("secret name=a series-per-day=1000001", "at most 1000000"),
        ] {
            let error = Tokens::of_senders(&format!("# one\n{line}\n")).unwrap_err();
            assert!(error.contains(cause) && !error.contains("secret"), "{line}: {error}");
        }
        let both = "a name=x bytes-per-day=1\nb name=x bytes-per-day=2\n";
        assert!(Tokens::of_senders(both).unwrap_err().contains("different quotas"));
        let tokens = Tokens::of_senders("a\n").unwrap();
        assert!(tokens.replace("b name=\n").is_err());
        assert!(tokens.holder(Some("a")).is_some(), "those that were there stay");
    }
}
