//! A bucket of a real S3 server behind relays: where benches and tests of faults have a store.
//!
//! In: a folder, the delay of a request. Out: where a server finds the bucket, what went to it and came back, and,
//! where a request is caught, which. The S3 server is not ours.

mod relay;

use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

pub(crate) use relay::{Moment, Relay, Timed, Traffic};

use crate::service::{Service, within};
use crate::stack::{Elsewhere, alive, free_address};
use crate::tools::S3_SERVER;

const BUCKET: &str = "profiles";
const KEY: &str = "bench";
const SECRET: &str = "bench-secret";
const REGION: &str = "us-east-1";
/// The S3 server listens by then.
const STARTS: Duration = Duration::from_secs(20);

/// The server and a relay before it. Dropping it ends both.
#[derive(Debug)]
pub(crate) struct Bucket {
    relay: Relay,
    server: Service,
    address: String,
    latency: Duration,
}

impl Bucket {
    /// Over a folder of `dir`, each request later by so much.
    pub(crate) fn start(dir: &Path, latency: Duration) -> Result<Bucket> {
        let program = S3_SERVER.ready()?;
        let objects = dir.join("objects");
        fs::create_dir_all(objects.join(BUCKET)).with_context(|| format!("can't make {}", objects.display()))?;
        let address = free_address("127.0.0.1:0")?;
        let mut command = Command::new(program);
        command
            .env_clear()
            .args(["--access", KEY, "--secret", SECRET, "--region", REGION])
            .args(["--port", &address, "--keep-alive", "--quiet", "posix"])
            .arg(&objects);
        let mut server = Service::start("S3 server", &mut command, &dir.join("s3.log"))?;
        let listens = within(STARTS, || {
            alive(&mut server)?;
            Ok(TcpStream::connect(&address).is_ok())
        })?;
        ensure!(listens, "the S3 server does not listen:\n{}", server.last_lines(10));
        Ok(Bucket {
            relay: Relay::to(&address, latency)?,
            server,
            address,
            latency,
        })
    }

    /// Where a server has its data here.
    pub(crate) fn place(&self) -> Elsewhere {
        self.place_by(&self.relay)
    }

    /// The same place, reached through this relay.
    pub(crate) fn place_by(&self, relay: &Relay) -> Elsewhere {
        self.place_at("bench", relay)
    }

    /// The same in a folder of the bucket, of one name, reached through this relay.
    pub(crate) fn place_at(&self, folder: &str, relay: &Relay) -> Elsewhere {
        Elsewhere {
            data: url(folder),
            environment: environment(relay.address()),
        }
    }

    /// Another way to the same bucket, with the same delay.
    pub(crate) fn another_way(&self) -> Result<Relay> {
        Relay::to(&self.address, self.latency)
    }

    pub(crate) fn relay(&self) -> &Relay {
        &self.relay
    }

    /// Of the S3 server's process.
    pub(crate) fn pid(&self) -> u32 {
        self.server.pid()
    }

    /// What went through the first relay since the start.
    pub(crate) fn traffic(&self) -> Traffic {
        self.relay.traffic()
    }
}

/// Of a folder of the bucket.
pub(crate) fn url(folder: &str) -> String {
    format!("s3://{BUCKET}/{folder}")
}

/// What a process needs to reach the bucket through this address.
pub(crate) fn environment(address: &str) -> Vec<(&'static str, String)> {
    vec![
        ("AWS_ENDPOINT", format!("http://{address}")),
        ("AWS_ALLOW_HTTP", "true".to_owned()),
        ("AWS_ACCESS_KEY_ID", KEY.to_owned()),
        ("AWS_SECRET_ACCESS_KEY", SECRET.to_owned()),
        ("AWS_REGION", REGION.to_owned()),
        ("NO_PROXY", "127.0.0.1".to_owned()),
    ]
}
