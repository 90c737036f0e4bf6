/**
 * Samples that are known by construction, as an OTLP request (profiles, v1development): what a sender other than the
 * agent ships. Only what the tests and the bench need of it; `server/docs/wire.md` has the whole.
 */

/** One function. */
export interface Frame {
  name: string;
  module?: string;
  /** As `profile.frame.type` calls it. */
  kind?: "kernel" | "native" | "jit" | "cpython" | "jvm" | "v8js" | "ruby" | "php";
  buildId?: string;
  /** Where its source stands. */
  file?: string;
  line?: number;
}

/** What samples say of themselves, by OTLP's names, such as `thread.name`. */
export type Attributes = Readonly<Record<string, string | number>>;

export interface Stack {
  /** Indices of frames, leaf first. */
  frames: ArrayLike<number>;
  samples: number;
  /** When each was taken, Unix milliseconds; else as `Batch.at` says. */
  times?: readonly number[];
  of?: Attributes;
}

export interface Batch {
  service: string;
  node?: string;
  version?: string;
  /** What is profiled: CPU time, if nothing is said. */
  type?: string;
  /** When the samples were taken, Unix milliseconds; those of one stack follow each other by a millisecond. */
  at: number;
  frames: readonly Frame[];
  stacks: readonly Stack[];
  /** What all samples say of themselves. */
  of?: Attributes;
}

/**
 * What one sample stands for: a multiple of the agent's 10 ms, so that what both have in a window is counted in
 * samples. Values without a common period would be counted in nanoseconds.
 */
export const PERIOD_NS = 50_000_000;

class Writer {
  private bytes = new Uint8Array(1024);
  private view = new DataView(this.bytes.buffer);
  private at = 0;

  done(): Uint8Array {
    return this.bytes.subarray(0, this.at);
  }

  private room(more: number): void {
    if (this.at + more <= this.bytes.length) return;
    const wider = new Uint8Array(Math.max(this.bytes.length * 2, this.at + more));
    wider.set(this.bytes);
    this.bytes = wider;
    this.view = new DataView(wider.buffer);
  }

  varint(value: number): void {
    this.room(10);
    let rest = value;
    while (rest >= 128) {
      this.bytes[this.at++] = (rest % 128) | 128;
      rest = Math.floor(rest / 128);
    }
    this.bytes[this.at++] = rest;
  }

  number(field: number, value: number): this {
    this.varint(field * 8);
    this.varint(value);
    return this;
  }

  raw(field: number, value: Uint8Array): this {
    this.varint(field * 8 + 2);
    this.varint(value.length);
    this.room(value.length);
    this.bytes.set(value, this.at);
    this.at += value.length;
    return this;
  }

  text(field: number, value: string): this {
    return this.raw(field, new TextEncoder().encode(value));
  }

  message(field: number, write: (inner: Writer) => void): this {
    const inner = new Writer();
    write(inner);
    return this.raw(field, inner.done());
  }

  packed(field: number, values: ArrayLike<number>): this {
    return this.message(field, (inner) => {
      for (let i = 0; i < values.length; i++) inner.varint(values[i] as number);
    });
  }

  fixed64(values: readonly bigint[], field: number): this {
    return this.message(field, (inner) => {
      for (const value of values) {
        inner.room(8);
        inner.view.setBigUint64(inner.at, value, true);
        inner.at += 8;
      }
    });
  }
}

/** Texts by their place; the first is the empty one, as OTLP wants it. */
class Table {
  readonly texts = [""];
  private readonly places = new Map([["", 0]]);

  of(text: string): number {
    const known = this.places.get(text) ?? this.texts.push(text) - 1;
    this.places.set(text, known);
    return known;
  }
}

/** The body of `POST /v1development/profiles`. */
export function otlp({
  service,
  node = "synthetic",
  version = "",
  at,
  frames,
  stacks,
  of = {},
  type: profiled = "cpu",
}: Batch): Uint8Array {
  const [strings, modules, kinds, builds] = [new Table(), new Table(), new Table(), new Table()];
  const located = frames.map(({ name, module = "", kind = "native", buildId = "", file = "", line = 0 }) => ({
    name: strings.of(name),
    mapping: modules.of(buildId === "" ? module : `${module}\n${buildId}`),
    kind: kinds.of(kind),
    file: strings.of(file),
    line,
  }));
  const [type, build] = ["profile.frame.type", "process.executable.build_id.gnu"].map((key) => strings.of(key));
  for (const { buildId = "" } of frames) builds.of(buildId);
  // The first is none; those of build ids stand behind those of kinds, then those of samples.
  const attributes: [key: number, value: string | number][] = [
    ...kinds.texts.map((text): [number, string] => [type as number, text]),
    ...builds.texts.slice(1).map((text): [number, string] => [build as number, text]),
  ];
  const places = new Map<string, number>();
  const placeOf = (key: string, value: string | number) => {
    const name = JSON.stringify([key, value]);
    const place = places.get(name) ?? attributes.push([strings.of(key), value]) - 1;
    places.set(name, place);
    return place;
  };
  const request = new Writer();
  const written = (value: string | number) => (any: Writer) =>
    typeof value === "string" ? any.text(1, value) : any.number(3, value);
  const attribute = (to: Writer, key: string, value: string | number) =>
    to.message(1, (pair) => pair.text(1, key).message(2, written(value)));
  request.message(1, (resource) => {
    resource.message(1, (inner) => {
      attribute(inner, "service.name", service);
      attribute(inner, "host.name", node);
      if (version !== "") attribute(inner, "service.version", version);
      for (const [key, value] of Object.entries(of)) attribute(inner, key, value);
    });
    resource.message(2, (scope) => {
      scope.message(2, (profile) => {
        const valueType = (field: number, type: string, unit: string) =>
          profile.message(field, (inner) => inner.number(1, strings.of(type)).number(2, strings.of(unit)));
        valueType(1, "samples", "count");
        stacks.forEach(({ samples, times, of = {} }, i) => {
          const taken = times ?? Array.from({ length: samples }, (_, k) => at + (k % 1000));
          const own = Object.entries(of).map(([key, value]) => placeOf(key, value));
          profile.message(2, (sample) => {
            sample.number(1, i + 1);
            if (own.length > 0) sample.packed(2, own);
            const moments = taken.map((ms) => BigInt(Math.round(ms * 1000)) * 1000n);
            sample.fixed64(moments, 5);
          });
        });
        valueType(5, profiled, "nanoseconds");
        profile.number(6, PERIOD_NS);
      });
    });
  });
  request.message(2, (dictionary) => {
    for (const text of modules.texts) {
      const [module = "", buildId = ""] = text.split("\n");
      const at = kinds.texts.length + builds.of(buildId) - 1;
      dictionary.message(1, (mapping) => {
        mapping.number(4, strings.of(module));
        if (buildId !== "") mapping.packed(5, [at]);
      });
    }
    dictionary.message(2, () => {});
    located.forEach(({ mapping, kind, line }, i) => {
      dictionary.message(2, (location) =>
        location
          .number(1, mapping)
          .message(3, (inner) => inner.number(1, i + 1).number(2, line))
          .packed(4, [kind]),
      );
    });
    dictionary.message(3, () => {});
    for (const { name, file } of located) dictionary.message(3, (fn) => fn.number(1, name).number(3, file));
    dictionary.message(4, () => {});
    for (const text of strings.texts) dictionary.text(5, text);
    attributes.forEach(([key, value], i) => {
      dictionary.message(6, (pair) => {
        if (i === 0) return;
        pair.number(1, key).message(2, written(value));
      });
    });
    dictionary.message(7, () => {});
    // Frames of the tables begin at 1.
    for (const { frames: path } of stacks)
      dictionary.message(7, (stack) =>
        stack.packed(
          1,
          Array.from(path, (frame) => frame + 1),
        ),
      );
  });
  return request.done();
}
