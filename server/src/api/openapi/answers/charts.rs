//! Charts, heatmaps, and lists of labels.

use super::common::{Fields, counted, damaged, frame_kind, frame_language, notes, query_head};
use crate::api::openapi::schema::{
    column, count, counts, flag, integer, list, map, named, number, object, or_null, text, words,
};
use crate::query::Rank;
use serde_json::{Value, json};

pub(super) fn lists() -> Fields {
    let name = || json!({"type": "string"});
    let profile_type = object(
        "A profile type of the window's days.",
        [
            ("type", text("Its name.")),
            (
                "unit",
                text("The unit that answers are of, unless another is asked for."),
            ),
            ("units", list("All units that its values have.", name())),
            ("is_time", flag("Whether its values are time.")),
            (
                "last_day",
                text("The last day of the window on which it came, such as 2026-11-21."),
            ),
        ],
    );
    let labels = vec![
        (
            "labels",
            list(
                "The fixed labels, and at most 300 attributes of the window's days.",
                name(),
            ),
        ),
        ("types", list("Profile types, at most 1,000.", profile_type)),
    ];
    let values = vec![
        ("label", text("The label.")),
        (
            "values",
            list("At most 10,000 values, numbers in the order of numbers first.", name()),
        ),
        ("count", count("How many there are; with `search`, that have the word.")),
        ("complete", flag("Whether there are no more.")),
    ];
    let hit = object(
        "A hit.",
        [
            ("label", text("The label, or `function`.")),
            ("value", text("The label's value, or the function.")),
            (
                "rank",
                words("How well it has the word, the best first.", Rank::ALL.map(Rank::name)),
            ),
            ("module?", text("The function's module.")),
            ("kind?", frame_kind()),
            ("language?", frame_language()),
        ],
    );
    let found = vec![
        ("search", text("The word.")),
        ("hits", list("The best hits, the best first.", hit)),
        ("count", count("How many hits there are.")),
        (
            "counts",
            map(
                "How many of each label, and of `function`.",
                json!({"type": "integer", "minimum": 0}),
            ),
        ),
        ("complete", flag("Whether all hits are counted.")),
        ("left_out", list("Labels in which the word was not looked for.", name())),
    ];
    vec![
        ("Found", object("What has a word.", [found, damaged()].concat())),
        (
            "Labels",
            object("Labels and profile types.", [labels, damaged()].concat()),
        ),
        (
            "LabelValues",
            object("The values of one label.", [values, damaged()].concat()),
        ),
    ]
}

/// Numbers of a chart's line.
fn line(own: (&'static str, Value), about: &str) -> Value {
    let rates = list(
        "In the answer's `unit` for each step; null where nobody covered it.",
        json!({"type": ["number", "null"]}),
    );
    object(
        about,
        [
            own,
            ("cores", rates),
            ("samples", count("Samples as they were taken.")),
            (
                "cpu_seconds",
                or_null(number("CPU seconds; null where the type is no time.")),
            ),
            (
                "total",
                integer("Sum of the values: nanoseconds, or the type's own unit."),
            ),
        ],
    )
}

pub(super) fn charts() -> Fields {
    let cpus = |about: &str| list(about, json!({"type": ["number", "null"]}));
    let series = vec![
        ("step_ms", count("A step's length in milliseconds.")),
        ("by", text("The label.")),
        (
            "unit",
            text("What lines are in: `cores`, or the type's unit `per second`."),
        ),
        ("is_time", flag("Whether the type's values are time.")),
        (
            "other_senders",
            flag("Samples of senders that keep no account are among the selected."),
        ),
        (
            "times",
            list("Starts of the steps in Unix milliseconds.", json!({"type": "integer"})),
        ),
        ("covered", column("Share of each step that at least one agent covered.")),
        (
            "covered_by_node",
            column("Share of each step for which a node was covered, a mean over the nodes."),
        ),
        ("idle", cpus("Idle CPUs of each step, summed over the nodes.")),
        ("capacity", cpus("Observed CPUs of each step, summed over the nodes.")),
        (
            "series",
            list(
                "Lines, the largest first.",
                line(("value", text("The label's value.")), "A line."),
            ),
        ),
        (
            "other",
            or_null(line(
                ("series", count("How many lines `limit` cut off.")),
                "The sum of the lines that `limit` cut off.",
            )),
        ),
    ];
    let of_waits = |about: &str| {
        object(
            about,
            [
                ("value", text("The label's value.")),
                ("waits", count("How many waits ended.")),
                ("total_ns", count("How long they were together.")),
                ("p50_ns", or_null(count("Their median; null without any, as below."))),
                ("p99_ns", or_null(count("The length that 99 in 100 do not exceed."))),
                ("longest_ns", count("How long the longest was.")),
                (
                    "ticks",
                    or_null(count(
                        "Ticks of the CPUs' timers, by `cpu`, `node` and `cluster`; null elsewhere, where attributes \
                         are asked for, and where nobody says.",
                    )),
                ),
                ("idle_ticks", or_null(count("Those of them that met the CPU idle."))),
                (
                    "steps",
                    object(
                        "The same of each step.",
                        [
                            ("waits", counts("How many ended.")),
                            ("total_ns", counts("How long they were together.")),
                            ("p50_ns", list("Their medians.", or_null(count("Nanoseconds.")))),
                            (
                                "p99_ns",
                                list("99 in 100 do not exceed these.", or_null(count("Nanoseconds."))),
                            ),
                            ("longest_ns", counts("How long the longest ones were.")),
                        ],
                    ),
                ),
            ],
        )
    };
    let run_queue = vec![
        ("query", text("The selector.")),
        ("from", integer("The window's start in Unix milliseconds.")),
        (
            "until",
            integer("The window's end in Unix milliseconds, which is not part of it."),
        ),
        ("step_ms", count("A step's length in milliseconds.")),
        ("by", text("The label.")),
        (
            "times",
            list("Starts of the steps in Unix milliseconds.", json!({"type": "integer"})),
        ),
        (
            "batches",
            count("Batches of agents that counted; 0: nobody did, since agents are told to with `--waits`."),
        ),
        ("all", of_waits("All that were selected; their value is empty.")),
        (
            "lines",
            list(
                "Values, those first whose threads waited longest in sum.",
                of_waits("A line."),
            ),
        ),
        ("others", count("How many values `limit` cut off.")),
    ];
    let heatmap = vec![
        ("samples", count("All counts.")),
        ("exposure", named("Exposure")),
        ("step_ns", count("A column's length in nanoseconds.")),
        ("columns", count("Columns.")),
        ("rows", count("Offsets of a column.")),
        (
            "cells",
            counts("`columns` x `rows` counts, column by column, the earliest offset first."),
        ),
    ];
    let facet = object(
        "A label.",
        [
            ("by", text("The label.")),
            ("series?", named("Series")),
            ("top?", named("Top")),
        ],
    );
    let facets = vec![(
        "facets",
        list("The labels, in the order in which they were given.", facet),
    )];
    vec![
        (
            "Facets",
            object(
                "Charts and ranked tables by several labels.",
                [query_head(), facets, notes()].concat(),
            ),
        ),
        (
            "Series",
            object(
                "CPU time over time, by a label.",
                [query_head(), series, notes()].concat(),
            ),
        ),
        (
            "RunQueue",
            object(
                "Waits for a CPU over time, by a label.",
                [run_queue, damaged()].concat(),
            ),
        ),
        (
            "Heatmap",
            object(
                "Counts by second and offset.",
                [query_head(), counted(), heatmap, notes()].concat(),
            ),
        ),
    ]
}
