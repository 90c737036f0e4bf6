//! From a decoded request to batches of rows: one a sender's batch, with what is left out.

use crate::ingest::error::IngestError;
use crate::ingest::rows::builder::{IsKnown, RowBuilder};
use crate::ingest::rows::resource::{NO_NODE, check_id, own_attribute, part_id, resource_context};
use crate::ingest::rows::samples::Samples;
use crate::ingest::rows::senders::{Senders, lock};
use crate::ingest::rows::types::SenderKind;
use crate::ingest::rows::values::Unit;
use crate::ingest::rows::window::TimeWindow;
use crate::ingest::wire::message::{Layout, Request, Resource};
use crate::store::{BatchId, BatchRow, Rows};
use std::collections::HashMap;
use xxhash_rust::xxh3::xxh3_64;

/// Batches of a request: a Collector joins those of some agents.
pub(crate) const MOST_BATCHES: usize = 1_000;

/// Hours in which samples of a batch may lie: each is a file, which everybody's commit waits for.
pub(crate) const MOST_HOURS: usize = 48;

/// The rows of one batch.
#[derive(Debug)]
pub struct Part {
    /// Which batch of which agent; none of other senders.
    pub id: Option<BatchId>,
    /// What is to be stored.
    pub rows: Rows,
    /// How many samples these are.
    pub samples: i64,
}

/// A converted request.
#[derive(Debug)]
pub struct Converted {
    /// One a batch: a Collector may join several agents' batches in one request.
    pub parts: Vec<Part>,
    /// Samples that were left out for their time or a negative value, and those of profiles that are left out whole.
    pub rejected_samples: u64,
    /// Profiles of which at least one sample was left out.
    pub rejected_profiles: i64,
    /// Says what was left out and why; empty when nothing was.
    pub message: String,
    /// Whether a sample, or what a report says was observed, is later than the window.
    pub is_ahead: bool,
    /// Of each resource.
    pub senders: Vec<Sent>,
}

/// What came of one node, in one resource.
#[derive(Debug)]
pub struct Sent {
    pub node: String,
    /// Samples that are taken in.
    pub samples: u64,
    /// Why a profile of it is left out, the first.
    pub fault: Option<IngestError>,
    /// How often a bound of its labels was reached.
    pub limited: u64,
}

/// Converts. `id`: the batch's identity by its headers. Rows that `is_known` are left out. A profile that refers to
/// what is not there is left out whole; where none is without such a fault, the first fault is that of the request.
pub fn convert(
    request: &Request<'_>,
    id: Option<BatchId>,
    window: TimeWindow,
    is_known: IsKnown<'_>,
    senders: &Senders,
) -> Result<Converted, IngestError> {
    if let Some(id) = &id {
        check_id(id)?;
    }
    let layout = request.layout()?;
    let whole =
        |checks_names| Converting::new(request, window, layout, checks_names, senders)?.all(id.clone(), is_known);
    match whole(false) {
        // A name that is no text is met only where its row is made. Then each is looked at, to leave out only whose
        // it is.
        Err(IngestError::Text { .. }) => whole(true),
        result => result,
    }
}

/// A request on its way to rows.
struct Converting<'r, 'a> {
    request: &'r Request<'a>,
    samples: Samples<'r>,
    layout: Layout,
    parts: Vec<Building<'r>>,
    by_id: HashMap<Option<BatchId>, usize>,
    is_ahead: bool,
    /// Profiles without a fault.
    good: usize,
    known: &'r Senders,
    senders: Vec<Sent>,
}

impl<'r, 'a: 'r> Converting<'r, 'a> {
    fn new(
        request: &'r Request<'a>,
        window: TimeWindow,
        layout: Layout,
        checks_names: bool,
        known: &'r Senders,
    ) -> Result<Self, IngestError> {
        let samples = Samples::new(request, window, checks_names)?;
        Ok(Self {
            request,
            samples,
            layout,
            parts: Vec::new(),
            by_id: HashMap::new(),
            is_ahead: false,
            good: 0,
            known,
            senders: Vec::new(),
        })
    }

    fn all(mut self, id: Option<BatchId>, is_known: IsKnown<'_>) -> Result<Converted, IngestError> {
        for resource in &self.request.resources {
            self.resource(resource, id.as_ref())?;
        }
        let Self { samples, mut parts, .. } = self;
        if let Some(fault) = samples.rejected.fault.as_ref().filter(|_| self.good == 0) {
            return Err(fault.clone());
        }
        // A request without any resource is still the batch that its headers name.
        if parts.is_empty() && id.is_some() {
            parts.push(Building::new(id));
        }
        // Last comes what is stored anew where the request is sent again: then nothing behind it can be refused.
        parts.sort_by_key(|part| part.id.is_none());
        let finish = |part: Building<'_>| part.finish(&samples, is_known);
        let parts = parts.into_iter().map(finish).collect::<Result<_, _>>()?;
        Ok(Converted {
            parts,
            rejected_samples: samples.rejected.samples(),
            rejected_profiles: samples.rejected.profiles,
            message: with_limited(samples.rejected.message(samples.window), &self.senders),
            is_ahead: self.is_ahead || samples.rejected.future > 0,
            senders: self.senders,
        })
    }

    fn resource(&mut self, resource: &'r Resource<'a>, id: Option<&BatchId>) -> Result<(), IngestError> {
        let context = match resource_context(resource, &self.samples.dictionary) {
            Err(fault) if fault.is_of_profile() && !resource.profiles.is_empty() => {
                for profile in &resource.profiles {
                    self.samples
                        .rejected
                        .leave_out(profile, self.layout, self.request.budget, &fault);
                }
                self.senders.push(Sent {
                    node: resource.node(&self.request.tables).to_owned(),
                    samples: 0,
                    fault: Some(fault),
                    limited: 0,
                });
                return Ok(());
            }
            context => context?,
        };
        let mut context = context;
        self.samples.known = self.known.of(context.node(), self.samples.window.now_ns);
        let mut of_scope = 0..0;
        let of_resource = context.labels.clone();
        let part_id = part_id(&context, id)?;
        self.samples.turn_to(SenderKind {
            accounted: part_id.is_some() && context.keeps_account(),
            spread: false,
        });
        let at = *self.by_id.entry(part_id.clone()).or_insert_with(|| {
            self.parts.push(Building::new(part_id));
            self.parts.len() - 1
        });
        if self.parts.len() > MOST_BATCHES {
            return Err(IngestError::Invalid(format!(
                "the request holds more than {MOST_BATCHES} batches: send them in several"
            )));
        }
        self.is_ahead |= context.observed_until_ns() > Some(self.samples.window.latest_ns);
        let (mut period_ns, mut first_fault) = (0, None);
        let samples_before = self.parts[at].rows.samples();
        let limited_before = lock(&self.samples.known).seen.limited();
        let units = Unit::of_all(&resource.profiles, &self.samples.dictionary);
        for (profile, unit) in resource.profiles.iter().zip(units) {
            // Profiles of one scope stand together.
            let mut scoped = Ok(());
            if of_scope != profile.scope {
                of_scope = profile.scope.clone();
                context.labels = of_resource.clone();
                let mut attributes = resource.attributes_of(profile).iter();
                scoped = attributes.try_for_each(|attribute| {
                    context
                        .labels
                        .apply(own_attribute(attribute, &self.samples.dictionary)?);
                    Ok(())
                });
                self.samples.forget_attributes();
            }
            let rows = &mut self.parts[at].rows;
            let mark = rows.mark();
            let before = self.samples.rejected.clone();
            let samples = &mut self.samples;
            let added = scoped.and(unit).and_then(|unit| {
                let of = (profile, unit, self.layout);
                samples.profile(of, self.request.budget, &context, rows)
            });
            match added {
                Ok(period) => {
                    self.good += 1;
                    if period_ns == 0 {
                        period_ns = period;
                    }
                }
                Err(fault) if fault.is_of_profile() => {
                    // Of the next profile it is looked at again.
                    of_scope = u32::MAX..u32::MAX;
                    rows.undo(mark);
                    self.samples.rejected = before;
                    self.samples
                        .rejected
                        .leave_out(profile, self.layout, self.request.budget, &fault);
                    first_fault.get_or_insert(fault);
                }
                Err(error) => return Err(error),
            }
        }
        let part = &mut self.parts[at];
        if part.node.is_empty() {
            part.node = context.labels.node();
        }
        self.senders.push(Sent {
            node: context.node().to_owned(),
            samples: (part.rows.samples() - samples_before).unsigned_abs(),
            fault: first_fault,
            limited: lock(&self.samples.known).seen.limited() - limited_before,
        });
        if let (Some(id), Some(report)) = (&part.id, context.report(period_ns, self.samples.window)) {
            part.report = Some(BatchRow {
                instance: id.instance.clone(),
                number: id.number,
                ..report
            });
        }
        Ok(())
    }
}

struct Building<'a> {
    id: Option<BatchId>,
    rows: RowBuilder<'a>,
    report: Option<BatchRow>,
    /// The first that is named.
    node: &'a str,
}

impl<'a> Building<'a> {
    fn new(id: Option<BatchId>) -> Self {
        Self {
            id,
            rows: RowBuilder::default(),
            report: None,
            node: "",
        }
    }

    fn finish(self, all: &Samples<'a>, is_known: IsKnown<'_>) -> Result<Part, IngestError> {
        let samples = self.rows.samples();
        let mut rows = self.rows.finish(&all.dictionary, &all.origins, is_known)?;
        if rows.samples.len() > MOST_HOURS {
            return Err(IngestError::Invalid(format!(
                "the samples of a batch lie in {} hours, at most {MOST_HOURS} are allowed: send them in several",
                rows.samples.len()
            )));
        }
        rows.sender.owner.node = match self.node {
            "" | NO_NODE => 0,
            node => xxh3_64(node.as_bytes()) as u32 | 1,
        };
        rows.batch = self.report.map(|report| BatchRow { samples, ..report });
        rows.stand_in_ns = all.without_time.then_some(all.window.now_ns);
        Ok(Part {
            id: self.id,
            rows,
            samples,
        })
    }
}

/// A message, and what became of labels, which is no reason to send the samples again.
fn with_limited(mut message: String, senders: &[Sent]) -> String {
    let limited: u64 = senders.iter().map(|sent| sent.limited).sum();
    if limited > 0 {
        let and = if message.is_empty() { "" } else { "; " };
        message.push_str(&format!(
            "{and}{limited} values or names of labels are beyond what one sender may have: they are cut, left out, or stand as [other]"
        ));
    }
    message
}
