//! The document itself: operations, parameters and schemas as OpenAPI 3.1.

use super::all::ALL;
use super::answers;
use super::operation::{Content, Holds, Operation};
use super::parameter::{Parameter, Takes};
use super::schema::{named, object, text};
use super::tag::Tag;
use crate::api::door::{Door, door_of};
use crate::api::error::Code;
use crate::label::Label;
use axum::http::StatusCode;
use serde_json::{Map, Value, json};

const ABOUT: &str = "Everything that the page shows comes from here, and senders send to it. Times in answers are \
                     Unix milliseconds, unless a name says otherwise. docs/api.md says what counts, what was observed \
                     and which limits there are.";

/// Errors that come before an operation is looked at.
const OF_ALL: [Code; 2] = [Code::Forbidden, Code::Misdirected];
const OF_TOKENS: [Code; 2] = [Code::Unauthorized, Code::TooManyRequests];

/// All of it.
pub(super) fn document() -> Value {
    let mut paths = Map::new();
    for operation in &ALL {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method] = described(operation);
    }
    let tags = Tag::ALL.map(|tag| json!({"name": tag.name(), "description": tag.about()}));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Stakeout",
            "version": env!("CARGO_PKG_VERSION"),
            "description": ABOUT,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "The server that this document comes from."}],
        "tags": tags,
        "paths": paths,
        "components": {
            "schemas": schemas(),
            "headers": headers(),
            "securitySchemes": security_schemes(),
        },
    })
}

fn security_schemes() -> Value {
    json!({
        "viewing_token": {"type": "http", "scheme": "bearer",
            "description": "A viewing token. None is needed where the server has none."},
        "session": {"type": "apiKey", "in": "cookie", "name": crate::api::door::COOKIE,
            "description": "What a browser gets for a viewing token at /login."},
        "ingest_token": {"type": "http", "scheme": "bearer",
            "description": "An ingest token. None is needed where the server has none."},
        "burst_token": {"type": "http", "scheme": "bearer",
            "description": "A token for bursts. Where the server has none, an ingest token on loopback, and nothing \
                beyond it."},
        "ingest_password": {"type": "http", "scheme": "basic",
            "description": "An ingest token as the password, with any user name."},
    })
}

/// Headers of answers that are no part of HTTP itself, and those that say how long an answer holds.
fn headers() -> Value {
    json!({
        "ETag": {"description": "Of answers whose times are all absolute and over.", "schema": {"type": "string"}},
        "stakeout-damaged-files": {"description": "How many files an answer lacks since they are not what was \
            written; absent where it lacks none.", "schema": {"type": "integer", "minimum": 1}},
        "stakeout-unit-choice": {"description": "Which of several units the answer is of, in words; absent where \
            there is only one.", "schema": {"type": "string"}},
        "Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer", "minimum": 0}},
    })
}

fn described(operation: &Operation) -> Value {
    let mut parameters: Vec<Value> = in_path(operation.path).map(of_path).collect();
    parameters.extend(operation.parameters.iter().copied().flatten().map(of_query));
    let mut shown = json!({
        "operationId": operation.id,
        "summary": operation.summary,
        "tags": [operation.tag.name()],
        "parameters": parameters,
        "responses": responses(operation),
        "security": security(operation),
    });
    if !operation.about.is_empty() {
        shown["description"] = json!(operation.about);
    }
    if !operation.body.is_empty() {
        shown["requestBody"] = json!({"required": true, "content": content(operation.body)});
    }
    shown
}

fn in_path(path: &str) -> impl Iterator<Item = &str> {
    path.split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

fn of_path(name: &str) -> Value {
    json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}})
}

fn of_query(parameter: &Parameter) -> Value {
    let mut schema = taken(parameter.takes);
    if let Some(usual) = parameter.usual {
        // A share is a number, and so is what it usually is.
        schema["default"] = match usual.parse::<f64>() {
            Ok(number) if matches!(parameter.takes, Takes::Share { .. }) => json!(number),
            _ => json!(usual),
        };
    }
    json!({
        "name": parameter.name,
        "in": "query",
        "description": parameter.about,
        "required": parameter.is_needed,
        "schema": schema,
    })
}

fn taken(takes: Takes) -> Value {
    match takes {
        Takes::Text => json!({"type": "string"}),
        Takes::Word => json!({"type": "string", "examples": ["kubelet"]}),
        Takes::Selector => named("Selector"),
        Takes::Time => named("Time"),
        Takes::Duration => named("Duration"),
        Takes::Pattern => named("Pattern"),
        Takes::Frame => named("Frame"),
        Takes::Path => named("FramePath"),
        Takes::Labels { most } => {
            json!({"type": "string", "examples": ["service,process"], "description":
                format!("Names of labels, each once, at most {most}, with commas between.")})
        }
        Takes::Label([]) => named("Label"),
        Takes::Label(words) => json!({"anyOf": [{"enum": words}, named("Label")]}),
        Takes::LabelAmong(words) => {
            json!({"anyOf": [{"enum": words}, {"type": "string"}], "description":
                "One of these labels, or an attribute as in Label."})
        }
        Takes::Words(words) => json!({"type": "string", "enum": words}),
        Takes::Count { usual, most } => json!({"type": "integer", "minimum": 1, "maximum": most, "default": usual}),
        Takes::Share { least, most, is_below } => {
            let end = if is_below { "exclusiveMaximum" } else { "maximum" };
            json!({"type": "number", "minimum": least, end: most})
        }
    }
}

/// The schemas of what parameters take, by the names that [`taken`] refers to.
fn kinds() -> Vec<(&'static str, Value)> {
    let fixed = Label::ALL.map(|label| label.name().to_owned());
    let duration = "[0-9]+(ms|s|m|h|d|w)";
    vec![
        (
            "Selector",
            json!({"type": "string", "maxLength": 16_384, "examples": ["{service=\"kubelet\",node=~\"db-.*\"}"],
                "description": "A PromQL selector of at most 16 KiB and 64 conditions, with =, !=, =~ and !~. All \
                    conditions must hold. A regular expression is anchored at both ends."}),
        ),
        (
            "Time",
            json!({"type": "string", "examples": ["2026-11-21T08:00:00Z", "1795248000000", "now", "now-15m"],
                "pattern": format!("^(now([-+]{duration})?|[0-9]+|[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}T.+)$"),
                "description": "RFC 3339, Unix milliseconds, or relative to now."}),
        ),
        (
            "Duration",
            json!({"type": "string", "pattern": format!("^{duration}$"), "examples": ["500ms", "10s", "5m", "1h"],
                "description": "A whole number with a unit, from 1 ms to 400 days."}),
        ),
        (
            "Pattern",
            json!({"type": "string", "examples": ["^sys_read$"],
                "description": "A regular expression without look-around and back-references. It is searched for \
                    anywhere in a name."}),
        ),
        (
            "Frame",
            json!({"type": "string", "pattern": "^[a-z0-9]+,", "examples": ["native,kubelet,main.main", "cpython,jobs,jobs.work"],
                "description": "KIND,MODULE,FUNCTION. KIND is the language where answers tell one, else the kind. A \
                    backslash stands before `;`, before a backslash, and before a comma of the module."}),
        ),
        (
            "FramePath",
            json!({"type": "string", "examples": ["native,kubelet,main.main;native,kubelet,work"],
                "description": "Frames from the root on, with `;` between."}),
        ),
        (
            "Label",
            json!({"anyOf": [{"enum": fixed}, {"type": "string"}],
                "description": "A fixed label, or an attribute by its own name; one without dot, slash or dash is \
                    written `attribute.NAME`."}),
        ),
    ]
}

/// The schemas of answers, and of what parameters take.
fn schemas() -> Map<String, Value> {
    let all = kinds().into_iter().chain(answers::schemas());
    all.map(|(name, schema)| (name.to_owned(), schema)).collect()
}

fn content(of: &[Content]) -> Value {
    let mut kinds: Map<String, Value> = Map::new();
    for content in of {
        let schema = match content.holds {
            Holds::Schema(name) => named(name),
            Holds::Json => json!({"type": "object"}),
            Holds::Text => json!({"type": "string"}),
            Holds::Bytes => json!({}),
            Holds::Form(fields) => object(
                "Fields of a form.",
                fields.iter().map(|(name, about)| (*name, text(about))),
            ),
        };
        let schema = match kinds.get(content.kind) {
            Some(other) => json!({"anyOf": [other["schema"], schema]}),
            None => schema,
        };
        kinds.insert(content.kind.to_owned(), json!({"schema": schema}));
    }
    Value::Object(kinds)
}

fn responses(operation: &Operation) -> Value {
    let mut all = refusals(operation);
    let mut good = json!({"description": operation.summary});
    if !operation.answers.is_empty() {
        good["content"] = content(operation.answers);
    }
    if operation.tag == Tag::Questions {
        let mut names = vec!["stakeout-damaged-files", "stakeout-unit-choice"];
        if operation.method == "get" {
            names.push("ETag");
            let unchanged = "Nothing has changed since the answer that `If-None-Match` names.";
            all.insert("304".to_owned(), json!({"description": unchanged}));
        }
        let headers: Map<String, Value> = names.into_iter().map(|name| (name.to_owned(), header(name))).collect();
        good["headers"] = json!(headers);
    }
    all.insert(operation.status.to_string(), good);
    Value::Object(all)
}

/// Answers that are no success, by status; a status may stand for several codes.
fn refusals(operation: &Operation) -> Map<String, Value> {
    let of_tokens: &[Code] = match door_of(&operation.method.to_uppercase(), operation.path) {
        Door::Open => &[],
        Door::View | Door::Ingest | Door::Burst => &OF_TOKENS,
    };
    let mut all = Map::new();
    // Where the status of HTTP tells nothing of errors, neither does the document.
    if operation.refusals.is_empty() {
        return all;
    }
    let codes: Vec<Code> = [operation.errors, of_tokens, &OF_ALL].concat();
    let mut add = |status: StatusCode, about: &str| {
        all.insert(status.as_u16().to_string(), refused(operation, status, about));
    };
    for code in &codes {
        let same = codes.iter().filter(|other| other.status() == code.status());
        let same: Vec<String> = same
            .map(|code| format!("`{}`: {}.", code.as_str(), code.when()))
            .collect();
        add(code.status(), &same.join(" "));
    }
    if !operation.body.is_empty() {
        let late = "`bad_parameter`: the body did not come in time.";
        add(StatusCode::REQUEST_TIMEOUT, late);
    }
    all
}

fn refused(operation: &Operation, status: StatusCode, about: &str) -> Value {
    let mut refused = json!({"description": about, "content": content(operation.refusals)});
    if matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
        refused["headers"] = json!({"Retry-After": header("Retry-After")});
    }
    refused
}

fn header(name: &str) -> Value {
    json!({"$ref": format!("#/components/headers/{name}")})
}

/// Whose token a path takes. Without tokens of its kind a server asks for none.
fn security(operation: &Operation) -> Value {
    match door_of(&operation.method.to_uppercase(), operation.path) {
        Door::Open => json!([]),
        Door::View => json!([{"viewing_token": []}, {"session": []}, {}]),
        Door::Ingest => json!([{"ingest_token": []}, {"ingest_password": []}, {}]),
        Door::Burst => json!([{"burst_token": []}, {"ingest_token": []}, {}]),
    }
}
