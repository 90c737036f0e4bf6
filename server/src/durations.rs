//! How long things take, in seconds, as `/metrics` tells it.

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::histogram::Histogram;
use std::time::Duration;

/// Upper bounds, in seconds: from what is answered at once to what is given up.
const BOUNDS: [f64; 14] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];

/// A histogram.
#[derive(Debug)]
pub struct Durations(Histogram);

impl Default for Durations {
    fn default() -> Self {
        Self(Histogram::new(BOUNDS))
    }
}

impl Durations {
    pub(crate) fn add(&self, took: Duration) {
        self.0.observe(took.as_secs_f64());
    }

    /// A metric without labels.
    pub(crate) fn encode(&self, name: &str, help: &str, encoder: &mut DescriptorEncoder<'_>) -> std::fmt::Result {
        let metric = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
        self.0.encode(metric)
    }

    /// A metric with one label.
    pub(crate) fn encode_by(
        name: &str,
        help: &str,
        label: &str,
        of: &[(&str, &Self)],
        encoder: &mut DescriptorEncoder<'_>,
    ) -> std::fmt::Result {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
        for (value, durations) in of {
            durations.0.encode(family.encode_family(&[(label, *value)])?)?;
        }
        Ok(())
    }
}
