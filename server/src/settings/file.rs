//! The file: TOML whose keys are the names of flags.
//!
//! It is checked as a whole. What is wrong is told with line, column and what is allowed, all of it at once: whoever
//! writes a file need not try again for each fault.

use super::keys::{is_list, is_number, is_switch, keys};
use clap::{Arg, Command};
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::ffi::OsString;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A larger file is none of settings.
const MOST_BYTES: u64 = 1 << 20;

/// A key that is this near to an unknown one may be meant, from 0 to 1.
const NEAR: f64 = 0.8;

/// What the file says of one flag.
#[derive(Debug)]
pub(super) struct Entry {
    /// The flag's id.
    pub(super) id: String,
    /// The same as arguments; none where a switch is off.
    pub(super) flags: Vec<OsString>,
}

/// Something that is wrong.
#[derive(Debug)]
struct Fault {
    /// The byte where it begins.
    at: usize,
    message: String,
}

/// Reads the file of `--config`; an error has a line for each fault.
pub(super) fn read(path: &Path, command: &Command) -> Result<Vec<Entry>, Vec<String>> {
    let name = path.display();
    let unread = |cause: std::io::Error| vec![format!("--config {name}: cannot be read: {cause}")];
    if std::fs::metadata(path).map_err(unread)?.len() > MOST_BYTES {
        return Err(unread(std::io::Error::other("it has more than a megabyte")));
    }
    let text = std::fs::read_to_string(path).map_err(unread)?;
    check(&text, command).map_err(|faults| {
        let told = faults.into_iter().map(|fault| {
            let (line, column) = place(&text, fault.at);
            format!("{name}:{line}:{column}: {}", fault.message)
        });
        told.collect()
    })
}

/// Line and column, in characters, from 1 up.
fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line_begin = before.rfind('\n').map_or(0, |end| end + 1);
    (
        before.matches('\n').count() + 1,
        before[line_begin..].chars().count() + 1,
    )
}

fn check(text: &str, command: &Command) -> Result<Vec<Entry>, Vec<Fault>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let no_toml = errors.iter().map(|error| Fault {
        at: error.span().map_or(0, |span| span.start),
        message: format!("this is no TOML: {}", error.message()),
    });
    let mut faults: Vec<Fault> = no_toml.collect();
    let broken: BTreeSet<usize> = faults.iter().map(|fault| place(text, fault.at).0).collect();
    let known: BTreeMap<&str, &Arg> = keys(command).collect();
    let mut entries = Vec::new();
    for (key, value) in table.get_ref() {
        let at = key.span().start;
        // What breaks off may stand for anything.
        if broken.contains(&place(text, at).0) {
            continue;
        }
        let name: &str = key.get_ref();
        let Some(arg) = known.get(name) else {
            let message = unknown(name, value.get_ref(), &known);
            faults.push(Fault { at, message });
            continue;
        };
        match flags(name, arg, value) {
            Ok(flags) => entries.push(Entry {
                id: arg.get_id().to_string(),
                flags,
            }),
            Err(more) => faults.extend(more),
        }
    }
    faults.sort_by_key(|fault| fault.at);
    if faults.is_empty() { Ok(entries) } else { Err(faults) }
}

fn unknown(name: &str, value: &DeValue<'_>, known: &BTreeMap<&str, &Arg>) -> String {
    let mut message = format!("there is no key `{name}`");
    let near = known.keys().map(|key| (strsim::jaro_winkler(key, name), *key));
    let nearest = near.max_by(|(a, _), (b, _)| a.total_cmp(b));
    if let Some((_, key)) = nearest.filter(|(near, _)| *near >= NEAR) {
        message.push_str(&format!("; did you mean `{key}`?"));
    }
    if value.is_table() {
        message.push_str("; there are no tables: every key stands by itself, with the name of its flag");
    }
    message
}

/// What a value is called here.
fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// A value as arguments of its flag.
fn flags(name: &str, arg: &Arg, value: &Spanned<DeValue<'_>>) -> Result<Vec<OsString>, Vec<Fault>> {
    let at = value.span().start;
    if is_switch(arg) {
        return match value.get_ref() {
            DeValue::Boolean(true) => Ok(vec![format!("--{name}").into()]),
            DeValue::Boolean(false) => Ok(Vec::new()),
            other => {
                let message = format!("`{name}` takes true or false, not {}", kind(other));
                Err(vec![Fault { at, message }])
            }
        };
    }
    let single = std::slice::from_ref(value);
    let values: &[Spanned<DeValue<'_>>] = match value.get_ref() {
        DeValue::Array(values) if is_list(arg) => values.as_ref(),
        DeValue::Array(_) => {
            let message = format!("`{name}` takes one value, not a list; {}", allowed(arg));
            return Err(vec![Fault { at, message }]);
        }
        _ => single,
    };
    let (mut flags, mut faults) = (Vec::new(), Vec::new());
    for value in values {
        let at = value.span().start;
        match text_of(name, arg, value.get_ref()).and_then(|text| judge(name, arg, &text).map(|()| text)) {
            Ok(text) => flags.push(format!("--{name}={text}").into()),
            Err(message) => faults.push(Fault { at, message }),
        }
    }
    if faults.is_empty() { Ok(flags) } else { Err(faults) }
}

/// A value as the flag would be given it.
fn text_of(name: &str, arg: &Arg, value: &DeValue<'_>) -> Result<String, String> {
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(number) if is_number(arg) => {
            let read = i128::from_str_radix(number.as_str(), number.radix());
            Ok(read.map_or_else(|_| number.to_string(), |number| number.to_string()))
        }
        DeValue::Float(number) if is_number(arg) => Ok(number.as_str().to_owned()),
        other => {
            let takes = if is_number(arg) {
                "a number, or a text in quotes"
            } else {
                "a text in quotes"
            };
            Err(format!("`{name}` takes {takes}, not {}; {}", kind(other), allowed(arg)))
        }
    }
}

/// Whether the flag's own parser takes a value.
fn judge(name: &str, arg: &Arg, text: &str) -> Result<(), String> {
    let parts: Vec<&str> = match arg.get_value_delimiter() {
        Some(delimiter) => text.split(delimiter).collect(),
        None => vec![text],
    };
    for part in parts {
        // Alone, so that all faults are found, and without its name, which what stands alone does not need.
        let value = Arg::new("value").value_parser(arg.get_value_parser().clone());
        let alone = Command::new("value")
            .no_binary_name(true)
            .disable_help_flag(true)
            .disable_version_flag(true)
            .arg(value);
        if let Err(error) = alone.try_get_matches_from(["--", part]) {
            let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
            return Err(format!("`{name}`: {part:?} is refused{cause}; {}", allowed(arg)));
        }
    }
    Ok(())
}

/// What a flag takes, in its own words.
fn allowed(arg: &Arg) -> String {
    let possible = arg.get_possible_values();
    if !possible.is_empty() {
        let names: Vec<&str> = possible.iter().map(|value| value.get_name()).collect();
        return format!("allowed: {}", names.join(", "));
    }
    let form: Vec<&str> = arg
        .get_value_names()
        .unwrap_or_default()
        .iter()
        .map(|name| name.as_str())
        .collect();
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    format!("allowed: {}: {help}", form.join(" "))
}
