//! Runtimes of languages that the benches run programs on: those that are installed, or each version that lies in a
//! folder of its own.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

/// A language with a runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Java,
    Python,
    Node,
    Ruby,
    Php,
}

impl Language {
    pub(super) const ALL: [Language; 5] = [
        Language::Java,
        Language::Python,
        Language::Node,
        Language::Ruby,
        Language::Php,
    ];

    pub(super) fn title(self) -> &'static str {
        match self {
            Language::Java => "Java",
            Language::Python => "Python",
            Language::Node => "Node.js",
            Language::Ruby => "Ruby",
            Language::Php => "PHP",
        }
    }

    /// The kind of its frames in answers.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Language::Java => "jvm",
            Language::Python => "cpython",
            Language::Node => "v8js",
            Language::Ruby => "ruby",
            Language::Php => "php",
        }
    }

    /// Names of its program: the distribution's own stands in the first folder, whatever comes first in the path of who
    /// runs the bench.
    fn installed(self) -> Option<PathBuf> {
        let name = match self {
            // What compiles has what runs beside it.
            Language::Java => "javac",
            Language::Python => "python3",
            Language::Node => "node",
            Language::Ruby => "ruby",
            Language::Php => "php",
        };
        let path = env::var_os("PATH").unwrap_or_default();
        let mut folders = [PathBuf::from("/usr/bin")].into_iter().chain(env::split_paths(&path));
        let found = folders.find_map(|folder| Some(folder.join(name)).filter(|file| file.is_file()))?;
        let found = found.canonicalize().ok()?;
        match self {
            Language::Java => Some(found.with_file_name("java")).filter(|java| java.is_file()),
            _ => Some(found),
        }
    }

    /// Whether a program's name is this one's, as it stands in a version's folder.
    fn is_program(self, name: &str) -> bool {
        let versioned = |name: &str, plain: &str| {
            name.strip_prefix(plain)
                .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
        };
        match self {
            Language::Java => name == "java",
            Language::Python => versioned(name, "python3."),
            Language::Node => name == "node",
            Language::Ruby => name == "ruby",
            Language::Php => versioned(name, "php"),
        }
    }

    /// What makes it say its version, and the first word that begins with a digit in what it says.
    fn version(self, program: &Path, home: Option<&Path>) -> Option<String> {
        let argument = if self == Language::Java {
            "-version"
        } else {
            "--version"
        };
        let mut command = Command::new(program);
        command.arg(argument).stdin(Stdio::null());
        if let (Language::Python, Some(home)) = (self, home) {
            command.env("PYTHONHOME", home);
        }
        let output = command.output().ok()?;
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        let words = said.split(|c: char| c.is_whitespace() || c == '"');
        let mut versions = words.map(|word| word.trim_start_matches('v'));
        versions
            .find(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.'))
            .map(str::to_owned)
    }
}

/// One version of a language on this machine.
#[derive(Clone, Debug)]
pub(super) struct Runtime {
    pub(super) language: Language,
    pub(super) version: String,
    pub(super) program: PathBuf,
    /// Where its libraries lie, if it does not find them by itself.
    home: Option<PathBuf>,
}

impl Runtime {
    /// Runs the program with these arguments.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        if let (Language::Python, Some(home)) = (self.language, &self.home) {
            command.env("PYTHONHOME", home);
        }
        // Whatever the machine's own settings are.
        if self.language == Language::Php {
            command.arg("-n");
        }
        command
    }

    pub(super) fn title(&self) -> String {
        format!("{} {}", self.language.title(), self.version)
    }

    /// The label `process` of what it runs.
    pub(super) fn process(&self) -> String {
        let program = self.program.canonicalize().unwrap_or_else(|_| self.program.clone());
        program.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Compiles Java's sources into a folder.
    pub(super) fn compile(&self, sources: &[PathBuf], folder: &Path) -> Result<()> {
        let compiler = self.program.with_file_name("javac");
        let mut javac = Command::new(&compiler);
        javac
            .args(["--release", "8", "-nowarn", "-Xlint:-options", "-d"])
            .arg(folder)
            .args(sources);
        crate::run::output(&mut javac).map(drop)
    }
}

/// All that are there, in the languages' order: what is installed, else each version of `folder`.
pub(super) fn found(folder: Option<&Path>) -> Result<Vec<Runtime>> {
    let mut runtimes = Vec::new();
    for language in Language::ALL {
        let mut of_language = match folder {
            None => language
                .installed()
                .map(|program| (program, None))
                .into_iter()
                .collect(),
            Some(folder) => in_folder(language, folder)?,
        };
        of_language.sort();
        for (program, home) in of_language {
            if let Some(version) = language.version(&program, home.as_deref()) {
                runtimes.push(Runtime {
                    language,
                    version,
                    program,
                    home,
                });
            }
        }
    }
    Ok(runtimes)
}

/// The newest of each language: programs of two versions of one have the same name.
pub(super) fn newest(folder: Option<&Path>) -> Result<Vec<Runtime>> {
    let found = found(folder)?;
    let last = |language: Language| found.iter().rfind(|runtime| runtime.language == language).cloned();
    Ok(Language::ALL.into_iter().filter_map(last).collect())
}

/// Programs and homes of a language in a folder with a folder for each version.
fn in_folder(language: Language, folder: &Path) -> Result<Vec<(PathBuf, Option<PathBuf>)>> {
    let mut programs = Vec::new();
    let homes = fs::read_dir(folder).with_context(|| format!("can't read {}", folder.display()))?;
    for home in homes {
        let home = home?.path();
        for (files, prefix) in [("bin", home.clone()), ("usr/bin", home.join("usr"))] {
            let Ok(files) = fs::read_dir(home.join(files)) else {
                continue;
            };
            for file in files {
                let file = file?;
                if file.file_name().to_str().is_some_and(|name| language.is_program(name)) {
                    programs.push((file.path(), Some(prefix.clone())));
                }
            }
        }
    }
    Ok(programs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_a_version_are_known_by_their_names() {
        let named = |name: &str| -> Vec<Language> {
            Language::ALL
                .into_iter()
                .filter(|language| language.is_program(name))
                .collect()
        };
        assert_eq!(named("java"), [Language::Java]);
        assert_eq!(named("python3.13"), [Language::Python]);
        assert_eq!(named("php8.4"), [Language::Php]);
        assert_eq!(named("node"), [Language::Node]);
        assert_eq!(named("ruby"), [Language::Ruby]);
        for other in ["python3", "python3.13-config", "php", "phar8.4", "javac", "rubyc"] {
            assert_eq!(named(other), [], "{other}");
        }
    }
}
