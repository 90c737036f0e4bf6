//! Numbers and texts as few bytes, and back. Pure.
//!
//! A number is a varint (LEB128, seven bits a byte, the lowest first); one that may be negative is folded first, so
//! that small ones of both signs are short (zigzag, as in protobuf).

/// Bytes that are not what a server of this version writes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("partial counts cannot be read: {what}")]
pub(crate) struct Malformed {
    what: String,
}

impl Malformed {
    pub(crate) fn new(what: impl Into<String>) -> Malformed {
        Malformed { what: what.into() }
    }
}

/// Bytes in the making.
#[derive(Debug, Default)]
pub(crate) struct PartialWriter {
    bytes: Vec<u8>,
}

impl PartialWriter {
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub(crate) fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    pub(crate) fn signed(&mut self, number: i64) {
        self.number((number << 1) as u64 ^ (number >> 63) as u64);
    }

    /// In two numbers, of which the upper one mostly is nothing.
    pub(crate) fn wide(&mut self, number: u128) {
        self.number(number as u64);
        self.number((number >> 64) as u64);
    }

    pub(crate) fn flag(&mut self, flag: bool) {
        self.number(u64::from(flag));
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// A number that may be absent.
    pub(crate) fn optional(&mut self, number: Option<i64>) {
        self.flag(number.is_some());
        if let Some(number) = number {
            self.signed(number);
        }
    }

    /// Ids in their order, each as its distance from the one before: of ids that are spread over all numbers, a million
    /// of them takes seven bytes each.
    pub(crate) fn ids(&mut self, ids: impl ExactSizeIterator<Item = i64>) {
        self.number(ids.len() as u64);
        let mut before = i64::MIN;
        for id in ids {
            self.number(id.wrapping_sub(before) as u64);
            before = id;
        }
    }

    /// As many numbers as the reader knows that there are; stretches of zeros are told by their length.
    pub(crate) fn cells(&mut self, cells: impl Iterator<Item = u64>) {
        let mut zeros = 0_u64;
        for cell in cells {
            if cell == 0 {
                zeros += 1;
                continue;
            }
            self.zeros(&mut zeros);
            self.number(cell);
        }
        self.zeros(&mut zeros);
    }

    fn zeros(&mut self, zeros: &mut u64) {
        if *zeros > 0 {
            self.number(0);
            self.number(std::mem::take(zeros));
        }
    }
}

/// Takes so many bytes of memory in all, or says that there are not as many.
pub(crate) type Room<'r> = &'r mut dyn FnMut(usize) -> bool;

/// Reads bytes from their begin to their end.
pub(crate) struct PartialReader<'b> {
    bytes: &'b [u8],
    /// Of memory for what is read; none: it is not asked for.
    room: Option<Room<'b>>,
    taken: usize,
}

impl<'b> PartialReader<'b> {
    pub(crate) fn new(bytes: &'b [u8]) -> PartialReader<'b> {
        PartialReader {
            bytes,
            room: None,
            taken: 0,
        }
    }

    /// One that asks for memory before it is taken.
    pub(crate) fn within(bytes: &'b [u8], room: Room<'b>) -> PartialReader<'b> {
        PartialReader {
            room: Some(room),
            ..PartialReader::new(bytes)
        }
    }

    /// What is read next takes so many bytes of memory, which may be many times as many as are read.
    pub(crate) fn takes(&mut self, bytes: usize) -> Result<(), Malformed> {
        self.taken = self.taken.saturating_add(bytes);
        if let Some(room) = &mut self.room
            && !room(self.taken)
        {
            return Err(Malformed::new("there is no memory for them"));
        }
        Ok(())
    }

    /// That nothing is left.
    pub(crate) fn end(&self) -> Result<(), Malformed> {
        match self.bytes.len() {
            0 => Ok(()),
            left => Err(Malformed::new(format!("{left} bytes are left at the end"))),
        }
    }

    pub(crate) fn number(&mut self) -> Result<u64, Malformed> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let Some((byte, rest)) = self.bytes.split_first() else {
                return Err(Malformed::new("they end within a number"));
            };
            self.bytes = rest;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && *byte > 1 {
                break;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Malformed::new("a number has more than 64 bits"))
    }

    pub(crate) fn signed(&mut self) -> Result<i64, Malformed> {
        let folded = self.number()?;
        Ok((folded >> 1) as i64 ^ -((folded & 1) as i64))
    }

    pub(crate) fn wide(&mut self) -> Result<u128, Malformed> {
        let lower = self.number()?;
        Ok(u128::from(self.number()?) << 64 | u128::from(lower))
    }

    pub(crate) fn flag(&mut self) -> Result<bool, Malformed> {
        match self.number()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(Malformed::new(format!("{other} stands where 0 or 1 does"))),
        }
    }

    /// How many things come, of which each takes a byte at least, and of which there may be so many. So nothing gets
    /// room for which there are no bytes.
    pub(crate) fn count(&mut self, most: usize, what: &str) -> Result<usize, Malformed> {
        let count = self.number()?;
        if count > most as u64 {
            return Err(Malformed::new(format!(
                "they have {count} {what}, at most {most} are allowed"
            )));
        }
        if count > self.bytes.len() as u64 {
            return Err(Malformed::new(format!("they end within {count} {what}")));
        }
        Ok(count as usize)
    }

    pub(crate) fn text(&mut self) -> Result<&'b str, Malformed> {
        let length = self.count(usize::MAX, "bytes of text")?;
        let (text, rest) = self.bytes.split_at(length);
        self.bytes = rest;
        std::str::from_utf8(text).map_err(|_| Malformed::new("a text is not UTF-8"))
    }

    pub(crate) fn optional(&mut self) -> Result<Option<i64>, Malformed> {
        self.flag()?.then(|| self.signed()).transpose()
    }

    /// Ids in their order, no two the same, and at most so many.
    pub(crate) fn ids(&mut self, most: usize, what: &str) -> Result<Vec<i64>, Malformed> {
        let count = self.count(most, what)?;
        let mut ids: Vec<i64> = Vec::with_capacity(count);
        for at in 0..count {
            let (distance, before) = (self.number()?, ids.last().copied().unwrap_or(i64::MIN));
            let id = before
                .checked_add_unsigned(distance)
                .filter(|_| at == 0 || distance > 0);
            ids.push(id.ok_or_else(|| Malformed::new(format!("{what} are not in their order")))?);
        }
        Ok(ids)
    }

    /// Fills cells that are zero.
    pub(crate) fn cells(&mut self, cells: usize, mut each: impl FnMut(usize, u64)) -> Result<(), Malformed> {
        let mut at = 0;
        while at < cells {
            match self.number()? {
                0 => {
                    let zeros = self.number()?;
                    if zeros == 0 || zeros > (cells - at) as u64 {
                        return Err(Malformed::new(format!(
                            "{zeros} empty cells stand where {} are left",
                            cells - at
                        )));
                    }
                    at += zeros as usize;
                }
                cell => {
                    each(at, cell);
                    at += 1;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same numbers in each run, of all lengths.
    fn numbers(count: usize) -> Vec<u64> {
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let next = |at: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            state >> (at % 64)
        };
        (0..count).map(next).collect()
    }

    #[test]
    fn numbers_of_all_lengths_come_back() {
        let mut all = numbers(5_000);
        all.extend([0, 1, 0x7f, 0x80, u64::MAX, i64::MAX as u64, 1 << 63]);
        let mut to = PartialWriter::default();
        for number in &all {
            to.number(*number);
            to.signed(*number as i64);
            to.wide(u128::from(*number).pow(2));
            to.optional((number % 2 == 0).then_some(*number as i64));
        }
        let bytes = to.into_bytes();
        let mut from = PartialReader::new(&bytes);
        for number in &all {
            assert_eq!(from.number().unwrap(), *number);
            assert_eq!(from.signed().unwrap(), *number as i64);
            assert_eq!(from.wide().unwrap(), u128::from(*number).pow(2));
            assert_eq!(from.optional().unwrap(), (number % 2 == 0).then_some(*number as i64));
        }
        assert_eq!(from.end(), Ok(()));
    }

    #[test]
    fn ids_come_back_in_their_order_and_near_ones_are_short() {
        for count in [0, 1, 2, 1_000] {
            let mut ids: Vec<i64> = numbers(count).into_iter().map(|number| number as i64).collect();
            ids.extend([i64::MIN, i64::MAX, 0, -1]);
            ids.sort_unstable();
            ids.dedup();
            let mut to = PartialWriter::default();
            to.ids(ids.iter().copied());
            let bytes = to.into_bytes();
            assert_eq!(PartialReader::new(&bytes).ids(ids.len(), "ids"), Ok(ids.clone()));
            assert!(
                PartialReader::new(&bytes).ids(ids.len() - 1, "ids").is_err(),
                "the limit holds"
            );
        }
        let mut to = PartialWriter::default();
        to.ids((1_000..1_100_i32).map(i64::from));
        assert!(to.into_bytes().len() < 100 + 12);
    }

    #[test]
    fn cells_come_back_and_empty_ones_take_no_room() {
        let mut rows = vec![vec![0; 64], vec![7; 64], vec![0, 0, 1, 0, 0, 0, 5]];
        rows.extend(
            numbers(200)
                .chunks(13)
                .map(|row| row.iter().map(|cell| cell % 3).collect()),
        );
        for row in rows {
            let mut to = PartialWriter::default();
            to.cells(row.iter().copied());
            let (bytes, mut read) = (to.into_bytes(), vec![0; row.len()]);
            let mut from = PartialReader::new(&bytes);
            from.cells(row.len(), |at, cell| read[at] = cell).unwrap();
            assert_eq!((read, from.end()), (row, Ok(())));
        }
        let mut to = PartialWriter::default();
        to.cells([0; 1_000].into_iter());
        assert_eq!(to.into_bytes().len(), 3);
    }

    #[test]
    fn what_is_cut_or_made_up_is_an_error_and_takes_no_room() {
        // A number of eleven bytes, one of 65 bits, more texts and ids than there are bytes, ids twice.
        let over = [&[0xff; 10][..], &[0]].concat();
        assert!(PartialReader::new(&over).number().is_err());
        let wide = [&[0xff; 9][..], &[2]].concat();
        assert!(PartialReader::new(&wide).number().is_err());
        assert!(PartialReader::new(&[0x80]).number().is_err());
        assert!(
            PartialReader::new(&[0xff, 0xff, 0x7f, 1])
                .ids(usize::MAX, "ids")
                .is_err()
        );
        assert!(PartialReader::new(&[2, 5, 0]).ids(9, "ids").is_err());
        assert!(PartialReader::new(&[9, b'a']).text().is_err());
        assert!(PartialReader::new(&[1, 0xff]).text().is_err());
        assert!(PartialReader::new(&[2]).flag().is_err());
        assert!(PartialReader::new(&[0, 9]).cells(8, |_, _| ()).is_err());
        assert!(PartialReader::new(&[0, 0]).cells(8, |_, _| ()).is_err());
    }
}
