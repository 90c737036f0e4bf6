//! What queries share: their turns, and what is kept from one to the next. One engine serves the whole process.

use crate::query::ask::question::{Question, RuntimeFrames};
use crate::query::limits::admission::{Admission, Limits};
use crate::query::limits::error::QueryError;
use crate::query::tree::stack_cache::StackCache;
use crate::query::views::selected::exchange::Spread;
use crate::query::views::type_table::Types;
use std::future::Future;

/// Runs queries within limits, and keeps the dictionary entries that they share.
#[derive(Debug)]
pub struct Engine {
    /// Lets queries run, or wait for their turn.
    pub admission: Admission,
    folded: StackCache,
    /// With runtimes' own frames.
    whole: StackCache,
    pub(crate) types: Types,
    /// Over which servers it counts.
    pub(crate) spread: Spread,
}

impl Default for Engine {
    fn default() -> Self {
        Engine::new(Limits::default())
    }
}

impl Engine {
    /// Within these limits; nothing is kept yet, and no query runs.
    pub fn new(limits: Limits) -> Engine {
        Engine {
            folded: StackCache::new(limits.dictionary_bytes, RuntimeFrames::Fold),
            whole: StackCache::new(limits.dictionary_bytes, RuntimeFrames::Show),
            types: Types::default(),
            spread: Spread::default(),
            admission: Admission::new(limits),
        }
    }

    /// Has other servers count a part of what large questions ask for.
    #[must_use]
    pub fn spreading(self, spread: Spread) -> Engine {
        Engine { spread, ..self }
    }

    /// The stacks that a question is about. Those with runtimes' own frames are kept until somebody asks without them:
    /// there is memory for one of the two.
    pub(crate) fn dictionary(&self, question: &Question) -> &StackCache {
        match question.runtime_frames {
            RuntimeFrames::Show => &self.whole,
            RuntimeFrames::Fold => {
                self.whole.clear();
                &self.folded
            }
        }
    }

    /// Bounds of time, memory and size.
    pub fn limits(&self) -> &Limits {
        &self.admission.limits
    }

    /// See [`Admission::run`].
    ///
    /// # Errors
    /// Those of [`Admission::run`].
    pub async fn run<T: Send + 'static>(
        &self,
        query: impl Future<Output = Result<T, QueryError>> + Send + 'static,
    ) -> Result<T, QueryError> {
        self.admission.run(query).await
    }
}
