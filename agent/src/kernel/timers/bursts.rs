//! A closer look at some CPUs, for a while.
//!
//! In: CPUs, a period, an end, and perhaps which processes and threads. Out: a second timer on each of these CPUs, and
//! a word to the program of the kernel side of when its ticks count. The end is the program's own: it comes on time
//! whatever becomes of the agent, whose timers go with it.

use std::collections::BTreeSet;

use libbpf_rs::{MapCore, MapFlags};

use super::burst_timers::BurstTimers;
use crate::kernel::error::KernelError;
use crate::kernel::skeletons::sampler::SamplerSkel;
use crate::sys::monotonic_ns;

/// `SO_MAX_BURST_MEMBERS` of bpf/abi.h.
const MAX_MEMBERS: usize = 1024;
/// `SO_MAX_BURST_THREADS` of bpf/abi.h.
pub const MAX_THREADS: usize = 64;
/// `SO_COMM_LENGTH` of bpf/abi.h: bytes of a thread's name, with at least one 0 behind it.
pub const NAME_BYTES: usize = 16;

/// Of what a closer look is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Chosen<Key> {
    /// Of all.
    #[default]
    All,
    /// Of these alone.
    These(BTreeSet<Key>),
    /// Of all but these.
    Others(BTreeSet<Key>),
}

impl<Key> Chosen<Key> {
    /// `enum so_burst_choice` of bpf/abi.h, and what is listed.
    fn listed(&self) -> (u32, Option<&BTreeSet<Key>>) {
        match self {
            Self::All => (0, None),
            Self::These(keys) => (1, Some(keys)),
            Self::Others(keys) => (2, Some(keys)),
        }
    }
}

/// Which threads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChosenThreads {
    /// By their names, as the kernel keeps them.
    pub names: Chosen<[u8; NAME_BYTES]>,
    /// By their ids in samples.
    pub tids: Chosen<u32>,
}

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Burst<'a> {
    /// Which CPUs.
    pub cpus: &'a [u32],
    /// What a sample stands for, nanoseconds.
    pub period_ns: u64,
    /// When it ends, `CLOCK_MONOTONIC`.
    pub until_ns: u64,
    /// It is at some processes alone.
    pub of_members: bool,
    /// At which of their threads.
    pub threads: &'a ChosenThreads,
}

/// See the module.
pub(in crate::kernel) struct Bursts {
    timers: BurstTimers,
    members: BTreeSet<u32>,
}

impl Bursts {
    pub(in crate::kernel) fn new() -> Self {
        Self {
            timers: BurstTimers::new(),
            members: BTreeSet::new(),
        }
    }

    /// In place of one that runs, if there is one.
    pub(in crate::kernel) fn begin(
        &mut self,
        burst: &Burst<'_>,
        sampler: &SamplerSkel<'_>,
    ) -> Result<u64, KernelError> {
        self.end(sampler)?;
        set_keys(
            &sampler.maps.burst_names,
            burst.threads.names.listed().1.into_iter().flatten(),
        )?;
        let tids = burst.threads.tids.listed().1.into_iter().flatten();
        let tids: Vec<[u8; 4]> = tids.map(|tid| tid.to_ne_bytes()).collect();
        set_keys(&sampler.maps.burst_tids, tids.iter())?;
        self.timers.start(burst.cpus, burst.period_ns, &sampler.progs.sample)?;
        // After the timers run: until then the usual ones tell of all time.
        let from_ns = self.timers.draw_begin_ns();
        for cpu in burst.cpus {
            self.tell(*cpu, (from_ns, burst.until_ns), burst, sampler)?;
        }
        Ok(from_ns)
    }

    pub(in crate::kernel) fn draw(&mut self) {
        self.timers.draw(monotonic_ns());
    }

    pub(in crate::kernel) fn end(&mut self, sampler: &SamplerSkel<'_>) -> Result<(), KernelError> {
        let cpus: BTreeSet<u32> = self.timers.cpus().collect();
        self.forget(&cpus, sampler)
    }

    /// These CPUs are looked at as ever.
    pub(in crate::kernel) fn forget(
        &mut self,
        cpus: &BTreeSet<u32>,
        sampler: &SamplerSkel<'_>,
    ) -> Result<(), KernelError> {
        let over = Burst {
            cpus: &[],
            period_ns: 0,
            until_ns: 0,
            of_members: false,
            threads: &ChosenThreads::default(),
        };
        // First the word, then the timers: no time is told by none of both.
        for cpu in self.timers.cpus().filter(|cpu| cpus.contains(cpu)) {
            self.tell(cpu, (0, 0), &over, sampler)?;
        }
        self.timers.forget(cpus);
        Ok(())
    }

    /// The timers go; what was told to the program ends by itself.
    pub(in crate::kernel) fn clear(&mut self) {
        self.timers.clear();
    }

    fn tell(
        &self,
        cpu: u32,
        (from_ns, until_ns): (u64, u64),
        burst: &Burst<'_>,
        sampler: &SamplerSkel<'_>,
    ) -> Result<(), KernelError> {
        let period_ns = u32::try_from(burst.period_ns).unwrap_or(u32::MAX);
        // `struct so_burst` of bpf/abi.h.
        let mut value = [0; 32];
        value[..8].copy_from_slice(&from_ns.to_ne_bytes());
        value[8..16].copy_from_slice(&until_ns.to_ne_bytes());
        value[16..20].copy_from_slice(&period_ns.to_ne_bytes());
        value[20..24].copy_from_slice(&u32::from(burst.of_members).to_ne_bytes());
        value[24..28].copy_from_slice(&burst.threads.names.listed().0.to_ne_bytes());
        value[28..].copy_from_slice(&burst.threads.tids.listed().0.to_ne_bytes());
        let bursts = &sampler.maps.bursts;
        bursts
            .update(&cpu.to_ne_bytes(), &value, MapFlags::ANY)
            .map_err(|source| KernelError::Map { what: "bursts", source })
    }

    /// Says for how many there was no room.
    pub(in crate::kernel) fn set_members(
        &mut self,
        tgids: &BTreeSet<u32>,
        sampler: &SamplerSkel<'_>,
    ) -> Result<u64, KernelError> {
        let members = &sampler.maps.burst_members;
        let wrong = |source| KernelError::Map {
            what: "processes of a burst",
            source,
        };
        let kept: BTreeSet<u32> = tgids.iter().copied().take(MAX_MEMBERS).collect();
        for gone in self.members.difference(&kept) {
            members.delete(&gone.to_ne_bytes()).map_err(wrong)?;
        }
        for new in kept.difference(&self.members) {
            let one = 1u32.to_ne_bytes();
            members.update(&new.to_ne_bytes(), &one, MapFlags::ANY).map_err(wrong)?;
        }
        self.members = kept;
        Ok(tgids.len().saturating_sub(MAX_MEMBERS) as u64)
    }
}

/// Makes these the keys of a map whose values say nothing.
fn set_keys<'k, const N: usize>(
    map: &impl MapCore,
    keys: impl Iterator<Item = &'k [u8; N]>,
) -> Result<(), KernelError> {
    let wrong = |source| KernelError::Map {
        what: "threads of a burst",
        source,
    };
    let before: Vec<Vec<u8>> = map.keys().collect();
    for key in before {
        map.delete(&key).map_err(wrong)?;
    }
    for key in keys {
        map.update(key, &1u32.to_ne_bytes(), MapFlags::ANY).map_err(wrong)?;
    }
    Ok(())
}
