//! The earliest samples as bytes, for another server: in the order of time, each text once.

use super::{Earliest, Lane, TimedSample};
use crate::query::count::partial::Partial;
use crate::query::count::partial::wire::{Malformed, PartialReader, PartialWriter};
use crate::query::limits::error::QueryError;
use std::collections::HashMap;
use std::sync::Arc;

/// Distinct texts by their first use.
#[derive(Debug, Default)]
struct Texts {
    places: HashMap<Arc<str>, u64>,
    list: Vec<Arc<str>>,
}

impl Texts {
    fn place(&mut self, text: &Arc<str>) -> u64 {
        if let Some(place) = self.places.get(text) {
            return *place;
        }
        let place = self.list.len() as u64;
        self.places.insert(text.clone(), place);
        self.list.push(text.clone());
        place
    }
}

impl Partial for Earliest {
    fn write(self, to: &mut PartialWriter) -> Result<(), QueryError> {
        let moments = self.moments.into_sorted_vec();
        let mut texts = Texts::default();
        let of_texts = |moment: &TimedSample| {
            let all = [&moment.lane.node, &moment.thread, &moment.mode];
            all.map(|text| texts.place(text))
        };
        let places: Vec<[u64; 3]> = moments.iter().map(of_texts).collect();
        to.flag(self.complete);
        to.number(texts.list.len() as u64);
        texts.list.iter().for_each(|text| to.text(text));
        to.number(moments.len() as u64);
        let mut before_ns = 0;
        for (moment, places) in moments.iter().zip(places) {
            to.signed(moment.ts_ns.wrapping_sub(before_ns));
            before_ns = moment.ts_ns;
            places.into_iter().for_each(|place| to.number(place));
            to.optional(moment.lane.cpu);
            to.optional(moment.tid);
            to.signed(moment.stack_id);
            to.signed(moment.series_id);
            to.signed(moment.process_id);
            to.signed(moment.value_ns);
            to.optional(moment.wait_ns);
        }
        Ok(())
    }

    fn read(&mut self, from: &mut PartialReader<'_>) -> Result<(), Malformed> {
        self.complete = from.flag()?;
        let count = from.count(3 * self.limit, "texts")?;
        let mut texts: Vec<Arc<str>> = Vec::with_capacity(count);
        for _ in 0..count {
            texts.push(from.text()?.into());
        }
        let text = |from: &mut PartialReader<'_>| -> Result<Arc<str>, Malformed> {
            let place = usize::try_from(from.number()?).ok();
            let text = place.and_then(|place| texts.get(place)).cloned();
            text.ok_or_else(|| Malformed::new("a text is not among those of the samples"))
        };
        let mut ts_ns = 0_i64;
        let count = from.count(self.limit, "samples")?;
        from.takes(count * size_of::<TimedSample>())?;
        for _ in 0..count {
            ts_ns = ts_ns.wrapping_add(from.signed()?);
            let [node, thread, mode] = [text(from)?, text(from)?, text(from)?];
            let (cpu, tid) = (from.optional()?, from.optional()?);
            self.moments.push(TimedSample {
                ts_ns,
                lane: Lane { node, cpu },
                tid,
                stack_id: from.signed()?,
                series_id: from.signed()?,
                process_id: from.signed()?,
                thread,
                mode,
                value_ns: from.signed()?,
                profile: self.profile,
                wait_ns: from.optional()?,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::count::partial::{decode, encode};
    use crate::query::count::scan::Accumulator;

    fn moment(at: i64) -> TimedSample {
        TimedSample {
            ts_ns: 1_795_248_000_000_000_000 + at * 7 % 1_000,
            lane: Lane {
                node: format!("node-{}", at % 3).into(),
                cpu: (at % 4 != 0).then_some(at % 4),
            },
            tid: (at % 5 != 0).then_some(100 + at),
            stack_id: at.wrapping_mul(i64::MAX / 3),
            series_id: -at,
            process_id: at,
            thread: format!("thread-{}", at % 2).into(),
            mode: if at % 2 == 0 { "user" } else { "kernel" }.into(),
            value_ns: 50_000_000,
            profile: 2,
            wait_ns: (at % 7 == 0).then_some(at),
        }
    }

    #[test]
    fn what_is_sent_is_what_was_taken() {
        for (limit, taken) in [(100, 0), (100, 60), (40, 60)] {
            let mut earliest = Earliest::new(limit, 2);
            (0..taken).for_each(|at| earliest.take(moment(at)));
            let sent = encode(earliest.clone()).unwrap();
            let back = decode(Earliest::new(limit, 2), &sent).unwrap();
            assert_eq!(back.complete, earliest.complete);
            assert_eq!(
                back.moments.clone().into_sorted_vec(),
                earliest.moments.into_sorted_vec()
            );
            let mut here = Earliest::new(limit, 2);
            here.merge(back).unwrap();
            assert_eq!(here.moments.len(), limit.min(taken as usize));
            for cut in 0..sent.len() {
                assert!(decode(Earliest::new(limit, 2), &sent[..cut]).is_err(), "{cut}");
            }
        }
    }
}
