//! What servers on the same data ask of each other: to count shares of questions.
//!
//! In: from other servers, tasks of one node over the gRPC service of `datafusion-distributed`, on a listener of its
//! own. Out: batches of partial counts; and, for this server's questions, an [`Exchange`](crate::query::Exchange) that
//! asks the others. Any other plan is refused. Each request shows a token, where there are tokens, and names the server
//! that it is for: an address may be another's by now.

mod codec;
mod door;
mod peers;
mod worker;

pub use peers::Peers;
pub use worker::router;

/// Connections of other servers at the same time.
pub const MOST_PEER_CONNECTIONS: usize = 512;

/// The header with the name of the server that a request is for.
const SERVER: &str = "stakeout-server";
