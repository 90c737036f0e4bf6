//! Columns of samples and of roll-ups, as they are asked for.

use crate::column::coded::{Form, Projection};

/// A column that is wanted as codes.
pub(crate) const fn codes(name: &'static str) -> Projection {
    let form = Form::Codes;
    Projection { name, form }
}

/// The time stamps.
pub(crate) const TIMES: Projection = Projection {
    name: "ts_ns",
    form: Form::Numbers,
};

/// What samples stand for, in nanoseconds: mostly the same for all of a row group.
pub(crate) const PERIODS: Projection = codes("value");

/// How long waits were, in nanoseconds; absent where the sender did not say.
pub(crate) const LENGTHS: Projection = codes("wait_ns");
