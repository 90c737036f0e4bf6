//! New executable mappings, told by the kernel the moment they are made.
//!
//! In: the CPUs that are online. Out: [`Event::Map`]s and [`Event::Code`]s. Per CPU an event that counts nothing writes
//! a record for each executable mapping (mmap, mprotect, exec) into a small ring. It only says whose mappings to read:
//! what lies where is read from /proc, which also knows what went away. The same ring tells which BPF programs come and
//! go, at which addresses, under which names.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::events::Event;
use super::perf;
use crate::process::{CodeChange, NewCode, is_memory_file, is_unnamed_memory};

/// Room for records of some 300 libraries, in the few milliseconds between two looks. With the control page 36 KiB,
/// which fits fourteen times into what the kernel lets every user lock for each CPU (kernel.perf_event_mlock_kb, 516).
const DATA_PAGES: usize = 8;
/// `struct perf_event_mmap_page` (uapi/linux/perf_event.h): how far the kernel has written, and the reader read.
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;

const RECORD_MMAP: u32 = 1;
const RECORD_LOST: u32 = 2;
const RECORD_KSYMBOL: u32 = 17;
/// In a record of code: it was unregistered.
const KSYMBOL_UNREGISTER: u16 = 1;
/// type, misc and size, of every record.
const HEADER_BYTES: usize = 8;
const WORD: usize = size_of::<u64>();

/// What the rings told, cumulative but for the events.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) events: Vec<Event>,
    /// Records that found their ring full.
    lost: u64,
}

impl Told {
    /// Reads whole records one after the other. What makes no sense ends it, since nothing tells where the next one
    /// begins: that counts as one more lost.
    pub(super) fn read(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let size = bytes
                .get(6..HEADER_BYTES)
                .map(|size| u16::from_ne_bytes([size[0], size[1]]));
            let record = size
                .map(usize::from)
                .filter(|size| *size >= HEADER_BYTES)
                .and_then(|size| bytes.split_at_checked(size));
            let Some((record, rest)) = record else {
                self.lost = self.lost.saturating_add(1);
                return;
            };
            self.take(record);
            bytes = rest;
        }
    }

    /// A record with its header: of a mapping (tgid, tid, address, length, offset, name) or of records that were lost
    /// (id, how many); then the time.
    fn take(&mut self, record: &[u8]) {
        let half = |at: usize| Some(u32::from_ne_bytes(record.get(at..at + 4)?.try_into().ok()?));
        let word = |at: usize| Some(u64::from_ne_bytes(record.get(at..at + WORD)?.try_into().ok()?));
        let told = match half(0) {
            Some(RECORD_MMAP) if record.len() >= HEADER_BYTES + 5 * WORD => half(8).zip(new_code(record)),
            Some(RECORD_KSYMBOL) => {
                self.events.extend(code_change(record).map(Event::Code));
                None
            }
            Some(RECORD_LOST) => {
                self.lost = self.lost.saturating_add(word(HEADER_BYTES + WORD).unwrap_or(1));
                None
            }
            _ => None,
        };
        let Some((tgid, code)) = told else { return };
        // A program that starts maps one library after the other.
        match self.events.last_mut() {
            Some(Event::Map { tgid: last, new }) if *last == tgid => new.push(code),
            _ => self.events.push(Event::Map { tgid, new: vec![code] }),
        }
    }
}

/// Of a record with its header: ids, address, length, offset, name, time.
fn new_code(record: &[u8]) -> Option<NewCode> {
    let (rest, time) = record.split_last_chunk::<WORD>()?;
    let word = |at: usize| Some(u64::from_ne_bytes(rest.get(at..at + WORD)?.try_into().ok()?));
    let (start, bytes) = (word(2 * WORD)?, word(3 * WORD)?);
    let name = rest.get(5 * WORD..)?.split(|byte| *byte == 0).next()?;
    let name = String::from_utf8_lossy(name);
    Some(NewCode {
        start,
        end: start.saturating_add(bytes),
        is_made: !name.starts_with('/') || is_unnamed_memory(&name) || is_memory_file(&name),
        time_ns: u64::from_ne_bytes(*time),
    })
}

/// Of a record with its header: address, length, type, flags, name, time.
fn code_change(record: &[u8]) -> Option<CodeChange> {
    let (rest, time) = record.get(HEADER_BYTES..)?.split_last_chunk::<WORD>()?;
    let (start, rest) = rest.split_first_chunk::<WORD>()?;
    let (bytes, rest) = rest.split_first_chunk::<4>()?;
    let (flags, name) = rest.get(2..)?.split_first_chunk::<2>()?;
    let name = name.split(|byte| *byte == 0).next().filter(|name| !name.is_empty())?;
    Some(CodeChange {
        start: u64::from_ne_bytes(*start),
        bytes: u32::from_ne_bytes(*bytes),
        name: String::from_utf8_lossy(name).into(),
        time_ns: u64::from_ne_bytes(*time),
        is_gone: u16::from_ne_bytes(*flags) & KSYMBOL_UNREGISTER != 0,
    })
}

/// Copies what lies between the two counts out of a ring, whose bytes `copy` appends by their place in it. False where
/// the counts cannot be.
fn unroll(tail: u64, head: u64, ring_bytes: usize, mut copy: impl FnMut(std::ops::Range<usize>)) -> bool {
    let Some(length) = head.checked_sub(tail).filter(|length| *length <= ring_bytes as u64) else {
        return false;
    };
    let (begin, length) = ((tail % ring_bytes as u64) as usize, length as usize);
    let first = length.min(ring_bytes - begin);
    copy(begin..begin + first);
    copy(0..length - first);
    true
}

/// One CPU's event with its ring. Field order is the order of tear-down.
struct Ring {
    memory: Mapped,
    _event: OwnedFd,
}

/// The control page and the data pages of a ring.
struct Mapped {
    base: NonNull<u8>,
    page_bytes: usize,
}

impl Mapped {
    fn map(event: &OwnedFd) -> io::Result<Self> {
        let page_bytes = crate::sys::page_bytes() as usize;
        // SAFETY: a new mapping at an address of the kernel's choice, checked below. Writable, so that the kernel
        // respects how far was read.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                (1 + DATA_PAGES) * page_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                event.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or_else(|| io::Error::other("mapped at zero"))?;
        Ok(Self { base, page_bytes })
    }

    fn bytes(&self) -> usize {
        (1 + DATA_PAGES) * self.page_bytes
    }

    fn count(&self, at: usize) -> &AtomicU64 {
        // SAFETY: `at` is one of the two fields of the control page: mapped as long as `self`, aligned to 8, and only
        // ever read and written atomically by both sides.
        unsafe { self.base.add(at).cast().as_ref() }
    }

    /// Appends the records that were not read before, and gives their room back. False where the ring makes no sense.
    fn take(&self, into: &mut Vec<u8>) -> bool {
        // What the kernel wrote before it moved the head is seen after this.
        let head = self.count(DATA_HEAD).load(Ordering::Acquire);
        let tail = self.count(DATA_TAIL).load(Ordering::Relaxed);
        if head == tail {
            return true;
        }
        let taken = unroll(tail, head, DATA_PAGES * self.page_bytes, |range| {
            // SAFETY: `range` lies in the data pages, which follow the control page, and between tail and head, where
            // the kernel does not write.
            let bytes = unsafe {
                std::slice::from_raw_parts(self.base.add(self.page_bytes + range.start).as_ptr(), range.len())
            };
            into.extend_from_slice(bytes);
        });
        // The kernel writes there again only after the copy was made.
        self.count(DATA_TAIL).store(head, Ordering::Release);
        taken
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the range was mapped in `map`, and nothing refers to it any more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes()) };
    }
}

/// The rings of all CPUs, and the descriptor by which one waits for them and for the other two rings.
pub(super) struct Mappings {
    rings: BTreeMap<u32, Ring>,
    epoll: OwnedFd,
    /// Those whose filling up is told: of samples, and of waits.
    samples: Vec<RawFd>,
    waker: Waker,
    scratch: Vec<u8>,
    told: Told,
    /// CPUs whose event the kernel refused, cumulative; of those online, each is tried once.
    refused: u64,
    tried: Vec<u32>,
}

impl Mappings {
    /// Without rings; one waits only for those of process events and of samples.
    pub(super) fn new(events: RawFd, samples: RawFd) -> io::Result<Self> {
        // SAFETY: no arguments in memory.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and nobody else's.
        let epoll = unsafe { OwnedFd::from_raw_fd(fd) };
        wait_also_for(&epoll, events, libc::EPOLLIN)?;
        // Once for each time that the kernel side wakes, not for as long as samples are there.
        wait_also_for(&epoll, samples, libc::EPOLLIN | libc::EPOLLET)?;
        // SAFETY: no arguments in memory.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and nobody else's.
        let waker = Waker(Arc::new(unsafe { OwnedFd::from_raw_fd(fd) }));
        wait_also_for(&epoll, fd, libc::EPOLLIN)?;
        Ok(Self {
            rings: BTreeMap::new(),
            epoll,
            samples: vec![samples],
            waker,
            scratch: Vec::new(),
            told: Told::default(),
            refused: 0,
            tried: Vec::new(),
        })
    }

    /// One waits for another ring of samples, too.
    pub(super) fn wait_also_for_samples(&mut self, samples: RawFd) -> io::Result<()> {
        wait_also_for(&self.epoll, samples, libc::EPOLLIN | libc::EPOLLET)?;
        self.samples.push(samples);
        Ok(())
    }

    /// Listens on these CPUs and no others. Where the kernel refuses, that is said once and counted: mappings are found
    /// by exec and by samples then.
    pub(super) fn follow(&mut self, online: &[u32]) {
        if self.tried == online {
            return;
        }
        self.rings.retain(|cpu, _| online.contains(cpu));
        for cpu in online.iter().filter(|cpu| !self.tried.contains(cpu)) {
            match self.open(*cpu) {
                Ok(ring) => {
                    self.rings.insert(*cpu, ring);
                }
                // It went away since the list was read.
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {}
                Err(error) => {
                    self.refused += 1;
                    if self.refused == 1 {
                        tracing::warn!(
                            cpu,
                            %error,
                            "the kernel does not tell of new mappings: libraries that a short process loads late may \
                             have no names; it needs CAP_PERFMON, and locked memory within \
                             kernel.perf_event_mlock_kb or the limit of the process"
                        );
                    }
                }
            }
        }
        self.tried = online.to_vec();
    }

    /// The rings of these CPUs have died: the next [`Self::follow`] opens them again.
    pub(super) fn forget(&mut self, cpus: &BTreeSet<u32>) {
        for ring in cpus.iter().filter_map(|cpu| self.rings.remove(cpu)) {
            // What it told last is handed over with what comes next.
            read_ring(&ring, &mut self.scratch, &mut self.told);
        }
        self.tried.retain(|cpu| !cpus.contains(cpu));
    }

    fn open(&self, cpu: u32) -> io::Result<Ring> {
        let event = perf::open_mapping_events(cpu)?;
        let memory = Mapped::map(&event)?;
        wait_also_for(&self.epoll, event.as_raw_fd(), libc::EPOLLIN)?;
        Ok(Ring { memory, _event: event })
    }

    /// Waits until there is something in one of the rings or in that of events, or copies of stacks fill that of
    /// samples, at most `timeout`. True for the latter.
    pub(super) fn wait(&self, timeout: Duration) -> io::Result<bool> {
        let mut ready = [libc::epoll_event { events: 0, u64: 0 }; 4];
        let milliseconds = timeout.as_millis().try_into().unwrap_or(libc::c_int::MAX);
        // SAFETY: `ready` has room for as many events as are asked for.
        let count = unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), ready.as_mut_ptr(), 4, milliseconds) };
        if count < 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        let told = &ready[..usize::try_from(count).unwrap_or(0)];
        let is_told = |fd: RawFd| told.iter().any(|event| event.u64 == fd as u64);
        if is_told(self.waker.0.as_raw_fd()) {
            self.waker.clear();
        }
        // Which of the others it is does not matter: all are looked into.
        Ok(self.samples.iter().any(|samples| is_told(*samples)))
    }

    /// Ends a waiting, or the next one where there is none.
    pub(super) fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Hands over what was told since the last call, and says how much that was.
    pub(super) fn take(&mut self, take: impl FnMut(Event)) -> usize {
        for ring in self.rings.values() {
            read_ring(ring, &mut self.scratch, &mut self.told);
        }
        let count = self.told.events.len();
        self.told.events.drain(..).for_each(take);
        count
    }

    /// True where no CPU's mappings go untold.
    pub(super) fn are_told(&self) -> bool {
        self.tried.iter().all(|cpu| self.rings.contains_key(cpu))
    }

    pub(super) fn lost(&self) -> u64 {
        self.told.lost
    }

    pub(super) fn refused(&self) -> u64 {
        self.refused
    }

    /// Of all rings.
    pub(super) fn bytes(&self) -> u64 {
        self.rings.values().map(|ring| ring.memory.bytes() as u64).sum()
    }
}

/// Reads what a ring has to tell.
fn read_ring(ring: &Ring, scratch: &mut Vec<u8>, told: &mut Told) {
    scratch.clear();
    if !ring.memory.take(scratch) {
        told.lost = told.lost.saturating_add(1);
    }
    told.read(scratch);
}

/// Ends the waiting of [`Mappings::wait`] from another thread.
#[derive(Debug, Clone)]
pub struct Waker(Arc<OwnedFd>);

impl Waker {
    /// Ends the wait that goes on, or else the next one.
    pub(crate) fn wake(&self) {
        let one = 1u64.to_ne_bytes();
        // SAFETY: `one` is valid for the call. It fails only where so many wake-ups wait already that one more changes
        // nothing.
        unsafe { libc::write(self.0.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }

    fn clear(&self) {
        let mut count = [0u8; 8];
        // SAFETY: `count` is valid for the call, which never waits; it fails where there was no wake-up.
        unsafe { libc::read(self.0.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
    }
}

/// A descriptor leaves the set by itself when it is closed.
fn wait_also_for(epoll: &OwnedFd, fd: RawFd, events: libc::c_int) -> io::Result<()> {
    let mut interest = libc::epoll_event {
        events: events as u32,
        u64: fd as u64,
    };
    // SAFETY: `interest` is valid for the call.
    if unsafe { libc::epoll_ctl(epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &mut interest) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, words: &[u64]) -> Vec<u8> {
        let size = (HEADER_BYTES + words.len() * WORD) as u16;
        let mut bytes = Vec::from(kind.to_ne_bytes());
        bytes.extend([0, 0]);
        bytes.extend(size.to_ne_bytes());
        bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        bytes
    }

    fn mapping(tgid: u32, time_ns: u64) -> Vec<u8> {
        let name = u64::from_ne_bytes(*b"//anon\0\0");
        let ids = [tgid.to_ne_bytes(), (tgid + 1).to_ne_bytes()].concat();
        let ids = u64::from_ne_bytes(ids.try_into().unwrap());
        record(RECORD_MMAP, &[ids, 0x1000, 0x2000, 0, name, time_ns])
    }

    fn read(bytes: &[u8]) -> (Vec<(u32, u64)>, u64) {
        let mut told = Told::default();
        told.read(bytes);
        let pairs = told.events.iter().flat_map(|event| match event {
            Event::Map { tgid, new } => new.iter().map(|code| (*tgid, code.time_ns)),
            other => panic!("{other:?}"),
        });
        (pairs.collect(), told.lost)
    }

    #[test]
    fn code_of_the_kernel_is_told_with_its_name_and_time() {
        let name = |text: &[u8; 16]| [0, 8].map(|at| u64::from_ne_bytes(text[at..at + 8].try_into().unwrap()));
        let [first, second] = name(b"bpf_prog_1_own\0\0");
        // Length, type (1: BPF) and flags in one word.
        let record = |flags: u64| {
            record(
                RECORD_KSYMBOL,
                &[0xffff_ffff_c000_1000, 0x80 | 1 << 32 | flags << 48, first, second, 77],
            )
        };
        let mut told = Told::default();
        told.read(&[record(0), record(1)].concat());
        let change = |is_gone| {
            Event::Code(CodeChange {
                start: 0xffff_ffff_c000_1000,
                bytes: 0x80,
                name: "bpf_prog_1_own".into(),
                time_ns: 77,
                is_gone,
            })
        };
        assert_eq!((told.events, told.lost), (vec![change(false), change(true)], 0));
    }

    #[test]
    fn a_mapping_is_told_with_its_place_and_whether_a_file_is_there() {
        let told = |name: &[u8; 8]| {
            let mut told = Told::default();
            told.read(&record(
                RECORD_MMAP,
                &[5, 0x1000, 0x2000, 0, u64::from_ne_bytes(*name), 10],
            ));
            told.events.pop()
        };
        let new = |is_made| {
            let new = vec![NewCode {
                start: 0x1000,
                end: 0x3000,
                is_made,
                time_ns: 10,
            }];
            Some(Event::Map { tgid: 5, new })
        };
        for name in [b"//anon\0\0", b"/memfd:x", b"[heap]\0\0"] {
            assert_eq!(told(name), new(true), "{name:?}");
        }
        assert_eq!(told(b"/lib/x\0\0"), new(false));
    }

    #[test]
    fn mappings_and_losses_are_told_and_other_records_passed_over() {
        let lost = record(RECORD_LOST, &[9, 41, 7]);
        let unknown = record(77, &[1, 2, 3, 4, 5, 6]);
        let bytes = [
            mapping(5, 10),
            unknown,
            mapping(5, 11),
            lost,
            mapping(6, 12),
            mapping(5, 13),
        ]
        .concat();
        assert_eq!(read(&bytes), (vec![(5, 10), (5, 11), (6, 12), (5, 13)], 41));
        assert_eq!(read(&[]), (vec![], 0));
    }

    #[test]
    fn what_makes_no_sense_ends_the_reading_and_is_counted() {
        let good = mapping(5, 10);
        for cut in 1..good.len() {
            assert_eq!(
                read(&[&good[..], &good[..cut]].concat()),
                (vec![(5, 10)], 1),
                "cut at {cut}"
            );
        }
        for size in 0..HEADER_BYTES as u16 {
            let mut bad = mapping(6, 11);
            bad[6..8].copy_from_slice(&size.to_ne_bytes());
            assert_eq!(
                read(&[&good[..], &bad, &good].concat()),
                (vec![(5, 10)], 1),
                "size {size}"
            );
        }
        // Whole, but too short for what they say they are.
        assert_eq!(read(&record(RECORD_MMAP, &[5, 10])), (vec![], 0));
        assert_eq!(read(&record(RECORD_LOST, &[])), (vec![], 1));
        assert_eq!(
            read(&record(RECORD_LOST, &[0, u64::MAX, 0]).repeat(2)),
            (vec![], u64::MAX)
        );
    }

    #[test]
    fn a_ring_is_unrolled_over_its_end() {
        let ring: Vec<u8> = (0..16).collect();
        let take = |tail, head| {
            let mut bytes = Vec::new();
            unroll(tail, head, ring.len(), |range| bytes.extend(&ring[range])).then_some(bytes)
        };
        assert_eq!(take(3, 3), Some(vec![]));
        assert_eq!(take(2, 6), Some(vec![2, 3, 4, 5]));
        assert_eq!(take(32 + 14, 32 + 18), Some(vec![14, 15, 0, 1]));
        assert_eq!(take(32 + 4, 32 + 20).map(|bytes| bytes.len()), Some(16));
        assert_eq!(take(0, 17), None, "more than the ring holds");
        assert_eq!(take(5, 4), None, "read further than written");
    }
}
