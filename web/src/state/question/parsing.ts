/**
 * Answers as trees. The page parses small ones itself, and a worker parses a large one, so that the page goes on
 * answering to hands meanwhile. The worker lives as long as its answer takes: its memory is then given back, and a
 * question that nobody waits for any more ends it.
 */
import { notJson } from "../../api/index.ts";
import { type Kind, type ParsedAnswers, parseAnswer } from "../../logic/tree/answer.ts";

/** Bytes of an answer that take a few hundredths of a second to parse: a worker has begun by then. */
const LARGE = 2_000_000;

export async function parse<K extends Kind>(
  kind: K,
  bytes: ArrayBuffer,
  signal: AbortSignal,
  ownRows = false,
): Promise<ParsedAnswers[K]> {
  const large = bytes.byteLength < LARGE ? null : await parseApart(kind, bytes, signal, ownRows);
  if (large !== null) return large;
  try {
    return parseAnswer(kind, new TextDecoder().decode(bytes), ownRows);
  } catch (error) {
    throw error instanceof SyntaxError ? notJson() : error;
  }
}

/** Null where a worker can't be had, or can't read it. */
function parseApart<K extends Kind>(
  kind: K,
  bytes: ArrayBuffer,
  signal: AbortSignal,
  ownRows: boolean,
): Promise<ParsedAnswers[K] | null> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL("./parse.worker.ts", import.meta.url), { type: "module" });
    const end = () => {
      worker.terminate();
      signal.removeEventListener("abort", abort);
    };
    const abort = () => {
      end();
      reject(signal.reason);
    };
    signal.addEventListener("abort", abort);
    worker.onmessage = ({ data }: MessageEvent<ParsedAnswers[K] | null>) => {
      end();
      resolve(data);
    };
    // Its file is gone after an upgrade of the server: the page has what it needs to do it itself.
    worker.onerror = (event) => {
      event.preventDefault();
      end();
      resolve(null);
    };
    worker.postMessage({ kind, bytes, ownRows });
  });
}
