//! Real servers on one directory that count together: each answers as it would alone, byte for byte, while one of them
//! is killed.

use crate::support::{Sender, Server, eventually, get, now_ns, post_batch};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Batches, each with a commit of its own, so that there are files to share: fewer than are merged while their hour
/// runs.
const BATCHES: i64 = 12;

const TOGETHER: [&str; 5] = ["--shared", "--exchange-listen", "127.0.0.1:0", "--spread-rows", "1"];

fn fleet(dir: &Path, more: &[&str]) -> Server {
    Server::start(dir, &[&TOGETHER[..], more].concat())
}

async fn metric(server: &Server, name: &str) -> u64 {
    value_of(&get(&server.address, "/metrics").await.body, name)
}

/// Of a metric without labels.
fn value_of(metrics: &[u8], name: &str) -> u64 {
    let text = String::from_utf8_lossy(metrics);
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let value: f64 = line
        .unwrap_or_else(|| panic!("{name} is not in {text}"))
        .parse()
        .unwrap();
    value as u64
}

/// Every kind of question that is counted together, of one window.
fn questions(from_ms: i64, until_ms: i64) -> Vec<String> {
    let middle_ms = i64::midpoint(from_ms, until_ms);
    let window = format!("from={from_ms}&until={until_ms}");
    let both = format!("base_from={from_ms}&base_until={middle_ms}&from={middle_ms}&until={until_ms}");
    let service = "query=%7Bservice%3D%22service-1%22%7D";
    [
        format!("flamegraph?{window}"),
        format!("flamegraph?{window}&{service}&format=collapsed"),
        format!("flamegraph?{window}&group=service,thread"),
        format!("series?{window}&by=service&step=1s"),
        format!("facets?{window}&by=service,node,thread"),
        format!("top?{window}&by=function"),
        format!("top?{window}&by=thread&{service}"),
        format!("heatmap?{window}&step=1s&rows=10"),
        format!("timeline?{window}&limit=50"),
        format!("diff?{both}"),
    ]
    .map(|question| format!("/api/v1/{question}"))
    .to_vec()
}

/// Fills a directory by one server, whose answers alone are what others are compared with.
async fn filled(dir: &Path) -> (i64, i64) {
    let mut server = Server::start(dir, &["--shared"]);
    let until_ns = now_ns() - 60_000_000_000;
    for node in ["node-a", "node-b"] {
        let mut sender = Sender::new(node, 200);
        for number in 1..=BATCHES / 2 {
            let batch = sender.batch(number, until_ns - (BATCHES - number) * 1_000_000_000);
            let answer = post_batch(&server.address, &sender, number, &batch).await.unwrap();
            assert_eq!(answer.status, 200, "{answer:?}");
        }
    }
    assert!(server.stop());
    let until_ms = until_ns / 1_000_000;
    (until_ms - (BATCHES + 5) * 1_000, until_ms)
}

async fn answers(server: &Server, questions: &[String]) -> Vec<(u16, Vec<u8>)> {
    let mut all = Vec::new();
    for question in questions {
        let answer = get(&server.address, question).await;
        all.push((answer.status.as_u16(), answer.body.to_vec()));
    }
    all
}

/// Waits until each knows all others.
async fn know_each_other(servers: &[&Server]) {
    for server in servers {
        eventually("each server knows the others", async || {
            metric(server, "stakeout_store_servers").await == servers.len() as u64
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn three_servers_answer_as_one_while_one_of_them_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let (from_ms, until_ms) = filled(dir.path()).await;
    let questions = questions(from_ms, until_ms);
    let mut alone = Server::start(dir.path(), &["--shared"]);
    let expected = answers(&alone, &questions).await;
    assert!(
        expected.iter().all(|(status, body)| *status == 200 && body.len() > 50),
        "{expected:?}"
    );
    assert!(alone.stop());
    let secrets = tempfile::tempdir().unwrap();
    let token = secrets.path().join("exchange-token");
    std::fs::write(&token, "# of a test\nsecret-of-servers\n").unwrap();
    let token = ["--exchange-token-file", token.to_str().unwrap()];
    let mut servers = [
        fleet(dir.path(), &token),
        fleet(dir.path(), &token),
        fleet(dir.path(), &token),
    ];
    know_each_other(&servers.iter().collect::<Vec<_>>()).await;
    for server in &servers {
        let given = answers(server, &questions).await;
        for ((question, given), expected) in questions.iter().zip(given).zip(&expected) {
            assert!(given == *expected, "{question} of {}", server.address);
        }
        assert!(metric(server, "stakeout_query_shares_total").await > 0);
        assert_eq!(metric(server, "stakeout_query_share_retries_total").await, 0);
    }
    let mut counted = 0;
    for server in &servers {
        counted += metric(server, "stakeout_query_shares_counted_total").await;
    }
    assert!(counted > 0);
    // One is killed while the first is asked again and again: it says the same, and asks others, or counts itself.
    let first = servers[0].address.clone();
    let killed = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        servers[2].kill();
    };
    let asked = async {
        for _ in 0..10 {
            for (question, (status, body)) in questions.iter().zip(&expected) {
                let answer = get(&first, question).await;
                assert_eq!(answer.status.as_u16(), *status, "{question}");
                assert!(answer.body[..] == body[..], "{question}");
            }
        }
    };
    tokio::join!(killed, asked);
    assert!(metric(&servers[0], "stakeout_query_share_retries_total").await > 0);
    for server in &mut servers[..2] {
        assert!(server.stop());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_another_token_is_not_asked_and_every_server_answers_all_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let (from_ms, until_ms) = filled(dir.path()).await;
    let secrets = tempfile::tempdir().unwrap();
    let write = |name: &str, token: &str| {
        let path = secrets.path().join(name);
        std::fs::write(&path, token).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let [one, other] = [write("one", "token-of-one\n"), write("other", "token-of-other\n")];
    let mut servers = [&one, &other].map(|token| fleet(dir.path(), &["--exchange-token-file", token.as_str()]));
    know_each_other(&servers.iter().collect::<Vec<_>>()).await;
    let questions = questions(from_ms, until_ms);
    let [a, b] = [
        answers(&servers[0], &questions).await,
        answers(&servers[1], &questions).await,
    ];
    assert!(a == b && a.iter().all(|(status, _)| *status == 200));
    for server in &servers {
        assert_eq!(metric(server, "stakeout_query_shares_counted_total").await, 0);
        assert!(metric(server, "stakeout_query_shares_taken_back_total").await > 0);
    }
    // Both tokens in both files, the new one first: servers find together without a restart.
    write("one", "token-of-both\ntoken-of-one\n");
    write("other", "token-of-both\ntoken-of-other\n");
    eventually("they count for each other", async || {
        let given = answers(&servers[0], &questions).await;
        assert!(given == a);
        metric(&servers[1], "stakeout_query_shares_counted_total").await > 0
    })
    .await;
    for server in &mut servers {
        assert!(server.stop());
    }
}

/// An authority and a certificate of 127.0.0.1 that it signed, as files in a folder.
fn certified(dir: &Path) -> bool {
    let script = "set -e
new='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'
openssl req -x509 $new -keyout ca.key -out ca.pem -days 1 -subj /CN=authority -addext basicConstraints=critical,CA:TRUE
openssl req $new -keyout key.pem -out request.pem -subj /CN=server -addext subjectAltName=IP:127.0.0.1
openssl x509 -req -in request.pem -CA ca.pem -CAkey ca.key -days 1 -out cert.pem -copy_extensions copy
";
    let made = Command::new("sh")
        .args(["-c", script])
        .current_dir(dir)
        .output()
        .unwrap();
    if !made.status.success() {
        eprintln!(
            "left out: openssl made no certificates: {}",
            String::from_utf8_lossy(&made.stderr)
        );
    }
    made.status.success()
}

/// Asks a server that speaks TLS, and takes its certificate as one of this authority.
async fn get_with_tls(address: &str, path: &str, authority: &Path) -> (u16, Vec<u8>) {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(authority).unwrap() {
        roots.add(certificate.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let stream = TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
        .unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    let request = Request::get(path)
        .header("host", address)
        .body(Full::<Bytes>::default())
        .unwrap();
    let (parts, body) = sender.send_request(request).await.unwrap().into_parts();
    (parts.status.as_u16(), body.collect().await.unwrap().to_bytes().to_vec())
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_one_authority_signed_count_together_and_no_others_do() {
    let dir = tempfile::tempdir().unwrap();
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    if !folders.iter().all(|folder| certified(folder.path())) {
        return;
    }
    let (from_ms, until_ms) = filled(dir.path()).await;
    let file = |which: usize, name: &str| folders[which].path().join(name).to_str().unwrap().to_owned();
    let start = |which: usize| {
        let [ca, cert, key] = ["ca.pem", "cert.pem", "key.pem"].map(|name| file(which, name));
        let tls = ["--exchange-ca", &ca, "--tls-cert", &cert, "--tls-key", &key];
        fleet(dir.path(), &tls)
    };
    // The last one has another authority.
    let mut servers = [(start(0), 0), (start(0), 0), (start(1), 1)];
    let question = format!("/api/v1/flamegraph?from={from_ms}&until={until_ms}");
    let folders = &folders;
    let ask = async |(server, which): &(Server, usize), path: &str| {
        let authority = folders[*which].path().join("ca.pem");
        get_with_tls(&server.address, path, &authority).await
    };
    let count = async |server: &(Server, usize), name: &str| value_of(&ask(server, "/metrics").await.1, name);
    for server in &servers {
        eventually("each server knows the others", async || {
            count(server, "stakeout_store_servers").await == 3
        })
        .await;
    }
    let mut all = Vec::new();
    for server in &servers {
        let (status, body) = ask(server, &question).await;
        assert_eq!(status, 200);
        all.push(body);
    }
    assert!(all.iter().all(|body| *body == all[0]));
    let counted = [
        count(&servers[0], "stakeout_query_shares_counted_total").await,
        count(&servers[1], "stakeout_query_shares_counted_total").await,
        count(&servers[2], "stakeout_query_shares_counted_total").await,
    ];
    assert!(counted[0] + counted[1] > 0 && counted[2] == 0, "{counted:?}");
    for (server, _) in &mut servers {
        assert!(server.stop());
    }
}
