//! Whether a store, or a backup, is what was written: logs, every byte of every file, rows, what they refer to, and the
//! agents' ledger.

use crate::lock::lock_mutex;
use crate::store::buffer::sender_window::SenderWindow;
use crate::store::format::read::rows::FileRows;
use crate::store::keep::backup;
use crate::store::keep::day::{Day, Read, parts};
use crate::store::keep::error::KeepError;
use crate::store::keep::ledger::Ledger;
use crate::store::keep::mark::{self, State};
use crate::store::keep::pins::{BATCH_ROWS, Pins, day_of};
use crate::store::keep::place::{Place, open_to_read, waiting};
use crate::store::keep::tally::{Fault, MOST_FAULTS, Tally, Tell, mib};
use crate::store::keep::transfer::FILES_AT_ONCE;
use crate::store::log::{pinned, recover};
use crate::store::root::error::RootError;
use crate::store::table::data_file::DataFile;
use crate::store::table::error::StoreError;
use crate::store::table::file_list;
use crate::store::table::integrity::{self, Fault as LogFault, MISSING};
use crate::store::table::partition::hour_begin_ns;
use crate::store::table::schema::Table;
use futures::stream::{self, StreamExt as _};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A log that is written while it is looked at is looked at again, so often and after this time.
const LOOKS: usize = 3;

const PAUSE: Duration = Duration::from_millis(200);

/// Tables whose rows others refer to, in the order in which they are taken in.
const DICTIONARIES: [Table; 4] = [Table::Frames, Table::Stacks, Table::Series, Table::Processes];

/// What a check came to.
#[derive(Debug, Clone, Default)]
pub struct Checked {
    /// What was looked at, as a person names it.
    pub what: String,
    /// Data files that were read.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Rows that were read, of all tables.
    pub rows: u64,
    /// Samples, by the log.
    pub samples: u64,
    /// Samples of nodes that batches tell of, by the batches.
    pub told: u64,
    /// The same by their rows.
    pub told_rows: u64,
    /// What was not looked at, and why.
    pub notes: Vec<String>,
    /// What is wrong, in order of path.
    pub faults: Vec<Fault>,
    /// Faults beyond those that are named.
    pub more_faults: u64,
    /// How long it took, in seconds.
    pub seconds: f64,
}

/// Reads a store, which may be written meanwhile, or a backup: the newest, or the one of this name.
pub async fn check(at: &Path, name: Option<&str>, tell: Tell) -> Result<Checked, KeepError> {
    let root = open_to_read(at).await?;
    let of = root.clone();
    let mark = waiting(move || mark::read(of.as_ref()).map_err(KeepError::of_format(of.as_ref()))).await?;
    let state = mark.map(|mark| mark.state);
    let place = match state {
        Some(State::Backups) => backup::find(&root, name).await?,
        _ => Arc::new(Place::store(root)),
    };
    if name.is_some() && !place.is_backup() {
        return Err(KeepError::refused(place.name(), "it holds no backups that have names"));
    }
    let mut look = Look::new(place, tell);
    if state == Some(State::Unfinished) {
        look.fault(mark::OBJECT, "the copy was not finished");
    }
    look.logs().await?;
    let pins = look.pins().await?;
    look.bytes(&pins).await?;
    look.days(&pins).await?;
    look.missing().await;
    Ok(look.end(&pins))
}

/// What was found so far.
struct Look {
    place: Arc<Place>,
    tally: Arc<Tally>,
    begun: Instant,
    /// By path below the root.
    faults: BTreeMap<String, Vec<String>>,
    /// Data files that are not what was written, or cannot be read.
    bad: HashSet<String>,
    /// Data files that are not there, or are not any more.
    missing: BTreeSet<String>,
    ledger: Arc<Mutex<Ledger>>,
    checked: Checked,
}

/// A file to be read: its table, what the log says of it, and where it is below the root.
type Job = (Table, Arc<DataFile>, String);

impl Look {
    fn new(place: Arc<Place>, tell: Tell) -> Self {
        Self {
            checked: Checked {
                what: place.name(),
                ..Checked::default()
            },
            place,
            tally: Arc::new(Tally::new(tell)),
            begun: Instant::now(),
            faults: BTreeMap::new(),
            bad: HashSet::new(),
            missing: BTreeSet::new(),
            ledger: Arc::new(Mutex::new(Ledger::new(SenderWindow::from_txns(&[]), i64::MIN))),
        }
    }

    /// `path` is below the root.
    fn fault(&mut self, path: &str, what: impl Into<String>) {
        self.faults.entry(path.to_owned()).or_default().push(what.into());
    }

    /// Looks at each table's log, up to its newest checkpoint.
    async fn logs(&mut self) -> Result<(), KeepError> {
        let mut faulty: Vec<(Table, Vec<LogFault>)> = Table::REFERRERS_FIRST.map(|table| (table, Vec::new())).into();
        for look in 0..LOOKS {
            if look > 0 {
                tokio::time::sleep(PAUSE).await;
            }
            for (table, faults) in &mut faulty {
                let looked = self.place.location(*table).waiting(recover::faults).await;
                *faults = looked.map_err(KeepError::of_root(self.place.root.as_ref()))?;
            }
            faulty.retain(|(_, faults)| !faults.is_empty());
            if faulty.is_empty() {
                return Ok(());
            }
        }
        for (table, faults) in faulty {
            let log = self.place.location(table).log();
            for fault in faults {
                self.fault(log.path_of(&fault.name).trim_end_matches('/'), fault.what);
            }
        }
        Ok(())
    }

    /// All tables whose logs can be read.
    async fn pins(&mut self) -> Result<Pins, KeepError> {
        let pins = match Pins::of(&self.place).await {
            Ok(pins) => pins,
            Err(_) => {
                let mut logs = Vec::new();
                for table in Table::REFERRERS_FIRST {
                    let location = self.place.location(table);
                    match pinned::pin(&location, None).await {
                        Ok(log) => logs.extend(log),
                        Err(error) => self.fault(&location.log().path, error.to_string()),
                    }
                }
                Pins { logs }
            }
        };
        if pins.of_table(Table::Samples).is_none() && self.faults.is_empty() {
            pins.id(&self.place)?;
        }
        if self.place.is_backup()
            && let Some(differs) = backup::differs(&self.place, &pins).await?
        {
            self.fault(&self.place.beside_logs(""), differs);
        }
        if let Some(samples) = pins.of_table(Table::Samples) {
            let txns = pinned::txns(&self.place.location(Table::Samples), samples.version).await?;
            let first = samples.files.first().and_then(|file| hour_begin_ns(&file.partition));
            let ledger = Ledger::new(SenderWindow::from_txns(&txns), first.unwrap_or(i64::MIN));
            self.ledger = Arc::new(Mutex::new(ledger));
        }
        Ok(pins)
    }

    fn jobs(&self, pins: &Pins) -> Vec<Job> {
        let files = pins.files();
        files
            .map(|(table, file)| (table, file.clone(), self.place.file(table, &file.path)))
            .collect()
    }

    /// Compares every file with the hash in its name and the length in the log.
    async fn bytes(&mut self, pins: &Pins) -> Result<(), KeepError> {
        let jobs = self.jobs(pins);
        self.checked.samples = pins.samples();
        self.tally
            .begin(jobs.len() as u64, jobs.iter().map(|(_, file, _)| file.size_bytes).sum());
        let work = |(_, file, path): Job| {
            let (place, tally) = (self.place.clone(), self.tally.clone());
            async move {
                let looked = waiting(move || {
                    let (root, size_bytes) = (place.root.as_ref(), file.size_bytes);
                    let fault = integrity::fault(root.reader().as_ref(), &path, size_bytes);
                    let fault = fault.map_err(KeepError::of_root(root))?;
                    tally.done(size_bytes);
                    tally.moved(size_bytes);
                    Ok((path, size_bytes, fault))
                });
                looked.await
            }
        };
        let mut works = stream::iter(jobs).map(work).buffer_unordered(FILES_AT_ONCE);
        let mut found = Vec::new();
        while let Some(looked) = works.next().await {
            found.push(looked?);
        }
        drop(works);
        for (path, size_bytes, fault) in found {
            match fault {
                None => {
                    self.checked.files += 1;
                    self.checked.bytes += size_bytes;
                }
                Some(what) if what == MISSING => drop(self.missing.insert(path)),
                Some(what) => {
                    self.fault(&path, what);
                    self.bad.insert(path);
                }
            }
        }
        Ok(())
    }

    /// Reads the rows of every file that has the right bytes, day by day.
    async fn days(&mut self, pins: &Pins) -> Result<(), KeepError> {
        let mut days: BTreeMap<String, Vec<Job>> = BTreeMap::new();
        for job in self.jobs(pins) {
            if !self.bad.contains(&job.2) {
                days.entry(day_of(&job.1.partition).to_owned()).or_default().push(job);
            }
        }
        let all = days.len();
        for (at, (name, jobs)) in days.into_iter().enumerate() {
            let number = at + 1;
            self.tally.tell(&format!("rows of {name}, day {number} of {all}"));
            let rows = |table: Table| -> u64 {
                let files = jobs.iter().filter(|(of, ..)| *of == table);
                files.map(|(_, file, _)| file.rows).sum()
            };
            let parts = parts(DICTIONARIES.into_iter().map(rows).max().unwrap_or_default());
            lock_mutex(&self.ledger).next_day();
            for part in 0..parts {
                let mut day = Day::new(name.clone(), part, parts);
                for table in DICTIONARIES {
                    day = self.learn(day, table, &jobs).await?;
                }
                let is_there = |(.., path): &&Job| !self.missing.contains(path);
                let there: Vec<Job> = jobs.iter().filter(is_there).cloned().collect();
                let counted = self.read(Arc::new(day), &there).await?;
                if part == 0 {
                    self.rollups(pins, &counted);
                }
            }
        }
        Ok(())
    }

    /// Takes in the ids of a day's dictionary. Files of it that went since they were looked for have others in their
    /// place, which a new look finds: without these, rows would seem to refer to what is nowhere.
    async fn learn(&self, mut day: Day, table: Table, jobs: &[Job]) -> Result<Day, KeepError> {
        let of_table = jobs.iter().filter(|(of, ..)| *of == table);
        let mut paths: Vec<String> = of_table.map(|(.., path)| path.clone()).collect();
        let mut tried = HashSet::new();
        for _ in 0..LOOKS {
            tried.extend(paths.iter().cloned());
            let (learned, some_are_gone) = self.learn_of(day, table, paths).await?;
            day = learned;
            if !some_are_gone {
                break;
            }
            paths = self.files_of_day(table, &day.name).await;
            paths.retain(|path| !tried.contains(path));
        }
        Ok(day)
    }

    /// Takes in the ids of these files, and says whether some of them are not there.
    async fn learn_of(&self, mut day: Day, table: Table, paths: Vec<String>) -> Result<(Day, bool), KeepError> {
        let place = self.place.clone();
        waiting(move || {
            let mut some_are_gone = false;
            for path in paths {
                // What cannot be read is told when its rows are looked at.
                let read = learn_file(&place, &mut day, table, &path);
                some_are_gone |= read.is_err() && is_gone(&place, &path);
            }
            Ok((day, some_are_gone))
        })
        .await
    }

    /// A dictionary's files of a day, as its log has them by now; none where that cannot be read.
    async fn files_of_day(&self, table: Table, day: &str) -> Vec<String> {
        let pinned = pinned::pin(&self.place.location(table), None).await;
        let files = pinned.ok().flatten().map(|log| log.files).unwrap_or_default();
        let of_day = file_list::of_partition(&files, day).iter();
        of_day.map(|file| self.place.file(table, &file.path)).collect()
    }

    /// Reads files. Gives what the roll-ups among them count, by table and hour.
    async fn read(&mut self, day: Arc<Day>, jobs: &[Job]) -> Result<BTreeMap<(Table, String), u64>, KeepError> {
        let is_first = day.is_first();
        let work = |(table, file, path): Job| {
            let (place, day, ledger) = (self.place.clone(), day.clone(), self.ledger.clone());
            async move {
                let read = waiting(move || {
                    let read = of_file(&place, &day, &ledger, table, &file, &path);
                    let is_gone = read.is_err() && is_gone(&place, &path);
                    Ok((table, file, path, read, is_gone))
                });
                read.await
            }
        };
        let mut works = stream::iter(jobs.to_vec()).map(work).buffer_unordered(FILES_AT_ONCE);
        let mut found = Vec::new();
        while let Some(read) = works.next().await {
            found.push(read?);
        }
        drop(works);
        let mut counted = BTreeMap::new();
        for (table, file, path, read, is_gone) in found {
            match read {
                Ok(read) => {
                    read.faults.iter().for_each(|fault| self.fault(&path, fault.clone()));
                    if is_first {
                        self.checked.rows += read.rows;
                        *counted.entry((table, file.partition.clone())).or_default() += read.counted;
                    }
                }
                Err(_) if is_gone => drop(self.missing.insert(path)),
                Err((rows, error)) if is_first => {
                    self.fault(&path, format!("it cannot be read after {rows} rows: {error}"));
                    self.bad.insert(path);
                }
                // It was told.
                Err(_) => {}
            }
        }
        Ok(counted)
    }

    /// Whether current roll-ups count as many samples as their hours have.
    fn rollups(&mut self, pins: &Pins, counted: &BTreeMap<(Table, String), u64>) {
        for ((table, hour), count) in counted.iter().filter(|((table, _), _)| Table::ROLLUPS.contains(table)) {
            let samples = file_list::of_partition(pins.files_of(Table::Samples), hour);
            let rollup = file_list::of_partition(pins.files_of(*table), hour);
            let path_of = |table: Table, file: &Arc<DataFile>| self.place.file(table, &file.path);
            let is_read = |path: &String| !self.bad.contains(path) && !self.missing.contains(path);
            let are_read = rollup
                .iter()
                .map(|file| path_of(*table, file))
                .all(|path| is_read(&path));
            let rows: u64 = samples.iter().map(|file| file.rows).sum();
            if samples.is_empty() || !are_read || !file_list::is_current(samples, rollup) || rows == *count {
                continue;
            }
            if let Some(first) = rollup.first() {
                let path = path_of(*table, first);
                self.fault(
                    &path,
                    format!("the roll-up of {hour} counts {count} samples, the hour has {rows}"),
                );
            }
        }
    }

    /// Of files that are not there those are at fault that the store still names: others were replaced meanwhile.
    async fn missing(&mut self) {
        if self.missing.is_empty() {
            return;
        }
        let missing = std::mem::take(&mut self.missing);
        let named: Option<HashSet<String>> = match Pins::of(&self.place).await {
            Ok(pins) => Some(self.jobs(&pins).into_iter().map(|(.., path)| path).collect()),
            Err(_) => None,
        };
        let mut replaced = 0_u64;
        for path in missing {
            if named.as_ref().is_none_or(|named| named.contains(&path)) {
                self.fault(&path, MISSING);
            } else {
                replaced += 1;
            }
            self.bad.insert(path);
        }
        if replaced > 0 {
            let note = format!("{replaced} files were replaced while the check ran, and were not read");
            self.checked.notes.push(note);
        }
    }

    fn end(mut self, pins: &Pins) -> Checked {
        let counts = |(table, ..): &Job| matches!(table, Table::Samples | Table::Batches);
        let are_read = self
            .jobs(pins)
            .iter()
            .filter(|job| counts(job))
            .all(|job| !self.bad.contains(&job.2));
        let balance = lock_mutex(&self.ledger).balance();
        if are_read {
            (self.checked.told, self.checked.told_rows) = (balance.told, balance.rows);
            let at = self.place.file(Table::Samples, "").trim_end_matches('/').to_owned();
            for (node, rows, told) in balance.short {
                self.fault(
                    &at,
                    format!("node {node:?} has {rows} rows, its batches tell of {told} samples"),
                );
            }
            if balance.is_cut {
                let note = "older samples are gone: only batches that are younger are held against what is there";
                self.checked.notes.push(note.to_owned());
            }
        } else {
            let note = "samples were not compared with the agents' batches, since not all of both were read";
            self.checked.notes.push(note.to_owned());
        }
        let reader = self.place.root.reader();
        let faults = self.faults.iter().flat_map(|(path, faults)| {
            let file = reader.name_of(path.trim_end_matches('/'));
            faults.iter().map(move |what| Fault {
                file: file.clone(),
                what: what.clone(),
            })
        });
        let mut faults: Vec<Fault> = faults.collect();
        let all = faults.len();
        faults.truncate(MOST_FAULTS);
        Checked {
            more_faults: (all - faults.len()) as u64,
            faults,
            seconds: self.begun.elapsed().as_secs_f64(),
            ..self.checked
        }
    }
}

fn of_file(
    place: &Place,
    day: &Day,
    ledger: &Mutex<Ledger>,
    table: Table,
    file: &DataFile,
    path: &str,
) -> Result<Read, (u64, StoreError)> {
    day.read(
        place.root.reader().as_ref(),
        table,
        file,
        path,
        &mut |rows| match table {
            Table::Samples => lock_mutex(ledger).add_samples(rows),
            Table::Batches => lock_mutex(ledger).add_batches(rows),
            _ => {}
        },
    )
}

fn learn_file(place: &Place, day: &mut Day, table: Table, path: &str) -> Result<(), StoreError> {
    for rows in FileRows::open(place.root.reader().as_ref(), table, path, BATCH_ROWS)? {
        day.learn(table, &rows?);
    }
    Ok(())
}

fn is_gone(place: &Place, path: &str) -> bool {
    matches!(place.root.reader().length(path), Err(RootError::NotFound(_)))
}

impl std::fmt::Display for Checked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let faults = self.faults.len() as u64 + self.more_faults;
        write!(
            f,
            "{}: {} files ({}), {} rows, {} samples; nodes with a ledger have {} of them, their batches tell of {}; \
             {faults} faults; {:.1} s",
            self.what,
            self.files,
            mib(self.bytes),
            self.rows,
            self.samples,
            self.told_rows,
            self.told,
            self.seconds
        )
    }
}
