//! One window as SVG, drawn by inferno, coloured by the kind of frame as the page does.

use super::collapsed::{lines, lines_bytes, sanitized};
use crate::query::Flamegraph;
use crate::query::nodes::{Kind, Name};
use crate::render::error::RenderError;
use crate::render::writer::Writer;
use inferno::flamegraph::color::{BackgroundColor, Color, PaletteMap};
use inferno::flamegraph::{Direction, Options};
use std::io::Write;

/// What inferno keeps of a node, a line and a name, in bytes.
const NODE_BYTES: usize = 200;

/// A flamegraph with the root on top.
pub fn svg(graph: &Flamegraph, title: &str, subtitle: &str, to: &mut Writer) -> Result<(), RenderError> {
    let failed = |error| RenderError::new("SVG", error);
    if graph.summary.samples == 0 {
        return to.write_all(empty(title, subtitle).as_bytes()).map_err(failed);
    }
    // Names stand in lines and in the palette.
    to.beside(2 * lines_bytes(graph) + graph.tree.len() * NODE_BYTES)?;
    let mut palette = PaletteMap::default();
    palette.insert("all", color(Kind::Root, ""));
    for name in &graph.tree.names.list {
        palette.insert(sanitized(name), color(name.kind, &seed(name)));
    }
    let mut options = Options::default();
    options.title = title.to_owned();
    options.subtitle = Some(subtitle.to_owned());
    options.count_name = graph.summary.counted.name().to_owned();
    options.direction = Direction::Inverted;
    options.deterministic = true;
    options.bgcolors = Some(BackgroundColor::Flat(Color { r: 255, g: 255, b: 255 }));
    options.palette_map = Some(&mut palette);
    let mut text = String::new();
    lines(graph, &mut text).map_err(|error| RenderError::new("SVG", error))?;
    inferno::flamegraph::from_lines(&mut options, text.lines(), to).map_err(failed)
}

fn empty(title: &str, subtitle: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1200\" height=\"120\" font-family=\"sans-serif\">\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\
         <text x=\"16\" y=\"34\" font-size=\"17\">{}</text><text x=\"16\" y=\"58\" font-size=\"12\">{}</text>\
         <text x=\"16\" y=\"92\" font-size=\"13\">No samples in this window.</text></svg>\n",
        escaped(title),
        escaped(subtitle)
    )
}

/// Text for XML, in content and in attributes; characters that XML 1.0 does not allow are replaced.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(' '),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

fn seed(name: &Name) -> String {
    format!("{}\0{}", name.module, name.function)
}

/// The kind's hue, as on the page, in one of seven shades, so that neighbours can be told apart.
fn color(kind: Kind, seed: &str) -> Color {
    let (hue, saturation, lightness) = match kind {
        Kind::Kernel => (27.0, 0.86, 0.66),
        Kind::Native => (212.0, 0.72, 0.70),
        Kind::Interpreted => (152.0, 0.54, 0.60),
        Kind::Jit => (270.0, 0.33, 0.72),
        Kind::Root => (222.0, 0.14, 0.86),
        Kind::Label => (190.0, 0.30, 0.80),
        Kind::Unknown | Kind::Trimmed => (220.0, 0.08, 0.74),
        Kind::Jvm => (132.0, 0.56, 0.73),
        Kind::Cpython => (310.0, 0.35, 0.61),
        Kind::V8js => (234.0, 0.80, 0.72),
        Kind::Ruby => (231.0, 0.44, 0.83),
        Kind::Php => (359.0, 0.69, 0.66),
        Kind::Dotnet => (51.0, 0.80, 0.69),
        Kind::Beam => (213.0, 0.49, 0.61),
        Kind::Perl => (28.0, 0.59, 0.56),
        Kind::Lua => (328.0, 0.32, 0.67),
        Kind::R => (342.0, 0.52, 0.73),
        Kind::Julia => (348.0, 0.76, 0.72),
        Kind::Wasm => (189.0, 0.68, 0.84),
    };
    // FNV-1a (RFC draft-eastlake-fnv).
    let hash = seed.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    let flat = matches!(kind, Kind::Root | Kind::Unknown | Kind::Trimmed);
    let shade = if flat {
        0.0
    } else {
        f64::from((hash ^ (hash >> 15)) % 7) - 3.0
    };
    let (r, g, b) = rgb(hue + shade * 1.6, saturation, lightness + shade * 0.021);
    Color { r, g, b }
}

/// Hue in degrees, saturation and lightness in 0 to 1, to red, green and blue (CSS Color Module Level 4, section 7.1).
pub(super) fn rgb(hue: f64, saturation: f64, lightness: f64) -> (u8, u8, u8) {
    let channel = |n: f64| {
        let k = (n + hue / 30.0).rem_euclid(12.0);
        let a = saturation * lightness.min(1.0 - lightness);
        let value = lightness - a * (k - 3.0).min(9.0 - k).clamp(-1.0, 1.0);
        (value * 255.0).round().clamp(0.0, 255.0) as u8
    };
    (channel(0.0), channel(8.0), channel(4.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_and_escapes() {
        assert_eq!(rgb(0.0, 1.0, 0.5), (255, 0, 0));
        assert_eq!(rgb(240.0, 1.0, 0.5), (0, 0, 255));
        assert_eq!(rgb(120.0, 1.0, 0.25), (0, 128, 0));
        assert_eq!(escaped("a<b>&\"'\u{1}\n"), "a&lt;b&gt;&amp;&quot;&#39;\u{fffd} ");
    }
}
