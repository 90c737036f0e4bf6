//! Which code stands for which value of a dictionary, where the order is free. Pure.
//!
//! In: codes of a column, row by row. Out: for each code another one of two bytes. zstd counts bytes, not codes, and
//! both bytes of a code by one table: so codes are chosen such that few bytes are most of all in what it looks at at
//! a time.

use crate::column::runs::Runs;
use std::cmp::Reverse;

/// Counts by thread group and code that are held at a time, at most: 16 MB.
const MAX_COUNTS: usize = 1 << 22;

/// Different bytes.
const BYTES: u32 = 1 << 8;

/// For each code of so many another one, both bytes of it small where the code is frequent.
pub(crate) fn by_frequency(codes: &[u32], values: usize) -> Vec<u32> {
    let mut counts = vec![0_u32; values];
    codes.iter().for_each(|code| counts[*code as usize] += 1);
    let mut ranked: Vec<u32> = (0..values as u32).collect();
    ranked.sort_by_key(|code| Reverse(counts[*code as usize]));
    let mut places: Vec<u32> = (0..values as u32).collect();
    places.sort_by_key(|place| smallness(place >> 8, place & 0xff));
    let mut of_code = vec![0; values];
    for (code, place) in ranked.into_iter().zip(places) {
        of_code[code as usize] = place;
    }
    of_code
}

/// By Zipf's law what is at the rank of this product is about as frequent as its bytes by themselves are together.
fn smallness(high: u32, low: u32) -> u32 {
    (high + 2) * (low + 2)
}

/// The same where rows have thread groups, of which each has mostly codes of its own: a group's codes have bytes
/// of their own, as many as the sides of a square in which they all have room. Some codes stand for nothing then.
/// `None`: there are too many for that.
pub(crate) fn by_thread_group(codes: &[u32], thread_groups: &Runs, values: usize) -> Option<Vec<u32>> {
    let count = thread_groups.iter().map(|(group, _)| *group as usize + 1).max()?;
    if count * values > MAX_COUNTS {
        return None;
    }
    let mut counts = vec![0_u32; count * values];
    let mut from = 0;
    for (group, rows) in thread_groups {
        let counts = &mut counts[*group as usize * values..][..values];
        let end = from + *rows as usize;
        codes
            .get(from..end)?
            .iter()
            .for_each(|code| counts[*code as usize] += 1);
        from = end;
    }
    // Of each thread group the codes that come there more often than elsewhere.
    let mut of_group: Vec<Vec<(u32, u32)>> = vec![Vec::new(); count];
    for code in 0..values {
        let here = |group: usize| counts[group * values + code];
        let group = (0..count).max_by_key(|group| here(*group))?;
        of_group[group].push((here(group), code as u32));
    }
    let (mut of_code, mut first) = (vec![0; values], 0);
    for mut codes in of_group {
        codes.sort_by_key(|(count, _)| Reverse(*count));
        let side = (1..BYTES)
            .find(|side| (side * side) as usize >= codes.len())
            .unwrap_or(BYTES);
        if first + side > BYTES {
            return None;
        }
        let mut places: Vec<(u32, u32)> = (0..side * side).map(|place| (place / side, place % side)).collect();
        places.sort_by_key(|(high, low)| smallness(*high, *low));
        for ((_, code), (high, low)) in codes.into_iter().zip(places) {
            of_code[code as usize] = (first + high) << 8 | (first + low);
        }
        first += side;
    }
    Some(of_code)
}

/// Rows of pages that end where a thread group does, unless they would be shorter than `least`, and after `most` rows.
pub(crate) fn pages_of_thread_groups(thread_groups: &Runs, least: usize, most: usize) -> Vec<usize> {
    let (mut pages, mut page) = (Vec::new(), 0);
    for (_, rows) in thread_groups {
        if page >= least {
            pages.push(std::mem::take(&mut page));
        }
        page += *rows as usize;
        while page > most {
            pages.push(most);
            page -= most;
        }
    }
    if page > 0 {
        pages.push(page);
    }
    pages
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Code n comes 600 - n times.
    fn codes() -> Vec<u32> {
        (0..600).flat_map(|code| (code..600).map(move |_| code)).collect()
    }

    #[test]
    fn frequent_codes_have_two_small_bytes_and_each_has_its_own() {
        let places = by_frequency(&codes(), 600);
        let mut all = places.clone();
        all.sort_unstable();
        assert_eq!(all, (0..600).collect::<Vec<_>>());
        let small = |place: u32| smallness(place >> 8, place & 0xff);
        assert!(places.windows(2).all(|two| small(two[0]) <= small(two[1])));
        assert_eq!(places[..3], [0x000, 0x001, 0x100]);
    }

    #[test]
    fn each_home_has_bytes_of_its_own_and_each_code_a_place() {
        // The odd ones come in one thread group, the even ones in the other, which comes again.
        let (mut rows, mut thread_groups) = (Vec::new(), Runs::new());
        for (group, odd) in [(0, 1), (1, 0), (0, 1)] {
            let own: Vec<u32> = codes().into_iter().filter(|code| code % 2 == odd).collect();
            thread_groups.push((group, own.len() as u32));
            rows.extend(own);
        }
        let places = by_thread_group(&rows, &thread_groups, 600).unwrap();
        let mut all = places.clone();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 600);
        // 300 codes each: 18 by 18.
        for (code, place) in places.iter().enumerate() {
            let bytes = [place >> 8, place & 0xff];
            let own = if code % 2 == 1 { 0..18 } else { 18..36 };
            assert!(bytes.iter().all(|byte| own.contains(byte)), "{code}: {place:x}");
        }
        assert_eq!([places[1], places[0]], [0, 18 << 8 | 18]);
        // So many thread groups have no room.
        let thread_groups: Runs = (0..300).map(|group| (group, rows.len() as u32 / 300)).collect();
        assert_eq!(by_thread_group(&rows, &thread_groups, 600), None);
    }

    #[test]
    fn pages_end_with_homes_but_are_neither_short_nor_long() {
        let thread_groups = vec![(0, 3), (1, 4), (0, 1), (2, 25), (1, 1)];
        assert_eq!(pages_of_thread_groups(&thread_groups, 5, 10), [7, 10, 10, 6, 1]);
        assert_eq!(pages_of_thread_groups(&Runs::new(), 5, 10), [0; 0]);
        assert_eq!(pages_of_thread_groups(&vec![(0, 20)], 5, 10), [10, 10]);
    }
}
