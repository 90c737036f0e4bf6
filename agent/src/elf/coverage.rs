//! Which parts of a table of symbols say anything of which addresses. Most linkers write the functions of one object
//! file next to one another, in the table as in the code, so that for a few addresses a few parts of a large table
//! need be read.
//!
//! The code is cut into slices and the table into blocks; a block's mask has a bit for each slice of which one of its
//! symbols might say something. Nothing is left out: a mask may have a bit too many, never one too few.

/// Symbols of a block.
pub(crate) const BLOCK_SYMBOLS: usize = 512;
const SLICES: usize = 256;

/// A bit for each slice of the code.
pub(crate) type Mask = [u64; SLICES / 64];

/// The blocks of one table, in its order: 32 bytes each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Coverage {
    slices: Slices,
    /// The table: offset in its file, bytes.
    table: (u64, u64),
    blocks: Vec<Mask>,
}

/// How the code is cut: the addresses from the first segment's begin to the last one's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slices {
    begin: u64,
    /// Of one slice.
    bytes: u64,
}

impl Slices {
    /// None where there is no code.
    pub(crate) fn of(code: impl Iterator<Item = (u64, u64)>) -> Option<Self> {
        let (begin, end) = code.fold((u64::MAX, 0), |(begin, end): (u64, u64), (address, bytes)| {
            (begin.min(address), end.max(address.saturating_add(bytes)))
        });
        let bytes = end.checked_sub(begin).filter(|bytes| *bytes > 0)?;
        Some(Self {
            begin,
            bytes: bytes.div_ceil(SLICES as u64),
        })
    }

    /// False where an address lies before or behind all code.
    pub(crate) fn hold(self, address: u64) -> bool {
        address >= self.begin && (address - self.begin) / self.bytes < SLICES as u64
    }

    /// The slice of an address; what lies outside belongs to the first or last one.
    fn at(self, address: u64) -> usize {
        let slice = address.saturating_sub(self.begin) / self.bytes;
        usize::try_from(slice).map_or(SLICES - 1, |slice| slice.min(SLICES - 1))
    }

    /// Of the slices of these addresses.
    pub(crate) fn mask(self, addresses: &[u64]) -> Mask {
        let mut mask = Mask::default();
        for address in addresses {
            set(&mut mask, self.at(*address), self.at(*address));
        }
        mask
    }

    /// Adds the slices of `bytes` addresses from one on.
    pub(crate) fn add(self, mask: &mut Mask, address: u64, bytes: u64) {
        set(mask, self.at(address), self.at(address.saturating_add(bytes)));
    }
}

fn set(mask: &mut Mask, first: usize, last: usize) {
    for slice in first..=last {
        mask[slice / 64] |= 1 << (slice % 64);
    }
}

impl Coverage {
    /// Of a table that lies at `table` in its file. All its blocks are to be pushed.
    pub(crate) fn new(slices: Slices, table: (u64, u64)) -> Self {
        Self {
            slices,
            table,
            blocks: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, block: Mask) {
        self.blocks.push(block);
    }

    /// True where it is of this table, cut in the same way.
    pub(crate) fn is_of(&self, slices: Slices, table: (u64, u64)) -> bool {
        self.slices == slices && self.table == table
    }

    /// True where symbols of a block might say something of the slices in `wanted`.
    pub(crate) fn says(&self, block: usize, wanted: &Mask) -> bool {
        let Some(mask) = self.blocks.get(block) else {
            return true;
        };
        mask.iter().zip(wanted).any(|(has, wanted)| has & wanted != 0)
    }

    /// Memory that it takes.
    pub(crate) fn bytes(&self) -> u64 {
        (self.blocks.capacity() * size_of::<Mask>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_hold_what_lies_in_them_and_at_their_edges() {
        let slices = Slices::of([(0x2000, 0x1000), (0x8000, 0x9f00)].into_iter()).unwrap();
        assert_eq!(slices.bytes, 0xff);
        assert_eq!(slices.at(0), 0);
        assert_eq!(slices.at(0x2000 + 0xff), 1);
        assert_eq!(slices.at(0x11eff), SLICES - 1);
        assert_eq!(slices.at(u64::MAX), SLICES - 1);
        let mut mask = Mask::default();
        slices.add(&mut mask, 0x2000 + 0xff * 60, 0xff * 10);
        assert_eq!(mask.iter().map(|word| word.count_ones()).sum::<u32>(), 11);
        for slice in 60..71 {
            assert_eq!(
                slices.mask(&[0x2000 + 0xff * slice])[slice as usize / 64] & mask[slice as usize / 64],
                1 << (slice % 64)
            );
        }
        let mut all = Mask::default();
        slices.add(&mut all, 0x2000, u64::MAX);
        assert_eq!(all, [u64::MAX; 4]);
        assert_eq!(Slices::of(std::iter::empty()), None);
        assert_eq!(Slices::of([(7, 0)].into_iter()), None);
    }
}
