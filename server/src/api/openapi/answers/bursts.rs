//! Closer looks on demand, and what agents ask and are told of them.

use super::common::Fields;
use super::notes::sent;
use crate::api::openapi::schema::{count, flag, integer, list, number, object, or_null, text, words};
use serde_json::Value;

const STATES: [&str; 6] = ["waiting", "running", "ended", "cancelled", "refused", "lost"];

/// What a burst is of.
fn of_what() -> [(&'static str, Value); 5] {
    [
        ("cpus", text("CPUs such as `0,2-3`; empty: all.")),
        ("service", text("Of this service alone; empty: of all.")),
        ("process", text("Of processes of this name alone; empty: of all.")),
        ("frequency_hz", count("Samples a second and CPU.")),
        ("seconds", count("How long.")),
    ]
}

/// What became of it.
fn outcome() -> [(&'static str, Value); 3] {
    [
        (
            "samples",
            count("Samples that were taken at that rate, as the agent has told."),
        ),
        (
            "cpu_seconds",
            number("CPU time of the agent meanwhile, BPF programs included."),
        ),
        (
            "reason",
            text("Why it was refused, cancelled or lost, or is not quite what was asked for; else empty."),
        ),
    ]
}

pub(super) fn bursts() -> Fields {
    let own = [
        ("id", text("Its name.")),
        ("node", text("The node.")),
        ("instance", text("The agent's run.")),
        (
            "query",
            text("What it is of beside that, as a selector of processes and threads; empty: of all."),
        ),
        (
            "state",
            words("`waiting` is for its agent; of a `lost` one nothing was heard.", STATES),
        ),
        ("created_ms", integer("When it was asked for, in Unix milliseconds.")),
        (
            "from_ms",
            or_null(integer("When it began, by the agent's clock, in Unix milliseconds.")),
        ),
        ("until_ms", or_null(integer("When it ended, or will, by the same."))),
    ];
    let burst = object(
        "A closer look at one node.",
        [&own[..], &of_what(), &outcome()].concat(),
    );
    let [cpus, service, process, frequency_hz, seconds] = of_what();
    let optional = |(name, schema): (&'static str, Value)| match name {
        "cpus" => ("cpus?", schema),
        "service" => ("service?", schema),
        _ => ("process?", schema),
    };
    let asked = [
        ("node?", text("The node; or `query`.")),
        (
            "query?",
            text(
                "A selector of nodes (at most 256), CPUs, processes and threads, such as \
                 `{node=~\"db-.*\",container=\"api\"}`.",
            ),
        ),
        optional(cpus.clone()),
        optional(service.clone()),
        optional(process.clone()),
        frequency_hz.clone(),
        seconds.clone(),
    ];
    let report = object(
        "An agent's word on a burst.",
        [
            ("id", text("Its name.")),
            (
                "state",
                words("What became of it.", ["running", "ended", "cancelled", "refused"]),
            ),
            ("from_ms", integer("When it began; 0 where it did not.")),
            ("until_ms", integer("When it ended, or will.")),
            cpus.clone(),
            frequency_hz.clone(),
        ]
        .into_iter()
        .chain(outcome()),
    );
    let question = [
        ("node", text("The node.")),
        ("instance", text("The agent's run, as its batches have it.")),
        ("agent_version?", text("The agent's version.")),
        ("burst_limit_hz", count("The highest rate that may be asked for.")),
        ("cpus?", text("CPUs that are online.")),
        ("has_pmu?", flag("The processor counts events by itself.")),
        (
            "selects?",
            list("Labels that a burst there can be of, at most 64.", text("A name.")),
        ),
        ("wait_ms?", count("The answer may be held for so long, at most 30 s.")),
        ("stops?", flag("The agent stops, and asks no more.")),
        (
            "bursts?",
            list("What became of those that it knows, at most 64.", report),
        ),
    ];
    let condition = object(
        "A label's values.",
        [
            ("label", text("The label.")),
            (
                "values",
                list("Its values; the empty one is that of what lacks it.", text("A value.")),
            ),
            ("not", flag("Of all but those.")),
        ],
    );
    let order = object(
        "A burst that is to begin.",
        [
            ("id", text("Its name.")),
            cpus,
            service,
            process,
            ("conditions?", list("Of what meets all of these alone.", condition)),
            frequency_hz,
            seconds,
        ],
    );
    let answer = object(
        "What there is for an agent.",
        [
            ("begin", list("Bursts that it is to begin.", order)),
            ("cancel", list("Names of those that it is to end.", text("A name."))),
            ("told", list("Names of those whose end is kept.", text("A name."))),
            ("again_ms", count("It is to ask again after so long.")),
        ],
    );
    vec![
        (
            "Bursts",
            object(
                "Closer looks.",
                [("bursts", list("The newest first, at most 1,000.", burst))],
            ),
        ),
        ("AskedBurst", sent("A closer look.", asked)),
        ("BurstQuestion", object("What an agent asks.", question)),
        ("BurstAnswer", answer),
    ]
}
