//! The names that a process was given in its environment: `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES`, as the
//! OpenTelemetry specification describes them
//! (https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/). Pure.

/// A name that is longer than any real one is cut here.
const LONGEST_VALUE_CHARS: usize = 256;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) service: Option<String>,
    pub(super) version: Option<String>,
    pub(super) container: Option<String>,
    pub(super) pod: Option<String>,
    pub(super) namespace: Option<String>,
    pub(super) workload: Option<String>,
}

/// Takes /proc/PID/environ: `NAME=VALUE`, each ended by a zero byte.
pub(super) fn parse(environ: &[u8]) -> Named {
    let mut named = Named::default();
    let mut service = None;
    for variable in environ.split(|byte| *byte == 0) {
        if let Some(value) = variable.strip_prefix(b"OTEL_SERVICE_NAME=") {
            service = tidy(value);
        } else if let Some(value) = variable.strip_prefix(b"OTEL_RESOURCE_ATTRIBUTES=") {
            named = attributes(value);
        }
    }
    // The variable of its own goes before the list.
    Named {
        service: service.or(named.service),
        ..named
    }
}

/// `key=value,key=value`, values percent-encoded.
fn attributes(list: &[u8]) -> Named {
    let mut named = Named::default();
    for pair in list.split(|byte| *byte == b',') {
        let Some(at) = pair.iter().position(|byte| *byte == b'=') else {
            continue;
        };
        let field = match pair[..at].trim_ascii() {
            b"service.name" => &mut named.service,
            b"service.version" => &mut named.version,
            b"container.name" | b"k8s.container.name" => &mut named.container,
            b"k8s.pod.name" => &mut named.pod,
            b"k8s.namespace.name" => &mut named.namespace,
            b"k8s.workload.name"
            | b"k8s.deployment.name"
            | b"k8s.statefulset.name"
            | b"k8s.daemonset.name"
            | b"k8s.cronjob.name"
            | b"k8s.job.name" => &mut named.workload,
            _ => continue,
        };
        // A cron job's pods carry their job's name too; whichever comes first stays.
        if field.is_none() {
            *field = tidy(&percent_decoded(&pair[at + 1..]));
        }
    }
    named
}

fn percent_decoded(value: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(value.len());
    let mut rest = value;
    while let [first, after @ ..] = rest {
        let hex = (*first == b'%').then(|| after.get(..2)).flatten();
        let byte = hex.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        decoded.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    decoded
}

/// Empty means unset; control characters have no place in a label.
fn tidy(value: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(value.trim_ascii());
    let text: String = text
        .chars()
        .filter(|c| !c.is_control())
        .take(LONGEST_VALUE_CHARS)
        .collect();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_variables_are_read_among_others() {
        let named = parse(
            b"PATH=/bin\0OTEL_RESOURCE_ATTRIBUTES=service.name=other,service.version=2.1,k8s.pod.name=web-0, k8s.namespace.name = prod,\
              k8s.statefulset.name=web,deployment.environment=x\0OTEL_SERVICE_NAME=shop\0SECRET=1\0",
        );
        let text = |text: &str| Some(text.to_owned());
        let expected = Named {
            service: text("shop"),
            version: text("2.1"),
            container: None,
            pod: text("web-0"),
            namespace: text("prod"),
            workload: text("web"),
        };
        assert_eq!(named, expected);
    }

    #[test]
    fn the_list_names_the_service_where_the_variable_does_not() {
        let environ = b"OTEL_RESOURCE_ATTRIBUTES=service.name=a%20b%2Cc\0OTEL_SERVICE_NAME=\0";
        assert_eq!(parse(environ).service.as_deref(), Some("a b,c"));
    }

    #[test]
    fn odd_values_do_no_harm() {
        assert_eq!(parse(b""), Named::default());
        assert_eq!(parse(b"OTEL_SERVICE_NAME"), Named::default());
        assert_eq!(parse(b"XOTEL_SERVICE_NAME=a"), Named::default());
        assert_eq!(
            parse(b"OTEL_SERVICE_NAME=\x1b[31m\xff").service.as_deref(),
            Some("[31m\u{fffd}")
        );
        assert_eq!(
            parse(b"OTEL_RESOURCE_ATTRIBUTES=service.name=%zz%4,,=,x")
                .service
                .as_deref(),
            Some("%zz%4")
        );
        let long = [&b"OTEL_SERVICE_NAME="[..], &[b'a'; 10_000]].concat();
        assert_eq!(parse(&long).service.unwrap().len(), LONGEST_VALUE_CHARS);
    }
}
