//! Flamegraphs, differences, and samples one by one.

use super::common::{Fields, counted, criteria, notes, query_head};
use crate::api::openapi::schema::{
    column, count, counts, flag, integer, list, named, number, object, or_null, share, text, words,
};
use crate::query::judge::State;
use crate::query::nodes::Kind;
use serde_json::{Value, json};

/// The columns that every tree has.
fn tree_columns() -> Fields {
    vec![
        (
            "parent",
            list(
                "The parent's index, which is smaller than the node's own; -1 of the root.",
                json!({"type": "integer", "minimum": -1}),
            ),
        ),
        ("name", counts("The function's name, as an index of `strings`.")),
        ("module", counts("The module, as an index of `strings`.")),
        ("kind", counts("The frame's kind, as an index of `kinds`.")),
        (
            "inlined",
            list(
                "1 where the function was inlined into its parent.",
                json!({"enum": [0, 1]}),
            ),
        ),
        ("total", counts("Counts with the node's frame and those above it.")),
        ("self", counts("Counts that end at the node.")),
    ]
}

fn names() -> Fields {
    vec![
        (
            "strings",
            list("Names of functions and modules.", json!({"type": "string"})),
        ),
        (
            "kinds",
            json!({"type": "array", "const": Kind::ALL.map(Kind::class), "description": "Kinds of frames."}),
        ),
        (
            "languages",
            json!({"type": "array", "const": Kind::ALL.map(Kind::language),
                "description": "Languages by what runs them, beside `kinds`; empty where a kind is of none."}),
        ),
    ]
}

/// One window's sums.
fn side() -> Fields {
    let except = json!({"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2,
        "description": "The part of the window that is left out, as [from, until] in Unix milliseconds."});
    let sums = vec![
        ("except", or_null(except)),
        ("samples", count("All counts.")),
        ("rate", number("Cores, or the type's unit per observed second.")),
        (
            "cores",
            or_null(number(
                "CPU seconds per observed second; null where the type is no time.",
            )),
        ),
        (
            "cpu_seconds",
            or_null(number("CPU seconds; null where the type is no time.")),
        ),
        ("periods", named("Periods")),
        ("exposure", named("Exposure")),
        ("quality", named("Quality")),
    ];
    [query_head().split_off(1), counted(), sums].concat()
}

fn found(more: Fields) -> Value {
    let own = vec![
        ("pattern", text("What was looked for.")),
        ("samples", count("Counts with such a frame.")),
        ("share", share("Their share of all counts.")),
    ];
    or_null(object("Counts with a frame that was looked for.", [own, more].concat()))
}

pub(super) fn trees() -> Fields {
    let nodes = || {
        object(
            "Columns with one entry a node, in pre-order. Node 0 is the root.",
            tree_columns(),
        )
    };
    let kind = query_head().remove(0);
    let flamegraph = vec![
        kind.clone(),
        ("match", found(vec![])),
        ("wakers?", ended()),
        ("nodes", nodes()),
    ];
    let flamegraph = [flamegraph, side(), names(), notes()].concat();
    let timeline = vec![
        (
            "from_ns",
            text("The window's start in Unix nanoseconds, as text since it is beyond 2^53."),
        ),
        ("complete", flag("Whether `limit` cut no sample off.")),
        (
            "types?",
            list("With `waits`: the types of the samples.", json!({"type": "string"})),
        ),
        ("wakers?", wakers()),
        ("nodes", nodes()),
        ("samples", samples()),
    ];
    vec![
        ("Flamegraph", object("A tree of one window.", flamegraph)),
        ("Speedscope", speedscope()),
        ("Side", object("One side of a difference.", side())),
        ("Difference", difference(kind)),
        (
            "Timeline",
            object(
                "Samples one by one.",
                [query_head(), timeline, names(), notes()].concat(),
            ),
        ),
    ]
}

fn ended() -> Value {
    object(
        "With `stacks=wakers`: of how much of the waits it is known who ended them.",
        vec![
            ("known", count("Counts of waits whose waker is known.")),
            (
                "unknown",
                count("Counts of the others, which are the frame `[no waker known]`."),
            ),
        ],
    )
}

fn samples() -> Value {
    let whole = || list("", json!({"type": ["integer", "null"]}));
    let about = |mut schema: Value, about: &str| {
        schema["description"] = json!(about);
        schema
    };
    let texts = |about: &str| list(about, json!({"type": "string"}));
    object(
        "Columns with one entry a sample, in the order of time.",
        [
            ("offset_ns", counts("Nanoseconds since `from_ns`.")),
            ("node", texts("The node.")),
            ("cpu", about(whole(), "The CPU's number.")),
            ("tid", about(whole(), "The thread's id.")),
            ("tgid", texts("The process's id; empty where it is not known.")),
            ("service", texts("The service.")),
            ("thread", texts("The thread's name.")),
            ("mode", texts("`user` or `kernel`.")),
            (
                "value_ns",
                list(
                    "The sample's value: nanoseconds, or the type's own unit.",
                    json!({"type": "integer"}),
                ),
            ),
            (
                "stack",
                counts("The node at which the sample's stack ends, as an index of the columns of `nodes`."),
            ),
            (
                "sample_type?",
                counts("With `waits`: the sample's type, as an index of `types`."),
            ),
            (
                "wait_class?",
                texts("With `waits`: what was waited for; empty where that is not said."),
            ),
            (
                "wait_state?",
                texts("With `waits`: how the wait began; empty where that is not said."),
            ),
            (
                "wait_ns?",
                about(
                    whole(),
                    "With `waits`: how long the wait itself was by then, in nanoseconds; null where that is not said.",
                ),
            ),
            (
                "waker?",
                about(
                    whole(),
                    "With `waits`: who ended the wait, as an index of the columns of `wakers`; null where nobody is known.",
                ),
            ),
        ],
    )
}

fn wakers() -> Value {
    let texts = |about: &str| list(about, json!({"type": "string"}));
    object(
        "With `waits`: columns with one entry for each of those who ended a wait.",
        [
            ("service", texts("The service.")),
            ("process", texts("The process's name.")),
            ("thread", texts("The thread's name.")),
            ("tid", list("The thread's id.", json!({"type": ["integer", "null"]}))),
            (
                "stack",
                counts("The node at which its stack ends, as an index of the columns of `nodes`."),
            ),
        ],
    )
}

/// Whose format is speedscope's own.
fn speedscope() -> Value {
    let frame = object(
        "A frame.",
        [("name", text("The function.")), ("file?", text("The module."))],
    );
    let profile = object(
        "A weighted sample for each distinct path.",
        [
            ("type", json!({"const": "sampled"})),
            ("name", text("What is shown.")),
            ("unit", words("The weights' unit.", ["nanoseconds", "bytes", "none"])),
            ("startValue", count("0.")),
            ("endValue", count("The sum of the weights.")),
            (
                "samples",
                list(
                    "Paths from the root on, as indices of `shared.frames`.",
                    counts("A path."),
                ),
            ),
            ("weights", counts("A path's sum, in `unit`.")),
        ],
    );
    let shared = object("What profiles share.", [("frames", list("All frames.", frame))]);
    object(
        "A file of speedscope, with `format=speedscope`.",
        [
            ("$schema", text("The file format's address.")),
            ("exporter", text("This server and its version.")),
            ("name", text("What is shown.")),
            ("activeProfileIndex", count("0.")),
            ("shared", shared),
            ("profiles", list("One profile.", profile)),
        ],
    )
}

fn difference(kind: (&'static str, Value)) -> Value {
    let columns = vec![
        ("base_total", counts("`total` of side A.")),
        ("base_self", counts("`self` of side A.")),
        ("base_norm", column("`base_total` made comparable, in `unit`.")),
        ("norm", column("`total` made comparable, in `unit`.")),
        (
            "delta",
            column("`norm` - `base_norm`, or of the frame's own counts with `measure=self`, in `unit`."),
        ),
        ("low", column("The lower end of the interval of `delta`, in `unit`.")),
        ("high", column("The upper end of the interval of `delta`, in `unit`.")),
        ("base_self_norm", column("`base_self` made comparable, in `unit`.")),
        ("self_norm", column("`self` made comparable, in `unit`.")),
        ("state", counts("The judgement, as an index of `states`.")),
        (
            "strength",
            column("From 0 to 1: how clear the change is; 0 where none is shown."),
        ),
    ];
    let judged = vec![
        (
            "unit",
            text("What normalised values are: `cores`, `share`, or what a count is."),
        ),
        (
            "period_ns",
            integer("CPU time that a count stands for, in nanoseconds; 0 of what is no time."),
        ),
        ("is_time", flag("Whether the type's values are time.")),
        ("base", named("Side")),
        ("comparison", named("Side")),
        (
            "false_discovery_rate",
            number("What `confidence` leaves to 1: the expected share of chance among what is called a change."),
        ),
        (
            "match",
            found(vec![
                ("base_samples", count("Side A's counts with such a frame.")),
                ("base_share", share("Their share of all counts of side A.")),
            ]),
        ),
        (
            "states",
            json!({"type": "array", "const": State::ALL.map(State::name), "description": "Judgements."}),
        ),
        (
            "nodes",
            object(
                "Columns with one entry a node, in pre-order. Node 0 is the root.",
                [tree_columns(), columns].concat(),
            ),
        ),
    ];
    let all = [vec![kind], criteria(""), judged, names(), notes()].concat();
    object("A tree of two windows with a judgement on every node.", all)
}
