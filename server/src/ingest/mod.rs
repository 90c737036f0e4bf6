//! From OTLP bytes to rows of the tables.
//!
//! In: a compressed or plain `ExportProfilesServiceRequest`. Out: record batches of every table, with content-hash ids.
//! Never touches the disk and never allocates by a size that the sender claims.
