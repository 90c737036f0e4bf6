//! Programs with more executable mappings than a walk can find its way in.

use crate::unwind::{Code, CodeMapping, MAX_MAPPINGS};

/// Makes at most [`MAX_MAPPINGS`] of a program's mappings, ascending. Neighbours without tables become one, those that
/// lie nearest to each other first: run-time compilers map their code in thousands of pieces, of which nothing is known
/// but that they are code.
pub(super) fn fit(mappings: Vec<CodeMapping<'_>>) -> Vec<CodeMapping<'_>> {
    let Some(too_many) = mappings.len().checked_sub(MAX_MAPPINGS).filter(|count| *count > 0) else {
        return mappings;
    };
    let has_none = |mapping: &CodeMapping<'_>| matches!(mapping.code, Code::NoTable);
    let gap =
        |pair: &[CodeMapping<'_>]| (has_none(&pair[0]) && has_none(&pair[1])).then(|| pair[1].begin - pair[0].end);
    let mut gaps: Vec<(u64, usize)> = mappings
        .windows(2)
        .enumerate()
        .filter_map(|(index, pair)| Some((gap(pair)?, index + 1)))
        .collect();
    gaps.sort_unstable();
    let mut joined = vec![false; mappings.len()];
    for (_, index) in gaps.into_iter().take(too_many) {
        joined[index] = true;
    }
    let mut fitting: Vec<CodeMapping<'_>> = Vec::with_capacity(MAX_MAPPINGS);
    for (mapping, joined) in mappings.into_iter().zip(joined) {
        match fitting.last_mut() {
            Some(last) if joined => last.end = mapping.end,
            _ => fitting.push(mapping),
        }
    }
    fitting
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(begin: u64, code: Code<'static>) -> CodeMapping<'static> {
        CodeMapping {
            begin,
            end: begin + 10,
            code,
        }
    }

    #[test]
    fn what_was_made_in_pieces_is_one_and_files_stay_their_own() {
        let count = MAX_MAPPINGS as u64 + 100;
        // Pieces that lie nearer to each other, the further up they are, and two files.
        let mut all: Vec<CodeMapping<'_>> = (0..count)
            .map(|i| mapping(1_000_000 + i * 1_000 - i * i / count, Code::NoTable))
            .collect();
        all.insert(0, mapping(0, Code::Pending));
        all.push(mapping(1 << 40, Code::Pending));
        let few = fit(all.clone());
        assert_eq!(few.len(), MAX_MAPPINGS);
        assert!(matches!(
            (few[0].code, few[MAX_MAPPINGS - 1].code),
            (Code::Pending, Code::Pending)
        ));
        assert!(few.windows(2).all(|pair| pair[0].end <= pair[1].begin));
        assert_eq!(
            (few[1].end - few[1].begin, few[1].begin),
            (10, 1_000_000),
            "the furthest apart stay"
        );
        let covers = |address: u64| few.iter().any(|one| (one.begin..one.end).contains(&address));
        assert!(all.iter().all(|one| covers(one.begin) && covers(one.end - 1)));
        assert_eq!(fit(all[..5].to_vec()).len(), 5);
    }
}
