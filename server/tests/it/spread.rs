//! Real servers on one directory that count together: each answers as it would alone, byte for byte, while one of them
//! is killed.

use crate::support::{Sender, Server, eventually, get, now_ns, post_batch};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
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
    // Both authorities in both files: servers find together without a restart.
    let authorities = [0, 1].map(|which| file(which, "ca.pem"));
    let both: String = authorities
        .iter()
        .map(|authority| std::fs::read_to_string(authority).unwrap())
        .collect();
    for authority in &authorities {
        std::fs::write(authority, &both).unwrap();
    }
    eventually("the last one counts, too", async || {
        let (status, body) = ask(&servers[0], &question).await;
        assert!(status == 200 && body == all[0]);
        count(&servers[2], "stakeout_query_shares_counted_total").await > 0
    })
    .await;
    for (server, _) in &mut servers {
        assert!(server.stop());
    }
}

/// What a server is called among those on the same data, and where its exchange listens, as it tells the others.
fn told(data: &Path, server: &Server) -> (String, String) {
    let files = std::fs::read_dir(data.join("servers")).unwrap();
    let all = files.filter_map(|file| {
        let bytes = std::fs::read(file.ok()?.path()).ok()?;
        serde_json::from_slice::<serde_json::Value>(&bytes).ok()
    });
    let all: Vec<serde_json::Value> = all.collect();
    let own = all.iter().find(|told| told["address"] == server.address.as_str());
    let own = own.unwrap_or_else(|| panic!("{} is not in {all:?}", server.address));
    let text = |name: &str| own[name].as_str().unwrap().to_owned();
    (text("id"), text("exchange"))
}

/// Shows the certificate in a folder to servers whose authority is this.
fn showing(folder: &Path, authority: &Path) -> Arc<ClientConfig> {
    let certificates = |path: &Path| -> Vec<CertificateDer<'static>> {
        let certificates = CertificateDer::pem_file_iter(path).unwrap();
        certificates.map(Result::unwrap).collect()
    };
    let mut roots = RootCertStore::empty();
    for certificate in certificates(authority) {
        roots.add(certificate).unwrap();
    }
    let key = PrivateKeyDer::from_pem_file(folder.join("key.pem")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_client_auth_cert(certificates(&folder.join("cert.pem")), key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    Arc::new(config)
}

/// Whether an exchange takes a connection: it says something then.
async fn is_taken(config: &Arc<ClientConfig>, exchange: &str) -> bool {
    let stream = TcpStream::connect(exchange).await.unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let Ok(mut stream) = TlsConnector::from(config.clone()).connect(name, stream).await else {
        return false;
    };
    // HTTP/2's preface, and settings without any.
    let _ = stream
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
        .await;
    let mut said = [0; 9];
    stream.read_exact(&mut said).await.is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_an_authority_that_counts_no_more_is_refused_without_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    if !folders.iter().all(|folder| certified(folder.path())) {
        return;
    }
    let file = |which: usize, name: &str| folders[which].path().join(name);
    let [ca, cert, key] = ["ca.pem", "cert.pem", "key.pem"].map(|name| file(0, name).to_str().unwrap().to_owned());
    let tls = ["--exchange-ca", &ca, "--tls-cert", &cert, "--tls-key", &key];
    let mut server = fleet(dir.path(), &tls);
    let (_, exchange) = told(dir.path(), &server);
    let [one, other] = [0, 1].map(|which| showing(folders[which].path(), &file(0, "ca.pem")));
    assert!(is_taken(&one, &exchange).await);
    assert!(!is_taken(&other, &exchange).await);
    std::fs::copy(file(1, "ca.pem"), &ca).unwrap();
    server.hang_up();
    eventually("the other authority counts", async || is_taken(&other, &exchange).await).await;
    assert!(
        !is_taken(&one, &exchange).await,
        "nor is what was taken before taken up again"
    );
    assert!(server.stop());
}

/// Sends a message to a method of an exchange. Gives what gRPC says of it: a status, and words.
async fn rpc(exchange: &str, shows: &[(&str, &str)], method: &str, message: &[u8]) -> (String, String) {
    let stream = TcpStream::connect(exchange).await.unwrap();
    let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (mut sender, connection) = handshake.await.unwrap();
    tokio::spawn(connection);
    let mut framed = vec![0];
    framed.extend(u32::try_from(message.len()).unwrap().to_be_bytes());
    framed.extend(message);
    let mut request = Request::post(format!("http://{exchange}/worker.WorkerService/{method}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers");
    for (name, value) in shows {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(Bytes::from(framed))).unwrap();
    let (head, body) = sender.send_request(request).await.unwrap().into_parts();
    let trailers = body.collect().await.unwrap().trailers().cloned().unwrap_or_default();
    let text = |name: &str| {
        let value = head.headers.get(name).or_else(|| trailers.get(name));
        value.map(|value| value.to_str().unwrap().replace("%20", " "))
    };
    (
        text("grpc-status").unwrap_or_default(),
        text("grpc-message").unwrap_or_default(),
    )
}

/// A number of protobuf's.
fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

/// A field of protobuf's with bytes in it.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, bytes.len() as u8][..], bytes].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_for_more_than_a_share_has_is_refused_and_ends_no_server() {
    let dir = tempfile::tempdir().unwrap();
    let (from_ms, until_ms) = filled(dir.path()).await;
    let secrets = tempfile::tempdir().unwrap();
    let token = secrets.path().join("exchange-token");
    std::fs::write(&token, "secret-of-servers\n").unwrap();
    let token = ["--exchange-token-file", token.to_str().unwrap()];
    let mut servers = [fleet(dir.path(), &token), fleet(dir.path(), &token)];
    know_each_other(&servers.iter().collect::<Vec<_>>()).await;
    let (id, exchange) = told(dir.path(), &servers[1]);
    let shows = [
        ("authorization", "Bearer secret-of-servers"),
        ("stakeout-server", id.as_str()),
    ];
    let (many, key) = (varint(1 << 40), field(1, &field(1, &[7; 16])));
    // Answers that take more memory than there is, as many to whom rows are dealt out, and as many channels of a feed.
    let answers_of = [&key[..], &[0x18], &many, &field(6, &[])].concat();
    let dealt = field(7, &[vec![0x08], many.clone()].concat());
    let dealt = [&key[..], &[0x18, 1], &dealt].concat();
    let feed = [&field(1, &[7; 16])[..], &[0x10], &many].concat();
    let plan = [&key[..], &field(4, &feed), &field(5, b"http://a/")].concat();
    let mut refused = 0;
    for (method, message, words) in [
        ("ExecuteTask", answers_of, "those from 0 to 1099511627776 are asked for"),
        ("ExecuteTask", dealt, "is not dealt out to several"),
        ("CoordinatorChannel", field(1, &plan), "has no feeds, and 1 are told of"),
    ] {
        let (status, said) = rpc(&exchange, &shows, method, &message).await;
        assert_eq!(status, "3", "{method}: {said}");
        assert!(said.contains(words), "{method}: {said}");
        refused += 1;
        assert_eq!(
            metric(&servers[1], "stakeout_query_shares_refused_total").await,
            refused
        );
        // Who shows no token does not come so far.
        let (status, said) = rpc(&exchange, &shows[1..], method, &message).await;
        assert_eq!(status, "16", "{method}: {said}");
    }
    // It counts as before.
    let questions = questions(from_ms, until_ms);
    let given = answers(&servers[0], &questions).await;
    assert!(given.iter().all(|(status, _)| *status == 200));
    assert!(metric(&servers[1], "stakeout_query_shares_counted_total").await > 0);
    assert_eq!(metric(&servers[0], "stakeout_query_share_retries_total").await, 0);
    for server in &mut servers {
        assert!(server.stop());
    }
}
