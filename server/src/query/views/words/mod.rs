//! One word among the values of all labels and the names of functions, for whoever types it.
//!
//! In: a word, a window. Out: the best hits, and how many there are of each label. Counts no samples.

pub(crate) mod rank;

use crate::label::{Label, LabelTable, attribute};
use crate::query::ask::question::Question;
use crate::query::limits::error::QueryError;
use crate::query::limits::reservation::Reservation;
use crate::query::plan::days::Days;
use crate::query::plan::small_tables::collect_rows;
use crate::query::plan::steps::Steps;
use crate::query::tree::frame::{Frame, Kind, Name};
use crate::query::views::by_label::{Extra, by_label};
use crate::query::views::engine::Engine;
use crate::store::Snapshot;
use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use rank::{Rank, Word};
use std::collections::{BTreeMap, BinaryHeap, HashSet};

/// Distinct hits that are told apart; beyond them counts are too small, and the answer says so.
const MOST_HITS: usize = 200_000;

/// Threads are looked for in a window of at most this length: their names stand with samples alone.
const THREADS_NS: i64 = 6 * 3_600 * 1_000_000_000;

/// Distinct lists of attributes that are looked at.
const MOST_LISTS: usize = 100_000;

/// Memory of a hit with its table, without its text, in bytes.
const HIT_BYTES: usize = 96;

/// Each sample has one of these.
const MODES: [&str; 2] = ["user", "kernel"];

/// The name that functions have among labels.
const FUNCTION: &str = "function";

/// What has the word.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hit {
    /// How well it fits the word.
    pub rank: Rank,
    /// Functions come behind labels.
    is_function: bool,
    length: usize,
    /// The value of the label, or the function's name.
    pub value: String,
    /// `function`, or a label's name.
    pub label: String,
    /// Of functions: module and kind.
    pub frame: Option<(String, Kind)>,
}

/// The answer.
#[derive(Debug, Default)]
pub struct Found {
    /// The best first.
    pub hits: Vec<Hit>,
    /// Of each label how many values have the word.
    pub counts: BTreeMap<String, usize>,
    /// There are no more than were counted.
    pub complete: bool,
    /// Labels in which it was not looked for.
    pub left_out: Vec<&'static str>,
}

/// Label and value of a hit; of a function its module and kind too.
type HitKey = (String, String, Option<(String, Kind)>);

/// Hits as they come.
struct Hits {
    word: Word,
    limit: usize,
    /// The worst on top.
    best: BinaryHeap<Hit>,
    known: HashSet<HitKey, foldhash::fast::RandomState>,
    texts_bytes: usize,
    held: Reservation,
    counts: BTreeMap<String, usize>,
    complete: bool,
    reserved: Result<(), QueryError>,
}

impl Hits {
    fn look_at(&mut self, label: &str, value: &str, frame: Option<&Name>) {
        let Some(rank) = self.word.rank(value) else { return };
        let frame = frame.map(|name| (name.module.to_string(), name.kind));
        let key = (label.to_owned(), value.to_owned(), frame);
        if self.reserved.is_err() || self.known.contains(&key) {
            return;
        }
        if self.known.len() >= MOST_HITS {
            self.complete = false;
            return;
        }
        let hit = Hit {
            rank,
            is_function: key.2.is_some(),
            length: value.len(),
            value: key.1.clone(),
            label: key.0.clone(),
            frame: key.2.clone(),
        };
        self.texts_bytes += label.len() + value.len();
        *self.counts.entry(key.0.clone()).or_default() += 1;
        self.known.insert(key);
        self.best.push(hit);
        if self.best.len() > self.limit {
            self.best.pop();
        }
        if self.known.len() % 256 == 1 {
            self.reserved = self.held.resize(self.known.len() * HIT_BYTES + self.texts_bytes);
        }
    }
}

/// Answers with the `limit` best hits of a word in the question's window. Its selector does not matter.
pub async fn search(
    engine: &Engine,
    snapshot: &Snapshot,
    question: &Question,
    word: &str,
    limit: usize,
) -> Result<Found, QueryError> {
    let Some(word) = Word::new(word) else {
        return Ok(Found {
            complete: true,
            ..Found::default()
        });
    };
    let days = Days::of(question.window);
    let mut hits = Hits {
        word,
        limit,
        best: BinaryHeap::new(),
        known: HashSet::default(),
        texts_bytes: 0,
        held: Reservation::new(snapshot, "hits of a word"),
        counts: BTreeMap::new(),
        complete: true,
        reserved: Ok(()),
    };
    of_series(snapshot, &days, &mut hits).await?;
    of_processes(snapshot, &days, &mut hits).await?;
    of_functions(snapshot, &days, &mut hits).await?;
    // Names of threads stand with samples alone, and roll-ups have none.
    let mut left_out = Vec::new();
    let threads = match question.window.length_ns() <= THREADS_NS {
        false => None,
        true => match of_threads(engine, snapshot, question).await {
            Err(QueryError::BadParameter { .. }) => None,
            threads => Some(threads?),
        },
    };
    match threads {
        None => left_out.push(Label::Thread.column()),
        Some(names) => names
            .iter()
            .for_each(|name| hits.look_at(Label::Thread.column(), name, None)),
    }
    hits.reserved?;
    Ok(Found {
        hits: hits.best.into_sorted_vec(),
        counts: hits.counts,
        complete: hits.complete,
        left_out,
    })
}

async fn of_series(snapshot: &Snapshot, days: &Days, hits: &mut Hits) -> Result<(), QueryError> {
    let labels: Vec<Label> = Label::ALL
        .into_iter()
        .filter(|label| label.home() == LabelTable::Series)
        .collect();
    let attributes = labels.len();
    let columns: Vec<&str> = labels.iter().map(|label| label.column()).chain(["labels"]).collect();
    let mut lists: HashSet<String> = HashSet::new();
    let mut has_modes = false;
    collect_rows(snapshot, "series", days.filter(), &columns, |batch| {
        if !has_modes && batch.num_rows() > 0 {
            has_modes = true;
            MODES
                .iter()
                .for_each(|mode| hits.look_at(Label::Mode.column(), mode, None));
        }
        for (label, column) in labels.iter().zip(batch.columns()) {
            let mut before = "";
            for value in column.as_string::<i32>().iter().flatten() {
                if value != before {
                    hits.look_at(label.column(), value, None);
                }
                before = value;
            }
        }
        for list in batch.column(attributes).as_string::<i32>().iter().flatten() {
            if list.is_empty() || lists.contains(list) {
                continue;
            }
            if lists.len() >= MOST_LISTS {
                hits.complete = false;
                continue;
            }
            lists.insert(list.to_owned());
            for (name, value) in attribute::all_in(list) {
                // The first one is the attribute's own.
                if let Some(label) = attribute::label_names(&name).first() {
                    hits.look_at(label, &value, None);
                }
            }
        }
    })
    .await
}

async fn of_processes(snapshot: &Snapshot, days: &Days, hits: &mut Hits) -> Result<(), QueryError> {
    let column = Label::Tgid.column();
    collect_rows(snapshot, "processes", days.filter(), &[column], |batch| {
        for tgid in batch.column(0).as_primitive::<Int64Type>().iter().flatten() {
            hits.look_at(column, &tgid.to_string(), None);
        }
    })
    .await
}

async fn of_functions(snapshot: &Snapshot, days: &Days, hits: &mut Hits) -> Result<(), QueryError> {
    let columns = ["kind", "module", "function"];
    collect_rows(snapshot, "frames", days.filter(), &columns, |batch| {
        let text = |column: usize| batch.column(column).as_string::<i32>();
        let (kinds, modules, functions) = (text(0), text(1), text(2));
        for row in 0..batch.num_rows() {
            let function = functions.value(row);
            if hits.word.rank(function).is_some() {
                let kind = Kind::of_frame(kinds.value(row));
                let frame = Frame::new(kind, modules.value(row), "", function, None);
                hits.look_at(FUNCTION, function, Some(&frame.name));
            }
        }
    })
    .await
}

async fn of_threads(engine: &Engine, snapshot: &Snapshot, question: &Question) -> Result<Vec<String>, QueryError> {
    let everything = Question {
        selector: Default::default(),
        ..question.clone()
    };
    let steps = Steps::one(question.window);
    let grouped = by_label(engine, snapshot, &everything, Label::Thread, steps, Extra::default()).await?;
    Ok(grouped.groups.into_iter().map(|(name, _)| name.to_string()).collect())
}
