//! Where threads begin. In: the stacks of an interval, of which some were cut. Out: the same, those that were cut with
//! a mark and the outermost frames of their thread, as its whole stacks have shown them: they are the same for as long
//! as the thread lives.

use std::sync::Arc;

use crate::frames::{Frame, FrameKind, Stack};
use crate::hash::FastMap;
use crate::ship::{Process, Sample};

/// Threads and programs remembered, in each of two generations.
const MAX_ROOTS: usize = 4096;
/// Frames that are looked at for a thread's start, and its first function.
const MAX_START_FRAMES: usize = 6;

/// For frames of which nobody knows how many there are. Its module is the one that the walk did not get out of.
const CUT: &str = "[cut]";
/// Instead of a module, of code that was made at run time in no file.
const MADE: &str = "[jit]";

/// How a stack ends, on the root's side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// At its thread's first frame.
    Root,
    /// Somewhere; the frame that stands for what was left out is its last one, where that is so.
    Cut { is_marked: bool },
    /// There is nothing above it.
    None,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Thread {
        tgid: u32,
        start_ticks: u64,
        exec_count: u32,
        tid: u32,
    },
    /// Of any other thread of a process, without its first function.
    Sibling {
        tgid: u32,
        start_ticks: u64,
        exec_count: u32,
    },
    /// Of the first thread of any process of a program.
    Program { path: Arc<str>, build_id: Option<Arc<str>> },
}

/// A thread's outermost frames, leaf first.
type Root = Arc<[Frame]>;

#[derive(Debug, Default)]
pub(super) struct Roots {
    young: FastMap<Key, Root>,
    old: FastMap<Key, Root>,
}

impl Roots {
    /// Completes the stacks that were cut; `ends` says how each ends.
    pub(super) fn complete(
        &mut self,
        samples: &mut [Sample],
        processes: &[Process],
        stacks: &mut Vec<Stack>,
        ends: &[End],
        frames: &mut Vec<Frame>,
    ) {
        self.learn(samples, processes, stacks, ends, frames);
        let mut of_roots: FastMap<*const Frame, Vec<u32>> = FastMap::default();
        let mut completed: FastMap<(u32, *const Frame), u32> = FastMap::default();
        let mut cuts: FastMap<Arc<str>, u32> = FastMap::default();
        let nothing = Root::from([]);
        for sample in samples {
            let End::Cut { is_marked } = ends[sample.stack as usize] else {
                continue;
            };
            let root = self
                .find(sample, &processes[sample.process as usize])
                .unwrap_or(&nothing);
            if is_marked && root.is_empty() {
                continue;
            }
            let location = *completed.entry((sample.stack, root.as_ptr())).or_insert_with(|| {
                let root = of_roots.entry(root.as_ptr()).or_insert_with(|| {
                    let first = frames.len() as u32;
                    frames.extend(root.iter().cloned());
                    (first..frames.len() as u32).collect()
                });
                let mut stack = stacks[sample.stack as usize].clone();
                if !is_marked {
                    let module = ended_in(&stack, frames);
                    stack.frames.push(*cuts.entry(module).or_insert_with_key(|module| {
                        frames.push(Frame {
                            module: Arc::clone(module),
                            ..Frame::mark(CUT)
                        });
                        frames.len() as u32 - 1
                    }));
                }
                stack.frames.extend_from_slice(root);
                stacks.push(stack);
                stacks.len() as u32 - 1
            });
            sample.stack = location;
        }
    }

    /// Each thread's whole stacks have the same root: one of an interval is enough.
    fn learn(&mut self, samples: &[Sample], processes: &[Process], stacks: &[Stack], ends: &[End], frames: &[Frame]) {
        let mut seen: FastMap<(u32, u32), ()> = FastMap::default();
        for sample in samples {
            if ends[sample.stack as usize] != End::Root || seen.contains_key(&(sample.process, sample.tid)) {
                continue;
            }
            seen.insert((sample.process, sample.tid), ());
            let Some((root, starts)) = root_of(&stacks[sample.stack as usize].frames, frames) else {
                continue;
            };
            let process = &processes[sample.process as usize];
            let is_first = sample.tid == process.tgid;
            let other = if is_first {
                root.clone()
            } else {
                root[root.len() - starts..].to_vec()
            };
            self.put(thread(process, sample.tid), root);
            self.put(if is_first { program(process) } else { sibling(process) }, other);
        }
    }

    fn put(&mut self, key: Key, root: Vec<Frame>) {
        if let Some(known) = self.young.get(&key).or_else(|| self.old.get(&key))
            && known.len() >= root.len()
        {
            let known = Arc::clone(known);
            self.keep(key, known);
        } else {
            self.keep(key, root.into());
        }
    }

    fn keep(&mut self, key: Key, root: Root) {
        if self.young.len() >= MAX_ROOTS {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, root);
    }

    fn find(&self, sample: &Sample, process: &Process) -> Option<&Root> {
        let fallback = if sample.tid == process.tgid {
            program(process)
        } else {
            sibling(process)
        };
        let known = |key: &Key| self.young.get(key).or_else(|| self.old.get(key));
        known(&thread(process, sample.tid)).or_else(|| known(&fallback))
    }
}

/// The module that a cut stack's walk ended in; empty where nothing is known of it.
fn ended_in(stack: &Stack, frames: &[Frame]) -> Arc<str> {
    let last = stack.frames.last().map(|frame| &frames[*frame as usize]);
    match last {
        Some(frame) if frame.kind == FrameKind::Kernel => "".into(),
        Some(frame) if frame.kind == FrameKind::Jit && frame.module.is_empty() => MADE.into(),
        Some(frame) => Arc::clone(&frame.module),
        None => "".into(),
    }
}

fn thread(process: &Process, tid: u32) -> Key {
    Key::Thread {
        tgid: process.tgid,
        start_ticks: process.start_ticks,
        exec_count: process.exec_count,
        tid,
    }
}

fn sibling(process: &Process) -> Key {
    Key::Sibling {
        tgid: process.tgid,
        start_ticks: process.start_ticks,
        exec_count: process.exec_count,
    }
}

fn program(process: &Process) -> Key {
    Key::Program {
        path: Arc::clone(&process.executable_path),
        build_id: process.build_id.clone(),
    }
}

/// A thread's start and its first function, leaf first, and how many of them are the start; none where the stack does
/// not end in one that is known to be the same for each stack of its thread.
fn root_of(stack: &[u32], frames: &[Frame]) -> Option<(Vec<Frame>, usize)> {
    let outermost = stack
        .iter()
        .rev()
        .take(MAX_START_FRAMES)
        .map(|frame| &frames[*frame as usize]);
    let mut root: Vec<Frame> = Vec::new();
    let (mut starts, mut is_known, mut is_thread) = (0, false, true);
    for frame in outermost {
        let in_libc = is_libc(&frame.module);
        let function = frame.function.as_deref();
        if frame.kind == FrameKind::Kernel {
            break;
        } else if function.is_some_and(is_fixed_start) || (in_libc && function.is_none()) {
            is_known |= in_libc || function.is_some_and(|name| !plain(name).starts_with('_'));
            is_thread &=
                !function.is_some_and(|name| plain(name).starts_with("__libc_start") || plain(name) == "_start");
            root.push(frame.clone());
            starts += 1;
        } else if root.is_empty() && function.is_none() && !frame.inlined {
            // `_start` of a program without symbols.
            is_thread = false;
            root.push(frame.clone());
            starts += 1;
        } else {
            // The line in it is another one each time.
            if is_known && (is_thread && !in_libc && function.is_some() || function == Some("main")) {
                root.push(Frame {
                    file: None,
                    line: 0,
                    ..frame.clone()
                });
            }
            break;
        }
    }
    root.reverse();
    is_known.then_some((root, starts))
}

/// Functions that nothing calls, and those between them and a thread's own first function, whatever else may be above.
const STARTS: [&str; 9] = [
    "_start",
    "__libc_start_main",
    "__libc_start_call_main",
    "__libc_start_main_impl",
    "start_thread",
    "clone",
    "__clone",
    "clone3",
    "__clone3",
];

fn is_fixed_start(function: &str) -> bool {
    STARTS.contains(&plain(function))
}

/// Go's are of a goroutine, which moves from thread to thread.
pub(super) fn is_start(function: &str) -> bool {
    let function = plain(function);
    STARTS.contains(&function) || ["runtime.goexit", "runtime.rt0_go"].contains(&function)
}

fn plain(function: &str) -> &str {
    let plain = function.split('@').next().unwrap_or(function);
    plain.strip_suffix(".abi0").unwrap_or(plain)
}

fn is_libc(module: &str) -> bool {
    let name = module.rsplit('/').next().unwrap_or(module);
    ["libc.so", "libc-", "libpthread"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::SampleKind;

    fn frame(module: &str, function: &str, line: u32) -> Frame {
        Frame {
            kind: FrameKind::Native,
            module: module.into(),
            function: (!function.is_empty()).then(|| function.into()),
            line,
            ..Frame::mark("")
        }
    }

    fn sample(tid: u32, stack: u32) -> Sample {
        Sample {
            kind: SampleKind::Cpu,
            value_ns: 0,
            wait_ns: 0,
            wait_class: None,
            woken: None,
            ts_unix_ns: 0,
            cpu: 0,
            tid,
            thread: "t".into(),
            process: 0,
            stack,
        }
    }

    const LIBC: &str = "/lib/x86_64-linux-gnu/libc.so.6";

    /// Leaf first: `_start` has no symbol, and the C library's inner function has none.
    fn main_thread() -> Vec<Frame> {
        vec![
            frame("/bin/p", "work", 3),
            frame("/bin/p", "main", 7),
            frame(LIBC, "", 0),
            frame(LIBC, "__libc_start_main@@GLIBC_2.34", 0),
            frame("/bin/p", "", 0),
        ]
    }

    fn names(stack: &Stack, frames: &[Frame]) -> Vec<String> {
        let name = |frame: &u32| frames[*frame as usize].function.as_deref().unwrap_or("?").to_owned();
        stack.frames.iter().map(name).collect()
    }

    #[test]
    fn roots() {
        assert!(is_start("_start") && is_start("__libc_start_main@@GLIBC_2.34") && is_start("runtime.goexit.abi0"));
        assert!(!is_start("main") && !is_start("restart_thread"));
    }

    #[test]
    fn a_cut_stack_gets_the_root_that_its_thread_has_shown() {
        let mut frames = main_thread();
        frames.extend([
            frame("/bin/p", "entry", 9),
            frame(LIBC, "start_thread", 0),
            frame(LIBC, "clone3", 0),
        ]);
        frames.push(frame("", "lost", 0));
        let stack = |frames: &[u32], truncated| Stack {
            frames: frames.to_vec(),
            truncated,
        };
        let mut stacks = vec![
            stack(&[0, 1, 2, 3, 4], false),
            stack(&[0, 5, 6, 7], false),
            stack(&[8], true),
        ];
        let ends = [End::Root, End::Root, End::Cut { is_marked: false }];
        let process = Process {
            tgid: 1,
            ..Process::default()
        };
        let mut samples = [sample(1, 2), sample(2, 2), sample(3, 2), sample(1, 0), sample(2, 1)];
        let mut roots = Roots::default();
        roots.complete(
            &mut samples,
            std::slice::from_ref(&process),
            &mut stacks,
            &ends,
            &mut frames,
        );
        let of = |at: usize| names(&stacks[samples[at].stack as usize], &frames);
        let main = ["lost", "[cut]", "main", "?", "__libc_start_main@@GLIBC_2.34", "?"];
        assert_eq!(of(0), main);
        assert_eq!(of(1), ["lost", "[cut]", "entry", "start_thread", "clone3"]);
        assert_eq!(
            of(2),
            ["lost", "[cut]", "start_thread", "clone3"],
            "of a thread that was never whole"
        );
        assert_eq!(of(3), names(&stacks[0], &frames), "what is whole stays so");
        assert!(stacks[samples[0].stack as usize].truncated);
        let mut mains = stacks[samples[0].stack as usize]
            .frames
            .iter()
            .map(|frame| &frames[*frame as usize]);
        assert!(mains.any(|frame| frame.function.as_deref() == Some("main") && frame.line == 0));
        // Of a thread of which nothing is known.
        let unknown = Process {
            tgid: 7,
            executable_path: "/bin/q".into(),
            ..Process::default()
        };
        let (mut stacks, mut samples) = (vec![stack(&[8], true)], [sample(7, 0)]);
        let end = [End::Cut { is_marked: false }];
        roots.complete(&mut samples, &[unknown], &mut stacks, &end, &mut frames);
        assert_eq!(names(&stacks[samples[0].stack as usize], &frames), ["lost", "[cut]"]);
        // Another process of the same program, in another interval.
        let mut frames = vec![frame("", "lost", 0)];
        let (mut stacks, mut samples) = (vec![stack(&[0], true)], [sample(9, 0)]);
        let other = Process { tgid: 9, ..process };
        let end = [End::Cut { is_marked: true }];
        roots.complete(&mut samples, &[other], &mut stacks, &end, &mut frames);
        assert_eq!(names(&stacks[samples[0].stack as usize], &frames)[1..], main[2..]);
    }

    #[test]
    fn a_cut_says_in_which_module_the_walk_ended() {
        let made = |kind| Frame {
            kind,
            function: None,
            ..frame("", "", 0)
        };
        let mut frames = vec![
            frame("/lib/libz.so.1", "inflate", 0),
            made(FrameKind::Jit),
            made(FrameKind::Unknown),
            Frame {
                kind: FrameKind::Kernel,
                ..frame("[kernel]", "read", 0)
            },
            frame("/bin/p", "work", 3),
        ];
        // The same module twice, with two frames.
        let ended = [vec![0], vec![4, 0], vec![1], vec![2], vec![3], vec![]];
        let mut stacks: Vec<Stack> = ended
            .into_iter()
            .map(|frames| Stack {
                frames,
                truncated: true,
            })
            .collect();
        let ends = [End::Cut { is_marked: false }; 6];
        let mut samples: Vec<Sample> = (0..6).map(|stack| sample(7, stack)).collect();
        let processes = [Process::default()];
        Roots::default().complete(&mut samples, &processes, &mut stacks, &ends, &mut frames);
        let marks: Vec<u32> = samples
            .iter()
            .map(|sample| *stacks[sample.stack as usize].frames.last().unwrap())
            .collect();
        let modules: Vec<&str> = marks
            .iter()
            .map(|mark| {
                let mark = &frames[*mark as usize];
                assert_eq!(
                    (mark.kind, mark.function.as_deref()),
                    (FrameKind::Unknown, Some("[cut]"))
                );
                &*mark.module
            })
            .collect();
        assert_eq!(modules, ["/lib/libz.so.1", "/lib/libz.so.1", "[jit]", "", "", ""]);
        assert_eq!(marks[0], marks[1], "one frame for each module");
        assert!(marks[0] != marks[2] && marks[3] == marks[5]);
    }

    #[test]
    fn what_is_not_fixed_is_no_root() {
        let go = [
            frame("/bin/g", "main.work", 1),
            frame("/bin/g", "runtime.goexit.abi0", 1),
        ];
        assert_eq!(root_of(&[0, 1], &go), None);
        // Without its name, `main` would be shown at an address that it had another time.
        let mut frames = main_thread();
        frames[1].function = None;
        let (root, starts) = root_of(&[0, 1, 2, 3, 4], &frames).unwrap();
        assert_eq!((root.len(), starts), (3, 3));
        assert_eq!(root_of(&[0], &frames), None);
    }
}
