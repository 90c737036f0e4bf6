//! What rows of `samples` have in common with each other, each once, by codes.
//!
//! In: names, ids, and what makes up a series or thread. Out: a small number for each, the same for the same, and what it stands for.

use super::ids::IdMap;
use crate::hash::MixState;
use std::collections::HashMap;
use std::hash::Hash;
use std::ops::Index;
use std::sync::Arc;

/// Names, each once, by code.
#[derive(Debug, Default)]
pub(super) struct Names {
    codes: HashMap<Arc<str>, u32, foldhash::fast::RandomState>,
    texts: Vec<Arc<str>>,
}

impl Names {
    pub(super) fn code(&mut self, text: &str) -> u32 {
        if let Some(code) = self.codes.get(text) {
            return *code;
        }
        let code = self.texts.len() as u32;
        let text: Arc<str> = text.into();
        self.texts.push(text.clone());
        self.codes.insert(text, code);
        code
    }

    pub(super) fn text(&self, code: u32) -> &str {
        &self.texts[code as usize]
    }

    pub(super) fn len(&self) -> usize {
        self.texts.len()
    }
}

/// Values, each once, by code.
#[derive(Debug)]
pub(super) struct Interned<T> {
    codes: HashMap<T, u32, MixState>,
    values: Vec<T>,
}

impl<T> Default for Interned<T> {
    fn default() -> Self {
        Self {
            codes: HashMap::default(),
            values: Vec::new(),
        }
    }
}

impl<T: Copy + Eq + Hash> Interned<T> {
    pub(super) fn code(&mut self, value: T) -> u32 {
        let next = self.values.len() as u32;
        let code = *self.codes.entry(value).or_insert(next);
        if code == next {
            self.values.push(value);
        }
        code
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }
}

/// Ids, each once, by code: as [`Interned`], for many.
#[derive(Debug, Default)]
pub(super) struct InternedIds {
    codes: IdMap<u32>,
    ids: Vec<i64>,
}

impl InternedIds {
    /// Makes room for so many.
    pub(super) fn reserve(&mut self, ids: usize) {
        self.codes.reserve(ids);
        self.ids.reserve(ids);
    }

    #[inline]
    pub(super) fn code(&mut self, id: i64) -> u32 {
        let next = self.ids.len() as u32;
        let code = self.codes.get_or_insert(id, next);
        if code == next {
            self.ids.push(id);
        }
        code
    }

    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }
}

impl Index<u32> for InternedIds {
    type Output = i64;

    fn index(&self, code: u32) -> &i64 {
        &self.ids[code as usize]
    }
}

impl<T> Index<u32> for Interned<T> {
    type Output = T;

    fn index(&self, code: u32) -> &T {
        &self.values[code as usize]
    }
}

/// By which rows follow each other in a file, before thread and time. Names by their codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Series {
    pub(super) kind: u32,
    pub(super) service: u32,
    pub(super) id: i64,
}

/// Where a sample comes from: what all samples of a thread have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Origin {
    /// By its code.
    pub(super) series: u32,
    pub(super) node: u32,
    pub(super) thread: u32,
    pub(super) process_id: i64,
    pub(super) tid: Option<i64>,
}

/// What else a sample says beside its time and stack: few are distinct.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Manner {
    pub(super) mode: u32,
    pub(super) cpu: Option<i64>,
    pub(super) value: i64,
}

/// What the codes of rows stand for.
#[derive(Debug, Default)]
pub(super) struct Book {
    pub(super) names: Names,
    pub(super) series: Interned<Series>,
    pub(super) origins: Interned<Origin>,
    pub(super) stacks: InternedIds,
    pub(super) manners: Interned<Manner>,
}

impl Book {
    pub(super) fn series_of(&self, origin: u32) -> Series {
        self.series[self.origins[origin].series]
    }

    /// By which series follow each other in a file.
    pub(super) fn order(&self, series: Series) -> (&str, &str, i64) {
        (self.names.text(series.kind), self.names.text(series.service), series.id)
    }

    /// Entries without names, of which there are few.
    pub(super) fn len(&self) -> usize {
        self.series.len() + self.origins.len() + self.stacks.len() + self.manners.len()
    }

    /// Leaves names only, and returns what the other codes stood for.
    pub(super) fn begin_anew(&mut self) -> Self {
        let names = std::mem::take(&mut self.names);
        let old = std::mem::take(self);
        self.names = names;
        old
    }
}
