//! Lists are whole, though an answer breaks off.
//!
//! The client tries a request again, but not the body of its answer where that is a list. Asking again changes nothing
//! in the bucket: what is listed resumes behind the last name that came, since stores list by name. Where one does not,
//! the error stays: names would be missing.

use crate::store::root::backoff::Backoff;
use crate::store::root::traffic::Traffic;
use async_trait::async_trait;
use futures::stream::{self, BoxStream, StreamExt as _};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Times that a list is asked again where nothing new has come of it.
const MOST_TRIES: usize = 5;

/// In what the client says of a list whose request was answered and whose body was not, or not whole.
const BROKEN_OFF: &str = "list response";

/// Asks lists again; all else goes through.
#[derive(Debug, Clone)]
pub(super) struct WholeLists {
    pub(super) inner: Arc<dyn ObjectStore>,
    pub(super) traffic: Arc<Traffic>,
}

impl WholeLists {
    fn resumed(&self, prefix: Option<&Path>, behind: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let (prefix, behind) = (prefix.cloned(), behind.cloned());
        let listing = Listing {
            store: self.clone(),
            rest: begin(self.inner.as_ref(), prefix.as_ref(), behind.as_ref()),
            prefix,
            behind,
            is_in_order: true,
            tries: Tries::default(),
        };
        let each = |listing: Option<Listing>| async move { listing?.advance().await };
        stream::unfold(Some(listing), each).boxed()
    }

    /// Whether to ask again: after a pause that grows, or never.
    async fn asks_again(&self, error: &Error, tries: &mut Tries) -> bool {
        if !has_broken_off(error) || tries.done == MOST_TRIES {
            return false;
        }
        tries.done += 1;
        self.traffic.resumed_lists.fetch_add(1, Ordering::Relaxed);
        tries.backoff.pause().await;
        true
    }
}

/// A request that failed has been tried again by the client, for as long as it may.
fn has_broken_off(error: &Error) -> bool {
    matches!(error, Error::Generic { .. }) && error.to_string().contains(BROKEN_OFF)
}

fn begin(
    store: &dyn ObjectStore,
    prefix: Option<&Path>,
    behind: Option<&Path>,
) -> BoxStream<'static, Result<ObjectMeta>> {
    match behind {
        Some(name) => store.list_with_offset(prefix, name),
        None => store.list(prefix),
    }
}

#[derive(Debug, Default)]
struct Tries {
    /// Since something came.
    done: usize,
    backoff: Backoff,
}

/// A list that is under way.
struct Listing {
    store: WholeLists,
    rest: BoxStream<'static, Result<ObjectMeta>>,
    prefix: Option<Path>,
    /// The last name that came, or where the list begins.
    behind: Option<Path>,
    /// Each name so far came behind the one before.
    is_in_order: bool,
    tries: Tries,
}

impl Listing {
    /// What comes next, with the rest; there is none behind an error.
    async fn advance(mut self) -> Option<(Result<ObjectMeta>, Option<Self>)> {
        loop {
            match self.rest.next().await? {
                Ok(meta) => {
                    let before = self.behind.replace(meta.location.clone());
                    self.is_in_order &= before.is_none_or(|before| before < meta.location);
                    self.tries = Tries::default();
                    return Some((Ok(meta), Some(self)));
                }
                Err(error) => {
                    if !self.is_in_order || !self.store.asks_again(&error, &mut self.tries).await {
                        return Some((Err(error), None));
                    }
                    self.rest = begin(self.store.inner.as_ref(), self.prefix.as_ref(), self.behind.as_ref());
                }
            }
        }
    }
}

impl std::fmt::Display for WholeLists {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "WholeLists({})", self.inner)
    }
}

#[async_trait]
impl ObjectStore for WholeLists {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        self.inner.put_opts(location, payload, opts).await
    }

    async fn put_multipart_opts(&self, location: &Path, opts: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.resumed(prefix, None)
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        self.resumed(prefix, Some(offset))
    }

    /// Whole or not at all: it comes in one piece.
    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let mut tries = Tries::default();
        loop {
            let error = match self.inner.list_with_delimiter(prefix).await {
                Ok(listed) => return Ok(listed),
                Err(error) => error,
            };
            if !self.asks_again(&error, &mut tries).await {
                return Err(error);
            }
        }
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::TryStreamExt as _;
    use http_body_util::StreamBody;
    use hyper::body::Frame;
    use object_store::aws::AmazonS3Builder;
    use object_store::client::{
        HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
    };
    use object_store::memory::InMemory;
    use object_store::{ClientOptions, ObjectStoreExt as _};
    use std::sync::Mutex;
    use std::sync::atomic::AtomicUsize;

    fn broken_off(words: &str) -> Error {
        Error::Generic {
            store: "S3",
            source: format!("Error getting {words}: connection closed before message completed").into(),
        }
    }

    /// Its lists break off behind so many names, so many times; each begins where it was told to.
    #[derive(Debug)]
    struct BreaksOff {
        inner: InMemory,
        behind: usize,
        words: &'static str,
        is_reversed: bool,
        left: AtomicUsize,
        begun: Mutex<Vec<Option<String>>>,
    }

    impl BreaksOff {
        async fn holding(names: usize, behind: usize, times: usize, words: &'static str) -> Arc<Self> {
            let inner = InMemory::new();
            for name in 0..names {
                let at = Path::from(format!("t/{name:02}"));
                inner.put(&at, "x".into()).await.unwrap();
            }
            Arc::new(Self {
                inner,
                behind,
                words,
                is_reversed: false,
                left: AtomicUsize::new(times),
                begun: Mutex::default(),
            })
        }

        fn breaks(&self) -> bool {
            let less = |left: usize| left.checked_sub(1);
            self.left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
                .is_ok()
        }

        fn cut(&self, whole: BoxStream<'static, Result<ObjectMeta>>) -> BoxStream<'static, Result<ObjectMeta>> {
            match self.breaks() {
                true => {
                    let error = Err(broken_off(self.words));
                    whole.take(self.behind).chain(stream::iter([error])).boxed()
                }
                false => whole,
            }
        }

        fn note(&self, begin: Option<&Path>) {
            self.begun.lock().unwrap().push(begin.map(ToString::to_string));
        }
    }

    impl std::fmt::Display for BreaksOff {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("BreaksOff")
        }
    }

    #[async_trait]
    impl ObjectStore for BreaksOff {
        async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
            self.inner.put_opts(location, payload, opts).await
        }

        async fn put_multipart_opts(
            &self,
            location: &Path,
            opts: PutMultipartOptions,
        ) -> Result<Box<dyn MultipartUpload>> {
            self.inner.put_multipart_opts(location, opts).await
        }

        async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
            self.inner.get_opts(location, options).await
        }

        fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
            self.inner.delete_stream(locations)
        }

        fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
            self.note(None);
            let all = self.inner.list(prefix);
            match self.is_reversed {
                true => {
                    let all: Vec<_> = futures::executor::block_on(all.collect());
                    self.cut(stream::iter(all.into_iter().rev()).boxed())
                }
                false => self.cut(all),
            }
        }

        fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
            self.note(Some(offset));
            self.cut(self.inner.list_with_offset(prefix, offset))
        }

        async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
            self.note(None);
            match self.breaks() {
                true => Err(broken_off(self.words)),
                false => self.inner.list_with_delimiter(prefix).await,
            }
        }

        async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
            self.inner.copy_opts(from, to, options).await
        }
    }

    const BODY: &str = "list response body";

    fn over(inner: Arc<BreaksOff>) -> WholeLists {
        WholeLists {
            inner,
            traffic: Arc::default(),
        }
    }

    async fn names(lists: &WholeLists, begin: Option<&Path>) -> Result<Vec<String>> {
        let prefix = Path::from("t");
        let listed = match begin {
            Some(begin) => lists.list_with_offset(Some(&prefix), begin),
            None => lists.list(Some(&prefix)),
        };
        listed.map_ok(|meta| meta.location.to_string()).try_collect().await
    }

    #[tokio::test]
    async fn a_list_that_breaks_off_resumes_behind_the_last_name_and_has_each_once() {
        let inner = BreaksOff::holding(20, 7, 2, BODY).await;
        let lists = over(inner.clone());
        let all: Vec<String> = (0..20).map(|name| format!("t/{name:02}")).collect();
        assert_eq!(names(&lists, None).await.unwrap(), all);
        let begun = std::mem::take(&mut *inner.begun.lock().unwrap());
        assert_eq!(begun, [None, Some("t/06".to_owned()), Some("t/13".to_owned())]);
        assert_eq!(lists.traffic.resumed_lists.load(Ordering::Relaxed), 2);
        inner.left.store(1, Ordering::Relaxed);
        assert_eq!(names(&lists, Some(&Path::from("t/09"))).await.unwrap(), all[10..]);
        let begun = std::mem::take(&mut *inner.begun.lock().unwrap());
        assert_eq!(begun, [Some("t/09".to_owned()), Some("t/16".to_owned())]);
    }

    #[tokio::test]
    async fn a_list_that_is_not_by_name_does_not_resume() {
        let mut inner = BreaksOff::holding(20, 7, 1, BODY).await;
        Arc::get_mut(&mut inner).unwrap().is_reversed = true;
        let lists = over(inner.clone());
        assert!(names(&lists, None).await.is_err(), "names would be missing");
        assert_eq!(names(&lists, None).await.unwrap().len(), 20);
        assert_eq!(lists.traffic.resumed_lists.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn a_list_with_folders_is_asked_again_as_a_whole() {
        let lists = over(BreaksOff::holding(3, 0, 2, BODY).await);
        let listed = lists.list_with_delimiter(Some(&Path::from("t"))).await.unwrap();
        assert_eq!(listed.objects.len(), 3);
        assert_eq!(lists.traffic.resumed_lists.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn nothing_is_asked_again_for_ever_or_for_another_error() {
        let inner = BreaksOff::holding(3, 0, usize::MAX, BODY).await;
        assert!(names(&over(inner.clone()), None).await.is_err());
        assert_eq!(inner.begun.lock().unwrap().len(), 1 + MOST_TRIES);
        let inner = BreaksOff::holding(3, 0, 1, "list request").await;
        let lists = over(inner.clone());
        assert!(lists.list_with_delimiter(None).await.is_err());
        assert_eq!(inner.begun.lock().unwrap().len(), 1);
        assert_eq!(lists.traffic.resumed_lists.load(Ordering::Relaxed), 0);
    }

    const LISTED: &str = "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>t/a</Key>\
                          <LastModified>2026-11-30T10:00:00.000Z</LastModified><ETag>\"e\"</ETag><Size>1</Size>\
                          </Contents></ListBucketResult>";

    /// Answers a list with the begin of its body, and then with all of it.
    #[derive(Debug, Clone, Default)]
    struct Half {
        asked: Arc<AtomicUsize>,
    }

    impl HttpConnector for Half {
        fn connect(&self, _: &ClientOptions) -> Result<HttpClient> {
            Ok(HttpClient::new(self.clone()))
        }
    }

    #[async_trait]
    impl HttpService for Half {
        async fn call(&self, _: HttpRequest) -> std::result::Result<HttpResponse, HttpError> {
            let is_first = self.asked.fetch_add(1, Ordering::Relaxed) == 0;
            let frame = |text: &'static str| Ok(Frame::data(bytes::Bytes::from(text)));
            let frames = match is_first {
                true => {
                    let cause = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
                    let error = HttpError::new(HttpErrorKind::Interrupted, cause);
                    vec![frame(&LISTED[..40]), Err(error)]
                }
                false => vec![frame(LISTED)],
            };
            let body = StreamBody::new(stream::iter(frames));
            Ok(HttpResponse::new(HttpResponseBody::new(body)))
        }
    }

    #[tokio::test]
    async fn the_client_says_of_a_half_answer_what_is_looked_for() {
        let half = Half::default();
        let store = AmazonS3Builder::new()
            .with_bucket_name("bucket")
            .with_region("us-east-1")
            .with_access_key_id("key")
            .with_secret_access_key("secret")
            .with_http_connector(half.clone())
            .build();
        let lists = WholeLists {
            inner: Arc::new(store.unwrap()),
            traffic: Arc::default(),
        };
        assert_eq!(names(&lists, None).await.unwrap(), ["t/a"]);
        assert_eq!(half.asked.load(Ordering::Relaxed), 2);
        assert_eq!(lists.traffic.resumed_lists.load(Ordering::Relaxed), 1);
    }
}
