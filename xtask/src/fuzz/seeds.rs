//! What each target starts from: this machine's own files and parts of them, and texts as others write them.
//!
//! Never the environment of a process: it may hold secrets, and corpora are handed around.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::elf::{cut_pclntab, section};
use crate::artifacts::Profile;
use crate::{repo, run};

/// Larger files are mutated too slowly to be of use.
const MAX_FILE_BYTES: u64 = 40 * 1024;
const MAX_FILES: usize = 40;
const MAX_SECTION_BYTES: usize = 8 * 1024;
const MAX_SYMBOLS: usize = 400;
/// Where the code of the files lies that the targets make around a section.
const CODE: u64 = 0x1_0200;

/// Writes the seeds of a target into an empty folder; how many there are.
pub(super) fn gather(target: &str, into: &Path) -> Result<usize> {
    if into.exists() {
        fs::remove_dir_all(into).with_context(|| format!("can't empty {}", into.display()))?;
    }
    fs::create_dir_all(into).with_context(|| format!("can't make {}", into.display()))?;
    let seeds = match target {
        "elf" => programs().into_iter().chain(built(into)?).collect(),
        "table" => programs(),
        "frames" => frames(into)?,
        "pclntab" => pclntabs(into)?,
        "mini-debug" => packed(into)?,
        "demangle" => symbols(),
        "proc" => texts(&[
            "/proc/self/maps",
            "/proc/self/stat",
            "/proc/self/status",
            "/proc/self/cmdline",
            "/proc/modules",
            "/sys/devices/system/cpu/online",
        ]),
        "otlp" => requests(&["good"])?,
        "body" => requests(&["good"])?
            .iter()
            .flat_map(|plain| compressed(plain))
            .collect(),
        _ => made_up(target),
    };
    for (number, seed) in seeds.iter().enumerate() {
        let path = into.join(format!("{number:04}"));
        fs::write(&path, seed).with_context(|| format!("can't write {}", path.display()))?;
    }
    Ok(seeds.len())
}

/// Small ELF files, the smallest first.
fn programs() -> Vec<Vec<u8>> {
    let libraries = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    let mut files: Vec<(u64, PathBuf)> = ["/usr/bin", "/usr/lib", "/usr/lib64", &libraries]
        .iter()
        .filter_map(|folder| fs::read_dir(folder).ok())
        .flat_map(|folder| folder.flatten())
        .filter_map(|entry| Some((fs::metadata(entry.path()).ok()?.len(), entry.path())))
        .filter(|(bytes, _)| *bytes <= MAX_FILE_BYTES)
        .collect();
    files.sort();
    let read = files.into_iter().filter_map(|(_, path)| fs::read(path).ok());
    let mut programs: Vec<Vec<u8>> = read.filter(|file| file.starts_with(b"\x7fELF")).collect();
    programs.dedup();
    programs.truncate(MAX_FILES);
    programs
}

fn frames(dir: &Path) -> Result<Vec<Vec<u8>>> {
    // The first byte says which section and machine.
    let marked = |mark: u8, content: &[u8]| {
        let content = &content[..content.len().min(MAX_SECTION_BYTES)];
        [&[mark], content].concat()
    };
    let mut seeds: Vec<Vec<u8>> = vec![];
    for program in programs() {
        seeds.extend(section(&program, ".eh_frame").map(|content| marked(0, content)));
    }
    for (mark, compressed) in [(4, "-gz=none"), (6, "-gz=zlib")] {
        // Linked, since a function at address zero is one that the linker has left out.
        let program = dir.join("program");
        compile(&program, &["-g", "-fno-asynchronous-unwind-tables", compressed])?;
        let file = take(&program)?;
        seeds.extend(section(&file, ".debug_frame").map(|content| marked(mark, content)));
    }
    Ok(seeds)
}

const SOURCE: &str = "int shown(int n) { volatile char room[256]; room[n] = n; return room[n] + n; }\n\
static __attribute__((noinline)) int hidden(int n) { return n ? shown(n) * hidden(n - 1) : shown(n); }\n\
int main(int argc, char **argv) { return hidden(argc) + !argv; }\n";

fn compile(into: &Path, flags: &[&str]) -> Result<()> {
    let source = into.with_extension("c");
    fs::write(&source, SOURCE).with_context(|| format!("can't write {}", source.display()))?;
    let mut compiler = Command::new("cc");
    run::output(compiler.args(["-O1", "-o"]).arg(into).arg(&source).args(flags))?;
    fs::remove_file(&source).with_context(|| format!("can't remove {}", source.display()))
}

/// Reads a file that was made on the way, and removes it.
fn take(path: &Path) -> Result<Vec<u8>> {
    let file = fs::read(path).with_context(|| format!("can't read {}", path.display()))?;
    fs::remove_file(path).with_context(|| format!("can't remove {}", path.display()))?;
    Ok(file)
}

/// A program with all its symbols and lines, compressed in both ways, and with a link to a debug file.
fn built(dir: &Path) -> Result<Vec<Vec<u8>>> {
    let path = dir.join("program");
    let mut seeds = vec![];
    for compressed in ["-gz=none", "-gz=zlib"] {
        compile(&path, &["-g", compressed])?;
        seeds.push(take(&path)?);
    }
    compile(&path, &["-rdynamic"])?;
    let debug = path.with_extension("debug");
    fs::copy(&path, &debug).with_context(|| format!("can't copy {}", path.display()))?;
    let link = format!("--add-gnu-debuglink={}", debug.display());
    if repo::find_program("objcopy").is_some() {
        run::output(Command::new("objcopy").args([&link, "--strip-all"]).arg(&path))?;
    }
    take(&debug)?;
    seeds.push(take(&path)?);
    Ok(seeds)
}

/// A program as `strip` packs its symbols: with xz's checksums, and without, so that changes get behind them.
fn packed(dir: &Path) -> Result<Vec<Vec<u8>>> {
    if repo::find_program("xz").is_none() {
        println!("mini-debug starts from nothing: there is no xz here");
        return Ok(vec![]);
    }
    let path = dir.join("program");
    let mut seeds = vec![];
    for check in ["none", "crc32", "crc64", "sha256"] {
        compile(&path, &[])?;
        run::output(Command::new("xz").args([&format!("--check={check}"), "-6"]).arg(&path))?;
        seeds.push(take(&path.with_extension("xz"))?);
    }
    Ok(seeds)
}

/// The first functions of a Go program, as many as make a small table.
fn pclntabs(dir: &Path) -> Result<Vec<Vec<u8>>> {
    let Some(go) = repo::find_program("go") else {
        println!("pclntab starts from nothing: there is no go here");
        return Ok(vec![]);
    };
    let (source, program) = (dir.join("main.go"), dir.join("program"));
    fs::write(&source, "package main\n\nfunc main() { println(1) }\n")
        .with_context(|| format!("can't write {}", source.display()))?;
    let mut seeds = vec![];
    for (mark, arch) in [(0, "amd64"), (1, "arm64")] {
        let mut build = Command::new(&go);
        build.args(["build", "-o"]).arg(&program).arg(&source);
        run::output(
            build
                .env("GOARCH", arch)
                .env("CGO_ENABLED", "0")
                .env("GO111MODULE", "off")
                .stderr(Stdio::null()),
        )?;
        let file = take(&program)?;
        let table = section(&file, ".gopclntab").context("a Go program has pclntab")?;
        for functions in [1, 4, 16, 48] {
            seeds.push([&[mark], &*cut_pclntab(table, functions, CODE)?].concat());
        }
    }
    take(&source)?;
    Ok(seeds)
}

/// Names of C++ from its library and of Rust from this program.
fn symbols() -> Vec<Vec<u8>> {
    let library = format!("/usr/lib/{}-linux-gnu/libstdc++.so.6", std::env::consts::ARCH);
    let mut symbols = vec![];
    for (file, section_name) in [(library.as_str(), ".dynstr"), ("/proc/self/exe", ".strtab")] {
        let file = fs::read(file).unwrap_or_default();
        let names = section(&file, section_name)
            .unwrap_or_default()
            .split(|byte| *byte == 0);
        let mangled = names.filter(|name| name.starts_with(b"_Z") || name.starts_with(b"_R"));
        let mut mangled: Vec<Vec<u8>> = mangled.map(<[u8]>::to_vec).collect();
        mangled.sort_by_key(Vec::len);
        let step = (mangled.len() / MAX_SYMBOLS).max(1);
        symbols.extend(mangled.into_iter().step_by(step).take(MAX_SYMBOLS));
    }
    symbols.extend([b"_RNvC6_123foo3bar".to_vec(), b"_RINvNtC3std3mem8align_ofdE".to_vec()]);
    symbols
}

fn texts(paths: &[&str]) -> Vec<Vec<u8>> {
    paths.iter().filter_map(|path| fs::read(path).ok()).collect()
}

/// Requests as the synthetic fleet sends them; small ones.
fn requests(kinds: &[&str]) -> Result<Vec<Vec<u8>>> {
    let mut requests = vec![];
    for (kind, samples) in kinds.iter().flat_map(|kind| [(kind, "1"), (kind, "7")]) {
        let mut load = Command::new(crate::e2e::load_program(Profile::Debug)?);
        let output = load
            .args(["--spoil", kind, "--samples", samples, "--stacks", "3"])
            .output();
        requests.push(output.context("can't start the load")?.stdout);
    }
    Ok(requests)
}

/// As senders compress.
fn compressed(plain: &[u8]) -> Vec<Vec<u8>> {
    let of = |program: &str| {
        let mut child = Command::new(program)
            .args(["-c"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .ok()?;
        child.stdin.take()?.write_all(plain).ok()?;
        child.wait_with_output().ok().map(|output| output.stdout)
    };
    ["gzip", "zstd"]
        .iter()
        .filter_map(|program| of(program))
        .chain([plain.to_vec()])
        .collect()
}

/// What others write, by hand.
fn made_up(target: &str) -> Vec<Vec<u8>> {
    let id = "0123456789abcdef".repeat(4);
    let pod = "podaaaaaaaa_bbbb_cccc_dddd_eeeeeeeeeeee.slice";
    match target {
        "perf-map" => vec![
            b"\x20\x00401000 20 first\n401020 40 LazyCompile:~second a.js:1\n401010 20 third\n".to_vec(),
            b"\x05\x000x10 0x8 name with spaces\nnonsense\n20 0 empty\nffffffffffffffff 2 beyond\n".to_vec(),
        ],
        "metadata" => vec![
            format!("0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-{pod}/cri-containerd-{id}.scope\n")
                .into(),
            format!("12:memory:/docker/{id}\n1:name=systemd:/docker/{id}\n0::/\n").into(),
            format!("0::/kubepods/besteffort/{pod}:cri-containerd:{id}\n").into(),
            b"0::/machine.slice/machine-a\\x2db.scope/init.scope\n".to_vec(),
            b"0::/lxc.payload.name/system.slice/cron.service\n".to_vec(),
            b"OTEL_SERVICE_NAME=a\0OTEL_RESOURCE_ATTRIBUTES=service.name=%41b,k8s.pod.name=p,k8s.namespace.name=n\0"
                .to_vec(),
            format!("web-7d4b9c6f5-x2x5z_shop_web-{id}.log").into(),
            b"{\"Name\":\"/web\"}".to_vec(),
            format!("[{{\"id\":\"{id}\",\"names\":[\"web\"]}}]").into(),
        ],
        "answer" => vec![
            b"\x01\xc8\x00".to_vec(),
            b"\x01\xc8\x00\x0a\x08\x08\x01\x12\x04full".to_vec(),
            b"\x03\xc8\x00\x0a\x08\x08\x01\x12\x04full".to_vec(),
            b"\x00\x90\x01{\"error\":{\"message\":\"no such table\"}}".to_vec(),
            b"\x00\xf7\x01<html>".to_vec(),
        ],
        "otlp-json" => vec![
            br#"{"resourceProfiles":[{"resource":{"attributes":[{"key":"host.name","value":{"stringValue":"n"}}]},"scopeProfiles":[{"profiles":[{"sampleType":{"typeStrindex":1},"period":"7","samples":[{"stackIndex":1,"values":["3",-1],"timestampsUnixNano":[1,"2"]}]}]}]}],"dictionary":{"stringTable":["","cpu"],"stackTable":[{},{"locationIndices":[1]}],"locationTable":[{},{"lines":[{"functionIndex":0}]}]}}"#
                .to_vec(),
            b"{\"dictionary\":{\"attribute_table\":[null,{\"key_strindex\":1,\"value\":{\"doubleValue\":1e3}}]}}".to_vec(),
        ],
        "pprof" => vec![
            // A type, a sample of a location, which has a mapping and a line of a function; texts.
            [
                b"\x0a\x04\x08\x01\x10\x02\x12\x06\x0a\x01\x01\x12\x01\x05\x1a\x04\x08\x01\x28\x03".as_slice(),
                b"\x22\x0c\x08\x01\x10\x01\x18\x10\x22\x04\x08\x01\x10\x05\x2a\x06\x08\x01\x10\x03\x28\x09",
                b"\x32\x00\x32\x03cpu\x32\x0bnanoseconds\x32\x04main\x5a\x04\x08\x01\x10\x02\x60\x0a",
            ]
            .concat(),
        ],
        "selector" => vec![
            b"{\"acme.team\"=\"red\",service.version!=\"1\",version=~\"a.*\"}".to_vec(),
            b"{}".to_vec(),
            b"{service=\"kubelet\",node=~\"db-.*\",cpu!=\"0\",thread!~\"a|b\"}".to_vec(),
            b"{ unit = 'a\\'b' , tid=\"\\n\\u00e4\" }".to_vec(),
        ],
        "sql" => vec![
            b"SELECT service, count(*) FROM samples WHERE cpu = 1 AND mode IN ('user', 'kernel') GROUP BY service"
                .to_vec(),
            b"WITH a AS (SELECT 1 AS x), b AS (SELECT x + 1 AS x FROM a) SELECT CASE WHEN x > 1 THEN [x][1] END FROM b"
                .to_vec(),
            b"EXPLAIN SELECT a::int::array<int>, interval '1' day FROM (SELECT 1 AS a) t UNION ALL SELECT 2, NULL"
                .to_vec(),
            b"SELECT - - NOT ((1)), 1 + 1 + 1, $1, {'a': 1}, DATE '2026-11-21' FROM t JOIN u USING (x)".to_vec(),
        ],
        "share" => vec![
            br#"{"version":"0.1.0","short_names":[["environment","deployment.environment.name",false],["version","service.version",true]],"asked":{"profile":"cpu","selector":"{service=\"a\"}","window":{"from_ns":1795248000000000000,"until_ns":1795251600000000000},"except":null,"unit":"nanoseconds","values":{"least":-9223372036854775808,"most":9223372036854775807},"lengths":{"least":0,"most":9}},"counting":{"stacks":{"windows":[[{"window":{"from_ns":1795248000000000000,"until_ns":1795251600000000000},"step_ns":450000000001,"count":8,"grid":{"first_ns":1795248000000000000,"grain_ns":60000000000,"count":60}},null]],"limit":1000000}},"known":{"series":{"2026-11-21":[1]},"processes":{},"more":false},"files":[{"table":"samples","path":"hour=2026-11-21T08/part-0.parquet","partition":"2026-11-21T08","bytes":9,"rows":7,"groups":[0,2]}]}"#
                .to_vec(),
        ],
        // By stack: of four steps, of two windows; by label and stack; cells; samples one by one.
        "partial" => vec![
            b"\x00\x01\x03\x96\x01\xbc\x7a\x00\x64\x01\xb2\x80\x80\x80\x80\x80\x80\x80\x80\x01\x03\x02\x05\x07\x01\x00\x03\x00\x02\x01\x01".to_vec(),
            b"\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00".to_vec(),
            b"\x02\x01\x00\x00\x00\x00\x00\x00\x01\x01\x03web\x02\x64\x00\x00\x04\x01\x01\x05\x64".to_vec(),
            b"\x03\x01\x00\x00\x00\x00\x00\x00\x00\x1c".to_vec(),
            b"\x04\x01\x01\x02\x01n\x04user\x01\x02\x00\x00\x01\x00\x00\x02\x02\x02\x64\x00".to_vec(),
        ],
        "time" => vec![
            b"now-1h\nnow".to_vec(),
            b"2026-11-21T08:00:00Z\n2026-11-21T09:00:00.5+01:00".to_vec(),
            b"1795248000000\nnow+7d".to_vec(),
            b"250ms\nnow".to_vec(),
        ],
        "parameters" => vec![
            b"query={service=\"a\"}&from=now-1h&until=now&type=cpu&step=10s&limit=5&by=thread".to_vec(),
            b"base_from=now-2h&base_until=now-1h&base_query=%7B%7D&normalize=share&format=svg".to_vec(),
            b"match=a%7Cb&root=%5Emain%24&transform=merge_recursion&min_share=0.01".to_vec(),
        ],
        _ => vec![],
    }
}
