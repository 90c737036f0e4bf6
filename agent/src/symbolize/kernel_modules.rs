//! Which kernel module holds an address: /proc/modules.

use std::sync::Arc;

/// Address ranges of the loaded modules, ascending.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct KernelModules {
    ranges: Vec<(u64, u64, Arc<str>)>,
}

impl KernelModules {
    pub(super) fn read() -> Self {
        Self::parse(&std::fs::read_to_string("/proc/modules").unwrap_or_default())
    }

    /// Lines such as `xfs 2383872 1 - Live 0xffffffffc0a00000`. Addresses are zero without CAP_SYSLOG; those are left
    /// out.
    pub(super) fn parse(text: &str) -> Self {
        let mut ranges: Vec<(u64, u64, Arc<str>)> = text
            .lines()
            .filter_map(|line| {
                let fields: Vec<&str> = line.split_ascii_whitespace().collect();
                let bytes: u64 = fields.get(1)?.parse().ok()?;
                let start = u64::from_str_radix(fields.get(5)?.strip_prefix("0x")?, 16).ok()?;
                (start != 0).then(|| (start, start.saturating_add(bytes), format!("[{}]", fields[0]).into()))
            })
            .collect();
        ranges.sort_by_key(|range| range.0);
        Self { ranges }
    }

    /// The module's name in brackets.
    pub(super) fn find(&self, address: u64) -> Option<Arc<str>> {
        let after = self.ranges.partition_point(|range| range.0 <= address);
        let (_, end, name) = self.ranges[..after].last()?;
        (address < *end).then(|| Arc::clone(name))
    }
}

/// A place in which one module came after another, at some time before that was noticed: of samples until then nobody
/// can say whose they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Replaced {
    noticed_ns: u64,
    start: u64,
    end: u64,
}

/// Places whose module has changed.
#[derive(Debug, Default)]
pub(super) struct ReplacedModules(Vec<Replaced>);

/// Of so many the oldest go: their intervals have their names long since.
const MAX_REPLACED: usize = 256;

impl ReplacedModules {
    /// Compares what was loaded at the last look with what is loaded now.
    pub(super) fn notice(&mut self, before: &KernelModules, now: &KernelModules, noticed_ns: u64) {
        let gone = before.ranges.iter().filter(|range| !now.ranges.contains(range));
        for (start, end, _) in gone {
            let successors = now
                .ranges
                .iter()
                .filter(|(other, other_end, _)| other < end && start < other_end);
            self.0.extend(successors.map(|(other, other_end, _)| Replaced {
                noticed_ns,
                start: *start.min(other),
                end: *end.max(other_end),
            }));
        }
        let surplus = self.0.len().saturating_sub(MAX_REPLACED);
        self.0.drain(..surplus);
    }

    /// True where the address may have been another module's, in an interval that began then.
    pub(super) fn is_unsure(&self, address: u64, begun_ns: u64) -> bool {
        let covers = |place: &Replaced| place.noticed_ns >= begun_ns && (place.start..place.end).contains(&address);
        self.0.iter().any(covers)
    }
}

/// No function of the kernel is as large.
const MAX_FUNCTION_BYTES: u64 = 1 << 20;

/// True where a symbol at `symbol` can stand for `address`. The kernel's list has no sizes, and ends: what was loaded
/// since it was read must not get the name of what lies below it.
pub(super) fn can_cover(modules: &KernelModules, symbol: u64, bytes: Option<usize>, address: u64) -> bool {
    let Some(offset) = address.checked_sub(symbol) else {
        return false;
    };
    match bytes {
        Some(bytes) if bytes > 0 => offset < bytes as u64,
        _ => offset < MAX_FUNCTION_BYTES && modules.find(symbol) == modules.find(address),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_does_not_reach_into_what_was_loaded_later() {
        let modules = KernelModules::parse("xfs 4096 1 - Live 0xffffffffc0a00000\n");
        let xfs = 0xffff_ffff_c0a0_0100;
        assert!(can_cover(&modules, xfs, None, xfs + 0x80));
        assert!(!can_cover(&modules, xfs, None, xfs + 0x2000), "behind the module's end");
        assert!(
            !can_cover(&modules, 0xffff_ffff_83b2_6000, None, xfs),
            "the kernel's last symbol"
        );
        assert!(
            !can_cover(&modules, 0xffff_ffff_c030_0000, Some(100), 0xffff_ffff_c030_0064),
            "a BPF program"
        );
        assert!(can_cover(
            &modules,
            0xffff_ffff_c030_0000,
            Some(100),
            0xffff_ffff_c030_0063
        ));
        assert!(!can_cover(&modules, xfs, None, xfs - 1));
        assert_ne!(modules, KernelModules::parse(""), "a change is seen");
    }

    #[test]
    fn where_one_module_came_after_another_nothing_is_told_of_before() {
        let before = KernelModules::parse("a 4096 1 - Live 0xffffffffc0a00000\nb 4096 1 - Live 0xffffffffc0b00000\n");
        let now = KernelModules::parse("c 8192 1 - Live 0xffffffffc09ff000\nd 4096 1 - Live 0xffffffffc0c00000\n");
        let mut replaced = ReplacedModules::default();
        replaced.notice(&before, &now, 100);
        let [a, b, d] = [0xffff_ffff_c0a0_0010, 0xffff_ffff_c0b0_0010, 0xffff_ffff_c0c0_0010];
        assert!(replaced.is_unsure(a, 90) && replaced.is_unsure(a, 100) && !replaced.is_unsure(a, 101));
        assert!(!replaced.is_unsure(b, 90), "nothing came after it");
        assert!(!replaced.is_unsure(d, 90), "nothing was before it");
        replaced.notice(&now, &now, 200);
        assert!(!replaced.is_unsure(a, 101));
        for at in 0..1000 {
            replaced.notice(&before, &now, at);
        }
        assert_eq!(replaced.0.len(), MAX_REPLACED);
    }

    #[test]
    fn an_address_belongs_to_the_module_around_it() {
        let modules = KernelModules::parse(
            "xfs 4096 1 - Live 0xffffffffc0a00000\next4 8192 0 - Live 0xffffffffc0900000 (E)\nhidden 10 0 - Live 0x0000000000000000\nbad\n",
        );
        assert_eq!(modules.find(0xffff_ffff_c0a0_0fff).as_deref(), Some("[xfs]"));
        assert_eq!(modules.find(0xffff_ffff_c0a0_1000), None);
        assert_eq!(modules.find(0xffff_ffff_c090_1fff).as_deref(), Some("[ext4]"));
        assert_eq!(modules.find(5), None);
    }
}
