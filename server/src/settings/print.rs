//! The settings that count as a file that says the same, with what each is and where it came from.

use super::Settings;
use super::keys::{is_list, is_number, is_switch, keys};
use clap::Arg;
use clap::parser::ValueSource;
use std::fmt::{self, Display, Formatter};

/// Characters of a line of comment.
const LINE: usize = 100;

impl Display for Settings {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (at, (key, arg)) in keys(&self.command).enumerate() {
            if at > 0 {
                writeln!(f)?;
            }
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            comment(f, &help)?;
            let values = self.values(arg);
            match value(arg, &values) {
                Some(value) => {
                    comment(f, &format!("From: {}.", self.origin(arg)))?;
                    writeln!(f, "{key} = {value}")?;
                }
                None => {
                    let form = arg.get_value_names().unwrap_or_default().first();
                    let form = form.map(|name| name.as_str()).unwrap_or_default();
                    comment(f, "Not set.")?;
                    writeln!(f, "# {key} = {}", quoted(form))?;
                }
            }
        }
        Ok(())
    }
}

impl Settings {
    /// As they were given. What is no text is shown as nearly as a text can.
    fn values(&self, arg: &Arg) -> Vec<String> {
        let raw = self.matches.get_raw(arg.get_id().as_str());
        raw.into_iter()
            .flatten()
            .map(|value| value.to_string_lossy().into_owned())
            .collect()
    }

    fn origin(&self, arg: &Arg) -> String {
        let id = arg.get_id().as_str();
        match (self.of_file.contains(id), &self.path, self.matches.value_source(id)) {
            (true, Some(path), _) => path.display().to_string(),
            (_, _, Some(ValueSource::CommandLine)) => "the command line".to_owned(),
            (_, _, Some(ValueSource::EnvVariable)) => match arg.get_env() {
                Some(variable) => format!("the environment, {}", variable.to_string_lossy()),
                None => "the environment".to_owned(),
            },
            _ => "the default".to_owned(),
        }
    }
}

/// The value in TOML; none where nothing is set.
fn value(arg: &Arg, values: &[String]) -> Option<String> {
    let one = |value: &String| {
        let number = value.parse::<i64>().ok().filter(|number| number.to_string() == *value);
        match number {
            Some(number) if is_number(arg) => number.to_string(),
            _ => quoted(value),
        }
    };
    if is_list(arg) {
        let each: Vec<String> = values.iter().map(one).collect();
        return Some(format!("[{}]", each.join(", ")));
    }
    let first = values.first()?;
    if is_switch(arg) {
        return Some(first.clone());
    }
    Some(one(first))
}

/// A text as TOML's basic string.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Lines of comment, broken between words.
fn comment(f: &mut Formatter<'_>, text: &str) -> fmt::Result {
    let mut line = String::from("#");
    for word in text.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > LINE && line.len() > 1 {
            writeln!(f, "{line}")?;
            line.truncate(1);
        }
        line.push(' ');
        line.push_str(word);
    }
    writeln!(f, "{line}")
}
