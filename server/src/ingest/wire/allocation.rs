//! What the vectors of a request may take, counted before they grow.

use crate::ingest::wire::protobuf::{Fault, Field};

/// A vector that grows has room for this many entries at least.
const MIN_ENTRIES: usize = 4;

/// Memory that a request may still take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AllocationBudget {
    left: usize,
    limit: usize,
}

impl AllocationBudget {
    pub(crate) fn new(limit: usize) -> Self {
        Self { left: limit, limit }
    }

    #[inline]
    pub(crate) fn take(&mut self, bytes: usize) -> Result<(), Fault> {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(Fault::OverBudget {
                limit_bytes: self.limit,
            }),
        }
    }

    /// Makes room for this many more entries.
    pub(crate) fn reserve<T>(&mut self, table: &mut Vec<T>, entries: usize) -> Result<(), Fault> {
        self.take(entries.saturating_mul(2 * size_of::<T>()))?;
        table.reserve(entries);
        Ok(())
    }

    /// Adds the integers of a repeated field.
    pub(crate) fn push_ints(&mut self, table: &mut Vec<i32>, field: Field<'_>) -> Result<(), Fault> {
        // One look for all of them, at their largest number.
        let most = field.most_ints();
        self.take(2 * size_of::<i32>() * most)?;
        table.reserve(most);
        field.ints(|int| {
            table.push(int as i32);
            Ok(())
        })
    }

    #[inline]
    pub(crate) fn push<T>(&mut self, table: &mut Vec<T>, entry: T) -> Result<(), Fault> {
        if table.len() == table.capacity() {
            // What is there is copied to twice as much.
            self.take(2 * size_of::<T>() * table.len().max(MIN_ENTRIES))?;
            table.reserve(MIN_ENTRIES);
        }
        table.push(entry);
        Ok(())
    }
}
