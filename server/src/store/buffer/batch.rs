//! One accepted batch: its rows, its sender, and how it ends.

use crate::store::buffer::arriving::FreshSamples;
use crate::store::buffer::quota::Quota;
use crate::store::buffer::report::BatchRow;
use crate::store::buffer::sender_window::Owner;
use crate::store::table::schema::Table;
use arrow::array::RecordBatch;
use std::sync::Arc;

/// The rows of one accepted batch. Every record batch has its table's whole schema (partition column included), and
/// holds rows of one partition only; of `samples` and `batches` there are none, their rows are [`Rows::samples`] and
/// [`Rows::batch`].
#[derive(Debug, Clone, Default)]
pub struct Rows {
    /// Rows of `samples`, those of one hour together.
    pub samples: Vec<FreshSamples>,
    /// Rows of the other tables, by the table's index.
    pub tables: [Vec<RecordBatch>; Table::COUNT],
    /// The sender's report of the batch, where there is one.
    pub batch: Option<BatchRow>,
    /// What [`Store::known_epoch`] was before rows were left out since [`Store::known_rows`] has them; none: all are
    /// there.
    pub relies_on: Option<u64>,
    /// Who sent it.
    pub sender: Sender,
    /// Bytes of the request that the batch came in, as OTLP in protobuf; of several batches of one, each has its part.
    pub otlp_bytes: u64,
    /// The time of samples that were sent without one: another when the batch is sent again.
    pub stand_in_ns: Option<i64>,
}

/// Who sends, as far as it is known.
#[derive(Debug, Clone, Default)]
pub struct Sender {
    /// By whose token and of which node.
    pub owner: Owner,
    /// All tokens that are valid now, as in [`Owner::token`].
    pub tokens: Arc<[u32]>,
    /// What may come by that token in a day; none: whatever comes.
    pub quota: Option<Arc<Quota>>,
}

/// What makes a batch the same batch as another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BatchId {
    /// The sender's instance, a UUID.
    pub instance: String,
    /// From 1 up.
    pub number: i64,
}

/// How an accepted batch ended up on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ack {
    /// It is on the disk now.
    Stored,
    /// It was stored, or on its way, before.
    Duplicate,
    /// Its number was stored, or on its way, before, and held other samples: these are left out.
    Conflict,
}
