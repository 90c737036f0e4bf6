//! What several answers have.

use crate::api::error::Code;
use crate::api::openapi::schema::{count, flag, integer, list, map, number, object, or_null, share, text, words};
use crate::query::nodes::Kind;
use serde_json::{Value, json};

/// Names with their schemas.
pub(super) type Fields = Vec<(&'static str, Value)>;

/// The kind of a row's frame.
pub(super) fn frame_kind() -> Value {
    let own = Kind::ALL.into_iter().filter(|kind| kind.language().is_empty());
    words("The frame's kind.", own.map(Kind::class))
}

/// The language of a row's frame.
pub(super) fn frame_language() -> Value {
    let about = "The frame's language, by what runs it; empty where its kind is of none.";
    let own = Kind::ALL.map(Kind::language).into_iter();
    words(about, [""].into_iter().chain(own.filter(|name| !name.is_empty())))
}

/// What several answers have.
pub(super) fn shared() -> Fields {
    let codes = Code::ALL.map(Code::as_str);
    let error = object(
        "What was wrong.",
        [
            ("code", words("Which kind of error it is.", codes)),
            ("message", text("What was wrong and where.")),
            ("hint", text("What is allowed, or what to do. It may be empty.")),
        ],
    );
    let gap = json!({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "integer"}], "minItems": 2,
        "maxItems": 2});
    vec![
        ("Error", object("An answer that is no success.", [("error", error)])),
        (
            "Status",
            object(
                "google.rpc.Status, as protobuf maps it to JSON.",
                [
                    ("code", integer("gRPC's code of the error.")),
                    ("message", text("What was wrong, and what to do.")),
                ],
            ),
        ),
        (
            "Exposure",
            object(
                "What was observed of a window.",
                [
                    (
                        "observed_seconds",
                        number("Seconds that at least one agent covered. Rates are by it."),
                    ),
                    (
                        "observed_cpu_seconds",
                        number("CPU seconds: observed time of all CPUs."),
                    ),
                    (
                        "node_share",
                        or_null(share(
                            "Share of the observed time for which a node was covered, a mean over the nodes.",
                        )),
                    ),
                    (
                        "idle_share",
                        or_null(share("Share of the observed CPU time that ticks met idle.")),
                    ),
                    (
                        "missed_share",
                        or_null(share("Share of the observed CPU time of which no tick came.")),
                    ),
                    (
                        "waits_share?",
                        or_null(share(
                            "Of waits: share of the time in which they were observed; null where no agent says.",
                        )),
                    ),
                    (
                        "gaps",
                        list(
                            "Times that no agent covered, each as [from, until] in Unix milliseconds; at most 1,000.",
                            gap,
                        ),
                    ),
                    ("nodes", count("Nodes with an account.")),
                    (
                        "other_senders",
                        flag("Samples of senders that keep no account are among the selected."),
                    ),
                ],
            ),
        ),
        (
            "Quality",
            object(
                "What the samples' stacks lack, in counts.",
                [
                    ("complete_samples", count("Counts whose stack lacks nothing.")),
                    ("truncated_samples", count("Counts whose stack is cut.")),
                    (
                        "unnamed_samples",
                        count("Counts whose stack has a frame without a function's name."),
                    ),
                    (
                        "spread_samples",
                        count("Counts that came without time stamps and were spread over their profile's duration."),
                    ),
                    (
                        "lost",
                        map(
                            "Samples that agents lost in the window, by cause.",
                            json!({"type": "integer"}),
                        ),
                    ),
                ],
            ),
        ),
        (
            "Periods",
            list(
                "How many samples had which value, of the 64 least distinct values.",
                object(
                    "Samples of one value.",
                    [
                        (
                            "period_ns",
                            integer("The value: nanoseconds, or the type's own unit where it is no time."),
                        ),
                        ("samples", count("Samples as they were taken.")),
                    ],
                ),
            ),
        ),
    ]
}

pub(super) fn query_head() -> Fields {
    vec![
        ("type", text("The profile type.")),
        ("query", text("The selector.")),
        ("from", integer("The window's start in Unix milliseconds.")),
        (
            "until",
            integer("The window's end in Unix milliseconds, which is not part of it."),
        ),
    ]
}

/// The unit of counts.
pub(super) fn counted() -> Fields {
    vec![
        (
            "unit",
            text("What a count is: `samples`, `nanoseconds`, or the type's unit."),
        ),
        (
            "period_ns",
            integer("CPU time that a count stands for, in nanoseconds; 0 of what is no time."),
        ),
        ("is_time", flag("Whether the type's values are time.")),
    ]
}

/// What an answer says where it lacks files.
pub(super) fn damaged() -> Fields {
    vec![(
        "damaged_files?",
        list(
            "Files that the answer lacks since they are not what was written, as paths below the data directory; at \
             most 100.",
            json!({"type": "string"}),
        ),
    )]
}

/// The same, of an answer that is of one unit.
pub(super) fn notes() -> Fields {
    let choice = text("Which of several units the answer is of, and which there are, in words.");
    [damaged(), vec![("unit_choice?", choice)]].concat()
}

/// How a difference was judged. `absent`: what stands behind the names of fields that may be absent.
pub(super) fn criteria(absent: &str) -> Fields {
    let name = |name: &'static str, optional: &'static str| if absent.is_empty() { name } else { optional };
    vec![
        (
            name("normalize", "normalize?"),
            words(
                "What both sides were made comparable by.",
                ["rate", "share", "absolute"],
            ),
        ),
        (
            name("measure", "measure?"),
            words("Which of a frame's counts were compared.", ["total", "self"]),
        ),
        (
            name("confidence", "confidence?"),
            number("The share of intervals that hold the true value."),
        ),
        (
            name("dispersion", "dispersion?"),
            number("The variance of counts in units of a Poisson's."),
        ),
        (name("tested", "tested?"), count("Paths that were tested.")),
        (name("significant", "significant?"), count("Those that differ.")),
    ]
}
