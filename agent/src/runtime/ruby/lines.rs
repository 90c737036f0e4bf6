//! The line of an instruction: a table of entries, and which of them is whose, as a list of positions or as an index of
//! bits that are set at each entry's position, with how many are set before.

use super::{ReadMemory, Unreadable, field, number, part, word};

/// Files with longer tables are data that was written as code.
const MAX_ENTRIES: u64 = 1 << 20;
/// Of the index: the first positions have seven bits each, nine of them in a word; the others are in blocks.
const IMMEDIATE: u64 = 54;
const PER_WORD: u64 = 9;
const RANK_BITS: u64 = 7;
/// A block: how many are set before it, the same for all but the first of its words in nine bits each, its words.
const BLOCK_BITS: u64 = 512;
const BLOCK_BYTES: u64 = 8 + 8 + BLOCK_BITS / 8;
const SMALL_RANK_BITS: u64 = 9;

/// The table of a body: at `at` its entries, the list of positions, their number, the index.
pub(super) struct LineTable<'a> {
    pub(super) body: &'a [u8],
    pub(super) at: u16,
    pub(super) entry_bytes: u16,
}

impl LineTable<'_> {
    /// The line of the instruction at a position; none where the table has none.
    pub(super) fn line(&self, memory: &dyn ReadMemory, position: u64) -> Result<Option<u32>, Unreadable> {
        let field_at = |offset| part(self.body, self.at + offset);
        let (entries, positions, count, index) = (field_at(0), field_at(8), field_at(16) & 0xffff_ffff, field_at(24));
        let entry = match count {
            0 => return Ok(None),
            1 => 0,
            _ if count > MAX_ENTRIES => return Ok(None),
            _ if index != 0 => rank(memory, index, position)?.saturating_sub(1),
            _ => listed(memory, positions, count, position)?,
        };
        if entry >= count {
            return Ok(None);
        }
        let address = entries.saturating_add(entry * u64::from(self.entry_bytes));
        let line = number(memory, address, 4)? as u32;
        Ok(Some(line).filter(|line| i32::try_from(*line).is_ok()))
    }
}

/// How many entries begin up to a position.
fn rank(memory: &dyn ReadMemory, index: u64, position: u64) -> Result<u64, Unreadable> {
    if position < IMMEDIATE {
        let ranks = word(memory, index.saturating_add(position / PER_WORD * 8))?;
        return Ok(ranks >> (position % PER_WORD * RANK_BITS) & ((1 << RANK_BITS) - 1));
    }
    let behind = position - IMMEDIATE;
    let block = index.saturating_add(IMMEDIATE / PER_WORD * 8 + behind / BLOCK_BITS * BLOCK_BYTES);
    let before = word(memory, block)? & 0xffff_ffff;
    let (in_block, ranks) = (behind % BLOCK_BITS, word(memory, field(block, 8))?);
    let small = match in_block / 64 {
        0 => 0,
        word => ranks >> ((word - 1) * SMALL_RANK_BITS) & ((1 << SMALL_RANK_BITS) - 1),
    };
    let bits = word(memory, field(block, 16).saturating_add(in_block / 64 * 8))?;
    let set = u64::from((bits << (63 - in_block % 64)).count_ones());
    Ok(before + small + set)
}

/// The last of ascending positions that is not beyond one.
fn listed(memory: &dyn ReadMemory, positions: u64, count: u64, position: u64) -> Result<u64, Unreadable> {
    let (mut low, mut high) = (0, count);
    while high - low > 1 {
        let middle = u64::midpoint(low, high);
        if number(memory, positions.saturating_add(middle * 4), 4)? <= position {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(low)
}
