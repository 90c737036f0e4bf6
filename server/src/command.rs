//! The commands beside serving: a store is copied, backed up, restored and checked.
//!
//! In: the arguments of the process. Out: progress on standard error, a line of figures on standard output, and whether
//! anything was found to be wrong.

use crate::store::keep::{self, Fault, KeepError, Tell};
use clap::{CommandFactory, Parser, Subcommand};
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

/// Takes profiles in, keeps every sample, answers with flamegraphs.
#[derive(Debug, Parser)]
#[command(name = "stakeout-server", version, max_term_width = 110)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

/// What is done in place of serving. A place is a directory, or a bucket, as in s3://BUCKET/PREFIX (gs://, az://).
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Copy a store to an empty place, while its server runs too. Begun again it goes on where it was cut off, or
    /// copies what has come since; what was there already stays
    Copy {
        /// Place of the store
        from: PathBuf,
        /// Where the copy goes: an empty place, or one that this store was copied to and no server has been on since
        to: PathBuf,
        /// Read files that are there already, and copy those again that are not what was written
        #[arg(long)]
        compare: bool,
    },
    /// Add a backup of a store to a place that holds such, while its server runs too. What an earlier one has is not
    /// copied again
    Backup {
        /// Place of the store
        from: PathBuf,
        /// Place of the backups of this store, made where it is missing
        to: PathBuf,
        /// Backups that stay, the newest; older ones are removed once this one is whole
        #[arg(long, default_value_t = 7, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
        keep: u32,
        /// Read files that are there already, and copy those again that are not what was written
        #[arg(long)]
        compare: bool,
    },
    /// Make a store of a backup, in an empty place. Begun again it goes on where it was cut off
    Restore {
        /// Place of the backups
        from: PathBuf,
        /// Where the store goes
        to: PathBuf,
        /// Name of the backup, as a folder below backups/ has it; default: the newest
        #[arg(long, value_name = "NAME")]
        backup: Option<String>,
        /// Read files that are there already, and copy those again that are not what was written
        #[arg(long)]
        compare: bool,
    },
    /// Read all of a store or of a backup, while its server runs too: logs, every byte, rows and what they refer to,
    /// and samples against the agents' batches. Ends with 1 where something is wrong
    Check {
        /// Place of the store, or of backups
        place: PathBuf,
        /// Name of the backup, as a folder below backups/ has it; default: the newest
        #[arg(long, value_name = "NAME")]
        backup: Option<String>,
    },
}

/// The command that the arguments name; none where they are those of a server. `arguments` begins with the program's
/// name.
pub fn read(arguments: impl IntoIterator<Item = OsString>) -> Option<Result<Command, clap::Error>> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let first = arguments.get(1)?.to_str()?;
    Arguments::command().find_subcommand(first)?;
    Some(Arguments::try_parse_from(arguments).map(|arguments| arguments.command))
}

/// Does it. False where something was found to be wrong, which is told.
pub async fn run(command: Command) -> Result<bool, KeepError> {
    let tell: Tell = Arc::new(|line: &str| eprintln!("{line}"));
    match command {
        Command::Copy { from, to, compare } => {
            let copied = keep::copy(&from, &to, compare, tell).await?;
            Ok(told(&copied, &copied.faults, 0, &[]))
        }
        Command::Backup {
            from,
            to,
            keep: count,
            compare,
        } => {
            let stay = usize::try_from(count).unwrap_or(usize::MAX);
            let copied = keep::backup(&from, &to, stay, compare, tell).await?;
            Ok(told(&copied, &copied.faults, 0, &[]))
        }
        Command::Restore {
            from,
            to,
            backup,
            compare,
        } => {
            let copied = keep::restore(&from, &to, backup.as_deref(), compare, tell).await?;
            Ok(told(&copied, &copied.faults, 0, &[]))
        }
        Command::Check { place, backup } => {
            let checked = keep::check(&place, backup.as_deref(), tell).await?;
            Ok(told(&checked, &checked.faults, checked.more_faults, &checked.notes))
        }
    }
}

/// Tells what it came to. Whether nothing is wrong.
fn told(figures: &dyn std::fmt::Display, faults: &[Fault], more_faults: u64, notes: &[String]) -> bool {
    for Fault { file, what } in faults {
        eprintln!("fault: {file}: {what}");
    }
    if more_faults > 0 {
        eprintln!("fault: {more_faults} more");
    }
    for note in notes {
        eprintln!("note: {note}");
    }
    // Where nobody reads there is nothing else to do.
    let _ = writeln!(std::io::stdout(), "{figures}");
    faults.is_empty() && more_faults == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(arguments: &[&str]) -> Option<Result<Command, clap::Error>> {
        let arguments = ["stakeout-server"].iter().chain(arguments);
        read(arguments.map(OsString::from))
    }

    #[test]
    fn a_command_is_the_first_argument_and_anything_else_is_a_servers() {
        Arguments::command().debug_assert();
        assert!(of(&[]).is_none() && of(&["--data", "copy"]).is_none() && of(&["serve"]).is_none());
        match of(&["copy", "a", "s3://b/c", "--compare"]) {
            Some(Ok(Command::Copy { from, to, compare })) => {
                let places = (from.to_str(), to.to_str());
                assert_eq!((places, compare), ((Some("a"), Some("s3://b/c")), true));
            }
            other => panic!("{other:?}"),
        }
        assert!(matches!(
            of(&["backup", "a", "b"]),
            Some(Ok(Command::Backup { keep: 7, .. }))
        ));
        for wrong in [
            &["copy", "a"][..],
            &["backup", "a", "b", "--keep", "0"],
            &["check", "a", "b"],
        ] {
            assert!(matches!(of(wrong), Some(Err(_))), "{wrong:?}");
        }
    }
}
