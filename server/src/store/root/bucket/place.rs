//! What a URL of a bucket names, and the store that it is reached through.

use crate::store::root::bucket::counted::Counted;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, S3ConditionalPut};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::path::Path;
use object_store::{BackoffConfig, ClientConfigKey, ObjectStore, RetryConfig};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// A request that has not connected by then is tried again.
const CONNECT_TIMEOUT: &str = "5s";

/// A request that is not answered whole by then has failed. It must be less than what lies between the end of a
/// lease's holder and the begin of the next.
const REQUEST_TIMEOUT: &str = "12s";

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

/// The client's options that are not the environment's: what else it says, of proxies and plain HTTP too, counts.
const OPTIONS: [(ClientConfigKey, &str); 2] = [
    (ClientConfigKey::ConnectTimeout, CONNECT_TIMEOUT),
    (ClientConfigKey::Timeout, REQUEST_TIMEOUT),
];

fn retries() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: BACKOFF.0,
            max_backoff: BACKOFF.1,
            base: 2.0,
        },
        max_retries: RETRIES,
        retry_timeout: RETRY_TIMEOUT,
    }
}

/// What the URL names. Credentials come from the environment and from what the provider gives a machine, never from
/// the URL. Sends no request.
pub(super) fn of(url: &Url, connector: Counted) -> Result<Place, Box<dyn Error + Send + Sync>> {
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
    let store: Arc<dyn ObjectStore> = match url.scheme() {
        "s3" => {
            let builder = OPTIONS
                .iter()
                .fold(AmazonS3Builder::from_env(), |builder, (key, value)| {
                    builder.with_config(AmazonS3ConfigKey::Client(*key), *value)
                });
            let builder = builder
                .with_bucket_name(bucket)
                .with_retry(retries())
                .with_conditional_put(S3ConditionalPut::ETagMatch);
            Arc::new(builder.with_http_connector(connector).build()?)
        }
        "gs" => {
            let builder = OPTIONS
                .iter()
                .fold(GoogleCloudStorageBuilder::from_env(), |builder, (key, value)| {
                    builder.with_config(GoogleConfigKey::Client(*key), *value)
                });
            let builder = builder.with_bucket_name(bucket).with_retry(retries());
            Arc::new(builder.with_http_connector(connector).build()?)
        }
        "az" => {
            let builder = OPTIONS
                .iter()
                .fold(MicrosoftAzureBuilder::from_env(), |builder, (key, value)| {
                    builder.with_config(AzureConfigKey::Client(*key), *value)
                });
            let builder = builder.with_container_name(bucket).with_retry(retries());
            Arc::new(builder.with_http_connector(connector).build()?)
        }
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
        let threads = crate::store::root::bucket::io_threads::IoThreads::start().unwrap();
        let connector = || Counted {
            traffic: Arc::default(),
            runtime: threads.handle().clone(),
        };
        let refused = |url: &str| of(&Url::parse(url).unwrap(), connector()).unwrap_err().to_string();
        let words = refused("s3://key:secret@bucket/x");
        assert!(words.contains("no password") && !words.contains("secret"), "{words}");
        assert!(refused("s3:///x").contains("names no bucket"));
        assert!(refused("s3://bucket/x?versionId=1").contains("no query"));
    }
}
