//! The JSON answers of the HTTP API; `docs/api.md` describes each, `api/openapi` has their schemas.

use crate::label::Label;
use crate::profile_type::OF_WAITS;
use crate::query::judge::{Measure, State, TestResult};
use crate::query::nodes::{Kind, NONE, Name, Tree};
use crate::query::trim::{ShownNode, Trimmed};
use crate::query::{
    By, Counted, Difference, Flamegraph, Heatmap, Matching, ObservedTime, Rows, Summary, TimedSample, Timeline, Top,
    Values, Waker,
};
use crate::render::error::RenderError;
use crate::render::quality::QUALITY_SHARES;
use crate::render::writer::Writer;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;

pub(in crate::render) const NS_PER_MS: i64 = 1_000_000;

/// Memory of each node that an answer has, while it is written: its place, its columns and its part of the names, in
/// bytes; of a difference with the test result and its columns. Of each node of the whole tree, while it is decided
/// whether the answer has it.
const NODE_BYTES: usize = 270;
const DIFFERENCE_NODE_BYTES: usize = 450;
const TREE_NODE_BYTES: usize = 16;
/// Of a sample with its columns, and of a row with its fields by name.
const MOMENT_BYTES: usize = 192;
/// The same of who ended a wait.
const WAKER_BYTES: usize = 320;
const ROW_BYTES: usize = 3_000;

pub(in crate::render) fn write(to: &mut Writer, value: &impl Serialize) -> Result<(), RenderError> {
    serde_json::to_writer(to, value).map_err(|error| RenderError::new("JSON", error))
}

/// The columns that every tree has.
#[derive(Serialize)]
struct Columns {
    parent: Vec<i64>,
    name: Vec<u32>,
    module: Vec<u32>,
    kind: Vec<u8>,
    inlined: Vec<u8>,
    total: Vec<u64>,
    #[serde(rename = "self")]
    own: Vec<u64>,
}

#[derive(Default)]
struct Strings {
    texts: Vec<Arc<str>>,
    index: HashMap<Arc<str>, u32>,
}

impl Strings {
    fn of(&mut self, text: &Arc<str>) -> u32 {
        if let Some(index) = self.index.get(text) {
            return *index;
        }
        let index = self.texts.len() as u32;
        self.texts.push(text.clone());
        self.index.insert(text.clone(), index);
        index
    }
}

fn columns(tree: &Tree, trimmed: &Trimmed, totals: &[u64], own: &[u64]) -> (Columns, Vec<Arc<str>>) {
    let mut strings = Strings::default();
    strings.of(&"".into());
    let root = Name {
        function: "all".into(),
        module: "".into(),
        kind: Kind::Root,
    };
    let count = trimmed.places.len();
    let mut columns = Columns {
        parent: trimmed
            .parent
            .iter()
            .map(|p| if *p == NONE { -1 } else { i64::from(*p) })
            .collect(),
        name: Vec::with_capacity(count),
        module: Vec::with_capacity(count),
        kind: Vec::with_capacity(count),
        inlined: Vec::with_capacity(count),
        total: trimmed.totals(totals),
        own: trimmed.own(own, totals),
    };
    for (place, folded) in trimmed.places.iter().zip(&trimmed.folded_names) {
        let (name, inlined) = match (place, folded) {
            (ShownNode::Node(0), _) => (&root, false),
            (ShownNode::Node(node), _) => (tree.name_of(*node as usize), tree.nodes.inlined[*node as usize]),
            (ShownNode::Folded(_), Some(name)) => (name, false),
            (ShownNode::Folded(_), None) => (&root, false),
        };
        columns.name.push(strings.of(&name.function));
        columns.module.push(strings.of(&name.module));
        columns.kind.push(name.kind as u8);
        columns.inlined.push(u8::from(inlined));
    }
    (columns, strings.texts)
}

/// What of each kind is told, by its number.
fn kinds() -> [&'static str; Kind::ALL.len()] {
    Kind::ALL.map(Kind::class)
}

fn languages() -> [&'static str; Kind::ALL.len()] {
    Kind::ALL.map(Kind::language)
}

/// With what is observed of waits, where the answer is of them.
pub(super) fn exposure_of(profile: &str, observed: &ObservedTime) -> Value {
    let mut value = exposure(observed);
    if OF_WAITS.contains(&profile) {
        value["waits_share"] = json!(observed.waits_share());
    }
    value
}

fn exposure(exposure: &ObservedTime) -> Value {
    let gaps: Vec<[i64; 2]> = exposure
        .gaps
        .iter()
        .map(|(from, until)| [from / NS_PER_MS, until / NS_PER_MS])
        .collect();
    json!({
        "observed_cpu_seconds": exposure.total_cpu_s(),
        "observed_seconds": exposure.total_s(),
        "node_share": exposure.node_share(),
        "idle_share": exposure.idle_share(),
        "missed_share": exposure.missed_share(),
        "gaps": gaps,
        "nodes": exposure.nodes,
        "other_senders": exposure.other_senders,
    })
}

fn quality(summary: &Summary) -> Value {
    json!({
        "complete_samples": summary.complete_samples,
        "truncated_samples": summary.truncated_samples,
        "unnamed_samples": summary.unnamed_samples,
        "spread_samples": summary.spread_samples(),
        "lost": summary.exposure.lost,
    })
}

/// Samples as they were taken, by what each stands for.
fn periods(summary: &Summary) -> Vec<Value> {
    let one = |(period_ns, samples)| json!({"period_ns": period_ns, "samples": samples});
    summary.periods.seen.iter().map(one).collect()
}

fn share(count: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { count as f64 / of as f64 }
}

fn matching(summary: &Summary) -> Option<Value> {
    let Matching { pattern, samples } = summary.matching.as_ref()?;
    Some(json!({"pattern": pattern, "samples": samples, "share": share(*samples, summary.samples)}))
}

/// Nothing of what is no time.
fn if_time(counted: &Counted, value: f64) -> Option<f64> {
    counted.is_time().then_some(value)
}

fn side(summary: &Summary) -> Value {
    let (question, counted) = (&summary.question, &summary.counted);
    json!({
        "unit": counted.name(),
        "period_ns": counted.period_ns(),
        "is_time": counted.is_time(),
        "rate": summary.rate(),
        "query": question.selector.to_string(),
        "from": question.window.from_ms(),
        "until": question.window.until_ms(),
        "except": question.except.map(|except| [except.from_ms(), except.until_ms()]),
        "samples": summary.samples,
        "cores": if_time(counted, summary.rate()),
        "cpu_seconds": if_time(counted, summary.amount()),
        "periods": periods(summary),
        "exposure": exposure_of(&question.profile, &summary.exposure),
        "quality": quality(summary),
    })
}

/// One window. Nodes with less than `min_share` of all samples are folded.
pub fn flamegraph(graph: &Flamegraph, min_share: f64, to: &mut Writer) -> Result<(), RenderError> {
    #[derive(Serialize)]
    struct Answer {
        #[serde(flatten)]
        head: Value,
        strings: Vec<Arc<str>>,
        kinds: [&'static str; Kind::ALL.len()],
        languages: [&'static str; Kind::ALL.len()],
        nodes: Columns,
    }
    let least = min_share * graph.summary.samples as f64;
    let exists = |node: usize| graph.totals[node] > 0;
    let keep = |node: usize| graph.totals[node] as f64 >= least;
    let hold = |places: usize| to.beside(graph.tree.len() * TREE_NODE_BYTES + places * NODE_BYTES);
    let trimmed = Trimmed::held(&graph.tree, exists, keep, hold)?;
    let (nodes, strings) = columns(&graph.tree, &trimmed, &graph.totals, &graph.own);
    let mut head = side(&graph.summary);
    head["type"] = json!(graph.summary.question.profile);
    head["match"] = matching(&graph.summary).unwrap_or(Value::Null);
    if let Some(ended) = graph.ended {
        head["wakers"] = json!({"known": ended.known, "unknown": ended.unknown});
    }
    let answer = Answer {
        head,
        strings,
        kinds: kinds(),
        languages: languages(),
        nodes,
    };
    write(to, &answer)
}

/// Two windows, folded as the difference was asked for.
pub fn diff(difference: &Difference, to: &mut Writer) -> Result<(), RenderError> {
    #[derive(Serialize)]
    struct Nodes {
        #[serde(flatten)]
        columns: Columns,
        base_total: Vec<u64>,
        base_self: Vec<u64>,
        base_norm: Vec<f64>,
        norm: Vec<f64>,
        delta: Vec<f64>,
        low: Vec<f64>,
        high: Vec<f64>,
        base_self_norm: Vec<f64>,
        self_norm: Vec<f64>,
        state: Vec<u8>,
        strength: Vec<f64>,
    }
    #[derive(Serialize)]
    struct Answer {
        #[serde(flatten)]
        head: Value,
        strings: Vec<Arc<str>>,
        kinds: [&'static str; Kind::ALL.len()],
        languages: [&'static str; Kind::ALL.len()],
        states: [&'static str; 5],
        nodes: Nodes,
    }
    let d = difference;
    let Some(trimmed) = &d.trimmed else {
        return Err(RenderError::new("JSON", "it was not asked which nodes are shown"));
    };
    to.beside(trimmed.places.len() * DIFFERENCE_NODE_BYTES)?;
    let (columns, strings) = columns(&d.tree, trimmed, &d.totals, &d.own);
    let base_total = trimmed.totals(&d.base_totals);
    let base_self = trimmed.own(&d.base_own, &d.base_totals);
    let verdicts: Vec<TestResult> = trimmed
        .places
        .iter()
        .enumerate()
        .map(|(at, place)| match place {
            ShownNode::Node(node) => d.test_result(*node as usize),
            ShownNode::Folded(_) if d.criteria.measure == Measure::Own => {
                d.judgement.describe(base_self[at], columns.own[at])
            }
            ShownNode::Folded(_) => d.judgement.describe(base_total[at], columns.total[at]),
        })
        .collect();
    let normalized = |side: usize, counts: &[u64]| -> Vec<f64> {
        counts
            .iter()
            .map(|count| d.judgement.normalized(side, *count))
            .collect()
    };
    let nodes = Nodes {
        base_self_norm: normalized(0, &base_self),
        self_norm: normalized(1, &columns.own),
        base_norm: normalized(0, &base_total),
        norm: normalized(1, &columns.total),
        columns,
        base_total,
        base_self,
        delta: verdicts.iter().map(|v| v.delta).collect(),
        low: verdicts.iter().map(|v| v.low).collect(),
        high: verdicts.iter().map(|v| v.high).collect(),
        state: verdicts.iter().map(|v| v.state as u8).collect(),
        strength: verdicts.iter().map(|v| v.strength).collect(),
    };
    // A side without samples has no period.
    let period_ns = match d.comparison.counted.period_ns() {
        0 => d.base.counted.period_ns(),
        own => own,
    };
    let both = d.base.matching.as_ref().zip(d.comparison.matching.as_ref());
    let head = json!({
        "type": d.comparison.question.profile,
        "normalize": d.criteria.normalize.name(),
        "measure": d.criteria.measure.name(),
        "confidence": d.criteria.confidence.level(),
        "unit": d.criteria.normalize.unit([&d.base.counted, &d.comparison.counted]),
        "period_ns": period_ns,
        "is_time": d.comparison.counted.is_time(),
        "base": side(&d.base),
        "comparison": side(&d.comparison),
        "dispersion": d.judgement.dispersion,
        "tested": d.judgement.tested,
        "significant": d.judgement.significant,
        "false_discovery_rate": d.criteria.confidence.false_discovery_rate(),
        "match": both.map(|(base, comparison)| json!({
            "pattern": comparison.pattern,
            "base_samples": base.samples,
            "base_share": share(base.samples, d.base.samples),
            "samples": comparison.samples,
            "share": share(comparison.samples, d.comparison.samples),
        })),
    });
    let answer = Answer {
        head,
        strings,
        kinds: kinds(),
        languages: languages(),
        states: State::ALL.map(State::name),
        nodes,
    };
    write(to, &answer)
}

/// Time against the offset in each column.
pub fn heatmap(map: &Heatmap, to: &mut Writer) -> Result<(), RenderError> {
    let Heatmap {
        question,
        grid,
        counted,
        ..
    } = map;
    #[derive(Serialize)]
    struct Answer<'a> {
        #[serde(flatten)]
        head: Value,
        cells: &'a [u64],
    }
    let head = json!({
        "type": question.profile,
        "query": question.selector.to_string(),
        "from": question.window.from_ms(),
        "until": question.window.until_ms(),
        "unit": counted.name(),
        "period_ns": counted.period_ns(),
        "is_time": counted.is_time(),
        "samples": map.samples,
        "exposure": exposure_of(&map.question.profile, &map.exposure),
        "step_ns": grid.columns.step_ns,
        "columns": grid.columns.count,
        "rows": grid.rows,
    });
    let cells = &map.cells;
    write(to, &Answer { head, cells })
}

/// Samples one by one. A sample's `stack` is the node at which its stack ends.
pub fn timeline(timeline: &Timeline, to: &mut Writer) -> Result<(), RenderError> {
    #[derive(Serialize)]
    struct Answer<'a> {
        #[serde(flatten)]
        head: Value,
        strings: Vec<Arc<str>>,
        kinds: [&'static str; Kind::ALL.len()],
        languages: [&'static str; Kind::ALL.len()],
        nodes: Columns,
        samples: Samples<'a>,
    }
    #[derive(Serialize)]
    struct Samples<'a> {
        offset_ns: Vec<i64>,
        node: Vec<&'a str>,
        cpu: Vec<Option<i64>>,
        tid: Vec<Option<i64>>,
        tgid: Vec<&'a str>,
        service: Vec<&'a str>,
        thread: Vec<&'a str>,
        mode: Vec<&'a str>,
        value_ns: Vec<i64>,
        stack: Vec<u32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        sample_type: Option<Vec<u8>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        wait_class: Option<Vec<&'a str>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        wait_state: Option<Vec<&'a str>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        wait_ns: Option<Vec<Option<i64>>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        waker: Option<Vec<Option<usize>>>,
    }
    let (tree, waits) = (&timeline.tree, timeline.waits.as_ref());
    let waker_count = waits.map_or(0, |waits| waits.wakers.len());
    to.beside(tree.len() * NODE_BYTES + timeline.moments.len() * MOMENT_BYTES + waker_count * WAKER_BYTES)?;
    // Stacks of who ended waits are behind those of the samples, and count nothing.
    let own = tree.own_counts(timeline.moments.iter().map(|_| 1));
    let totals = tree.totals(&own);
    let trimmed = Trimmed::new(tree, |_| true, |_| true);
    let mut place_of = vec![0; tree.len()];
    for (at, place) in (0..).zip(&trimmed.places) {
        if let ShownNode::Node(node) = place {
            place_of[*node as usize] = at;
        }
    }
    let (nodes, strings) = columns(tree, &trimmed, &totals, &own);
    let window = timeline.question.window;
    let of = |get: fn(&TimedSample) -> Option<i64>| timeline.moments.iter().map(get).collect();
    let text = |get: fn(&TimedSample) -> &str| timeline.moments.iter().map(get).collect();
    fn texts(column: &[Arc<str>]) -> Vec<&str> {
        column.iter().map(|text| &**text).collect()
    }
    let mut stack: Vec<u32> = tree.leaf_of.iter().map(|leaf| place_of[*leaf as usize]).collect();
    let stacks_of_wakers = stack.split_off(timeline.moments.len());
    let samples = Samples {
        offset_ns: timeline
            .moments
            .iter()
            .map(|moment| moment.ts_ns - window.from_ns)
            .collect(),
        node: text(|moment| &moment.lane.node),
        cpu: of(|moment| moment.lane.cpu),
        tid: of(|moment| moment.tid),
        tgid: timeline.tgids.iter().map(|text| &**text).collect(),
        service: timeline.services.iter().map(|text| &**text).collect(),
        thread: text(|moment| &moment.thread),
        mode: text(|moment| &moment.mode),
        value_ns: timeline.moments.iter().map(|moment| moment.value_ns).collect(),
        stack,
        sample_type: waits.map(|_| timeline.moments.iter().map(|moment| moment.profile).collect()),
        wait_class: waits.map(|waits| texts(&waits.classes)),
        wait_state: waits.map(|waits| texts(&waits.states)),
        wait_ns: waits.map(|_| of(|moment| moment.wait_ns)),
        waker: waits.map(|waits| {
            let mut places = vec![None; timeline.moments.len()];
            for (place, waker) in waits.wakers.iter().enumerate() {
                places[waker.sample as usize] = Some(place);
            }
            places
        }),
    };
    let mut answer = Answer {
        head: json!({
            "type": timeline.question.profile,
            "query": timeline.question.selector.to_string(),
            "from": window.from_ms(),
            "until": window.until_ms(),
            // Beyond 2^53, where numbers of JSON end for many readers.
            "from_ns": window.from_ns.to_string(),
            "complete": timeline.complete,
        }),
        strings,
        kinds: kinds(),
        languages: languages(),
        nodes,
        samples,
    };
    if let Some(waits) = waits {
        let text = |get: fn(&Waker) -> &str| waits.wakers.iter().map(get).collect::<Vec<_>>();
        answer.head["types"] = json!(waits.profiles);
        answer.head["wakers"] = json!({
            "service": text(|waker| &waker.service),
            "process": text(|waker| &waker.process),
            "thread": text(|waker| &waker.thread),
            "tid": waits.wakers.iter().map(|waker| waker.tid).collect::<Vec<_>>(),
            "stack": stacks_of_wakers,
        });
    }
    write(to, &answer)
}

/// A ranked table.
pub fn top(top: &Top, to: &mut Writer) -> Result<(), RenderError> {
    let whole = &top.whole;
    to.beside(top.rows.len() * ROW_BYTES)?;
    let rows: Vec<Value> = top
        .rows
        .iter()
        .map(|row| {
            let mut value = json!({
                "name": row.name,
                "self": row.own,
                "total": row.total,
                "self_share": share(row.own, whole.samples),
                "total_share": share(row.total, whole.samples),
                "self_rate": whole.rate(row.own),
                "rate": whole.rate(row.total),
                "self_cores": whole.cores(row.own),
                "cores": whole.cores(row.total),
                "cpu_seconds": whole.cpu_seconds(row.total),
            });
            if let Some((module, kind)) = &row.frame {
                value["module"] = json!(module);
                value["kind"] = json!(kind.class());
                value["language"] = json!(kind.language());
            }
            if let Some(shares) = row.shares {
                value["user_share"] = json!(shares.user);
                let quality = shares.quality.map(|quality| quality.map(Some)).unwrap_or_default();
                for (name, share) in QUALITY_SHARES.into_iter().zip(quality) {
                    value[name] = json!(share);
                }
            }
            if let Some((base_own, base_total, test_result)) = &row.change {
                value["base_self"] = json!(base_own);
                value["base_total"] = json!(base_total);
                let numbers = [
                    ("base_norm", test_result.base_norm),
                    ("norm", test_result.norm),
                    ("delta", test_result.delta),
                    ("low", test_result.low),
                    ("high", test_result.high),
                    ("strength", test_result.strength),
                ];
                for (name, number) in numbers {
                    value[name] = json!(number);
                }
                value["state"] = json!(test_result.state.name());
            }
            value
        })
        .collect();
    let by = match &top.by {
        By::Function => "function",
        By::Label(label) => label.name(),
    };
    let mut answer = json!({
        "by": by,
        "unit": top.unit(),
        "count_unit": whole.counted.name(),
        "period_ns": whole.counted.period_ns(),
        "is_time": whole.counted.is_time(),
        "samples": whole.samples,
        "cpu_seconds": whole.cpu_seconds(whole.samples),
        "complete": top.complete,
        "rows": rows,
    });
    if let Some((base, criteria, judgement)) = &top.base {
        answer["normalize"] = json!(criteria.normalize.name());
        answer["measure"] = json!(criteria.measure.name());
        answer["confidence"] = json!(criteria.confidence.level());
        answer["base_samples"] = json!(base.samples);
        answer["base_cpu_seconds"] = json!(base.cpu_seconds(base.samples));
        answer["dispersion"] = json!(judgement.dispersion);
        answer["tested"] = json!(judgement.tested);
        answer["significant"] = json!(judgement.significant);
    }
    write(to, &answer)
}

/// The values of one label.
pub fn label_values(label: Label, values: &Values, to: &mut Writer) -> Result<(), RenderError> {
    #[derive(Serialize)]
    struct Answer<'a> {
        label: &'a str,
        values: &'a [String],
        count: usize,
        complete: bool,
    }
    write(
        to,
        &Answer {
            label: label.name(),
            values: &values.values,
            count: values.count,
            complete: values.complete,
        },
    )
}

/// Rows of an SQL statement.
pub fn sql(rows: &Rows, to: &mut Writer) -> Result<(), RenderError> {
    let columns: Vec<Value> = rows
        .columns
        .iter()
        .map(|(name, kind)| json!({"name": name, "type": kind}))
        .collect();
    #[derive(Serialize)]
    struct Answer<'a> {
        columns: Vec<Value>,
        rows: &'a [Vec<Value>],
        complete: bool,
    }
    write(
        to,
        &Answer {
            columns,
            rows: &rows.rows,
            complete: rows.complete,
        },
    )
}
