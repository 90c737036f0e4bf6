//! A difference as SVG that stands alone, with the page's numbers, widths and colours.
//!
//! A frame is as wide as both sides' normalised values together, so that what is new and what is gone are both seen.
//! Red grew, blue shrank, grey was not shown to differ; marks say the same without colour. No script: the numbers are
//! in each frame's tooltip.

use super::svg::{escaped, rgb};
use crate::query::judge::{Measure, Normalize, State, TestResult};
use crate::query::time::rfc3339;
use crate::query::{Difference, Summary};
use crate::render::error::RenderError;
use crate::render::writer::Writer;
use std::borrow::Cow;
use std::fmt::{self, Write};

/// All in pixels.
const WIDTH: f64 = 1_400.0;
const MARGIN: f64 = 14.0;
const ROW: f64 = 18.0;
const TOP: f64 = 104.0;
const FONT: f64 = 11.5;
/// Mean width of a character of the monospaced font, in parts of its size.
const CHARACTER: f64 = 0.605;
/// Narrower frames are not drawn.
const LEAST: f64 = 0.15;
/// Memory of a node while the picture is laid out, in bytes.
const NODE_BYTES: usize = 100;

/// The picture; `title` says what is compared.
pub fn diff_svg(difference: &Difference, title: &str, to: &mut Writer) -> Result<(), RenderError> {
    to.beside(difference.tree.len() * NODE_BYTES)?;
    picture(difference, title, to).map_err(|error| RenderError::new("SVG", error))
}

fn picture(difference: &Difference, title: &str, svg: &mut Writer) -> fmt::Result {
    let layout = Layout::new(difference);
    let height = TOP + (f64::from(layout.depth) + 1.0) * ROW + 34.0;
    write!(
        svg,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"{FONT}\">\n\
         <style>.f:hover rect{{stroke:#10141c;stroke-width:1.2}} text{{pointer-events:none}}</style>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    )?;
    head(svg, difference, title)?;
    for frame in &layout.frames {
        draw(svg, difference, frame)?;
    }
    let hidden = difference.tree.len() - layout.frames.len();
    if hidden > 0 {
        let plural = if hidden == 1 { "frame is" } else { "frames are" };
        let y = height - 12.0;
        writeln!(
            svg,
            "<text x=\"{MARGIN}\" y=\"{y}\" fill=\"#5a6475\">{hidden} {plural} too narrow to be drawn</text>"
        )?;
    }
    svg.write_str("</svg>\n")
}

struct Frame {
    node: usize,
    x: f64,
    width: f64,
    depth: u32,
}

struct Layout {
    frames: Vec<Frame>,
    depth: u32,
}

impl Layout {
    fn new(difference: &Difference) -> Layout {
        let tree = &difference.tree;
        let weight = |node: usize| {
            let [base, comparison] = difference.norms(node);
            base + comparison
        };
        let scale = (WIDTH - 2.0 * MARGIN) / weight(0).max(f64::MIN_POSITIVE);
        let mut depth = vec![0_u32; tree.len()];
        let mut left = vec![MARGIN; tree.len()];
        // Where the next child of each node begins.
        let mut cursor = vec![MARGIN; tree.len()];
        let mut layout = Layout {
            frames: Vec::new(),
            depth: 0,
        };
        for node in 0..tree.len() {
            let width = if node == 0 {
                WIDTH - 2.0 * MARGIN
            } else {
                weight(node) * scale
            };
            if node > 0 {
                let parent = tree.nodes.parent[node] as usize;
                depth[node] = depth[parent] + 1;
                left[node] = cursor[parent];
                cursor[parent] += width;
            }
            cursor[node] = left[node];
            if width >= LEAST {
                layout.depth = layout.depth.max(depth[node]);
                layout.frames.push(Frame {
                    node,
                    x: left[node],
                    width,
                    depth: depth[node],
                });
            }
        }
        layout
    }
}

fn head(svg: &mut Writer, difference: &Difference, title: &str) -> fmt::Result {
    writeln!(
        svg,
        "<text x=\"{MARGIN}\" y=\"26\" font-size=\"17\" font-family=\"system-ui, sans-serif\" fill=\"#10141c\">{}</text>",
        escaped(title)
    )?;
    let sides = [("before", &difference.base), ("after", &difference.comparison)];
    for (line, (word, summary)) in sides.into_iter().enumerate() {
        let y = 46.0 + line as f64 * 16.0;
        writeln!(
            svg,
            "<text x=\"{MARGIN}\" y=\"{y}\" fill=\"#2b3445\">{}</text>",
            escaped(&side(word, summary))
        )?;
    }
    let legend = [
        (State::Grew, 1.0, "grew"),
        (State::New, 1.0, "new"),
        (State::Shrank, 1.0, "shrank"),
        (State::Gone, 1.0, "gone"),
        (State::Same, 0.0, "not shown to differ"),
    ];
    let mut x = MARGIN;
    for (state, strength, word) in legend {
        let (fill, _) = paint(state, strength);
        let label = format!("{}{word}", mark(state));
        writeln!(
            svg,
            "<rect x=\"{x:.1}\" y=\"76\" width=\"12\" height=\"12\" rx=\"2\" fill=\"{fill}\"/>\
             <text x=\"{:.1}\" y=\"86\" fill=\"#2b3445\">{label}</text>",
            x + 17.0
        )?;
        x += 34.0 + label.chars().count() as f64 * FONT * CHARACTER;
    }
    let judgement = &difference.judgement;
    let note = format!(
        "width: before + after, in {}; {} of {} tested differ (false discovery rate {} %, dispersion {:.2})",
        unit(difference),
        judgement.significant,
        judgement.tested,
        (difference.criteria.confidence.false_discovery_rate() * 1e6).round() / 1e4,
        judgement.dispersion
    );
    writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"86\" fill=\"#5a6475\">{}</text>",
        escaped(&note)
    )
}

fn side(word: &str, summary: &Summary) -> String {
    let window = summary.question.window;
    format!(
        "{word:<7} {} {} to {}: {}",
        summary.question.selector,
        rfc3339(window.from_ns),
        rfc3339(window.until_ns),
        summary.words()
    )
}

/// Of normalised values.
fn unit(difference: &Difference) -> String {
    let counted = [&difference.base.counted, &difference.comparison.counted];
    difference.criteria.normalize.unit(counted)
}

fn draw(svg: &mut Writer, difference: &Difference, frame: &Frame) -> fmt::Result {
    let node = frame.node;
    let test_result = &difference.test_result(node);
    let (fill, ink) = paint(test_result.state, test_result.strength);
    let y = TOP + f64::from(frame.depth) * ROW;
    let (function, module) = match node {
        0 => (Cow::Borrowed("all"), ""),
        _ => {
            let name = difference.tree.name_of(node);
            (name.text(), &*name.module)
        }
    };
    // A gone or new frame is also told by its edge.
    let edge = match test_result.state {
        State::Gone => " stroke=\"#1b4fa0\" stroke-dasharray=\"3 2\"",
        State::New => " stroke=\"#a01414\"",
        _ => "",
    };
    let gap = if frame.width > 2.0 { 0.6 } else { 0.0 };
    write!(
        svg,
        "<g class=\"f\"><title>{}</title><rect x=\"{:.2}\" y=\"{y:.1}\" width=\"{:.2}\" height=\"{:.1}\" rx=\"1.5\" fill=\"{fill}\"{edge}/>",
        escaped(&tooltip(difference, node, &function, module)),
        frame.x,
        frame.width - gap,
        ROW - 1.0,
    )?;
    let room = ((frame.width - 7.0) / (FONT * CHARACTER)).floor();
    if room >= 3.0 {
        let label = shortened(&format!("{}{function}", mark(test_result.state)), room as usize);
        write!(
            svg,
            "<text x=\"{:.2}\" y=\"{:.1}\" fill=\"{ink}\">{}</text>",
            frame.x + 3.5,
            y + 12.5,
            escaped(&label)
        )?;
    }
    svg.write_str("</g>\n")
}

fn shortened(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    text.chars().take(room - 1).chain(std::iter::once('…')).collect()
}

fn tooltip(difference: &Difference, node: usize, function: &str, module: &str) -> String {
    let v: &TestResult = &difference.test_result(node);
    let criteria = difference.criteria;
    let [base_norm, norm] = difference.norms(node);
    let unit = unit(difference);
    let value = |x: f64| match criteria.normalize {
        Normalize::Rate => format!("{x:.4} {unit}"),
        Normalize::Share => format!("{:.2} %", x * 100.0),
        Normalize::Absolute => format!("{x:.0} {unit}"),
    };
    let [before, after] = [&difference.base, &difference.comparison].map(|side| side.counted.name());
    let place = if module.is_empty() {
        String::new()
    } else {
        format!(" ({module})")
    };
    let word = match v.state {
        State::Same => "not shown to differ",
        other => other.name(),
    };
    let change = match criteria.measure {
        Measure::Total => "change",
        Measure::Own => "change of self",
    };
    let percent = (criteria.confidence.level() * 1000.0).round() / 10.0;
    format!(
        "{function}{place} | {word} | before {} {before}, {} | after {} {after}, {} | {change} {} ({percent} %: {} to {}) | self {} → {} {after}",
        difference.base_totals[node],
        value(base_norm),
        difference.totals[node],
        value(norm),
        value(v.delta),
        value(v.low),
        value(v.high),
        difference.base_own[node],
        difference.own[node],
    )
}

fn mark(state: State) -> &'static str {
    match state {
        State::Same => "",
        State::Grew => "▲ ",
        State::Shrank => "▼ ",
        State::New => "✚ ",
        State::Gone => "✕ ",
    }
}

/// Fill and ink; the page's formula for its light theme.
fn paint(state: State, strength: f64) -> (String, &'static str) {
    let (hue, saturation, lightness, ink) = match state {
        State::Same => (220.0, 10.0, 86.0, "#1b2130"),
        _ => {
            let hue = if matches!(state, State::Grew | State::New) {
                4.0
            } else {
                217.0
            };
            // Even the weakest significant change must be seen beside grey.
            let t = 0.22 + 0.78 * strength.clamp(0.0, 1.0);
            (
                hue,
                40.0 + 42.0 * t,
                86.0 - 33.0 * t,
                if t > 0.78 { "#ffffff" } else { "#10141c" },
            )
        }
    };
    let (r, g, b) = rgb(hue, saturation / 100.0, lightness / 100.0);
    (format!("#{r:02x}{g:02x}{b:02x}"), ink)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grey_only_where_nothing_was_shown_and_labels_fit() {
        assert_eq!(paint(State::Same, 0.0).0, paint(State::Same, 1.0).0);
        let (red, blue) = (paint(State::Grew, 0.05).0, paint(State::Gone, 0.05).0);
        assert!(red != blue && red != paint(State::Same, 0.0).0);
        assert_eq!(shortened("abcdef", 4), "abc…");
        assert_eq!(shortened("abc", 3), "abc");
    }
}
