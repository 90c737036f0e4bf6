//! What senders other than the agent send: other versions, broken parts, other words.

mod layouts;
mod refusals;
