//! What senders other than the agent send: other versions, broken parts, other words.

mod forms;
mod labels;
mod layouts;
mod recorded;
mod refusals;
mod runtime_frames;
mod unread;
