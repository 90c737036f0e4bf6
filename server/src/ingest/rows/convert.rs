//! From a decoded request to rows: labels, identity, times, values.

use crate::ingest::error::IngestError;
use crate::ingest::rows::attributes::Attribute;
use crate::ingest::rows::builder::{IsKnown, Origin, ProcessRow, RowBuilder, SampleRow};
use crate::ingest::rows::frames::Dictionary;
use crate::ingest::rows::labels::{MAX_TYPES, push_labels, start_of, with_unit};
use crate::ingest::rows::resource::{
    NO_NODE, ResourceContext, check_id, first_of, own_attribute, part_id, resource_context,
};
use crate::ingest::rows::senders::{Known, Senders, lock};
use crate::ingest::rows::text::push_text;
use crate::ingest::rows::types::{SenderKind, TypeRow};
use crate::ingest::rows::values::{Bad, MOST_VALUE, Spreading, Unit, each_occurrence, is_sum};
use crate::ingest::rows::window::TimeWindow;
use crate::ingest::wire::allocation::Room;
use crate::ingest::wire::message::{Layout, Profile, Request, Resource, Sample, Value};
use crate::label::attribute;
use crate::profile_type::NANOSECONDS;
use crate::store::{BatchId, BatchRow, Rows};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use xxhash_rust::xxh3::xxh3_64;

/// Threads of which a request has samples, on a CPU or two each.
const USUAL_THREADS: usize = 64;

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
    /// Whether a sample, or what an account says was observed, is later than the window.
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
        let samples = Samples {
            dictionary: Dictionary::new(&request.tables, request.room, checks_names)?,
            window,
            rejected: Rejected::default(),
            without_time: false,
            spreading: Spreading::default(),
            sender: SenderKind::AGENT,
            of_profile: [false; 2],
            unit: "",
            content: Vec::new(),
            origins: Vec::with_capacity(USUAL_THREADS),
            whence: HashMap::with_capacity_and_hasher(2 * USUAL_THREADS, Default::default()),
            by_attributes: HashMap::with_capacity_and_hasher(USUAL_THREADS, Default::default()),
            known: Arc::default(),
        };
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
                        .leave_out(profile, self.layout, self.request.room, &fault);
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
                self.samples.whence.clear();
                self.samples.by_attributes.clear();
            }
            let rows = &mut self.parts[at].rows;
            let mark = rows.mark();
            let before = self.samples.rejected.clone();
            let samples = &mut self.samples;
            let added = scoped.and(unit).and_then(|unit| {
                let of = (profile, unit, self.layout);
                samples.profile(of, self.request.room, &context, rows)
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
                        .leave_out(profile, self.layout, self.request.room, &fault);
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
        if let (Some(id), Some(account)) = (&part.id, context.account(period_ns, self.samples.window)) {
            part.account = Some(BatchRow {
                instance: id.instance.clone(),
                number: id.number,
                ..account
            });
        }
        Ok(())
    }
}

struct Building<'a> {
    id: Option<BatchId>,
    rows: RowBuilder<'a>,
    account: Option<BatchRow>,
    /// The first that is named.
    node: &'a str,
}

impl<'a> Building<'a> {
    fn new(id: Option<BatchId>) -> Self {
        Self {
            id,
            rows: RowBuilder::default(),
            account: None,
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
        rows.batch = self.account.map(|account| BatchRow { samples, ..account });
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

#[derive(Debug, Clone, Default)]
struct Rejected {
    future: u64,
    past: u64,
    negative: u64,
    /// Of profiles that are left out whole.
    of_broken: u64,
    large: u64,
    profiles: i64,
    broken: u64,
    /// The first.
    fault: Option<IngestError>,
}

impl Rejected {
    fn samples(&self) -> u64 {
        self.future + self.past + self.negative + self.large + self.of_broken
    }

    /// A whole profile.
    fn leave_out(&mut self, profile: &Profile<'_>, layout: Layout, room: Room, fault: &IngestError) {
        // What can be read of it is counted as its rows would be.
        let _ = profile.each_sample(layout, room, |sample| {
            self.of_broken += sample.times.len().max(1) as u64;
            Ok(())
        });
        self.profiles += 1;
        self.broken += 1;
        self.fault.get_or_insert_with(|| fault.clone());
    }

    fn count(&mut self, bad: Bad) {
        *match bad {
            Bad::Negative => &mut self.negative,
            Bad::Large => &mut self.large,
            Bad::Future => &mut self.future,
            Bad::Past => &mut self.past,
        } += 1;
    }

    fn message(&self, window: TimeWindow) -> String {
        let time = |ns| chrono::DateTime::from_timestamp_nanos(ns).to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
        let mut reasons = Vec::new();
        if self.future > 0 {
            reasons.push(format!(
                "{} samples are later than {}, a day from now",
                self.future,
                time(window.latest_ns)
            ));
        }
        if self.past > 0 {
            let earliest = time(window.earliest_ns);
            reasons.push(format!(
                "{} samples are older than the retention, which begins at {earliest}",
                self.past
            ));
        }
        if self.negative > 0 {
            reasons.push(format!("{} samples have a negative value", self.negative));
        }
        if self.large > 0 {
            reasons.push(format!("{} samples have a value above {MOST_VALUE}", self.large));
        }
        if let Some(fault) = &self.fault {
            let (profiles, samples) = (self.broken, self.of_broken);
            reasons.push(format!(
                "{profiles} profiles with {samples} samples, of the first: {fault}"
            ));
        }
        if reasons.is_empty() {
            String::new()
        } else {
            format!("left out: {}", reasons.join("; "))
        }
    }
}

/// What all samples of a request have in common.
struct Samples<'a> {
    dictionary: Dictionary<'a>,
    window: TimeWindow,
    rejected: Rejected,
    /// Whether there is one in a profile without any time.
    without_time: bool,
    spreading: Spreading,
    /// Of the last sample.
    sender: SenderKind,
    /// Whether the profile that is read has samples whose values are not spread, and such whose are.
    of_profile: [bool; 2],
    /// Of the profile that is read, where its values are no time.
    unit: &'a str,
    /// What is hashed, made anew for each.
    content: Vec<u8>,
    origins: Vec<Origin<'a>>,
    /// By the attributes of a sample as they stand in the body, of one resource: threads are sampled again and again,
    /// on few CPUs.
    whence: HashMap<&'a [u8], Whence, foldhash::fast::RandomState>,
    /// By those but for its CPU, one by one.
    by_attributes: HashMap<Vec<i32>, u32, foldhash::fast::RandomState>,
    /// Who sends.
    known: Arc<Mutex<Known>>,
}

/// What the attributes of a sample say.
#[derive(Debug, Clone, Copy)]
struct Whence {
    origin: u32,
    cpu: Option<i32>,
    /// The stack is cut.
    truncated: bool,
}

/// Attributes of one sample that are remembered, for the next with the same.
const MAX_ORIGIN_ATTRIBUTES: usize = 64;

impl<'a> Samples<'a> {
    /// Samples of another resource or sender follow: nothing that is known of attributes holds.
    fn turn_to(&mut self, sender: SenderKind) {
        self.sender = sender;
        self.whence.clear();
        self.by_attributes.clear();
    }

    /// Where a sample comes from.
    fn whence(&mut self, sample: &Sample<'a>, resource: &ResourceContext<'a>) -> Result<Whence, IngestError> {
        let packed = sample.attributes.in_one_piece();
        if let Some(known) = packed.and_then(|packed| self.whence.get(packed)) {
            return Ok(*known);
        }
        self.dictionary
            .room()
            .take(size_of::<i32>() * sample.attributes.most())?;
        let (mut cpu, mut of_thread) = (resource.labels.cpu, Vec::with_capacity(sample.attributes.most()));
        for index in sample.attributes.iter() {
            match self.dictionary.attribute(index, ATTRIBUTE)? {
                Attribute::Cpu(of_sample) => cpu = Some(of_sample),
                _ => of_thread.push(index),
            }
        }
        let origin = self.origin(&of_thread, resource)?;
        let whence = Whence {
            origin,
            cpu: cpu.and_then(|cpu| i32::try_from(cpu).ok()),
            truncated: self.origins[origin as usize].truncated,
        };
        if let Some(packed) = packed {
            // It grows by doubling.
            self.dictionary.room().take(2 * size_of::<(&[u8], Whence)>())?;
            self.whence.insert(packed, whence);
        }
        Ok(whence)
    }

    /// The origin of samples of a thread with these attributes.
    fn origin(&mut self, attributes: &[i32], resource: &ResourceContext<'a>) -> Result<u32, IngestError> {
        if let Some(origin) = self.by_attributes.get(attributes) {
            return Ok(*origin);
        }
        let mut context = resource.labels.clone();
        for index in attributes {
            context.apply(self.dictionary.attribute(*index, ATTRIBUTE)?);
        }
        // Whatever tells no version by itself has that of its executable.
        let text = |value: Value<'a>| if let Value::Text(text) = value { text } else { "" };
        let others = context.others.iter().map(|(name, value)| (*name, text(*value)));
        if let Some(version) = attribute::build_version(context.build_id, others) {
            context.others.push((attribute::BUILD_ID, Value::Text(version)));
        }
        let bounded =
            lock(&self.known)
                .seen
                .bound(context.series(), &context.others, self.window.now_ns, &mut self.content);
        let labels = bounded.fixed;
        // Values of other units are other series, so that they can be told apart.
        let others = match self.unit {
            "" => bounded.others,
            unit => with_unit(&bounded.others, unit),
        };
        if !bounded.is_all_hashed {
            push_labels(&mut self.content, &labels);
        }
        // Where there are none, a series is the one that it was before there were any.
        if !others.is_empty() {
            push_text(&mut self.content, &others);
        }
        self.content.extend(self.sender.mark());
        // Both grow by doubling.
        let remembered = attributes.len() <= MAX_ORIGIN_ATTRIBUTES;
        let entry = size_of::<(Vec<i32>, u32)>() + size_of_val(attributes);
        let entry = if remembered { entry } else { 0 };
        self.dictionary
            .room()
            .take(2 * (size_of::<Origin<'_>>() + others.len() + entry))?;
        let origin = self.origins.len() as u32;
        self.origins.push(Origin {
            series_id: xxh3_64(&self.content) as i64,
            sender: self.sender,
            process_id: context.process_id(resource.boot_id, &mut self.content),
            process: ProcessRow {
                node: labels[0],
                tgid: context.tgid,
                start_ticks: context.start_ticks,
                exec_count: context.exec_count,
                executable: first_of([context.executable_path, context.executable_name]),
                command_line: context.command_line,
                build_id: context.build_id,
            },
            labels,
            others,
            thread: start_of(context.thread),
            tid: context.tid,
            truncated: context.truncated,
        });
        if remembered {
            self.by_attributes.insert(attributes.to_vec(), origin);
        }
        Ok(origin)
    }

    /// Adds a profile's samples. Returns its period.
    fn profile(
        &mut self,
        (profile, unit, layout): (&Profile<'a>, Unit<'a>, Layout),
        room: Room,
        resource: &ResourceContext<'a>,
        rows: &mut RowBuilder<'a>,
    ) -> Result<i64, IngestError> {
        let may = lock(&self.known)
            .seen
            .may_have_type(unit.kind, unit.unit, self.window.now_ns);
        if !may {
            let kind: String = unit.kind.chars().take(80).collect();
            return Err(IngestError::Invalid(format!(
                "the profile type {kind:?}: the sender has {MAX_TYPES} others within this hour, and may have no more"
            )));
        }
        let of_series = if unit.unit == NANOSECONDS { "" } else { unit.unit };
        if of_series != self.unit {
            self.unit = of_series;
            self.turn_to(self.sender);
        }
        let before = self.rejected.samples();
        rows.expect(profile.samples);
        self.spreading.begin();
        self.of_profile = [false; 2];
        profile.each_sample(layout, room, |sample| {
            self.add((sample, profile, &unit), resource, rows)
        })?;
        for spread in [false, true] {
            if self.of_profile[usize::from(spread)] {
                let row = TypeRow {
                    kind: unit.kind,
                    unit: unit.unit,
                    sender: SenderKind { spread, ..self.sender },
                };
                rows.add_type(row, self.dictionary.room())?;
            }
        }
        self.rejected.profiles += i64::from(self.rejected.samples() > before);
        Ok(unit.period)
    }

    fn add(
        &mut self,
        (sample, profile, unit): (&Sample<'a>, &Profile<'a>, &Unit<'a>),
        resource: &ResourceContext<'a>,
        rows: &mut RowBuilder<'a>,
    ) -> Result<(), IngestError> {
        let spread = is_sum(sample, profile);
        if spread != self.sender.spread {
            self.turn_to(SenderKind { spread, ..self.sender });
        }
        self.of_profile[usize::from(spread)] = true;
        let Whence { origin, cpu, truncated } = self.whence(sample, resource)?;
        let stack = self.dictionary.stack(sample.stack, truncated)?;
        let row = SampleRow {
            ts_ns: 0,
            kind: unit.kind,
            origin,
            cpu,
            value: 0,
        };
        self.without_time |= profile.time_unix_nano == 0 && sample.times.as_slice().is_empty();
        let (rejected, room) = (&mut self.rejected, self.dictionary.room());
        let of = (sample, profile);
        each_occurrence(
            of,
            unit,
            self.window,
            &mut self.spreading,
            |occurrence| match occurrence {
                Ok((ts_ns, value)) => rows.add(&SampleRow { ts_ns, value, ..row }, &stack, room),
                Err(bad) => {
                    rejected.count(bad);
                    Ok(())
                }
            },
        )
    }
}

/// Who names an attribute, for messages.
const ATTRIBUTE: &str = "a sample's attribute_indices";
