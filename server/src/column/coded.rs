//! A column as codes: a code a row, and the value of each code. Pure.

use crate::column::list::CodeArray;
use crate::column::malformed::MalformedFile;
use crate::column::runs::ABSENT;
use crate::hash::MixState;
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Int32Type, Int64Type};
use std::collections::HashMap;

/// The values that codes stand for. A code that is as large as there are values stands for "absent".
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Values {
    Numbers(Vec<i64>),
    Texts(Vec<String>),
}

impl Values {
    pub(crate) fn len(&self) -> usize {
        match self {
            Values::Numbers(values) => values.len(),
            Values::Texts(values) => values.len(),
        }
    }

    /// How many different codes there may be, "absent" included.
    pub(crate) fn distinct(&self) -> usize {
        self.len() + 1
    }

    /// The value of a code as a number; `None` where it is absent or a text.
    pub(crate) fn number(&self, code: usize) -> Option<i64> {
        match self {
            Values::Numbers(values) => values.get(code).copied(),
            Values::Texts(_) => None,
        }
    }
}

/// A column: a code a row.
#[derive(Debug, Clone)]
pub(crate) struct CodedColumn {
    pub(crate) codes: CodeArray,
    pub(crate) values: Values,
}

impl CodedColumn {
    /// How many different codes there may be, "absent" included.
    pub(crate) fn distinct(&self) -> usize {
        self.values.distinct()
    }

    /// The value of a code as text; an absent one is the empty text.
    pub(crate) fn text(&self, code: usize) -> std::borrow::Cow<'_, str> {
        match &self.values {
            Values::Numbers(values) => values.get(code).map(i64::to_string).unwrap_or_default().into(),
            Values::Texts(values) => values.get(code).map_or("", String::as_str).into(),
        }
    }

    /// The value of a code as a number; `None` where it is absent or a text.
    pub(crate) fn number(&self, code: usize) -> Option<i64> {
        self.values.number(code)
    }

    /// Of numbers, of which some may be absent.
    pub(crate) fn of_numbers(numbers: impl ExactSizeIterator<Item = Option<i64>>) -> CodedColumn {
        let (codes, values) = code_numbers(numbers);
        CodedColumn {
            codes: with_absent(codes, values.len()).into(),
            values: Values::Numbers(values),
        }
    }

    /// A column of which every row is absent.
    pub(crate) fn absent(rows: usize) -> CodedColumn {
        CodedColumn {
            codes: CodeArray::Bytes(vec![0; rows]),
            values: Values::Numbers(Vec::new()),
        }
    }

    pub(crate) fn of_array(column: &ArrayRef) -> Result<CodedColumn, MalformedFile> {
        if let Some(numbers) = column.as_primitive_opt::<Int64Type>() {
            return Ok(CodedColumn::of_numbers(numbers.iter()));
        }
        if let Some(numbers) = column.as_primitive_opt::<Int32Type>() {
            return Ok(CodedColumn::of_numbers(numbers.iter().map(|n| n.map(i64::from))));
        }
        let texts = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        let column = arrow::compute::cast(column, &texts).map_err(|error| MalformedFile::new(error.to_string()))?;
        let dictionary = column.as_dictionary::<Int32Type>();
        let values = dictionary.values().as_string::<i32>();
        let absent = values.len() as u32;
        let codes = dictionary.keys().iter().map(|key| key.map_or(absent, |key| key as u32));
        Ok(CodedColumn {
            codes: codes.collect::<Vec<u32>>().into(),
            values: Values::Texts(
                values
                    .iter()
                    .map(|value| value.unwrap_or_default().to_owned())
                    .collect(),
            ),
        })
    }
}

/// A code for each number, [`ABSENT`] for one that is absent, and the numbers that they stand for. Runs of equal ones
/// are looked up once.
pub(crate) fn code_numbers(numbers: impl ExactSizeIterator<Item = Option<i64>>) -> (Vec<u32>, Vec<i64>) {
    let mut index: HashMap<i64, u32, MixState> = HashMap::default();
    let mut values = Vec::new();
    let mut codes = Vec::with_capacity(numbers.len());
    let mut last = None;
    for number in numbers {
        let code = match (number, last) {
            (Some(number), Some((before, code))) if number == before => code,
            (Some(number), _) => {
                let code = *index.entry(number).or_insert_with(|| {
                    values.push(number);
                    values.len() as u32 - 1
                });
                last = Some((number, code));
                code
            }
            (None, _) => ABSENT,
        };
        codes.push(code);
    }
    (codes, values)
}

/// [`ABSENT`] to the code of "absent".
fn with_absent(mut codes: Vec<u32>, values: usize) -> Vec<u32> {
    for code in codes.iter_mut().filter(|code| **code == ABSENT) {
        *code = values as u32;
    }
    codes
}

/// A column in the form that was asked for.
#[derive(Debug, Clone)]
pub(crate) enum Column {
    Codes(CodedColumn),
    /// Of a column without absent values.
    Numbers(Vec<i64>),
}

/// Whether a column is read as codes or as numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Codes,
    Numbers,
}

/// A column to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Projection {
    pub(crate) name: &'static str,
    pub(crate) form: Form,
}
