//! Functions of several sources to one table: sorted, each address with the best source's rule.

use std::collections::HashMap;
use std::ops::Range;

use super::TableError;
use super::rule::{CallerFp, CallerPc, Cfa, Rule, Unsupported};
use super::table::{Full, Stats, Writer};

/// Functions per file. At 24 bytes each, and twice that while sources are joined, this is the larger part of what compiling
/// a table may take.
pub(super) const MAX_FUNCTIONS: usize = 1 << 21;
/// A gap below this is padding between functions, not code.
const PADDING_BYTES: u64 = 16;
/// Distinct rules, "nothing known" included.
const MAX_RULES: usize = 65_535;
const RECENT: usize = 256;
/// Pieces that are looked at to see whether a function is settled; what is not seen so is sorted out later.
const MAX_PIECES: usize = 64;

/// Gives each distinct rule its number.
#[derive(Debug)]
struct Rules {
    rules: Vec<Rule>,
    numbers: HashMap<Rule, u16>,
    /// Most rules were met shortly before: a look here costs less than one in the map.
    recent: Vec<(Rule, u16)>,
}

impl Rules {
    fn new() -> Self {
        Self {
            rules: vec![Rule::UNKNOWN],
            numbers: HashMap::from([(Rule::UNKNOWN, 0)]),
            recent: vec![(Rule::UNKNOWN, 0); RECENT],
        }
    }

    fn number(&mut self, rule: Rule) -> Option<u16> {
        let spread = rule.bits().wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        let slot = usize::from(spread[0]) % RECENT;
        if self.recent[slot].0 == rule {
            return Some(self.recent[slot].1);
        }
        let number = match self.numbers.get(&rule) {
            Some(number) => *number,
            None if self.rules.len() >= MAX_RULES => return None,
            None => {
                let number = u16::try_from(self.rules.len()).ok()?;
                self.rules.push(rule);
                self.numbers.insert(rule, number);
                number
            }
        };
        self.recent[slot] = (rule, number);
        Some(number)
    }
}

/// A range of addresses whose rows begin at `origin`.
#[derive(Debug, Clone, Copy)]
struct Piece {
    begin: u64,
    bytes: u32,
    /// Bytes from the function's first address to `begin`.
    skipped: u32,
    first_row: u32,
    rows: u32,
}

impl Piece {
    fn end(&self) -> u64 {
        self.begin.saturating_add(u64::from(self.bytes))
    }

    fn origin(&self) -> u64 {
        self.begin.saturating_sub(u64::from(self.skipped))
    }

    /// What lies between two addresses.
    fn cut(&self, begin: u64, end: u64) -> Option<Self> {
        let (begin, end) = (begin.max(self.begin), end.min(self.end()));
        Some(Self {
            begin,
            bytes: u32::try_from(end.checked_sub(begin).filter(|bytes| *bytes > 0)?).ok()?,
            skipped: u32::try_from(begin.checked_sub(self.origin())?).ok()?,
            ..*self
        })
    }
}

/// Takes the functions of one source after the other, the best first.
#[derive(Debug)]
pub(super) struct Collector {
    row_limit: usize,
    rules: Rules,
    /// Bytes from the function's first address, number of the rule.
    rows: Vec<(u32, u16)>,
    /// Of the current source, as they came.
    functions: Vec<Piece>,
    /// Of the sources before: ascending and disjoint.
    settled: Vec<Piece>,
    pub(super) stats: Stats,
}

impl Collector {
    pub(super) fn new(row_limit: usize) -> Self {
        Self {
            row_limit,
            rules: Rules::new(),
            rows: Vec::new(),
            functions: Vec::new(),
            settled: Vec::new(),
            stats: Stats::default(),
        }
    }

    /// True where some function has this rule.
    pub(super) fn knows(&self, rule: Rule) -> bool {
        self.rules.numbers.contains_key(&rule)
    }

    /// True where an earlier source describes all of these addresses, in not too many pieces.
    pub(super) fn is_settled(&self, begin: u64, end: u64) -> bool {
        let mut index = self.settled.partition_point(|piece| piece.end() <= begin);
        let mut reached = begin;
        let last = index.saturating_add(MAX_PIECES);
        while let Some(piece) = self
            .settled
            .get(index)
            .filter(|piece| piece.begin <= reached && index < last)
        {
            reached = piece.end();
            if reached >= end {
                return true;
            }
            index += 1;
        }
        false
    }

    /// Takes a function whose rows `fill` hands out in order. False where it is too large to be one.
    pub(super) fn function(
        &mut self,
        begin: u64,
        end: u64,
        fill: impl FnOnce(&mut dyn FnMut(u64, Rule, Option<Unsupported>)),
    ) -> Result<bool, TableError> {
        let Some(bytes) = end.checked_sub(begin).and_then(|bytes| u32::try_from(bytes).ok()) else {
            return Ok(false);
        };
        let first = self.rows.len();
        let mut previous = None;
        let (rules, rows, stats) = (&mut self.rules, &mut self.rows, &mut self.stats);
        fill(&mut |address, rule, reason| {
            stats.rows_before_merging = stats.rows_before_merging.saturating_add(1);
            if let Some(reason) = reason {
                stats.count(reason);
            }
            let number = rules.number(rule).unwrap_or_else(|| {
                stats.count(Unsupported::TooManyRules);
                0
            });
            let offset = address.checked_sub(begin).and_then(|offset| u32::try_from(offset).ok());
            if let Some(offset) = offset.filter(|_| previous != Some(number)) {
                rows.push((offset, number));
                previous = Some(number);
            }
        });
        let index = |count: usize| u32::try_from(count).map_err(|_| TableError::TooManyRows { limit: self.row_limit });
        self.functions.push(Piece {
            begin,
            bytes,
            skipped: 0,
            first_row: index(first)?,
            rows: index(self.rows.len() - first)?,
        });
        let functions = self.functions.len() + self.settled.len();
        if functions > MAX_FUNCTIONS {
            return Err(TableError::TooManyFunctions);
        }
        // Only a function's first row can be merged with its neighbour's last, so a table that is too long is known early.
        if self.rows.len() > self.row_limit.saturating_add(functions) {
            return Err(TableError::TooManyRows { limit: self.row_limit });
        }
        Ok(true)
    }

    /// Ends a source: what it says where no earlier one does is settled.
    pub(super) fn settle(&mut self) {
        let mut functions = std::mem::take(&mut self.functions);
        if functions.is_empty() {
            return;
        }
        functions.sort_by_key(|piece| piece.begin);
        let earlier = std::mem::take(&mut self.settled);
        let mut merged: Vec<Piece> = Vec::with_capacity(earlier.len() + functions.len());
        let mut earlier = earlier.into_iter().peekable();
        for function in functions {
            let mut begin = function.begin;
            while let Some(piece) = earlier.next_if(|piece| piece.begin < function.end()) {
                merged.extend(free(&merged, &function, begin, piece.begin));
                begin = piece.end();
                merged.push(piece);
            }
            merged.extend(free(&merged, &function, begin, function.end()));
        }
        merged.extend(earlier);
        self.settled = merged;
    }

    /// The table's parts, and how they were made.
    pub(super) fn finish(self) -> Result<(Writer, Vec<Rule>, Stats), TableError> {
        let lowest = self.settled.first().ok_or(TableError::NoUnwindInformation)?.begin;
        let mut writer = Writer::new(lowest, self.row_limit);
        let mut before = lowest;
        for piece in &self.settled {
            let padding = before..piece.begin;
            before = piece.end();
            self.write(piece, padding, &mut writer).map_err(|full| match full {
                Full::Rows => TableError::TooManyRows { limit: self.row_limit },
                Full::Addresses => TableError::TooManyAddresses,
            })?;
        }
        let writer = writer
            .finish()
            .map_err(|_| TableError::TooManyRows { limit: self.row_limit })?;
        Ok((writer, self.rules.rules, self.stats))
    }

    /// `padding` is what lies between the piece before and this one.
    fn write(&self, piece: &Piece, padding: Range<u64>, writer: &mut Writer) -> Result<(), Full> {
        let is_padding = (1..PADDING_BYTES).contains(&piece.begin.saturating_sub(padding.start));
        let first = usize::try_from(piece.first_row).map_err(|_| Full::Rows)?;
        let rows = self.rows.get(first..).unwrap_or_default();
        let rows = rows
            .get(..usize::try_from(piece.rows).map_err(|_| Full::Rows)?)
            .unwrap_or_default();
        // A piece may be a small part of its function.
        let before = rows
            .partition_point(|(offset, _)| *offset <= piece.skipped)
            .saturating_sub(1);
        let mut rows = rows.iter().skip(before).peekable();
        while let Some((offset, rule)) = rows.next() {
            let mut begin = piece.origin().saturating_add(u64::from(*offset)).max(piece.begin);
            if begin >= piece.end() {
                break;
            }
            let next = rows
                .peek()
                .map(|(next, _)| piece.origin().saturating_add(u64::from(*next)));
            let end = next.unwrap_or(u64::MAX).min(piece.end());
            if is_padding && begin == piece.begin && self.is_entry_rule(*rule) {
                begin = padding.start;
            }
            writer.push(begin, end, *rule)?;
        }
        Ok(())
    }

    /// True for the rule that holds at the first instruction of functions. Padding takes it from the function behind it: that
    /// saves two rows a function, and is right also for a tiny function that nobody describes.
    fn is_entry_rule(&self, number: u16) -> bool {
        let x86_64 = Rule::pack(Cfa::Sp(8), CallerFp::Same, CallerPc::BelowCfa);
        let arm64 = Rule::pack(Cfa::Sp(0), CallerFp::Same, CallerPc::LinkRegister);
        let rule = self.rules.rules.get(usize::from(number)).copied();
        rule.is_some() && (rule == x86_64.ok() || rule == arm64.ok())
    }
}

/// What of `function` lies from `begin` to `end` and behind everything merged so far.
fn free(merged: &[Piece], function: &Piece, begin: u64, end: u64) -> Option<Piece> {
    let reached = merged.last().map_or(0, Piece::end);
    function.cut(begin.max(reached), end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(offset: i32) -> Rule {
        Rule::pack(Cfa::Sp(offset), CallerFp::Same, CallerPc::BelowCfa).unwrap()
    }

    fn add(collector: &mut Collector, begin: u64, end: u64, rows: &[(u64, i32)]) {
        let fill = |row: &mut dyn FnMut(u64, Rule, Option<Unsupported>)| {
            for (address, offset) in rows {
                row(*address, rule(*offset), None);
            }
        };
        assert!(collector.function(begin, end, fill).unwrap());
    }

    fn offsets(collector: Collector, addresses: std::ops::Range<u64>) -> Vec<i32> {
        let (writer, rules, stats) = collector.finish().unwrap();
        let table = super::super::FileTable {
            base: writer.base,
            chunks: writer.chunks,
            rows: writer.rows,
            rules,
            stats,
            ..Default::default()
        };
        let offset = |address| match table.rule_at(address).cfa() {
            Cfa::Sp(offset) => offset,
            _ => 0,
        };
        addresses.map(offset).collect()
    }

    #[test]
    fn earlier_sources_win_and_later_ones_fill_what_they_left() {
        let mut collector = Collector::new(100);
        add(&mut collector, 4, 6, &[(4, 40)]);
        add(&mut collector, 1, 2, &[(1, 24)]);
        collector.settle();
        assert!(collector.is_settled(4, 6) && !collector.is_settled(3, 6) && !collector.is_settled(1, 5));
        add(&mut collector, 0, 9, &[(0, 16), (5, 32), (7, 48)]);
        add(&mut collector, 8, 10, &[(8, 56)]);
        collector.settle();
        assert_eq!(offsets(collector, 0..11), [16, 24, 16, 16, 40, 40, 32, 48, 48, 56, 0]);
    }

    #[test]
    fn padding_takes_the_rule_of_the_function_behind_it_and_wider_gaps_none() {
        let mut collector = Collector::new(100);
        add(&mut collector, 0, 2, &[(0, 8), (1, 16)]);
        add(&mut collector, 4, 5, &[(4, 8), (5, 16)]);
        add(&mut collector, 21, 22, &[(21, 8)]);
        collector.settle();
        let found = offsets(collector, 0..22);
        assert_eq!(found[..6], [8, 16, 8, 8, 8, 0]);
        assert_eq!(found[20..], [0, 8]);
    }

    #[test]
    fn a_table_beyond_the_limit_says_so() {
        let mut collector = Collector::new(3);
        let rows: Vec<(u64, i32)> = (0..9).map(|index| (u64::try_from(index).unwrap(), index * 8)).collect();
        let fill = |row: &mut dyn FnMut(u64, Rule, Option<Unsupported>)| {
            for (address, offset) in rows {
                row(address, rule(offset), None);
            }
        };
        let error = collector.function(0, 9, fill).unwrap_err();
        assert!(matches!(error, TableError::TooManyRows { limit: 3 }));
    }
}
