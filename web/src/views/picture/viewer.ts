/**
 * What a saved file does by itself: it draws the frames it holds, zooms, searches and tells. The whole function is
 * written into the file as text, so it uses nothing but its argument and what every browser has.
 */
import type { FileFrames } from "../../logic/picture/frames.ts";

export interface FileData {
  frames: FileFrames;
  /** The zoomed frame, and the search, as they were in sight. */
  focus: number;
  match: string;
  /** Root at the bottom. */
  flame: boolean;
  dark: boolean;
  /** CPU seconds of a sample; 0 where samples are no time. */
  secondsPerSample: number;
  /** What such seconds are, behind them. */
  timeWords: string;
}

export function viewer(data: FileData): void {
  const { frames, flame, secondsPerSample, timeWords } = data;
  const ROW = 19;
  const size = frames.parent.length;
  const end = new Int32Array(size).fill(size);
  // In pre-order the subtree of a frame ends where the next frame of its row or a higher one begins.
  const open: number[] = [];
  const depth: number[] = [];
  for (let i = 0; i < size; i++) {
    const parent = frames.parent[i] as number;
    while (open.length > 0 && open[open.length - 1] !== parent) end[open.pop() as number] = i;
    depth.push(open.length);
    open.push(i);
  }
  const get = <T extends HTMLElement>(id: string) => document.getElementById(id) as T;
  const [canvas, find, tip, said] = [
    get<HTMLCanvasElement>("graph"),
    get<HTMLInputElement>("find"),
    get("tip"),
    get("said"),
  ];
  let focus = data.focus;
  let at = focus;
  let hits: Uint8Array | null = null;
  let dark = data.dark;
  const rows = Math.max(...frames.row) - Math.min(...frames.row) + 1;
  const firstRow = Math.min(...frames.row);
  const number = (value: number) => value.toLocaleString("en").replaceAll(",", "\u202f");
  const share = (part: number, whole: number) => (whole > 0 ? `${((100 * part) / whole).toFixed(2)}\u202f%` : "–");
  const nameOf = (i: number) => frames.names[frames.name[i] as number] as string;
  const textOf = (i: number) => {
    const total = frames.total[i] as number;
    const time = secondsPerSample > 0 ? `, ${(total * secondsPerSample).toPrecision(4)} s ${timeWords}` : "";
    const module = frames.modules[frames.module[i] as number];
    const sums =
      frames.base.length > 0
        ? `A ${number(frames.base[i] as number)}, B ${number(total)} samples, ${frames.change[i]}`
        : `${number(total)} samples, ${share(total, frames.total[0] as number)} of the total${time}; ` +
          `self ${number(frames.self[i] as number)}`;
    return `${nameOf(i)}${module ? ` (${module})` : ""}: ${sums}`;
  };
  const isAbove = (i: number) => i !== focus && i <= focus && (end[i] as number) >= (end[focus] as number);
  const topOf = (i: number) => {
    const row = (frames.row[i] as number) - firstRow;
    return (flame ? rows - 1 - row : row) * ROW;
  };
  const boxOf = (i: number, width: number): [number, number] => {
    if (isAbove(i)) return [0, width];
    const scale = width / (frames.weight[focus] as number);
    const left = ((frames.start[i] as number) - (frames.start[focus] as number)) * scale;
    return [left, left + (frames.weight[i] as number) * scale];
  };
  const draw = () => {
    const ratio = devicePixelRatio || 1;
    const width = canvas.clientWidth;
    canvas.style.height = `${rows * ROW}px`;
    canvas.width = Math.floor(width * ratio);
    canvas.height = Math.floor(rows * ROW * ratio);
    const context = canvas.getContext("2d") as CanvasRenderingContext2D;
    context.scale(ratio, ratio);
    context.font = "11.5px ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace";
    context.textBaseline = "middle";
    context.direction = "ltr";
    const letter = context.measureText("m").width;
    for (let i = 0; i < size; ) {
      const isWithin = i >= focus && i < (end[focus] as number);
      if (!isWithin && !isAbove(i)) {
        i = end[i] as number;
        continue;
      }
      const [left, right] = boxOf(i, width);
      if (right - left < 0.4) {
        i = end[i] as number;
        continue;
      }
      const [fill, text, darkFill, darkText] = frames.paints[frames.paint[i] as number] as string[];
      const isFaint = hits !== null && hits[i] === 0;
      context.globalAlpha = isFaint ? 0.3 : isAbove(i) ? 0.6 : 1;
      context.fillStyle = (dark ? darkFill : fill) as string;
      context.fillRect(left, topOf(i), Math.max(1, right - left - 0.5), ROW - 1);
      const room = Math.floor((right - left - 8) / letter);
      if (room >= 3) {
        const name = nameOf(i);
        context.globalAlpha = 1;
        context.fillStyle = isFaint ? (dark ? "#f3f5fa" : "#10141c") : ((dark ? darkText : text) as string);
        context.fillText(name.length <= room ? name : `${name.slice(0, room - 1)}…`, left + 4, topOf(i) + ROW / 2);
      }
      if (i === at) {
        context.globalAlpha = 1;
        context.strokeStyle = dark ? "#9cc2ff" : "#0b57d0";
        context.lineWidth = 2;
        context.strokeRect(left + 1, topOf(i) + 1, Math.max(1, right - left - 2), ROW - 3);
      }
      i++;
    }
  };
  const tell = () => {
    const found =
      hits === null
        ? ""
        : ` | found: ${number(foundSamples())} samples, ${share(foundSamples(), frames.total[0] as number)}`;
    said.textContent = textOf(at) + found;
    canvas.dataset.focus = String(focus);
  };
  /** Of stacks with a match: the outermost frames that match, each once. */
  const foundSamples = () => {
    let sum = 0;
    for (let i = 0; i < size; ) {
      if (hits !== null && hits[i] === 1) {
        sum += frames.total[i] as number;
        i = end[i] as number;
      } else i++;
    }
    return sum;
  };
  const search = () => {
    const text = find.value;
    hits = null;
    find.setCustomValidity("");
    if (text !== "") {
      const pattern = /^\/(.+)\/(i?)$/.exec(text);
      let test: (name: string) => boolean = (name) => name.toLowerCase().includes(text.toLowerCase());
      if (pattern !== null) {
        try {
          const regex = new RegExp(pattern[1] as string, pattern[2]);
          test = (name) => regex.test(name);
        } catch {
          find.setCustomValidity("This is no regular expression.");
        }
      }
      const verdicts = frames.names.map(test);
      hits = Uint8Array.from(frames.name, (name) => (verdicts[name] ? 1 : 0));
    }
    draw();
    tell();
  };
  const zoom = (i: number) => {
    focus = i;
    at = i;
    draw();
    tell();
  };
  const hit = (event: MouseEvent): number => {
    const box = canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    for (let i = 0; i < size; i++) {
      const top = topOf(i);
      if (y < top || y >= top + ROW) continue;
      if (!isAbove(i) && (i < focus || i >= (end[focus] as number))) continue;
      const [left, right] = boxOf(i, box.width);
      if (x >= left && x < right) return i;
    }
    return -1;
  };
  canvas.addEventListener("mousemove", (event) => {
    const i = hit(event);
    tip.hidden = i < 0;
    if (i < 0) return;
    tip.textContent = textOf(i);
    const left = Math.max(0, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8));
    tip.style.left = `${left}px`;
    tip.style.top = `${Math.min(event.clientY + 16, innerHeight - tip.offsetHeight - 8)}px`;
  });
  canvas.addEventListener("mouseleave", () => {
    tip.hidden = true;
  });
  canvas.addEventListener("click", (event) => {
    const i = hit(event);
    if (i >= 0) zoom(i);
  });
  const siblings = (by: number) => {
    let next = at + by;
    while (next >= 0 && next < size && depth[next] !== depth[at]) next += by;
    return next >= 0 && next < size ? next : at;
  };
  canvas.addEventListener("keydown", (event) => {
    const [inward, outward] = flame ? ["ArrowUp", "ArrowDown"] : ["ArrowDown", "ArrowUp"];
    if (event.key === inward && at + 1 < (end[at] as number)) at++;
    else if (event.key === outward) at = Math.max(0, frames.parent[at] as number);
    else if (event.key === "ArrowRight") at = siblings(1);
    else if (event.key === "ArrowLeft") at = siblings(-1);
    else if (event.key === "Enter") zoom(at);
    else if (event.key === "Escape") zoom(0);
    else return;
    event.preventDefault();
    draw();
    tell();
  });
  find.addEventListener("input", search);
  get("whole").addEventListener("click", () => zoom(0));
  get("theme").addEventListener("click", () => {
    dark = !dark;
    document.documentElement.classList.toggle("dark", dark);
    draw();
  });
  addEventListener("resize", draw);
  find.value = data.match;
  search();
}
