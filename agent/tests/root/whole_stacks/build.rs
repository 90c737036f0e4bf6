//! Compiles the programs, with the real compilers.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Where a row's files go, and what is run in the end.
pub(super) struct Workshop {
    pub(super) directory: PathBuf,
    /// Of the executable: longer than the 15 characters that the kernel keeps.
    pub(super) name: String,
}

/// In which language levels of functions are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    C,
    Cpp,
    Rust,
    Go,
}

/// Looks in PATH.
pub(super) fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut candidates = std::env::split_paths(&path).map(|directory| directory.join(name));
    candidates.find(|candidate| candidate.is_file())
}

/// What is in whole_stacks/programs.
pub(super) fn source(name: &str) -> PathBuf {
    programs().join(name)
}

fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/root/whole_stacks/programs")
}

impl Workshop {
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    pub(super) fn program(&self) -> PathBuf {
        self.path(&self.name)
    }

    pub(super) fn run(&self, command: &mut Command) {
        let output = command.current_dir(&self.directory).output();
        let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command:?}: {text}");
    }

    /// `compiler` with the flags that all programs have and these.
    pub(super) fn compile(&self, compiler: &str, source: &Path, output: &Path, flags: &[&str]) {
        let mut command = Command::new(compiler);
        command
            .arg("-I")
            .arg(programs())
            .args(["-O2", "-fomit-frame-pointer", "-o"]);
        self.run(command.arg(output).arg(source).args(flags));
    }

    /// A source of whole_stacks/programs becomes the program.
    pub(super) fn compile_program(&self, compiler: &str, name: &str, flags: &[&str]) {
        self.compile(compiler, &source(name), &self.program(), flags);
    }

    /// The same of a source that was written for this row.
    pub(super) fn compile_levels(&self, compiler: &str, language: Language, depth: usize, flags: &[&str]) {
        let source = self.levels(language, depth);
        self.compile(compiler, &source, &self.program(), flags);
    }

    /// `main` calls level_1, that calls level_2, and so on; the last one burns. Each has a frame of another size.
    pub(super) fn levels(&self, language: Language, depth: usize) -> PathBuf {
        let (extension, text) = match language {
            Language::C => ("c", c_levels(depth)),
            Language::Cpp => ("cpp", c_levels(depth)),
            Language::Rust => ("rs", rust_levels(depth)),
            Language::Go => ("go", go_levels(depth)),
        };
        let path = self.path(&format!("levels.{extension}"));
        std::fs::write(&path, text).unwrap();
        path
    }
}

/// Bytes of a level's own. Three hundred of them fit into the 32 KiB of a stack that wait for tables.
fn room(level: usize, depth: usize) -> usize {
    match depth {
        0..100 => 16 + level * 40 % 232,
        _ => 16 + level * 8 % 40,
    }
}

fn c_levels(depth: usize) -> String {
    let mut text = String::from("#include \"work.h\"\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n");
    for level in (1..=depth).rev() {
        let work = match level == depth {
            true => "burn_at_the_leaf(300000); unsigned long below = x;".to_owned(),
            false => format!("unsigned long below = level_{}(x + room[0]);", level + 1),
        };
        text += &format!(
            "KEPT unsigned long level_{level}(unsigned long x) {{ volatile char room[{}]; room[x & 7] = 1; {work} \
             return below * 3 + room[1] + x; }}\n",
            room(level, depth)
        );
    }
    text += "#ifdef __cplusplus\n}\n#endif\n";
    text + "int main(int count, char **arguments) { begin(arguments); while (goes_on()) sink += level_1(count); return 0; }\n"
}

fn rust_levels(depth: usize) -> String {
    let mut text = String::from(
        "use std::hint::black_box;\n#[inline(never)]\nfn burn_at_the_leaf() { for i in 0..50000u64 { black_box(i); } }\n",
    );
    for level in (1..=depth).rev() {
        let work = match level == depth {
            true => "burn_at_the_leaf(); let below = x;".to_owned(),
            false => format!("let below = level_{}(x + u64::from(room[1]));", level + 1),
        };
        text += &format!(
            "#[inline(never)]\nfn level_{level}(x: u64) -> u64 {{ let room = black_box([x as u8; {}]); {work} \
             black_box(below) * 3 + u64::from(room[0]) + x }}\n",
            room(level, depth)
        );
    }
    // What a process has used: fields 14 and 15 of its status, in hundredths of a second.
    text + "fn used() -> f64 {
    let stat = std::fs::read_to_string(\"/proc/self/stat\").unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}
fn main() {
    let limit: f64 = std::env::args().nth(1).unwrap().parse().unwrap();
    while used() < limit {
        for x in 0..20 {
            black_box(level_1(x % 3));
        }
    }
}
"
}

fn go_levels(depth: usize) -> String {
    let mut text = String::from(
        "package main
import (\"os\"; \"strconv\"; \"syscall\")
var sink uint64
var garbage [][]byte
//go:noinline
func burnAtTheLeaf() { for i := uint64(0); i < 50000; i++ { sink += i } }
func used() float64 {
	var usage syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}
func main() {
	limit, _ := strconv.ParseFloat(os.Args[1], 64)
	for used() < limit {
		// A goroutine of its own begins with a small stack, which has to grow.
		done := make(chan uint64)
		go inGoroutine(done)
		sink += <-done + level_1(1)
		garbage = append(garbage, make([]byte, 10000))
		if len(garbage) > 1000 { garbage = nil }
	}
}
//go:noinline
func inGoroutine(done chan uint64) { done <- level_1(2) }
",
    );
    for level in (1..=depth).rev() {
        let work = match level == depth {
            true => "burnAtTheLeaf(); below := x".to_owned(),
            false => format!("below := level_{}(x + uint64(room[1]))", level + 1),
        };
        text += &format!(
            "//go:noinline\nfunc level_{level}(x uint64) uint64 {{ var room [{}]byte; room[x & 7] = 1; {work}; \
             return below * 3 + uint64(room[x & 3]) + x }}\n",
            room(level, depth)
        );
    }
    text
}
