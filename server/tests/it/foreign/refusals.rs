//! One profile of a request is broken: the other one is stored, and the sender is told, in the answer and on the list
//! of nodes.

use crate::ingest::App;
use crate::support::{Sender, get, now_ns};
use opentelemetry_proto::tonic::collector::profiles::v1development::{
    ExportProfilesServiceRequest, ExportProfilesServiceResponse,
};
use opentelemetry_proto::tonic::profiles::v1development::{Profile, ProfilesDictionary};
use prost::Message;

type Break = fn(&mut Profile, &mut ProfilesDictionary);

/// An agent's batch without its identity, and after its profile the same one broken.
fn both(break_it: Break) -> ExportProfilesServiceRequest {
    let mut request = Sender::new("node-a", 5).batch(1, now_ns());
    let resource = &mut request.resource_profiles[0];
    resource
        .resource
        .as_mut()
        .unwrap()
        .attributes
        .retain(|one| !one.key.starts_with("stakeout."));
    let mut broken = resource.scope_profiles[0].profiles[0].clone();
    break_it(&mut broken, request.dictionary.as_mut().unwrap());
    request.resource_profiles[0].scope_profiles[0].profiles.push(broken);
    request
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_profile_costs_itself_and_no_other() {
    let app = App::start().await;
    let breaks: [(&str, Break); 7] = [
        ("stack_table[999]", |profile, _| profile.samples[4].stack_index = 999),
        ("stack_table[-3]", |profile, _| profile.samples[0].stack_index = -3),
        ("attribute_table[777]", |profile, _| {
            profile.samples[4].attribute_indices.push(777)
        }),
        ("string_table[996]", |profile, _| {
            profile.sample_type.as_mut().unwrap().type_strindex = 996
        }),
        ("time stamps", |profile, _| profile.samples[3].values = vec![1, 2, 3]),
        ("location_table[66]", |profile, tables| {
            tables.stack_table.push(Default::default());
            let last = tables.stack_table.len() - 1;
            tables.stack_table[last].location_indices = vec![66_666];
            profile.samples[2].stack_index = last as i32;
        }),
        ("string_table[555]", |profile, tables| {
            tables.attribute_table.push(Default::default());
            let last = tables.attribute_table.len() - 1;
            tables.attribute_table[last].key_strindex = 55_555;
            profile.samples[2].attribute_indices.push(last as i32);
        }),
    ];
    for (at, (named, break_it)) in breaks.into_iter().enumerate() {
        let answer = app.post_plain(&both(break_it)).await;
        assert_eq!(answer.status, 200, "{named}: {answer:?}");
        let told = ExportProfilesServiceResponse::decode(answer.body.as_ref()).unwrap();
        let partial = told.partial_success.unwrap();
        assert_eq!(partial.rejected_profiles, 1, "{named}");
        assert!(
            partial.error_message.contains(named.trim_end_matches(']')),
            "{named}: {}",
            partial.error_message
        );
        assert_eq!(answer.headers["stakeout-rejected-samples"], "5", "{named}");
        assert_eq!(app.stored(), 5 * (at as u64 + 1), "{named}");
    }
    let nodes = get(&app.address, "/api/v1/nodes").await.json();
    let node = &nodes["nodes"][0];
    assert_eq!(
        (&node["node"], &node["samples_stored"]),
        (&"node-a".into(), &35.into()),
        "{nodes}"
    );
    assert_eq!(node["refusals"][0]["reason"], "bad_profile", "{nodes}");
    assert_eq!(node["refusals"][0]["count"], 7, "{nodes}");
    assert!(
        node["refusals"][0]["message"]
            .as_str()
            .unwrap()
            .contains("string_table"),
        "{nodes}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_is_no_text_costs_its_profile() {
    let app = App::start().await;
    // The other profile's samples end in a function of its own, whose name's first byte is then broken in the body.
    let request = both(|profile, tables| {
        tables.string_table.push("spoiled".to_owned());
        let mut function = tables.function_table[1];
        function.name_strindex = tables.string_table.len() as i32 - 1;
        tables.function_table.push(function);
        let mut location = tables.location_table[1].clone();
        location.lines[0].function_index = tables.function_table.len() as i32 - 1;
        tables.location_table.push(location);
        tables.stack_table.push(Default::default());
        let last = tables.stack_table.len() - 1;
        tables.stack_table[last].location_indices = vec![tables.location_table.len() as i32 - 1];
        profile.samples[1].stack_index = last as i32;
    });
    let mut wire = request.encode_to_vec();
    let at = wire.windows(7).position(|bytes| bytes == b"spoiled").unwrap();
    wire[at] = 0xff;
    let answer = crate::support::post(&app.address, wire, &[]).await.unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    let partial = ExportProfilesServiceResponse::decode(answer.body.as_ref())
        .unwrap()
        .partial_success
        .unwrap();
    assert_eq!(partial.rejected_profiles, 1);
    assert!(partial.error_message.contains("UTF-8"), "{}", partial.error_message);
    assert_eq!(app.stored(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_to_come_again_is_not_shown_as_stored() {
    let app = App::start().await;
    let ahead_ns = now_ns() + 48 * 3_600_000_000_000;
    for (until_ns, status, stored) in [(ahead_ns, 503, 0), (ahead_ns, 503, 0), (now_ns(), 200, 5)] {
        let mut request = Sender::new("node-a", 5).batch(1, until_ns);
        let resource = request.resource_profiles[0].resource.as_mut().unwrap();
        resource.attributes.retain(|one| !one.key.starts_with("stakeout."));
        assert_eq!(app.post_plain(&request).await.status, status);
        let nodes = get(&app.address, "/api/v1/nodes").await.json();
        let node = nodes["nodes"]
            .as_array()
            .unwrap()
            .iter()
            .find(|node| node["node"] == "node-a");
        let shown = node.map_or(0, |node| node["samples_stored"].as_u64().unwrap());
        assert_eq!(shown, stored, "{nodes}");
    }
}
