//! What a batch consists of, in the figures by which a synthetic one can be held against a recorded one.

use std::collections::HashSet;

use anyhow::{Context, Result};
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use prost::Message;
use serde_json::{Value, json};

/// Counts of an encoded request; per batch, bytes plain and compressed as the agent does.
pub(crate) fn batch(request: &[u8]) -> Result<Value> {
    let decoded = ExportProfilesServiceRequest::decode(request).context("not a request")?;
    let dictionary = decoded.dictionary.context("a batch has a dictionary")?;
    let samples: Vec<_> = decoded
        .resource_profiles
        .iter()
        .flat_map(|resource| &resource.scope_profiles)
        .flat_map(|scope| &scope.profiles)
        .flat_map(|profile| &profile.samples)
        .collect();
    let times: usize = samples.iter().map(|sample| sample.timestamps_unix_nano.len()).sum();
    let stacks: HashSet<i32> = samples.iter().map(|sample| sample.stack_index).collect();
    let frames: usize = stacks
        .iter()
        .filter_map(|stack| dictionary.stack_table.get(usize::try_from(*stack).ok()?))
        .map(|stack| stack.location_indices.len())
        .sum();
    Ok(json!({
        "samples": times,
        "groups": samples.len(),
        "distinct_stacks": stacks.len(),
        "mean_depth": frames as f64 / stacks.len().max(1) as f64,
        "locations": dictionary.location_table.len(),
        "strings": dictionary.string_table.len(),
        "string_bytes": dictionary.string_table.iter().map(String::len).sum::<usize>(),
        "plain_bytes": request.len(),
        "compressed_bytes": zstd::bulk::compress(request, 0).context("can't compress")?.len(),
    }))
}
