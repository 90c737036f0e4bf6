//! What a check found, and how the output of test runners is read for it.

/// What one check found, or several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u32,
    pub(crate) failed: u32,
    /// What failed and why, line by line: said once more at the end.
    pub(crate) failures: Vec<String>,
}

impl Tally {
    pub(crate) fn new(passed: u32, failed: u32) -> Tally {
        Tally {
            passed,
            failed,
            failures: vec![],
        }
    }

    /// A check that is one test.
    pub(crate) fn one(passed: bool) -> Tally {
        Tally::new(u32::from(passed), u32::from(!passed))
    }

    /// One more test, which failed; says so.
    pub(crate) fn fail(&mut self, text: &str) {
        println!("{text}");
        self.failed += 1;
        self.failures.extend(text.lines().map(str::to_owned));
    }

    /// The sum of two.
    pub(crate) fn and(mut self, other: Tally) -> Tally {
        self.add(other);
        self
    }

    pub(crate) fn add(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.failures.extend(other.failures);
    }
}

/// How a test runner's output is read, line by line.
#[derive(Clone, Copy)]
pub(crate) struct Reader {
    summary: fn(&str) -> Option<Tally>,
    /// What failed begins to be told.
    begins: fn(&str) -> bool,
    /// No part of that any more.
    ends: fn(&str) -> bool,
}

impl Reader {
    /// Reads a line. `telling`: whether it is in the midst of what failed.
    pub(crate) fn read(&self, line: &str, tally: &mut Tally, telling: &mut bool) {
        *telling = (*telling || (self.begins)(line)) && !(self.ends)(line);
        if *telling {
            tally.failures.push(line.to_owned());
        }
        if let Some(more) = (self.summary)(line) {
            tally.add(more);
        }
    }
}

pub(crate) const CARGO: Reader = Reader {
    summary: read_cargo,
    begins: |line| line == "failures:",
    ends: |line| line.starts_with("test result: "),
};
pub(crate) const VITEST: Reader = Reader {
    summary: read_vitest,
    begins: |line| line.contains(" Failed Tests ") || line.contains(" Failed Suites "),
    ends: |line| line.trim_start().starts_with("Test Files "),
};
pub(crate) const PLAYWRIGHT: Reader = Reader {
    summary: read_playwright,
    begins: |line| line.starts_with("  1) "),
    ends: |_| false,
};

/// `test result: ok. 12 passed; 0 failed; 1 ignored; …`
pub(crate) fn read_cargo(line: &str) -> Option<Tally> {
    let counts = line.trim().strip_prefix("test result: ")?.split_once(". ")?.1;
    let count = |word: &str| {
        let part = counts.split(';').find(|part| part.trim().ends_with(word))?;
        part.trim().strip_suffix(word)?.trim().parse().ok()
    };
    Some(Tally::new(count(" passed")?, count(" failed")?))
}

/// Vitest: `     Tests  1 failed | 11 passed (12)`.
fn read_vitest(line: &str) -> Option<Tally> {
    let counts = line.trim().strip_prefix("Tests ")?.trim();
    let mut tally = Tally::default();
    for part in counts.split('|') {
        let (number, word) = part.trim().split_once(' ')?;
        match word.split(' ').next()? {
            "passed" => tally.passed = number.parse().ok()?,
            "failed" => tally.failed = number.parse().ok()?,
            _ => {}
        }
    }
    Some(tally)
}

/// Playwright: lines `  12 passed (10s)`, `  1 failed`, and flaky ones, which passed on a second try only.
fn read_playwright(line: &str) -> Option<Tally> {
    let (number, word) = line.trim().split_once(' ')?;
    let number = number.parse().ok()?;
    match word.split(' ').next()? {
        "passed" => Some(Tally::new(number, 0)),
        "failed" | "flaky" => Some(Tally::new(0, number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_runners_summaries() {
        let tally = |passed, failed| Some(Tally::new(passed, failed));
        let cargo =
            "test result: FAILED. 41 passed; 2 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.42s";
        assert_eq!(read_cargo(cargo), tally(41, 2));
        assert_eq!(read_cargo("test a ... ok"), None);
        assert_eq!(read_vitest("      Tests  1 failed | 11 passed (12)"), tally(11, 1));
        assert_eq!(read_vitest(" Test Files  3 passed (3)"), None);
        assert_eq!(read_playwright("  12 passed (10.1s)"), tally(12, 0));
        assert_eq!(read_playwright("  1 flaky"), tally(0, 1));
        assert_eq!(read_playwright("Running 12 tests using 1 worker"), None);
    }

    #[test]
    fn what_failed_is_kept_for_the_end() {
        let told = |reader: Reader, said: &str| {
            let (mut tally, mut telling) = (Tally::default(), false);
            said.split('\n')
                .for_each(|line| reader.read(line, &mut tally, &mut telling));
            (tally.passed, tally.failed, tally.failures.join("|"))
        };
        let cargo = "test a ... ok\ntest b ... FAILED\n\nfailures:\n\n---- b stdout ----\nleft: 1\n\nfailures:\n    b\n\n\
            test result: FAILED. 1 passed; 1 failed; 0 ignored\ntest c ... ok\ntest result: ok. 1 passed; 0 failed; 0 ignored";
        assert_eq!(
            told(CARGO, cargo),
            (2, 1, "failures:||---- b stdout ----|left: 1||failures:|    b|".into())
        );
        let vitest =
            " FAIL  a\n⎯⎯ Failed Tests 1 ⎯⎯\nwrong\n\n Test Files  1 failed (1)\n      Tests  1 failed | 2 passed (3)";
        assert_eq!(told(VITEST, vitest), (2, 1, "⎯⎯ Failed Tests 1 ⎯⎯|wrong|".into()));
        let playwright = "  ✘  1 a.spec.ts\n  ✓  2 b.spec.ts\n\n  1) a.spec.ts:7:1 › a ───\n    wrong\n\n  1 failed\n  1 passed (2s)";
        assert_eq!(
            told(PLAYWRIGHT, playwright),
            (
                1,
                1,
                "  1) a.spec.ts:7:1 › a ───|    wrong||  1 failed|  1 passed (2s)".into()
            )
        );
    }
}
