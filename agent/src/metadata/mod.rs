//! Who a process works for: cgroup path to service, container, pod and unit. Reads /proc and cgroupfs, never the network.

use std::sync::Arc;

/// Labels of one process, all optional but the service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Metadata {
    /// OTEL_SERVICE_NAME, else workload or container, else systemd unit, else executable.
    pub service: Arc<str>,
    pub cgroup: Arc<str>,
    pub container_id: Option<Arc<str>>,
    pub container_name: Option<Arc<str>>,
    pub pod: Option<Arc<str>>,
    pub namespace: Option<Arc<str>>,
    pub workload: Option<Arc<str>>,
    pub unit: Option<Arc<str>>,
}
