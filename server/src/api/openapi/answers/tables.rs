//! Ranked tables, and SQL.

use super::common::{Fields, criteria, damaged, frame_kind, frame_language, notes};
use crate::api::openapi::schema::{count, flag, integer, list, number, object, or_null, share, text, words};
use crate::query::judge::State;
use serde_json::{Value, json};

pub(super) fn tables() -> Fields {
    vec![("Top", top()), ("Statement", statement()), ("Rows", rows())]
}

/// A row of a ranked table.
fn row() -> Value {
    let or_absent = |name, about: &str| (name, or_null(share(about)));
    let fields = vec![
        ("name", text("The function, or the label's value.")),
        ("module?", text("The function's module.")),
        ("kind?", frame_kind()),
        ("language?", frame_language()),
        ("self", count("Counts that end in the function, in `count_unit`.")),
        ("total", count("Counts with the function, each once, in `count_unit`.")),
        ("self_share", share("`self` of all counts.")),
        ("total_share", share("`total` of all counts.")),
        (
            "self_rate",
            number("`self` by the observed second, in cores or the type's unit."),
        ),
        (
            "rate",
            number("`total` by the observed second, in cores or the type's unit."),
        ),
        (
            "self_cores",
            or_null(number("`self` in cores; null where the type is no time.")),
        ),
        (
            "cores",
            or_null(number("`total` in cores; null where the type is no time.")),
        ),
        (
            "cpu_seconds",
            or_null(number("`total` in CPU seconds; null where the type is no time.")),
        ),
        or_absent("user_share?", "Part of a label's row in user mode."),
        or_absent("complete_share?", "Part of a label's row whose stacks lack nothing."),
        or_absent("truncated_share?", "Part of a label's row whose stacks are cut."),
        or_absent(
            "unnamed_share?",
            "Part of a label's row whose stacks have a frame without a name.",
        ),
        ("base_self?", count("`self` of side A.")),
        ("base_total?", count("`total` of side A.")),
        ("base_norm?", number("Side A made comparable, in `unit`.")),
        ("norm?", number("Side B made comparable, in `unit`.")),
        ("delta?", number("`norm` - `base_norm`, in `unit`.")),
        ("low?", number("The lower end of the interval of `delta`, in `unit`.")),
        ("high?", number("The upper end of the interval of `delta`, in `unit`.")),
        ("strength?", number("From 0 to 1: how clear the change is.")),
        ("state?", words("The judgement.", State::ALL.map(State::name))),
    ];
    object("A row.", fields)
}

/// A ranked table.
fn top() -> Value {
    let fields = vec![
        ("by", text("What is ranked: `function`, or a label.")),
        (
            "unit",
            text("The unit of rates, or of a difference's normalised values."),
        ),
        ("count_unit", text("What a count is.")),
        (
            "period_ns",
            integer("CPU time that a count stands for, in nanoseconds; 0 of what is no time."),
        ),
        ("is_time", flag("Whether the type's values are time.")),
        ("samples", count("All counts.")),
        (
            "cpu_seconds",
            or_null(number("CPU seconds; null where the type is no time.")),
        ),
        ("complete", flag("Whether `limit` cut no row off.")),
        ("rows", list("Rows, the largest or most changed first.", row())),
        ("base_samples?", count("All counts of side A.")),
        (
            "base_cpu_seconds?",
            or_null(number("CPU seconds of side A; null where the type is no time.")),
        ),
    ];
    object("A ranked table.", [fields, criteria("?"), notes()].concat())
}

/// The rows of a statement.
fn rows() -> Value {
    let sql_column = object(
        "A column.",
        [
            ("name", text("Its name.")),
            (
                "type",
                text("`string`, `long`, `double`, `boolean`, `list of …`, or the engine's name of another type."),
            ),
        ],
    );
    let sql = vec![
        ("columns", list("The columns.", sql_column)),
        (
            "rows",
            list(
                "At most 10,000 rows, each with a value of each column. Integers are numbers whatever their size.",
                json!({"type": "array"}),
            ),
        ),
        ("complete", flag("Whether there are no more rows.")),
    ];
    object("The rows of a statement.", [sql, damaged()].concat())
}

/// What is sent to ask by SQL.
fn statement() -> Value {
    let mut statement = object(
        "A statement that reads.",
        [(
            "query",
            text("SQL, at most 64 KiB: SELECT, EXPLAIN, or a query of information_schema."),
        )],
    );
    statement["additionalProperties"] = json!(false);
    statement
}
