/** Addresses that rested for a while are kept in this browser; an address that is half understood says so. */
import { effect } from "@preact/signals";
import { linkTo, page } from "../address/page.ts";
import { say } from "./said.ts";

/** What is passed on the way to something else is not kept. */
const RESTED_MS = 2_000;

export function startRecent(): void {
  const { search } = location;
  const read = page.peek();
  // Behind the first picture. Where the file can't be had, nothing is said of the address.
  if (search !== "")
    setTimeout(() => {
      import("./strangers.ts").then(
        (file) => {
          const text = file.strangersText(search, read);
          if (text !== "") say(text);
        },
        () => {},
      );
    }, RESTED_MS);
  effect(() => {
    const address = linkTo({});
    const timer = setTimeout(() => {
      // Where the file can't be had, this address is not kept.
      import("./saved.ts").then(
        (file) => file.remember(address),
        () => {},
      );
    }, RESTED_MS);
    return () => clearTimeout(timer);
  });
}
