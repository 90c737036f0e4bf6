//! From OTLP bytes to rows of the tables.
//!
//! In: a compressed or plain `ExportProfilesServiceRequest`. Out: record batches of every table, with content-hash ids,
//! and the identity of each batch. Never touches the disk, never allocates by a size that the sender claims beyond 64
//! times what was sent, and checks every index before it is used.
//!
//! Rooms, each of which uses those behind it only: admission, then rows and forms, then wire.

mod admission;
mod error;
mod forms;
mod rows;
mod wire;

pub use admission::admit::{Form, Ingest};
pub use admission::config::IngestConfig;
pub use admission::decompress::{Decompressor, Encoding};
pub use admission::outcome::Outcome;
pub use error::IngestError;
pub use forms::json::json_to_otlp;
pub use forms::pprof::{About, pprof_to_otlp};
pub use rows::builder::IsKnown;
pub use rows::convert::{Converted, Part, convert};
pub(crate) use rows::senders::Sender;
pub use rows::senders::Senders;
pub use rows::window::TimeWindow;
pub use wire::message::{Request, read};
