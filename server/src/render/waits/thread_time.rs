//! Threads' time as JSON.

use crate::profile_type::WAITS;
use crate::query::ThreadTime;
use crate::render::error::RenderError;
use crate::render::json::{NS_PER_MS, exposure_of, write};
use crate::render::writer::Writer;
use serde_json::{Value, json};

/// About how many bytes a row's value takes beside the text.
const ROW_BYTES: usize = 256;
/// The same of a part in a row.
const PART_BYTES: usize = 32;

/// Seconds by a label's values and by what the time went to.
pub fn thread_time(told: &ThreadTime, to: &mut Writer) -> Result<(), RenderError> {
    to.beside(told.rows.len() * (ROW_BYTES + told.parts.len() * PART_BYTES))?;
    let seconds = |ns: i64| ns as f64 / 1e9;
    let parts: Vec<Value> = (told.parts.iter())
        .map(|part| {
            json!({
                "type": part.profile,
                "class": part.class,
                "seconds": seconds(part.total_ns),
                "rates": part.rates,
            })
        })
        .collect();
    let rows: Vec<Value> = (told.rows.iter())
        .map(|row| {
            let each: Vec<f64> = row.parts_ns.iter().copied().map(seconds).collect();
            json!({"name": row.name, "seconds": each})
        })
        .collect();
    let times: Vec<i64> = (0..told.steps.count)
        .map(|step| told.steps.bounds(step).0.div_euclid(NS_PER_MS))
        .collect();
    let answer = json!({
        "query": told.question.selector.to_string(),
        "from": told.question.window.from_ms(),
        "until": told.question.window.until_ms(),
        "by": told.by.name(),
        "step_ms": told.steps.step_ns / NS_PER_MS,
        "times": times,
        "covered": told.covered,
        "exposure": exposure_of(WAITS[0], &told.exposure),
        "parts": parts,
        "rows": rows,
        "count": told.count,
        "complete": told.count == told.rows.len(),
    });
    write(to, &answer)
}
