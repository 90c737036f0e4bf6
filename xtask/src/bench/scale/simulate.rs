//! What many machines would take for one question, by calculation from what was measured on this one.
//!
//! In: CPU time of a counted row, of what a question takes once, of a share that another server counts; bytes of its
//! answer. Out: the critical path, the longest way from the question to the answer, and where more machines stop
//! helping.

use anyhow::{Result, anyhow};

use super::Taken;
use crate::bench::fleet_size::FREQUENCY_HZ;
use crate::bench::report::Figures;

/// The machines that are calculated with.
#[derive(Debug, clap::Args)]
pub(super) struct Machines {
    /// CPUs of a machine that is calculated with, each as fast as one of this machine
    #[arg(long, default_value_t = 8, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    machine_cpus: u64,
    /// What the network of such a machine carries, in Gbit/s
    #[arg(long, default_value = "10", value_name = "GBITS", value_parser = positive)]
    machine_network: f64,
    /// How long a question to another machine and its answer are on the way, in milliseconds
    #[arg(long, default_value = "1", value_name = "MS", value_parser = positive)]
    machine_round_trip: f64,
}

fn positive(text: &str) -> Result<f64> {
    let number: f64 = text.parse()?;
    match number.is_finite() && number > 0.0 {
        true => Ok(number),
        false => Err(anyhow!("a number above 0")),
    }
}

/// Machines and nodes that are asked for.
const MACHINES: [usize; 4] = [1, 4, 16, 64];
const NODES: [u64; 2] = [1_000, 10_000];
/// Up to here it is looked for where more machines stop helping.
const MOST_MACHINES: usize = 512;
/// As the server has them: rows of a piece, rows of a share, and by how much a server may have more than its part.
const PIECE_ROWS: f64 = 1_048_576.0;
const SHARE_ROWS: f64 = 8_388_608.0;
const ABOVE: f64 = 1.25;

/// What was measured, of a question that reads all samples.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    /// CPU seconds that a question takes however many rows there are.
    once_s: f64,
    /// CPU seconds of a row.
    row_s: f64,
    /// CPU seconds of a share, of whoever asks: to cut, to send, to take in and to add up.
    asking_s: f64,
    /// CPU seconds of a share, of whoever counts it, beside counting.
    answering_s: f64,
    /// Bytes of a share's answer.
    share_bytes: f64,
}

impl Costs {
    /// Of the first two questions: of everything by all samples, and by their roll-up, which has so many rows; one tree
    /// is made of both. A row of the roll-up is taken to cost what a sample does. None where no share was counted by
    /// another server, or the roll-up is no shorter. A cost that comes out below nothing, since it is less than what
    /// times differ by, is nothing.
    pub(super) fn of(one: &[Taken], several: &[Taken], [rows, rolled_up]: [f64; 2]) -> Option<Costs> {
        let ([all, short, ..], [spread, ..]) = (one, several) else {
            return None;
        };
        let is_refused = [all, short, spread].iter().any(|taken| taken.refused.is_some());
        let is_shorter = rolled_up > 0.0 && rolled_up < rows && short.cpu_s < all.cpu_s;
        if spread.shares < 1.0 || is_refused || !is_shorter {
            return None;
        }
        let row_s = (all.cpu_s - short.cpu_s) / (rows - rolled_up);
        let once_s = (all.cpu_s - row_s * rows).max(0.0);
        let own_rows = (rows - spread.share_rows).max(0.0);
        let asking_s = (spread.asked_cpu_s - once_s - own_rows * row_s).max(0.0);
        let others_s = spread.cpu_s - spread.asked_cpu_s;
        let answering_s = (others_s - spread.share_rows * row_s).max(0.0);
        Some(Costs {
            once_s,
            row_s,
            asking_s: asking_s / spread.shares,
            answering_s: answering_s / spread.shares,
            share_bytes: spread.received_bytes / spread.shares,
        })
    }
}

/// Seconds, one part after the other.
#[derive(Clone, Copy, Debug, Default)]
struct CriticalPath {
    /// What the asked machine does once: plan, names, the tree.
    once_s: f64,
    /// What the machine with the most rows counts.
    counting_s: f64,
    /// Answers on the network of the asked machine.
    network_s: f64,
    /// What the asked machine does for each share, one after the other.
    adding_s: f64,
}

impl CriticalPath {
    fn sum_s(self) -> f64 {
        self.once_s + self.counting_s + self.network_s + self.adding_s
    }

    /// So many rows on so many machines.
    fn of(machines: &Machines, costs: &Costs, rows: f64, count: usize) -> CriticalPath {
        let pieces = (rows / PIECE_ROWS).ceil().max(1.0) as usize;
        let most = fullest(pieces, count) as f64;
        let cpus = machines.machine_cpus as f64;
        // A piece is counted by one CPU.
        let piece_s = costs.row_s * rows / pieces as f64;
        let counting_s = (most / cpus).ceil() * piece_s;
        if count == 1 {
            return CriticalPath {
                once_s: costs.once_s,
                counting_s,
                ..CriticalPath::default()
            };
        }
        let of_one = (most * PIECE_ROWS / SHARE_ROWS).ceil();
        let shares = (rows * (count - 1) as f64 / count as f64 / SHARE_ROWS)
            .ceil()
            .max((count - 1) as f64);
        CriticalPath {
            once_s: costs.once_s,
            counting_s: counting_s + costs.answering_s * (of_one / cpus).ceil(),
            network_s: machines.machine_round_trip / 1e3
                + shares * costs.share_bytes * 8.0 / (machines.machine_network * 1e9),
            adding_s: shares * costs.asking_s,
        }
    }
}

/// Pieces of the machine that has the most, where each goes to one by its hash, and none has more than a quarter above
/// its part, as servers place them.
fn fullest(pieces: usize, machines: usize) -> usize {
    let most = (pieces.div_ceil(machines) as f64 * ABOVE) as usize;
    let mut loads = vec![0_usize; machines];
    // SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
    let mut state = 7_u64;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    for _ in 0..pieces {
        let first = (next() % machines as u64) as usize;
        let with_room = (0..machines)
            .map(|at| (first + at) % machines)
            .find(|at| loads[*at] < most.max(1));
        loads[with_room.unwrap_or(first)] += 1;
    }
    loads.into_iter().max().unwrap_or(0)
}

/// Prints and keeps them.
pub(super) fn report(machines: &Machines, node_cpus: u64, costs: &Costs, figures: &mut Figures) {
    figures.table("Measured parts of what follows");
    figures.row("");
    for (name, unit, value) in [
        ("CPU of a question, once", "ms", costs.once_s * 1e3),
        ("CPU of a row", "ns", costs.row_s * 1e9),
        ("CPU of a share, of whoever asks", "ms", costs.asking_s * 1e3),
        ("CPU of a share, of whoever answers", "ms", costs.answering_s * 1e3),
        ("answer of a share", "KiB", costs.share_bytes / 1024.0),
    ] {
        let shown = format!("{name}, {unit}");
        println!("{shown:<44}{value:>14.3}");
        figures.add(name, unit, value);
    }
    for nodes in NODES {
        let rows = (nodes * node_cpus * FREQUENCY_HZ * 3600) as f64;
        let title = format!("CALCULATED, not measured: an hour of {nodes} nodes");
        figures.table(&title);
        println!(
            "\n{title}\n{:<14}{:>10}{:>10}{:>12}{:>12}{:>12}",
            "machines", "ms", "once", "counting", "network", "adding up"
        );
        for count in MACHINES {
            let path = CriticalPath::of(machines, costs, rows, count);
            let values = [
                ("critical path", path.sum_s()),
                ("once", path.once_s),
                ("counting", path.counting_s),
                ("network", path.network_s),
                ("adding up", path.adding_s),
            ];
            let shown = values.map(|(_, seconds)| seconds * 1e3);
            println!(
                "{count:<14}{:>10.0}{:>10.0}{:>12.0}{:>12.1}{:>12.0}",
                shown[0], shown[1], shown[2], shown[3], shown[4]
            );
            figures.row(&format!("{count} machines"));
            for (name, seconds) in values {
                figures.add(name, "ms", seconds * 1e3);
            }
        }
        let (best, path) = best(machines, costs, rows);
        let why = if path.adding_s + path.network_s > path.counting_s {
            "there the asked machine takes as long to add answers up as others take to count"
        } else if best == MOST_MACHINES {
            "more were not calculated"
        } else {
            "with more each has less than a piece for each of its CPUs, or one has more than its part"
        };
        figures.print_note(format!(
            "calculated: of an hour of {nodes} nodes {best} machines are the fastest, with {:.0} ms; {why}; what is done once, {:.0} \
             ms, no machine takes off",
            path.sum_s() * 1e3,
            path.once_s * 1e3
        ));
    }
    figures.print_note(format!(
        "what is done once, and what a row takes: of one tree by all samples and by their roll-up, whose rows are taken to cost what \
         samples do; calculated from the measured parts above for machines of {} CPUs as fast as this one's, {} Gbit/s and {} ms to each other and \
         back, warm: a machine counts pieces of a million rows, each on one CPU; the one that is asked adds up one share after the \
         other; partial counts are as large as those that were measured, and what is done once takes as long, though more nodes may have \
         more stacks, and have more accounts of what they observed",
        machines.machine_cpus, machines.machine_network, machines.machine_round_trip
    ));
}

/// The number of machines with the shortest path.
fn best(machines: &Machines, costs: &Costs, rows: f64) -> (usize, CriticalPath) {
    let mut best = (1, CriticalPath::of(machines, costs, rows, 1));
    for count in 2..=MOST_MACHINES {
        let path = CriticalPath::of(machines, costs, rows, count);
        if path.sum_s() < best.1.sum_s() {
            best = (count, path);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: Machines = Machines {
        machine_cpus: 8,
        machine_network: 10.0,
        machine_round_trip: 1.0,
    };

    fn taken(cpu_s: f64, asked_cpu_s: f64, shares: f64, share_rows: f64) -> Taken {
        Taken {
            cpu_s,
            asked_cpu_s,
            shares,
            share_rows,
            received_bytes: shares * 1000.0,
            ..Taken::default()
        }
    }

    #[test]
    fn costs_are_those_that_times_are_made_of() {
        // Once 0.5 s, 10 ns a row, 4 shares of which each costs the asked one 10 ms and the others 20 ms.
        let one = [taken(1.5, 1.5, 0.0, 0.0), taken(0.6, 0.6, 0.0, 0.0)];
        let spread = [taken(1.5 + 0.12, 0.5 + 0.25 + 0.04, 4.0, 75e6)];
        let costs = Costs::of(&one, &spread, [100e6, 10e6]).unwrap();
        let told = [
            costs.once_s,
            costs.row_s * 1e9,
            costs.asking_s * 1e3,
            costs.answering_s * 1e3,
            costs.share_bytes,
        ];
        for (told, known) in told.into_iter().zip([0.5, 10.0, 10.0, 20.0, 1000.0]) {
            assert!((told - known).abs() < 1e-6, "{told} {known}");
        }
        assert!(Costs::of(&one, &one, [100e6, 10e6]).is_none(), "nothing was spread");
        assert!(Costs::of(&one, &spread, [100e6, 0.0]).is_none(), "there is no roll-up");
    }

    #[test]
    fn more_machines_help_until_adding_up_takes_as_long() {
        let costs = Costs {
            once_s: 0.1,
            row_s: 10e-9,
            asking_s: 0.002,
            answering_s: 0.001,
            share_bytes: 100_000.0,
        };
        let of = |count: usize| CriticalPath::of(&MACHINE, &costs, 576e6, count).sum_s();
        // One machine: 5.76 CPU seconds on 8 CPUs, and what is done once.
        assert!((0.8..0.85).contains(&of(1)), "{}", of(1));
        assert!(of(4) < of(1));
        let (best, _) = best(&MACHINE, &costs, 576e6);
        assert!((2..64).contains(&best), "{best}");
        assert!(of(200) > of(best));
    }

    #[test]
    fn no_machine_has_more_than_a_quarter_above_its_part() {
        for (pieces, machines) in [(550, 1), (550, 4), (550, 16), (5500, 64), (3, 64)] {
            let fullest = fullest(pieces, machines);
            assert!(fullest >= pieces.div_ceil(machines));
            assert!(fullest as f64 <= (pieces.div_ceil(machines) as f64 * ABOVE).max(1.0));
        }
    }
}
