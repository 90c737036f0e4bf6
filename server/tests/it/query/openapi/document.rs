//! The document, and what holds answers against it.

use super::super::*;
use boon::{Compiler, SchemaIndex, Schemas};
use std::collections::BTreeSet;

const ADDRESS: &str = "http://stakeout.example/openapi.json";

/// The document as a server gives it.
pub(super) struct Document(pub(super) Value);

impl Document {
    pub(super) async fn of(server: &Server) -> Document {
        let document = server.json("openapi.json", &[]).await;
        assert_eq!(document["openapi"], "3.1.0");
        assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
        Document(document)
    }

    /// Path, method and description of each operation.
    pub(super) fn operations(&self) -> impl Iterator<Item = (&str, &str, &Value)> {
        let paths = self.0["paths"].as_object().unwrap().iter();
        paths.flat_map(|(path, methods)| {
            let methods = methods.as_object().unwrap().iter();
            methods.map(move |(method, operation)| (&**path, &**method, operation))
        })
    }

    /// Names of a question's path behind `/api/v1/`, with the parameters of its query string.
    pub(super) fn questions(&self) -> impl Iterator<Item = (&str, Vec<&Value>)> {
        let questions = self
            .operations()
            .filter(|(_, method, operation)| operation["tags"] == json!(["questions"]) && *method == "get");
        questions.map(|(path, _, operation)| {
            let parameters = operation["parameters"].as_array().unwrap().iter();
            let path = path.strip_prefix("/api/v1/").unwrap();
            (path, parameters.filter(|one| one["in"] == "query").collect())
        })
    }

    /// A parameter's schema, wherever it stands.
    pub(super) fn schema<'d>(&'d self, parameter: &'d Value) -> (&'d str, &'d Value) {
        let schema = &parameter["schema"];
        match schema["$ref"].as_str() {
            Some(named) => (
                named.rsplit('/').next().unwrap(),
                self.0.pointer(&named[1..]).unwrap_or_else(|| panic!("{named}")),
            ),
            None => ("", schema),
        }
    }
}

/// Objects may have no field that their schema does not name.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.values_mut().for_each(close);
            if fields.get("properties").is_some_and(Value::is_object) && !fields.contains_key("additionalProperties") {
                fields.insert("additionalProperties".to_owned(), json!(false));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

/// Holds answers against the schemas that the document has for them.
pub(super) struct Judge {
    compiler: Compiler,
    schemas: Schemas,
    pub(super) seen: BTreeSet<String>,
}

impl Judge {
    pub(super) fn of(document: &Document) -> Judge {
        let mut closed = document.0.clone();
        close(&mut closed["components"]["schemas"]);
        let mut compiler = Compiler::new();
        compiler.add_resource(ADDRESS, closed).unwrap();
        Judge {
            compiler,
            schemas: Schemas::new(),
            seen: BTreeSet::new(),
        }
    }

    pub(super) fn schema(&mut self, pointer: &str) -> SchemaIndex {
        let pointer = pointer.replace('{', "%7B").replace('}', "%7D");
        let compiled = self
            .compiler
            .compile(&format!("{ADDRESS}#{pointer}"), &mut self.schemas);
        compiled.unwrap_or_else(|error| panic!("{pointer}: {error:#}"))
    }

    pub(super) fn fault(&mut self, pointer: &str, value: &Value) -> Option<String> {
        let schema = self.schema(pointer);
        let result = self.schemas.validate(value, schema);
        result.err().map(|error| format!("{error:#}"))
    }

    /// An answer of this status to this operation.
    pub(super) fn holds(&mut self, operation: (&str, &str), status: u16, body: &[u8]) -> Value {
        let (method, path) = operation;
        let escaped = path.replace('~', "~0").replace('/', "~1");
        let pointer = format!("/paths/{escaped}/{method}/responses/{status}/content/application~1json/schema");
        let value: Value = serde_json::from_slice(body).unwrap();
        if let Some(fault) = self.fault(&pointer, &value) {
            let shown: String = value.to_string().chars().take(2_000).collect();
            panic!("{method} {path}, {status}: {fault}\n{shown}");
        }
        self.seen.insert(format!("{method} {path} {status}"));
        value
    }

    /// The same of a question by `GET`.
    pub(super) async fn ask(
        &mut self,
        server: &Server,
        path: &str,
        asked: &str,
        parameters: &[(&str, &str)],
    ) -> (u16, Value) {
        let (status, _, body) = server.get(asked, parameters).await;
        let answer = self.holds(("get", &format!("/api/v1/{path}")), status.as_u16(), &body);
        (status.as_u16(), answer)
    }
}
