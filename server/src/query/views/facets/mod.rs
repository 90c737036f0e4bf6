//! Charts and tables by several labels, of samples that are read once.
//!
//! In: an engine, a snapshot, a question and labels. Out: of each label what [`series`](super::series) and
//! [`top`](super::top) answer. Judges nothing.

pub(crate) mod each_of;

use crate::label::Label;
use crate::query::ask::question::Question;
use crate::query::limits::error::QueryError;
use crate::query::plan::steps::Steps;
use crate::query::views::by_label::{Charted, Extra, charted};
use crate::query::views::engine::Engine;
use crate::query::views::matching::{FrameMatch, matching_stacks};
use crate::query::views::selected::senders::observe;
use crate::query::views::series::{Series, chart_of};
use crate::query::views::top::{By, Top, ranked, rows_of};
use crate::store::Snapshot;

/// Most labels of one answer.
pub const MOST_FACETS: usize = 8;

/// What is wanted of each label.
#[derive(Debug)]
pub struct Facets {
    /// The labels that are asked for, each a facet.
    pub by: Vec<Label>,
    /// Steps of the charts; none: no charts are wanted.
    pub steps: Option<Steps>,
    /// Tables are wanted.
    pub tables: bool,
    /// Most lines of a chart, and rows of a table.
    pub limit: usize,
    /// Only samples whose stack has such a frame.
    pub matching: Option<FrameMatch>,
}

/// What one label has.
#[derive(Debug)]
pub struct Facet {
    /// The label whose values are told apart.
    pub by: Label,
    /// Its chart, where charts are asked for.
    pub series: Option<Series>,
    /// Its largest values, where they are asked for.
    pub top: Option<Top>,
}

/// Answers with the charts and tables of each label, in their order.
pub async fn facets(
    engine: &Engine,
    snapshot: &Snapshot,
    question: Question,
    wanted: Facets,
) -> Result<Vec<Facet>, QueryError> {
    let matched = match wanted.matching {
        Some(frame) => Some(matching_stacks(engine, snapshot, &question, frame).await?),
        None => None,
    };
    let kind = engine.kind(snapshot, &question).await?;
    let extra = Extra {
        only: matched.as_ref().map(|matched| matched.stacks.clone()),
        quality: wanted.tables,
    };
    let whole = Steps::one(question.window);
    let steps = wanted.steps.unwrap_or(whole);
    // What is observed in steps need not add up to the last bit of what is in all of the window.
    let (groups, of_steps, of_whole) = tokio::try_join!(
        charted(engine, snapshot, &question, &wanted.by, (steps, wanted.limit), extra),
        observe(snapshot, &question, steps, kind.marked),
        observe(snapshot, &question, whole, kind.marked),
    )?;
    let facets = wanted.by.into_iter().zip(groups).map(|(by, counted)| {
        let samples = matched
            .as_ref()
            .map_or(counted.whole.periods.samples, |matched| matched.samples);
        let series = wanted.steps.map(|steps| {
            let exposure = of_steps.clone().with_samples(samples, steps);
            let how = (by, steps, wanted.limit);
            let of_chart = Charted {
                // A table needs it too.
                whole: counted.whole.clone(),
                busiest: counted.busiest.clone(),
            };
            chart_of(question.clone(), how, of_chart, &exposure, kind.unit.clone())
        });
        let top = wanted.tables.then(|| {
            let exposure = of_whole.clone().with_samples(samples, whole);
            let (whole, rows) = rows_of(counted.whole, &exposure, &kind.unit);
            ranked(By::Label(by), whole, rows, wanted.limit)
        });
        Facet { by, series, top }
    });
    Ok(facets.collect())
}
