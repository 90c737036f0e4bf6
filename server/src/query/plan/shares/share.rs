//! A share as bytes: all that another server on the same data needs to count it.
//!
//! JSON of bounded size: what is long in it are paths of files. The selector goes as text, and who counts resolves it:
//! ids of series are many. So it has to know of every series that the asked server knows of, which [`Known`] says.

use crate::label::LabelTable;
use crate::query::ask::question::{Question, RuntimeFrames, ValueRange};
use crate::query::ask::selector::Selector;
use crate::query::ask::time::Window;
use crate::query::ask::unit::Unit;
use crate::query::plan::days::Days;
use crate::query::plan::shares::counting::{Counting, ShortName, has_home, short_names};
use crate::store::format::read::groups::RowGroupTask;
use crate::store::{DataFile, Snapshot, Table};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};
use xxhash_rust::xxh3::xxh3_64;

/// Longest share, in bytes.
pub(crate) const MOST_SHARE_BYTES: usize = 4 << 20;

/// Files of dictionaries that are told by name, at most; with more of them who counts looks at the log.
const MOST_KNOWN: usize = 10_000;

/// Servers of another version count what is asked of them in another way, perhaps.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A file, and which of its row groups are counted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShareFile {
    pub(crate) table: String,
    /// Below the table's folder.
    pub(crate) path: String,
    pub(crate) partition: String,
    pub(crate) bytes: u64,
    pub(crate) rows: u64,
    pub(crate) groups: Vec<usize>,
}

/// Files of dictionaries by their days, as hashes of their paths.
type FilesOfDays = BTreeMap<String, Vec<u64>>;

/// Files of dictionaries that the asked server has in its view.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Known {
    series: FilesOfDays,
    processes: FilesOfDays,
    /// There are more than could be told: only their days are.
    more: bool,
}

/// A question as it was asked, but for what is done with its counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    profile: String,
    selector: String,
    window: Window,
    except: Option<Window>,
    unit: Option<String>,
    values: ValueRange,
    lengths: ValueRange,
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Share {
    version: String,
    short_names: Vec<ShortName>,
    asked: Asked,
    pub(crate) counting: Counting,
    pub(crate) known: Known,
    pub(crate) files: Vec<ShareFile>,
}

/// Why a share is not counted here. The asked server counts it itself then.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unusable {
    #[error("the share cannot be read: {0}")]
    Malformed(String),
    #[error("the asked server has version {theirs}, this one {}", VERSION)]
    OtherVersion { theirs: String },
    #[error("the asked server has other short names of attributes (--label)")]
    OtherNames,
    #[error("a day of which the asked server has series or processes is gone by retention")]
    Gone,
}

impl Known {
    /// What resolves a selector and tells labels apart, in a question's window.
    fn of(snapshot: &Snapshot, question: &Question, labels: &[String]) -> Known {
        let days = Days::of(question.window);
        let files_of = |table: Table| -> FilesOfDays {
            let mut all = FilesOfDays::new();
            for file in snapshot.files(table).iter().filter(|file| days.has(&file.partition)) {
                let of_day = all.entry(file.partition.clone()).or_default();
                of_day.push(xxh3_64(file.path.as_bytes()));
            }
            all
        };
        let has = |home: LabelTable| has_home(labels, home);
        let needs_series = !question.of_series().is_empty() || has(LabelTable::Series);
        let needs_processes = question.selector.has(LabelTable::Processes) || has(LabelTable::Processes);
        let of = |needed: bool, table: Table| if needed { files_of(table) } else { FilesOfDays::new() };
        let mut known = Known {
            series: of(needs_series, Table::Series),
            processes: of(needs_processes, Table::Processes),
            more: false,
        };
        let lists = known.series.values().chain(known.processes.values());
        if lists.map(Vec::len).sum::<usize>() > MOST_KNOWN {
            known.more = true;
            let lists = known.series.values_mut().chain(known.processes.values_mut());
            lists.for_each(Vec::clear);
        }
        known
    }

    fn tables(&self) -> [(Table, &FilesOfDays); 2] {
        [(Table::Series, &self.series), (Table::Processes, &self.processes)]
    }

    /// Whether a view has all of these files.
    pub(crate) fn is_in(&self, snapshot: &Snapshot) -> bool {
        let has_all = |(table, wanted): (Table, &FilesOfDays)| {
            let mut missing: HashSet<u64> = wanted.values().flatten().copied().collect();
            if !missing.is_empty() {
                for file in snapshot.files(table) {
                    missing.remove(&xxh3_64(file.path.as_bytes()));
                }
            }
            missing.is_empty()
        };
        !self.more && self.tables().into_iter().all(has_all)
    }

    /// Whether a view that was brought up to date knows as much: files may have been merged since, but no day of theirs
    /// may be gone by retention, which a question that is asked just then does not know of yet.
    pub(crate) fn has_its_days_in(&self, snapshot: &Snapshot) -> bool {
        let has_days = |(table, wanted): (Table, &FilesOfDays)| {
            let here: HashSet<&str> = snapshot
                .files(table)
                .iter()
                .map(|file| file.partition.as_str())
                .collect();
            wanted.keys().all(|day| here.contains(day.as_str()))
        };
        self.tables().into_iter().all(has_days)
    }
}

impl Share {
    /// Of row groups of files. Others are left out: rows that wait for their commit are nobody else's.
    pub(crate) fn new(snapshot: &Snapshot, question: &Question, counting: Counting, units: &[RowGroupTask]) -> Share {
        let mut files: Vec<ShareFile> = Vec::new();
        for unit in units {
            let RowGroupTask::File { table, file, group, .. } = unit else {
                continue;
            };
            match files.last_mut() {
                Some(last) if last.path == file.path && last.table == table.name() => last.groups.push(*group),
                _ => files.push(ShareFile {
                    table: table.name().to_owned(),
                    path: file.path.clone(),
                    partition: file.partition.clone(),
                    bytes: file.size_bytes,
                    rows: file.rows,
                    groups: vec![*group],
                }),
            }
        }
        Share {
            version: VERSION.to_owned(),
            short_names: short_names(),
            asked: Asked {
                profile: question.profile.clone(),
                selector: question.selector.to_string(),
                window: question.window,
                except: question.except,
                unit: question.unit.as_ref().map(|unit| unit.name().to_owned()),
                values: question.values,
                lengths: question.lengths,
            },
            known: Known::of(snapshot, question, counting.labels()),
            counting,
            files,
        }
    }

    /// As bytes; none where there are too many.
    pub(crate) fn encode(&self) -> Option<Vec<u8>> {
        let bytes = serde_json::to_vec(self).ok()?;
        (bytes.len() <= MOST_SHARE_BYTES).then_some(bytes)
    }

    /// Reads what a server of the same version wrote.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Share, Unusable> {
        let malformed = |what: &str| Unusable::Malformed(what.to_owned());
        if bytes.len() > MOST_SHARE_BYTES {
            return Err(malformed("it is too long"));
        }
        let told: Told = serde_json::from_slice(bytes).map_err(|error| malformed(&error.to_string()))?;
        if told.version != VERSION {
            return Err(Unusable::OtherVersion { theirs: told.version });
        }
        let share: Share = serde_json::from_slice(bytes).map_err(|error| malformed(&error.to_string()))?;
        if share.short_names != short_names() {
            return Err(Unusable::OtherNames);
        }
        if !share.counting.is_sound() {
            return Err(malformed("what is to be counted makes no sense"));
        }
        let is_window = |window: &Window| 0 <= window.from_ns && window.from_ns < window.until_ns;
        if !is_window(&share.asked.window) || share.asked.except.as_ref().is_some_and(|except| !is_window(except)) {
            return Err(malformed("its window ends before it begins"));
        }
        if !share.files.iter().all(ShareFile::is_sound) {
            return Err(malformed("it names what is no file of samples"));
        }
        Ok(share)
    }

    /// What is asked. What becomes of interpreters' frames is of no matter to counts.
    pub(crate) fn question(&self) -> Result<Question, Unusable> {
        let asked = &self.asked;
        let selector = Selector::parse(&asked.selector).map_err(|error| Unusable::Malformed(error.to_string()))?;
        Ok(Question {
            profile: asked.profile.clone(),
            selector,
            window: asked.window,
            except: asked.except,
            unit: asked.unit.as_deref().map(Unit::named),
            runtime_frames: RuntimeFrames::default(),
            values: asked.values,
            lengths: asked.lengths,
        })
    }
}

/// What is read of a share first: another version may have anything else.
#[derive(Debug, Deserialize)]
struct Told {
    version: String,
}

impl ShareFile {
    /// The table, where it is one of samples or of roll-ups.
    pub(crate) fn table(&self) -> Option<Table> {
        let mut all = [Table::Samples].into_iter().chain(Table::ROLLUPS);
        all.find(|table| table.name() == self.table)
    }

    /// The file, as far as it is needed to read it.
    pub(crate) fn file(&self) -> DataFile {
        DataFile {
            path: self.path.clone(),
            partition: self.partition.clone(),
            size_bytes: self.bytes,
            rows: self.rows,
            modified_ms: 0,
            int_ranges: Vec::new(),
            string_ranges: Vec::new(),
        }
    }

    /// Whether it is a data file below its table's folder, with row groups in their order.
    fn is_sound(&self) -> bool {
        let is_name = |name: &str| !name.is_empty() && name != "." && name != ".." && !name.contains(['\\', '\0']);
        self.table().is_some()
            && self.path.ends_with(".parquet")
            && self.path.split('/').all(is_name)
            && self.groups.windows(2).all(|pair| pair[0] < pair[1])
            && !self.groups.is_empty()
    }
}

/// Shares that are made up are read as themselves or refused.
#[cfg(any(test, fuzzing))]
pub(crate) fn fuzz_share(bytes: &[u8]) {
    let Ok(share) = Share::decode(bytes) else { return };
    if let Some(again) = share.encode() {
        assert!(
            Share::decode(&again).is_ok_and(|again| again == share),
            "a share is not what it was written as"
        );
    }
    drop(share.question());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::plan::steps::Steps;

    fn share() -> Share {
        let window = Window {
            from_ns: 1_795_248_000_000_000_000,
            until_ns: 1_795_251_600_000_000_000,
        };
        Share {
            version: VERSION.to_owned(),
            short_names: short_names(),
            asked: Asked {
                profile: "cpu".to_owned(),
                selector: Selector::parse("{service=~\"a|b\",node!=\"\\\"\"}")
                    .unwrap()
                    .to_string(),
                window,
                except: None,
                unit: Some("nanoseconds".to_owned()),
                values: ValueRange::default(),
                lengths: ValueRange { least: 3, most: 9 },
            },
            counting: Counting::Stacks {
                windows: vec![(Steps::parts(window, 8), Some(window))],
                limit: 1_000_000,
            },
            known: Known {
                series: FilesOfDays::from([("2026-11-21".to_owned(), vec![u64::MAX, 1])]),
                ..Known::default()
            },
            files: vec![ShareFile {
                table: "samples".to_owned(),
                path: "hour=2026-11-21T08/part-0.parquet".to_owned(),
                partition: "2026-11-21T08".to_owned(),
                bytes: 1 << 40,
                rows: 4_000_000,
                groups: vec![0, 1, 7],
            }],
        }
    }

    #[test]
    fn the_documents_know_its_length() {
        crate::documented(&[("MOST_SHARE_BYTES", MOST_SHARE_BYTES as u64)]);
    }

    #[test]
    fn a_share_is_read_as_it_was_written() {
        let bytes = share().encode().unwrap();
        let read = Share::decode(&bytes).unwrap();
        assert_eq!(read, share());
        let question = read.question().unwrap();
        assert_eq!(question.selector.to_string(), share().asked.selector);
        assert_eq!(question.unit, Some(Unit::time()));
        fuzz_share(&bytes);
        for cut in 0..bytes.len() {
            assert!(Share::decode(&bytes[..cut]).is_err());
        }
    }

    #[test]
    fn another_version_and_made_up_files_are_refused_in_words() {
        let decoded = |change: &dyn Fn(&mut Share)| {
            let mut share = share();
            change(&mut share);
            Share::decode(&share.encode().unwrap())
        };
        assert!(decoded(&|_| ()).is_ok());
        let other = decoded(&|share| share.version = "0.0.1".to_owned()).unwrap_err();
        assert!(other.to_string().contains("version 0.0.1"), "{other}");
        // What another version adds is no reason to say that it is malformed.
        let newer = br#"{"version":"9.9.9","more":1}"#;
        assert!(matches!(Share::decode(newer), Err(Unusable::OtherVersion { .. })));
        let names = decoded(&|share| share.short_names.push(("a".to_owned(), "b.c".to_owned(), false)));
        assert!(matches!(names, Err(Unusable::OtherNames)));
        for path in [
            "../tokens.parquet",
            "/etc/a.parquet",
            "hour=1//a.parquet",
            "a/../../b.parquet",
            "a.json",
            "",
        ] {
            assert!(
                decoded(&|share| share.files[0].path = path.to_owned()).is_err(),
                "{path}"
            );
        }
        assert!(decoded(&|share| share.files[0].table = "series".to_owned()).is_err());
        assert!(decoded(&|share| share.files[0].groups = vec![1, 1]).is_err());
        assert!(decoded(&|share| share.asked.window.until_ns = 0).is_err());
    }
}
