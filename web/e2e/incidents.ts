/**
 * The five investigations that the page exists for, as samples that are known by construction: a minute and more of
 * nodes that nothing else has. In: a name for the node. Out: where it is, and when.
 */
import type { APIRequestContext } from "@playwright/test";
import { TAKEN } from "./known.ts";
import { type Attributes, type Frame, otlp, PERIOD_NS } from "./otlp.ts";
import { expect } from "./stack.ts";

const MINUTE = 60_000;
const BEGIN = TAKEN - 3 * MINUTE;
/** Samples of a second of CPU time. */
export const SAMPLES_A_SECOND = 1e9 / PERIOD_NS;

interface Run {
  service: string;
  /** Root first. */
  frames: Frame[];
  times: number[];
  of?: Attributes;
}

export interface Incident {
  node: string;
  range: { from: number; until: number };
}

const code = (module: string, ...names: string[]): Frame[] => names.map((name) => ({ name, module }));
const kernel = (...names: string[]): Frame[] =>
  names.map((name) => ({ name, module: "[kernel]", kind: "kernel" as const }));
const THREAD = code("/usr/lib/libc.so.6", "__clone3", "start_thread");

/** So many moments, evenly in a time. */
function evenly(count: number, from: number, length = MINUTE): number[] {
  return Array.from({ length: count }, (_, i) => from + ((i + 0.5) * length) / count);
}

const nodeOf = (name: string) => `${name}-${process.pid}-${TAKEN}`;

/** One request: all of a node is there, or nothing. */
async function ship(request: APIRequestContext, node: string, runs: readonly Run[]): Promise<void> {
  const places = new Map<string, number>();
  const frames: Frame[] = [];
  const indexOf = (frame: Frame) => {
    const key = JSON.stringify(frame);
    const known = places.get(key) ?? frames.push(frame) - 1;
    places.set(key, known);
    return known;
  };
  const stacks = runs.map(({ service, frames: path, times, of }) => ({
    frames: path.map(indexOf).reverse(),
    samples: times.length,
    times,
    of: { "service.name": service, "process.executable.name": service, ...of },
  }));
  const answer = await request.post("/v1development/profiles", {
    headers: { "content-type": "application/x-protobuf" },
    data: Buffer.from(otlp({ service: node, node, at: BEGIN, frames, stacks })),
  });
  expect(answer.status(), await answer.text()).toBe(200);
}

/** Services that do the same from the first second to the last, in samples a minute. */
function steady(minutes: number, rates: Record<string, number>): Run[] {
  return Object.entries(rates).map(([service, rate]) => ({
    service,
    frames: code(`/usr/bin/${service}`, "_start", "main", `${service}_work`),
    times: evenly(rate * minutes, BEGIN, minutes * MINUTE),
  }));
}

/** Samples of each kubelet thread in the minute before the jump and in the one behind it. */
export const KUBELET = {
  syncloop: [60, 60],
  "status-manager": [30, 30],
  "http-server": [30, 30],
  housekeeping: [12, 240],
  gc: [9, 45],
} as const satisfies Record<string, readonly [number, number]>;

/** S1, the kubelet jump: after a minute, a walk over a folder takes twenty times as much, and so frees more memory. */
export async function kubeletJump(request: APIRequestContext, name: string): Promise<Incident> {
  const node = nodeOf(name);
  const own = (...names: string[]) => [...THREAD, ...code("/usr/bin/kubelet", "thread_start", ...names)];
  const walk = own("kubelet::housekeeping", "tree::walk", "tree::walk");
  const call = (name: string, ...below: string[]) => [
    ...walk,
    ...code("/usr/bin/kubelet", name),
    ...kernel("entry_SYSCALL_64_after_hwframe", ...below),
  ];
  const half = (count: number) => count / 2;
  const threads: [keyof typeof KUBELET, Frame[], (count: number) => number][] = [
    ["syncloop", own("sync_loop::sync_pods", "sync_loop::compute_pod_actions"), (count) => count],
    ["status-manager", own("status::report", "status::encode_status"), (count) => count],
    ["http-server", own("metrics::serve", "metrics::encode_metrics"), (count) => count],
    ["housekeeping", call("std::fs::read_dir", "iterate_dir", "ext4_readdir"), half],
    ["housekeeping", call("std::fs::metadata", "vfs_statx", "filename_lookup"), half],
    ["gc", own("gc::collect", "gc::free_entries"), (count) => count],
  ];
  const kubelet = threads.map(([thread, frames, part]) => ({
    service: "kubelet",
    frames,
    times: KUBELET[thread].flatMap((count, minute) => evenly(part(count), BEGIN + minute * MINUTE)),
    of: { "thread.name": thread },
  }));
  const others = steady(2, { nginx: 900, postgres: 600, containerd: 120, "node-exporter": 60, chronyd: 12, sshd: 4 });
  await ship(request, node, [...kubelet, ...others]);
  return { node, range: { from: BEGIN, until: BEGIN + 2 * MINUTE } };
}

/** Samples of a minute: of which container, in user mode and in the kernel. */
export const CONTAINERS = { lxcfs: [240, 2400], cadvisor: [120, 600], shop: [360, 40] } as const;

/** S2, lxcfs and the zombie cgroups: reading `memory.stat` takes two cores, all of it in the kernel. */
export async function zombieCgroups(request: APIRequestContext, name: string): Promise<Incident> {
  const node = nodeOf(name);
  const reads = kernel("entry_SYSCALL_64_after_hwframe", "ksys_read", "vfs_read", "seq_read", "memcg_stat_show");
  const stat = [...reads, ...kernel("mem_cgroup_nr_lru_pages")];
  const sends = kernel("entry_SYSCALL_64_after_hwframe", "__sys_sendto");
  const runs = Object.entries(CONTAINERS).flatMap(([service, [user, system]]) => {
    const main = code(`/usr/bin/${service}`, "_start", "main", `${service}_loop`);
    const of = { "container.name": `${service}-7f3c`, "process.linux.cgroup": `/kubepods/${service}` };
    return [
      { service, of, frames: [...main, ...code(`/usr/bin/${service}`, "format")], times: evenly(user, BEGIN) },
      { service, of, frames: [...main, ...(service === "shop" ? sends : stat)], times: evenly(system, BEGIN) },
    ];
  });
  await ship(request, node, [...runs, ...steady(1, { dockerd: 180, sshd: 6 })]);
  return { node, range: { from: BEGIN, until: BEGIN + MINUTE } };
}

/** S3, ZFS that nobody uses: of 1,000 samples 300 are in `extract_entropy`, below a kernel thread. */
export async function unusedZfs(request: APIRequestContext, name: string): Promise<Incident> {
  const node = nodeOf(name);
  const reclaim = kernel("ret_from_fork", "kthread", "thread_generic_wrapper", "arc_reclaim_thread", "arc_shrink");
  const evict = [...reclaim, ...kernel("multilist_get_random_index")];
  const random = [...evict, ...kernel("random_get_bytes", "get_random_bytes", "extract_entropy")];
  const sha = kernel("sha_transform");
  const of = { "process.executable.name": "arc_reclaim", "thread.name": "arc_reclaim" };
  await ship(request, node, [
    { service: "zfs", of, frames: random, times: evenly(120, BEGIN) },
    { service: "zfs", of, frames: [...random, ...sha], times: evenly(180, BEGIN) },
    { service: "zfs", of, frames: evict, times: evenly(80, BEGIN) },
    ...steady(1, { java: 500, haproxy: 120 }),
  ]);
  return { node, range: { from: BEGIN, until: BEGIN + MINUTE } };
}

/** CPU seconds of each process in a minute, on virtual machines and on Kubernetes. */
export const JOBS = {
  "job-runner": [45, 20],
  "containerd-shim": [0, 12],
  kubelet: [0, 6],
  dockerd: [3, 9],
  systemd: [1, 1],
} as const satisfies Record<string, readonly [number, number]>;

/** S4, half the throughput on Kubernetes: two nodes at work for as long, on different things. */
export async function halfTheJobs(request: APIRequestContext, name: string): Promise<Incident & { other: string }> {
  const [other, node] = [nodeOf(`${name}-vm`), nodeOf(`${name}-k8s`)];
  for (const [i, on] of [other, node].entries()) {
    const rates = Object.entries(JOBS).map(([service, seconds]) => [service, (seconds[i] ?? 0) * SAMPLES_A_SECOND]);
    await ship(request, on, steady(1, Object.fromEntries(rates.filter(([, rate]) => Number(rate) > 0))));
  }
  return { node, other, range: { from: BEGIN, until: BEGIN + MINUTE } };
}

/** How often packets had to wait, and how many samples of cadvisor lie in the 100 ms before each. */
export const STALLS = { times: 40, before: 2 } as const;

/**
 * S5, stalls of 100 ms: on CPU 11 each of ksoftirqd's samples comes behind two of cadvisor, which reads `memory.stat`.
 * What else runs there is longer before; CPU 3 has more to do.
 */
export async function networkStalls(request: APIRequestContext, name: string): Promise<Incident> {
  const node = nodeOf(name);
  const stalls = Array.from({ length: STALLS.times }, (_, i) => BEGIN + 1_000 + i * 1_400);
  const on = (cpu: number, tid: number, thread: string) => ({
    "cpu.logical_number": cpu,
    "process.pid": tid,
    "thread.id": tid,
    "thread.name": thread,
  });
  const softirq = kernel("ret_from_fork", "kthread", "smpboot_thread_fn", "run_ksoftirqd", "net_rx_action");
  const reads = kernel("entry_SYSCALL_64_after_hwframe", "ksys_read", "seq_read", "memcg_stat_show");
  const loop = code("/usr/bin/cadvisor", "runtime.main", "housekeeping");
  const nginx = code("/usr/bin/nginx", "_start", "main", "ngx_worker");
  const before = (ms: number) => stalls.map((at) => at - ms);
  await ship(request, node, [
    { service: "ksoftirqd", frames: softirq, times: stalls, of: on(11, 71, "ksoftirqd/11") },
    {
      service: "cadvisor",
      frames: [...loop, ...reads],
      times: [...before(90), ...before(40)],
      of: on(11, 1402, "cadvisor"),
    },
    {
      service: "nginx",
      frames: nginx,
      times: [...before(400), ...before(350), ...before(300)],
      of: on(11, 900, "nginx"),
    },
    { service: "nginx", frames: nginx, times: evenly(600, BEGIN), of: on(3, 901, "nginx") },
    { service: "ksoftirqd", frames: softirq, times: evenly(5, BEGIN), of: on(3, 31, "ksoftirqd/3") },
  ]);
  return { node, range: { from: BEGIN, until: BEGIN + MINUTE } };
}
