//! Schemas of JSON in few words.
//!
//! In: what a field is and means. Out: JSON Schema of the draft 2020-12, as OpenAPI 3.1 has it. Knows no answer.

use serde_json::{Value, json};

/// An object with these fields. A field whose name ends with `?` may be absent.
pub(super) fn object<'f>(about: &str, fields: impl IntoIterator<Item = (&'f str, Value)>) -> Value {
    let mut properties = serde_json::Map::new();
    let mut required = Vec::new();
    for (name, schema) in fields {
        let known = name.trim_end_matches('?');
        if known == name {
            required.push(known);
        }
        properties.insert(known.to_owned(), schema);
    }
    json!({"type": "object", "description": about, "properties": properties, "required": required})
}

/// An object whose fields have names of their own.
pub(super) fn map(about: &str, each: Value) -> Value {
    json!({"type": "object", "description": about, "additionalProperties": each})
}

pub(super) fn list(about: &str, items: Value) -> Value {
    json!({"type": "array", "description": about, "items": items})
}

/// A list of numbers, one a node, step or sample.
pub(super) fn column(about: &str) -> Value {
    list(about, json!({"type": "number"}))
}

/// The same of whole numbers from 0.
pub(super) fn counts(about: &str) -> Value {
    list(about, json!({"type": "integer", "minimum": 0}))
}

/// A whole number from 0.
pub(super) fn count(about: &str) -> Value {
    json!({"type": "integer", "minimum": 0, "description": about})
}

pub(super) fn integer(about: &str) -> Value {
    json!({"type": "integer", "description": about})
}

pub(super) fn number(about: &str) -> Value {
    json!({"type": "number", "description": about})
}

/// A number from 0 to 1.
pub(super) fn share(about: &str) -> Value {
    json!({"type": "number", "minimum": 0, "maximum": 1, "description": about})
}

pub(super) fn text(about: &str) -> Value {
    json!({"type": "string", "description": about})
}

pub(super) fn flag(about: &str) -> Value {
    json!({"type": "boolean", "description": about})
}

pub(super) fn words<'w>(about: &str, words: impl IntoIterator<Item = &'w str>) -> Value {
    let words: Vec<&str> = words.into_iter().collect();
    json!({"type": "string", "description": about, "enum": words})
}

/// The same, or null.
pub(super) fn or_null(mut schema: Value) -> Value {
    match schema.get("type").cloned() {
        Some(kind) => schema["type"] = json!([kind, "null"]),
        None => schema = json!({"anyOf": [schema, {"type": "null"}]}),
    }
    schema
}

/// One of the document's named schemas.
pub(super) fn named(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}
