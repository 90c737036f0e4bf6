//! Every operation of the API: path, parameters, answers, errors.
//!
//! Tests hold this list against the routes of the real application, in both directions.

use super::parameter::{
    BASE, BASE_EXCEPT, COMMON, CRITERIA, DIFF, EXCEPT, FACETS, FLAMEGRAPH, GROUP, HEATMAP, MARKERS, MATCH, OF_WINDOW,
    RUN_QUEUE, SEARCH, SERIES, THREAD_TIME, TIMELINE, TOP, Table, UNIT, VALUE, VALUES, VIEW,
};
use super::tag::Tag;
use crate::api::error::Code;

/// What can be asked for by one method of one path.
#[derive(Debug)]
pub(in crate::api) struct Operation {
    pub(in crate::api) method: &'static str,
    /// As axum and OpenAPI both write it.
    pub(in crate::api) path: &'static str,
    /// A name that is no other's, for programs that make clients.
    pub(super) id: &'static str,
    pub(super) summary: &'static str,
    /// More sentences, or none.
    pub(super) about: &'static str,
    /// Tables of the parameters of the query string.
    pub(in crate::api) parameters: &'static [Table],
    pub(super) body: &'static [Content],
    pub(super) status: u16,
    /// Forms of the answer. Two of one content type are alternatives.
    pub(super) answers: &'static [Content],
    pub(super) errors: &'static [Code],
    /// Forms of errors; none where a status of HTTP tells nothing of them.
    pub(super) refusals: &'static [Content],
    /// Which other operations it belongs with.
    pub(super) tag: Tag,
}

/// A content type with what it holds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Content {
    pub(super) kind: &'static str,
    pub(super) holds: Holds,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Holds {
    /// JSON of the schema of this name.
    Schema(&'static str),
    /// JSON that another document describes.
    Json,
    Text,
    Bytes,
    /// Fields of a form.
    Form(&'static [(&'static str, &'static str)]),
}

pub(super) const fn json(schema: &'static str) -> Content {
    Content {
        kind: "application/json",
        holds: Holds::Schema(schema),
    }
}

pub(super) const fn text(kind: &'static str) -> Content {
    Content {
        kind,
        holds: Holds::Text,
    }
}

pub(super) const fn bytes(kind: &'static str) -> Content {
    Content {
        kind,
        holds: Holds::Bytes,
    }
}

pub(super) const PLAIN: Content = text("text/plain; charset=utf-8");
pub(super) const SVG: Content = text("image/svg+xml");
pub(super) const HTML: Content = text("text/html; charset=utf-8");

/// Errors of whatever is computed from samples.
pub(super) const QUERY: &[Code] = &[
    Code::BadQuery,
    Code::BadTime,
    Code::BadParameter,
    Code::TooLarge,
    Code::Overloaded,
    Code::Timeout,
    Code::Internal,
];

/// Errors of senders.
pub(super) const REFUSED: &[Code] = &[
    Code::BadProfile,
    Code::BadParameter,
    Code::TooLarge,
    Code::QuotaExceeded,
    Code::Overloaded,
    Code::DiskFull,
    Code::Internal,
];

/// A question by `GET` that JSON answers.
pub(super) const QUESTION: Operation = Operation {
    method: "get",
    path: "",
    id: "",
    summary: "",
    about: "",
    parameters: &[],
    body: &[],
    status: 200,
    answers: &[],
    errors: QUERY,
    refusals: &[json("Error")],
    tag: Tag::Questions,
};

pub(in crate::api) const GET_LABELS: Operation = Operation {
    path: "/api/v1/labels",
    id: "labels",
    summary: "Labels and profile types",
    about: "The answer is of the window's whole days.",
    parameters: &[COMMON],
    answers: &[json("Labels")],
    ..QUESTION
};

pub(in crate::api) const GET_LABEL_VALUES: Operation = Operation {
    path: "/api/v1/labels/{name}/values",
    id: "label_values",
    summary: "Values of a label",
    about: "`name` is a label. An unknown one is not found. With `search` the best hits come first.",
    parameters: &[COMMON, VALUES],
    answers: &[json("LabelValues")],
    errors: &[
        Code::BadQuery,
        Code::BadTime,
        Code::BadParameter,
        Code::NotFound,
        Code::TooLarge,
        Code::Overloaded,
        Code::Timeout,
        Code::Internal,
    ],
    ..QUESTION
};

pub(in crate::api) const GET_SEARCH: Operation = Operation {
    path: "/api/v1/search",
    id: "search",
    summary: "A word among the values of all labels and the names of functions",
    about: "The answer is of the window's whole days, whatever is selected. Threads are looked at in windows of at \
            most 6 hours, while their samples are kept.",
    parameters: &[SEARCH],
    answers: &[json("Found")],
    ..QUESTION
};

pub(in crate::api) const GET_SERIES: Operation = Operation {
    path: "/api/v1/series",
    id: "series",
    summary: "CPU time over time, by a label",
    about: "With a frame, samples whose stack has it count alone.",
    parameters: &[COMMON, UNIT, VALUE, SERIES, MATCH],
    answers: &[json("Series")],
    ..QUESTION
};

pub(in crate::api) const GET_RUN_QUEUE: Operation = Operation {
    path: "/api/v1/run_queue",
    id: "run_queue",
    summary: "How long threads waited for a CPU, over time, by a label",
    about: "Agents count every wait by its length, to a quarter of it, by program on each CPU, and by CPU.",
    parameters: &[RUN_QUEUE],
    answers: &[json("RunQueue")],
    ..QUESTION
};

pub(in crate::api) const GET_FACETS: Operation = Operation {
    path: "/api/v1/facets",
    id: "facets",
    summary: "Charts and ranked tables by several labels",
    about: "Samples are read once for all labels. Each part is what `series` and `top` answer by its label.",
    parameters: &[COMMON, UNIT, VALUE, FACETS, MATCH],
    answers: &[json("Facets")],
    ..QUESTION
};

pub(in crate::api) const GET_THREAD_TIME: Operation = Operation {
    path: "/api/v1/thread_time",
    id: "thread_time",
    summary: "Where threads' time goes, by a label",
    about: "Time that threads ran (`cpu`), waited for a CPU (`run_queue`), and waited for anything else (`off_cpu`, by \
            the class of the wait), of rows and over time.",
    parameters: &[OF_WINDOW, VALUE, THREAD_TIME],
    answers: &[json("ThreadTime")],
    ..QUESTION
};

pub(in crate::api) const GET_FLAMEGRAPH: Operation = Operation {
    path: "/api/v1/flamegraph",
    id: "flamegraph",
    summary: "A tree of one window",
    about: "With a frame, `match` of the answer counts the samples whose stack has it; the tree is of all samples. With \
            `stacks=wakers` it is of who ended the selected waits.",
    parameters: &[COMMON, UNIT, VALUE, EXCEPT, FLAMEGRAPH, GROUP, VIEW, MATCH],
    answers: &[
        json("Flamegraph"),
        json("Speedscope"),
        SVG,
        PLAIN,
        bytes("application/octet-stream"),
    ],
    ..QUESTION
};

pub(in crate::api) const GET_HEATMAP: Operation = Operation {
    path: "/api/v1/heatmap",
    id: "heatmap",
    summary: "Counts by second and offset",
    about: "The last column may reach beyond the window.",
    parameters: &[COMMON, UNIT, VALUE, HEATMAP],
    answers: &[json("Heatmap")],
    ..QUESTION
};

pub(in crate::api) const GET_TIMELINE: Operation = Operation {
    path: "/api/v1/timeline",
    id: "timeline",
    summary: "Samples one by one, or what ran before some",
    about: "With `before` the answer is a tree of what ran on the same CPUs, else the samples in the order of time.",
    parameters: &[COMMON, UNIT, VALUE, TIMELINE, VIEW, MATCH],
    answers: &[json("Timeline"), json("Flamegraph")],
    ..QUESTION
};

pub(in crate::api) const GET_DIFF: Operation = Operation {
    path: "/api/v1/diff",
    id: "diff",
    summary: "A tree of two windows, or of two selectors",
    about: "`type`, `query`, `from` and `until` are side B (after). One of the `base_*` is needed: side A (before).",
    parameters: &[
        COMMON,
        UNIT,
        VALUE,
        EXCEPT,
        BASE,
        BASE_EXCEPT,
        CRITERIA,
        DIFF,
        GROUP,
        VIEW,
        MATCH,
    ],
    answers: &[json("Difference"), SVG, PLAIN],
    ..QUESTION
};

pub(in crate::api) const GET_TOP: Operation = Operation {
    path: "/api/v1/top",
    id: "top",
    summary: "A ranked table of functions, or of a label's values",
    about: "With one of the `base_*` the table is a difference, and takes no frame. `normalize`, `measure` and \
            `confidence` need it. With a frame, samples whose stack has it count alone.",
    parameters: &[COMMON, UNIT, VALUE, EXCEPT, BASE, BASE_EXCEPT, CRITERIA, MATCH, TOP],
    answers: &[json("Top"), text("text/csv; charset=utf-8")],
    ..QUESTION
};

pub(in crate::api) const POST_SQL: Operation = Operation {
    method: "post",
    path: "/api/v1/sql",
    id: "sql",
    summary: "SQL over the tables",
    about: "Statements read. docs/tables.md has the tables, docs/api.md what is bounded.",
    body: &[json("Statement")],
    answers: &[json("Rows")],
    errors: &[
        Code::BadQuery,
        Code::BadParameter,
        Code::UnsupportedMediaType,
        Code::TooLarge,
        Code::Overloaded,
        Code::Timeout,
        Code::Internal,
    ],
    ..QUESTION
};

/// What is kept beside samples.
const OF_NOTES: Operation = Operation {
    errors: &[Code::BadParameter],
    tag: Tag::Notes,
    ..QUESTION
};

pub(in crate::api) const GET_MARKERS: Operation = Operation {
    path: "/api/v1/markers",
    id: "markers",
    summary: "What happened in a window",
    about: "Markers that were sent, versions of services that came, and agents that began, in the order of time. A \
            selector is asked of those labels that a marker has. Of more than 2,000 the older ones are counted.",
    parameters: &[COMMON, MARKERS],
    answers: &[json("Markers")],
    errors: QUERY,
    ..OF_NOTES
};

pub(in crate::api) const POST_MARKERS: Operation = Operation {
    method: "post",
    path: "/api/v1/markers",
    id: "send_marker",
    summary: "Keeps a marker",
    about: "It takes a sender's token. The same marker twice is one; another one of its id takes its place.",
    body: &[json("SentMarker")],
    answers: &[json("KeptMarker")],
    errors: &[
        Code::BadParameter,
        Code::UnsupportedMediaType,
        Code::TooLarge,
        Code::DiskFull,
    ],
    ..OF_NOTES
};

pub(in crate::api) const GET_VIEWS: Operation = Operation {
    path: "/api/v1/views",
    id: "views",
    summary: "Addresses of the page with names",
    answers: &[json("Views")],
    ..OF_NOTES
};

pub(in crate::api) const GET_VIEW: Operation = Operation {
    path: "/api/v1/views/{name}",
    id: "view",
    summary: "The address of a name",
    about: "`ETag` is what `If-Match` takes.",
    answers: &[json("View")],
    errors: &[Code::BadParameter, Code::NotFound],
    ..OF_NOTES
};

pub(in crate::api) const PUT_VIEW: Operation = Operation {
    method: "put",
    path: "/api/v1/views/{name}",
    id: "put_view",
    summary: "Keeps an address under a name",
    about: "With `If-Match` it takes the place of the one with this tag; otherwise it is a new one (201), and refused \
            where there is one of its name.",
    body: &[json("SentView")],
    answers: &[json("View")],
    errors: &[
        Code::BadParameter,
        Code::UnsupportedMediaType,
        Code::Changed,
        Code::TooLarge,
        Code::DiskFull,
    ],
    ..OF_NOTES
};

pub(in crate::api) const DELETE_VIEW: Operation = Operation {
    method: "delete",
    path: "/api/v1/views/{name}",
    id: "remove_view",
    summary: "Forgets a name",
    about: "With `If-Match` only where it has this tag.",
    status: 204,
    errors: &[Code::BadParameter, Code::NotFound, Code::Changed, Code::DiskFull],
    ..OF_NOTES
};

pub(in crate::api) const GET_BURSTS: Operation = Operation {
    path: "/api/v1/bursts",
    id: "bursts",
    summary: "Closer looks, the newest first",
    about: "Those that wait for their agent, that run, and what became of the others.",
    answers: &[json("Bursts")],
    errors: &[Code::BadParameter, Code::DiskFull],
    ..OF_NOTES
};

pub(in crate::api) const POST_BURSTS: Operation = Operation {
    method: "post",
    path: "/api/v1/bursts",
    id: "begin_burst",
    summary: "Has nodes sampled at a high rate for a while",
    about: "It takes a token of `--burst-token-file`. The agents hear of it within two seconds.",
    body: &[json("AskedBurst")],
    status: 201,
    answers: &[json("Bursts")],
    errors: &[
        Code::BadQuery,
        Code::BadParameter,
        Code::NotFound,
        Code::TooManyRequests,
        Code::UnsupportedMediaType,
        Code::TooLarge,
        Code::DiskFull,
    ],
    ..OF_NOTES
};

pub(in crate::api) const DELETE_BURST: Operation = Operation {
    method: "delete",
    path: "/api/v1/bursts/{id}",
    id: "cancel_burst",
    summary: "Ends a closer look",
    about: "It takes the same token. One that runs is `running` until its agent has said that it ended.",
    answers: &[json("Bursts")],
    errors: &[Code::BadParameter, Code::NotFound, Code::DiskFull],
    ..OF_NOTES
};

/// What tells of the server.
pub(super) const OF_SERVER: Operation = Operation {
    errors: &[],
    tag: Tag::Server,
    ..QUESTION
};

pub(super) const OF_SENDING: Operation = Operation {
    method: "post",
    errors: REFUSED,
    tag: Tag::Sending,
    ..QUESTION
};

pub(super) const OF_MACHINES: Operation = Operation {
    errors: &[Code::NotFound, Code::BadParameter],
    tag: Tag::Machines,
    ..QUESTION
};

pub(super) const OF_BROWSER: Operation = Operation {
    errors: &[],
    tag: Tag::Browser,
    ..QUESTION
};
