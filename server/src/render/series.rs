//! The JSON answers that list: a chart's lines, labels and profile types.

use super::json::{NS_PER_MS, write};
use crate::query::{Found, Hit, Line, ProfileType, Series, Unit};
use crate::render::error::RenderError;
use crate::render::writer::Writer;
use serde::Serialize;
use serde_json::{Value, json};

/// Cores over time.
pub fn series(series: &Series, to: &mut Writer) -> Result<(), RenderError> {
    #[derive(Serialize)]
    struct Answer<'a> {
        #[serde(flatten)]
        head: Value,
        series: Vec<OfLine<'a>>,
    }
    #[derive(Serialize)]
    struct OfLine<'a> {
        value: &'a str,
        cores: &'a [Option<f64>],
        samples: u64,
        cpu_seconds: Option<f64>,
        total: i64,
    }
    let cpu_seconds = |line: &Line| series.unit.is_time().then(|| line.total as f64 / 1e9);
    let other = series.other.as_ref().map(|(count, sum)| {
        json!({
            "series": count,
            "cores": sum.rates,
            "samples": sum.samples,
            "cpu_seconds": cpu_seconds(sum),
            "total": sum.total,
        })
    });
    let unit = match series.unit.is_time() {
        true => "cores".to_owned(),
        false => format!("{} per second", series.unit.name()),
    };
    let window = series.question.window;
    let times: Vec<i64> = (0..series.steps.count)
        .map(|step| series.steps.bounds(step).0.div_euclid(NS_PER_MS))
        .collect();
    let head = json!({
        "type": series.question.profile,
        "query": series.question.selector.to_string(),
        "from": window.from_ms(),
        "until": window.until_ms(),
        "step_ms": series.steps.step_ns / NS_PER_MS,
        "by": series.by.name(),
        "unit": unit,
        "is_time": series.unit.is_time(),
        "other_senders": series.other_senders,
        "times": times,
        "covered": series.covered,
        "covered_by_node": series.covered_by_node,
        "idle": series.idle,
        "capacity": series.capacity,
        "other": other,
    });
    let series = series
        .lines
        .iter()
        .map(|line| OfLine {
            value: &line.value,
            cores: &line.rates,
            samples: line.samples,
            cpu_seconds: cpu_seconds(line),
            total: line.total,
        })
        .collect();
    write(to, &Answer { head, series })
}

/// The names of all labels, and the profile types of a window.
pub fn labels(names: &[String], types: &[ProfileType], to: &mut Writer) -> Result<(), RenderError> {
    let of_type = |of: &ProfileType| {
        json!({
            "type": of.name,
            "unit": of.unit.name(),
            "units": of.units.iter().map(Unit::name).collect::<Vec<_>>(),
            "is_time": of.unit.is_time(),
            "last_day": of.last_day,
        })
    };
    let types: Vec<Value> = types.iter().map(of_type).collect();
    write(to, &json!({"labels": names, "types": types}))
}

/// What has a word.
pub fn found(word: &str, found: &Found, to: &mut Writer) -> Result<(), RenderError> {
    let of_hit = |hit: &Hit| {
        let mut value = json!({"label": hit.label, "value": hit.value, "rank": hit.rank.name()});
        if let Some((module, kind)) = &hit.frame {
            value["module"] = json!(module);
            value["kind"] = json!(kind.class());
            value["language"] = json!(kind.language());
        }
        value
    };
    let hits: Vec<Value> = found.hits.iter().map(of_hit).collect();
    let answer = json!({
        "search": word,
        "hits": hits,
        "count": found.counts.values().sum::<usize>(),
        "counts": found.counts,
        "complete": found.complete,
        "left_out": found.left_out,
    });
    write(to, &answer)
}
