/** Addresses that rested for a while are kept in this browser; an address that is half understood says so. */
import { effect } from "@preact/signals";
import { linkTo } from "../address/page.ts";
import { strangersIn } from "../address/url.ts";
import { say } from "./said.ts";

/** What is passed on the way to something else is not kept. */
const RESTED_MS = 2_000;
const MOST_TOLD = 300;

export function startRecent(): void {
  const strange = strangersIn(location.search).join(", ");
  if (strange !== "") {
    const told = strange.length > MOST_TOLD ? `${strange.slice(0, MOST_TOLD)}…` : strange;
    say(`The address has what this version of the page does not know: ${told}. All else is shown.`, true);
  }
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
