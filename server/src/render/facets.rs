//! Charts and tables of several labels: each as the endpoint of its own writes it.

use crate::query::{Facet, Question};
use crate::render::error::RenderError;
use crate::render::writer::Writer;
use crate::render::{series, top};
use serde_json::json;
use std::io::Write;

/// See the module.
pub fn facets(question: &Question, facets: &[Facet], to: &mut Writer) -> Result<(), RenderError> {
    let put = |text: &str, to: &mut Writer| {
        let written = to.write_all(text.as_bytes());
        written.map_err(|error| RenderError::new("answer", error))
    };
    let head = json!({
        "type": question.profile,
        "query": question.selector.to_string(),
        "from": question.window.from_ms(),
        "until": question.window.until_ms(),
    });
    let head = head.to_string();
    put(head.trim_end_matches('}'), to)?;
    put(",\"facets\":[", to)?;
    for (place, facet) in facets.iter().enumerate() {
        let comma = if place == 0 { "" } else { "," };
        put(&format!("{comma}{{\"by\":{}", json!(facet.by.name())), to)?;
        if let Some(of_label) = &facet.series {
            put(",\"series\":", to)?;
            series(of_label, to)?;
        }
        if let Some(of_label) = &facet.top {
            put(",\"top\":", to)?;
            top(of_label, to)?;
        }
        put("}", to)?;
    }
    put("]}", to)
}
