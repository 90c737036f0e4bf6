//! Batches of which a part is known, or whose commit fails.

use super::*;
use crate::store::{Quota, StoreConfig, Table};
use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value};
use opentelemetry_proto::tonic::profiles::v1development as otlp;
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;

/// Commits only when the test says so.
async fn open(dir: &std::path::Path) -> Arc<Store> {
    let config = StoreConfig {
        commit_interval: Duration::from_secs(3600),
        maintenance_interval: Duration::from_secs(3600),
        min_free_bytes: 0,
        ..StoreConfig::new(dir)
    };
    Store::open(config).await.unwrap()
}

const INSTANCE: &str = "b5f1d2ee-0f6c-4ab4-a6c4-0d7f3c6a1f0e";

/// Two samples of the stack `main`.
fn wire() -> Vec<u8> {
    joined(&[(2, None)])
}

/// Resources with so many samples of the stack `main`, and the numbers of their batches where they say them.
fn joined(resources: &[(usize, Option<i64>)]) -> Vec<u8> {
    let dictionary = otlp::ProfilesDictionary {
        string_table: vec![String::new(), "main".to_owned()],
        function_table: vec![
            otlp::Function::default(),
            otlp::Function {
                name_strindex: 1,
                ..Default::default()
            },
        ],
        location_table: vec![
            otlp::Location::default(),
            otlp::Location {
                lines: vec![otlp::Line {
                    function_index: 1,
                    ..Default::default()
                }],
                ..Default::default()
            },
        ],
        stack_table: vec![
            otlp::Stack::default(),
            otlp::Stack {
                location_indices: vec![1],
            },
        ],
        ..Default::default()
    };
    let sample = otlp::Sample {
        stack_index: 1,
        ..Default::default()
    };
    let attribute = |key: &str, value: Value| KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..Default::default()
    };
    let resource = |(samples, number): &(usize, Option<i64>)| otlp::ResourceProfiles {
        resource: number.map(|number| Resource {
            attributes: vec![
                attribute("stakeout.instance", Value::StringValue(INSTANCE.to_owned())),
                attribute("stakeout.batch", Value::IntValue(number)),
            ],
            ..Default::default()
        }),
        scope_profiles: vec![otlp::ScopeProfiles {
            profiles: vec![otlp::Profile {
                samples: vec![sample.clone(); *samples],
                ..Default::default()
            }],
            ..Default::default()
        }],
        ..Default::default()
    };
    ExportProfilesServiceRequest {
        resource_profiles: resources.iter().map(resource).collect(),
        dictionary: Some(dictionary),
    }
    .encode_to_vec()
}

fn arrival(wire: &[u8], number: i64) -> Arrival<'_> {
    Arrival {
        request: message::read(wire, 1 << 20).unwrap(),
        id: Some(BatchId {
            instance: INSTANCE.to_owned(),
            number,
        }),
        sender: Sender::default(),
        window: TimeWindow {
            earliest_ns: 0,
            latest_ns: i64::MAX,
            now_ns: 1_800_000_000_000_000_000 + number,
        },
        senders: Box::leak(Box::default()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_is_no_text_is_refused_where_a_sample_has_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let mut wire = wire();
    let at = wire.windows(4).position(|bytes| bytes == b"main").unwrap();
    wire[at + 1] = 0xff;
    let error = arrival(&wire, 1).convert(&store).unwrap_err();
    assert!(error.to_string().contains("text is not UTF-8"), "{error}");
    store.close().await;
}

async fn acks(store: &Store, admitted: Admitted) -> Vec<Result<Ack, StoreError>> {
    let (answers, _) = tokio::join!(
        futures::future::join_all(admitted.parts.into_iter().map(|(ticket, ..)| store.acknowledge(ticket))),
        store.flush()
    );
    answers
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_relied_on_a_commit_that_failed_is_stored_with_all_its_rows() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let wire = wire();
    let brings = |converted: &Converted, table: Table| converted.parts[0].rows.tables[table.index()].len();

    let first = arrival(&wire, 1);
    let (converted, epoch) = first.convert(&store).unwrap();
    assert_eq!(brings(&converted, Table::Stacks), 1);
    let first = first.admit(&store, converted, epoch, wire.len()).unwrap();

    // The second has only samples, since the first brings the rest; whose commit fails before the second is
    // admitted.
    let second = arrival(&wire, 2);
    let (converted, epoch) = second.convert(&store).unwrap();
    for table in [Table::Series, Table::Processes, Table::Stacks, Table::Frames] {
        assert_eq!(brings(&converted, table), 0, "{}", table.name());
    }
    // A folder in the way of the next version: the commit cannot be written.
    let version = dir.path().join("samples/_delta_log").join(format!("{:020}.json", 1));
    std::fs::create_dir(&version).unwrap();
    assert!(acks(&store, first).await.iter().all(Result::is_err));
    std::fs::remove_dir(&version).unwrap();
    let second = second.admit(&store, converted, epoch, wire.len()).unwrap();
    assert_eq!(second.parts.len(), 1);
    assert!(matches!(acks(&store, second).await[..], [Ok(Ack::Stored)]));

    // The sender repeats the first, which relies on the second now.
    let first = arrival(&wire, 1);
    let (converted, epoch) = first.convert(&store).unwrap();
    assert_eq!(brings(&converted, Table::Stacks), 0);
    let first = first.admit(&store, converted, epoch, wire.len()).unwrap();
    assert!(matches!(acks(&store, first).await[..], [Ok(Ack::Stored)]));
    let whole = "SELECT count(*) FROM samples JOIN series USING (series_id) JOIN processes USING (process_id) \
         JOIN stacks USING (stack_id) JOIN frames ON frames[1] = frame_id WHERE function = 'main'";
    let rows = store
        .snapshot()
        .session()
        .sql(whole)
        .await
        .unwrap()
        .collect()
        .await
        .unwrap();
    assert_eq!(rows[0].column(0).as_primitive::<Int64Type>().value(0), 4);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_request_that_comes_again_for_a_quota_nothing_is_taken_twice() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    // In front is what nobody can tell from others when it comes again.
    let wire = joined(&[(1, None), (3, Some(1))]);
    let bytes = wire.len() as u64;
    let quota = Arc::new(Quota {
        name: "a".to_owned(),
        bytes_per_day: Some(bytes * 9 / 10),
        series_per_day: None,
    });
    for _ in 0..3 {
        let sender = Sender {
            quota: Some(Arc::clone(&quota)),
            ..Sender::default()
        };
        let again = Arrival {
            id: None,
            sender,
            ..arrival(&wire, 1)
        };
        let (converted, epoch) = again.convert(&store).unwrap();
        let Err(error) = again.admit(&store, converted, epoch, wire.len()) else {
            panic!("it is beyond the quota")
        };
        let is_of_quota = matches!(error, IngestError::Store(StoreError::QuotaUsedUp { .. }));
        assert!(is_of_quota, "{error}");
    }
    assert_eq!(store.quota_used("a"), (bytes * 3 / 4, 0, 3));
    store.close().await;
}

#[test]
fn batches_share_the_bytes_of_their_request() {
    assert_eq!([3, 1, 0].map(|samples| part_of(100, samples, 4, 3)), [75, 25, 0]);
    assert_eq!(
        [0; 3].map(|samples| part_of(99, samples, 0, 3)),
        [33; 3],
        "reports only"
    );
    assert_eq!(part_of(7, 0, 0, 1), 7);
    assert_eq!(part_of(u64::MAX, i64::MAX, i64::MAX, 1), u64::MAX);
}
