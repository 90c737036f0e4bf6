//! Where the tests of a data root on a bucket find an S3 server.

use std::process::Command;

use crate::go_tools::{Ready, VERSITYGW};

/// Where the tests look for the path of the program.
pub(crate) const VARIABLE: &str = "STAKEOUT_S3_SERVER";

/// Tells a step's tests where the program is. Where it can't be had they are skipped, each in words.
pub(crate) fn tell(test: &mut Command) {
    let lacks = match VERSITYGW.ready() {
        Ok(Ready::At(program)) => {
            test.env(VARIABLE, program);
            return;
        }
        Ok(Ready::Missing(why)) => why,
        Err(error) => format!("{error:#}"),
    };
    eprintln!("no S3 server: {lacks}; the tests that need one are SKIPPED, each says so");
}
