//! The parameters of the query endpoints: what each takes, what it is where it is not given, what it means.
//!
//! The endpoints check what they are given by these tables, and the document describes the same tables. A parameter
//! that stands in none of an endpoint's tables is refused.

use super::format::{DIFFERENCE_WORDS, FLAMEGRAPH_WORDS};
use crate::query::judge::Confidence;
use crate::query::{MAX_SAMPLES, MAX_VALUES, MOST_FACETS, MOST_ROWS, USUAL_ROWS};

/// Most rows of a table, and lines of a chart.
const MAX_LIMIT: usize = 10_000;
/// The largest value that can be asked for: larger ones are no numbers of JSON for many readers.
const MAX_VALUE: usize = (1 << 53) - 1;

/// One parameter of a query string.
#[derive(Debug, Clone, Copy)]
pub(in crate::api) struct Parameter {
    pub(in crate::api) name: &'static str,
    pub(in crate::api) takes: Takes,
    /// What it is where it is not given, as it would be given. Counts have theirs in `takes`.
    pub(in crate::api) usual: Option<&'static str>,
    /// Nothing is answered without it.
    pub(in crate::api) is_needed: bool,
    /// What it means, in sentences.
    pub(in crate::api) about: &'static str,
}

/// What a parameter can be.
#[derive(Debug, Clone, Copy)]
pub(in crate::api) enum Takes {
    /// A name or text of its own kind, which `about` describes.
    Text,
    /// Any text.
    Word,
    /// A PromQL selector.
    Selector,
    Time,
    Duration,
    /// A regular expression.
    Pattern,
    /// A whole number from 1 to `most`.
    Count {
        usual: usize,
        most: usize,
    },
    /// A number from `least` to `most`, or to below `most`.
    Share {
        least: f64,
        most: f64,
        is_below: bool,
    },
    Words(&'static [&'static str]),
    /// A label's name, or one of these words.
    Label(&'static [&'static str]),
    /// One of these labels, or an attribute.
    LabelAmong(&'static [&'static str]),
    /// Names of labels with commas between, at most so many.
    Labels {
        most: usize,
    },
    /// One frame, as `KIND,MODULE,FUNCTION`.
    Frame,
    /// Frames from the root on, with `;` between.
    Path,
}

/// Tables of parameters that several endpoints share, and tables of one endpoint's own.
pub(in crate::api) type Table = &'static [Parameter];

const fn parameter(name: &'static str, takes: Takes, about: &'static str) -> Parameter {
    Parameter {
        name,
        takes,
        usual: None,
        is_needed: false,
        about,
    }
}

const fn usual(name: &'static str, takes: Takes, usual: &'static str, about: &'static str) -> Parameter {
    Parameter {
        usual: Some(usual),
        ..parameter(name, takes, about)
    }
}

const fn limit(usual: usize, most: usize, about: &'static str) -> Parameter {
    parameter("limit", Takes::Count { usual, most }, about)
}

/// What is asked for.
pub(in crate::api) const COMMON: Table = &[
    usual("type", Takes::Text, "cpu", "The profile type."),
    QUERY,
    FROM,
    UNTIL,
    usual(
        "runtime_frames",
        Takes::Words(&["fold", "show"]),
        "fold",
        "Where frames are told: C functions of an interpreter or virtual machine that lead to a function of its \
         language are part of that function, or stand by themselves.",
    ),
];

/// Waits for a CPU, which are of no profile type.
pub(in crate::api) const RUN_QUEUE: Table = &[
    usual(
        "query",
        Takes::Selector,
        "{}",
        "Which waits count: by the labels that `by` takes.",
    ),
    FROM,
    UNTIL,
    usual(
        "by",
        Takes::LabelAmong(&[
            "service",
            "node",
            "cluster",
            "cpu",
            "process",
            "container",
            "pod",
            "namespace",
            "workload",
            "unit",
            "cgroup",
        ]),
        "service",
        "The label by which lines are drawn: any of nodes, CPUs and programs, but none of threads, of single processes \
         and of samples.",
    ),
    SERIES[1],
    SERIES[2],
];

/// What is asked for where the type is the endpoint's own.
pub(in crate::api) const OF_WINDOW: Table = &[QUERY, FROM, UNTIL];

const QUERY: Parameter = usual("query", Takes::Selector, "{}", "Which samples count.");
const FROM: Parameter = usual(
    "from",
    Takes::Time,
    "now-1h",
    "The window's start, which belongs to it.",
);
const UNTIL: Parameter = usual(
    "until",
    Takes::Time,
    "now",
    "The window's end, which does not belong to it. A window has at most 400 days.",
);

/// The window of a word that is looked for.
pub(in crate::api) const SEARCH: Table = &[
    usual(
        "type",
        Takes::Text,
        "cpu",
        "The profile type whose threads are looked at.",
    ),
    usual("from", Takes::Time, "now-1h", "The window's start. Its days count."),
    usual("until", Takes::Time, "now", "The window's end. Its days count."),
    parameter("search", Takes::Word, "The word. Without one nothing is found."),
    limit(50, 1_000, "Most hits. All of them are counted."),
];

/// Which values of a label.
pub(in crate::api) const VALUES: Table = &[
    parameter(
        "search",
        Takes::Word,
        "Only values that have this word, whatever the case of its letters: the whole value first, then those that \
         begin with it, those with a word that does, and those that have it anywhere.",
    ),
    limit(MAX_VALUES, MAX_VALUES, "Most values. All of them are counted."),
];

/// Which markers.
pub(in crate::api) const MARKERS: Table = &[usual(
    "kinds",
    Takes::Words(&["all", "note", "version", "agent", "burst"]),
    "all",
    "Which markers: those that were sent, versions that came, agents that began, bursts, or all.",
)];

/// Side A of a difference.
pub(in crate::api) const BASE: Table = &[
    parameter(
        "base_query",
        Takes::Selector,
        "Which samples count on side A. It is `query` where it is not given.",
    ),
    parameter(
        "base_from",
        Takes::Time,
        "The start of side A's window. It is `from` where it is not given.",
    ),
    parameter(
        "base_until",
        Takes::Time,
        "The end of side A's window. It is `until` where it is not given.",
    ),
];

/// Which values of a type with several units.
pub(in crate::api) const UNIT: Table = &[parameter(
    "unit",
    Takes::Text,
    "Which values of a type that has several units. A unit that the window does not have is an error.",
)];

/// Which values samples have.
pub(in crate::api) const VALUE: Table = &[
    parameter(
        "min_value",
        Takes::Count {
            usual: 1,
            most: MAX_VALUE,
        },
        "Only samples of this value or more count, in the type's own unit: nanoseconds of types that are time. Without \
         it all do.",
    ),
    parameter(
        "max_value",
        Takes::Count {
            usual: MAX_VALUE,
            most: MAX_VALUE,
        },
        "Only samples of this value or less count.",
    ),
    parameter(
        "min_wait",
        Takes::Count {
            usual: 1,
            most: MAX_VALUE,
        },
        "Of types that tell of waits only waits of this length or more count, in nanoseconds: the wait's own length, \
         whatever its sample stands for. Where a sender does not say it, the value is taken for it.",
    ),
    parameter(
        "max_wait",
        Takes::Count {
            usual: MAX_VALUE,
            most: MAX_VALUE,
        },
        "Only waits of this length or less count.",
    ),
];

/// Time that is left out, of side B and of side A.
pub(in crate::api) const EXCEPT: Table = &[
    parameter(
        "except_from",
        Takes::Time,
        "The start of a part of the window whose samples do not count. It needs `except_until`.",
    ),
    parameter(
        "except_until",
        Takes::Time,
        "The end of a part of the window whose samples do not count. It needs `except_from`.",
    ),
];
pub(in crate::api) const BASE_EXCEPT: Table = &[
    parameter(
        "base_except_from",
        Takes::Time,
        "The start of the time that is left out of side A. It needs `base_except_until`.",
    ),
    parameter(
        "base_except_until",
        Takes::Time,
        "The end of the time that is left out of side A. It needs `base_except_from`.",
    ),
];

/// How a difference is judged.
pub(in crate::api) const CRITERIA: Table = &[
    parameter(
        "normalize",
        Takes::Words(&["rate", "share", "absolute"]),
        "What both sides are made comparable by. It is `rate` where both selectors are the same, else `share`.",
    ),
    usual(
        "measure",
        Takes::Words(&["total", "self"]),
        "total",
        "Which of a frame's samples are compared: all, or those that end in it.",
    ),
    usual(
        "confidence",
        Takes::Share {
            least: Confidence::LEAST,
            most: Confidence::MOST,
            is_below: false,
        },
        "0.95",
        "How sure a change has to be. What it leaves to 1 is the expected share of wrong discoveries.",
    ),
];

/// How a tree is looked at.
pub(in crate::api) const VIEW: Table = &[
    usual(
        "min_share",
        Takes::Share {
            least: 0.0,
            most: 1.0,
            is_below: true,
        },
        "0",
        "Children below this share of the total become one node of each parent. JSON alone is folded.",
    ),
    parameter(
        "root",
        Takes::Pattern,
        "The outermost frame of each stack whose name has it is the root. Other samples are left out.",
    ),
    parameter(
        "transform",
        Takes::Words(&["merge_recursion"]),
        "With `merge_recursion` a function that calls itself directly is one frame.",
    ),
];

/// Rows of labels above the stacks.
pub(in crate::api) const GROUP: Table = &[parameter(
    "group",
    Takes::Labels { most: MOST_ROWS },
    "Labels whose values stand as rows above the stacks, outermost first, at most 4.",
)];

/// Which frames are looked for: by a pattern, a function, or a place.
pub(in crate::api) const MATCH: Table = &[
    parameter(
        "match",
        Takes::Pattern,
        "Looks for frames whose function's name has it anywhere. Only one of `match`, `match_frame` and `match_path` \
         is allowed.",
    ),
    parameter(
        "match_frame",
        Takes::Frame,
        "Looks for frames of exactly this function.",
    ),
    parameter(
        "match_path",
        Takes::Path,
        "Looks for one place: such frames from the root on, at most 1,024.",
    ),
];

pub(in crate::api) const SERIES: Table = &[
    usual(
        "by",
        Takes::Label(&[]),
        "service",
        "The label by which lines are drawn.",
    ),
    parameter(
        "step",
        Takes::Duration,
        "The length of a step, at most 5,000 of them. About 200 steps are made where it is not given.",
    ),
    limit(20, MAX_LIMIT, "Most lines; `other` sums the rest."),
];

pub(in crate::api) const FACETS: Table = &[
    usual(
        "by",
        Takes::Labels { most: MOST_FACETS },
        "service",
        "The labels, at most 8, with commas between.",
    ),
    parameter(
        "step",
        Takes::Duration,
        "The length of a step of the charts, as for a chart by itself.",
    ),
    limit(20, MAX_LIMIT, "Most lines of each chart, and rows of each table."),
    usual(
        "parts",
        Takes::Words(&["both", "series", "top"]),
        "both",
        "What each label has: a chart, a table, or both.",
    ),
];

pub(in crate::api) const THREAD_TIME: Table = &[
    usual("by", Takes::Label(&[]), "service", "The label whose values are rows."),
    parameter(
        "step",
        Takes::Duration,
        "The length of a step, at most 5,000 of them. About 200 steps are made where it is not given.",
    ),
    limit(100, MAX_LIMIT, "Most rows. All of them are counted."),
];

pub(in crate::api) const FLAMEGRAPH: Table = &[
    usual(
        "format",
        Takes::Words(&FLAMEGRAPH_WORDS),
        "json",
        "The form of the answer. All but JSON come as attachments.",
    ),
    usual(
        "stacks",
        Takes::Words(&["own", "wakers"]),
        "own",
        "Whose stacks the tree has. With `wakers`, of waits (`type=off_cpu`) alone, those of who ended the selected \
         waits, by the time of these waits; labels of `group` are then theirs, and a frame that is looked for is one \
         of the waiting stack: waits whose stack has it count alone.",
    ),
];

pub(in crate::api) const DIFF: Table = &[usual(
    "format",
    Takes::Words(&DIFFERENCE_WORDS),
    "json",
    "The form of the answer. All but JSON come as attachments.",
)];

pub(in crate::api) const HEATMAP: Table = &[
    usual(
        "step",
        Takes::Duration,
        "1s",
        "The length of a column. There are at most 1,000,000 cells.",
    ),
    parameter(
        "rows",
        Takes::Count {
            usual: USUAL_ROWS,
            most: MAX_LIMIT,
        },
        "Offsets that a column is cut into.",
    ),
];

pub(in crate::api) const TIMELINE: Table = &[
    limit(10_000, MAX_SAMPLES, "Most samples. It counts without `before` alone."),
    parameter(
        "waits",
        Takes::Words(&["true", "false"]),
        "With `true` the samples of waits (`off_cpu` and `run_queue`) stand among those of `type`, told apart by \
         `sample_type`. It is not taken with `before`.",
    ),
    parameter(
        "before",
        Takes::Duration,
        "Shows what ran on the same CPU up to this long before each sample with a frame that is looked for. It needs \
         one of `match`, `match_frame` and `match_path`; those, `min_share`, `root` and `transform` need it.",
    ),
];

pub(in crate::api) const TOP: Table = &[
    usual(
        "by",
        Takes::Label(&["function"]),
        "function",
        "What is ranked: `function`, or a label.",
    ),
    limit(100, MAX_LIMIT, "Most rows."),
    usual(
        "format",
        Takes::Words(&["json", "csv"]),
        "json",
        "The form of the answer. CSV comes as an attachment.",
    ),
];

/// What an address of `/ingest` says of a profile. Other parameters of Pyroscope's clients are not looked at.
pub(in crate::api) const INGEST: Table = &[
    Parameter {
        is_needed: true,
        ..parameter(
            "name",
            Takes::Text,
            "The program, with labels in braces or without: `shop{hostname=node-a}`.",
        )
    },
    parameter(
        "from",
        Takes::Text,
        "The profile's start: whole seconds, milliseconds, microseconds or nanoseconds since the Unix epoch, told \
         apart by their size.",
    ),
    parameter("until", Takes::Text, "The profile's end, as `from`."),
    parameter(
        "spyName",
        Takes::Text,
        "The client, such as `gospy`: it tells the language of frames.",
    ),
    usual("format", Takes::Words(&["pprof"]), "pprof", "The form of the body."),
];

pub(in crate::api) const LOGIN: Table = &[parameter(
    "next",
    Takes::Text,
    "The path of this server that is shown after signing in.",
)];
