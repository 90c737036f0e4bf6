//! Every operation, in the order of the document.

use super::operation::{
    Content, DELETE_BURST, DELETE_VIEW, GET_BURSTS, GET_DIFF, GET_FACETS, GET_FLAMEGRAPH, GET_HEATMAP,
    GET_LABEL_VALUES, GET_LABELS, GET_MARKERS, GET_RUN_QUEUE, GET_SEARCH, GET_SERIES, GET_THREAD_TIME, GET_TIMELINE,
    GET_TOP, GET_VIEW, GET_VIEWS, HTML, Holds, OF_BROWSER, OF_MACHINES, OF_SENDING, OF_SERVER, Operation, PLAIN,
    POST_BURSTS, POST_MARKERS, POST_SQL, PUT_VIEW, bytes, json, text,
};
use super::parameter::{INGEST, LOGIN};
use crate::api::error::Code;

/// The whole API.
pub(super) const ALL: [Operation; 39] = [
    GET_LABELS,
    GET_LABEL_VALUES,
    GET_SEARCH,
    GET_SERIES,
    GET_RUN_QUEUE,
    GET_FACETS,
    GET_THREAD_TIME,
    GET_FLAMEGRAPH,
    GET_DIFF,
    GET_TOP,
    GET_HEATMAP,
    GET_TIMELINE,
    POST_SQL,
    GET_MARKERS,
    POST_MARKERS,
    GET_VIEWS,
    GET_VIEW,
    PUT_VIEW,
    DELETE_VIEW,
    GET_BURSTS,
    POST_BURSTS,
    DELETE_BURST,
    Operation {
        path: "/api/v1/agent/bursts",
        id: "agent_bursts",
        summary: "An agent asks whether somebody wants a closer look",
        about: "Only agents ask here. The answer is held until there is something to say.",
        body: &[json("BurstQuestion")],
        answers: &[json("BurstAnswer")],
        errors: &[
            Code::BadParameter,
            Code::UnsupportedMediaType,
            Code::TooLarge,
            Code::DiskFull,
        ],
        ..OF_SENDING
    },
    Operation {
        path: "/api/v1/nodes",
        id: "nodes",
        summary: "Agents and other senders",
        answers: &[json("Nodes")],
        ..OF_SERVER
    },
    Operation {
        path: "/api/v1/info",
        id: "info",
        summary: "The server's version, and how to add a machine",
        answers: &[json("Info")],
        ..OF_SERVER
    },
    Operation {
        path: "/api/v1/servers",
        id: "servers",
        summary: "The servers on the same data",
        about: "None where this server has its data for itself.",
        answers: &[json("Servers")],
        ..OF_SERVER
    },
    Operation {
        path: "/api/v1/openapi.json",
        id: "openapi",
        summary: "This document",
        answers: &[Content {
            kind: "application/json",
            holds: Holds::Json,
        }],
        ..OF_SERVER
    },
    Operation {
        path: "/healthz",
        id: "healthz",
        summary: "Whether the process lives",
        answers: &[PLAIN],
        ..OF_SERVER
    },
    Operation {
        path: "/readyz",
        id: "readyz",
        summary: "Whether the store is open and can be written to",
        answers: &[PLAIN],
        errors: &[Code::DiskFull],
        ..OF_SERVER
    },
    Operation {
        path: "/metrics",
        id: "metrics",
        summary: "Metrics as OpenMetrics text",
        about: "docs/metrics.md has the metrics.",
        answers: &[text("application/openmetrics-text; version=1.0.0; charset=utf-8")],
        errors: &[Code::Internal],
        ..OF_SERVER
    },
    Operation {
        path: "/v1development/profiles",
        id: "send_otlp",
        summary: "OTLP profiles over HTTP",
        about: "An ExportProfilesServiceRequest, compressed by gzip, zstd or not at all. The answer is an \
                ExportProfilesServiceResponse in the request's encoding; an error is a google.rpc.Status in it, with \
                the code in the header `stakeout-error`.",
        body: &[
            bytes("application/x-protobuf"),
            Content {
                kind: "application/json",
                holds: Holds::Json,
            },
        ],
        answers: &[
            bytes("application/x-protobuf"),
            Content {
                kind: "application/json",
                holds: Holds::Json,
            },
        ],
        refusals: &[bytes("application/x-protobuf"), json("Status")],
        ..OF_SENDING
    },
    Operation {
        path: "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export",
        id: "send_otlp_grpc",
        summary: "OTLP profiles over gRPC",
        about: "Errors are a status of gRPC.",
        body: &[bytes("application/grpc")],
        answers: &[bytes("application/grpc")],
        errors: &[],
        refusals: &[],
        ..OF_SENDING
    },
    Operation {
        path: "/ingest",
        id: "send_pprof",
        summary: "pprof as Pyroscope's clients send it",
        about: "The body is the profile, gzipped or not, or a form with the profile as the part `profile`. What is \
                left out is said in the answer's text.",
        parameters: &[INGEST],
        body: &[bytes("application/octet-stream"), bytes("multipart/form-data")],
        answers: &[PLAIN],
        ..OF_SENDING
    },
    Operation {
        method: "get",
        path: "/api/v1/ingest-check",
        id: "ingest_check",
        summary: "Whether the token may send",
        status: 204,
        errors: &[],
        ..OF_SENDING
    },
    Operation {
        path: "/install.sh",
        id: "install_script",
        summary: "The agent's install script",
        about: "It has this server's URL, its version and the agents' checksums.",
        answers: &[text("text/x-shellscript; charset=utf-8")],
        ..OF_MACHINES
    },
    Operation {
        path: "/download/{name}",
        id: "download",
        summary: "An agent, or its checksum",
        about: "`name` is `stakeout-agent-linux-x86_64` or `stakeout-agent-linux-aarch64`; with `.sha256` it is the \
                checksum.",
        answers: &[bytes("application/octet-stream"), PLAIN],
        errors: &[Code::NotFound, Code::Overloaded, Code::Internal],
        ..OF_MACHINES
    },
    Operation {
        path: "/login",
        id: "login_form",
        summary: "The form for a viewing token",
        parameters: &[LOGIN],
        answers: &[HTML],
        ..OF_BROWSER
    },
    Operation {
        method: "post",
        path: "/login",
        id: "login",
        summary: "Trades a viewing token for a cookie",
        about: "The answer leads to `next`. A wrong token has the form again, with 401.",
        body: &[Content {
            kind: "application/x-www-form-urlencoded",
            holds: Holds::Form(&[
                ("token", "A viewing token."),
                ("next", "The path of this server that is shown then."),
            ]),
        }],
        status: 303,
        errors: &[
            Code::BadParameter,
            Code::TooLarge,
            Code::TooManyRequests,
            Code::Internal,
        ],
        ..OF_BROWSER
    },
    Operation {
        method: "post",
        path: "/logout",
        id: "logout",
        summary: "Ends the browser's session",
        about: "The answer leads to `/login`.",
        status: 303,
        ..OF_BROWSER
    },
];
