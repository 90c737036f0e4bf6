/** A fleet of many nodes, made up, with sums that are known by construction. */
const VERSIONS = ["0.3.0", "0.2.9", "0.2.0"];
const KERNELS = ["6.8.0-45", "5.15.0-101"];
export const NOW = Date.now();

/** Every tenth lost samples, every hundredth does not report; a third runs each version, a half each kernel. */
export function fleet(count: number) {
  return Array.from({ length: count }, (_, i) => ({
    node: `rack${Math.floor(i / 40)}-node-${i}`,
    instance: `instance-${i}`,
    agent_version: VERSIONS[i % 3],
    kernel: KERNELS[i % 2],
    arch: "x86_64",
    last_seen: NOW - (i % 100 === 7 ? 3_600_000 : 1_000 + i),
    frequency_hz: 20,
    cpus: 8,
    samples_taken: 1_000 + i,
    samples_lost: i % 10 === 3 ? { ring_full: 5 } : {},
    limits: i % 50 === 1 ? { tables_late: 2 } : {},
    samples_stored: 1_000 + i - (i % 10 === 3 ? 5 : 0),
    idle_share: 0.5,
    cpu_seconds: 10,
    bpf_seconds: 1,
    agent_cores: 0.01,
    rss_bytes: 50_000_000,
    bpf_map_bytes: 1_000_000,
    late: i % 100 === 7,
    has_account: true,
  }));
}
