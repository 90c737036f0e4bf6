//! Keeps memory within its limit, by doing less well what costs most.

use crate::symbolize::DegradationLevel;

/// Intervals with room to spare before something is taken up again.
const PATIENCE: u32 = 12;

/// Looks at each interval at what is used.
#[derive(Debug, Clone)]
pub(in crate::agent) struct MemoryGovernor {
    limit_bytes: u64,
    level: usize,
    spare: u32,
}

impl MemoryGovernor {
    pub(in crate::agent) fn new(limit_bytes: u64) -> Self {
        Self {
            limit_bytes,
            level: 0,
            spare: 0,
        }
    }

    /// What to give up from now on, where `used_bytes` are resident or in BPF maps.
    pub(in crate::agent) fn after(&mut self, used_bytes: u64) -> DegradationLevel {
        if used_bytes > self.limit_bytes {
            self.level = (self.level + 1).min(DegradationLevel::ALL.len() - 1);
            self.spare = 0;
        } else if used_bytes < self.limit_bytes / 4 * 3 && self.level > 0 {
            self.spare += 1;
            if self.spare >= PATIENCE {
                self.level -= 1;
                self.spare = 0;
            }
        } else {
            self.spare = 0;
        }
        DegradationLevel::at(self.level)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn step_by_step_less_and_patiently_back() {
        let mut governor = MemoryGovernor::new(100);
        let levels: Vec<DegradationLevel> = [100, 101, 99, 150, 120, 130].map(|used| governor.after(used)).into();
        use DegradationLevel::{FewTables, NoInlines, NoLines, Nothing};
        assert_eq!(levels, [Nothing, NoInlines, NoInlines, NoLines, FewTables, FewTables]);
        // Below the limit, but with nothing to spare, it stays.
        assert!((0..100).all(|_| governor.after(90) == FewTables));
        let back: Vec<DegradationLevel> = (0..40).map(|_| governor.after(50)).collect();
        assert_eq!(
            (back[10], back[11], back[23], back[35]),
            (FewTables, NoLines, NoInlines, Nothing)
        );
    }
}
