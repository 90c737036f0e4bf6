//! pprof (<https://github.com/google/pprof/blob/main/proto/profile.proto>) with what a client says beside it.
//!
//! Of a profile with several types of values each type becomes a profile. An address becomes an offset in its
//! module's file.

use crate::ingest::error::IngestError;
use crate::ingest::forms::write::Write;
use crate::ingest::wire::allocation::AllocationBudget;
use crate::ingest::wire::protobuf::{Fault, Fields};
use std::collections::HashMap;

/// What a client says of a profile beside it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// Label `service`: pprof has no place for it.
    pub service: String,
    /// Attributes of its resource, by their names in OTLP.
    pub attributes: Vec<(String, String)>,
    /// Nanoseconds since the Unix epoch, where the profile does not say it; 0 where nobody does.
    pub from_ns: u64,
    /// End of the time that it is of; as `from_ns`.
    pub until_ns: u64,
    /// What frames are, by their language's name in OTLP; empty where that is not known.
    pub frame_type: &'static str,
    /// Other names for types of values.
    pub names: HashMap<String, String>,
    /// Types of values that are sums since the program's start, which no window has.
    pub cumulative: Vec<String>,
}

#[derive(Debug, Default)]
struct Profile<'a> {
    sample_types: Vec<[i64; 2]>,
    samples: Vec<&'a [u8]>,
    mappings: Vec<Mapping>,
    locations: Vec<Location>,
    lines: Vec<(u64, i64)>,
    functions: Vec<[i64; 5]>,
    strings: Vec<&'a [u8]>,
    time_ns: i64,
    duration_ns: i64,
    period_type: [i64; 2],
    period: i64,
}

#[derive(Debug, Default)]
struct Mapping {
    id: u64,
    start: u64,
    offset: u64,
    file: i64,
    build_id: i64,
}

#[derive(Debug, Default)]
struct Location {
    id: u64,
    mapping: u64,
    address: u64,
    /// Where its lines begin; they end where the next one's do.
    lines: usize,
}

/// A sample's parts.
#[derive(Debug, Default)]
struct Sample<'a> {
    locations: Vec<u64>,
    values: Vec<i64>,
    labels: Vec<&'a [u8]>,
}

/// Makes a profile a request of OTLP. What is made takes at most so many bytes, beside the request.
pub fn pprof_to_otlp(pprof: &[u8], about: &About, limit: usize) -> Result<Vec<u8>, IngestError> {
    let mut budget = AllocationBudget::new(limit);
    let profile = Profile::read(pprof, &mut budget)?;
    let mut making = Making::new(&profile, &mut budget)?;
    let profiles = making.profiles(about, &mut budget)?;
    let mut resource = Vec::new();
    let own = [("service.name".to_owned(), about.service.clone())];
    for (name, value) in own.iter().chain(&about.attributes) {
        let mut attribute = Vec::new();
        attribute.blob(1, name.as_bytes());
        let mut text = Vec::new();
        text.blob(1, value.as_bytes());
        attribute.blob(2, &text);
        resource.blob(1, &attribute);
    }
    let mut of_resource = Vec::new();
    of_resource.blob(1, &resource);
    of_resource.blob(2, &profiles);
    let dictionary = making.dictionary(about)?;
    let mut request = Vec::new();
    request.blob(1, &of_resource);
    request.blob(2, &dictionary);
    Ok(request)
}

fn ints<const N: usize>(wire: &[u8]) -> Result<[i64; N], Fault> {
    let mut values = [0; N];
    let mut fields = Fields { wire };
    while let Some((number, field)) = fields.next()? {
        if let Some(value) = usize::try_from(number - 1).ok().and_then(|at| values.get_mut(at)) {
            *value = field.int()? as i64;
        }
    }
    Ok(values)
}

impl<'a> Profile<'a> {
    fn read(wire: &'a [u8], budget: &mut AllocationBudget) -> Result<Self, Fault> {
        let mut profile = Self::default();
        let mut fields = Fields { wire };
        while let Some((number, field)) = fields.next()? {
            match number {
                1 => budget.push(&mut profile.sample_types, ints(field.message()?)?)?,
                2 => budget.push(&mut profile.samples, field.message()?)?,
                3 => {
                    // id, start, limit, offset, file, build id
                    let [id, start, _, offset, file, build_id] = ints(field.message()?)?;
                    let mapping = Mapping {
                        id: id as u64,
                        start: start as u64,
                        offset: offset as u64,
                        file,
                        build_id,
                    };
                    budget.push(&mut profile.mappings, mapping)?;
                }
                4 => profile.read_location(field.message()?, budget)?,
                5 => budget.push(&mut profile.functions, ints(field.message()?)?)?,
                6 => budget.push(&mut profile.strings, field.message()?)?,
                9 => profile.time_ns = field.int()? as i64,
                10 => profile.duration_ns = field.int()? as i64,
                11 => profile.period_type = ints(field.message()?)?,
                12 => profile.period = field.int()? as i64,
                _ => {}
            }
        }
        Ok(profile)
    }

    fn read_location(&mut self, wire: &[u8], budget: &mut AllocationBudget) -> Result<(), Fault> {
        let mut location = Location {
            lines: self.lines.len(),
            ..Location::default()
        };
        let mut fields = Fields { wire };
        while let Some((number, field)) = fields.next()? {
            match number {
                1 => location.id = field.int()?,
                2 => location.mapping = field.int()?,
                3 => location.address = field.int()?,
                4 => {
                    let [function, line] = ints(field.message()?)?;
                    budget.push(&mut self.lines, (function as u64, line))?;
                }
                _ => {}
            }
        }
        budget.push(&mut self.locations, location)
    }

    fn text(&self, index: i64) -> &'a [u8] {
        let at = usize::try_from(index).ok();
        at.and_then(|at| self.strings.get(at).copied()).unwrap_or_default()
    }
}

impl<'a> Sample<'a> {
    /// `budget` is what one sample may take.
    fn read(&mut self, wire: &'a [u8], mut budget: AllocationBudget) -> Result<(), Fault> {
        self.locations.clear();
        self.values.clear();
        self.labels.clear();
        let mut fields = Fields { wire };
        while let Some((number, field)) = fields.next()? {
            match number {
                1 => field.ints(|id| budget.push(&mut self.locations, id))?,
                2 => field.ints(|value| budget.push(&mut self.values, value as i64))?,
                3 => budget.push(&mut self.labels, field.message()?)?,
                _ => {}
            }
        }
        Ok(())
    }
}

/// A request that is being made.
struct Making<'p, 'a> {
    profile: &'p Profile<'a>,
    /// Places in the tables of OTLP, which begin with an entry for nothing, by ids of pprof.
    mapping_of: HashMap<u64, u64>,
    location_of: HashMap<u64, u64>,
    function_of: HashMap<u64, u64>,
    /// Texts beyond the profile's own.
    more_strings: Vec<Vec<u8>>,
    stacks: Vec<u8>,
    stack_of: HashMap<Vec<u64>, u64>,
    attributes: Vec<u8>,
    attribute_of: HashMap<Vec<u8>, u64>,
}

fn by_id(ids: impl Iterator<Item = u64>) -> HashMap<u64, u64> {
    ids.zip(1..).collect()
}

impl<'p, 'a> Making<'p, 'a> {
    fn new(profile: &'p Profile<'a>, budget: &mut AllocationBudget) -> Result<Self, IngestError> {
        let ids = profile.mappings.len() + profile.locations.len() + profile.functions.len();
        budget.take(4 * size_of::<(u64, u64)>() * ids)?;
        let mut attributes = Vec::new();
        attributes.blob(6, &[]);
        let mut stacks = Vec::new();
        stacks.blob(7, &[]);
        Ok(Self {
            profile,
            mapping_of: by_id(profile.mappings.iter().map(|mapping| mapping.id)),
            location_of: by_id(profile.locations.iter().map(|location| location.id)),
            function_of: by_id(profile.functions.iter().map(|function| function[0] as u64)),
            more_strings: Vec::new(),
            stacks,
            stack_of: HashMap::new(),
            attributes,
            attribute_of: HashMap::new(),
        })
    }

    /// A text's place among the strings: after the profile's own, which have an empty one before them if they don't
    /// begin with one.
    fn string(&mut self, text: &[u8]) -> u64 {
        let own = self.profile.strings.len().max(1);
        let known = self.more_strings.iter().position(|known| known == text);
        let at = known.unwrap_or_else(|| {
            self.more_strings.push(text.to_owned());
            self.more_strings.len() - 1
        });
        (own + at) as u64
    }

    /// `value`: a message `AnyValue`.
    fn attribute(&mut self, key: u64, value: &[u8]) -> u64 {
        let mut entry = Vec::new();
        entry.int(1, key);
        entry.blob(2, value);
        let next = self.attribute_of.len() as u64 + 1;
        *self.attribute_of.entry(entry).or_insert_with_key(|entry| {
            self.attributes.blob(6, entry);
            next
        })
    }

    /// An attribute whose value is a text of the profile.
    fn text_attribute(&mut self, key: u64, text: i64) -> u64 {
        let mut value = Vec::new();
        value.int(8, text as u64);
        self.attribute(key, &value)
    }

    fn stack(&mut self, locations: &[u64], budget: &mut AllocationBudget) -> Result<u64, IngestError> {
        if let Some(known) = self.stack_of.get(locations) {
            return Ok(*known);
        }
        budget.take(4 * size_of_val(locations) + 64)?;
        let places = locations.iter().map(|id| self.location_of.get(id).copied());
        let places: Option<Vec<u64>> = places.collect();
        let Some(places) = places else {
            return Err(IngestError::Invalid(
                "a sample of the profile has a location that is not there".to_owned(),
            ));
        };
        let mut stack = Vec::new();
        stack.packed(1, places);
        self.stacks.blob(7, &stack);
        let at = self.stack_of.len() as u64 + 1;
        self.stack_of.insert(locations.to_vec(), at);
        Ok(at)
    }

    /// Profiles of a scope, as fields: one of each type of values.
    fn profiles(&mut self, about: &About, budget: &mut AllocationBudget) -> Result<Vec<u8>, IngestError> {
        let profile = self.profile;
        let types = wanted_types(profile, about);
        let mut samples = vec![Vec::new(); types.len()];
        let mut sample = Sample::default();
        for wire in &profile.samples {
            sample.read(wire, *budget)?;
            if sample.values.len() != profile.sample_types.len() {
                return Err(IngestError::Invalid(format!(
                    "a sample of the profile has {} values, of {} types",
                    sample.values.len(),
                    profile.sample_types.len()
                )));
            }
            let stack = self.stack(&sample.locations, budget)?;
            let attributes = self.labels(&sample.labels, budget)?;
            for ((column, _), to) in types.iter().zip(&mut samples) {
                let value = sample.values[*column];
                if value == 0 {
                    continue;
                }
                let mut made = Vec::new();
                made.int(1, stack);
                made.packed(2, attributes.iter().copied());
                made.packed(4, [value as u64]);
                budget.take(2 * made.len() + 8)?;
                to.blob(2, &made);
            }
        }
        let mut scope = Vec::new();
        for ((column, kind), samples) in types.into_iter().zip(samples) {
            let of_type = self.head(column, &kind, about);
            scope.blob(2, &[samples, of_type].concat());
        }
        Ok(scope)
    }

    /// All of a profile but its samples.
    fn head(&mut self, column: usize, kind: &[u8], about: &About) -> Vec<u8> {
        let profile = self.profile;
        let [own_kind, unit] = profile.sample_types[column];
        let mut head = Vec::new();
        let mut of_samples = Vec::new();
        of_samples.int(1, self.string(kind));
        of_samples.int(2, unit as u64);
        head.blob(1, &of_samples);
        let said_ns = u64::try_from(profile.time_ns).unwrap_or(0);
        let from_ns = if about.from_ns > 0 { about.from_ns } else { said_ns };
        head.fixed64(3, from_ns);
        let said_ns = u64::try_from(profile.duration_ns).unwrap_or(0);
        let asked_ns = about.until_ns.saturating_sub(about.from_ns);
        head.int(
            4,
            if about.from_ns > 0 && asked_ns > 0 {
                asked_ns
            } else {
                said_ns
            },
        );
        // A period is that of one of the types, not of all.
        if profile.period_type == [own_kind, unit] {
            let mut of_period = Vec::new();
            of_period.int(1, own_kind as u64);
            of_period.int(2, unit as u64);
            head.blob(5, &of_period);
            head.int(6, profile.period as u64);
        }
        head
    }

    fn labels(&mut self, labels: &[&[u8]], budget: &mut AllocationBudget) -> Result<Vec<u64>, IngestError> {
        let mut attributes = Vec::with_capacity(labels.len());
        for label in labels {
            // key, text, number, unit
            let [key, text, number, _] = ints(label)?;
            budget.take(64)?;
            attributes.push(if text != 0 {
                self.text_attribute(key as u64, text)
            } else {
                let mut value = Vec::new();
                value.key(3, 0);
                value.varint(number as u64);
                self.attribute(key as u64, &value)
            });
        }
        Ok(attributes)
    }

    fn dictionary(mut self, about: &About) -> Result<Vec<u8>, IngestError> {
        let profile = self.profile;
        let mut tables = Vec::new();
        for field in 1..=3 {
            tables.blob(field, &[]);
        }
        let build_id_key = self.string(b"process.executable.build_id.gnu");
        for mapping in &profile.mappings {
            let mut entry = Vec::new();
            entry.int(4, mapping.file as u64);
            if mapping.build_id != 0 {
                let attribute = self.text_attribute(build_id_key, mapping.build_id);
                entry.packed(5, [attribute]);
            }
            tables.blob(1, &entry);
        }
        let of_frames = (!about.frame_type.is_empty()).then(|| {
            let key = self.string(b"profile.frame.type");
            let mut value = Vec::new();
            value.blob(1, about.frame_type.as_bytes());
            self.attribute(key, &value)
        });
        let offsets: HashMap<u64, u64> = profile
            .mappings
            .iter()
            .map(|mapping| (mapping.id, mapping.offset.wrapping_sub(mapping.start)))
            .collect();
        let ends = profile.locations.iter().skip(1).map(|next| next.lines);
        for (location, end) in profile.locations.iter().zip(ends.chain([profile.lines.len()])) {
            let mut entry = Vec::new();
            entry.int(1, self.mapping_of.get(&location.mapping).copied().unwrap_or(0));
            let shift = offsets.get(&location.mapping).copied().unwrap_or(0);
            entry.int(2, location.address.wrapping_add(shift));
            for (function, line) in &profile.lines[location.lines..end] {
                let Some(function) = self.function_of.get(function) else {
                    return Err(IngestError::Invalid(
                        "a location of the profile has a function that is not there".to_owned(),
                    ));
                };
                let mut own = Vec::new();
                own.int(1, *function);
                own.int(2, *line as u64);
                entry.blob(3, &own);
            }
            entry.packed(4, of_frames);
            tables.blob(2, &entry);
        }
        for [_, name, system_name, file, start_line] in &profile.functions {
            let mut entry = Vec::new();
            for (field, value) in [(1, name), (2, system_name), (3, file), (4, start_line)] {
                entry.int(field, *value as u64);
            }
            tables.blob(3, &entry);
        }
        if profile.strings.is_empty() {
            tables.blob(5, &[]);
        }
        let more = self.more_strings.iter().map(Vec::as_slice);
        for text in profile.strings.iter().copied().chain(more) {
            tables.blob(5, text);
        }
        tables.extend_from_slice(&self.attributes);
        tables.extend_from_slice(&self.stacks);
        Ok(tables)
    }
}

/// Which types of values are taken, with their names. Ticks beside their time say the same twice, and sums since the
/// start are of no window.
fn wanted_types(profile: &Profile<'_>, about: &About) -> Vec<(usize, Vec<u8>)> {
    let text = |index: i64| String::from_utf8_lossy(profile.text(index)).into_owned();
    let types: Vec<[String; 2]> = profile.sample_types.iter().map(|kind| kind.map(text)).collect();
    let has_time = types.iter().any(|[_, unit]| unit == "nanoseconds");
    let wanted = types.iter().enumerate().filter(|(_, [kind, unit])| {
        let is_ticks = has_time && kind == "samples" && unit == "count";
        !is_ticks && !about.cumulative.contains(kind)
    });
    let named = wanted.map(|(at, [kind, _])| (at, about.names.get(kind).unwrap_or(kind).clone().into_bytes()));
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
    use prost::Message;

    /// Two types, two samples of one stack of two frames, in a module that is mapped elsewhere.
    fn profile() -> Vec<u8> {
        let texts = [
            "",
            "samples",
            "count",
            "cpu",
            "nanoseconds",
            "main",
            "work",
            "/bin/app",
            "c0ffee",
            "route",
            "/pay",
        ];
        let entry = |fields: &[(u32, u64)]| {
            let mut entry = Vec::new();
            fields.iter().for_each(|(field, value)| entry.int(*field, *value));
            entry
        };
        let mut wire = Vec::new();
        wire.blob(1, &entry(&[(1, 1), (2, 2)]));
        wire.blob(1, &entry(&[(1, 3), (2, 4)]));
        for (ticks, ns) in [(1, 10_000_000), (3, 30_000_000)] {
            let mut sample = Vec::new();
            sample.packed(1, [70, 71]);
            sample.packed(2, [ticks, ns]);
            sample.blob(3, &entry(&[(1, 9), (2, 10)]));
            wire.blob(2, &sample);
        }
        wire.blob(3, &entry(&[(1, 5), (2, 0x40_0000), (4, 0x1000), (5, 7), (6, 8)]));
        for (id, function) in [(70, 90), (71, 91)] {
            let mut location = entry(&[(1, id), (2, 5), (3, 0x40_2000)]);
            location.blob(4, &entry(&[(1, function), (2, 33)]));
            wire.blob(4, &location);
        }
        wire.blob(5, &entry(&[(1, 90), (2, 6), (5, 30)]));
        wire.blob(5, &entry(&[(1, 91), (2, 5)]));
        texts.iter().for_each(|text| wire.blob(6, text.as_bytes()));
        wire.int(9, 1_700_000_000_000_000_000);
        wire.int(10, 2_000_000_000);
        wire.blob(11, &entry(&[(1, 3), (2, 4)]));
        wire.int(12, 10_000_000);
        wire
    }

    #[test]
    fn a_profile_keeps_all_that_it_says() {
        let about = About {
            service: "shop".to_owned(),
            frame_type: "go",
            ..About::default()
        };
        let made = pprof_to_otlp(&profile(), &about, 1 << 20).unwrap();
        let read = ExportProfilesServiceRequest::decode(made.as_slice()).unwrap();
        let tables = read.dictionary.unwrap();
        let text = |index: i32| tables.string_table[index as usize].as_str();
        let profiles = &read.resource_profiles[0].scope_profiles[0].profiles;
        // Ticks say what their time says.
        assert_eq!(profiles.len(), 1);
        let kind = profiles[0].sample_type.unwrap();
        assert_eq!(
            (text(kind.type_strindex), text(kind.unit_strindex)),
            ("cpu", "nanoseconds")
        );
        assert_eq!(
            (profiles[0].period, profiles[0].duration_nano),
            (10_000_000, 2_000_000_000)
        );
        let values: Vec<_> = profiles[0].samples.iter().map(|sample| sample.values.clone()).collect();
        assert_eq!(values, [[10_000_000], [30_000_000]]);
        let stack = &tables.stack_table[profiles[0].samples[0].stack_index as usize];
        let leaf = &tables.location_table[stack.location_indices[0] as usize];
        let function = &tables.function_table[leaf.lines[0].function_index as usize];
        assert_eq!(
            (text(function.name_strindex), function.start_line, leaf.lines[0].line),
            ("work", 30, 33)
        );
        assert_eq!(leaf.address, 0x3000);
        assert_eq!(
            text(tables.mapping_table[leaf.mapping_index as usize].filename_strindex),
            "/bin/app"
        );
        let of_sample = &tables.attribute_table[profiles[0].samples[0].attribute_indices[0] as usize];
        assert_eq!(text(of_sample.key_strindex), "route");
        let of_frame = &tables.attribute_table[leaf.attribute_indices[0] as usize];
        assert_eq!(text(of_frame.key_strindex), "profile.frame.type");
    }

    #[test]
    fn what_is_not_there_is_an_error_and_cut_profiles_are_too() {
        let wire = profile();
        for cut in [1, 20, wire.len() - 3] {
            assert!(
                pprof_to_otlp(&wire[..cut], &About::default(), 1 << 20).is_err(),
                "{cut}"
            );
        }
        let mut sample = Vec::new();
        sample.packed(1, [999]);
        sample.packed(2, [1, 1]);
        let mut more = wire.clone();
        more.blob(2, &sample);
        let error = pprof_to_otlp(&more, &About::default(), 1 << 20)
            .unwrap_err()
            .to_string();
        assert!(error.contains("location"), "{error}");
        let small = pprof_to_otlp(&wire, &About::default(), 200).unwrap_err();
        assert!(matches!(small, IngestError::TooLarge { .. }), "{small}");
    }
}
