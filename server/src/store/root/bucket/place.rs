//! What a URL of a bucket names, and the store that it is reached through.

use object_store::aws::{AmazonS3Builder, S3ConditionalPut};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::path::Path;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// A request that has not connected by then is tried again.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A request that is not answered whole by then has failed.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Times that a request is tried again.
const RETRIES: usize = 8;

/// Time from the first try, after which none is begun.
const RETRY_TIMEOUT: Duration = Duration::from_secs(20);

/// Bounds of the pause between two tries.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(3));

/// Schemes that are known.
pub(super) const SCHEMES: [&str; 3] = ["s3", "gs", "az"];

/// A bucket, and where the root is in it.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) store: Arc<dyn ObjectStore>,
    /// Of the root, without a `/` at its end.
    pub(super) url: Url,
    pub(super) prefix: Path,
}

/// What the URL names. Credentials come from the environment and from what the provider gives a machine, never from
/// the URL. Sends no request.
pub(super) fn of(url: &Url) -> Result<Place, Box<dyn Error + Send + Sync>> {
    if !url.username().is_empty() || url.password().is_some() {
        return Err("the URL may hold no user and no password: credentials are given by the environment".into());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("the URL may hold no query and no fragment".into());
    }
    let Some(bucket) = url.host_str().filter(|bucket| !bucket.is_empty()) else {
        return Err(format!("the URL names no bucket: give {}://BUCKET/PREFIX", url.scheme()).into());
    };
    let prefix = Path::from_url_path(url.path())?;
    let options = ClientOptions::new()
        .with_connect_timeout(CONNECT_TIMEOUT)
        .with_timeout(REQUEST_TIMEOUT);
    let retries = RetryConfig {
        backoff: BackoffConfig {
            init_backoff: BACKOFF.0,
            max_backoff: BACKOFF.1,
            base: 2.0,
        },
        max_retries: RETRIES,
        retry_timeout: RETRY_TIMEOUT,
    };
    let is_allowed = |name| std::env::var(name).is_ok_and(|value| value.eq_ignore_ascii_case("true"));
    let store: Arc<dyn ObjectStore> = match url.scheme() {
        "s3" => Arc::new(
            AmazonS3Builder::from_env()
                .with_bucket_name(bucket)
                .with_client_options(options.with_allow_http(is_allowed("AWS_ALLOW_HTTP")))
                .with_retry(retries)
                .with_conditional_put(S3ConditionalPut::ETagMatch)
                .build()?,
        ),
        "gs" => Arc::new(
            GoogleCloudStorageBuilder::from_env()
                .with_bucket_name(bucket)
                .with_client_options(options)
                .with_retry(retries)
                .build()?,
        ),
        "az" => Arc::new(
            MicrosoftAzureBuilder::from_env()
                .with_container_name(bucket)
                .with_client_options(options.with_allow_http(is_allowed("AZURE_ALLOW_HTTP")))
                .with_retry(retries)
                .build()?,
        ),
        scheme => return Err(format!("{scheme}:// is not known: {} are", SCHEMES.join(", ")).into()),
    };
    let mut url = url.clone();
    let path = url.path().trim_end_matches('/').to_owned();
    url.set_path(&path);
    Ok(Place { store, url, prefix })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_without_a_bucket_or_with_a_password_is_refused_in_words_that_do_not_repeat_it() {
        let refused = |url: &str| of(&Url::parse(url).unwrap()).unwrap_err().to_string();
        let words = refused("s3://key:secret@bucket/x");
        assert!(words.contains("no password") && !words.contains("secret"), "{words}");
        assert!(refused("s3:///x").contains("names no bucket"));
        assert!(refused("s3://bucket/x?versionId=1").contains("no query"));
    }
}
