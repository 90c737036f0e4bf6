//! Profiles in pprof's format from a few words, as a Go program makes them.

/// A protobuf field with a number.
pub(crate) fn int(field: u32, value: u64) -> Vec<u8> {
    let mut wire = Vec::new();
    prost::encoding::uint64::encode(field, &value, &mut wire);
    wire
}

/// One with contents.
pub(crate) fn blob(field: u32, content: &[u8]) -> Vec<u8> {
    let mut wire = Vec::new();
    prost::encoding::bytes::encode(field, &content.to_vec(), &mut wire);
    wire
}

/// The place of a text, which is added if it is not there.
fn place(texts: &mut Vec<String>, text: &str) -> u64 {
    let at = texts.iter().position(|known| known == text).unwrap_or_else(|| {
        texts.push(text.to_owned());
        texts.len() - 1
    });
    at as u64
}

/// Ticks of so long and their time. Of each sample: the label `thread.name`, the stack (root first, `;` between), how
/// many ticks.
pub(crate) fn pprof(samples: &[(&str, &str, u64)], period_ns: u64) -> Vec<u8> {
    let mut texts: Vec<String> = [
        "",
        "samples",
        "count",
        "cpu",
        "nanoseconds",
        "/usr/bin/app",
        "thread.name",
    ]
    .map(str::to_owned)
    .into();
    let mut wire = [
        blob(1, &[int(1, 1), int(2, 2)].concat()),
        blob(1, &[int(1, 3), int(2, 4)].concat()),
        blob(3, &[int(1, 1), int(5, 5)].concat()),
    ]
    .concat();
    let mut functions = Vec::new();
    for (thread, stack, ticks) in samples {
        let mut sample = Vec::new();
        for frame in stack.rsplit(';') {
            sample.extend(int(1, place(&mut functions, frame) + 1));
        }
        sample.extend([int(2, *ticks), int(2, ticks * period_ns)].concat());
        let label = [int(1, 6), int(2, place(&mut texts, thread))].concat();
        sample.extend(blob(3, &label));
        wire.extend(blob(2, &sample));
    }
    for (id, name) in (1..).zip(&functions) {
        let line = [int(1, id), int(2, 33)].concat();
        wire.extend(blob(4, &[int(1, id), int(2, 1), blob(4, &line)].concat()));
        let name = place(&mut texts, name);
        wire.extend(blob(5, &[int(1, id), int(2, name), int(5, 30)].concat()));
    }
    texts.iter().for_each(|text| wire.extend(blob(6, text.as_bytes())));
    wire.extend([blob(11, &[int(1, 3), int(2, 4)].concat()), int(12, period_ns)].concat());
    wire
}

/// Compressed as clients send it.
pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}
