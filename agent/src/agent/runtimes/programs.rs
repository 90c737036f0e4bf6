//! The runtimes of programs: found when their files are mapped, read as soon as they have begun, and given up where
//! their layout is not known.
//!
//! In: programs with their mapped files. Out: who names the frames of each runtime, and what the kernel side walks a
//! program by. Nothing here names a frame.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::language::{Language, Reader};
use super::library::{KnownFile, KnownFiles, Library};
use super::{jvm, php, python, ruby, v8};
use crate::frames::ProgramKey;
use crate::kernel::{RuntimeWord, so_runtime};
use crate::process::Table;
use crate::sys::guarded_for;

/// All that are known, each at the place that [`language_of`] says.
pub(super) static LANGUAGES: [&dyn Language; COUNT] =
    [&jvm::HotSpot, &python::CPython, &php::Zend, &ruby::CRuby, &v8::Engine];
const COUNT: usize = 5;

/// Whose frame it is.
pub(super) fn language_of(frame: RuntimeWord) -> usize {
    match frame {
        RuntimeWord::JvmCompiled(_) | RuntimeWord::JvmInterpreted(_) => 0,
        RuntimeWord::Python(_) => 1,
        RuntimeWord::Php(_) => 2,
        RuntimeWord::Ruby(_) => 3,
        RuntimeWord::V8(_) => 4,
    }
}

/// A runtime that has just begun says what makes no sense: it is looked at again after this, or after a part of the
/// time that it has waited, and given up after the last.
const RETRY_NS: u64 = 25_000_000;
const RETRY_PART: u64 = 8;
const GIVE_UP_NS: u64 = 20_000_000_000;
/// Reasons for unknown layouts that are told apart, and how many bytes of one are told: the server's bound of a name.
const MAX_REASONS: usize = 4;
const MAX_REASON_BYTES: usize = 47;
/// Files that are remembered, for each language.
const MAX_FILES: usize = 8192;

/// What is known of one runtime of a program.
#[derive(Debug)]
enum RuntimeState {
    /// It may not have begun.
    Waiting {
        since_ns: u64,
        next_ns: u64,
    },
    Ready(Arc<dyn Reader>),
    /// Its layout is not known.
    Unknown,
}

impl RuntimeState {
    /// When one that waits is to be looked at.
    fn next_ns(&self) -> Option<u64> {
        match self {
            Self::Waiting { next_ns, .. } => Some(*next_ns),
            _ => None,
        }
    }

    fn reader(&self) -> Option<&Arc<dyn Reader>> {
        match self {
            Self::Ready(reader) => Some(reader),
            _ => None,
        }
    }
}

/// A program may have several runtimes.
#[derive(Debug, Default)]
struct ProgramRuntimes {
    of_languages: [Option<RuntimeState>; COUNT],
    described: Option<Box<so_runtime>>,
}

impl ProgramRuntimes {
    fn next_ns(&self) -> Option<u64> {
        self.of_languages
            .iter()
            .flatten()
            .filter_map(RuntimeState::next_ns)
            .min()
    }
}

/// The runtimes of all programs.
#[derive(Debug, Default)]
pub(super) struct Programs {
    known: BTreeMap<ProgramKey, ProgramRuntimes>,
    files: [KnownFiles; COUNT],
    /// Programs whose runtime has a layout that is not known, by what is wrong with it.
    unknown: BTreeMap<Box<str>, u64>,
    unknown_total: u64,
}

impl Programs {
    /// Who names frames, of all programs.
    pub(super) fn readers(&self) -> impl Iterator<Item = &Arc<dyn Reader>> {
        let states = self.known.values().flat_map(|program| &program.of_languages);
        states.flatten().filter_map(RuntimeState::reader)
    }

    /// Who names a program's frames of a language, by its place; nobody while it is not known.
    pub(super) fn reader(&self, key: ProgramKey, language: usize) -> Option<&Arc<dyn Reader>> {
        let program = self.known.get(&key)?;
        program.of_languages[language].as_ref().and_then(RuntimeState::reader)
    }

    /// Programs whose runtime has a layout that is not known, by what is wrong with it.
    pub(super) fn unknown(&self) -> impl Iterator<Item = (&str, u64)> {
        self.unknown.iter().map(|(reason, count)| (&**reason, *count))
    }

    /// How many they are.
    pub(super) fn unknown_total(&self) -> u64 {
        self.unknown_total
    }

    /// By what the kernel side walks a program's own code.
    pub(super) fn described(&self, key: ProgramKey) -> Option<&so_runtime> {
        self.known.get(&key)?.described.as_deref()
    }

    /// A program is gone.
    pub(super) fn forget(&mut self, key: ProgramKey) {
        self.known.remove(&key);
    }

    /// A program's executable memory has changed: looks whether a runtime is there.
    pub(super) fn meet(&mut self, key: ProgramKey, table: &Table, now_ns: u64) {
        for (number, language) in LANGUAGES.iter().enumerate() {
            let known = self.known.get(&key);
            let is_known = known.is_some_and(|program| program.of_languages[number].is_some());
            if !is_known && find(*language, key, table, &mut self.files[number]).is_some() {
                let program = self.known.entry(key).or_default();
                let (since_ns, next_ns) = (now_ns, now_ns);
                program.of_languages[number] = Some(RuntimeState::Waiting { since_ns, next_ns });
            }
            self.renew(*language, number, key, table, now_ns);
        }
        let known = self.known.get(&key);
        if known.is_some_and(|program| program.next_ns().is_some()) {
            self.look(key, table, now_ns);
        }
    }

    /// Reads a runtime again that has made code since; where that fails, it is looked at again as one that begins.
    fn renew(&mut self, language: &dyn Language, number: usize, key: ProgramKey, table: &Table, now_ns: u64) {
        let Some(program) = self.known.get_mut(&key) else {
            return;
        };
        let Some(RuntimeState::Ready(reader)) = &program.of_languages[number] else {
            return;
        };
        if !reader.lacks(&Library::made(key, table)) {
            return;
        }
        let found = find(language, key, table, &mut self.files[number]).zip(table.proc_id(key));
        let read = found.and_then(|((library, file), tgid)| guarded_for(tgid, language.reading(tgid, &library, &file)));
        program.of_languages[number] = Some(match read {
            Some(Ok(reader)) => {
                reader.describe(program.described.get_or_insert_default());
                RuntimeState::Ready(reader)
            }
            _ => RuntimeState::Waiting {
                since_ns: now_ns,
                next_ns: now_ns,
            },
        });
    }

    /// True where the program's run-time code may be about to be known: stacks through it wait for that.
    pub(super) fn is_waiting(&self, key: ProgramKey) -> bool {
        let waits = |(language, state): (&&dyn Language, &Option<RuntimeState>)| {
            language.walks_copies() && state.as_ref().and_then(RuntimeState::next_ns).is_some()
        };
        let program = self.known.get(&key);
        program.is_some_and(|program| LANGUAGES.iter().zip(&program.of_languages).any(waits))
    }

    /// When the next look at a runtime is due; none where there is none.
    pub(super) fn next_look_ns(&self) -> Option<u64> {
        self.known.values().filter_map(ProgramRuntimes::next_ns).min()
    }

    /// Looks again at runtimes that had not begun; gives the programs of which more is known since.
    pub(super) fn look_again(&mut self, table: &Table, now_ns: u64) -> Vec<ProgramKey> {
        let is_due = |program: &ProgramRuntimes| program.next_ns().is_some_and(|next_ns| next_ns <= now_ns);
        let due = self.known.iter().filter(|(_, program)| is_due(program));
        let due: Vec<ProgramKey> = due.map(|(key, _)| *key).collect();
        due.into_iter().filter(|key| self.look(*key, table, now_ns)).collect()
    }

    /// Looks at what waits of a program; true where that has an end.
    fn look(&mut self, key: ProgramKey, table: &Table, now_ns: u64) -> bool {
        let Some(tgid) = table.proc_id(key) else {
            return self.known.remove(&key).is_some();
        };
        let Some(program) = self.known.get_mut(&key) else {
            return false;
        };
        let mut has_changed = false;
        for (number, language) in LANGUAGES.iter().enumerate() {
            let Some(RuntimeState::Waiting { since_ns, next_ns }) = &mut program.of_languages[number] else {
                continue;
            };
            let waited_ns = now_ns.saturating_sub(*since_ns);
            *next_ns = now_ns + RETRY_NS.max(waited_ns / RETRY_PART);
            let found = find(*language, key, table, &mut self.files[number]);
            let read = found.and_then(|(library, file)| guarded_for(tgid, language.reading(tgid, &library, &file)));
            let state = match read {
                Some(Ok(reader)) => {
                    reader.describe(program.described.get_or_insert_default());
                    RuntimeState::Ready(reader)
                }
                Some(Err(reason)) if waited_ns >= GIVE_UP_NS => {
                    tracing::warn!(
                        reason,
                        tgid,
                        "cannot read a language's runtime: its frames have no names"
                    );
                    self.unknown_total += 1;
                    count_reason(&mut self.unknown, &reason);
                    RuntimeState::Unknown
                }
                _ => continue,
            };
            program.of_languages[number] = Some(state);
            has_changed = true;
        }
        has_changed
    }

    /// A program's runtime was read.
    #[cfg(test)]
    pub(super) fn know(&mut self, key: ProgramKey, language: usize, reader: Arc<dyn Reader>) {
        self.known.entry(key).or_default().of_languages[language] = Some(RuntimeState::Ready(reader));
    }
}

/// Counts a reason, without what is of one process alone.
fn count_reason(counts: &mut BTreeMap<Box<str>, u64>, reason: &str) {
    let lasting = reason.split(" at 0x").next().unwrap_or(reason);
    let lasting = &lasting[..lasting.floor_char_boundary(MAX_REASON_BYTES)];
    let is_room = counts.len() < MAX_REASONS || counts.contains_key(lasting);
    *counts
        .entry(if is_room { lasting } else { "other" }.into())
        .or_default() += 1;
}

/// A language's runtime, of a program's files; the number of those that are remembered has a limit.
fn find(
    language: &dyn Language,
    key: ProgramKey,
    table: &Table,
    files: &mut KnownFiles,
) -> Option<(Library, Arc<KnownFile>)> {
    if files.len() >= MAX_FILES {
        files.clear();
    }
    language.find(key, table, files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_few_and_of_no_single_process() {
        let mut counts = BTreeMap::new();
        for reason in [
            "Python 3.16: unknown layout".to_owned(),
            "Python 3.16: unknown layout".to_owned(),
            "a thread at 0x7f00 makes no sense".to_owned(),
            "a thread at 0x7f08 makes no sense".to_owned(),
            "é".repeat(40),
            "fourth".to_owned(),
            "fifth".to_owned(),
            "sixth".to_owned(),
        ] {
            count_reason(&mut counts, &reason);
        }
        let long = "é".repeat(MAX_REASON_BYTES / 2);
        let expected = [
            ("Python 3.16: unknown layout", 2),
            ("a thread", 2),
            ("fourth", 1),
            ("other", 2),
            (long.as_str(), 1),
        ];
        assert_eq!(counts, expected.map(|(reason, count)| (reason.into(), count)).into());
    }
}
