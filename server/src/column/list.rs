//! Codes in as few bytes as all of them need: most columns have few values, and what counting takes is mostly the way
//! from memory. Pure.

use crate::column::runs::run_length;
use std::borrow::Cow;

/// A code of some width.
pub(crate) trait Code: Copy + Default + Ord {
    const BITS: usize;

    /// Its lowest bits.
    fn of(code: u32) -> Self;

    fn index(self) -> usize;

    fn list(codes: Vec<Self>) -> CodeArray;
}

macro_rules! code {
    ($code:ty, $list:ident) => {
        impl Code for $code {
            const BITS: usize = <$code>::BITS as usize;

            fn of(code: u32) -> Self {
                code as $code
            }

            fn index(self) -> usize {
                self as usize
            }

            fn list(codes: Vec<Self>) -> CodeArray {
                CodeArray::$list(codes)
            }
        }
    };
}

code!(u8, Bytes);

code!(u16, Shorts);

code!(u32, Words);

/// A code a row.
#[derive(Debug, Clone)]
pub(crate) enum CodeArray {
    Bytes(Vec<u8>),
    Shorts(Vec<u16>),
    Words(Vec<u32>),
}

/// Does the same with the codes of a [`CodeArray`], whatever their width.
macro_rules! with_codes {
    ($list:expr, $codes:ident => $body:expr) => {
        match $list {
            $crate::column::list::CodeArray::Bytes($codes) => $body,
            $crate::column::list::CodeArray::Shorts($codes) => $body,
            $crate::column::list::CodeArray::Words($codes) => $body,
        }
    };
}

pub(crate) use with_codes;

impl CodeArray {
    pub(crate) fn len(&self) -> usize {
        with_codes!(self, codes => codes.len())
    }

    /// The code of a row.
    pub(crate) fn at(&self, row: usize) -> u32 {
        with_codes!(self, codes => codes[row].index() as u32)
    }

    /// All of them, in four bytes each.
    pub(crate) fn words(&self) -> Cow<'_, [u32]> {
        match self {
            CodeArray::Bytes(codes) => codes.iter().map(|code| u32::from(*code)).collect(),
            CodeArray::Shorts(codes) => codes.iter().map(|code| u32::from(*code)).collect(),
            CodeArray::Words(codes) => codes.into(),
        }
    }

    pub(crate) fn into_words(self) -> Vec<u32> {
        match self {
            CodeArray::Words(codes) => codes,
            other => other.words().into_owned(),
        }
    }

    /// How many from the first on are equal.
    pub(crate) fn first_run(&self) -> usize {
        with_codes!(self, codes => {
            codes.first().map_or(0, |first| run_length(codes, |code| code == *first))
        })
    }

    /// Of each row the value of its code.
    pub(crate) fn map<T: Copy>(&self, of_code: &[T]) -> Vec<T> {
        with_codes!(self, codes => codes.iter().map(|code| of_code[code.index()]).collect())
    }

    /// The rows that are kept, so many.
    pub(crate) fn only(&self, keep: &[bool], count: usize) -> CodeArray {
        with_codes!(self, codes => Code::list(only(codes, keep, count)))
    }
}

impl From<Vec<u32>> for CodeArray {
    fn from(codes: Vec<u32>) -> CodeArray {
        CodeArray::Words(codes)
    }
}

/// The values that are kept, `count` of them. Each is written, and stays where it is kept: whether the next one is
/// cannot be foretold.
pub(crate) fn only<T: Copy + Default>(values: &[T], keep: &[bool], count: usize) -> Vec<T> {
    let mut kept = vec![T::default(); count + 1];
    let mut at = 0;
    for (value, keep) in values.iter().zip(keep) {
        kept[at] = *value;
        at += usize::from(*keep);
    }
    kept.truncate(count);
    kept
}
