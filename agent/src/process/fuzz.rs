//! What holds of the text in /proc, of which a process can choose parts: its name, its arguments, its paths.

use super::command_line::{CommandLines, shown};
use super::maps::{Backing, parse_maps};
use super::proc_files::{parse_namespaced_tgid, parse_stat};
use crate::kernel::parse_cpu_list;
use crate::symbolize;

const LIMIT: usize = 64;
const MAX_CPUS: usize = 65_536;

/// One text, taken for each of the files.
pub(crate) fn proc(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let maps = parse_maps(&text, LIMIT);
    assert!(maps.len() <= LIMIT && maps.iter().all(|line| line.start < line.end));
    for line in &maps {
        if let Backing::File { inode, path, .. } = &line.backing {
            assert!(*inode != 0 && !path.is_empty() && !path.starts_with('['), "{path:?}");
        }
    }
    for how in [CommandLines::Cut, CommandLines::Whole, CommandLines::Off] {
        let line = shown(bytes, true, how);
        assert!(!line.contains('\0') && line.len() <= 1024);
    }
    parse_namespaced_tgid(&text);
    // Whatever name the process has given itself.
    let ticks = parse_stat(&text);
    let with_name = format!("7 ({text}) S 1 7 7 0 -1 4194304 90 0 0 0 5 6 0 0 20 0 1 0 123456 2703360");
    assert_eq!(parse_stat(&with_name).map(|stat| stat.start_ticks), Some(123_456));
    assert!(ticks.is_none() || text.contains(')'));
    assert!(parse_cpu_list(&text).is_none_or(|cpus| cpus.len() <= MAX_CPUS));
    symbolize::fuzz::kernel_modules(&text);
}
