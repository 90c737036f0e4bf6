//! The plan of a column's pages: in which encoding its codes are written, where there is a choice.

use crate::column::runs::{ABSENT, Runs};
use crate::store::format::write::bits::{CodeStream, hybrid};
use crate::store::format::write::code_order::{by_frequency, by_thread_group, pages_of_thread_groups};
use crate::store::format::write::rows_file::WriteProfile;
use parquet::errors::ParquetError;
use zstd::bulk::Compressor;

/// Values by which it is decided how many bits codes are written with: a small part of a row group's, since each of
/// them is written thrice.
const TRIED_VALUES: usize = 8 * 1024;

/// The same of the order of stacks, and of what pages end with. What may become of them is compared as it would be
/// written: in few values none comes often, and there are few pages.
const TRIED_ROWS: usize = 32 * 1024;

/// A page is not ended with its thread group before it has so many rows: below, what zstd begins with costs more than
/// is won.
const LEAST_PAGE_OF_THREAD_GROUP: usize = 2 * 1024;

/// About what a page takes beside its codes.
const PAGE_BYTES: usize = 50;

/// How the codes of a column are written.
#[derive(Debug, Default)]
pub(crate) struct PagePlan {
    /// The code that takes the place of each.
    pub(crate) places: Option<Vec<u32>>,
    /// Bits of a code; none: what [`Compressors::width`] says.
    pub(crate) width: Option<u32>,
    /// Without runs.
    is_each: bool,
    /// By the frequency of bytes alone, see [`crate::store::format::write::column_writer::counting`].
    pub(crate) is_fast: bool,
    /// Rows of each page; none: all the same.
    pages: Vec<usize>,
}

impl PagePlan {
    pub(crate) fn cut<'c>(&self, codes: &'c CodeStream<'_>, profile: WriteProfile) -> Vec<CodeStream<'c>> {
        match self.pages.as_slice() {
            [] => codes.pages(profile.page_rows()),
            pages => codes.cut(pages),
        }
    }

    pub(crate) fn write(&self, codes: &CodeStream<'_>, width: u32, to: &mut Vec<u8>) {
        if self.is_each {
            codes.write_each(width, to);
        } else {
            codes.write(width, to);
        }
    }
}

/// What pages are compressed with, when encodings are tried and when one is written.
pub(crate) struct Compressors<'g> {
    pub(crate) profile: WriteProfile,
    pub(crate) compressor: &'g mut Compressor<'static>,
    /// By the frequency of bytes alone.
    pub(crate) fast: &'g mut Compressor<'static>,
}

impl Compressors<'_> {
    /// The one that pages of this plan are compressed with.
    pub(crate) fn of(&mut self, plan: &PagePlan) -> &mut Compressor<'static> {
        if plan.is_fast { self.fast } else { self.compressor }
    }

    /// Of the plans by which stacks can be written the one by which the first of them become smallest.
    pub(crate) fn plan_of_stacks(
        &mut self,
        keys: &[u32],
        values: usize,
        thread_groups: &Runs,
    ) -> Result<PagePlan, ParquetError> {
        if self.profile != WriteProfile::Compact || !(1 << 8..1 << 16).contains(&values) {
            return Ok(PagePlan::default());
        }
        let (keys_tried, width) = (&keys[..keys.len().min(TRIED_ROWS)], Some(u16::BITS));
        let least = self.width(values, &CodeStream::of_rows(keys_tried))?;
        let mut plans = vec![
            PagePlan {
                width: Some(least),
                ..PagePlan::default()
            },
            PagePlan {
                places: Some(by_frequency(keys, values)),
                width,
                is_fast: true,
                ..PagePlan::default()
            },
        ];
        if thread_groups.is_empty() {
            // Each stack's rows follow each other: as a run of the format, or as what is one to zstd.
            plans.extend([false, true].map(|is_each| PagePlan {
                width,
                is_each,
                ..PagePlan::default()
            }));
        }
        if let Some(places) = by_thread_group(keys, thread_groups, values) {
            plans.push(PagePlan {
                places: Some(places),
                width,
                is_fast: true,
                pages: pages_of_thread_groups(thread_groups, LEAST_PAGE_OF_THREAD_GROUP, self.profile.page_rows()),
                ..PagePlan::default()
            });
        }
        self.smallest(keys_tried, plans)
    }

    /// The same of codes of which rows of one thread group have few.
    pub(crate) fn plan_of_pages(
        &mut self,
        keys: &[u32],
        values: usize,
        thread_groups: &Runs,
    ) -> Result<PagePlan, ParquetError> {
        let tried = &keys[..keys.len().min(TRIED_ROWS)];
        if self.profile != WriteProfile::Compact || thread_groups.is_empty() || values < 2 || tried.contains(&ABSENT) {
            return Ok(PagePlan::default());
        }
        let pages = pages_of_thread_groups(thread_groups, LEAST_PAGE_OF_THREAD_GROUP, self.profile.page_rows());
        let mut plans = vec![PagePlan {
            width: Some(self.width(values, &CodeStream::of_rows(tried))?),
            ..PagePlan::default()
        }];
        // Of few codes eight in a row are equal now and then by chance: a run there breaks up what zstd would count.
        let with_and_without_runs = |width| [false, true].map(|is_each| (width, is_each));
        plans.extend(
            widths(values)
                .flat_map(with_and_without_runs)
                .map(|(width, is_each)| PagePlan {
                    width: Some(width),
                    is_each,
                    is_fast: true,
                    pages: pages.clone(),
                    ..PagePlan::default()
                }),
        );
        self.smallest(tried, plans)
    }

    fn smallest(&mut self, keys: &[u32], plans: Vec<PagePlan>) -> Result<PagePlan, ParquetError> {
        let mut smallest = (usize::MAX, PagePlan::default());
        for plan in plans {
            let size = self.size(keys, &plan)?;
            if size < smallest.0 {
                smallest = (size, plan);
            }
        }
        Ok(smallest.1)
    }

    /// Bytes that these codes take by this plan.
    fn size(&mut self, keys: &[u32], plan: &PagePlan) -> Result<usize, ParquetError> {
        let placed: Vec<u32> = match &plan.places {
            Some(places) => keys.iter().map(|key| places[*key as usize]).collect(),
            None => keys.to_vec(),
        };
        let (mut size, mut plain) = (0, Vec::new());
        for page in plan.cut(&CodeStream::of_rows(&placed), self.profile) {
            plain.clear();
            plan.write(&page, plan.width.unwrap_or(u32::BITS), &mut plain);
            size += PAGE_BYTES + self.of(plan).compress(&plain)?.len();
        }
        Ok(size)
    }
    /// How many bits codes are written with, by how small the first ones become: as few as the greatest code needs,
    /// or whole or half bytes. Those are more, but zstd finds in them which codes are frequent.
    pub(crate) fn width(&mut self, values: usize, codes: &CodeStream<'_>) -> Result<u32, ParquetError> {
        let [least, ..] = of_values(values);
        let CodeStream::Rows(codes) = codes else {
            return Ok(least);
        };
        if self.profile != WriteProfile::Compact {
            return Ok(least);
        }
        let given = codes.iter().copied().filter(|code| *code != ABSENT);
        let (first, mut plain): (Vec<u32>, _) = (given.take(TRIED_VALUES).collect(), Vec::new());
        let mut smallest = (usize::MAX, least);
        for width in widths(values) {
            plain.clear();
            hybrid(&first, width, &mut plain);
            let size = self.compressor.compress(&plain)?.len().min(plain.len());
            smallest = smallest.min((size, width));
        }
        Ok(smallest.1)
    }
}

/// As few bits as the codes of so many values need, and as many half and whole bytes.
fn of_values(values: usize) -> [u32; 3] {
    let least = u32::BITS - (values.saturating_sub(1) as u32).leading_zeros();
    [least, least.next_multiple_of(4), least.next_multiple_of(8)]
}

/// The different ones of these.
fn widths(values: usize) -> impl Iterator<Item = u32> {
    let mut widths = of_values(values).to_vec();
    widths.dedup();
    widths.into_iter()
}
