//! Tokens and certificate, read again when their files change and when the server is told to (SIGHUP).
//!
//! In: files. Out: the same tokens and certificate that requests look at. What cannot be read changes nothing, and is
//! an error in the log.

use crate::api::Tokens;
use rustls::client::ResolvesClientCert;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, RootCertStore, ServerConfig, SignatureScheme};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// How often files are looked at.
const LOOK: Duration = Duration::from_secs(5);

/// Largest file of tokens or certificates.
const MAX_BYTES: u64 = 1 << 20;

/// Why a file is of no use.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// It is not there, may not be read, or has more than a megabyte.
    #[error("{flag} {path}: cannot be read: {cause}")]
    Unread {
        /// The flag that names the file.
        flag: &'static str,
        /// Which file.
        path: PathBuf,
        /// What the system says.
        cause: std::io::Error,
    },
    /// It holds no token.
    #[error("{flag} {path}: no token in it; write one a line, such as from `openssl rand -hex 32`")]
    NoToken {
        /// The flag that names the file.
        flag: &'static str,
        /// Which file.
        path: PathBuf,
    },
    /// What stands behind a token is no setting.
    #[error("{flag} {path}: {cause}")]
    Settings {
        /// The flag that names the file.
        flag: &'static str,
        /// Which file.
        path: PathBuf,
        /// In which line what is wrong.
        cause: String,
    },
    /// It holds no certificate or key in PEM that can be used.
    #[error("{flag} {path}: {cause}")]
    Pem {
        /// The flag that names the file.
        flag: &'static str,
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        cause: String,
    },
    /// The key is another than the certificate's.
    #[error("{cert} and {key} do not belong together: {cause}")]
    Pair {
        /// File of the certificate.
        cert: PathBuf,
        /// File of the key.
        key: PathBuf,
        /// What the TLS library says.
        cause: rustls::Error,
    },
}

fn text(flag: &'static str, path: &Path) -> Result<String, Unusable> {
    let unread = |cause| Unusable::Unread {
        flag,
        path: path.to_owned(),
        cause,
    };
    if std::fs::metadata(path).map_err(unread)?.len() > MAX_BYTES {
        return Err(unread(std::io::Error::other("it has more than a megabyte")));
    }
    std::fs::read_to_string(path).map_err(unread)
}

/// The tokens of a file.
pub fn tokens(flag: &'static str, path: &Path) -> Result<Tokens, Unusable> {
    some(flag, path, Tokens::from_lines(&text(flag, path)?))
}

/// The tokens of senders in a file, with their quotas.
pub fn sender_tokens(flag: &'static str, path: &Path) -> Result<Tokens, Unusable> {
    let tokens = Tokens::of_senders(&text(flag, path)?).map_err(|cause| Unusable::Settings {
        flag,
        path: path.to_owned(),
        cause,
    })?;
    some(flag, path, tokens)
}

fn some(flag: &'static str, path: &Path, tokens: Tokens) -> Result<Tokens, Unusable> {
    match tokens.count() {
        Some(0) => Err(Unusable::NoToken {
            flag,
            path: path.to_owned(),
        }),
        _ => Ok(tokens),
    }
}

/// The server's certificate, as new connections are shown it.
#[derive(Debug)]
pub struct Certificate {
    cert: PathBuf,
    key: PathBuf,
    now: RwLock<Arc<CertifiedKey>>,
}

impl Certificate {
    /// Reads it for the first time.
    pub fn read(cert: &Path, key: &Path) -> Result<Arc<Self>, Unusable> {
        Ok(Arc::new(Self {
            now: RwLock::new(Self::pair(cert, key)?),
            cert: cert.to_owned(),
            key: key.to_owned(),
        }))
    }

    fn pair(cert: &Path, key: &Path) -> Result<Arc<CertifiedKey>, Unusable> {
        let pem = |flag, path: &Path, cause: &dyn std::fmt::Display| Unusable::Pem {
            flag,
            path: path.to_owned(),
            cause: cause.to_string(),
        };
        let chain = CertificateDer::pem_file_iter(cert)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| {
                pem(
                    "--tls-cert",
                    cert,
                    &format!("not a readable PEM certificate chain: {error}"),
                )
            })?;
        if chain.is_empty() {
            return Err(pem("--tls-cert", cert, &"no PEM certificate in it"));
        }
        let private = PrivateKeyDer::from_pem_file(key)
            .map_err(|error| pem("--tls-key", key, &format!("not a readable PEM private key: {error}")))?;
        let provider = rustls::crypto::ring::default_provider();
        let pair = CertifiedKey::from_der(chain, private, &provider).map_err(|cause| Unusable::Pair {
            cert: cert.to_owned(),
            key: key.to_owned(),
            cause,
        })?;
        Ok(Arc::new(pair))
    }

    fn now(&self) -> Arc<CertifiedKey> {
        self.now.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether it is another now.
    fn reload(&self) -> Result<bool, Unusable> {
        let new = Self::pair(&self.cert, &self.key)?;
        let changes = new.cert != self.now().cert;
        *self.now.write().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(changes)
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.now())
    }
}

impl ResolvesClientCert for Certificate {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(self.now())
    }

    fn has_certs(&self) -> bool {
        true
    }
}

/// TLS among servers on the same data: each shows its certificate, and takes those that were signed by these.
///
/// # Errors
/// The file has no certificates that can be used.
pub fn exchange_tls(
    certificate: &Arc<Certificate>,
    signers: &Path,
) -> Result<(Arc<ServerConfig>, Arc<ClientConfig>), Unusable> {
    let pem = |cause: &dyn std::fmt::Display| Unusable::Pem {
        flag: "--exchange-ca",
        path: signers.to_owned(),
        cause: cause.to_string(),
    };
    let mut roots = RootCertStore::empty();
    let all = CertificateDer::pem_file_iter(signers)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| pem(&format!("not readable PEM certificates: {error}")))?;
    for signer in all {
        roots.add(signer).map_err(|error| pem(&error))?;
    }
    if roots.is_empty() {
        return Err(pem(&"no PEM certificate in it"));
    }
    let (roots, provider) = (Arc::new(roots), Arc::new(rustls::crypto::ring::default_provider()));
    let verifier = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone()).build();
    let server = ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions();
    let mut server = server
        .map_err(|error| pem(&error))?
        .with_client_cert_verifier(verifier.map_err(|error| pem(&error))?)
        .with_cert_resolver(certificate.clone());
    let client = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let mut client = client
        .map_err(|error| pem(&error))?
        .with_root_certificates(roots)
        .with_client_cert_resolver(certificate.clone());
    server.alpn_protocols = vec![b"h2".to_vec()];
    client.alpn_protocols = vec![b"h2".to_vec()];
    Ok((Arc::new(server), Arc::new(client)))
}

/// What is read again.
#[derive(Debug, Default)]
pub struct Sources {
    /// Flag, file and the tokens that were read from it.
    pub tokens: Vec<(&'static str, PathBuf, Tokens)>,
    /// The pair of files that is shown to clients; none without TLS.
    pub certificate: Option<Arc<Certificate>>,
}

/// Tells a file from what it was before.
type Stamp = Option<(u64, u64, i64, i64, u64)>;

impl Sources {
    fn stamps(&self) -> Vec<Stamp> {
        let of_tokens = self.tokens.iter().map(|(_, path, _)| path);
        let of_certificate = self.certificate.iter().flat_map(|pair| [&pair.cert, &pair.key]);
        let stamp = |path: &PathBuf| {
            let file = std::fs::metadata(path).ok()?;
            Some((file.dev(), file.ino(), file.mtime(), file.mtime_nsec(), file.size()))
        };
        of_tokens.chain(of_certificate).map(stamp).collect()
    }

    /// Reads all of them again.
    fn reload(&self) {
        for (flag, path, tokens) in &self.tokens {
            match text(flag, path) {
                Ok(text) => match tokens.replace(&text) {
                    Ok(true) => {
                        let count = tokens.count().unwrap_or_default();
                        tracing::info!(flag, path = %path.display(), count, "other tokens or quotas count from now on");
                    }
                    Ok(false) if Tokens::from_lines(&text).count() == Some(0) => {
                        tracing::error!(flag, path = %path.display(), "no token in it: those that were there stay");
                    }
                    Ok(false) => {}
                    Err(cause) => {
                        tracing::error!(flag, path = %path.display(), cause, "the tokens stay as they were");
                    }
                },
                Err(error) => tracing::error!(%error, "the tokens stay as they were"),
            }
        }
        match self.certificate.as_ref().map(|pair| (pair.reload(), &pair.cert)) {
            Some((Ok(true), path)) => {
                tracing::info!(path = %path.display(), "another certificate is shown from now on")
            }
            Some((Err(error), _)) => tracing::error!(%error, "the certificate stays as it was"),
            _ => {}
        }
    }

    /// Reads them again when they change, and whenever `told`; never ends.
    pub async fn watch(self, mut told: tokio::signal::unix::Signal) {
        let mut before = self.stamps();
        loop {
            let is_told = tokio::select! {
                told = told.recv() => told.is_some(),
                () = tokio::time::sleep(LOOK) => false,
            };
            let now = self.stamps();
            if is_told || now != before {
                self.reload();
            }
            before = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_read_again_and_what_is_no_file_of_tokens_changes_nothing() {
        let dir = std::env::temp_dir().join(format!("stakeout-reload-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("tokens");
        std::fs::write(&path, "one\n").unwrap();
        let read = tokens("--view-token-file", &path).unwrap();
        let sources = Sources {
            tokens: vec![("--view-token-file", path.clone(), read.clone())],
            certificate: None,
        };
        let before = sources.stamps();
        std::fs::write(&path, "one\ntwo\n").unwrap();
        assert_ne!(sources.stamps(), before);
        sources.reload();
        assert_eq!(read.count(), Some(2));
        std::fs::write(&path, "# none\n").unwrap();
        sources.reload();
        assert!(matches!(
            tokens("--view-token-file", &path),
            Err(Unusable::NoToken { .. })
        ));
        std::fs::remove_file(&path).unwrap();
        sources.reload();
        assert!(matches!(
            tokens("--view-token-file", &path),
            Err(Unusable::Unread { .. })
        ));
        assert_eq!(read.count(), Some(2));
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
