//! Flags and environment of the agent: what they are called, what they default to, what they may be.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

use crate::agent::AgentConfig;
use crate::kernel::{self, Waits};
use crate::process::CommandLines;
use crate::ship::{Identity, Retry, ShipConfig, Token};
use crate::symbolize::NamerConfig;

/// Samples the stacks of everything that runs on this machine and ships them to a Stakeout server.
///
/// It needs Linux 5.10 or newer with BTF, and root or the capabilities BPF, PERFMON, SYS_PTRACE, CHECKPOINT_RESTORE,
/// DAC_READ_SEARCH and SYSLOG. While the server cannot be reached, profiles wait in the state directory.
#[derive(Debug, Clone, Parser)]
#[command(name = "stakeout-agent", version, max_term_width = 100)]
pub struct Arguments {
    /// Base URL of the server, such as https://stakeout.example:7373.
    #[arg(
        long,
        env = "STAKEOUT_SERVER",
        value_name = "URL",
        default_value = "http://127.0.0.1:7373"
    )]
    pub server: String,

    /// Samples per second and CPU, 1 to 1000.
    #[arg(long, env = "STAKEOUT_FREQUENCY", value_name = "HZ", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub frequency: u32,

    /// Directory for profiles that wait to be sent. One agent each.
    #[arg(
        long,
        env = "STAKEOUT_STATE_DIR",
        value_name = "DIR",
        default_value = "/var/lib/stakeout-agent"
    )]
    pub state_dir: PathBuf,

    /// Name of this machine in queries [default: its host name].
    #[arg(long, env = "STAKEOUT_NODE", value_name = "NAME")]
    pub node: Option<String>,

    /// File that holds the token for sending, readable by this user only.
    #[arg(long, env = "STAKEOUT_TOKEN_FILE", value_name = "FILE")]
    pub token_file: Option<PathBuf>,

    /// PEM file with certificates to trust beside the system's.
    #[arg(long, env = "STAKEOUT_CA_FILE", value_name = "FILE")]
    pub ca_file: Option<PathBuf>,

    /// Bytes of profiles that may wait, with a suffix of K, M or G; beyond it the oldest are dropped and counted.
    #[arg(long, env = "STAKEOUT_SPOOL_LIMIT", value_name = "BYTES", default_value = "1G", value_parser = parse_bytes)]
    pub spool_limit: u64,

    /// Seconds between two batches, on average; 1 to 300.
    #[arg(long, env = "STAKEOUT_INTERVAL", value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=300))]
    pub interval: u64,

    /// Seconds that one request to the server may take; 1 to 600.
    #[arg(long, env = "STAKEOUT_REQUEST_TIMEOUT", value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub request_timeout: u64,

    /// Files up to this many bytes, with a suffix of K, M or G, also give source lines and inlined functions; 0: none
    /// do.
    #[arg(long, env = "STAKEOUT_LINES_LIMIT", value_name = "BYTES", default_value = "16M", value_parser = parse_bytes)]
    pub lines_limit: u64,

    /// Bytes of memory, resident and in BPF maps, with a suffix of K, M or G, that the agent stays within: when it is
    /// short, first inlined functions are no longer named, then no source lines, then rarely used tables are given
    /// up.
    #[arg(long, env = "STAKEOUT_MEMORY_LIMIT", value_name = "BYTES", default_value = "64M", value_parser = parse_memory_limit)]
    pub memory_limit: u64,

    /// Share of the machine's CPU time, in percent, that sampling and naming may take on average, BPF programs
    /// included; beyond it samples are taken less often. Reading names and unwinding tables of new files keeps near
    /// it in each second.
    #[arg(long, env = "STAKEOUT_CPU_LIMIT", value_name = "PERCENT", default_value_t = 1.0, value_parser = parse_percent)]
    pub cpu_limit: f64,

    /// What of processes' command lines is kept: cut is without what looks like a secret (behind --password, TOKEN=,
    /// in URLs, and the like), whole is with it, off is nothing.
    #[arg(
        long,
        env = "STAKEOUT_COMMAND_LINES",
        value_name = "HOW",
        value_enum,
        default_value_t
    )]
    pub command_lines: CommandLines,

    /// Whether threads are seen to wait, off their CPU and for one: on is wherever the kernel can, auto where it
    /// can have a thread tell its own stack as it comes back (x86-64, arm64 from Linux 6.4), off loads no hook.
    #[arg(long, env = "STAKEOUT_WAITS", value_name = "HOW", value_enum, default_value_t)]
    pub waits: Waits,

    /// Milliseconds off its CPU that a sample of a thread that waits stands for, 1 to 10000; more where there would
    /// be too many samples.
    #[arg(long, env = "STAKEOUT_WAIT_PERIOD", value_name = "MS", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub wait_period: u64,

    /// Highest rate, in Hz, at which somebody may have this machine sampled for up to a minute, through the server; up
    /// to 4999, and beyond 999 only where the processor counts events by itself. 0: nobody may, and the server is not
    /// asked.
    #[arg(long, env = "STAKEOUT_BURST_LIMIT", value_name = "HZ", default_value_t = 999, value_parser = clap::value_parser!(u32).range(0..=4999))]
    pub burst_limit: u32,

    /// What to log: a level (error, warn, info, debug, trace), or levels by module as in RUST_LOG.
    #[arg(long, env = "STAKEOUT_LOG", value_name = "FILTER", default_value = "info")]
    pub log: String,

    /// How the log is written: as lines for people, or one JSON object a line.
    #[arg(
        long,
        env = "STAKEOUT_LOG_FORMAT",
        value_name = "FORMAT",
        value_enum,
        default_value_t
    )]
    pub log_format: LogFormat,
}

/// How the log is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// Lines for people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// A setting that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file of `--token-file` cannot be read.
    #[error("cannot read the token file {path}: {source}; --token-file names it")]
    TokenFile {
        /// The path that was given.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The token file holds nothing but white space.
    #[error("the token file {path} is empty; put the token that the server gave into it")]
    EmptyToken {
        /// The path that was given.
        path: PathBuf,
    },
    /// Neither `--node` nor the kernel says what this machine is called.
    #[error("this machine has no host name; give it one with --node")]
    NoNodeName,
    /// `--node` is empty, or white space.
    #[error("--node must not be empty")]
    EmptyNode,
}

impl Arguments {
    /// How to sample.
    pub fn agent(&self) -> AgentConfig {
        AgentConfig {
            frequency_hz: self.frequency,
            interval: Duration::from_secs(self.interval),
            memory_limit_bytes: self.memory_limit,
            // Names, processes, files that are being read and the program itself take the rest.
            table_bytes: self.memory_limit / 4,
            cpu_limit: self.cpu_limit / 100.0,
            command_lines: self.command_lines,
            waits: self.waits,
            wait_period: Duration::from_millis(self.wait_period),
            burst_limit_hz: self.burst_limit_hz(),
            names: NamerConfig {
                lines_limit_bytes: self.lines_limit,
                ..NamerConfig::within(self.memory_limit)
            },
            ..AgentConfig::default()
        }
    }

    /// Where to ship, and who does. Reads the token file and what the kernel says of this machine.
    pub fn ship(&self) -> Result<ShipConfig, ConfigError> {
        Ok(ShipConfig {
            server: self.server.clone(),
            token: self.token()?,
            ca_file: self.ca_file.clone(),
            state_dir: self.state_dir.clone(),
            spool_limit_bytes: self.spool_limit,
            request_timeout: Duration::from_secs(self.request_timeout),
            retry: Retry::default(),
            identity: self.identity()?,
        })
    }

    /// The highest rate of a closer look here.
    pub fn burst_limit_hz(&self) -> u32 {
        const WITHOUT_PMU: u32 = 999;
        if kernel::has_pmu() {
            self.burst_limit
        } else {
            self.burst_limit.min(WITHOUT_PMU)
        }
    }

    fn token(&self) -> Result<Option<Token>, ConfigError> {
        let Some(path) = &self.token_file else { return Ok(None) };
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::TokenFile {
            path: path.clone(),
            source,
        })?;
        match text.trim() {
            "" => Err(ConfigError::EmptyToken { path: path.clone() }),
            token => Ok(Some(Token::new(token))),
        }
    }

    fn identity(&self) -> Result<Identity, ConfigError> {
        let kernel_says = |what: &str| {
            std::fs::read_to_string(format!("/proc/sys/kernel/{what}"))
                .map(|text| text.trim().to_owned())
                .unwrap_or_default()
        };
        let node = match &self.node {
            Some(node) if node.trim().is_empty() => return Err(ConfigError::EmptyNode),
            Some(node) => node.clone(),
            None => Some(kernel_says("hostname"))
                .filter(|name| !name.is_empty())
                .ok_or(ConfigError::NoNodeName)?,
        };
        Ok(Identity {
            node,
            arch: match std::env::consts::ARCH {
                "x86_64" => "amd64".into(),
                "aarch64" => "arm64".into(),
                other => other.into(),
            },
            kernel_release: kernel_says("osrelease"),
            boot_id: kernel_says("random/boot_id"),
            agent_version: env!("CARGO_PKG_VERSION").into(),
        })
    }
}

/// At least what sampling takes on a small machine.
fn parse_memory_limit(text: &str) -> Result<u64, String> {
    const LEAST: u64 = 24 << 20;
    let bytes = parse_bytes(text)?;
    if bytes < LEAST {
        return Err(format!("`{text}` is too little: the agent needs 24M at least"));
    }
    Ok(bytes)
}

/// Above 0 and up to 100.
fn parse_percent(text: &str) -> Result<f64, String> {
    let percent = text.trim().trim_end_matches('%').parse::<f64>().ok();
    percent
        .filter(|percent| *percent > 0.0 && *percent <= 100.0)
        .ok_or_else(|| format!("`{text}` is no share in percent: write a number above 0 and up to 100, such as 0.5"))
}

/// `65536`, `64K`, `512M`, `2G`; powers of 1024.
fn parse_bytes(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match text[digits.len()..]
        .trim()
        .to_ascii_uppercase()
        .trim_end_matches("IB")
        .trim_end_matches('B')
    {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => {
            return Err(format!(
                "`{text}` is not a number of bytes: write 65536, 64K, 512M or 2G"
            ));
        }
    };
    let number: u64 = digits
        .parse()
        .map_err(|_| format!("`{text}` is not a number of bytes: write 65536, 64K, 512M or 2G"))?;
    number
        .checked_shl(shift)
        .filter(|bytes| bytes >> shift == number)
        .ok_or_else(|| format!("`{text}` is too large"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn every_flag_is_also_an_environment_variable() {
        let command = Arguments::command();
        command.clone().debug_assert();
        for argument in command
            .get_arguments()
            .filter(|a| !["help", "version"].contains(&a.get_id().as_str()))
        {
            let expected = format!("STAKEOUT_{}", argument.get_id().as_str().to_uppercase());
            assert_eq!(
                argument.get_env().and_then(|name| name.to_str()),
                Some(expected.as_str())
            );
            assert!(argument.get_help().is_some());
        }
    }

    #[test]
    fn command_lines_are_cut_unless_told_otherwise() {
        let kept = |arguments: &[&str]| {
            let all = ["stakeout-agent"].iter().chain(arguments);
            Arguments::try_parse_from(all).map(|arguments| arguments.agent().command_lines)
        };
        assert_eq!(kept(&[]).unwrap(), CommandLines::Cut);
        assert_eq!(kept(&["--command-lines", "off"]).unwrap(), CommandLines::Off);
        assert_eq!(kept(&["--command-lines", "whole"]).unwrap(), CommandLines::Whole);
        let error = kept(&["--command-lines", "none"]).unwrap_err().to_string();
        assert!(error.contains("--command-lines") && error.contains("off"), "{error}");
    }

    #[test]
    fn byte_counts() {
        assert_eq!(parse_bytes("65536"), Ok(65536));
        assert_eq!(parse_bytes("64k"), Ok(65536));
        assert_eq!(parse_bytes("2GiB"), Ok(2 << 30));
        for bad in ["", "G", "12X", "-1", "99999999999G", "1.5M"] {
            assert!(parse_bytes(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn bad_values_are_refused_with_their_flag() {
        for arguments in [
            ["--frequency", "0"],
            ["--frequency", "x"],
            ["--spool-limit", "lots"],
            ["--interval", "0"],
        ] {
            let error = Arguments::try_parse_from(["stakeout-agent", arguments[0], arguments[1]]).unwrap_err();
            assert!(error.to_string().contains(arguments[0]), "{error}");
        }
    }
}
