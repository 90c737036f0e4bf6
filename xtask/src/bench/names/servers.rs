//! Servers that people run, which fork: gunicorn and PHP-FPM. Their workers end after a few requests, so that most of
//! what is sampled is of processes that began shortly before.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::bench::agreement::fetch::debian;
use crate::bench::languages::Runtime;
use crate::http::{Client, connect};
use crate::{repo, run};

const GUNICORN: &str = "gunicorn>=23,<28";
/// A worker of gunicorn lives for three requests of 50 ms each, and one of FPM for twenty, of 5 ms mostly.
const REQUESTS_OF_GUNICORN: &str = "3";
const REQUESTS_OF_FPM: u32 = 20;
const DEADLINE: Duration = Duration::from_secs(10);

/// One of them, and what it takes.
#[derive(Clone)]
pub(super) enum Server {
    Gunicorn {
        program: PathBuf,
        /// Where its application lies.
        sources: PathBuf,
    },
    Fpm {
        program: PathBuf,
        script: PathBuf,
        /// Its configuration is written there.
        folder: PathBuf,
    },
}

impl Server {
    /// From PyPI, in a virtual environment of the installed Python.
    pub(super) fn gunicorn(python: &Runtime, sources: &Path) -> Result<Server> {
        let home = repo::cache_dir("servers")?.join("python");
        let program = home.join("bin/gunicorn");
        let wanted = format!("{GUNICORN} for {}", python.version);
        repo::make_once(&program, &home.join("packages"), &wanted, || {
            println!("From PyPI, a server: {GUNICORN}");
            run::output(python.command().args(["-m", "venv", "--clear"]).arg(&home))?;
            run::output(Command::new(home.join("bin/pip")).args(["install", "--quiet", GUNICORN]))?;
            Ok(())
        })?;
        Ok(Server::Gunicorn {
            program,
            sources: sources.to_owned(),
        })
    }

    /// The installed one, or the one of Debian's package for the installed PHP.
    pub(super) fn fpm(php: &Runtime, script: PathBuf, folder: &Path) -> Result<Server> {
        let mut parts = php.version.splitn(3, '.');
        let version = [parts.next(), parts.next()].map(Option::unwrap_or_default).join(".");
        let name = format!("php-fpm{version}");
        let installed = Path::new("/usr/sbin").join(&name);
        let program = if installed.is_file() {
            installed
        } else {
            let home = repo::cache_dir("servers")?.join(&name);
            fs::create_dir_all(&home).with_context(|| format!("can't make {}", home.display()))?;
            debian(&home, &[format!("php{version}-fpm").as_str()])?
                .join("usr/sbin")
                .join(&name)
        };
        ensure!(program.is_file(), "there is no {}", program.display());
        Ok(Server::Fpm {
            program,
            script,
            folder: folder.to_owned(),
        })
    }

    /// The name of its program.
    pub(super) fn process(&self) -> String {
        let (Server::Gunicorn { program, .. } | Server::Fpm { program, .. }) = self;
        program.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// What starts it with so many workers.
    pub(super) fn command(&self, address: &str, workers: usize) -> Result<Command> {
        match self {
            Server::Gunicorn { program, sources } => {
                let mut command = Command::new(program);
                command
                    .args(["--bind", address, "--workers", &workers.to_string()])
                    .args(["--max-requests", REQUESTS_OF_GUNICORN])
                    .arg("--chdir")
                    .arg(sources)
                    .arg("served:application")
                    .env("PYTHONDONTWRITEBYTECODE", "1");
                Ok(command)
            }
            Server::Fpm { program, folder, .. } => {
                let path = folder.join("php-fpm.conf");
                // The bench runs as root, and nobody else may read what it made.
                let text = format!(
                    "[global]\nerror_log = /dev/null\ndaemonize = no\n\
                     [served]\nuser = root\ngroup = root\nlisten = {address}\npm = static\n\
                     pm.max_children = {workers}\npm.max_requests = {REQUESTS_OF_FPM}\n"
                );
                fs::write(&path, text).with_context(|| format!("can't write {}", path.display()))?;
                let mut command = Command::new(program);
                // Whatever the machine's own settings are; in the foreground; as root.
                command.args(["-n", "-F", "-R", "-y"]).arg(&path);
                Ok(command)
            }
        }
    }

    /// One request.
    pub(super) fn ask(&self, address: &str, number: u64) -> Result<()> {
        match self {
            Server::Gunicorn { .. } => {
                let client = Client::new(&format!("http://{address}"));
                client.get_ok(&format!("/?number={number}")).map(drop)
            }
            Server::Fpm { script, .. } => {
                let mut stream = connect(address)?;
                stream.set_read_timeout(Some(DEADLINE))?;
                stream.write_all(&request(&script.display().to_string(), &format!("number={number}")))?;
                let mut answer = Vec::new();
                stream.read_to_end(&mut answer)?;
                let is_done = answer.windows(5).any(|bytes| bytes == b"done\n");
                ensure!(is_done, "no whole answer to a request");
                Ok(())
            }
        }
    }
}

/// A request of FastCGI, version 1: its begin, its parameters, and that there is no input. The connection ends with the
/// answer.
fn request(script: &str, query: &str) -> Vec<u8> {
    const BEGIN: u8 = 1;
    const PARAMETERS: u8 = 4;
    const INPUT: u8 = 5;
    /// The one that answers, and that the connection is not kept.
    const RESPONDER: [u8; 8] = [0, 1, 0, 0, 0, 0, 0, 0];
    let parameters: Vec<u8> = [
        ("SCRIPT_FILENAME", script),
        ("QUERY_STRING", query),
        ("REQUEST_METHOD", "GET"),
    ]
    .iter()
    .flat_map(|(name, value)| {
        let lengths = [length(name.len()), length(value.len())].concat();
        [&lengths[..], name.as_bytes(), value.as_bytes()].concat()
    })
    .collect();
    [
        record(BEGIN, &RESPONDER),
        record(PARAMETERS, &parameters),
        record(PARAMETERS, &[]),
        record(INPUT, &[]),
    ]
    .concat()
}

/// A length below 128 has one byte, and others four, of which the highest bit is set.
fn length(bytes: usize) -> Vec<u8> {
    match u8::try_from(bytes) {
        Ok(short) if short < 128 => vec![short],
        _ => (bytes as u32 | 1 << 31).to_be_bytes().to_vec(),
    }
}

/// Version, kind, number of the request, length, padding.
fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    let [high, low] = (content.len() as u16).to_be_bytes();
    [&[1, kind, 0, 1, high, low, 0, 0][..], content].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_the_form_of_fastcgi() {
        let bytes = request("/srv/a.php", "number=7");
        let parameters = b"\x0f\x0aSCRIPT_FILENAME/srv/a.php\x0c\x08QUERY_STRINGnumber=7\x0e\x03REQUEST_METHODGET";
        let expected = [
            b"\x01\x01\0\x01\0\x08\0\0\0\x01\0\0\0\0\0\0".to_vec(),
            [&b"\x01\x04\0\x01\0"[..], &[parameters.len() as u8], b"\0\0"].concat(),
            parameters.to_vec(),
            b"\x01\x04\0\x01\0\0\0\0".to_vec(),
            b"\x01\x05\0\x01\0\0\0\0".to_vec(),
        ];
        assert_eq!(bytes, expected.concat());
        assert_eq!(length(127), [127]);
        assert_eq!(length(300), [0x80, 0, 1, 44]);
    }
}
