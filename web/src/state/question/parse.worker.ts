/**
 * Parses answers beside the page: what arrives are an answer's bytes, what leaves is the answer with its tree, or null
 * for what is no JSON.
 */
import { buffersOf, type Kind, parseAnswer } from "../../logic/tree/answer.ts";

addEventListener("message", ({ data }: MessageEvent<{ kind: Kind; bytes: ArrayBuffer; ownRows: boolean }>) => {
  try {
    const parsed = parseAnswer(data.kind, new TextDecoder().decode(data.bytes), data.ownRows);
    const transfer = parsed.tree === null ? [] : (buffersOf(parsed.tree) as ArrayBuffer[]);
    postMessage(parsed, { transfer });
  } catch {
    postMessage(null);
  }
});
