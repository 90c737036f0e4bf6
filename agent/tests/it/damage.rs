//! Bytes with some of them changed, the same ones in every run; and what it takes to read them.

use std::ops::Range;

/// A small generator of numbers, so that every run damages the same bytes.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: usize) -> Self {
        Self(seed as u64)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    /// A copy with up to `places` runs of up to eight bytes changed in a range: to random bytes, or to ones that
    /// decoders get wrong.
    pub(crate) fn damage(&mut self, original: &[u8], range: &Range<usize>, places: usize) -> Vec<u8> {
        const EXTREMES: [u8; 6] = [0, 0xff, 0x7f, 0x80, 1, 0xfe];
        let mut bytes = original.to_vec();
        for _ in 0..1 + self.below(places) {
            let at = range.start + self.below(range.len());
            let end = (at + 1 + self.below(8)).min(range.end);
            let extreme = EXTREMES[self.below(EXTREMES.len())];
            let random = self.below(2) == 0;
            for byte in &mut bytes[at..end] {
                *byte = if random {
                    u8::try_from(self.below(256)).unwrap()
                } else {
                    extreme
                };
            }
        }
        bytes
    }
}

/// True in a process that runs only this test; where it is not there yet, runs it. The peak of a process is that of
/// all tests that run in it.
pub(crate) fn in_own_process(test: &str) -> bool {
    const CHILD: &str = "STAKEOUT_HOSTILE_CHILD";
    if std::env::var_os(CHILD).is_some() {
        return true;
    }
    let program = std::env::current_exe().unwrap();
    let mut child = std::process::Command::new(program);
    let output = child.args(["--exact", test, "--nocapture"]).env(CHILD, "1").output();
    let output = output.unwrap();
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{}", text.concat());
    print!("{}", text[0]);
    false
}

/// The most that this process had resident.
pub(crate) fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}
