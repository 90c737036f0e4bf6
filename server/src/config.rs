//! The command line, and what it must not allow.

use crate::label::attribute::Alias;
use crate::memory::MIN_LIMIT_BYTES;
use crate::query::USUAL_LEAST_ROWS;
use crate::sizes::{bytes, split};
use clap::Parser;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use url::Url;

/// What else the program does.
const COMMANDS: &str = "In place of serving, each with --help of its own:
  stakeout-server copy FROM TO        copy a store, while it is served too
  stakeout-server backup FROM TO      add a backup of a store to others
  stakeout-server restore FROM TO     make a store of a backup
  stakeout-server check PLACE         read all of a store or of a backup, and say what is wrong";

/// Takes profiles in, keeps every sample, answers with flamegraphs.
#[derive(Debug, Clone, Parser)]
#[command(name = "stakeout-server", version, max_term_width = 110, after_help = COMMANDS)]
pub struct Config {
    /// File with settings, in TOML: its keys are the flags' names. A flag counts before its variable, that before the
    /// file
    #[arg(long, env = "STAKEOUT_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Print the settings that count as such a file, with where each came from, and end
    #[arg(long)]
    pub print_config: bool,

    /// Address and port to listen on, for pages, queries and ingest (HTTP and gRPC)
    #[arg(
        long,
        env = "STAKEOUT_LISTEN",
        default_value = "127.0.0.1:7373",
        value_name = "ADDRESS:PORT"
    )]
    pub listen: SocketAddr,

    /// Directory that holds the tables, made where it is missing; or a bucket, as in s3://BUCKET/PREFIX (gs://, az://)
    #[arg(long, env = "STAKEOUT_DATA", value_name = "PLACE")]
    pub data: PathBuf,

    /// Share the data with other servers that have this flag too: a bucket with those of any machine, a directory with
    /// those of this machine
    #[arg(long, env = "STAKEOUT_SHARED")]
    pub shared: bool,

    /// Address and port on which other servers on the same data (--shared) have this one count a part of large
    /// questions; default: none, and each server counts alone
    #[arg(long, env = "STAKEOUT_EXCHANGE_LISTEN", value_name = "ADDRESS:PORT")]
    pub exchange_listen: Option<SocketAddr>,

    /// How those servers reach it; default: the address that it listens on
    #[arg(long, env = "STAKEOUT_EXCHANGE_ADDRESS", value_name = "HOST:PORT", value_parser = host_and_port)]
    pub exchange_address: Option<String>,

    /// File with the token that servers on the same data show each other, one a line: the first is shown, each is
    /// accepted
    #[arg(long, env = "STAKEOUT_EXCHANGE_TOKEN_FILE", value_name = "FILE")]
    pub exchange_token_file: Option<PathBuf>,

    /// Certificates of who signs those of the servers on the same data, PEM: they show each other that of --tls-cert
    #[arg(long, env = "STAKEOUT_EXCHANGE_CA", value_name = "FILE", requires = "tls_cert")]
    pub exchange_ca: Option<PathBuf>,

    /// Committed rows that a question may read from which on several servers count it
    #[arg(long, env = "STAKEOUT_SPREAD_ROWS", default_value_t = USUAL_LEAST_ROWS, value_name = "COUNT")]
    pub spread_rows: usize,

    /// Certificate chain, PEM; with --tls-key this makes the server speak TLS
    #[arg(long, env = "STAKEOUT_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,

    /// Private key of the certificate, PEM
    #[arg(long, env = "STAKEOUT_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// File with the tokens that senders may use, one a line
    #[arg(long, env = "STAKEOUT_INGEST_TOKEN_FILE", value_name = "FILE")]
    pub ingest_token_file: Option<PathBuf>,

    /// File with the tokens that open pages and queries, one a line
    #[arg(long, env = "STAKEOUT_VIEW_TOKEN_FILE", value_name = "FILE")]
    pub view_token_file: Option<PathBuf>,

    /// File with the tokens that may have a node sampled at a high rate for a while (bursts), one a line. Without it
    /// nobody may, but on loopback those who may send
    #[arg(long, env = "STAKEOUT_BURST_TOKEN_FILE", value_name = "FILE")]
    pub burst_token_file: Option<PathBuf>,

    /// Listen beyond loopback without TLS: everyone on the way can read and change everything
    #[arg(long, env = "STAKEOUT_INSECURE_NO_TLS")]
    pub insecure_no_tls: bool,

    /// Listen beyond loopback without tokens: everyone who reaches the port can send and read everything
    #[arg(long, env = "STAKEOUT_INSECURE_NO_AUTH")]
    pub insecure_no_auth: bool,

    /// How others reach this server, for the install script; default: what the request's Host header says
    #[arg(long, env = "STAKEOUT_PUBLIC_URL", value_name = "URL")]
    pub public_url: Option<String>,

    /// A name under which this server may be asked, beside localhost, addresses and that of --public-url; repeated or
    /// with commas. On loopback other names are refused (421), since a page of any site can have one; beyond it only
    /// where a name is given; default: none
    #[arg(long, env = "STAKEOUT_ALLOW_HOST", value_delimiter = ',', value_name = "NAME")]
    pub allow_host: Vec<String>,

    /// Directory with stakeout-agent-linux-x86_64 and -aarch64 to hand out; default: beside this executable
    #[arg(long, env = "STAKEOUT_AGENT_DIR", value_name = "DIR")]
    pub agent_dir: Option<PathBuf>,

    /// Time between two commits; a batch is acknowledged with its commit
    #[arg(long, env = "STAKEOUT_COMMIT_INTERVAL", default_value = "2s", value_parser = duration, value_name = "TIME")]
    pub commit_interval: Duration,

    /// How long samples are kept; whole hours are removed after that
    #[arg(long, env = "STAKEOUT_RETENTION_SAMPLES", default_value = "30d", value_parser = duration, value_name = "TIME")]
    pub retention_samples: Duration,

    /// How long the roll-ups of samples by minute, and by ten seconds without stacks, are kept
    #[arg(long, env = "STAKEOUT_RETENTION_MINUTES", default_value = "30d", value_parser = duration, value_name = "TIME")]
    pub retention_minutes: Duration,

    /// How long the roll-up of samples by hour is kept
    #[arg(long, env = "STAKEOUT_RETENTION_HOURS", default_value = "400d", value_parser = duration, value_name = "TIME")]
    pub retention_hours: Duration,

    /// Size of all tables beyond which the oldest hours are removed, of samples first, then of roll-ups; default: 80
    /// % of what is free at the start, with what the tables have
    #[arg(long, env = "STAKEOUT_RETENTION_BYTES", value_parser = bytes, value_name = "SIZE")]
    pub retention_bytes: Option<u64>,

    /// How long after the last sample an hour that is over is rewritten for good, and rolled up
    #[arg(long, env = "STAKEOUT_SETTLE", default_value = "10m", value_parser = duration, value_name = "TIME")]
    pub settle: Duration,

    /// How long after the start samples that are a day ahead of the clock are asked to come again: it may not be set
    /// yet. Then they are left out
    #[arg(long, env = "STAKEOUT_CLOCK_WAIT", default_value = "10m", value_parser = duration, value_name = "TIME")]
    pub clock_wait: Duration,

    /// Free space below which nothing is taken in, while queries go on
    #[arg(long, env = "STAKEOUT_MIN_FREE", default_value = "256MiB", value_parser = bytes, value_name = "SIZE")]
    pub min_free: u64,

    /// Memory that the whole server may take; default: half of the machine's, at most 4GiB
    #[arg(long, env = "STAKEOUT_MEMORY_LIMIT", value_parser = memory, value_name = "SIZE")]
    pub memory_limit: Option<u64>,

    /// Memory for samples that wait for their commit; default: a part of --memory-limit
    #[arg(long, env = "STAKEOUT_MAX_PENDING", value_parser = bytes, value_name = "SIZE")]
    pub max_pending: Option<u64>,

    /// Memory for all queries together; default: a part of --memory-limit
    #[arg(long, env = "STAKEOUT_QUERY_MEMORY", value_parser = bytes, value_name = "SIZE")]
    pub query_memory: Option<u64>,

    /// Connections at the same time; more wait until one ends
    #[arg(long, env = "STAKEOUT_MAX_CONNECTIONS", default_value_t = 4096, value_name = "COUNT")]
    pub max_connections: usize,

    /// A short name for an attribute that senders give, for selectors and tables; repeat it for several. Every
    /// attribute can be asked for by its own name; version=service.version and
    /// environment=deployment.environment.name are there unless told otherwise
    #[arg(long, env = "STAKEOUT_LABEL", value_delimiter = ',', value_name = "NAME=ATTRIBUTE")]
    pub label: Vec<Alias>,

    /// What is logged, as in "warn,stakeout_server=debug"
    #[arg(
        long,
        env = "STAKEOUT_LOG",
        default_value = "warn,stakeout_server=info",
        value_name = "FILTER"
    )]
    pub log: String,

    /// How the log is written: as lines for people, or one JSON object a line
    #[arg(
        long,
        env = "STAKEOUT_LOG_FORMAT",
        value_enum,
        default_value_t,
        value_name = "FORMAT"
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

/// What the command line asks for and cannot have.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Others could read what is sent, and the flag that allows it is not given.
    #[error(
        "{listen} is reachable from other machines and the server has no TLS: give --tls-cert and --tls-key, or listen on \
         127.0.0.1, or say --insecure-no-tls"
    )]
    NoTls {
        /// The address that is to be listened on.
        listen: SocketAddr,
    },
    /// Everybody could ask or send, and the flag that allows it is not given.
    #[error(
        "{listen} is reachable from other machines and the server has no {missing}: give it, or listen on 127.0.0.1, or say \
         --insecure-no-auth"
    )]
    NoAuth {
        /// The address that is to be listened on.
        listen: SocketAddr,
        /// The flag that is missing, such as `--view-token-file`.
        missing: &'static str,
    },
    /// Nobody else is on the same data.
    #[error("--exchange-listen is for servers that share their data: give --shared, too")]
    ExchangeAlone,
    /// Others would be told to reach this server at every address of their own machine.
    #[error(
        "{listen} (--exchange-listen) is every address of this machine: give --exchange-address, which others reach"
    )]
    ExchangeNowhere {
        /// The address that is to be listened on.
        listen: SocketAddr,
    },
    /// Whoever can be reached could have this server count, and read what others count.
    #[error(
        "{listen} (--exchange-listen) is reachable from other machines and {missing}, or listen on 127.0.0.1, or say \
         {waiver}"
    )]
    ExchangeOpen {
        /// The address that is to be listened on.
        listen: SocketAddr,
        /// What is to be given.
        missing: &'static str,
        /// The flag that does without.
        waiver: &'static str,
    },
}

impl Config {
    /// Beyond loopback nothing is open by accident.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.check_exchange()?;
        let listen = self.listen;
        if listen.ip().to_canonical().is_loopback() {
            return Ok(());
        }
        if self.tls_cert.is_none() && !self.insecure_no_tls {
            return Err(ConfigError::NoTls { listen });
        }
        let missing = match (&self.ingest_token_file, &self.view_token_file) {
            (None, _) => "--ingest-token-file",
            (_, None) => "--view-token-file",
            _ => return Ok(()),
        };
        if self.insecure_no_auth {
            Ok(())
        } else {
            Err(ConfigError::NoAuth { listen, missing })
        }
    }

    /// Neither is what servers on the same data say to each other.
    fn check_exchange(&self) -> Result<(), ConfigError> {
        let Some(listen) = self.exchange_listen else {
            return Ok(());
        };
        if !self.shared {
            return Err(ConfigError::ExchangeAlone);
        }
        if listen.ip().is_unspecified() && self.exchange_address.is_none() {
            return Err(ConfigError::ExchangeNowhere { listen });
        }
        // Certificates of both sides are tokens, too.
        if listen.ip().to_canonical().is_loopback() || self.exchange_ca.is_some() {
            return Ok(());
        }
        let open = |missing, waiver| ConfigError::ExchangeOpen {
            listen,
            missing,
            waiver,
        };
        if !self.insecure_no_tls {
            let missing = "servers have no TLS among them: give --exchange-ca with --tls-cert and --tls-key";
            return Err(open(missing, "--insecure-no-tls"));
        }
        if self.exchange_token_file.is_none() && !self.insecure_no_auth {
            return Err(open(
                "the server has no --exchange-token-file: give it",
                "--insecure-no-auth",
            ));
        }
        Ok(())
    }
}

/// What others connect to, such as `profiles-1.internal:7374` or `[fd00::1]:7374`.
fn host_and_port(text: &str) -> Result<String, String> {
    // Of a scheme that has no usual port, which would be left out.
    let at = Url::parse(&format!("exchange://{text}")).ok();
    let is_one = |at: &Url| {
        let is_named = at.host_str().is_some_and(|host| !host.is_empty()) && at.port().is_some_and(|port| port > 0);
        is_named && (at.path(), at.username()) == ("", "") && !text.contains(['@', '?', '#'])
    };
    match at {
        Some(at) if is_one(&at) => Ok(text.to_owned()),
        _ => Err("give a host and a port, such as profiles-1.internal:7374".to_owned()),
    }
}

/// A number and a unit, such as `500ms`, `2s`, `15m`, `12h`, `30d`.
fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text);
    let milliseconds: u64 = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err("give a number with ms, s, m, h or d, such as 30d".to_owned()),
    };
    let number: u64 = number
        .parse()
        .map_err(|_| "the number must be whole and not negative".to_owned())?;
    match number.checked_mul(milliseconds) {
        Some(0) => Err("it must be more than nothing".to_owned()),
        Some(milliseconds) => Ok(Duration::from_millis(milliseconds)),
        None => Err("that is longer than can be counted".to_owned()),
    }
}

/// As [`bytes`], with as much as the server needs to work at all.
fn memory(text: &str) -> Result<u64, String> {
    match bytes(text)? {
        size if size < MIN_LIMIT_BYTES => Err(format!("the server needs at least {}MiB", MIN_LIMIT_BYTES >> 20)),
        size => Ok(size),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(arguments: &[&str]) -> Config {
        Config::try_parse_from(["stakeout-server", "--data", "x"].iter().chain(arguments)).unwrap()
    }

    #[test]
    fn beyond_loopback_needs_tls_and_tokens_or_the_flags_that_waive_them() {
        assert!(config(&[]).check().is_ok());
        assert!(config(&["--listen", "[::1]:1"]).check().is_ok());
        let open = ["--listen", "0.0.0.0:1"];
        let check = |more: &[&str]| config(&[&open, more].concat()).check();
        assert!(matches!(check(&[]), Err(ConfigError::NoTls { .. })));
        assert!(matches!(check(&["--insecure-no-tls"]), Err(ConfigError::NoAuth { .. })));
        assert!(matches!(check(&["--insecure-no-auth"]), Err(ConfigError::NoTls { .. })));
        assert!(check(&["--insecure-no-tls", "--insecure-no-auth"]).is_ok());
        let tls = ["--tls-cert", "c", "--tls-key", "k"];
        assert!(matches!(
            check(&[&tls[..], &["--ingest-token-file", "i"]].concat()),
            Err(ConfigError::NoAuth { .. })
        ));
        assert!(check(&[&tls[..], &["--ingest-token-file", "i", "--view-token-file", "v"]].concat()).is_ok());
    }

    #[test]
    fn what_servers_say_to_each_other_is_not_open_by_accident_either() {
        let check = |more: &[&str]| config(&[&["--exchange-listen"][..], more].concat()).check();
        assert!(matches!(check(&["127.0.0.1:0"]), Err(ConfigError::ExchangeAlone)));
        assert!(check(&["127.0.0.1:0", "--shared"]).is_ok());
        let open = |more: &[&str]| check(&[&["10.0.0.1:7374", "--shared"][..], more].concat());
        for (flags, missing) in [
            ("", Some("--exchange-ca")),
            ("--exchange-token-file t", Some("--exchange-ca")),
            ("--insecure-no-tls", Some("--exchange-token-file")),
            ("--insecure-no-tls --exchange-token-file t", None),
            ("--insecure-no-tls --insecure-no-auth", None),
            ("--exchange-ca a --tls-cert c --tls-key k", None),
        ] {
            let given: Vec<&str> = flags.split_whitespace().collect();
            let said = open(&given).err().map(|error| error.to_string());
            assert_eq!(said.is_none(), missing.is_none(), "{flags:?}: {said:?}");
            assert!(
                said.is_none_or(|said| missing.is_some_and(|missing| said.contains(missing))),
                "{flags:?}"
            );
        }
        let every = ["0.0.0.0:7374", "--shared", "--insecure-no-tls", "--insecure-no-auth"];
        assert!(matches!(check(&every), Err(ConfigError::ExchangeNowhere { .. })));
        assert!(check(&[&every[..], &["--exchange-address", "a.internal:7374"]].concat()).is_ok());
        let alone = ["--exchange-ca", "a", "--data", "x"];
        assert!(
            Config::try_parse_from(["stakeout-server"].iter().chain(&alone)).is_err(),
            "it needs a certificate"
        );
    }

    #[test]
    fn others_are_told_a_host_and_a_port() {
        for right in ["profiles-1.internal:7374", "192.0.2.1:1", "[fd00::1]:7374"] {
            assert_eq!(host_and_port(right).as_deref(), Ok(right));
        }
        for wrong in [
            "",
            "profiles-1",
            ":7374",
            "profiles-1:",
            "profiles-1:0",
            "profiles-1:99999",
            "http://profiles-1:7374",
            "profiles-1:7374/",
            "somebody@profiles-1:7374",
        ] {
            assert!(host_and_port(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn times_and_sizes_need_units_that_exist() {
        assert_eq!(duration("30d"), Ok(Duration::from_secs(30 * 86_400)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(bytes("256MiB"), Ok(256 << 20));
        assert_eq!(bytes("7"), Ok(7));
        for bad in ["", "30", "d", "-1s", "0s", "1.5h", "99999999999999999d", "1 week"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
        for bad in ["", "MiB", "1MB", "99999999999TiB"] {
            assert!(bytes(bad).is_err(), "{bad}");
        }
        assert_eq!(memory("1GiB"), Ok(1 << 30));
        assert!(memory("255MiB").unwrap_err().contains("at least 256MiB"));
    }
}
