//! Languages' runtimes of the programs that are sampled: found when their files are mapped, asked for the names of
//! frames when a stack is new.
//!
//! In: programs with their mapped files, and the two words of each frame that a walk met in a runtime. Out: what the
//! kernel side walks a program by, and frames with the language's names, or that there are none.
//!
//! What runs is asked while it lives, on the sampling thread's behalf but never on it: a process may answer late, or
//! not at all. What was replaced meanwhile has no name, never another one's.

mod asking;
mod jvm;
mod known_frames;
mod language;
mod late;
mod library;
mod php;
mod place;
mod programs;
mod python;
mod ruby;
mod v8;

use std::sync::Arc;

use crate::frames::{Frame, FrameKind, Frames, ProgramKey};
use crate::hash::FastMap;
use crate::kernel::so_runtime;
use crate::process::Table;
use crate::runtime::ProcessMemory;
use crate::sys::guarded_for;
use asking::{Asking, PutOff};
use known_frames::KnownFrames;
use late::LateFrames;
use place::Nameless;
pub(super) use place::RuntimePlace;
use programs::{LANGUAGES, Programs, language_of};

/// Places without a name whose tries are counted.
const MAX_NAMELESS: usize = 32_768;
/// What is remembered of frames may take this part of the agent's memory.
const NAMES_PART: u64 = 8;
/// What is learned to name frames by, Python's modules, may take this part of it, in all programs together; it is added
/// up each time that so much was read.
const TABLES_PART: u64 = 8;
const TABLES_READS: u32 = 4_096;
/// How often a place is asked for that has no name, and how long after the first time: what arrives at once was
/// taken at once, and has no name for one reason. Each time it is so much longer.
const MAX_TRIES: u8 = 16;
const TRY_AGAIN_NS: u64 = 200_000_000;
/// Closures take turns in the same places: a function that was elsewhere when its place was asked for is asked for by
/// itself so often, each time so much later, for so many places at a time.
const SOON_TRIES: u8 = 12;
const SOON_NS: u64 = 25_000_000;
const MAX_SOON: usize = 32;

/// What a place was named.
pub(super) struct NamedPlace {
    pub(super) frames: Frames,
    /// Asking again brings nothing else.
    pub(super) is_final: bool,
    /// It stands for frames that are not on the stack.
    pub(super) is_gap: bool,
}

/// What has been done, for reports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RuntimeStats {
    /// Frames of code that was replaced before it could be named.
    pub(super) replaced: u64,
    /// Frames whose process could not be read, or said what makes no sense.
    pub(super) unreadable: u64,
    /// Frames that were not asked for, since too many were.
    pub(super) put_off: u64,
    /// Frames that were not asked for, since their program had asked for so many that the rest is for others.
    pub(super) put_off_own: u64,
    /// Places whose frames went for want of memory.
    pub(super) forgotten: u64,
    /// How often what a program's frames are named by was forgotten, for want of memory or room.
    pub(super) tables_forgotten: u64,
    /// Programs whose runtime has a layout that is not known.
    pub(super) unknown: u64,
}

/// How often a place was asked for, and when it may be again.
#[derive(Debug, Default)]
struct Tries {
    done: u8,
    next_ns: u64,
}

/// A place that is asked for by itself.
#[derive(Debug)]
struct Soon {
    key: ProgramKey,
    place: RuntimePlace,
    tries: u8,
    at_ns: u64,
}

/// Why a place was not named.
enum Unnamed {
    /// Nobody can be asked.
    Never,
    /// Too much was asked for, or no answer came in time.
    PutOff(PutOff),
    ForNow(Nameless),
    /// It was, but for a part that another time may bring.
    InPart(Frames),
}

/// The runtimes of all programs, and names of their frames.
#[derive(Debug, Default)]
pub(super) struct Runtimes {
    programs: Programs,
    known: KnownFrames,
    allowance: Asking,
    /// How often places were asked for that had no name.
    tries: FastMap<(ProgramKey, RuntimePlace), Tries>,
    late: LateFrames,
    /// What tables may take, and what was read since they were added up.
    tables_limit_bytes: u64,
    tables_reads: u32,
    soon: Vec<Soon>,
    stats: RuntimeStats,
}

impl Runtimes {
    /// Of an agent that may take so much memory.
    pub(super) fn within(memory_limit_bytes: u64) -> Self {
        Self {
            known: KnownFrames::within(memory_limit_bytes / NAMES_PART),
            tables_limit_bytes: memory_limit_bytes / TABLES_PART,
            ..Self::default()
        }
    }

    pub(super) fn stats(&self) -> RuntimeStats {
        RuntimeStats {
            forgotten: self.known.forgotten(),
            unknown: self.programs.unknown_total(),
            ..self.stats
        }
    }

    /// Forgets the frames of places that nobody asked for since the last call, and what can be learned anew, where
    /// memory is short.
    pub(super) fn age(&mut self) {
        self.late = LateFrames::default();
        self.known.age();
        self.programs.readers().for_each(|reader| reader.forget_tables());
    }

    /// Tables have grown by what took so many reads at most: together they stay within their memory.
    fn keep_tables(&mut self, reads: u32) {
        self.tables_reads = self.tables_reads.saturating_add(reads);
        if self.tables_reads < TABLES_READS {
            return;
        }
        self.tables_reads = 0;
        let readers = || self.programs.readers();
        let mut forgotten: u64 = readers().map(|reader| reader.take_tables_forgotten()).sum();
        let bytes: u64 = readers().map(|reader| reader.table_bytes()).sum();
        if bytes > self.tables_limit_bytes {
            for reader in readers().filter(|reader| reader.table_bytes() > 0) {
                reader.forget_tables();
                forgotten += 1;
            }
        }
        self.stats.tables_forgotten += forgotten;
    }

    /// Programs whose runtime has a layout that is not known, by what is wrong with it.
    pub(super) fn unknown(&self) -> impl Iterator<Item = (&str, u64)> {
        self.programs.unknown()
    }

    /// By what the kernel side walks a program's own code.
    pub(super) fn described(&self, key: ProgramKey) -> Option<&so_runtime> {
        self.programs.described(key)
    }

    /// A program is gone.
    pub(super) fn forget(&mut self, key: ProgramKey) {
        self.programs.forget(key);
        self.soon.retain(|soon| soon.key != key);
    }

    /// A program's executable memory has changed: looks whether a runtime is there.
    pub(super) fn meet(&mut self, key: ProgramKey, table: &Table, now_ns: u64) {
        self.programs.meet(key, table, now_ns);
    }

    /// True where the program's run-time code may be about to be known: stacks through it wait for that.
    pub(super) fn is_waiting(&self, key: ProgramKey) -> bool {
        self.programs.is_waiting(key)
    }

    /// When the next look at a runtime, or at a function's place, is due; none where there is none.
    pub(super) fn next_look_ns(&self) -> Option<u64> {
        let programs = self.programs.next_look_ns().into_iter();
        programs.chain(self.soon.iter().map(|soon| soon.at_ns)).min()
    }

    /// Looks again at runtimes that had not begun; gives the programs of which more is known since.
    pub(super) fn look_again(&mut self, table: &Table, now_ns: u64) -> Vec<ProgramKey> {
        self.ask_soon(table, now_ns);
        self.programs.look_again(table, now_ns)
    }

    /// Asks for functions that were elsewhere: where one of them is found, its name is known at all of its places.
    fn ask_soon(&mut self, table: &Table, now_ns: u64) {
        let due: Vec<Soon> = self.soon.extract_if(.., |soon| soon.at_ns <= now_ns).collect();
        for soon in due {
            let Soon { key, place, .. } = soon;
            let is_known = self.known.recall((key, place)).is_some() || self.remembers(key, place);
            if is_known {
                continue;
            }
            let Err(unnamed) = self.ask(key, place, table.proc_id(key), now_ns) else {
                continue;
            };
            self.count(&unnamed);
            if !matches!(unnamed, Unnamed::ForNow(Nameless::Replaced) | Unnamed::PutOff(_)) {
                continue;
            }
            let tries = soon.tries + 1;
            if tries < SOON_TRIES {
                let at_ns = now_ns + SOON_NS * u64::from(tries + 1);
                self.soon.push(Soon { tries, at_ns, ..soon });
            }
        }
    }

    /// The frames of a place, leaf first: of compiled code also the functions that were inlined there. `tgid` is the
    /// program's process in /proc while it runs.
    pub(super) fn frames(
        &mut self,
        key: ProgramKey,
        place: RuntimePlace,
        tgid: Option<u32>,
        now_ns: u64,
    ) -> NamedPlace {
        if let Some(frames) = self.known.recall((key, place)) {
            return known(frames);
        }
        if let Some(frames) = self.late.until_asked(&(key, place), now_ns) {
            return NamedPlace {
                is_final: false,
                ..known(frames)
            };
        }
        if self
            .tries
            .get(&(key, place))
            .is_some_and(|tries| now_ns < tries.next_ns)
            && !self.remembers(key, place)
        {
            return self.nameless(place, false);
        }
        let unnamed = match self.ask(key, place, tgid, now_ns) {
            Ok(frames) => return known(frames),
            Err(unnamed) => unnamed,
        };
        let function = LANGUAGES[language_of(place.frame)].function_of(place);
        let of_function = function.and_then(|function| self.known.recall((key, function)));
        if let Unnamed::InPart(frames) = &unnamed {
            self.count(&unnamed);
            return self.in_part(key, place, of_function.as_ref().unwrap_or(frames), now_ns);
        }
        if let Some(frames) = of_function.or_else(|| self.late.get(&(key, place))) {
            // Its line is not known; where too much was asked for, it is another time.
            return NamedPlace {
                is_final: !matches!(unnamed, Unnamed::PutOff(_)),
                ..known(frames)
            };
        }
        self.count(&unnamed);
        match unnamed {
            Unnamed::Never => self.nameless(place, true),
            Unnamed::PutOff(_) | Unnamed::InPart(_) => self.nameless(place, false),
            Unnamed::ForNow(nameless) => self.nameless_for_now(key, place, nameless, now_ns),
        }
    }

    /// Asks for a place's frames, and remembers them.
    fn ask(&mut self, key: ProgramKey, place: RuntimePlace, tgid: Option<u32>, now_ns: u64) -> Result<Frames, Unnamed> {
        let asked = self.asking(key, place, tgid).ok_or(Unnamed::Never)?;
        self.allowance.admit(key, now_ns).map_err(Unnamed::PutOff)?;
        let (named, reads) = guarded_for(asked.0, asked.1).unzip();
        self.allowance.took(key, reads.unwrap_or(0));
        self.keep_tables(reads.unwrap_or(0));
        match named {
            Some(Ok(named)) => {
                let frames: Frames = named.into_iter().map(|frame| self.known.intern(frame)).collect();
                self.known.remember((key, place), Arc::clone(&frames));
                self.remember_function(key, place, &frames);
                self.late.remove(&(key, place));
                Ok(frames)
            }
            Some(Err(Nameless::InPart(frames))) => {
                let frames = frames.into_iter().map(|frame| self.known.intern(frame)).collect();
                Err(Unnamed::InPart(frames))
            }
            Some(Err(nameless)) => Err(Unnamed::ForNow(nameless)),
            None => Err(Unnamed::PutOff(PutOff::All)),
        }
    }

    /// Remembers a place's frames for other places of the same function, without their lines.
    fn remember_function(&mut self, key: ProgramKey, place: RuntimePlace, frames: &Frames) {
        let Some(function) = LANGUAGES[language_of(place.frame)].function_of(place) else {
            return;
        };
        if self.known.recall((key, function)).is_none() {
            let without_line = frames.iter().map(|frame| Frame {
                line: 0,
                ..(**frame).clone()
            });
            let frames: Frames = without_line.map(|frame| self.known.intern(frame)).collect();
            self.known.remember((key, function), frames);
        }
    }

    /// Counts why a place has no name.
    fn count(&mut self, unnamed: &Unnamed) {
        let stats = &mut self.stats;
        let count = match unnamed {
            Unnamed::ForNow(Nameless::Replaced) => &mut stats.replaced,
            Unnamed::ForNow(Nameless::Unreadable) | Unnamed::Never => &mut stats.unreadable,
            Unnamed::PutOff(PutOff::All) | Unnamed::InPart(_) | Unnamed::ForNow(Nameless::InPart(_)) => {
                &mut stats.put_off
            }
            Unnamed::PutOff(PutOff::Own) => &mut stats.put_off_own,
        };
        *count += 1;
    }

    fn remembers(&self, key: ProgramKey, place: RuntimePlace) -> bool {
        let reader = self.programs.reader(key, language_of(place.frame));
        reader.is_some_and(|reader| reader.remembers(place))
    }

    /// Whom to ask, and what.
    fn asking(&self, key: ProgramKey, place: RuntimePlace, tgid: Option<u32>) -> Option<(u32, Asked)> {
        let (reader, tgid) = (self.programs.reader(key, language_of(place.frame))?, tgid?);
        let reader = Arc::clone(reader);
        Some((
            tgid,
            Box::new(move || {
                let memory = ProcessMemory::for_a_frame(tgid);
                (reader.named(&memory, place), memory.reads())
            }),
        ))
    }

    /// With this name until it is asked for again, if it is.
    fn in_part(&mut self, key: ProgramKey, place: RuntimePlace, frames: &Frames, now_ns: u64) -> NamedPlace {
        let is_final = self.late.add((key, place), frames, now_ns);
        if is_final {
            self.late.remove(&(key, place));
            self.known.remember((key, place), Arc::clone(frames));
        }
        NamedPlace {
            is_final,
            ..known(Arc::clone(frames))
        }
    }

    /// Without a name until it is asked for again, if it is, and that not for ever.
    fn nameless_for_now(
        &mut self,
        key: ProgramKey,
        place: RuntimePlace,
        nameless: Nameless,
        now_ns: u64,
    ) -> NamedPlace {
        if !LANGUAGES[language_of(place.frame)].comes_back() {
            return self.nameless(place, true);
        }
        if self.tries.len() >= MAX_NAMELESS {
            self.tries.clear();
        }
        let tries = self.tries.entry((key, place)).or_default();
        let is_first = tries.done == 0;
        tries.done = tries.done.saturating_add(1);
        tries.next_ns = now_ns + TRY_AGAIN_NS * u64::from(tries.done);
        let is_final = tries.done >= MAX_TRIES;
        if is_first && matches!(nameless, Nameless::Replaced) && self.soon.len() < MAX_SOON {
            self.soon.push(Soon {
                key,
                place,
                tries: 0,
                at_ns: now_ns + SOON_NS,
            });
        }
        self.nameless(place, is_final)
    }

    fn nameless(&mut self, place: RuntimePlace, is_final: bool) -> NamedPlace {
        let language = LANGUAGES[language_of(place.frame)];
        let frame = self.known.intern(Frame {
            kind: FrameKind::Interpreted(language.name()),
            ..Frame::unknown()
        });
        NamedPlace {
            is_final,
            ..known(Arc::from([frame]))
        }
    }
}

/// What is asked of a process, on another thread: its answer, and the reads that it took.
type Asked = Box<dyn FnOnce() -> (Result<Vec<Frame>, Nameless>, u32) + Send>;

fn known(frames: Frames) -> NamedPlace {
    NamedPlace {
        is_gap: frames.iter().any(|frame| frame.kind == FrameKind::Unknown),
        frames,
        is_final: true,
    }
}

#[cfg(test)]
mod tests;
