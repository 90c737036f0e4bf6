//! Samples to rows: whose each is, when it was taken, what it weighs.

use crate::ingest::error::IngestError;
use crate::ingest::rows::attributes::Attribute;
use crate::ingest::rows::builder::{Origin, ProcessRow, RowBuilder, SampleRow};
use crate::ingest::rows::frames::Dictionary;
use crate::ingest::rows::labels::{MAX_TYPES, push_labels, start_of, with_unit};
use crate::ingest::rows::rejected::Rejected;
use crate::ingest::rows::resource::{ResourceContext, first_of};
use crate::ingest::rows::senders::{KnownSender, lock};
use crate::ingest::rows::text::push_text;
use crate::ingest::rows::types::{SenderKind, TypeRow};
use crate::ingest::rows::values::{MOST_VALUE, Spreading, Unit, each_occurrence, is_sum};
use crate::ingest::rows::window::TimeWindow;
use crate::ingest::wire::allocation::AllocationBudget;
use crate::ingest::wire::attribute::Value;
use crate::ingest::wire::message::{Layout, Profile, Request, Sample};
use crate::label::attribute;
use crate::profile_type::NANOSECONDS;
use crate::store::{Amount, NO_THREAD, NO_WAIT};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use xxhash_rust::xxh3::xxh3_64;

/// Threads of which a request has samples, on a CPU or two each.
const USUAL_THREADS: usize = 64;

/// What all samples of a request have in common.
pub(super) struct Samples<'a> {
    pub(super) dictionary: Dictionary<'a>,
    pub(super) window: TimeWindow,
    pub(super) rejected: Rejected,
    /// Whether there is one in a profile without any time.
    pub(super) without_time: bool,
    spreading: Spreading,
    /// Of the last sample.
    sender: SenderKind,
    /// Whether the profile that is read has samples whose values are not spread, and such whose are.
    of_profile: [bool; 2],
    /// Of the profile that is read, where its values are no time.
    unit: &'a str,
    /// What is hashed, made anew for each.
    content: Vec<u8>,
    pub(super) origins: Vec<Origin<'a>>,
    /// By the attributes of a sample as they stand in the body, of one resource: threads are sampled again and again,
    /// on few CPUs. Waits have a length each, and are looked at one by one.
    whence: HashMap<&'a [u8], Whence, foldhash::fast::RandomState>,
    /// By those but for its CPU, one by one.
    by_attributes: HashMap<Vec<i32>, u32, foldhash::fast::RandomState>,
    /// Who sends.
    pub(super) known: Arc<Mutex<KnownSender>>,
}

/// What the attributes of a sample say.
#[derive(Debug, Clone, Copy)]
struct Whence {
    origin: u32,
    cpu: Option<i32>,
    wait_ns: i64,
    woken_tid: i64,
    /// The stack is cut.
    truncated: bool,
}

/// Attributes of one sample that are remembered, for the next with the same.
const MAX_ORIGIN_ATTRIBUTES: usize = 64;

impl<'a> Samples<'a> {
    /// Of a request, before its first resource. `checks_names`: whether each name is looked at.
    pub(super) fn new(request: &'a Request<'_>, window: TimeWindow, checks_names: bool) -> Result<Self, IngestError> {
        Ok(Self {
            dictionary: Dictionary::new(&request.tables, request.budget, checks_names)?,
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
        })
    }

    /// Samples of another resource or sender follow: nothing that is known of attributes holds.
    pub(super) fn turn_to(&mut self, sender: SenderKind) {
        self.sender = sender;
        self.forget_attributes();
    }

    /// Attributes of a scope or resource that follows may differ.
    pub(super) fn forget_attributes(&mut self) {
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
            .budget()
            .take(size_of::<i32>() * sample.attributes.most())?;
        let (mut cpu, mut wait_ns, mut woken_tid) = (resource.labels.cpu, NO_WAIT, NO_THREAD);
        let mut of_thread = Vec::with_capacity(sample.attributes.most());
        for index in sample.attributes.iter() {
            match self.dictionary.attribute(index, ATTRIBUTE)? {
                Attribute::Cpu(of_sample) => cpu = Some(of_sample),
                Attribute::WaitLength(ns) => wait_ns = counted(ns).unwrap_or(NO_WAIT),
                Attribute::WokenTid(tid) => woken_tid = counted(tid).unwrap_or(NO_THREAD),
                _ => of_thread.push(index),
            }
        }
        let origin = self.origin(&of_thread, resource)?;
        let whence = Whence {
            origin,
            cpu: cpu.and_then(|cpu| i32::try_from(cpu).ok()),
            wait_ns,
            woken_tid,
            truncated: self.origins[origin as usize].truncated,
        };
        if let Some(packed) = packed {
            // It grows by doubling.
            self.dictionary.budget().take(2 * size_of::<(&[u8], Whence)>())?;
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
            .budget()
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
    pub(super) fn profile(
        &mut self,
        (profile, unit, layout): (&Profile<'a>, Unit<'a>, Layout),
        budget: AllocationBudget,
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
        profile.each_sample(layout, budget, |sample| {
            self.add((sample, profile, &unit), resource, rows)
        })?;
        for spread in [false, true] {
            if self.of_profile[usize::from(spread)] {
                let row = TypeRow {
                    kind: unit.kind,
                    unit: unit.unit,
                    sender: SenderKind { spread, ..self.sender },
                };
                rows.add_type(row, self.dictionary.budget())?;
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
        let Whence {
            origin,
            cpu,
            wait_ns,
            woken_tid,
            truncated,
        } = self.whence(sample, resource)?;
        let stack = self.dictionary.stack(sample.stack, truncated)?;
        let row = SampleRow {
            ts_ns: 0,
            kind: unit.kind,
            origin,
            cpu,
            amount: Amount {
                value: 0,
                wait_ns,
                woken_tid,
            },
        };
        self.without_time |= profile.time_unix_nano == 0 && sample.times.as_slice().is_empty();
        let (rejected, budget) = (&mut self.rejected, self.dictionary.budget());
        let of = (sample, profile);
        each_occurrence(
            of,
            unit,
            self.window,
            &mut self.spreading,
            |occurrence| match occurrence {
                Ok((ts_ns, value)) => {
                    let amount = Amount { value, ..row.amount };
                    rows.add(&SampleRow { ts_ns, amount, ..row }, &stack, budget)
                }
                Err(bad) => {
                    rejected.count(bad);
                    Ok(())
                }
            },
        )
    }
}

/// A number that a column may hold.
fn counted(number: i64) -> Option<i64> {
    (0..=MOST_VALUE).contains(&number).then_some(number)
}

/// Who names an attribute, for messages.
const ATTRIBUTE: &str = "a sample's attribute_indices";
