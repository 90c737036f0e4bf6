//! Names that a program writes into its perf map while it runs.

use std::process::Command;

use super::{Talker, functions, has_tool, run, without_lines};

const SOURCE: &str = r#"
#include <stdio.h>
#include <sys/mman.h>
int main(void) {
    char *code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    printf("code %p\nend\n", code);
    fflush(stdout);
    getchar();
    return 0;
}
"#;

/// Also where it is replaced by another file, and where something is there that must not be opened.
#[test]
fn a_perf_map_in_the_root_of_the_process() {
    if !has_tool("cc") || !has_tool("mkfifo") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("program.c"), folder.path().join("program"));
    std::fs::write(&source, SOURCE).unwrap();
    run(Command::new("cc").arg("-o").arg(&program).arg(&source));
    let mut talker = Talker::start(&mut Command::new(&program));
    let map = std::path::PathBuf::from(format!("/tmp/perf-{}.map", talker.key.tgid));
    let address = talker.address("code");
    let mut namer = without_lines();
    let mut name_at = |talker: &mut Talker, now_s: u64| {
        let location = talker.table.location(talker.key, address, true, now_s * 1_000_000_000);
        let source = talker.table.source(talker.key, location.source, now_s * 1_000_000_000);
        let named = super::name_locations(&mut namer, &[(location, source)]);
        functions(&named)[0].map(str::to_owned)
    };
    // A pipe that nobody writes to would keep its reader for ever.
    run(Command::new("mkfifo").arg(&map));
    assert_eq!(name_at(&mut talker, 2), None);
    std::fs::remove_file(&map).unwrap();
    std::fs::write(&map, format!("{address:x} 10 first\n")).unwrap();
    assert_eq!(name_at(&mut talker, 4).as_deref(), Some("first"));
    std::fs::remove_file(&map).unwrap();
    std::fs::write(&map, format!("{address:x} 10 second\n")).unwrap();
    assert_eq!(name_at(&mut talker, 6).as_deref(), Some("second"));
    std::fs::write(&map, format!("{address:x} 10 third, in the same file\n")).unwrap();
    assert_eq!(name_at(&mut talker, 8).as_deref(), Some("third, in the same file"));
    std::fs::remove_file(&map).unwrap();
}
