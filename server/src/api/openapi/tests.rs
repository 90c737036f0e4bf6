//! The document is whole by itself, and says what docs/api.md and docs/wire.md say.

use super::all::ALL;
use super::document::document;
use super::format::{OF_DIFFERENCE, OF_FLAMEGRAPH, TreeFormat};
use super::operation::{GET_DIFF, GET_FLAMEGRAPH};
use super::parameter::{FACETS, GROUP, INGEST, MATCH, Parameter, SERIES};
use super::tag::Tag;
use crate::query::{MAX_STEPS, MOST_FACETS, MOST_PATH, MOST_ROWS};
use serde_json::Value;
use std::collections::BTreeSet;

/// Every value below one with this key.
fn all<'v>(value: &'v Value, key: &str, found: &mut Vec<&'v Value>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get(key));
            fields.values().for_each(|field| all(field, key, found));
        }
        Value::Array(items) => items.iter().for_each(|item| all(item, key, found)),
        _ => {}
    }
}

#[test]
fn what_the_document_refers_to_is_there_and_all_of_it_is_referred_to() {
    let document = document();
    let mut references = Vec::new();
    all(&document, "$ref", &mut references);
    let references: BTreeSet<&str> = references.into_iter().filter_map(Value::as_str).collect();
    for reference in &references {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
    for part in ["schemas", "headers"] {
        for name in document["components"][part].as_object().unwrap().keys() {
            let reference = format!("#/components/{part}/{name}");
            assert!(references.contains(&*reference), "nothing refers to {reference}");
        }
    }
    let mut schemes = Vec::new();
    all(&document, "security", &mut schemes);
    let given = &document["components"]["securitySchemes"];
    for scheme in schemes.iter().flat_map(|scheme| scheme.as_array().unwrap()) {
        let names = scheme.as_object().unwrap().keys();
        names.for_each(|name| assert!(given.get(name).is_some(), "{name}"));
    }
}

#[test]
fn operations_have_names_of_their_own_and_describe_what_they_take_once() {
    let document = document();
    let mut ids = Vec::new();
    all(&document, "operationId", &mut ids);
    assert_eq!(ids.len(), ALL.len());
    let ids: BTreeSet<String> = ids.into_iter().map(Value::to_string).collect();
    assert_eq!(ids.len(), ALL.len(), "{ids:?}");
    for operation in &ALL {
        let shown = &document["paths"][operation.path][operation.method];
        let parameters = shown["parameters"].as_array().unwrap();
        let names: BTreeSet<String> = parameters.iter().map(|one| one["name"].to_string()).collect();
        assert_eq!(names.len(), parameters.len(), "{}: {names:?}", operation.id);
        let in_path = parameters.iter().filter(|one| one["in"] == "path").count();
        assert_eq!(in_path, operation.path.matches('{').count(), "{}", operation.id);
        let good = operation.status.to_string();
        assert!(shown["responses"][&good].is_object(), "{}", operation.id);
    }
}

#[test]
fn the_texts_have_each_question_and_each_parameter() {
    let (api, wire) = (
        include_str!("../../../docs/api.md"),
        include_str!("../../../docs/wire.md"),
    );
    for operation in &ALL {
        if matches!(operation.tag, Tag::Questions | Tag::Notes | Tag::Server) {
            let head = format!("{} {}", operation.method.to_uppercase(), operation.path);
            assert!(api.contains(&head), "docs/api.md has no {head}");
        }
        for parameter in operation.parameters.iter().copied().flatten() {
            let is_sent = INGEST.iter().any(|one| one.name == parameter.name);
            let shown = [format!("`{}`", parameter.name), format!("`{}=", parameter.name)];
            let text = if is_sent && operation.tag == Tag::Sending {
                wire
            } else {
                api
            };
            assert!(shown.iter().any(|shown| text.contains(shown)), "{}", parameter.name);
        }
    }
}

#[test]
fn trees_are_described_in_every_form_that_can_be_asked_for() {
    for (operation, formats) in [(GET_FLAMEGRAPH, &OF_FLAMEGRAPH[..]), (GET_DIFF, &OF_DIFFERENCE[..])] {
        for format in formats {
            assert_eq!(TreeFormat::of(format.word()), Some(*format));
            let kind = format.file().map_or("application/json", |(kind, _)| kind);
            let is_described = operation.answers.iter().any(|content| content.kind == kind);
            assert!(is_described, "`answers` of {} have no {kind}", operation.path);
        }
    }
}

#[test]
fn numbers_in_sentences_are_those_of_the_code() {
    let about = |table: &[Parameter], name: &str| table.iter().find(|one| one.name == name).unwrap().about;
    for (sentence, number, grouped) in [
        (about(SERIES, "step"), MAX_STEPS, "5,000"),
        (about(MATCH, "match_path"), MOST_PATH, "1,024"),
        (about(GROUP, "group"), MOST_ROWS, "4"),
        (about(FACETS, "by"), MOST_FACETS, "8"),
    ] {
        assert_eq!(grouped.replace(',', ""), number.to_string());
        assert!(sentence.contains(grouped), "{sentence}");
    }
}
