/** The shapes of the server's answers, as `server/docs/api.md` fixes them. Times are Unix milliseconds. */

/** What ticks tell of CPU time: shares that were idle, and of which no tick came. */
export interface Ticks {
  idle_share: number | null;
  missed_share?: number | null;
}

export interface Exposure extends Ticks {
  /** Time that at least one agent covered. */
  observed_seconds?: number;
  observed_cpu_seconds: number;
  gaps: [number, number][];
  nodes: number;
  /** Share of the observed time for which a node was covered, a mean over the nodes. */
  node_share?: number | null;
  /** Of waits: share of the time in which they were observed; null where no agent says. */
  waits_share?: number | null;
}

/** Samples as they were taken, by what each stands for. */
export interface Period {
  period_ns: number;
  samples: number;
}

export interface Quality {
  complete_samples: number;
  truncated_samples: number;
  unnamed_samples: number;
  lost: Record<string, number>;
}

export interface SeriesAnswer {
  /** Absent from older servers: `cpu`. */
  type?: string;
  from: number;
  until: number;
  step_ms: number;
  by: string;
  unit: string;
  is_time?: boolean;
  times: number[];
  /** Parts of the steps that at least one agent covered, and the mean of the nodes' parts. */
  covered: number[];
  covered_by_node?: number[];
  idle: (number | null)[];
  capacity: (number | null)[];
  series: SeriesLine[];
  other: (Omit<SeriesLine, "value"> & { series: number }) | null;
}

export interface SeriesLine {
  value: string;
  /** In the answer's `unit`, which is cores for types of time alone. */
  cores: (number | null)[];
  samples: number;
  cpu_seconds: number | null;
  /** Sum of the values: nanoseconds, or the type's own unit. */
  total?: number;
}

export interface MatchSummary {
  pattern: string;
  samples: number;
  share: number;
}

/** The columns that every tree has, one entry a node in pre-order; node 0 is the root, whose parent is -1. */
export interface TreeColumns {
  parent: number[];
  name: number[];
  module: number[];
  kind: number[];
  inlined: number[];
  total: number[];
  self: number[];
}

export interface FlamegraphAnswer {
  /** Whether the type's values are time: only then there are cores and CPU seconds. */
  is_time?: boolean;
  /** Cores, or the type's unit per observed second. */
  rate?: number;
  type: string;
  query: string;
  from: number;
  until: number;
  unit: string;
  period_ns: number;
  samples: number;
  cpu_seconds: number | null;
  cores: number | null;
  periods: Period[];
  exposure: Exposure;
  quality: Quality;
  match: MatchSummary | null;
  /** With `stacks=wakers`: counts of waits of which it is known who ended them, and of the others. */
  wakers?: { known: number; unknown: number };
  strings: string[];
  kinds: string[];
  /** Beside `kinds`; empty where a kind is of no language. */
  languages: string[];
  nodes: TreeColumns;
}

export interface DiffColumns extends TreeColumns {
  base_total: number[];
  base_self: number[];
  base_norm: number[];
  norm: number[];
  delta: number[];
  low: number[];
  high: number[];
  base_self_norm: number[];
  self_norm: number[];
  state: number[];
  strength: number[];
}

export interface DiffSide {
  unit?: string;
  is_time?: boolean;
  rate?: number;
  query: string;
  from: number;
  until: number;
  samples: number;
  cores: number | null;
  cpu_seconds: number | null;
  periods: Period[];
  exposure: Exposure;
  quality: Quality;
  /** What of the window does not count: begin and end. */
  except?: [number, number] | null;
}

export type Normalize = "rate" | "share" | "absolute";
/** What of a frame is compared: all samples with it in the stack, or those that end in it. */
export type Measured = "total" | "self";

export interface DiffAnswer {
  type: string;
  normalize: Normalize;
  measure: Measured;
  /** Of intervals; what is missing to 1 is the share of false discoveries that is accepted. */
  confidence: number;
  unit: string;
  period_ns: number;
  base: DiffSide;
  comparison: DiffSide;
  dispersion: number;
  tested: number;
  significant: number;
  false_discovery_rate: number;
  strings: string[];
  kinds: string[];
  languages: string[];
  states: string[];
  nodes: DiffColumns;
}

export interface TopRow {
  name: string;
  module?: string;
  kind?: string;
  /** Of functions; empty where their kind is of no language. */
  language?: string;
  self: number;
  total: number;
  self_share: number;
  total_share: number;
  self_cores: number | null;
  cores: number | null;
  cpu_seconds: number | null;
  rate?: number;
  user_share?: number | null;
  /** Null where there were too many stacks to tell. */
  complete_share?: number | null;
  truncated_share?: number | null;
  unnamed_share?: number | null;
}

export interface DiffTopRow extends TopRow {
  base_self: number;
  base_total: number;
  base_norm: number;
  norm: number;
  delta: number;
  low: number;
  high: number;
  state: string;
}

export interface TopAnswer<Row> {
  by: string;
  unit: string;
  count_unit?: string;
  is_time?: boolean;
  samples: number;
  cpu_seconds: number | null;
  complete: boolean;
  normalize?: Normalize;
  /** Of a difference: side A, and how this very table was judged. */
  base_samples?: number;
  base_cpu_seconds?: number | null;
  confidence?: number;
  measure?: Measured;
  tested?: number;
  significant?: number;
  rows: Row[];
}

/** What is by one label: as `parts` was asked for. */
export interface Facet {
  by: string;
  series?: SeriesAnswer;
  top?: TopAnswer<TopRow>;
}

export interface FacetsAnswer {
  facets: Facet[];
}

/** Where threads' time goes, by a label. */
export interface ThreadTimeAnswer {
  from: number;
  until: number;
  by: string;
  step_ms: number;
  times: number[];
  covered: number[];
  exposure: Exposure;
  /** `class` is what was waited for, of the type `off_cpu`. */
  parts: { type: string; class: string; seconds: number; rates: (number | null)[] }[];
  /** Thread-seconds of each part. */
  rows: { name: string; seconds: number[] }[];
  count: number;
  complete: boolean;
}

export interface SearchHit {
  /** As a selector takes it, or `function`. */
  label: string;
  value: string;
}

export interface SearchAnswer {
  hits: SearchHit[];
  complete: boolean;
}

export interface SqlAnswer {
  columns: { name: string; type: string }[];
  rows: (string | number | boolean | null)[][];
  complete: boolean;
}

/** What a sender was refused for one reason, since the server's start. */
export interface Refusal {
  reason: string;
  count: number;
  /** The last time, and what it was told then. */
  last: number;
  message: string;
}

export interface NodeRow extends Ticks {
  node: string;
  instance: string;
  agent_version: string;
  kernel: string;
  arch: string;
  last_seen: number;
  frequency_hz: number;
  cpus: number;
  /** Such as `2-3,7`: off, or not sampled, at any time of the newest interval; absent from older servers. */
  cpus_offline?: string;
  samples_taken: number;
  samples_lost: Record<string, number>;
  limits: Record<string, number>;
  samples_stored: number;
  cpu_seconds: number;
  bpf_seconds: number;
  /** What it and its BPF programs took of a CPU at last. */
  agent_cores: number | null;
  rss_bytes: number;
  bpf_map_bytes: number;
  late: boolean;
  /** Highest rate of a burst there; 0 or absent: its agent does not ask for any. */
  burst_limit_hz?: number;
  /** False of a sender that is no agent: it says nothing of its rate, its CPUs and its own cost. */
  has_account?: boolean;
  refusals?: Refusal[];
  /** Bounds of its labels that were reached, and how often. */
  label_limits?: Record<string, number> | null;
}

export type MarkerKind = "note" | "version" | "agent" | "burst";

/** A moment that was sent (`note`) or found. */
export interface Marker {
  id: string;
  kind: MarkerKind;
  time: number;
  /** Of a burst: when it ended, or will. */
  until?: number | null;
  title: string;
  text: string;
  labels: Record<string, string>;
}

/** Markers of a step of the chart that are counted, and not told. */
export interface OlderMarkers {
  from: number;
  until: number;
  counts: Partial<Record<MarkerKind, number>>;
}

export interface MarkersAnswer {
  from: number;
  until: number;
  /** Whether `markers` has all of them. */
  complete: boolean;
  /** The newest ones. */
  markers: Marker[];
  older: OlderMarkers[];
  /** Kinds of which there are more than the server tells apart. */
  uncounted: MarkerKind[];
}

export type BurstState = "waiting" | "running" | "ended" | "cancelled" | "refused" | "lost";

/** A node that is, or was, sampled at a high rate for a while. */
export interface Burst {
  id: string;
  node: string;
  instance: string;
  state: BurstState;
  /** Such as `0,2-3`; empty: all. */
  cpus: string;
  service: string;
  process: string;
  /** Of what else, as a selector; empty: of all. */
  query: string;
  frequency_hz: number;
  seconds: number;
  created_ms: number;
  /** By the agent's clock; null before it began. */
  from_ms: number | null;
  until_ms: number | null;
  /** What the agent told: samples at that rate, and its own CPU time meanwhile. */
  samples: number;
  cpu_seconds: number;
  /** Why it is as it is; empty where there is nothing to say. */
  reason: string;
}

/** What is asked for: one node, or a selector of nodes and of what there. */
export interface BurstRequest {
  node?: string;
  query?: string;
  cpus?: string;
  service?: string;
  process?: string;
  frequency_hz: number;
  seconds: number;
}

/** An address of the page with a name; `tag` is another one whenever it changes. */
export interface SavedView {
  name: string;
  address: string;
  changed: number;
  tag: string;
}

export interface InfoAnswer {
  version: string;
  /** Cargo's profile by which the server was compiled. */
  build_profile?: string;
  install_command: string;
  agent_download: boolean;
}

/** Counts of cells, column by column, the earliest offset first. */
export interface HeatmapAnswer {
  type: string;
  query: string;
  from: number;
  until: number;
  unit: string;
  is_time?: boolean;
  period_ns: number;
  samples: number;
  exposure: Exposure;
  step_ns: number;
  columns: number;
  rows: number;
  cells: number[];
}

/** Waits for a CPU of a value. A percentile is null where no wait ended. */
export interface QueueLine {
  value: string;
  waits: number;
  total_ns: number;
  p50_ns: number | null;
  p99_ns: number | null;
  longest_ns: number;
  /** Of CPUs: ticks of their timers, and those that met them idle; null of programs, and where no agent says. */
  ticks?: number | null;
  idle_ticks?: number | null;
  steps: {
    waits: number[];
    total_ns: number[];
    p50_ns: (number | null)[];
    p99_ns: (number | null)[];
    longest_ns: number[];
  };
}

export interface RunQueueAnswer {
  query: string;
  from: number;
  until: number;
  step_ms: number;
  by: string;
  times: number[];
  /** Of agents that counted; 0 where none did. */
  batches: number;
  all: QueueLine;
  lines: QueueLine[];
  others: number;
}

/** Samples in the order of time, column by column. */
export interface TimelineSamples {
  /** From the answer's start. */
  offset_ns: number[];
  node: string[];
  cpu: (number | null)[];
  tid: (number | null)[];
  tgid: string[];
  service: string[];
  thread: string[];
  mode: string[];
  value_ns: number[];
  /** The node of the tree at which the stack ends. */
  stack: number[];
  /** Where waits were asked for: the place of the type among the answer's, what for, and how the wait began. */
  sample_type?: number[];
  wait_class?: string[];
  wait_state?: string[];
  /** How long the wait itself was; null of what is no wait, and where the sender does not say. */
  wait_ns?: (number | null)[];
  /** Who ended the wait, as a place in the columns of `wakers`; null where nobody was sampled. */
  waker?: (number | null)[];
}

/** Those who ended waits. */
export interface TimelineWakers {
  service: string[];
  process: string[];
  thread: string[];
  tid: (number | null)[];
  /** The node of the tree at which the stack ends. */
  stack: number[];
}

export interface TimelineAnswer {
  type: string;
  types?: string[];
  wakers?: TimelineWakers;
  query: string;
  from: number;
  until: number;
  complete: boolean;
  strings: string[];
  kinds: string[];
  languages: string[];
  nodes: TreeColumns;
  samples: TimelineSamples;
}
