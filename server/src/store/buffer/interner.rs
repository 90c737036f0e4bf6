//! What rows of `samples` have in common with each other, each once, by codes.
//!
//! In: names, ids, and what makes up a series or thread. Out: a small number for each, the same for the same, and
//! what it stands for.

use crate::hash::MixState;
use crate::store::buffer::arriving::Amount;
use crate::store::buffer::id_map::IdMap;
use std::collections::HashMap;
use std::hash::Hash;
use std::ops::Index;
use std::sync::Arc;

/// Names, each once, by code.
#[derive(Debug, Default)]
pub(crate) struct Names {
    codes: HashMap<Arc<str>, u32, foldhash::fast::RandomState>,
    texts: Vec<Arc<str>>,
}

impl Names {
    pub(crate) fn code(&mut self, text: &str) -> u32 {
        if let Some(code) = self.codes.get(text) {
            return *code;
        }
        let code = self.texts.len() as u32;
        let text: Arc<str> = text.into();
        self.texts.push(text.clone());
        self.codes.insert(text, code);
        code
    }

    pub(crate) fn text(&self, code: u32) -> &str {
        &self.texts[code as usize]
    }

    pub(crate) fn len(&self) -> usize {
        self.texts.len()
    }
}

/// Values, each once, by code.
#[derive(Debug)]
pub(crate) struct Interned<T> {
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
    pub(crate) fn code(&mut self, value: T) -> u32 {
        let next = self.values.len() as u32;
        let code = *self.codes.entry(value).or_insert(next);
        if code == next {
            self.values.push(value);
        }
        code
    }

    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }
}

/// Ids, each once, by code: as [`Interned`], for many.
#[derive(Debug, Default)]
pub(crate) struct InternedIds {
    codes: IdMap<u32>,
    ids: Vec<i64>,
}

impl InternedIds {
    /// Makes room for so many.
    pub(crate) fn reserve(&mut self, ids: usize) {
        self.codes.reserve(ids);
        self.ids.reserve(ids);
    }

    #[inline]
    pub(crate) fn code(&mut self, id: i64) -> u32 {
        let next = self.ids.len() as u32;
        let code = self.codes.get_or_insert(id, next);
        if code == next {
            self.ids.push(id);
        }
        code
    }

    pub(crate) fn len(&self) -> usize {
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
pub(crate) struct Series {
    pub(crate) kind: u32,
    pub(crate) service: u32,
    pub(crate) id: i64,
}

/// Where a sample comes from: what all samples of a thread have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ThreadKey {
    /// By its code.
    pub(crate) series: u32,
    pub(crate) node: u32,
    pub(crate) thread: u32,
    pub(crate) process_id: i64,
    pub(crate) tid: Option<i64>,
}

/// What else a sample says beside its time and stack: few are distinct, but for waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct SampleAttributes {
    pub(crate) mode: u32,
    pub(crate) cpu: Option<i64>,
    pub(crate) amount: Amount,
}

/// What the codes of rows stand for.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    pub(crate) names: Names,
    pub(crate) series: Interned<Series>,
    pub(crate) origins: Interned<ThreadKey>,
    pub(crate) stacks: InternedIds,
    pub(crate) attribute_sets: Interned<SampleAttributes>,
}

impl Interner {
    pub(crate) fn series_of(&self, origin: u32) -> Series {
        self.series[self.origins[origin].series]
    }

    /// By which series follow each other in a file.
    pub(crate) fn order(&self, series: Series) -> (&str, &str, i64) {
        (self.names.text(series.kind), self.names.text(series.service), series.id)
    }

    /// Entries without names, of which there are few, as many stacks as take their memory.
    pub(crate) fn len(&self) -> usize {
        // Twice the value, and the table's slack.
        const OF_ATTRIBUTE_SET: usize = 3;
        self.series.len() + self.origins.len() + self.stacks.len() + OF_ATTRIBUTE_SET * self.attribute_sets.len()
    }

    /// Leaves names only, and returns what the other codes stood for.
    pub(crate) fn begin_anew(&mut self) -> Self {
        let names = std::mem::take(&mut self.names);
        let old = std::mem::take(self);
        self.names = names;
        old
    }
}
