/** Grows trees beside the page: what arrives are an answer's bytes, what leaves is the answer with its tree, or null for what is no JSON. */
import { buffersOf, grow, type Kind } from "../logic/tree/answer.ts";

addEventListener("message", ({ data }: MessageEvent<{ kind: Kind; bytes: ArrayBuffer }>) => {
  try {
    const grown = grow(data.kind, new TextDecoder().decode(data.bytes));
    const transfer = grown.tree === null ? [] : (buffersOf(grown.tree) as ArrayBuffer[]);
    postMessage(grown, { transfer });
  } catch {
    postMessage(null);
  }
});
