//! Settings by flags, environment and a file: a flag counts before its variable, that before the file, and the file
//! before the default.
//!
//! In: the arguments of the process, its environment, and the file that `--config` names. Out: what clap makes of them
//! all, and where each setting came from. The file's keys are the flags' own names, and its values are judged by the
//! flags' own parsers: a new flag is a new key. Knows nothing of what the settings are for.

mod file;
mod keys;
mod print;

use clap::parser::ValueSource;
use clap::{ArgMatches, Command, CommandFactory, FromArgMatches};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// The settings that count, each with where it came from.
#[derive(Debug)]
pub struct Settings {
    command: Command,
    matches: ArgMatches,
    path: Option<PathBuf>,
    /// Ids of what the file decided.
    of_file: BTreeSet<String>,
}

/// Why there are no settings.
#[derive(Debug)]
pub enum Unusable {
    /// What clap says of the arguments, with the file that counted beside them. Also what is asked for by `--help` and
    /// `--version`.
    Arguments {
        /// Its message, and the code to end with.
        error: clap::Error,
        /// The file of `--config`, if there is one.
        file: Option<PathBuf>,
    },
    /// All that is wrong with the file, a line each, with line and column from 1 up.
    File(Vec<String>),
}

impl Unusable {
    /// Tells it on standard error, or what was asked for on standard output. Returns what the process ends with.
    pub fn tell(&self, program: &str) -> ExitCode {
        match self {
            Self::Arguments { error, file } => {
                // Where nobody reads there is nothing else to do.
                let _ = error.print();
                if let Some(file) = file.as_ref().filter(|_| error.use_stderr()) {
                    eprintln!("{program}: what stands in {} was taken into account", file.display());
                }
                ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
            }
            Self::File(faults) => {
                for fault in faults {
                    eprintln!("{program}: {fault}");
                }
                ExitCode::from(2)
            }
        }
    }
}

/// Reads them all. `arguments` begins with the program's name.
pub fn read<C: CommandFactory + FromArgMatches>(
    arguments: impl IntoIterator<Item = OsString>,
) -> Result<(C, Settings), Unusable> {
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    let refused = |error, file: Option<&PathBuf>| Unusable::Arguments {
        error,
        file: file.cloned(),
    };
    // What is given, whatever else is wrong or missing: that is told below, when the file counts too.
    let mut lenient = C::command().ignore_errors(true);
    let given = lenient
        .try_get_matches_from_mut(arguments.iter().cloned())
        .map_err(|error| refused(error, None))?;
    let path: Option<PathBuf> = given.try_get_one("config").ok().flatten().cloned();
    let mut command = C::command();
    let of_file = match &path {
        Some(path) => file::read(path, &command).map_err(Unusable::File)?,
        None => Vec::new(),
    };
    let is_given = |id: &str| {
        let source = given.value_source(id);
        matches!(source, Some(ValueSource::CommandLine | ValueSource::EnvVariable))
    };
    let of_file: Vec<_> = of_file.into_iter().filter(|entry| !is_given(&entry.id)).collect();
    // As flags: so what one flag asks of another holds for the file as well. In front, where no `--` is before them.
    let flags: Vec<OsString> = of_file.iter().flat_map(|entry| entry.flags.iter().cloned()).collect();
    let front = arguments.len().min(1);
    drop(arguments.splice(front..front, flags));
    let matches = command
        .try_get_matches_from_mut(arguments)
        .map_err(|error| refused(error, path.as_ref()))?;
    let config = C::from_arg_matches(&matches).map_err(|error| refused(error.format(&mut command), path.as_ref()))?;
    let settings = Settings {
        command: C::command(),
        matches,
        path,
        of_file: of_file.into_iter().map(|entry| entry.id).collect(),
    };
    Ok((config, settings))
}

#[cfg(test)]
mod tests {
    use super::keys::keys;
    use super::*;
    use crate::config::Config;
    use std::path::Path;

    fn of(arguments: &[&str]) -> Result<(Config, Settings), Unusable> {
        let arguments = ["stakeout-server"].iter().chain(arguments);
        read(arguments.map(OsString::from))
    }

    fn file(dir: &Path, text: &str) -> String {
        let path = dir.join("server.toml");
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// All that is wrong with such a file, without its name.
    fn faults(text: &str) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        let path = file(dir.path(), text);
        match of(&["--config", &path]) {
            Err(Unusable::File(faults)) => {
                let place = format!("{path}:");
                faults
                    .iter()
                    .map(|fault| fault.strip_prefix(&place).unwrap().to_owned())
                    .collect()
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_file_counts_before_the_default_and_a_flag_before_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = file(
            dir.path(),
            "# A comment.\ndata = \"kept\"\nsettle = \"3m\"\nmax-connections = 1_000\nmin-free = \"1GiB\"\n\
             insecure-no-tls = true\ninsecure-no-auth = false\nallow-host = [\"a.example\", \"b.example\"]\n",
        );
        let (config, _) = of(&["--config", &path, "--settle", "4m"]).unwrap();
        assert_eq!(config.settle.as_secs(), 240);
        assert_eq!(config.max_connections, 1_000);
        assert_eq!(config.min_free, 1 << 30);
        assert_eq!((config.insecure_no_tls, config.insecure_no_auth), (true, false));
        assert_eq!(config.allow_host, ["a.example", "b.example"]);
        assert_eq!(config.retention_samples.as_secs(), 30 * 86_400, "the default");
        let (config, _) = of(&["--config", &path, "--allow-host", "c.example"]).unwrap();
        assert_eq!(config.allow_host, ["c.example"], "a list counts as a whole");
    }

    #[test]
    fn what_one_flag_asks_of_another_the_file_may_give_and_must() {
        let dir = tempfile::tempdir().unwrap();
        let path = file(dir.path(), "data = \"x\"\ntls-key = \"k\"\n");
        assert!(of(&["--config", &path, "--tls-cert", "c"]).is_ok());
        match of(&["--config", &path]) {
            Err(Unusable::Arguments { error, file }) => {
                assert!(error.to_string().contains("--tls-cert"), "{error}");
                assert!(file.is_some());
            }
            other => panic!("{other:?}"),
        }
        let path = file(dir.path(), "settle = \"1m\"\n");
        match of(&["--config", &path]) {
            Err(Unusable::Arguments { error, .. }) => assert!(error.to_string().contains("--data"), "{error}"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn all_that_is_wrong_is_told_at_once_each_where_it_stands() {
        let told = faults(
            "data = \"x\"\n  setle = \"3m\"\nmax-connections = \"many\"\nsettle = 3\nlisten = \"nowhere\"\n\
             insecure-no-tls = \"yes\"\nallow-host = [\"a\", 7]\nlabel = [\"broken\"]\ntls-cert = [\"a\"]\n\
             [retention]\nsamples = \"3d\"\n",
        );
        let begins = [
            "2:3: there is no key `setle`; did you mean `settle`?",
            "3:19: `max-connections`: \"many\" is refused: invalid digit found in string",
            "4:10: `settle` takes a text in quotes, not a number",
            "5:10: `listen`: \"nowhere\" is refused",
            "6:19: `insecure-no-tls` takes true or false, not a text",
            "7:20: `allow-host` takes a text in quotes, not a number",
            "8:10: `label`: \"broken\" is refused",
            "9:12: `tls-cert` takes one value, not a list",
            "10:2: there is no key `retention`",
        ];
        assert_eq!(told.len(), begins.len(), "{told:#?}");
        for (told, begin) in told.iter().zip(begins) {
            assert!(told.starts_with(begin), "{told:?} does not begin with {begin:?}");
        }
        assert!(told[2].contains("allowed: TIME"), "{told:?}");
        assert!(told[8].contains("no tables"), "{told:?}");
    }

    #[test]
    fn what_is_no_toml_is_told_with_what_else_is_wrong() {
        let told = faults("data = \nsettle = \"x\"\nsettle = \"3m\"\n");
        assert!(told[0].starts_with("1:"), "{told:?}");
        assert!(told.iter().any(|told| told.starts_with("3:")), "given twice: {told:?}");
        assert!(faults("config = \"other.toml\"\n")[0].contains("there is no key `config`"));
        match of(&["--config", "/nonexistent/server.toml"]) {
            Err(Unusable::File(faults)) => assert!(faults[0].contains("cannot be read"), "{faults:?}"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_printed_says_where_it_is_from_and_reads_as_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let path = file(
            dir.path(),
            "data = \"with \\\"quotes\\\" and \\\\\"\nmax-connections = 7\nallow-host = [\"a\", \"b\"]\n\
             insecure-no-tls = true\n",
        );
        let (config, settings) = of(&["--config", &path, "--settle", "4m"]).unwrap();
        let printed = settings.to_string();
        for (key, _) in keys(&settings.command) {
            let lines = printed.lines().filter(|line| {
                let line = line.strip_prefix("# ").unwrap_or(line);
                line.split_once(" = ").is_some_and(|(name, _)| name == key)
            });
            assert_eq!(lines.count(), 1, "{key} in {printed}");
        }
        let from = |key: &str| {
            let (before, _) = printed.split_once(&format!("\n{key} = ")).unwrap();
            before.lines().next_back().unwrap().to_owned()
        };
        assert_eq!(from("settle"), "# From: the command line.");
        assert_eq!(from("max-connections"), format!("# From: {path}."));
        assert_eq!(from("commit-interval"), "# From: the default.");
        assert!(printed.contains("\n# tls-cert = "), "{printed}");
        let again = dir.path().join("again.toml");
        std::fs::write(&again, &printed).unwrap();
        let (same, _) = of(&["--config", again.to_str().unwrap()]).unwrap();
        let plain = |config: &Config| {
            let same = Config {
                config: None,
                print_config: false,
                ..config.clone()
            };
            format!("{same:?}")
        };
        assert_eq!(plain(&same), plain(&config));
    }
}
