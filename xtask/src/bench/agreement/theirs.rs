//! What each language's own profiler writes, in the form that both are compared in.
//!
//! In: text of py-spy, async-profiler, V8, stackprof or Excimer. Out: a profile of the language's own frames. Does no
//! input or output.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::Value;

use super::profile::Profile;

/// A function of JavaScript without a name.
pub(super) fn anonymous(file: &str) -> String {
    format!("<anonymous> ({file})")
}

/// The method of `Class.method`, and the function of `get size` or `new Queue`.
pub(super) fn last_word(name: &str) -> &str {
    name.rsplit(['.', ' ']).next().unwrap_or(name)
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Each line's frames, root first, and samples.
fn collapsed(text: &str) -> impl Iterator<Item = Result<(Vec<&str>, u64)>> {
    text.lines().filter(|line| !line.is_empty()).map(|line| {
        let (stack, samples) = line
            .rsplit_once(' ')
            .with_context(|| format!("no samples in the line {line}"))?;
        let samples = samples
            .parse()
            .with_context(|| format!("no number in the line {line}"))?;
        Ok((stack.split(';').filter(|frame| !frame.is_empty()).collect(), samples))
    })
}

/// `py-spy record --format raw --full-filenames`: `Class.method (/path/file.py:12)`.
pub(super) fn py_spy(text: &str) -> Result<Profile> {
    let mut profile = Profile::default();
    for line in collapsed(text) {
        let (frames, samples) = line?;
        let name = |frame: &&str| {
            let (function, place) = frame.rsplit_once(" (").unwrap_or((frame, ""));
            let file = place.rsplit_once(':').map_or(place, |(file, _)| file);
            format!("{function} ({})", base_name(file))
        };
        profile.add(frames.iter().map(name).collect(), samples);
    }
    Ok(profile)
}

/// async-profiler, `collapsed,ann`: Java's frames end in how they were run, such as `_[j]`, and others in nothing or
/// `_[k]`.
pub(super) fn async_profiler(text: &str) -> Result<Profile> {
    let mut profile = Profile::default();
    for line in collapsed(text) {
        let (frames, samples) = line?;
        let own = |frame: &&str| {
            let endings = ["_[j]", "_[i]", "_[0]", "_[1]"];
            let name = endings.iter().find_map(|ending| frame.strip_suffix(ending))?;
            Some(without_address(&name.replace('/', ".")))
        };
        profile.add(frames.iter().filter_map(own).collect(), samples);
    }
    Ok(profile)
}

/// A hidden class has its address behind its name, which is nobody's choice: `Lambda$1.0x00007f00.call`.
fn without_address(name: &str) -> String {
    let parts = name.split('.');
    let kept: Vec<&str> = parts.filter(|part| !part.starts_with("0x")).collect();
    kept.join(".")
}

/// A `.cpuprofile`: one node a calling context, and the node of each sample with the microseconds since the last one.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CpuProfile {
    nodes: Vec<CpuNode>,
    start_time: i64,
    samples: Vec<u64>,
    time_deltas: Vec<i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CpuNode {
    id: u64,
    call_frame: CallFrame,
    #[serde(default)]
    children: Vec<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallFrame {
    function_name: String,
    url: String,
}

/// The samples of V8's profiler in `[from, until)`, in microseconds of the monotonic clock.
pub(super) fn v8(text: &str, from_us: i64, until_us: i64) -> Result<Profile> {
    let told: CpuProfile = serde_json::from_str(text).context("V8's profile is not as expected")?;
    ensure!(
        told.samples.len() == told.time_deltas.len(),
        "V8's profile has another number of samples than of times"
    );
    let nodes: BTreeMap<u64, &CpuNode> = told.nodes.iter().map(|node| (node.id, node)).collect();
    let parents: BTreeMap<u64, u64> = told
        .nodes
        .iter()
        .flat_map(|node| node.children.iter().map(|child| (*child, node.id)))
        .collect();
    let mut profile = Profile::default();
    let mut time_us = told.start_time;
    for (sample, delta) in told.samples.iter().zip(&told.time_deltas) {
        time_us += delta;
        if time_us < from_us || time_us >= until_us {
            continue;
        }
        let mut stack = Vec::new();
        let mut reason = None;
        let mut at = Some(*sample);
        // No context is deeper than there are nodes.
        for _ in 0..=told.nodes.len() {
            let Some(node) = at.and_then(|id| nodes.get(&id)) else {
                break;
            };
            let frame = &node.call_frame;
            match frame.function_name.as_str() {
                "(garbage collector)" => reason = Some("in the garbage collector"),
                "(idle)" => reason = Some("idle"),
                "(program)" => reason = Some("in V8 without a stack"),
                // V8's own functions and regular expressions have no file.
                _ if frame.url.is_empty() => {}
                "" => stack.push(anonymous(base_name(&frame.url))),
                name => stack.push(format!("{} ({})", last_word(name), base_name(&frame.url))),
            }
            at = parents.get(&node.id).copied();
        }
        match reason {
            Some(reason) => profile.leave_out(reason, 1),
            None => {
                stack.reverse();
                profile.add(stack, 1);
            }
        }
    }
    Ok(profile)
}

/// stackprof's results with `raw`: the number of frames, their ids root first, the samples, and so on.
pub(super) fn stackprof(text: &str) -> Result<Profile> {
    let told: Value = serde_json::from_str(text).context("stackprof's profile is not JSON")?;
    let frame = |id: &Value| {
        let frame = &told["frames"][id.as_u64()?.to_string()];
        Some((frame["name"].as_str()?.to_owned(), frame["file"] == "<cfunc>"))
    };
    let raw = told["raw"]
        .as_array()
        .context("stackprof's profile has no raw samples")?;
    let mut profile = Profile::default();
    let mut rest = raw.as_slice();
    while let [count, behind @ ..] = rest {
        let count = count.as_u64().and_then(|count| usize::try_from(count).ok());
        let count = count.filter(|count| *count < behind.len());
        let (ids, behind) = behind.split_at(count.context("stackprof's raw samples end early")?);
        let [samples, behind @ ..] = behind else {
            break;
        };
        rest = behind;
        let samples = samples.as_u64().context("stackprof counts with other numbers")?;
        let frames = ids.iter().map(frame).collect::<Option<Vec<_>>>();
        let frames = frames.context("stackprof names no frame of that id")?;
        if frames.first().is_some_and(|(name, _)| name == "(garbage collection)") {
            profile.leave_out("in the garbage collector", samples);
            continue;
        }
        profile.add(without_doubles(frames), samples);
    }
    Ok(profile)
}

/// Without the frames that Ruby's own traces do not have: a second one of the main program, and one of a method in C
/// where what it called in C calls a piece of it back (`each_with_index`, `each`, `each_with_index`).
fn without_doubles(frames: Vec<(String, bool)>) -> Vec<String> {
    let mut kept: Vec<(String, bool)> = Vec::with_capacity(frames.len());
    for frame in frames {
        let is_double = match kept.as_slice() {
            [main] => main.0 == "<main>" && frame.0 == main.0,
            [.., outer, (_, true)] => frame.1 && *outer == frame,
            _ => false,
        };
        if !is_double {
            kept.push(frame);
        }
    }
    kept.into_iter().map(|(name, _)| name).collect()
}

/// Excimer's `formatCollapsed`: files by their path, closures by file and line.
pub(super) fn excimer(text: &str) -> Result<Profile> {
    let mut profile = Profile::default();
    for line in collapsed(text) {
        let (frames, samples) = line?;
        let name = |(depth, frame): (usize, &&str)| {
            let closure = frame.strip_prefix("{closure:").and_then(|rest| rest.split_once('('));
            match closure {
                Some((file, _)) => format!("{{closure}} ({})", base_name(file)),
                None if depth == 0 && frame.starts_with('/') => "{main}".to_owned(),
                None => (*frame).to_owned(),
            }
        };
        profile.add(frames.iter().enumerate().map(name).collect(), samples);
    }
    Ok(profile)
}

#[cfg(test)]
mod tests {
    use super::super::profile::tests::profile;
    use super::*;

    #[test]
    fn py_spy_names_functions_with_their_files() {
        let text = "<module> (/srv/shop.py:71);A.b.<locals>.c (/lib/a b/util.py:5) 3\n\
                    <module> (/srv/shop.py:72);A.b.<locals>.c (/lib/a b/util.py:7) 2\n\
                    find (<frozen importlib._bootstrap>:12) 1\n";
        let expected = profile(&[
            ("<module> (shop.py);A.b.<locals>.c (util.py)", 5),
            ("find (<frozen importlib._bootstrap>)", 1),
        ]);
        assert_eq!(py_spy(text).unwrap(), expected);
        assert!(py_spy("main (a.py:1) many").is_err());
    }

    #[test]
    fn async_profiler_tells_javas_frames_from_the_others() {
        let text = "start_thread;Main.main_[0];org/app/Main$$Lambda$7.0x00007f0840eb.call_[i];itable stub;memcpy 4\n\
                    start_thread;G1Work 1\n";
        let expected = profile(&[("Main.main;org.app.Main$$Lambda$7.call", 4), ("", 1)]);
        assert_eq!(async_profiler(text).unwrap(), expected);
    }

    #[test]
    fn v8_tells_the_time_of_each_sample() {
        let frame = |id: u64, name: &str, url: &str, children: &[u64]| {
            serde_json::json!({"id": id, "children": children,
                "callFrame": {"functionName": name, "url": url, "lineNumber": 3}})
        };
        let told = serde_json::json!({
            "startTime": 100,
            "samples": [5, 5, 4, 3, 6, 5],
            "timeDeltas": [10, 10, 10, 10, 10, 10],
            "nodes": [
                frame(1, "(root)", "", &[2, 3]),
                frame(2, "", "file:///srv/compile.js", &[4]),
                frame(3, "(garbage collector)", "", &[]),
                frame(4, "Queue.pop", "node:internal/queue", &[5]),
                frame(5, "RegExp: a", "", &[]),
                frame(6, "(program)", "", &[]),
            ],
        });
        let mut expected = profile(&[("<anonymous> (compile.js);pop (queue)", 2)]);
        expected.leave_out("in the garbage collector", 1);
        expected.leave_out("in V8 without a stack", 1);
        assert_eq!(v8(&told.to_string(), 115, 155).unwrap(), expected);
    }

    #[test]
    fn stackprof_counts_behind_each_stack() {
        let told = serde_json::json!({
            "frames": {
                "1": {"name": "<main>"},
                "2": {"name": "A#b"},
                "3": {"name": "(garbage collection)"},
                "4": {"name": "Array#each", "file": "<cfunc>"},
                "5": {"name": "Enumerable#each_with_index", "file": "<cfunc>"},
            },
            "raw": [3, 1, 1, 2, 4, 1, 3, 2, 2, 1, 2, 1, 5, 1, 5, 4, 5, 2, 1, 5, 1, 4, 2, 4, 2, 1],
        });
        let mut expected = profile(&[
            ("<main>;A#b", 5),
            ("<main>;Enumerable#each_with_index;Array#each;A#b", 1),
            ("<main>;Array#each;A#b;Array#each;A#b", 1),
        ]);
        expected.leave_out("in the garbage collector", 2);
        assert_eq!(stackprof(&told.to_string()).unwrap(), expected);
        let cut = serde_json::json!({"frames": {}, "raw": [3, 1, 1]});
        assert!(stackprof(&cut.to_string()).is_err());
    }

    #[test]
    fn excimer_calls_the_main_program_by_its_path() {
        let text = ";/srv/parse.php;work;{closure:/srv/A/Php7.php(27)};A\\B::c 2\n/srv/parse.php;work 1\n";
        let expected = profile(&[("{main};work;{closure} (Php7.php);A\\B::c", 2), ("{main};work", 1)]);
        assert_eq!(excimer(text).unwrap(), expected);
    }
}
