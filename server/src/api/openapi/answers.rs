//! What answers look like: a schema for each that is JSON, by name.
//!
//! `render/` and `api/ops` write the answers. Tests hold what a server answers against these schemas, with no field
//! more than they name.

use super::schema::{
    column, count, counts, flag, integer, list, map, named, number, object, or_null, share, text, words,
};
use crate::api::error::Code;
use crate::query::judge::State;
use crate::query::nodes::Kind;
use serde_json::{Value, json};

type Fields = Vec<(&'static str, Value)>;

/// Every schema by its name.
pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    [shared(), lists(), trees(), charts(), tables(), operations()].concat()
}

/// What several answers have.
fn shared() -> Fields {
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
                "How many samples had which value, of the first 64 distinct values.",
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

fn query_head() -> Fields {
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
fn counted() -> Fields {
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
fn damaged() -> Fields {
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
fn notes() -> Fields {
    let choice = text("Which of several units the answer is of, and which there are, in words.");
    [damaged(), vec![("unit_choice?", choice)]].concat()
}

fn lists() -> Fields {
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
        ("complete", flag("Whether there are no more.")),
    ];
    vec![
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
            json!({"type": "array", "const": Kind::ALL.map(Kind::name), "description": "Kinds of frames."}),
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

fn trees() -> Fields {
    let nodes = || {
        object(
            "Columns with one entry a node, in pre-order. Node 0 is the root.",
            tree_columns(),
        )
    };
    let kind = query_head().remove(0);
    let flamegraph = vec![kind.clone(), ("match", found(vec![])), ("nodes", nodes())];
    let flamegraph = [flamegraph, side(), names(), notes()].concat();
    let timeline = vec![
        (
            "from_ns",
            text("The window's start in Unix nanoseconds, as text since it is beyond 2^53."),
        ),
        ("complete", flag("Whether `limit` cut no sample off.")),
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

/// How a difference was judged. `absent`: what stands behind the names of fields that may be absent.
fn criteria(absent: &str) -> Fields {
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

fn charts() -> Fields {
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
    vec![
        (
            "Series",
            object(
                "CPU time over time, by a label.",
                [query_head(), series, notes()].concat(),
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

fn tables() -> Fields {
    let or_absent = |name, about: &str| (name, or_null(share(about)));
    let row = vec![
        ("name", text("The function, or the label's value.")),
        ("module?", text("The function's module.")),
        ("kind?", words("The frame's kind.", Kind::ALL.map(Kind::name))),
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
    let top = vec![
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
        (
            "rows",
            list("Rows, the largest or most changed first.", object("A row.", row)),
        ),
        ("base_samples?", count("All counts of side A.")),
        (
            "base_cpu_seconds?",
            or_null(number("CPU seconds of side A; null where the type is no time.")),
        ),
    ];
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
    let mut statement = object(
        "A statement that reads.",
        [(
            "query",
            text("SQL, at most 64 KiB: SELECT, EXPLAIN, or a query of information_schema."),
        )],
    );
    statement["additionalProperties"] = json!(false);
    vec![
        ("Top", object("A ranked table.", [top, criteria("?"), notes()].concat())),
        ("Statement", statement),
        ("Rows", object("The rows of a statement.", [sql, damaged()].concat())),
    ]
}

/// What tells of the server and of those who send to it.
fn operations() -> Fields {
    let info = object(
        "This server.",
        [
            ("version", text("Its version.")),
            ("install_command", text("Installs the agent on a machine.")),
            ("agent_download", flag("Whether it has an agent to hand out.")),
        ],
    );
    let counts_by = |about: &str| map(about, json!({"type": "integer"}));
    let refusal = object(
        "What was refused for one reason since the server's start.",
        [
            ("reason", text("The reason.")),
            ("count", count("How often.")),
            ("last", integer("When it last was, in Unix milliseconds.")),
            ("message", text("What the sender was told.")),
        ],
    );
    let sender = || {
        vec![
            ("node", text("The node; empty of requests that could not be read.")),
            (
                "instance",
                text("The instance's id; empty of senders without an account."),
            ),
            ("agent_version", text("The agent's version.")),
            ("kernel", text("The kernel's version.")),
            ("arch", text("The machine's architecture.")),
            (
                "last_seen",
                integer("The end of the newest batch in Unix milliseconds."),
            ),
            (
                "agent_cores",
                or_null(number(
                    "Cores that the agent and its BPF programs took in the newest batch's interval.",
                )),
            ),
            (
                "idle_share",
                or_null(share("Share of the newest batch's CPU time that ticks met idle.")),
            ),
            ("samples_lost", counts_by("Samples that were lost, by cause.")),
            (
                "limits",
                counts_by("Limits of the agent that were reached, with how often."),
            ),
            ("samples_stored", integer("Samples that are stored.")),
            (
                "late",
                flag("Nothing came for six intervals and 30 s; for 120 s of senders without an account."),
            ),
            ("has_account", flag("Whether the sender keeps an account.")),
            (
                "refusals",
                list("What was refused since the server's start.", refusal.clone()),
            ),
            (
                "label_limits",
                or_null(counts_by(
                    "Limits of labels that were reached since the server's start.",
                )),
            ),
        ]
    };
    let or_unknown = |name, schema| (name, or_null(schema));
    let agent = vec![
        or_unknown("frequency_hz", integer("The newest batch's rate in Hz.")),
        or_unknown("cpus", integer("CPUs that were observed.")),
        ("cpus_offline", text("CPUs that were off, such as `2-3,7`.")),
        or_unknown("samples_taken", integer("Samples that the instance took.")),
        or_unknown(
            "missed_share",
            share("Share of the newest batch's CPU time of which no tick came."),
        ),
        or_unknown("cpu_seconds", number("CPU seconds of the agent's process.")),
        or_unknown("bpf_seconds", number("CPU seconds of the agent's BPF programs.")),
        or_unknown("rss_bytes", integer("Memory of the agent's process in bytes.")),
        or_unknown("bpf_map_bytes", integer("Memory of the agent's BPF maps in bytes.")),
    ];
    let row = json!({"anyOf": [
        object("An instance of an agent.", [sender(), agent].concat()),
        object("A sender without an account.", sender()),
    ]});
    vec![
        ("Info", info),
        (
            "Nodes",
            object(
                "Who sends.",
                [(
                    "nodes",
                    list(
                        "One row an instance of an agent, newest first, then other senders.",
                        row,
                    ),
                )],
            ),
        ),
    ]
}
