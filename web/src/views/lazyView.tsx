/**
 * Views that the browser fetches when they are first wanted. Until a view is there something stands in its place. Where
 * it can't be fetched, a notice says why and what to do.
 */
import type { ComponentChildren, ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { lazyFile } from "../state/lazyFile.ts";
import laterSheet from "../style/later/index.css?url";
import { EmptyNotice } from "./ui/Notices.tsx";

export interface LazyView<P> {
  (props: P): ComponentChildren;
  /** Fetches it before it is shown. */
  preload: () => void;
}

const begun = new WeakSet<() => void>();

/** Starts what a fetched file asks the server for by itself: once, however many of its views are wanted. */
export function begin<File extends { start: () => void }>(file: File): File {
  if (begun.has(file.start)) return file;
  begun.add(file.start);
  file.start();
  return file;
}

let styles: Promise<void> | null = null;

/** The styles of what is fetched later: one sheet, which comes beside the first part that needs it. */
export function withStyles<File>(file: Promise<File>): Promise<File> {
  styles ??= new Promise((done, failed) => {
    const sheet = document.createElement("link");
    sheet.rel = "stylesheet";
    sheet.href = laterSheet;
    sheet.onload = () => done();
    sheet.onerror = () => {
      sheet.remove();
      styles = null;
      failed(new Error("the styles could not be loaded"));
    };
    document.head.append(sheet);
  });
  return Promise.all([file, styles]).then(([loaded]) => loaded);
}

/** What is not missed where it cannot be fetched leaves its place as it was. */
export function lazy<P extends object>(
  load: () => Promise<ComponentType<P>>,
  meanwhile: ComponentChildren = null,
  isMissed = true,
): LazyView<P> {
  const file = lazyFile(load);
  const Lazy = (props: P) => {
    useEffect(file.load, []);
    const Loaded = file.content.value;
    if (Loaded !== null) return <Loaded {...props} />;
    return isMissed && file.failed.value ? <Unloaded onRetry={file.load} /> : meanwhile;
  };
  return Object.assign(Lazy, { preload: file.preload });
}

export function Unloaded({ onRetry }: { onRetry: () => void }) {
  return (
    <div role="alert">
      <EmptyNotice title="This part of the page could not be loaded.">
        <p>
          The server does not answer, or was upgraded since this page was opened: then the page has to be loaded anew.
          What is chosen stands in the address and stays.
        </p>
        <button type="button" class="button primary" onClick={() => location.reload()}>
          Reload the page
        </button>{" "}
        <button type="button" class="button" onClick={onRetry}>
          Try again
        </button>
      </EmptyNotice>
    </div>
  );
}
