//! The BPF programs stay as small as they are: what the verifier follows decides whether a kernel takes them.

use stakeout_agent::agent::AgentConfig;
use stakeout_agent::kernel::{self, LoadedProgram, Waits};

use crate::ground_truth::fast;
use crate::recording::{Recording, possible};

/// A program, and what it may have.
struct Bound {
    name: &'static str,
    /// Instructions that the verifier may follow, on kernels before 6.12 and since.
    followed: [u32; 2],
    translated: u32,
}

/// What 6.18.44 said on 2026-11-28 of the sampler, and of the others, and a fifth more; x86-64. For kernels before
/// 6.12 the sampler's bound is what 6.1.0-56 says.
const BOUNDS: [Bound; 14] = [
    Bound {
        name: "sample",
        followed: [a_fifth_more(187_414), a_fifth_more(137_506)],
        translated: a_fifth_more(9_190),
    },
    Bound {
        name: "on_exec",
        followed: [a_fifth_more(219); 2],
        translated: a_fifth_more(189),
    },
    Bound {
        name: "on_fork",
        followed: [a_fifth_more(155); 2],
        translated: a_fifth_more(159),
    },
    Bound {
        name: "on_exit",
        followed: [a_fifth_more(126); 2],
        translated: a_fifth_more(130),
    },
    Bound {
        name: "on_group",
        followed: [a_fifth_more(110); 2],
        translated: a_fifth_more(112),
    },
    Bound {
        name: "on_move",
        followed: [a_fifth_more(126); 2],
        translated: a_fifth_more(130),
    },
    Bound {
        name: "on_switch",
        followed: [a_fifth_more(312_163), a_fifth_more(199_618)],
        translated: a_fifth_more(10_635),
    },
    Bound {
        name: "on_switch_old",
        followed: [a_fifth_more(312_163), a_fifth_more(199_790)],
        translated: a_fifth_more(10_502),
    },
    Bound {
        name: "on_wakeup",
        followed: [a_fifth_more(49); 2],
        translated: a_fifth_more(48),
    },
    Bound {
        name: "on_waking",
        followed: [a_fifth_more(186_993), a_fifth_more(137_119)],
        translated: a_fifth_more(9_143),
    },
    Bound {
        name: "on_new",
        followed: [a_fifth_more(106); 2],
        translated: a_fifth_more(93),
    },
    Bound {
        name: "on_end",
        followed: [a_fifth_more(186_993), a_fifth_more(137_119)],
        translated: a_fifth_more(9_143),
    },
    // What `on_end` does, and little else.
    Bound {
        name: "on_back",
        followed: [a_fifth_more(186_993), a_fifth_more(137_119)],
        translated: a_fifth_more(9_143),
    },
    Bound {
        name: "visit",
        followed: [a_fifth_more(16_718), a_fifth_more(3_797)],
        translated: a_fifth_more(900),
    },
];

const fn a_fifth_more(figure: u32) -> u32 {
    figure + figure / 5
}

/// The running kernel's first two numbers.
fn kernel_version() -> (u32, u32) {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(['.', '-']).map_while(|number| number.parse::<u32>().ok());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

/// Kernels since 6.12 leave out more states that they have seen alike.
fn is_new_kernel() -> bool {
    kernel_version() >= (6, 12)
}

/// Those that see waits take Linux 5.18.
const OF_WAITS: [&str; 8] = [
    "on_back",
    "on_switch",
    "on_switch_old",
    "on_wakeup",
    "on_waking",
    "on_new",
    "on_end",
    "visit",
];

fn shortfall(program: &LoadedProgram, bound: &Bound) -> Option<String> {
    let followed_bound = bound.followed[usize::from(is_new_kernel())];
    let followed = program.followed.unwrap_or(0);
    (followed > followed_bound || program.translated > bound.translated).then(|| {
        format!(
            "{}: the verifier follows {followed} instructions, bound {followed_bound}; {} when translated, bound {}",
            program.name, program.translated, bound.translated
        )
    })
}

#[test]
fn bpf_programs_stay_within_their_bounds() {
    if !possible() {
        return;
    }
    let recording = Recording::start(AgentConfig {
        waits: Waits::On,
        ..fast()
    });
    let programs = kernel::loaded_programs();
    recording.stop();
    for LoadedProgram {
        name,
        followed,
        translated,
    } in &programs
    {
        let followed = followed.map_or("?".into(), |count| count.to_string());
        println!("{name}: the verifier follows {followed} instructions; translated {translated}");
    }
    let names: Vec<&str> = programs.iter().map(|program| &*program.name).collect();
    let expected = BOUNDS.iter().map(|bound| bound.name);
    let expected = expected.filter(|name| kernel_version() >= (5, 18) || !OF_WAITS.contains(name));
    // Kernels from 6.18 on can have a thread tell its stack, others have it do so as it comes back.
    let others: &[&str] = if kernel_version() >= (6, 18) {
        &["on_switch_old", "on_back"]
    } else {
        &["on_switch"]
    };
    let expected: Vec<&str> = expected.filter(|name| !others.contains(name)).collect();
    assert!(
        names.len() == expected.len() && expected.iter().all(|name| names.contains(name)),
        "every program has its bound, and is loaded once: {names:?}"
    );
    if !cfg!(target_arch = "x86_64") {
        println!("the bounds are those of x86-64: NOT CHECKED here");
        return;
    }
    let too_large = BOUNDS.iter().filter_map(|bound| {
        let program = programs.iter().find(|program| program.name == bound.name)?;
        shortfall(program, bound)
    });
    let too_large: Vec<String> = too_large.collect();
    assert!(
        too_large.is_empty(),
        "{}\nIf this is on purpose: see `cargo xtask kernels` for what each kernel follows, stay below half of the million that is \
         allowed on all of them, and write the new figures into BOUNDS. If not, look at what the change made the verifier follow \
         twice: a loop, a branch, a helper that is inlined.",
        too_large.join("\n")
    );
}
