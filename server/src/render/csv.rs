//! Ranked tables as CSV (RFC 4180).

use crate::query::judge::TestResult;
use crate::query::nodes::Kind;
use crate::query::{By, Row, Top};
use crate::render::error::RenderError;
use crate::render::quality::QUALITY_SHARES;
use crate::render::writer::Writer;
use std::io::Write;

/// A header and a line a row, the same columns as the JSON.
pub fn top(top: &Top, to: &mut Writer) -> Result<(), RenderError> {
    let columns = columns(top);
    let mut line = |cells: Vec<String>| {
        let cells = cells.join(",");
        write!(to, "{cells}\r\n").map_err(|error| RenderError::new("CSV", error))
    };
    line(columns.iter().map(|column| column.head.clone()).collect())?;
    for row in &top.rows {
        line(columns.iter().map(|column| (column.cell)(row)).collect())?;
    }
    Ok(())
}

/// One column: its head, and what a row has in it.
struct Column<'t> {
    head: String,
    cell: Box<dyn Fn(&Row) -> String + 't>,
}

fn column<'t>(head: &str, cell: impl Fn(&Row) -> String + 't) -> Column<'t> {
    Column {
        head: head.to_owned(),
        cell: Box::new(cell),
    }
}

/// All columns that the table has, from left to right.
fn columns(top: &Top) -> Vec<Column<'_>> {
    let whole = &top.whole;
    let share = move |count: u64| match whole.samples {
        0 => 0.0,
        all => count as f64 / all as f64,
    };
    let functions = matches!(top.by, By::Function);
    let mut columns = vec![column("name", |row| quoted(&row.name))];
    if functions {
        columns.extend([
            column("module", of_frame(|module, _| quoted(module))),
            column("kind", of_frame(|_, kind| kind.class().to_owned())),
            column("language", of_frame(|_, kind| kind.language().to_owned())),
        ]);
    }
    columns.extend([
        column("self", |row| row.own.to_string()),
        column("total", |row| row.total.to_string()),
        column("self_share", move |row| share(row.own).to_string()),
        column("total_share", move |row| share(row.total).to_string()),
    ]);
    let text = |number: Option<f64>| number.unwrap_or_default().to_string();
    if whole.counted.is_time() {
        columns.extend([
            column("self_cores", move |row| text(whole.cores(row.own))),
            column("cores", move |row| text(whole.cores(row.total))),
            column("cpu_seconds", move |row| text(whole.cpu_seconds(row.total))),
        ]);
    } else {
        // Rates of types that are no time have their own heads, which tell the unit.
        let rate = whole.counted.rate_name();
        let (of_self, of_total) = (quoted(&format!("self {rate}")), quoted(&rate));
        columns.extend([
            column(&of_self, move |row| whole.rate(row.own).to_string()),
            column(&of_total, move |row| whole.rate(row.total).to_string()),
        ]);
    }
    if !functions {
        let user = |row: &Row| row.shares.unwrap_or_default().user.to_string();
        columns.push(column("user_share", user));
        columns.extend(QUALITY_SHARES.into_iter().enumerate().map(|(place, name)| {
            column(name, move |row| {
                let quality = row.shares.and_then(|shares| shares.quality);
                quality.map_or_else(String::new, |quality| quality[place].to_string())
            })
        }));
    }
    if top.base.is_some() {
        columns.extend([
            column("base_self", of_change(|(own, _, _)| own.to_string())),
            column("base_total", of_change(|(_, total, _)| total.to_string())),
            column("base_norm", of_change(|(_, _, result)| result.base_norm.to_string())),
            column("norm", of_change(|(_, _, result)| result.norm.to_string())),
            column("delta", of_change(|(_, _, result)| result.delta.to_string())),
            column("low", of_change(|(_, _, result)| result.low.to_string())),
            column("high", of_change(|(_, _, result)| result.high.to_string())),
            column("state", of_change(|(_, _, result)| result.state.name().to_owned())),
            column("strength", of_change(|(_, _, result)| result.strength.to_string())),
        ]);
    }
    columns
}

/// Of functions: what their module and kind say.
fn of_frame(cell: fn(&str, Kind) -> String) -> impl Fn(&Row) -> String {
    move |row| {
        let frame = row.frame.as_ref();
        frame.map_or_else(String::new, |(module, kind)| cell(module, *kind))
    }
}

/// Of a difference: what side A and the judgement say.
fn of_change(cell: fn(&(u64, u64, TestResult)) -> String) -> impl Fn(&Row) -> String {
    move |row| row.change.as_ref().map_or_else(String::new, cell)
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
