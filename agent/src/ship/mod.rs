//! Batches in, OTLP requests out: encode (the only OTLP room of the agent), a bounded disk spool, send with retry.

mod batch;

pub use batch::{Batch, Frame, FrameKind, Process, Report, Sample, Stack};
