//! The rules of alerts that the server ships, judged by Prometheus' own tool.
//!
//! In: `server/packaging`. Out: whether the rules are right, each alert fires in its test, and none does while all is
//! well. That their metrics exist is checked on a server, by its integration tests.

use std::process::Command;

use anyhow::Result;

use super::runner::command;
use crate::go_tools::{PROMTOOL, Ready};
use crate::repo;
use crate::tally::Tally;

const FOLDER: &str = "server/packaging";
const RULES: &str = "prometheus-rules.yml";
const TESTS: &str = "prometheus-rules_test.yml";

/// Says so where it can't be checked here.
pub(super) fn step() -> Result<Tally> {
    let program = match PROMTOOL.ready()? {
        Ready::At(program) => program,
        Ready::Missing(why) => {
            println!("alerts: NOT CHECKED, {why}");
            return Ok(Tally::default());
        }
    };
    let promtool = |what: &str, file: &str| {
        let mut promtool = Command::new(&program);
        promtool
            .current_dir(repo::root().join(FOLDER))
            .args([what, "rules", file]);
        command(&mut promtool)
    };
    let mut tally = promtool("check", RULES)?;
    tally.add(promtool("test", TESTS)?);
    Ok(tally)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_alert_has_a_test_in_which_it_fires_and_is_asked_for_while_all_is_well() {
        let read = |name: &str| std::fs::read_to_string(repo::root().join(FOLDER).join(name)).unwrap();
        let (rules, tests) = (read(RULES), read(TESTS));
        let named = |text: &str, key: &str| -> Vec<String> {
            let names = text.lines().filter_map(|line| line.trim().strip_prefix(key));
            names.map(str::to_owned).collect()
        };
        let alerts = named(&rules, "- alert: ");
        assert!(!alerts.is_empty());
        let (well, firing) = tests.split_once(&format!("- name: {}\n", alerts[0])).unwrap();
        assert_eq!(named(well, "- alertname: "), alerts, "while all is well");
        assert_eq!(named(firing, "- alertname: "), alerts, "in a test of its own");
        assert_eq!(well.matches("exp_alerts: []").count(), alerts.len());
        assert_eq!(firing.matches("exp_alerts: []").count(), 0);
    }
}
