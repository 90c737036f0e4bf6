//! Where threads' time goes.

use super::common::{Fields, damaged};
use crate::api::openapi::schema::{column, count, flag, integer, list, named, number, object, text, words};
use serde_json::{Value, json};

pub(super) fn schemas() -> Fields {
    let rates = json!({"type": ["number", "null"]});
    let part = object(
        "What time went to.",
        [
            ("type", words("The profile type.", ["cpu", "run_queue", "off_cpu"])),
            (
                "class",
                text("What was waited for, as `wait.class` has it; empty where it is not said, and of other types."),
            ),
            ("seconds", number("Thread-seconds in the window.")),
            (
                "rates",
                list(
                    "Thread-seconds per second in each step; null where nobody covered it.",
                    rates,
                ),
            ),
        ],
    );
    let row = object(
        "A value of the label.",
        [
            ("name", text("The value; empty for samples without one.")),
            ("seconds", column("Thread-seconds of each part.")),
        ],
    );
    let fields: Vec<(&'static str, Value)> = vec![
        ("query", text("The selector.")),
        ("from", integer("The window's start in Unix milliseconds.")),
        (
            "until",
            integer("The window's end in Unix milliseconds, which is not part of it."),
        ),
        ("by", text("The label.")),
        ("step_ms", count("A step's length in milliseconds.")),
        (
            "times",
            list("Starts of the steps in Unix milliseconds.", json!({"type": "integer"})),
        ),
        ("covered", column("Share of each step that at least one agent covered.")),
        ("exposure", named("Exposure")),
        (
            "parts",
            list(
                "Running, waiting for a CPU, and each class of wait, the longest first.",
                part,
            ),
        ),
        ("rows", list("Values of the label, those with most time first.", row)),
        ("count", count("How many values there are.")),
        ("complete", flag("Whether `limit` cut none off.")),
    ];
    let fields = [fields, damaged()].concat();
    vec![("ThreadTime", object("Where threads' time goes.", fields))]
}
