//! Requests that a server must refuse or sort out, each made from a good one.

use std::io::Write;

use anyhow::{Context, Result};
use clap::ValueEnum;
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use prost::Message;

/// What is wrong with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Spoil {
    /// Nothing: for comparison.
    Good,
    /// The last third is missing.
    Truncated,
    /// Bytes that are no protobuf message.
    Garbage,
    /// A sample names a stack that is not in the table.
    Stack,
    /// A location names a mapping with a negative index.
    Mapping,
    /// A string index of a function is far outside of the table.
    String,
    /// Time stamps ten years ahead.
    Future,
    /// Time stamps of the year 1970.
    Past,
    /// A gigabyte of zeros, compressed to less than 100 KB (zstd).
    Bomb,
}

const YEAR_NS: u64 = 365 * 86_400 * 1_000_000_000;

/// The body, uncompressed except for the bomb.
pub(crate) fn body(good: &[u8], spoil: Spoil) -> Result<Vec<u8>> {
    let mut request = ExportProfilesServiceRequest::decode(good).context("the good request can't be decoded")?;
    match spoil {
        Spoil::Good => {}
        Spoil::Truncated => return Ok(good.get(..good.len() * 2 / 3).unwrap_or_default().to_vec()),
        Spoil::Garbage => {
            return Ok((0..50_000_u32)
                .map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8)
                .collect());
        }
        Spoil::Bomb => return bomb(),
        Spoil::Stack => each_sample(&mut request, |sample| sample.stack_index = 1_000_000),
        Spoil::Mapping => request
            .dictionary
            .iter_mut()
            .flat_map(|dictionary| &mut dictionary.location_table)
            .for_each(|location| location.mapping_index = -7),
        Spoil::String => request
            .dictionary
            .iter_mut()
            .flat_map(|dictionary| &mut dictionary.function_table)
            .for_each(|function| function.name_strindex = i32::MAX),
        Spoil::Future => each_sample(&mut request, |sample| {
            sample
                .timestamps_unix_nano
                .iter_mut()
                .for_each(|time| *time += 10 * YEAR_NS);
        }),
        Spoil::Past => each_sample(&mut request, |sample| {
            sample
                .timestamps_unix_nano
                .iter_mut()
                .for_each(|time| *time = *time % 1_000_000_000 + 1);
        }),
    }
    Ok(request.encode_to_vec())
}

fn each_sample(
    request: &mut ExportProfilesServiceRequest,
    mut spoil: impl FnMut(&mut opentelemetry_proto::tonic::profiles::v1development::Sample),
) {
    let scopes = request
        .resource_profiles
        .iter_mut()
        .flat_map(|resource| &mut resource.scope_profiles);
    scopes
        .flat_map(|scope| &mut scope.profiles)
        .flat_map(|profile| &mut profile.samples)
        .for_each(&mut spoil);
}

/// Zeros are field number 0, which no message has: a server that decompresses it all sees nothing good either.
fn bomb() -> Result<Vec<u8>> {
    let mut encoder = zstd::Encoder::new(vec![], 19).context("can't compress")?;
    let zeros = vec![0; 1 << 20];
    for _ in 0..1024 {
        encoder.write_all(&zeros)?;
    }
    encoder.finish().context("can't compress")
}
