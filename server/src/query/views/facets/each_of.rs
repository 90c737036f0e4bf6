//! Hands each row to several accumulators.

use crate::column::coded::Projection;
use crate::query::count::partial::Partial;
use crate::query::count::partial::wire::{Malformed, PartialReader, PartialWriter};
use crate::query::count::scan::{Accumulator, Rows};
use crate::query::limits::error::QueryError;
use crate::query::plan::resolution::TimeResolution;

/// Collectors of one kind, that look at the same times.
#[derive(Debug, Clone)]
pub(crate) struct EachOf<C> {
    pub(crate) each: Vec<C>,
    /// All columns, each once, and the places of each accumulator's among them.
    columns: Vec<Projection>,
    places: Vec<Vec<usize>>,
}

impl<C: Accumulator> EachOf<C> {
    pub(crate) fn new(each: impl Iterator<Item = C>) -> EachOf<C> {
        let each: Vec<C> = each.collect();
        let mut columns: Vec<Projection> = Vec::new();
        let mut place = |column: Projection| {
            let known = columns.iter().position(|known| *known == column);
            known.unwrap_or_else(|| {
                columns.push(column);
                columns.len() - 1
            })
        };
        let places = each
            .iter()
            .map(|one| one.columns().into_iter().map(&mut place).collect());
        let places = places.collect();
        EachOf { each, columns, places }
    }
}

impl<C: Accumulator> Accumulator for EachOf<C> {
    fn columns(&self) -> Vec<Projection> {
        self.columns.clone()
    }

    fn when(&self) -> TimeResolution {
        self.each.first().map_or(TimeResolution::Window, Accumulator::when)
    }

    fn cuts(&self) -> Vec<i64> {
        self.each.first().map(Accumulator::cuts).unwrap_or_default()
    }

    fn checks_times(&self) -> bool {
        self.each.iter().all(Accumulator::checks_times)
    }

    fn add(&mut self, rows: &Rows) -> Result<(), QueryError> {
        for (one, places) in self.each.iter_mut().zip(&self.places) {
            one.add(&rows.at(places))?;
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.each.iter().map(Accumulator::bytes).sum()
    }

    fn merge(&mut self, other: Self) -> Result<(), QueryError> {
        for (one, other) in self.each.iter_mut().zip(other.each) {
            one.merge(other)?;
        }
        Ok(())
    }
}

impl<C: Partial> Partial for EachOf<C> {
    fn write(self, to: &mut PartialWriter) -> Result<(), QueryError> {
        self.each.into_iter().try_for_each(|one| one.write(to))
    }

    fn read(&mut self, from: &mut PartialReader<'_>) -> Result<(), Malformed> {
        self.each.iter_mut().try_for_each(|one| one.read(from))
    }
}
