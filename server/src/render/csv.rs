//! Ranked tables as CSV (RFC 4180).

use crate::query::{By, Row, Top};
use crate::render::error::RenderError;
use crate::render::quality::QUALITY_SHARES;
use crate::render::writer::Writer;
use std::io::Write;

/// A header and a line a row, the same columns as the JSON.
pub fn top(top: &Top, to: &mut Writer) -> Result<(), RenderError> {
    let functions = matches!(top.by, By::Function);
    let mut header = vec!["name"];
    if functions {
        header.extend(["module", "kind", "language"]);
    }
    header.extend(["self", "total", "self_share", "total_share"]);
    let rate = top.whole.counted.rate_name();
    let (self_rate, rate) = (quoted(&format!("self {rate}")), quoted(&rate));
    if top.whole.counted.is_time() {
        header.extend(["self_cores", "cores", "cpu_seconds"]);
    } else {
        header.extend([self_rate.as_str(), rate.as_str()]);
    }
    if !functions {
        header.push("user_share");
        header.extend(QUALITY_SHARES);
    }
    if top.base.is_some() {
        header.extend([
            "base_self",
            "base_total",
            "base_norm",
            "norm",
            "delta",
            "low",
            "high",
            "state",
            "strength",
        ]);
    }
    let mut line = |fields: String| write!(to, "{fields}\r\n").map_err(|error| RenderError::new("CSV", error));
    line(header.join(","))?;
    top.rows
        .iter()
        .try_for_each(|row| line(fields(top, row, functions).join(",")))
}

fn fields(top: &Top, row: &Row, functions: bool) -> Vec<String> {
    let share = |count: u64, of: u64| if of == 0 { 0.0 } else { count as f64 / of as f64 };
    let mut fields = vec![quoted(&row.name)];
    if functions {
        let frame = row.frame.as_ref();
        fields.extend(frame.map_or_else(Default::default, |(module, kind)| {
            [quoted(module), kind.class().to_owned(), kind.language().to_owned()]
        }));
    }
    let whole = &top.whole;
    fields.extend([row.own.to_string(), row.total.to_string()]);
    let shares = [share(row.own, whole.samples), share(row.total, whole.samples)];
    fields.extend(shares.map(|share| share.to_string()));
    // Rates of types that are no time have their own heads, which tell the unit.
    let numbers = match whole.counted.is_time() {
        true => vec![
            whole.cores(row.own),
            whole.cores(row.total),
            whole.cpu_seconds(row.total),
        ],
        false => vec![Some(whole.rate(row.own)), Some(whole.rate(row.total))],
    };
    fields.extend(numbers.into_iter().map(|number| number.unwrap_or_default().to_string()));
    if !functions {
        let shares = row.shares.unwrap_or_default();
        fields.push(shares.user.to_string());
        let quality = shares.quality.map(|quality| quality.map(|share| share.to_string()));
        fields.extend(quality.unwrap_or_default());
    }
    if let Some((base_own, base_total, test_result)) = &row.change {
        fields.extend([base_own.to_string(), base_total.to_string()]);
        let numbers = [
            test_result.base_norm,
            test_result.norm,
            test_result.delta,
            test_result.low,
            test_result.high,
        ];
        fields.extend(numbers.map(|number| number.to_string()));
        fields.extend([test_result.state.name().to_owned(), test_result.strength.to_string()]);
    }
    fields
}

/// Quoted where it has to be. A spreadsheet takes a cell that begins with one of `=+-@` for a formula: an apostrophe
/// stops that.
fn quoted(text: &str) -> String {
    let guard = if text.starts_with(['=', '+', '-', '@']) {
        "'"
    } else {
        ""
    };
    if guard.is_empty() && !text.contains([',', '"', '\n', '\r']) {
        return text.to_owned();
    }
    format!("\"{guard}{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn cells_are_quoted_where_needed() {
        assert_eq!(quoted("plain"), "plain");
        assert_eq!(quoted("f<a, \"b\">"), "\"f<a, \"\"b\"\">\"");
        assert_eq!(quoted("=1+1"), "\"'=1+1\"");
    }
}
