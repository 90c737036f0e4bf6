//! What a person can do about an error of a bucket.

use crate::store::root::error::RootError;
use std::error::Error;

/// What stands in a store's answer or in the client's error, and what it means.
const MEANINGS: [(&[&str], &str); 8] = [
    (
        &[
            "NoSuchBucket",
            "ContainerNotFound",
            "The specified bucket does not exist",
        ],
        "there is no such bucket: create it, or mend its name in --data",
    ),
    (
        &["RequestTimeTooSkewed", "RequestExpired"],
        "this machine's clock and the store's differ too much: set the clock (NTP)",
    ),
    (
        &[
            "InvalidAccessKeyId",
            "SignatureDoesNotMatch",
            "AuthenticationFailed",
            "InvalidToken",
            // As versitygw calls a key that nobody has.
            "XAdminUserNotFound",
        ],
        "the store does not accept these credentials: check key and secret",
    ),
    (
        &["ExpiredToken", "TokenRefreshRequired"],
        "the credentials have expired: renew the token",
    ),
    (
        &["AccessDenied", "AuthorizationFailure", "403 Forbidden"],
        "these credentials may not do that: the server lists, reads, writes and deletes below its prefix",
    ),
    (
        &["169.254.169.254", "metadata.google.internal"],
        "no credentials were given, and this machine's provider gives none: set them in the environment",
    ),
    (
        &["PermanentRedirect", "AuthorizationHeaderMalformed", "without LOCATION"],
        "the bucket is in another region: set AWS_REGION",
    ),
    (
        &[
            "dns error",
            "Connection refused",
            "error sending request",
            "tcp connect error",
            "operation timed out",
        ],
        "the store cannot be reached: check the endpoint, the network and the proxy",
    ),
];

/// What an error means, where that is known. `text` is the error with all of its causes.
fn meaning(text: &str) -> Option<&'static str> {
    let is_in = |marks: &[&str]| marks.iter().any(|mark| text.contains(mark));
    MEANINGS.iter().find(|(marks, _)| is_in(marks)).map(|(_, words)| *words)
}

/// The error with all of its causes, in one line: a store's answer is a document of several.
fn chain(error: &object_store::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// An error of an object. One whose meaning is known says it first, and is none of the object: a bucket that is not
/// there is no missing object. Neither is an answer that does not come.
pub(super) fn error(object: &str, cause: object_store::Error) -> RootError {
    use object_store::Error as Cause;
    let text = chain(&cause);
    let is_of_it = matches!(
        cause,
        Cause::NotFound { .. } | Cause::AlreadyExists { .. } | Cause::Precondition { .. }
    );
    match meaning(&text) {
        Some(words) => RootError::ours(object, format!("{words} ({text})")),
        None if is_of_it => RootError::new(object, cause),
        None => RootError::ours(object, text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn not_found(body: &'static str) -> object_store::Error {
        object_store::Error::NotFound {
            path: "x".to_owned(),
            source: body.into(),
        }
    }

    #[test]
    fn a_missing_bucket_is_no_missing_object() {
        let missing = error("x", not_found("404 Not Found: <Code>NoSuchKey</Code>"));
        assert!(matches!(missing, RootError::NotFound(_)), "{missing:?}");
        let bucket = error("x", not_found("404 Not Found: <Code>NoSuchBucket</Code>"));
        assert!(matches!(bucket, RootError::Ours(_)), "{bucket:?}");
        assert!(bucket.to_string().contains("no such bucket"), "{bucket}");
    }

    #[test]
    fn known_causes_say_what_to_do() {
        for (body, words) in [
            ("<Code>RequestTimeTooSkewed</Code>", "clock"),
            ("<Code>SignatureDoesNotMatch</Code>", "key and secret"),
            ("<Code>XAdminUserNotFound</Code>", "key and secret"),
            ("<Code>AccessDenied</Code>", "may not"),
            ("error sending request: Connection refused", "reached"),
        ] {
            let cause = object_store::Error::Generic {
                store: "S3",
                source: format!("<?xml?>\n{body}").into(),
            };
            let text = error("x", cause).to_string();
            assert!(
                text.starts_with("x: ") && text.contains(words) && text.contains(body) && !text.contains('\n'),
                "{text}"
            );
        }
    }
}
