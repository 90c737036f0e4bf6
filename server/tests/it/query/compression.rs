//! Answers are compressed as the asker accepts it, and are the same after decoding.

use super::*;
use std::io::Read;

/// Header by which the asker says what it accepts, and the encoding that the answer then has.
const ACCEPTED: [(Option<&str>, Option<&str>); 5] = [
    (Some("gzip, deflate, br, zstd"), Some("zstd")),
    (Some("gzip"), Some("gzip")),
    (Some("zstd;q=0, gzip;q=0.1"), Some("gzip")),
    (Some("br"), None),
    (None, None),
];

async fn ask(server: &Server, path: &str, accepted: Option<&str>) -> (BTreeMap<String, String>, Vec<u8>) {
    let mut request = Request::get(path);
    if let Some(accepted) = accepted {
        request = request.header("accept-encoding", accepted);
    }
    let (status, headers, body) = server.send(request.body(Body::empty()).unwrap()).await;
    assert_eq!(status, StatusCode::OK, "{path}");
    (headers, body)
}

fn decoded(encoding: Option<&str>, body: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    match encoding {
        Some("zstd") => plain = zstd::stream::decode_all(body).unwrap(),
        Some("gzip") => drop(flate2::read::GzDecoder::new(body).read_to_end(&mut plain).unwrap()),
        Some(other) => panic!("encoding {other}"),
        None => plain.extend_from_slice(body),
    }
    plain
}

#[tokio::test(flavor = "multi_thread")]
async fn large_text_is_compressed_as_asked_and_nothing_else_is() {
    let from = recent();
    let (server, _) = filled(from).await;
    let window = format!("from={}&until={}", ms(from), ms(from + 120 * S));
    for path in [
        format!("/api/v1/flamegraph?{window}"),
        format!("/api/v1/flamegraph?{window}&format=svg"),
        format!("/api/v1/series?{window}&step=1s"),
        format!("/api/v1/top?{window}&by=thread&format=csv&limit=1000"),
    ] {
        let (_, plain) = ask(&server, &path, None).await;
        for (accepted, encoding) in ACCEPTED {
            let (headers, body) = ask(&server, &path, accepted).await;
            let encoding = encoding.filter(|_| plain.len() >= 1024);
            let case = format!("{path} for {accepted:?}");
            assert_eq!(headers.get("content-encoding").map(String::as_str), encoding, "{case}");
            assert_eq!(headers["vary"], "accept-encoding", "{case}");
            if let Some(length) = headers.get("content-length") {
                assert_eq!(length, &body.len().to_string(), "{case}");
            }
            assert_eq!(decoded(encoding, &body), plain, "{case}");
            // What is hardly worth it becomes smaller, the rest half.
            let most = if plain.len() < 2_048 {
                plain.len()
            } else {
                plain.len() / 2
            };
            assert!(encoding.is_none() || body.len() < most, "{case}: {} bytes", body.len());
        }
    }
    for path in [
        "/api/v1/labels".to_owned(),
        format!("/api/v1/flamegraph?{window}&format=pprof"),
    ] {
        let (plain_headers, plain) = ask(&server, &path, None).await;
        let (headers, body) = ask(&server, &path, Some("gzip, zstd")).await;
        assert!(!headers.contains_key("content-encoding"), "{path}");
        assert_eq!(headers, plain_headers, "{path}");
        assert_eq!(body, plain, "{path}");
    }
}
