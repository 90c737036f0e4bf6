//! The server, and who sends to it.

use super::common::Fields;
use crate::api::openapi::schema::{count, flag, integer, list, map, number, object, or_null, share, text};
use serde_json::{Value, json};

/// What tells of the server and of those who send to it.
pub(super) fn senders() -> Fields {
    let info = object(
        "This server.",
        [
            ("version", text("Its version.")),
            (
                "build_profile",
                text("Cargo's profile by which the server was compiled: `release`, `up` for a quick start, `debug`."),
            ),
            ("install_command", text("Installs the agent on a machine.")),
            ("agent_download", flag("Whether it has an agent to hand out.")),
            ("freshness", freshness()),
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
        (
            "burst_limit_hz",
            integer("The highest rate of a closer look in Hz; 0 where there is none."),
        ),
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
        ("Servers", servers()),
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

/// How old answers may be.
fn freshness() -> Value {
    object(
        "How old answers may be. What this server has taken in is in them at once.",
        [
            (
                "servers",
                count("Servers on the same data that are alive, with this one."),
            ),
            (
                "commit_ms",
                integer("Milliseconds from one of its commits to the next: more with more servers."),
            ),
            (
                "behind_ms",
                integer("Milliseconds since it knew all that other servers had committed; 0 where there are none."),
            ),
        ],
    )
}

fn servers() -> Value {
    let server = object(
        "A server.",
        [
            ("id", text("Another one with each start.")),
            ("address", text("Where it says that it is reached.")),
            (
                "exchange",
                text("Where it counts shares of questions for the others; empty: nowhere."),
            ),
            ("version", text("Its version.")),
            ("format", integer("The format of the store that it writes.")),
            (
                "started",
                integer("When it was started by its own clock, in Unix milliseconds."),
            ),
            ("heard_ms", integer("Milliseconds since it was last heard of.")),
            ("alive", flag("Whether it counts as alive.")),
            ("own", flag("Whether it is the one that answers.")),
        ],
    );
    object(
        "The servers on the same data.",
        [
            (
                "servers",
                list("One row a server, in the order of their start.", server),
            ),
            ("maintains", flag("Whether the one that answers does the maintenance.")),
        ],
    )
}
