/**
 * Numbers for pairs of numbers: the first pair asked for is 0, the next new one 1. Open addressing on typed arrays,
 * since a `Map` with a million entries takes ten times as long and as much memory.
 */
export class Pairs {
  size = 0;
  private mask: number;
  private first: Int32Array;
  private second: Int32Array;
  private ids: Int32Array;

  constructor(expected = 1024) {
    let slots = 1024;
    while (slots < expected * 2) slots *= 2;
    this.mask = slots - 1;
    this.first = new Int32Array(slots);
    this.second = new Int32Array(slots);
    this.ids = new Int32Array(slots).fill(-1);
  }

  /** The pair's number; a new pair gets the next one, which `size` tells. */
  of(a: number, b: number): number {
    const slot = this.slot(a, b);
    const known = this.ids[slot] as number;
    if (known >= 0) return known;
    this.first[slot] = a;
    this.second[slot] = b;
    this.ids[slot] = this.size++;
    if (this.size * 2 > this.mask) this.grow();
    return this.size - 1;
  }

  private slot(a: number, b: number): number {
    const { mask, first, second, ids } = this;
    let hash = Math.imul(a, 0x9e3779b1) ^ Math.imul(b, 0x85ebca6b);
    hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
    let slot = (hash ^ (hash >>> 13)) & mask;
    while (ids[slot] !== -1 && (first[slot] !== a || second[slot] !== b)) slot = (slot + 1) & mask;
    return slot;
  }

  private grow(): void {
    const { first, second, ids } = this;
    const slots = ids.length * 2;
    this.mask = slots - 1;
    this.first = new Int32Array(slots);
    this.second = new Int32Array(slots);
    this.ids = new Int32Array(slots).fill(-1);
    for (let i = 0; i < ids.length; i++) {
      if (ids[i] === -1) continue;
      const slot = this.slot(first[i] as number, second[i] as number);
      this.first[slot] = first[i] as number;
      this.second[slot] = second[i] as number;
      this.ids[slot] = ids[i] as number;
    }
  }
}
