//! Profiles in other forms than OTLP's protobuf, made into that: so there is one way from bytes to rows.
//!
//! In: OTLP/JSON, or pprof with what Pyroscope's clients say of it. Out: an `ExportProfilesServiceRequest` of the
//! newest layout, about as long as what came in. Never keeps more than both, and recurses no deeper than the messages
//! do.

pub(crate) mod json;
pub(crate) mod pprof;
pub(crate) mod write;
