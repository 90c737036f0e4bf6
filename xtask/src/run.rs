//! Running other programs: the command is shown before it starts, and an error names it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// A command as a person would type it.
pub(crate) fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words
        .map(|word| word.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}

/// The same command with the lowest priority: whoever else wants a CPU comes before it.
pub(crate) fn behind_others(command: &Command) -> Command {
    let mut behind = Command::new("nice");
    behind
        .args(["-n", "19"])
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => behind.env(name, value),
            None => behind.env_remove(name),
        };
    }
    if let Some(dir) = command.get_current_dir() {
        behind.current_dir(dir);
    }
    behind
}

/// Runs the command with this terminal; an error if it fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let line = line(command);
    eprintln!("$ {line}");
    let status = command.status().with_context(|| format!("can't start `{line}`"))?;
    if !status.success() {
        bail!("`{line}` failed ({status})");
    }
    Ok(())
}

/// Runs the command and returns what it wrote to standard output; an error carries what it wrote to standard error.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let line = line(command);
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("can't start `{line}`"))?;
    if !output.status.success() {
        bail!(
            "`{line}` failed ({}): {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The same as lines.
pub(crate) fn lines_of(command: &mut Command) -> Result<Vec<String>> {
    Ok(output(command)?.lines().map(str::to_owned).collect())
}

/// Runs the command, hands each line of its standard output to `see` after showing it; returns whether it succeeded.
pub(crate) fn tee(command: &mut Command, mut see: impl FnMut(&str)) -> Result<bool> {
    let line = line(command);
    println!("$ {line}");
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("can't start `{line}`"))?;
    let stdout = child.stdout.take().context("no standard output")?;
    let mut out = std::io::stdout().lock();
    for text in BufReader::new(stdout).split(b'\n') {
        let text = text.with_context(|| format!("can't read from `{line}`"))?;
        let text = String::from_utf8_lossy(&text);
        writeln!(out, "{text}")?;
        see(&text);
    }
    out.flush()?;
    Ok(child
        .wait()
        .with_context(|| format!("can't wait for `{line}`"))?
        .success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_behind_others_is_the_same_command() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo $HERE $(nice) $(pwd)"]);
        command.env("HERE", "there").current_dir("/");
        assert_eq!(output(&mut behind_others(&command)).unwrap(), "there 19 /\n");
    }
}
