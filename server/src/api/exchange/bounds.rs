//! What requests may ask of the library that carries shares: it makes room for as many answers, and for as many feeds,
//! as a request says, before it knows whether there are any. So its first message is looked at here, before the library
//! sees it: by the same decoder, as far as a number in it is of matter.

use crate::query::{SHARE_NODE, SpreadCounters};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use bytes::BytesMut;
use futures::{StreamExt, stream};
use prost::Message;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tonic::Status;

/// Longest message, in bytes: a share, and what stands around it.
pub(super) const MOST_MESSAGE_BYTES: usize = 5 << 20;

/// Longest request for the answer to a share, in bytes: a key and a few numbers.
pub(super) const MOST_TASK_BYTES: usize = 256;

/// What stands before a message: whether it is compressed, and its length (gRPC over HTTP/2, Length-Prefixed-Message).
const PREFIX_BYTES: usize = 5;

/// `ExecuteTaskRequest` of the library's `worker.proto`.
#[derive(Clone, PartialEq, Message)]
struct Task {
    #[prost(uint64, tag = "2")]
    first: u64,
    /// Behind the last.
    #[prost(uint64, tag = "3")]
    end: u64,
    /// Rows are dealt out to as many answers as these say.
    #[prost(message, optional, tag = "7")]
    broadcast: Option<Anything>,
    #[prost(message, optional, tag = "8")]
    repartition: Option<Anything>,
}

/// `CoordinatorToWorkerMsg` there.
#[derive(Clone, PartialEq, Message)]
struct Told {
    #[prost(message, optional, tag = "1")]
    plan: Option<Plan>,
}

/// `SetPlanRequest` there.
#[derive(Clone, PartialEq, Message)]
struct Plan {
    /// Each with a number of channels that are made for it.
    #[prost(message, repeated, tag = "4")]
    feeds: Vec<Anything>,
}

/// Takes no memory, however many there are.
#[derive(Clone, PartialEq, Message)]
struct Anything {}

/// Around the service, behind the door: what asks for more than a share needs is refused.
pub(super) async fn bounded(State(counters): State<Arc<SpreadCounters>>, request: Request, next: Next) -> Response {
    let (most_bytes, check): (usize, Check) = match request.uri().path() {
        "/worker.WorkerService/ExecuteTask" => (MOST_TASK_BYTES, check_task),
        "/worker.WorkerService/CoordinatorChannel" => (MOST_MESSAGE_BYTES, check_told),
        _ => return next.run(request).await,
    };
    let (head, body) = request.into_parts();
    match checked(body, most_bytes, check).await {
        Ok(body) => next.run(Request::from_parts(head, body)).await,
        Err(why) => {
            counters.refused.fetch_add(1, Ordering::Relaxed);
            Status::invalid_argument(why).into_http()
        }
    }
}

/// Says what is wrong with a message.
type Check = fn(&[u8]) -> Result<(), String>;

/// A body as it was, once its first message is there and found to be right.
async fn checked(body: Body, most_bytes: usize, check: Check) -> Result<Body, String> {
    let (mut pieces, mut read) = (body.into_data_stream(), BytesMut::new());
    loop {
        if let Some(message) = first_message(&read, most_bytes)? {
            check(message)?;
            break;
        }
        match pieces.next().await {
            Some(Ok(piece)) => read.extend_from_slice(&piece),
            Some(Err(error)) => return Err(unread(&error)),
            None => return Err("the request ends before its first message does".to_owned()),
        }
    }
    let read = stream::once(std::future::ready(Ok(read.freeze())));
    Ok(Body::from_stream(read.chain(pieces)))
}

/// The first message of what was read of a body; nothing before all of it is there.
fn first_message(read: &[u8], most_bytes: usize) -> Result<Option<&[u8]>, String> {
    let Some(([is_compressed, length @ ..], rest)) = read.split_first_chunk::<PREFIX_BYTES>() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes(*length) as usize;
    if *is_compressed != 0 {
        return Err("a compressed message is not taken here".to_owned());
    }
    if length > most_bytes {
        return Err(format!("a message has {length} bytes, at most {most_bytes} are taken"));
    }
    Ok(rest.get(..length))
}

fn check_task(message: &[u8]) -> Result<(), String> {
    let task = Task::decode(message).map_err(|error| unread(&error))?;
    let (first, end) = (task.first, task.end);
    if (first, end) != (0, 1) {
        return Err(format!(
            "{SHARE_NODE} has one answer, 0, and those from {first} to {end} are asked for"
        ));
    }
    if task.broadcast.is_some() || task.repartition.is_some() {
        return Err(format!("{SHARE_NODE} has one answer, and is not dealt out to several"));
    }
    Ok(())
}

fn check_told(message: &[u8]) -> Result<(), String> {
    let told = Told::decode(message).map_err(|error| unread(&error))?;
    let plan = told.plan.ok_or("the first message has no plan")?;
    match plan.feeds.len() {
        0 => Ok(()),
        feeds => Err(format!("{SHARE_NODE} has no feeds, and {feeds} are told of")),
    }
}

fn unread(error: &dyn std::fmt::Display) -> String {
    format!("the request cannot be read: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Bytes;
    use axum::{Router, middleware};
    use tower::ServiceExt;

    const RUN: &str = "/worker.WorkerService/ExecuteTask";
    const TELL: &str = "/worker.WorkerService/CoordinatorChannel";

    fn framed(message: &[u8]) -> Vec<u8> {
        let length = u32::try_from(message.len()).unwrap().to_be_bytes();
        [&[0][..], &length, message].concat()
    }

    /// What came through of a body that is sent a byte at a time, or why nothing did.
    async fn sent(path: &str, body: &[u8]) -> Result<Bytes, String> {
        let pieces: Vec<_> = body.iter().map(|byte| Ok::<_, String>(vec![*byte])).collect();
        let router = Router::new()
            .fallback(|body: Bytes| async { body })
            .layer(middleware::from_fn_with_state(
                Arc::<SpreadCounters>::default(),
                bounded,
            ));
        let request = Request::post(path).body(Body::from_stream(stream::iter(pieces)));
        let answer = router.oneshot(request.unwrap()).await.unwrap();
        if let Some(status) = answer.headers().get("grpc-status") {
            assert_eq!(status, "3");
            let why = answer.headers()["grpc-message"].to_str().unwrap();
            return Err(why.replace("%20", " "));
        }
        Ok(axum::body::to_bytes(answer.into_body(), usize::MAX).await.unwrap())
    }

    fn task(first: u64, end: u64) -> Task {
        Task {
            first,
            end,
            ..Task::default()
        }
    }

    #[tokio::test]
    async fn what_a_share_needs_comes_through_as_it_was_sent() {
        // With fields that are of no matter here, the library's key and its head without a number.
        let one = [&b"\x0a\x02\x18\x07"[..], &task(0, 1).encode_to_vec(), b"\x32\x00"].concat();
        let plan = Told {
            plan: Some(Plan::default()),
        };
        let told = framed(&[&plan.encode_to_vec()[..], b"\x0a\x04\x1a\x02{}"].concat());
        // More messages may follow a plan.
        let told = [&told[..], b"\x00\x00\x00\x00\x02\x18\x01"].concat();
        let another = "/worker.WorkerService/GetWorkerInfo";
        for (path, body) in [(RUN, framed(&one)), (TELL, told), (another, vec![7; 9])] {
            assert_eq!(sent(path, &body).await.unwrap(), body, "{path}");
        }
    }

    #[tokio::test]
    async fn what_asks_for_more_is_refused_in_words() {
        let asks = |first, end| framed(&task(first, end).encode_to_vec());
        let dealt = Task {
            broadcast: Some(Anything {}),
            ..task(0, 1)
        };
        // What comes last counts, as in the library.
        let mut twice = task(0, u64::MAX).encode_to_vec();
        twice.extend(b"\x18\x01\x42\x00");
        let fed = Told {
            plan: Some(Plan {
                feeds: vec![Anything {}; 3],
            }),
        };
        for (path, body, words) in [
            (
                RUN,
                asks(0, 1 << 40),
                "has one answer, 0, and those from 0 to 1099511627776",
            ),
            (RUN, asks(0, 0), "from 0 to 0"),
            (RUN, asks(2, 1), "from 2 to 1"),
            (RUN, framed(&dealt.encode_to_vec()), "is not dealt out"),
            (RUN, framed(&twice), "is not dealt out"),
            (RUN, framed(&[0; MOST_TASK_BYTES + 1]), "at most 256 are taken"),
            (RUN, framed(b"\x18"), "cannot be read"),
            (RUN, asks(0, 1)[..6].to_vec(), "ends before"),
            (RUN, Vec::new(), "ends before"),
            (RUN, vec![1, 0, 0, 0, 0], "compressed"),
            (TELL, framed(&fed.encode_to_vec()), "has no feeds, and 3 are told of"),
            (TELL, framed(b"\x18\x01"), "has no plan"),
            (TELL, vec![0, 0xff, 0xff, 0xff, 0xff], "at most 5242880 are taken"),
        ] {
            let why = sent(path, &body).await.unwrap_err();
            assert!(why.contains(words), "{words:?}: {why}");
        }
    }
}
