//! Codes that follow each other, and where each begins. Pure.

/// What stands for a number that is absent.
pub(crate) const ABSENT: u32 = u32::MAX;

/// How many values from the first on pass a test: block by block, since a loop that may end at every value does one
/// at a time.
pub(crate) fn run_length<T: Copy>(values: &[T], test: impl Fn(T) -> bool) -> usize {
    let mut count = 0;
    for block in values.chunks(32) {
        if block.iter().fold(true, |all, value| all & test(*value)) {
            count += block.len();
        } else {
            return count + block.iter().take_while(|value| test(**value)).count();
        }
    }
    count
}

/// Codes that follow each other: each with its number.
pub(crate) type Runs = Vec<(u32, u32)>;

pub(crate) fn runs(codes: impl Iterator<Item = u32>) -> Runs {
    let mut runs = Runs::new();
    for code in codes {
        match runs.last_mut() {
            Some((last, count)) if *last == code => *count += 1,
            _ => runs.push((code, 1)),
        }
    }
    runs
}

/// For each code of so many its place among those that there are, and those codes.
pub(crate) fn dense(codes: impl ExactSizeIterator<Item = u32>, of: usize) -> (Vec<u32>, Vec<u32>) {
    let (mut places, mut kept) = (vec![ABSENT; of], Vec::new());
    let keys = codes.map(|code| {
        let place = &mut places[code as usize];
        if *place == ABSENT {
            *place = kept.len() as u32;
            kept.push(code);
        }
        *place
    });
    (keys.collect(), kept)
}

/// Where the rows of each code of so many begin when they stand in the order of their codes, and behind the last
/// where they end.
pub(crate) fn begins(codes: impl Iterator<Item = u32>, of: usize) -> Vec<u32> {
    let mut begins = vec![0; of + 1];
    for code in codes {
        begins[code as usize + 1] += 1;
    }
    for code in 1..begins.len() {
        begins[code] += begins[code - 1];
    }
    begins
}
