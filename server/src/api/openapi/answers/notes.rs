//! Markers, and addresses with names.

use super::common::{Fields, damaged};
use crate::api::openapi::schema::{count, flag, integer, list, map, object, or_null, text, words};
use serde_json::{Value, json};

/// Kinds of markers.
const KINDS: [&str; 4] = ["note", "version", "agent", "burst"];

/// What a request has; it has no other fields.
pub(super) fn sent<'f>(about: &str, fields: impl IntoIterator<Item = (&'f str, Value)>) -> Value {
    let mut schema = object(about, fields);
    schema["additionalProperties"] = json!(false);
    schema
}

fn labels() -> Value {
    map("Labels that it concerns, with their values.", json!({"type": "string"}))
}

pub(super) fn notes() -> Fields {
    let marker = object(
        "A marker.",
        [
            ("id", text("Of one that was sent, and of a burst; else empty.")),
            (
                "kind",
                words(
                    "Whether it was sent, a version came, an agent began, or a node was looked at more closely.",
                    KINDS,
                ),
            ),
            ("time", integer("When, in Unix milliseconds.")),
            (
                "until?",
                or_null(integer("Of a burst: when it ended, or will, in Unix milliseconds.")),
            ),
            ("title", text("What happened.")),
            ("text", text("More of it. It may be empty.")),
            ("labels", labels()),
        ],
    );
    let number = json!({"type": "integer", "minimum": 1});
    let older = object(
        "Markers of one step.",
        [
            ("from", integer("The step's start in Unix milliseconds.")),
            (
                "until",
                integer("The step's end in Unix milliseconds, which is not part of it."),
            ),
            ("counts", map("How many there are of each kind that is there.", number)),
        ],
    );
    let markers = vec![
        ("query", text("The selector.")),
        ("from", integer("The window's start in Unix milliseconds.")),
        (
            "until",
            integer("The window's end in Unix milliseconds, which is not part of it."),
        ),
        (
            "markers",
            list("In the order of time, at most 2,000: the newest.", marker),
        ),
        (
            "older",
            list(
                "How many more there are, by the steps of a usual chart that have any. In the order of time.",
                older,
            ),
        ),
        (
            "uncounted",
            list(
                "Kinds that are left out, since there are more of them than can be told apart.",
                words("A kind.", KINDS),
            ),
        ),
        ("complete", flag("Whether `markers` has all of them.")),
    ];
    let time = json!({"anyOf": [{"type": "string"}, {"type": "integer"}],
        "description": "RFC 3339 or Unix milliseconds, at most a day ahead. Without it, now."});
    let view = || {
        object(
            "An address with a name.",
            [
                ("name", text("The name.")),
                ("address", text("A path of the page with its query.")),
                ("changed", integer("When it was last changed, in Unix milliseconds.")),
                ("tag", text("Its `ETag`.")),
            ],
        )
    };
    vec![
        (
            "Markers",
            object("What happened in a window.", [markers, damaged()].concat()),
        ),
        (
            "SentMarker",
            sent(
                "What happened.",
                [
                    (
                        "id?",
                        text("At most 128 bytes. Without one it is made of all that the marker says."),
                    ),
                    ("time?", time),
                    ("title", text("In a few words: at most 200 bytes.")),
                    ("text?", text("More of it: at most 4,096 bytes.")),
                    ("labels?", labels()),
                ],
            ),
        ),
        (
            "KeptMarker",
            object(
                "What became of a marker.",
                [
                    ("id", text("Its id.")),
                    (
                        "state",
                        words("Whether it is new, or was there as it is.", ["stored", "known"]),
                    ),
                    ("removed", count("Older markers that went for want of room.")),
                ],
            ),
        ),
        ("View", view()),
        (
            "Views",
            object("Addresses with names.", [("views", list("By name.", view()))]),
        ),
        (
            "SentView",
            sent(
                "An address.",
                [(
                    "address",
                    text("A path of the page with its query: at most 16,384 bytes."),
                )],
            ),
        ),
    ]
}
