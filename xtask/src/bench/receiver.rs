//! The server that the benches of the agent have their agents ship to.

use anyhow::Result;
use tempfile::TempDir;

use crate::artifacts::{self, Profile};
use crate::http::Client;
use crate::service::Service;
use crate::signals::Stop;
use crate::stack::{Options, free_address, start_server, wait_ready};

/// A server of the optimised build on an empty folder; whoever has it starts agents, and ends it.
pub(super) struct Receiver {
    /// Also of the agents.
    pub(super) options: Options,
    pub(super) client: Client,
    pub(super) server: Service,
    pub(super) stop: Stop,
    /// All that the bench writes; gone with this.
    pub(super) dir: TempDir,
}

impl Receiver {
    /// `frequency_hz`: of the agents.
    pub(super) fn start(frequency_hz: u32) -> Result<Receiver> {
        let binaries = artifacts::all(Profile::Release)?;
        let stop = Stop::install()?;
        let dir = tempfile::tempdir()?;
        let options = Options {
            binaries,
            state_dir: dir.path().to_owned(),
            listen: free_address("127.0.0.1:0")?,
            frequency_hz,
        };
        let client = Client::new(&format!("http://{}", options.listen));
        let mut server = start_server(&options, &options.listen, &[])?;
        wait_ready(&mut server, &client, &stop)?;
        Ok(Receiver {
            options,
            client,
            server,
            stop,
            dir,
        })
    }
}
